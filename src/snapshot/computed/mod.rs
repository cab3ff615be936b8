//! Rankings of pages or sites by a measure, which were computed beside a snapshot from the same links. See
//! `formats/ranking.md`.
//!
//! `000000000300.host.harmonic.ranking` is that of hosts by harmonic centrality beside `000000000300.snapshot`. It stays as
//! long as the snapshot. Of pages it holds scores and ranks, since their names are those of the snapshot; of sites also
//! their names, and what is known of their pages together.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use read::ComputedRanking;
pub use write::publish_computed;

use super::SNAPSHOTS;
use super::blocks::{Kind, Magic};
use crate::disk::Disk;
use crate::rank::computing::{Computing, Parameters};
use crate::rank::measures::Accuracy;
use crate::sites::Level;
use crate::store::Settings;
use crate::{Error, Result};

/// Version of the format.
pub const RANKING_VERSION: u32 = 1;
/// First and last bytes of a file.
const MAGIC: Magic = *b"CRRANK01";
/// How the names of files end.
pub(crate) const RANKING: &str = ".ranking";

const KIND: Kind = Kind {
    name: "ranking",
    magics: &[MAGIC],
    other_version,
};

/// The columns, in the order of the directory. Pages have the first [`PAGE_COLUMNS`].
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
enum Column {
    /// The score: f64.
    Score,
    /// 1 + those of a strictly greater score: u64.
    Rank,
    /// Pages of the site: u64.
    Pages,
    /// Visits of all of them: u64.
    Visits,
    /// The last fetch of any in seconds since 1970; i64::MIN: unknown.
    LastFetch,
    /// The names of sites: of each its length as a variable-length integer, and its bytes.
    Name,
}

const PAGE_COLUMNS: usize = 2;
const SITE_COLUMNS: usize = 6;

/// What a ranking says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComputedInfo {
    /// Version of the format.
    pub version: u32,
    /// The measure's name.
    pub measure: String,
    /// What is ranked.
    pub level: Level,
    /// How many of them.
    pub count: u64,
    /// Links between them.
    pub links: u64,
    /// Pages of the snapshot.
    pub pages: u64,
    /// Pages without a site.
    pub without_site: u64,
    /// Records read until the snapshot.
    pub records: u64,
    /// What it was computed with.
    pub parameters: Parameters,
    /// How far the computation came.
    #[serde(flatten)]
    pub attained: Attained,
    /// The settings of the store.
    pub settings: Settings,
}

/// How far a computation came.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Attained {
    /// How sure the scores are.
    pub accuracy: Accuracy,
    /// Whether the bound, residual or change that was asked for was reached.
    pub reached: bool,
    /// Sweeps over all links.
    pub sweeps: u64,
}

impl ComputedInfo {
    /// The certified bound on the L1 distance of the scores, which sum to 1, from exact ones.
    pub fn bound_l1(&self) -> Option<f64> {
        self.attained.accuracy.bound_l1()
    }
}

/// One of the rankings beside a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComputedName {
    /// Of what.
    pub level: Level,
    /// By what.
    pub measure: String,
}

impl ComputedName {
    /// That of what is computed.
    pub fn of(computing: &Computing) -> ComputedName {
        ComputedName {
            level: computing.level,
            measure: computing.measure.name.into(),
        }
    }

    /// Its file beside that of the snapshot at `path`.
    pub(super) fn beside(&self, path: &Path) -> PathBuf {
        let level = self.level.to_string().replace(':', "-");
        path.with_extension(format!("{level}.{}{RANKING}", self.measure))
    }

    /// The number of a snapshot, and which ranking beside it, by the name of a file.
    fn of_file(name: &str) -> Option<(u64, ComputedName)> {
        let mut parts = name.strip_suffix(RANKING)?.splitn(3, '.');
        let number = parts.next()?.parse().ok()?;
        let level = parts.next()?.replacen('-', ":", 1).parse().ok()?;
        let measure = parts.next().filter(|measure| !measure.is_empty())?.into();
        Some((number, ComputedName { level, measure }))
    }
}

/// The rankings in a store's folder, each with its file and the number of its snapshot, by number, level and measure.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn computed(disk: &dyn Disk, store: &Path) -> Result<Vec<(u64, ComputedName, PathBuf)>> {
    let folder = store.join(SNAPSHOTS);
    let names = disk.list(&folder).map_err(Error::opening(&folder))?;
    let found = names.iter().filter_map(|name| {
        let (number, of) = ComputedName::of_file(name)?;
        Some((number, of, folder.join(name)))
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    Ok(found)
}

fn other_version(path: &Path, found: &str) -> Error {
    Error::Unsupported(format!(
        "{}: a ranking of version {found}; this cashrank reads version {RANKING_VERSION}: use the cashrank that made \
         it, or `cashrank compute` to make it again",
        path.display()
    ))
}
