//! Answers that users read from a store: `top`, `rank` and `export`, through the library.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use cashrank::{Error, Page};
use cashrank_graph::engine::PageId;
use cashrank_store::snapshot::{LevelRanking, Selection, Snapshot, SnapshotPage};
use cashrank_store::store::RealDisk;

use crate::binary::snapshot;
use crate::disk::SimDisk;
use crate::scenario::STORE;
use crate::tally::as_text;

/// Answers of each reader separately: the failure of one does not hide another's wrong answer.
#[derive(Clone, Debug)]
pub struct Answers {
    pub top: Result<Vec<Page<'static>>, String>,
    pub found: Result<Vec<Option<PageId>>, String>,
    pub export: Result<Vec<(String, SnapshotPage)>, String>,
}

/// Runs all readers; `names` are looked up. An error is a panic.
pub fn read(disk: &SimDisk, names: &[String]) -> Result<Answers, String> {
    let open = || Snapshot::latest(disk, Path::new(STORE));
    let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let answers = || Answers {
        top: open().and_then(top).map_err(as_text),
        found: open()
            .and_then(|snapshot| snapshot.find(&names))
            .map_err(as_text),
        export: open()
            .and_then(|snapshot| export(&snapshot))
            .map_err(as_text),
    };
    catch_unwind(AssertUnwindSafe(answers)).map_err(|_| "a reader panicked".into())
}

pub fn top(snapshot: Snapshot) -> Result<Vec<Page<'static>>, Error> {
    LevelRanking::of_pages(snapshot).top(10, &Selection::default())
}

pub fn export(snapshot: &Snapshot) -> Result<Vec<(String, SnapshotPage)>, Error> {
    snapshot
        .names()
        .zip(snapshot.pages())
        .map(|(name, page)| Ok((name?, page?)))
        .collect()
}

/// Checks that two rankings of the same records agree: importances within both bounds, and everything else to the bit.
pub fn agree(found: &Snapshot, expected: &Snapshot) -> Result<(), String> {
    let (one, other) = (found.info(), expected.info());
    if one.window.settled.is_none() || one.counters != other.counters || one.pages != other.pages {
        return Err("it is of something else".into());
    }
    let bounds = one.bound_l1().zip(other.bound_l1());
    let (one, other) = bounds.ok_or("it has no bound")?;
    let mut off = 0.0;
    for (page, expected) in found.pages().zip(expected.pages()) {
        let (page, expected) = (page.map_err(as_text)?, expected.map_err(as_text)?);
        off += (page.importance - expected.importance).abs();
        let as_expected = SnapshotPage {
            importance: expected.importance,
            distributed: expected.distributed,
            rank: expected.rank,
            ..page
        };
        if as_expected != expected {
            return Err(format!("page {} is {page:?}", page.page.0));
        }
    }
    if off <= one + other {
        Ok(())
    } else {
        Err(format!(
            "they are {off} apart, and bounds are {one} and {other}"
        ))
    }
}

/// Compares the current ranking of a store on the real disk with these bytes, like [`agree`]; equal bytes agree.
pub fn agrees_with(store: &Path, expected: &[u8]) -> Result<(), String> {
    if snapshot(store)?.is_some_and(|found| found == expected) {
        return Ok(());
    }
    // A snapshot must be read inside a store.
    let beside = store.join("snapshots/expected");
    std::fs::write(&beside, expected).map_err(as_text)?;
    let found = Snapshot::latest(&RealDisk, store).map_err(as_text)?;
    let expected = Snapshot::open(&RealDisk, &beside).map_err(as_text)?;
    std::fs::remove_file(&beside).map_err(as_text)?;
    agree(&found, &expected)
}

impl Answers {
    /// Compares with the answers of a sound store. Returns true if an error reports the damage, as `is_told` judges.
    pub fn check(&self, sound: &Answers, is_told: impl Fn(&str) -> bool) -> Result<bool, String> {
        let told = [
            same("top", &self.top, &sound.top, &is_told)?,
            same("rank", &self.found, &sound.found, &is_told)?,
            same("export", &self.export, &sound.export, &is_told)?,
        ];
        Ok(told.contains(&true))
    }
}

fn same<T: PartialEq>(
    reader: &str,
    found: &Result<T, String>,
    sound: &Result<T, String>,
    is_told: impl Fn(&str) -> bool,
) -> Result<bool, String> {
    match (found, sound) {
        (found, sound) if found == sound => Ok(false),
        (Err(error), _) if is_told(error) => Ok(true),
        (Err(error), _) => Err(format!("{reader} does not name the file: {error}")),
        (Ok(_), _) => Err(format!("{reader} says something else")),
    }
}
