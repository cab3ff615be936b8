//! Writing of a snapshot's file: its columns, one after the other, of all blocks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, mem};

use crossbeam_channel::{Sender, bounded};

use super::blocks::BlockWriter;
use super::known::{self, COLUMNS as FETCHES, DefaultColumns, FactsCache, FactsWithCash};
use super::publish::{ClusterRanking, Prepared};
use super::ranks::RankCollector;
use super::settling::{Expired, SettleSettings, Watcher, write_warm};
use super::{COLUMNS, Info, KeepSnapshots, SnapshotColumn, VERSION, check_not_newer, column};
use crate::engine::{
    CHUNK_PAGES, Estimation, Estimator, FetchTimes, HistoryFacts, HistoryView, PageScores, Scores,
    Window,
};
use crate::memory::RANKING_MOST;
use crate::rank::settle::SettlingResult;
use crate::store::{Disk, SNAPSHOTS, TempFile, View};
use crate::threads::{join, lock, result_of, spawn_in};
use crate::{Error, Result};

/// Writes a snapshot to a temporary file. The facts about pages are written while importance is settled. If `next` waits
/// for the warm start, that is written before the scores. Returns the snapshot with the settled state, if importance is
/// not an estimate, and whether the warm start was written; `None` if the snapshot must not be published.
pub(super) fn write<'v>(
    disk: &'v dyn Disk,
    view: &'v View,
    keep: KeepSnapshots,
    settle: Option<&SettleSettings>,
    warnings: &mut Vec<String>,
    next: Option<&Sender<bool>>,
) -> Result<Option<(Prepared<'v>, Option<SettlingResult>, bool)>> {
    let config = &view.settings().config;
    let pages = view.totals().pages;
    let mut writer = SnapshotWriter::begin(disk, view)?;
    let mut ranks = RankCollector::new(pages, RANKING_MOST, view.dir())?;
    let mut computed = None;
    if let Some(settle) = settle
        && settle.is_possible(view)
    {
        let failed = AtomicBool::new(false);
        let facts = || {
            let room = settle.known_room(view);
            let written = writer.facts(&settle.known, (room, &settle.watcher));
            failed.store(written.is_err(), Ordering::Relaxed);
            written
        };
        let (written, scores) = join(true, facts, || settle.run(disk, view, &failed, warnings));
        if !written? {
            return Ok(None);
        }
        computed = scores?;
        if settle.watcher.is_stopped() {
            return Ok(None);
        }
    }
    if computed.is_none() && settle.is_some_and(|settle| settle.or_nothing) {
        return Ok(None);
    }
    let (window, expired) = match &computed {
        Some((settled, expired)) => (Window::settled(config, settled), *expired),
        None => {
            drop(writer);
            writer = SnapshotWriter::begin(disk, view)?;
            let estimation = Estimation::begin(view, config)?;
            writer.estimates(&estimation, &mut ranks)?;
            (estimation.window().clone(), None)
        }
    };
    // The bound as in [`Info::bound_l1`].
    let bound = window.bound_l1().unwrap_or(f64::INFINITY) + config.damping_bound();
    if (settle.and_then(|settle| settle.below)).is_some_and(|below| bound >= below) {
        return Ok(None);
    }
    let mut wrote_warm = false;
    if let Some((settled, _)) = &computed {
        if let Some(next) = next {
            wrote_warm = write_warm(disk, view, settled, warnings)?;
            let _ = next.send(wrote_warm);
        }
        writer.scores(settled, window.estimator, Some(&mut ranks))?;
    }
    writer.ranks(ranks.ranks()?)?;
    let prepared = writer.finish(window, expired, None, keep)?;
    let settled = computed.map(|(settled, _)| settled);
    Ok(Some((prepared, settled, wrote_warm)))
}

/// Callback that takes a block, and may leave another.
type Give<'a, B> = dyn FnMut(&mut B) -> Result<()> + 'a;

pub(super) struct SnapshotWriter<'v> {
    disk: &'v dyn Disk,
    view: &'v View,
    temporary: TempFile<'v>,
    file: BlockWriter<Info>,
    /// Number of pages that have their facts.
    pages: u64,
    /// Number of blocks that have their scores.
    scored: usize,
    measures: u64,
    times: FetchTimes,
}

