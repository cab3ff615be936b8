//! One side of a comparison: a ranking of a snapshot, or a file of scores.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use cashrank::{Error, Limits};
use cashrank_crawl::source::open_plain;
use cashrank_graph::metrics::{JOINED_BYTES, Scores, read_each_score};
use cashrank_graph::sites::Level;
use cashrank_store::memory::{LOOK_EVERY, check_room};
use cashrank_store::snapshot::{Info, LevelRanking, Snapshot, SnapshotEntry, snapshots};
use cashrank_store::store::RealDisk;

use crate::cli::common::{MemoryArg, records, time};
use crate::cli::json::object;
use crate::cli::levels::{LevelArgs, counted_of, sureness_of};

pub struct CompareSide {
    path: PathBuf,
    /// Ranking of the snapshot; `None` for a file of scores.
    pub ranking: Option<LevelRanking>,
}

impl CompareSide {
    /// Opens a side. A directory is a store and stands for its current snapshot. A file is a snapshot if its first
    /// bytes, which may be damaged, or its name say so. `which` chooses the snapshot's ranking.
    pub fn open(path: &Path, which: &LevelArgs, memory: &MemoryArg) -> anyhow::Result<CompareSide> {
        let snapshot = if path.is_dir() {
            Snapshot::latest(&RealDisk, path)?
        } else if !is_scores(path) {
            Snapshot::open(&RealDisk, path)?
        } else {
            anyhow::ensure!(
                which.is_usual(),
                "{}: a file of scores has one ranking: leave `measure` and `level` out, or name a store or a snapshot",
                path.display()
            );
            return Ok(CompareSide {
                path: path.to_owned(),
                ranking: None,
            });
        };
        Ok(CompareSide::of(snapshot, which, memory)?)
    }

    pub fn of(
        snapshot: Snapshot,
        which: &LevelArgs,
        memory: &MemoryArg,
    ) -> Result<CompareSide, Error> {
        let ranking = which.open(snapshot, memory)?;
        Ok(CompareSide {
            path: ranking.path().to_owned(),
            ranking: Some(ranking),
        })
    }

    /// Opens the ranking before this one in the store; by a measure, the last one for which the measure was computed.
    pub fn before(&self, which: &LevelArgs, memory: &MemoryArg) -> anyhow::Result<CompareSide> {
        let Some(snapshot) = self.ranking.as_ref().map(LevelRanking::snapshot) else {
            anyhow::bail!(
                "{self}: of a file of scores no ranking before it is known: name another one"
            );
        };
        let number = snapshot.info().counters.records;
        let (level, measure) = (which.level, which.measure());
        let has_it = |of: &SnapshotEntry| {
            let mut computed = of.computed.iter();
            measure.is_none_or(|by| computed.any(|of| of.level == level && of.measure == by))
        };
        let kept = snapshots(&RealDisk, snapshot.store())?;
        let before = kept
            .iter()
            .rev()
            .find(|of| of.number < number && has_it(of));
        let before = before.ok_or_else(|| {
            let by = measure.map_or(String::new(), |by| format!(" by {by}"));
            Error::Missing(format!(
                "{}: no ranking{by} before snapshot {number} is kept: name another one to compare with",
                snapshot.store().display()
            ))
        })?;
        let before = Snapshot::open(&RealDisk, &before.path)?;
        Ok(CompareSide::of(before, which, memory)?)
    }

