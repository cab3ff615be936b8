//! Writing of a snapshot, and its publication.

use std::array;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::bounded;
use xxhash_rust::xxh3::xxh3_64;

use super::blocks::{BlockWriter, PackedColumnRef};
use super::known::{self, COLUMNS as FETCHES, FactsWithCash, HeldKnown, Keeping};
use super::prepared::{Prepared, begin};
use super::ranks::{RankSample, descending_key};
use super::scored::{Column as PackedColumn, PackedScores, each_block, pack, pack_ranks, see};
use super::settling::{SettleSettings, SettlingOutcome, SnapshotOptions, Watcher};
use super::warm::{self, WarmWarning};
use super::{COLUMNS, Info, MAGIC, SnapshotColumn, column};
use crate::engine::{
    CHUNK_PAGES, Estimation, Estimator, FetchTimes, HistoryFacts, HistoryView, PageScores, Scores,
    Window,
};
use crate::store::{Disk, SNAPSHOTS, View};
use crate::threads::{join, result_of, spawn_in};
use crate::{Error, Result};

/// Path of a published snapshot, and its info; `None` if nothing was published.
pub type Published = Option<(PathBuf, Info)>;

/// Snapshot that was published.
#[derive(Debug)]
pub struct PublishedSnapshot {
    pub path: PathBuf,
    pub info: Info,
    /// Problems with reading the warm start and with writing the next one.
    pub warnings: Vec<WarmWarning>,
    /// True if the next warm start was written.
    pub wrote_warm: bool,
}

/// Computes the estimates of a committed state and publishes them as the store's current snapshot: written to a
/// temporary file, synced, renamed; `latest.json` is replaced last. Removes older ones except for those that
/// [`SnapshotOptions::keep`] keeps and pinned ones. Ranks that do not fit in `rank_bytes` go through temporary files of
/// about 6 bytes per page. Returns `None` if settling was stopped from outside; nothing is published then.
///
/// # Errors
/// Fails if the view does not hold the store's lock, as two publishers would overwrite each other's files and order, or
/// if the state is older than the current snapshot.
pub fn publish(disk: &dyn Disk, view: &View, making: &SnapshotOptions) -> Result<Published> {
    let made = publish_keeping(disk, view, making)?;
    Ok(made.map(|made| (made.path, made.info)))
}

/// Publishes like [`publish`], and returns the result of the warm start as well.
pub fn publish_keeping(
    disk: &dyn Disk,
    view: &View,
    making: &SnapshotOptions,
) -> Result<Option<PublishedSnapshot>> {
    view.check_in_place(disk)?;
    check_lock(view)?;
    make(disk, view, making).map_err(|error| view.check_in_place(disk).err().unwrap_or(error))
}

/// Returns an error without the store's lock: two publishers would overwrite each other's files and order.
pub(super) fn check_lock(view: &View) -> Result<()> {
    if view.is_writers() {
        return Ok(());
    }
    Err(Error::internal(
        "a ranking is published without the store's lock",
    ))
}

/// Publishes a ranking of a store at rest, as [`publish`] does, and writes the next warm start.
pub fn publish_at_rest(
    disk: &dyn Disk,
    view: &View,
    mut making: SnapshotOptions,
) -> Result<Option<PublishedSnapshot>> {
    if let Some(settle) = &mut making.settle {
        settle.writes_warm = true;
    }
    publish_keeping(disk, view, &making)
}

fn make(
    disk: &dyn Disk,
    view: &View,
    making: &SnapshotOptions,
) -> Result<Option<PublishedSnapshot>> {
    let Some(written) = write(disk, view, making)? else {
        return Ok(None);
    };
    let UnpublishedSnapshot {
        prepared,
        outcome,
        mut warnings,
    } = written;
    let (path, info) = prepared.publish()?;
    let mut wrote_warm = false;
    // The ranking comes first if the disk has little room.
    if making
        .settle
        .as_ref()
        .is_some_and(|settle| settle.writes_warm)
        && let SettlingOutcome::Done(ranked) = &outcome
        && let Some(settled) = ranked.settled()
    {
        let (wrote, warning) = warm::write(disk, view, settled)?;
        wrote_warm = wrote;
        warnings.extend(warning);
    }
    Ok(Some(PublishedSnapshot {
        path,
        info,
        warnings,
        wrote_warm,
    }))
}

/// Snapshot before its publication, with its outcome.
struct UnpublishedSnapshot<'v> {
    prepared: Prepared<'v>,
    outcome: SettlingOutcome,
    warnings: Vec<WarmWarning>,
}

/// Results of computing scores while the other columns are written.
struct ScoresInProgress {
    outcome: SettlingOutcome,
    /// Packed scores, if there is memory for them.
    scored: Option<PackedScores>,
}