impl<'v> SnapshotWriter<'v> {
    /// Begins the file of a commit's snapshot; an error if a newer one was published.
    pub fn begin(disk: &'v dyn Disk, view: &'v View) -> Result<SnapshotWriter<'v>> {
        check_not_newer(disk, view.dir(), view.counters())?;
        let name = format!("{:012}.snapshot", view.counters().records);
        let temporary = TempFile::of(disk, view.dir().join(SNAPSHOTS).join(name));
        Ok(SnapshotWriter {
            disk,
            view,
            file: BlockWriter::create(disk, &temporary.path, COLUMNS)?,
            temporary,
            pages: 0,
            scored: 0,
            measures: 0,
            times: FetchTimes::default(),
        })
    }

    /// Writes the columns of facts about pages, continuing from the cache of the previous snapshot, and fills the cache
    /// for the next one up to `room` bytes. Returns false if it was stopped.
    pub fn facts(
        &mut self,
        known: &Mutex<FactsCache>,
        (mut room, watcher): (u64, &Watcher),
    ) -> Result<bool> {
        let view = self.view;
        // The previous snapshot holds the cache until it has written these columns.
        let mut held = lock(known);
        let (before, runs) = held.take(view);
        let rows = view.rows_behind(runs)?;
        let (mut cache, mut is_stopped) = (FactsCache::default(), false);
        let read = |give: &mut Give<'_, FactsWithCash>| {
            known::read(view, rows, before, |known| {
                is_stopped = watcher.is_stopped();
                if is_stopped {
                    return Err(Error::internal("it was stopped"));
                }
                give(known)
            })
        };
        let mut defaults = DefaultColumns::new();
        let measures = self.blocks(read, |writer, (block, cash)| {
            writer.times.add_all(block.times());
            writer.facts_of(block.packed(&mut defaults), column::pack(cash), cash.len())?;
            cache.add(mem::take(block), &mut room);
            Ok(())
        });
        if is_stopped {
            return Ok(false);
        }
        self.measures = measures?;
        cache.finish(view);
        *held = cache;
        Ok(true)
    }

    /// Writes the columns of importance and of the distributed estimate; `ranks` takes importances to be ranked.
    pub fn scores(
        &mut self,
        scores: &dyn Scores,
        estimator: Estimator,
        mut ranks: Option<&mut RankCollector>,
    ) -> Result<()> {
        let pages = self.pages;
        let read = |give: &mut Give<'_, Vec<PageScores>>| {
            let mut block = Vec::new();
            for first in (0..pages).step_by(CHUNK_PAGES as usize) {
                let len = CHUNK_PAGES.min(pages - first) as usize;
                scores.read(first, len, &mut block)?;
                for scores in &mut block {
                    *scores = estimator.read(*scores);
                }
                give(&mut block)?;
            }
            Ok(())
        };
        self.blocks(read, |writer, pages| {
            if let Some(ranks) = &mut ranks {
                ranks.add(pages.iter().map(|page| page.0))?;
            }
            writer.score(pages)
        })
    }

    /// Writes all columns except for the ranks.
    fn estimates(&mut self, estimation: &Estimation<'_>, ranks: &mut RankCollector) -> Result<()> {
        let read = |give: &mut Give<'_, Vec<(HistoryFacts, PageScores)>>| {
            estimation.blocks(|_, pages| give(pages))
        };
        self.measures = self.blocks(read, |writer, pages| {
            let facts = pages.iter().map(|(facts, _)| facts);
            facts
                .clone()
                .filter_map(|facts| facts.fetches.last)
                .for_each(|time| writer.times.add(time));
            let mut columns: [Vec<u64>; FETCHES.len()] = Default::default();
            for facts in facts.clone() {
                for (column, value) in columns.iter_mut().zip(known::values(&facts.fetches)) {
                    column.push(value);
                }
            }
            let cash: Vec<u64> = facts.map(|facts| facts.cash).collect();
            let fetches = columns.iter().map(|values| column::pack(values));
            writer.facts_of(fetches, column::pack(&cash), cash.len())?;
            let scores: Vec<PageScores> = pages.iter().map(|(_, scores)| *scores).collect();
            ranks.add(scores.iter().map(|page| page.0))?;
            writer.score(&scores)
        })?;
        Ok(())
    }

    /// Packs and writes one block while the next is read.
    fn blocks<B: Default + Send, R>(
        &mut self,
        read: impl FnOnce(&mut Give<'_, B>) -> Result<R>,
        mut write: impl FnMut(&mut SnapshotWriter<'v>, &mut B) -> Result<()> + Send,
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

    /// Writes the packed columns of the next block's facts, of this many pages.
    fn facts_of(
        &mut self,
        fetches: impl Iterator<Item = io::Result<impl AsRef<[u8]>>>,
        cash: io::Result<Vec<u8>>,
        pages: usize,
    ) -> Result<()> {
        let block = (self.pages / CHUNK_PAGES) as usize;
        for (column, packed) in FETCHES.into_iter().zip(fetches) {
            self.file.packed(block, column, packed)?;
        }
        self.file.packed(block, SnapshotColumn::Cash, cash)?;
        self.pages += pages as u64;
        Ok(())
    }

    /// Writes the scores of the next block that has none.
    fn score(&mut self, pages: &[PageScores]) -> Result<()> {
        let importance: Vec<u64> = pages.iter().map(|page| page.0.to_bits()).collect();
        let distributed: Vec<u64> = pages.iter().map(|page| page.1.to_bits()).collect();
        // Threads are worth it for full blocks only.
        let (importance, distributed) = join(
            pages.len() as u64 == CHUNK_PAGES,
            || column::pack(&importance),
            || column::pack(&distributed),
        );
        let (block, file) = (self.scored, &mut self.file);
        file.packed(block, SnapshotColumn::Importance, importance)?;
        file.packed(block, SnapshotColumn::Distributed, distributed)?;
        self.scored += 1;
        Ok(())
    }

    /// Writes the column of ranks, given those of all pages in order.
    pub fn ranks(&mut self, mut ranks: impl Iterator<Item = Result<u64>>) -> Result<()> {
        for block in 0..self.scored {
            let ranks = ranks.by_ref().take(CHUNK_PAGES as usize);
            let ranks = ranks.collect::<Result<Vec<u64>>>()?;
            self.file.column(block, SnapshotColumn::Rank, &ranks)?;
        }
        Ok(())
    }

    /// Completes the file, and makes it durable. The certificate of the window must be finite: JSON has no infinity.
    pub fn finish(
        self,
        mut window: Window,
        expired: Option<Expired>,
        cluster: Option<ClusterRanking>,
        keep: KeepSnapshots,
    ) -> Result<Prepared<'v>> {
        if window.certificate.is_some_and(|claim| !claim.is_finite()) {
            return Err(Error::internal(
                "a ranking would have no finite certificate",
            ));
        }
        let (disk, view, settings) = (self.disk, self.view, self.view.settings());
        let (state, totals) = (view.state(), view.totals());
        let bound = window
            .bound_l1()
            .map(|bound| bound + settings.config.damping_bound());
        if let Some((effort, bound)) = window.settled.as_mut().zip(bound) {
            // The published bound is against PageRank at the damping that was requested.
            effort.reached &= bound <= effort.until;
        }
        let latest = self.times.latest_with(state.time);
        let info = Info {
            version: VERSION,
            pages: totals.pages,
            visits: totals.visits,
            rounds: totals.rounds,
            turnovers: totals.clock as f64 / (totals.supply() as f64).max(1.0),
            clock: totals.clock.to_string(),
            counters: state.counters.clone(),
            time: latest.map(|(time, _)| time),
            measures: self.measures,
            window,
            expired,
            cluster,
            settings: settings.clone(),
        };
        self.file.finish(self.pages, &info)?;
        Ok(Prepared {
            disk,
            view,
            file: self.temporary,
            info,
            keep,
        })
    }
}
