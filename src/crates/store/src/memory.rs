//! Memory that an ingest needs, by part, and memory that is available; also the budget of commands that hold data of
//! each page ([`check_room`]).
//!
//! [`Need`] is an upper bound for an ingest of a given number of pages, whatever the input and however many threads decode.
//! The memory that the machine or the container has for this process is read from Linux's `/proc` and control groups, of
//! both versions; on other systems it is unknown.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use crate::model::{LOOK_EVERY, bytes, check_room, human};

use crate::engine::{self, CHUNK_PAGES, Config, Engine, Index, Ledger, Storage, log_bytes};
use crate::{Error, Limits, Result};

const MIB: u64 = 1 << 20;

/// Size of redb's page cache in bytes. The history is written once and read in order, so a small one suffices.
pub const DATABASE: u64 = 64 * MIB;
/// Buffers of the pipeline in bytes: chunks and batches in transit, windows of decompressors, a checkpoint's.
pub const BUFFERS: u64 = 256 * MIB;
/// Maximum memory for making a snapshot, in bytes.
const PUBLISHING: u64 = 280 * MIB;
/// Memory for making a snapshot per page, up to [`PUBLISHING`], on top of [`PUBLISHING_LEAST`].
const PUBLISHING_A_PAGE: u64 = 64;
const PUBLISHING_LEAST: u64 = 24 * MIB;
/// Buffers of kept rows in bytes: blocks being filled, packed and written, or read.
const ROWS: u64 = 16 * MIB;
/// Number of pages per byte of bitmaps for kept rows: which were seen, and of up to three rows each which is the last.
const PAGES_A_BYTE_OF_ROWS: u64 = 2;
/// Number of pages whose blocks are in memory at a time while a ranking is made or read.
const BLOCKS: u64 = 3 * CHUNK_PAGES;
/// Memory for each of these pages while a ranking is made, in bytes.
const MAKING_BLOCKS: u64 = 176;
/// Memory for each of these pages while a ranking is read, in bytes.
const READING_BLOCKS: u64 = 96;
/// Memory for reading a page of a small store, in bytes: its columns, packed and unpacked, their result, and its name.
const READING: u64 = 240;
/// Memory per page for computing ranks, in bytes: its importance, and the first bits of it with its position.
pub const RANKING: u64 = 16;
/// Maximum memory for computing ranks, in bytes. Ranks of more pages are computed from files, in ranges of importance.
pub const RANKING_MOST: u64 = 192 * MIB;
/// Memory per page for settling importance, in bytes.
pub const SETTLING: u64 = crate::rank::settle::BYTES;
/// Maximum additional memory for caching rows between sweeps, in bytes: 32 million links.
pub const UNPACKED_ROWS: u64 = 128 * MIB;
/// Maximum additional memory for caching facts about pages between snapshots, in bytes: about ten million pages.
pub const KNOWN_PAGES: u64 = 128 * MIB;
const HUGE_PAGE: u64 = 2 * MIB;
/// Divisor for the part of a budget that the visit log may take; a smaller log is cut into runs more often.
const LOG_SHARE: u64 = 8;

/// Memory of an ingest in bytes, by part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Need {
    /// Cash and ages: 8.5 bytes per page.
    pub cash: u64,
    /// Index, with one segment growing.
    pub index: u64,
    /// Kept rows: appending them, and compaction.
    pub rows: u64,
    /// Visits that are not in the history yet, or are being packed for it.
    pub log: u64,
    pub database: u64,
    pub buffers: u64,
    pub publishing: u64,
    /// Settling importance: 18 bytes per page. Not in [`Need::total`]: if it does not fit, a window gives importance.
    pub settling: u64,
}

impl Need {
    fn new(config: &Config, pages: u64, index: u64, budget: Option<u64>) -> Need {
        let array = |bytes: u64| bytes.next_multiple_of(HUGE_PAGE.min(bytes.max(1)));
        Need {
            cash: array(pages * 8) + array(pages.div_ceil(2)),
            index,
            rows: ROWS + pages / PAGES_A_BYTE_OF_ROWS,
            log: log_rows(config, budget) as u64 * log_bytes(config.policy().is_timed()),
            database: DATABASE,
            buffers: BUFFERS,
            publishing: PUBLISHING.min(PUBLISHING_LEAST + pages * PUBLISHING_A_PAGE),
            settling: if config.is_settled() {
                pages * SETTLING
            } else {
                0
            },
        }
    }