/// Settles, and packs the scores if there is memory; then `seen` is given for the ranks.
fn compute(
    disk: &dyn Disk,
    view: &View,
    settle: &SettleSettings,
    failed: &AtomicBool,
    seen: Option<RankSample>,
    warnings: &mut Vec<WarmWarning>,
) -> Result<ScoresInProgress> {
    let config = &view.settings().config;
    let mut computed = ScoresInProgress {
        outcome: settle.run(disk, view, failed, warnings)?,
        scored: None,
    };
    if let (SettlingOutcome::Done(ranked), Some(seen)) = (&computed.outcome, seen) {
        let (scores, window) = (ranked.scores(), Window::settled(config, ranked.scores()));
        if !settle.is_not_below(config, &window) {
            let pages = view.totals().pages;
            computed.scored = PackedScores::of(scores, window.estimator, pages, seen)?;
        }
    }
    Ok(computed)
}

/// Writes a snapshot to a temporary file. The facts about pages are written while importance is settled. Returns `None`
/// if it must not be published.
fn write<'v>(
    disk: &'v dyn Disk,
    view: &'v View,
    making: &SnapshotOptions,
) -> Result<Option<UnpublishedSnapshot<'v>>> {
    let file = begin(disk, view)?;
    let config = &view.settings().config;
    let settle = making.settle.as_ref();
    let pages = view.totals().pages;
    let create = || {
        let seen = RankSample::new(pages, making.rank_bytes);
        SnapshotWriter::create(disk, &file.path, Some(seen))
    };
    let mut writer = create()?;
    let mut warnings = Vec::new();
    let mut computed = ScoresInProgress {
        outcome: SettlingOutcome::NotDone,
        scored: None,
    };
    let mut measures = 0;
    if let Some(settle) = settle
        && settle.is_possible(view)
    {
        let failed = AtomicBool::new(false);
        let seen = writer.seen.take_if(|seen| seen.has_room(pages));
        let write = || {
            let known = (&*settle.handover.known, settle.known_room(view));
            let written = writer.facts(view, known.0, known.1, &settle.watcher);
            failed.store(written.is_err(), Ordering::Relaxed);
            written
        };
        let (written, done) = join(true, write, || {
            compute(disk, view, settle, &failed, seen, &mut warnings)
        });
        let Some(read) = written? else {
            return Ok(None);
        };
        (computed, measures) = (done?, read);
    }
    let ScoresInProgress { outcome, scored } = computed;
    let (window, expired) = match &outcome {
        SettlingOutcome::Stopped => return Ok(None),
        SettlingOutcome::NotDone if settle.is_some_and(|settle| settle.or_nothing) => {
            return Ok(None);
        }
        SettlingOutcome::NotDone => {
            writer = create()?;
            let estimation = Estimation::begin(view, config)?;
            measures = writer.estimates(&estimation)?;
            (estimation.window().clone(), None)
        }
        SettlingOutcome::Done(ranked) => {
            let scores = ranked.scores();
            (Window::settled(config, scores), ranked.expired)
        }
    };
    if settle.is_some_and(|settle| settle.is_not_below(config, &window)) {
        return Ok(None);
    }
    match (scored, &outcome) {
        (Some(scored), _) => writer.scored(scored)?,
        (None, SettlingOutcome::Done(ranked)) => {
            writer.scores(ranked.scores(), window.estimator)?
        }
        (None, _) => {}
    }
    writer.ranks(disk, &file.path.with_extension("ranks"))?;
    let info = Info::new(
        view.state(),
        view.totals(),
        measures,
        &window,
        expired,
        view.settings(),
    )?;
    Ok(Some(UnpublishedSnapshot {
        prepared: Prepared {
            disk,
            view,
            file,
            info: writer.finish(info)?,
            keep: making.keep,
        },
        outcome,
        warnings,
    }))
}

/// Publishes while an ingest continues: copies the cash first, then drops `apart`.
pub fn publish_apart<T>(
    disk: &dyn Disk,
    view: &mut View,
    making: &SnapshotOptions,
    apart: T,
) -> Result<Option<PublishedSnapshot>> {
    let name = format!("{:012}.cash.tmp", view.counters().records);
    let path = view.dir().join(SNAPSHOTS).join(name);
    view.set_cash_aside(disk, &path)?;
    drop(apart);
    let published = publish_keeping(disk, view, making)?;
    disk.remove(&path).map_err(Error::io(&path, "remove"))?;
    Ok(published)
}

/// Callback that takes a block, and may leave another.
type Give<'a, B> = dyn FnMut(&mut B) -> Result<()> + 'a;

