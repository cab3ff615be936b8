//! Ranking snapshots: immutable files, one estimate of every page each. See `formats/snapshot.md`.
//!
//! Nothing in a snapshot depends on the hash key, on checkpoints, threads or wall time: the same
//! records give the same bytes. Names are not in it; they are in the store's logs, which only grow.

mod column;
pub mod export;
mod read;
mod write;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::engine::{Counters, EngineState, Totals, Window};
use crate::store::{Disk, NameLengths, SNAPSHOTS, Settings, read_whole, write_whole};
use crate::{Error, Result};

pub use read::{Ranked, Snapshot};
pub use write::publish;

/// Version of the format.
pub const VERSION: u32 = 1;
/// First and last bytes of a snapshot.
const MAGIC: &[u8; 8] = b"CRSNAP01";
/// Length of the trailer: see `formats/snapshot.md`.
const TRAILER: usize = 40;
/// Bytes of a directory entry: offset, length, checksum.
const ENTRY: usize = 20;

/// The columns, in the order of the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Column {
    /// The importance, by the window's estimator: f64.
    Importance,
    /// The distributed estimate: f64.
    Distributed,
    /// 1 + pages of strictly greater importance: u64.
    Rank,
    /// Visits: u64.
    Visits,
    /// Last fetch in seconds since 1970: i64; i64::MIN: unknown.
    LastFetch,
    /// Cash in units: u64.
    Cash,
}

/// Number of columns.
pub(crate) const COLUMNS: usize = 6;

/// What a snapshot says of the run as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Version of the format.
    pub version: u32,
    /// Pages known.
    pub pages: u64,
    /// Visits, recyclings not counted.
    pub visits: u64,
    /// Rounds ended.
    pub rounds: u64,
    /// G in units of a full supply: how often all cash has been distributed.
    pub turnovers: f64,
    /// G in units, in decimal digits.
    pub clock: String,
    /// What was read.
    pub counters: Counters,
    /// Latest time of a record, in seconds since 1970.
    pub time: Option<i64>,
    /// The window, its estimator and certificate.
    pub window: Window,
    /// The settings of the run.
    pub settings: Settings,
}

impl Info {
    fn new(state: &EngineState, window: &Window, settings: &Settings) -> Info {
        let totals: &Totals = &state.totals;
        Info {
            version: VERSION,
            pages: totals.pages,
            visits: totals.visits,
            rounds: totals.rounds,
            turnovers: totals.clock as f64 / (totals.supply() as f64).max(1.0),
            clock: totals.clock.to_string(),
            counters: state.counters.clone(),
            time: state.time,
            window: window.clone(),
            settings: settings.clone(),
        }
    }

    /// The certified bound on the L1 distance of the importance to PageRank; `None`: no bound.
    pub fn bound_l1(&self) -> Option<f64> {
        self.window.certificate.and_then(|c| c.received_l1)
    }
}

/// `snapshots/latest.json`: which snapshot is current, and how long the logs were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latest {
    pub snapshot: String,
    pub names: NameLengths,
}

impl Latest {
    fn path(dir: &Path) -> PathBuf {
        dir.join(SNAPSHOTS).join("latest.json")
    }

    /// The current snapshot of the store in `dir`; `None`: none published yet.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<Latest>> {
        let path = Self::path(dir);
        match read_whole(disk, &path) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| Error::damaged(path, error.to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(path, "read")(error)),
        }
    }

    fn write(&self, disk: &dyn Disk, dir: &Path) -> Result<()> {
        let path = Self::path(dir);
        let mut text =
            serde_json::to_vec(self).map_err(|error| Error::Refused(error.to_string()))?;
        text.push(b'\n');
        write_whole(disk, &path, &text).map_err(Error::io(&path, "write"))
    }
}