    /// Returns the snapshot if this is its own ranking of pages.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        let own = self
            .ranking
            .as_ref()
            .filter(|ranking| ranking.is_of_pages())?;
        Some(own.snapshot())
    }

    pub fn info(&self) -> Option<&Info> {
        self.ranking
            .as_ref()
            .map(|ranking| ranking.snapshot().info())
    }

    pub fn bound_l1(&self) -> Option<f64> {
        self.ranking.as_ref().and_then(LevelRanking::bound_l1)
    }

    /// Describes the side as JSON; of a file of scores only the path is known.
    pub fn json(&self) -> impl serde::Serialize {
        let info = self.info();
        let computed = self.ranking.as_ref().and_then(LevelRanking::computed);
        object! {
            "path": self.to_string(),
            "level": self.level(),
            "measure": computed.map(|computed| computed.measure.clone()),
            "records": info.map(|info| info.counters.records),
            "last_fetch": info.and_then(|info| info.time).map(|at| time(Some(at))),
            "turnovers": info.map(|info| info.turnovers),
            "window": info.map(|info| info.window.policy.to_string()),
            "window_turnovers": info.and_then(|info| info.window.turnovers),
            "estimator": info.map(|info| info.window.estimator),
            "bound_l1": self.bound_l1(),
        }
    }

    pub fn write(&self, out: &mut dyn Write, name: &str, pages: u64) -> io::Result<()> {
        write!(out, "{name}\t{self}: {}", counted_of(self.level(), pages))?;
        if let Some(info) = self.info() {
            write!(out, ", {}", records(info.counters.records))?;
            if let Some(at) = info.time {
                write!(out, ", until {}", time(Some(at)))?;
            }
            write!(out, ", window {}", info.window.policy)?;
            if let Some(turnovers) = info.window.turnovers {
                write!(out, " ({turnovers:.3} turnovers)")?;
            }
        }
        match &self.ranking {
            Some(ranking) => writeln!(out, "; {}", sureness_of(ranking)),
            None => writeln!(out, "; accuracy: unknown for a file of scores"),
        }
    }

    fn level(&self) -> Level {
        self.ranking
            .as_ref()
            .map_or(Level::Page, LevelRanking::level)
    }

    /// Refuses a side that cannot be read twice, such as a pipe.
    pub fn check_lasts(&self) -> anyhow::Result<()> {
        // If the file cannot be inspected, reading it reports the error.
        let is_file = || self.path.metadata().map_or(true, |found| found.is_file());
        let lasts = self.ranking.is_some() || is_file();
        anyhow::ensure!(
            lasts,
            "{self}: not a regular file; --moved reads each side twice: save it to a file first"
        );
        Ok(())
    }

    /// Returns the number of ranked nodes; 0 if it is unknown before reading.
    fn pages(&self) -> u64 {
        self.ranking.as_ref().map_or(0, LevelRanking::len)
    }

    fn scores(&self, check: impl Fn(u64) -> Result<(), Error>) -> Result<Scores, Error> {
        let mut scores = Scores::new();
        self.each(|name, score| {
            let pages = scores.len() as u64;
            if pages.is_multiple_of(LOOK_EVERY) {
                check(pages)?;
            }
            scores.push(name, score)
        })?;
        Ok(scores)
    }

    pub fn each(&self, mut each: impl FnMut(&[u8], f64) -> Result<(), Error>) -> Result<(), Error> {
        if let Some(ranking) = &self.ranking {
            return ranking.rows().try_for_each(|row| {
                let row = row?;
                each(row.url.as_bytes(), row.importance)
            });
        }
        let (path, limits) = (&*self.path, Limits::default());
        let label = path.display().to_string();
        let mut lines = BufReader::new(open_plain(path, &limits)?);
        let first = lines.fill_buf().map_err(Error::io(path, "read"))?;
        if let Some(kind) = other_kind(first) {
            return Err(Error::Unsupported(format!(
                "{label}: {kind}; compare takes stores, snapshots and name<TAB>score lines \
                 (`cashrank export --to tsv` writes them)"
            )));
        }
        read_each_score(lines, &label, &limits, each)
    }
}

/// Reads the scores of both sides; refuses them if memory has no room for them and for the join.
pub fn scores(
    left: &CompareSide,
    right: &CompareSide,
    memory: &MemoryArg,
) -> Result<(Scores, Scores), Error> {
    let budget = memory.budget();
    let check = |pages: u64| {
        let work = || format!("a comparison of {pages} pages or more, both sides together,");
        let instead = "compare parts of them, as `name<TAB>score` files";
        check_room(budget, pages * JOINED_BYTES, work, instead)
    };
    check(left.pages() + right.pages())?;
    let left = left.scores(|pages| check(pages + right.pages()))?;
    let held = left.len() as u64;
    let right = right.scores(|pages| check(held + pages))?;
    Ok((left, right))
}

impl fmt::Display for CompareSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

/// Returns whether a path is neither a store nor a snapshot.
pub fn is_scores(path: &Path) -> bool {
    let is_named_so = || path.extension().is_some_and(|kind| kind == "snapshot") && path.is_file();
    !path.is_dir() && !Snapshot::is_snapshot(&RealDisk, path) && !is_named_so()
}

fn other_kind(first: &[u8]) -> Option<&'static str> {
    let line = first.split(|&byte| byte == b'\n').next();
    if first.starts_with(b"PAR1") {
        Some("a Parquet file")
    } else if line.is_some_and(|line| line.starts_with(b"{") && !line.contains(&b'\t')) {
        Some("JSON lines")
    } else {
        None
    }
}
