//! Rankings of pages or sites by a measure, computed beside a snapshot from the same links. See `formats/ranking.md`.
//!
//! `000000000300.host.harmonic.ranking` ranks hosts by harmonic centrality beside `000000000300.snapshot`, and stays as
//! long as the snapshot. A ranking of pages holds scores and ranks, since their names are those of the snapshot; a
//! ranking of sites also holds their names and totals over their pages.

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use read::ComputedRanking;
pub use write::publish_computed;

use super::SNAPSHOTS;
use super::blocks::{FileKind, Magic};
use crate::disk::Disk;
use crate::rank::computing::{Computing, MeasureParameters};
use crate::rank::measures::Accuracy;
use crate::rules::list::SkippedLines;
use crate::sites::Level;
use crate::store::Settings;
use crate::{Error, Result};

/// Version of the format.
pub const RANKING_VERSION: u32 = 1;
/// First and last bytes of a file.
const MAGIC: Magic = *b"CRRANK01";
/// Extension of the files.
pub const RANKING: &str = ".ranking";

const KIND: FileKind = FileKind {
    name: "ranking",
    magics: &[MAGIC],
    other_version,
};

/// Columns in the order of the directory. Rankings of pages have the first [`PAGE_COLUMNS`].
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
enum RankingColumn {
    /// Score: f64.
    Score,
    /// Rank, 1 + the number of strictly greater scores: u64.
    Rank,
    /// Number of pages of the site: u64.
    Pages,
    /// Number of visits of all its pages: u64.
    Visits,
    /// Last fetch of any of its pages in seconds since 1970; i64::MIN: unknown.
    LastFetch,
    /// Names of sites: the length of each as a variable-length integer, and its bytes.
    Name,
}

const PAGE_COLUMNS: usize = 2;
const SITE_COLUMNS: usize = 6;

/// Header of a ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComputedInfo {
    pub version: u32,
    pub measure: String,
    /// Level that is ranked.
    pub level: Level,
    /// Number of ranked nodes.
    pub count: u64,
    /// Number of links between them.
    pub links: u64,
    /// Number of pages in the snapshot.
    pub pages: u64,
    /// Number of pages without a site.
    pub without_site: u64,
    /// Number of records read until the snapshot.
    pub records: u64,
    pub parameters: MeasureParameters,
    /// Accuracy and effort of the computation.
    #[serde(flatten)]
    pub attained: Attained,
    pub settings: Settings,
    /// Lines of the list of chosen pages that were skipped, if it was just computed.
    #[serde(skip)]
    pub skipped: SkippedLines,
}

/// Accuracy and effort of a computation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Attained {
    pub accuracy: Accuracy,
    /// True if the requested bound, residual or change was reached.
    pub reached: bool,
    /// Number of sweeps over all links.
    pub sweeps: u64,
}

impl ComputedInfo {
    /// Returns the certified bound on the L1 distance of the scores, which sum to 1, from exact ones.
    pub fn bound_l1(&self) -> Option<f64> {
        self.attained.accuracy.bound_l1()
    }
}

/// Name of a ranking beside a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComputedName {
    /// Level that is ranked.
    pub level: Level,
    pub measure: String,
}

impl ComputedName {
    /// Returns the name of the ranking that is computed.
    pub fn of(computing: &Computing) -> ComputedName {
        ComputedName {
            level: computing.level,
            measure: computing.measure.name.into(),
        }
    }

    /// Returns the path of the ranking beside the snapshot at `path`.
    pub(super) fn beside(&self, path: &Path) -> PathBuf {
        let level = self.level.to_string().replace(':', "-");
        path.with_extension(format!("{level}.{}{RANKING}", self.measure))
    }

    /// Parses the name of a file into the number of the snapshot and the name of the ranking.
    fn of_file(name: &str) -> Option<(u64, ComputedName)> {
        let mut parts = name.strip_suffix(RANKING)?.splitn(3, '.');
        let number = parts.next()?.parse().ok()?;
        let level = parts.next()?.replacen('-', ":", 1).parse().ok()?;
        let measure = parts.next().filter(|measure| !measure.is_empty())?.into();
        Some((number, ComputedName { level, measure }))
    }
}

/// Lists the rankings in a store's folder, each with its file and the number of its snapshot, ordered by number, level
/// and measure.
pub fn computed(disk: &dyn Disk, store: &Path) -> Result<Vec<(u64, ComputedName, PathBuf)>> {
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
