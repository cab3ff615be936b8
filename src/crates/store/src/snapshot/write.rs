//! Writing of a snapshot's file: its columns, one after the other, of all blocks.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, mem};

use crossbeam_channel::bounded;

use super::blocks::BlockWriter;
use super::known::{self, COLUMNS as FETCHES, FactsCache, FactsWithCash};
use super::publish::{Prepared, begin};
use super::ranks::RankCollector;
use super::settling::{SnapshotOptions, Watcher};
use super::{COLUMNS, Info, SnapshotColumn, column};
use crate::engine::{
    CHUNK_PAGES, Estimation, Estimator, FetchTimes, HistoryFacts, HistoryView, PageScores, Scores,
    Window,
};
use crate::memory::RANKING_MOST;
use crate::rank::settle::SettlingResult;
use crate::store::{Disk, View};
use crate::threads::{join, lock, result_of, spawn_in};
use crate::{Error, Result};

/// Writes a snapshot to a temporary file. The facts about pages are written while importance is settled. Returns it
/// with the settled state, if importance is not an estimate; `None` if it must not be published. Calls `hand_on` with
/// that state and the warnings before it writes the scores.
pub(super) fn write<'v>(
    disk: &'v dyn Disk,
    view: &'v View,
    making: &SnapshotOptions,
    warnings: &mut Vec<String>,
    hand_on: &mut dyn FnMut(&SettlingResult, &mut Vec<String>) -> Result<()>,
) -> Result<Option<(Prepared<'v>, Option<SettlingResult>)>> {
    let file = begin(disk, view)?;
    let config = &view.settings().config;
    let settle = making.settle.as_ref();
    let pages = view.totals().pages;
    let memory = settle.map_or(RANKING_MOST, |settle| settle.rank_room(view));
    let mut ranks = RankCollector::new(pages, memory, view.dir());
    let mut writer = SnapshotWriter::create(disk, &file.path)?;
    let (mut computed, mut measures) = (None, 0);
    if let Some(settle) = settle
        && settle.is_possible(view)
    {
        let failed = AtomicBool::new(false);
        let facts = || {
            let room = settle.known_room(view);
            let written = writer.facts(view, &settle.known, (room, &settle.watcher));
            failed.store(written.is_err(), Ordering::Relaxed);
            written
        };
        let (written, scores) = join(true, facts, || settle.run(disk, view, &failed, warnings));
        let Some(read) = written? else {
            return Ok(None);
        };
        (computed, measures) = (scores?, read);
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
            writer = SnapshotWriter::create(disk, &file.path)?;
            let estimation = Estimation::begin(view, config)?;
            measures = writer.estimates(&estimation, &mut ranks)?;
            (estimation.window().clone(), None)
        }
    };
    if settle.is_some_and(|settle| settle.is_not_below(config, &window)) {
        return Ok(None);
    }
    if let Some((settled, _)) = &computed {
        hand_on(settled, warnings)?;
        writer.scores(settled, window.estimator, Some(&mut ranks))?;
    }
    writer.ranks(ranks.ranks()?)?;
    let info = Info::new(view, measures, &window, expired)?;
    let prepared = Prepared {
        disk,
        view,
        file,
        info: writer.finish(info)?,
        keep: making.keep,
    };
    Ok(Some((prepared, computed.map(|(settled, _)| settled))))
}

/// Callback that takes a block, and may leave another.
type Give<'a, B> = dyn FnMut(&mut B) -> Result<()> + 'a;

pub(super) struct SnapshotWriter {
    file: BlockWriter<Info>,
    pages: u64,
    /// Numbers of blocks that have their facts, and their scores.
    known: usize,
    scored: usize,
    times: FetchTimes,
}

impl SnapshotWriter {
    pub fn create(disk: &dyn Disk, path: &Path) -> Result<SnapshotWriter> {
        Ok(SnapshotWriter {
            file: BlockWriter::create(disk, path, COLUMNS)?,
            pages: 0,
            known: 0,
            scored: 0,
            times: FetchTimes::default(),
        })
    }

    /// Writes the columns of facts about pages, continuing from the cache of the previous snapshot, and fills the cache
    /// for the next one up to `room` bytes. Returns the number of measures, or `None` if it was stopped.
    pub fn facts(
        &mut self,
        view: &View,
        known: &Mutex<FactsCache>,
        (mut room, watcher): (u64, &Watcher),
    ) -> Result<Option<u64>> {
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
        let measures = self.blocks(read, |writer, (block, cash)| {
            writer.times.add_all(block.times());
            writer.facts_of(block.packed(), column::pack(cash), cash.len())?;
            cache.add(mem::take(block), &mut room);
            Ok(())
        });
        if is_stopped {
            return Ok(None);
        }
        let measures = measures?;
        cache.finish(view);
        *held = cache;
        Ok(Some(measures))
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

    /// Writes all columns except for the ranks. Returns the number of measures.
    fn estimates(&mut self, estimation: &Estimation<'_>, ranks: &mut RankCollector) -> Result<u64> {
        let read = |give: &mut Give<'_, Vec<(HistoryFacts, PageScores)>>| {
            estimation.blocks(|_, pages| give(pages))
        };
        self.blocks(read, |writer, pages| {
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

    /// Writes the packed columns of the next block's facts, of this many pages.
    fn facts_of(
        &mut self,
        fetches: impl Iterator<Item = io::Result<impl AsRef<[u8]>>>,
        cash: io::Result<Vec<u8>>,
        pages: usize,
    ) -> Result<()> {
        for (column, packed) in FETCHES.into_iter().zip(fetches) {
            self.file.packed(self.known, column, packed)?;
        }
        self.file.packed(self.known, SnapshotColumn::Cash, cash)?;
        self.known += 1;
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

    /// Completes the file, and makes it durable. Sets the info's time to the latest accepted one.
    pub fn finish(self, mut info: Info) -> Result<Info> {
        let latest = self.times.latest_with(info.time);
        info.time = latest.map(|(time, _)| time);
        self.file.finish(self.pages, &info)?;
        Ok(info)
    }
}