    pub fn without_records(self) -> Need {
        Need {
            cash: 0,
            index: 0,
            log: 0,
            ..self
        }
    }

    /// Returns the need of an engine with `pages` pages; under a budget, for a log limited to it ([`log_rows`]).
    pub fn of<S: Storage>(engine: &Engine<S>, pages: u64, budget: Option<u64>) -> Need {
        let index = engine.index.bytes_at(pages);
        Need::new(engine.config(), pages, index, budget)
    }

    /// Returns the need of continuing with a store of `pages` pages.
    pub fn to_resume(config: &Config, pages: u64, budget: Option<u64>) -> Need {
        Need::new(config, pages, Index::bytes_with_room(pages), budget)
    }

    /// Returns [`Error::OverBudget`], with the smallest sufficient budget, if a store needs more than the budget.
    pub fn check_resume(config: &Config, pages: u64, budget: Option<u64>) -> Result<()> {
        let needed = |budget| Need::to_resume(config, pages, Some(budget)).total();
        match budget {
            Some(budget) if needed(budget) > budget => Err(Error::OverBudget {
                pages,
                need: enough(needed),
                budget,
            }),
            _ => Ok(()),
        }
    }

    pub fn total(&self) -> u64 {
        let pages = self.cash + self.index + self.rows;
        pages + self.log + self.database + self.buffers + self.publishing
    }
}

/// Returns the memory for the blocks of a ranking of `pages` pages that are in memory while it is written, in bytes.
pub fn making_blocks(pages: u64) -> u64 {
    pages.min(BLOCKS) * MAKING_BLOCKS
}

/// Returns the memory for reading a ranking of `pages` pages from start to end, in bytes.
pub fn to_read(pages: u64) -> u64 {
    (pages * READING).min(BLOCKS * READING_BLOCKS)
}

/// Memory overhead of a separately allocated name, in bytes: the allocator's, and spare capacity.
pub const ALLOCATION: u64 = 24;

/// Returns the number of pages to reserve address space for: the limit or, if refused, as many as fit the budget.
pub fn pages_with_room(config: &Config, limits: &Limits) -> u64 {
    let most = limits.pages;
    match limits.memory {
        Some(budget) if Ledger::new(0, 0, most).is_err() => largest(most, |pages| {
            Need::to_resume(config, pages, Some(budget)).total() <= budget
        }),
        _ => most,
    }
}

/// Returns the number of rows that the visit log may hold under a budget.
pub fn log_rows(config: &Config, budget: Option<u64>) -> usize {
    let bytes = budget.map_or(u64::MAX, |budget| budget / LOG_SHARE);
    engine::log_rows(bytes, config.policy().is_timed())
}

/// Returns the smallest budget that covers the need under it; a larger budget gives the log more.
pub fn enough(needed: impl Fn(u64) -> u64) -> u64 {
    let more = |&budget: &u64| Some(needed(budget)).filter(|&need| need > budget);
    std::iter::successors(Some(0), more).last().unwrap_or(0)
}

/// Returns the largest number up to `most` for which `fits` holds, which must hold up to some number only.
pub fn largest(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let mid = high - (high - low) / 2;
        if fits(mid) {
            low = mid;
        } else {
            high = mid - 1;
        }
    }
    low
}

/// Divisor for the part of the memory that is left for the kernel and other processes.
const RESERVED_SHARE: u64 = 16;

/// Folder of control groups of version 2, and that of the memory controller of version 1, with the name of the limit.
const GROUPS: [(&str, &str); 2] = [
    ("/sys/fs/cgroup", "memory.max"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
];

/// Returns the memory that this process may take: what is available, and its control groups' limits, less a sixteenth.
pub fn available() -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let proc = |name: &str| read(&Path::new("/proc").join(name)).unwrap_or_default();
    let files = limit_files(&proc("self/cgroup"));
    let limits = files.iter().filter_map(|file| limit(&read(file)?));
    let least = limits.chain(of_meminfo(&proc("meminfo"))).min()?;
    Some(least - least / RESERVED_SHARE)
}