/// Snapshot file that is being written.
pub(super) struct SnapshotWriter {
    file: BlockWriter,
    directory: Vec<[PackedColumnRef; COLUMNS]>,
    pages: u64,
    /// Number of blocks that have their scores.
    scored: usize,
    /// Values to be ranked; `None` once ranks are written, or if they are given.
    seen: Option<RankSample>,
    /// Times when pages were last reached.
    times: FetchTimes,
}

impl SnapshotWriter {
    /// Creates the file. `seen` collects the values to be ranked; `None` if ranks are given.
    pub fn create(
        disk: &dyn Disk,
        path: &Path,
        seen: Option<RankSample>,
    ) -> Result<SnapshotWriter> {
        Ok(SnapshotWriter {
            file: BlockWriter::create(disk, path, *MAGIC)?,
            directory: Vec::new(),
            pages: 0,
            scored: 0,
            seen,
            times: FetchTimes::default(),
        })
    }

    /// Writes the columns of facts about pages, continuing from the cache of the previous snapshot, and fills the cache
    /// for the next one up to `room` bytes. Returns the number of measures, or `None` if it was stopped.
    pub fn facts(
        &mut self,
        view: &View,
        known: &HeldKnown,
        room: u64,
        watcher: &Watcher,
    ) -> Result<Option<u64>> {
        let mut held = known.lock();
        let (before, runs) = held.take(view);
        let rows = view.rows_behind(runs)?;
        let mut keeping = Keeping::new(room);
        let mut is_stopped = false;
        let read = |give: &mut Give<'_, FactsWithCash>| {
            known::read(view, rows, before, |known| {
                is_stopped = watcher.is_stopped();
                if is_stopped {
                    return Err(Error::internal("it was stopped"));
                }
                give(known)
            })
        };
        let measures = self.blocks(read, |writer, known| {
            let FactsWithCash { block, cash } = known;
            writer.times.add_all(block.times());
            let fetches = block.packed();
            writer.facts_of(fetches, column::pack(cash), cash.len())?;
            keeping.add(mem::take(block));
            Ok(())
        });
        if is_stopped {
            return Ok(None);
        }
        let measures = measures?;
        if let Some(blocks) = keeping.all() {
            held.give(view, blocks);
        }
        Ok(Some(measures))
    }

    /// Writes the columns of importance and of the distributed estimate.
    fn scores(&mut self, scores: &dyn Scores, estimator: Estimator) -> Result<()> {
        let pages = self.pages;
        let read =
            |give: &mut Give<'_, Vec<PageScores>>| each_block(scores, estimator, pages, give);
        self.blocks(read, |writer, pages| writer.scores_of(pages))
    }

    /// Writes the columns of scores, and the given ranks.
    pub fn ranked(
        &mut self,
        scores: &dyn Scores,
        estimator: Estimator,
        ranks: &[u64],
    ) -> Result<()> {
        let pages = self.pages;
        let read =
            |give: &mut Give<'_, Vec<PageScores>>| each_block(scores, estimator, pages, give);
        self.blocks(read, |writer, pages| writer.score(pack(pages)))?;
        self.rank(pack_ranks(ranks))
    }

    /// Writes the packed columns of scores and ranks.
    fn scored(&mut self, scored: PackedScores) -> Result<()> {
        for columns in scored.scores {
            self.score(columns)?;
        }
        self.rank(scored.ranks.into_iter())
    }

    /// Writes all columns except for the ranks. Returns the number of measures.
    fn estimates(&mut self, estimation: &Estimation<'_>) -> Result<u64> {
        let read = |give: &mut Give<'_, Vec<(HistoryFacts, PageScores)>>| {
            estimation.blocks(|_, pages| give(pages))
        };
        self.blocks(read, |writer, pages| {
            let reached = pages.iter().filter_map(|(facts, _)| facts.fetches.last);
            reached.for_each(|time| writer.times.add(time));
            writer.fetches_and_cash(pages.iter().map(|(facts, _)| facts))?;
            let scores: Vec<PageScores> = pages.iter().map(|(_, scores)| *scores).collect();
            writer.scores_of(&scores)
        })
    }

    /// Packs and writes one block while the next is read.
    fn blocks<B: Default + Send, R>(
        &mut self,
        read: impl FnOnce(&mut Give<'_, B>) -> Result<R>,
        mut write: impl FnMut(&mut SnapshotWriter, &mut B) -> Result<()> + Send,
    ) -> Result<R> {
        let (give, take) = bounded::<B>(0);
        let (give_back, spent) = bounded(1);
        std::thread::scope(|scope| {
            let writing = spawn_in(scope, "columns", move || {
                for mut pages in take {
                    write(self, &mut pages)?;
                    let _ = give_back.try_send(pages);
                }
                Ok(())
            })?;
            let done = read(&mut |pages| {
                let next = spent.try_recv().unwrap_or_default();
                // The receiver is gone: writing failed, and the error is reported below.
                give.send(mem::replace(pages, next))
                    .map_err(|_| Error::internal("the snapshot cannot be written"))
            });
            drop(give);
            result_of(writing)?;
            done
        })
    }

    /// Writes the next block's facts.
    fn fetches_and_cash<'a>(
        &mut self,
        pages: impl ExactSizeIterator<Item = &'a HistoryFacts>,
    ) -> Result<()> {
        let len = pages.len();
        let mut columns: [Vec<u64>; FETCHES.len()] = array::from_fn(|_| Vec::with_capacity(len));
        let mut cash = Vec::with_capacity(len);
        for facts in pages {
            for (column, value) in columns.iter_mut().zip(known::values(&facts.fetches)) {
                column.push(value);
            }
            cash.push(facts.cash);
        }
        let fetches = columns.iter().map(|values| column::pack(values));
        self.facts_of(fetches, column::pack(&cash), len)
    }

    /// Writes the packed columns of the next block's facts, of this many pages.
    fn facts_of(
        &mut self,
        fetches: impl Iterator<Item = io::Result<impl AsRef<[u8]>>>,
        cash: io::Result<Vec<u8>>,
        pages: usize,
    ) -> Result<()> {
        let mut entry = [PackedColumnRef::default(); COLUMNS];
        for (column, packed) in FETCHES.into_iter().zip(fetches) {
            entry[column as usize] = self.file.column(packed)?;
        }
        entry[SnapshotColumn::Cash as usize] = self.file.column(cash)?;
        self.directory.push(entry);
        self.pages += pages as u64;
        Ok(())
    }

    /// Writes the scores of the next block that has none.
    fn scores_of(&mut self, pages: &[PageScores]) -> Result<()> {
        let seen = self.seen.as_mut();
        let seen = seen.ok_or_else(|| Error::internal("ranks are written already"))?;
        see(pages, seen);
        self.score(pack(pages))
    }

    fn score(&mut self, (importance, distributed): (PackedColumn, PackedColumn)) -> Result<()> {
        let entry = &mut self.directory[self.scored];
        entry[SnapshotColumn::Importance as usize] = self.file.column(importance)?;
        entry[SnapshotColumn::Distributed as usize] = self.file.column(distributed)?;
        self.scored += 1;
        Ok(())
    }

    /// Writes the rank columns, one block after the other.
    fn rank(&mut self, packed: impl Iterator<Item = PackedColumn>) -> Result<()> {
        for (entry, ranks) in self.directory.iter_mut().zip(packed) {
            entry[SnapshotColumn::Rank as usize] = self.file.column(ranks)?;
        }
        Ok(())
    }

    /// Writes the rank columns once all importances are known, if they are not written. Reads back importances that are
    /// not in memory.
    fn ranks(&mut self, disk: &dyn Disk, temporary: &Path) -> Result<()> {
        let seen = match self.seen.take().map(RankSample::ranks) {
            None => return Ok(()),
            Some(Ok(ranks)) => return self.rank(pack_ranks(&ranks)),
            Some(Err(seen)) => seen,
        };
        let mut gaps = seen.divide(disk, temporary);
        for block in 0..self.directory.len() {
            gaps.add(&self.importances(block)?)?;
        }
        gaps.sort(0)?;
        for block in 0..self.directory.len() {
            let mut ranks = self.importances(block)?;
            gaps.ranks(&mut ranks)?;
            self.directory[block][SnapshotColumn::Rank as usize] =
                self.file.column(column::pack(&ranks))?;
        }
        Ok(())
    }

    /// Reads a block's importances as sort keys ([`descending_key`]).
    fn importances(&self, block: usize) -> Result<Vec<u64>> {
        let packed = self.directory[block][SnapshotColumn::Importance as usize];
        let first = block as u64 * CHUNK_PAGES;
        let count = CHUNK_PAGES.min(self.pages - first) as usize;
        let mut bytes = vec![0; packed.len as usize];
        let BlockWriter { path, file, .. } = &self.file;
        file.read_at(&mut bytes, packed.offset)
            .map_err(Error::reading(path))?;
        let whole = xxh3_64(&bytes) == packed.sum;
        let values = whole.then(|| column::unpack(&bytes, count)).flatten();
        let mut values =
            values.ok_or_else(|| Error::damaged(path, "it does not read as written"))?;
        for value in &mut values {
            *value = descending_key(f64::from_bits(*value));
        }
        Ok(values)
    }

    /// Completes the file, and makes it durable. Sets the info's time to the latest accepted one.
    pub fn finish(self, mut info: Info) -> Result<Info> {
        let latest = self.times.latest_with(info.time);
        info.time = latest.map(|(time, _)| time);
        let directory = self.directory.into_iter().flatten();
        self.file.finish(directory, self.pages, &info)?;
        Ok(info)
    }
}