/// Returns the available memory by `/proc/meminfo`, in bytes, or all memory before Linux 3.14.
fn of_meminfo(text: &str) -> Option<u64> {
    let field = |name| text.lines().find_map(|line| line.strip_prefix(name));
    let kib = field("MemAvailable:").or_else(|| field("MemTotal:"))?;
    let kib = kib.trim().strip_suffix(" kB")?;
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

/// Parses a control group's limit; `None` if it has none.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Returns the files with the limits of the control groups in `cgroup`, and of their ancestors; some do not exist.
fn limit_files(cgroup: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in cgroup.lines() {
        // Number, controllers, path: `0::/a` in version 2, `4:memory:/a` in version 1.
        let fields: Vec<&str> = line.splitn(3, ':').collect();
        let [number, controllers, path] = fields[..] else {
            continue;
        };
        let (folder, name) = match controllers {
            "" if number == "0" => GROUPS[0],
            _ if controllers.split(',').any(|one| one == "memory") => GROUPS[1],
            _ => continue,
        };
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        files.extend(groups.map(|group| Path::new(folder).join(group).join(name)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_that_fits_is_found() {
        for most in [0, 1, 2, 99, 1 << 34] {
            for bound in [0, 1, 50, 98, 99, 100, u64::MAX] {
                assert_eq!(largest(most, |n| n <= bound), most.min(bound));
            }
        }
    }

    #[test]
    fn a_refusal_names_the_least_budget_that_is_enough() {
        for pages in [0, 1_000, 10_000_000, 1_000_000_000] {
            let config = Config::default();
            let check = |budget| Need::check_resume(&config, pages, Some(budget));
            let Err(Error::OverBudget { need, .. }) = check(MIB) else {
                panic!("{pages} pages fit into a MiB");
            };
            assert!(check(need).is_ok(), "{pages}");
            for less in [need - 1, need / 2] {
                let refused = check(less);
                assert!(
                    matches!(refused, Err(Error::OverBudget { need: again, .. }) if again == need)
                );
            }
        }
    }

    /// The arithmetic of a billion pages: cells 8, ages half a byte, slots of 10 bytes at a load of 0.8.
    #[test]
    fn a_billion_pages_need_22_bytes_each() {
        let need = Need::to_resume(&Config::default(), 1_000_000_000, None);
        assert!(need.cash - 8_500_000_000 < 2 * HUGE_PAGE);
        assert!(need.index.abs_diff(12_500_000_000) < 1_000_000);
        assert_eq!(need.publishing, PUBLISHING);
        assert_eq!(need.rows - ROWS, 500_000_000);
        assert!(need.total() < 22_900_000_000);
        // At the end, without cash and index, there is room to settle.
        assert_eq!(need.settling, 18_000_000_000);
        assert!(need.without_records().total() + need.settling < 20_000_000_000);
    }

    #[test]
    fn a_small_budget_makes_the_log_small_and_a_large_one_does_not_grow_it() {
        let of = |budget| Need::to_resume(&Config::default(), 0, budget).log;
        assert!(of(Some(512 * MIB)) <= 64 * MIB);
        assert_eq!(of(Some(64 << 30)), of(None));
        assert!(of(Some(0)) > 0);
    }

    #[test]
    fn what_is_available_counts_before_what_there_is() {
        let text = "MemTotal:       24683656 kB\nMemFree:  1 kB\nMemAvailable:   1024 kB\n";
        assert_eq!(of_meminfo(text), Some(1 << 20));
        assert_eq!(of_meminfo("MemTotal: 2 kB\n"), Some(2048));
        for text in [
            "",
            "MemAvailable: x kB\n",
            "MemTotal: 5\n",
            "MemTotal: 99999999999999999999 kB",
        ] {
            assert_eq!(of_meminfo(text), None, "{text}");
        }
    }

    #[test]
    fn a_limit_is_a_number() {
        assert_eq!(limit("536870912\n"), Some(512 << 20));
        assert_eq!(limit("max\n"), None);
        assert_eq!(limit(""), None);
    }

    fn names(cgroup: &str) -> Vec<String> {
        let files = limit_files(cgroup);
        files
            .iter()
            .map(|file| file.display().to_string())
            .collect()
    }

    /// Version 2: every ancestor may have a limit.
    #[test]
    fn all_groups_above_count() {
        let found = names("0::/user.slice/a.service\n");
        assert_eq!(
            found,
            [
                "/sys/fs/cgroup/user.slice/a.service/memory.max",
                "/sys/fs/cgroup/user.slice/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
    }

    /// Version 1, and version 2 without a memory controller in addition: both are read.
    #[test]
    fn version_1_has_a_line_for_each_controller() {
        let found = names("4:memory,hugetlb:/a\n1:cpu:/b\n0::/\nno line\n");
        assert_eq!(
            found,
            [
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert!(names("").is_empty() && names("1:cpu:/\n").is_empty());
    }
}
