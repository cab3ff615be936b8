//! The engine: Adaptive OPIC over a stream of records. No clock, no files, no threads.
//!
//! Records come in batches to [`Engine::apply_entry`], which admits their names to the index, and from there with page
//! numbers to [`Engine::apply`]. Cash moves in the [`Ledger`], and rows are appended to the history. Names, history runs
//! and marks go to a [`Storage`]: [`InMemory`] for library use and tests, the store for real runs.

mod cells;
mod config;
mod counters;
mod estimate;
mod fetch_times;
mod history;
mod index;
mod ledger;
mod memory;
mod row;
mod scores;
mod window;

use serde::{Deserialize, Serialize};

use crate::model::{Batch, BatchEntry, Digest, FetchTotals, Time, What};
use crate::rules::Shard;
use crate::{Error, Result};
use history::{FAILED, FETCHED, HistoryNote, REACHED, VISITED};

pub use crate::model::{Fingerprint, Page, PageId, SelfLinks};
pub use cells::Cells;
pub use config::Config;
pub use counters::{Counters, ShardCounts, with_shard};
pub use estimate::{Estimation, HistoryView, PageScores, Window, each_chunk, measure};
pub use fetch_times::{FetchTimes, YEAR};
pub use history::{
    Admission, Admissions, Blocks, Notes, Rows, RunReader, log_bytes, log_rows, merge, mergeable,
    rows_of_run,
};
pub use index::{Index, IndexSegment, LEAST_SLOTS, Probe, SEGMENTS, Slot};
pub use ledger::{
    CHUNK_PAGES, ENDOWMENT, Ledger, ROUND_MIN, Shares, TargetLinks, Totals, age, check_law,
    checked_damping, damping_units,
};
pub use memory::{InMemory, Ranking, ranks};
pub use row::{HistoryRow, NO_TIME, RowFetches, RowPolicy, digest_of};
pub use scores::{
    Certificate, Effort, Estimator, ScoreUnits, Scores, SettledPages, SettledPagesMut,
    SettledTotals, certify, ratio_up,
};
pub use window::{CashMark, MEASURES_MAX, Span, TimeTable, WindowPolicy};

/// Receiver of the data that the engine does not keep. Calls come in stream order.
pub trait Storage {
    /// Stores an admitted page; its number is the number of earlier calls.
    fn page(&mut self, fingerprint: Fingerprint, name: &[u8]) -> Result<()>;
    /// Stores that a record admitted pages from `admission.first` on.
    fn admission(&mut self, admission: Admission) -> Result<()>;
    /// Stores the row of a visit: the links of a page, or that it is gone. `again`: the page already has a row.
    fn row(&mut self, page: PageId, gone: bool, links: TargetLinks<'_>, again: bool) -> Result<()> {
        let _ = (page, gone, links, again);
        Ok(())
    }
    fn page_limit(&self) -> u64 {
        u64::MAX
    }
    /// Stores a run of the history between mark `interval` and the next.
    fn run(&mut self, interval: u64, notes: &mut Notes) -> Result<()>;
    /// Stores a copy of `cells` under the number of a new mark.
    fn keep_mark(&mut self, mark: &CashMark, cells: &[u64]) -> Result<()>;
    /// Drops a mark that is no longer needed. Runs after it then belong to the mark before.
    fn drop_mark(&mut self, number: u64) -> Result<()>;
}

/// State of the engine without its arrays, as a checkpoint's manifest stores it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineState {
    pub totals: Totals,
    /// Retained marks, oldest first.
    pub marks: Vec<CashMark>,
    pub marks_made: u64,
    pub counters: Counters,
    /// Running maximum of the records' times.
    pub time: Option<Time>,
    /// Table that maps times to G, if the window is in fetch time.
    pub times: TimeTable,
    /// G at the start of a window of measures, as of the last end of a round; never moves back.
    pub window_start: u128,
    /// Times of all records, read once. The manifest keeps them at its end, apart from the rest.
    #[serde(skip)]
    pub fetch_times: FetchTimes,
}

/// Adaptive OPIC over a stream of records.
pub struct Engine<S = InMemory> {
    config: Config,
    pub index: Index,
    ledger: Ledger,
    log: Notes,
    /// Page of each name of the current batch, as far as they were admitted.
    batch_pages: Vec<PageId>,
    /// Targets and weights of an entry, reused.
    links: (Vec<PageId>, Vec<u64>),
    /// State besides the arrays; the ledger has the current totals.
    state: EngineState,
    storage: S,
    /// True if the following records were applied before, in an earlier pass, and so are not fetches.
    pub is_replay: bool,
    /// Shard of the store, whose remote pages are counted.
    pub shard: Option<Shard>,
}

impl<S: Storage> Engine<S> {
    /// Creates an empty engine that accepts at most `page_limit` pages.
    pub fn with_storage(config: Config, page_limit: u64, storage: S) -> Result<Engine<S>> {
        config.check()?;
        let damping = config.damping_units();
        let ledger = Ledger::new(damping, config.recycle_after, page_limit)?;
        Ok(Engine {
            index: Index::new()?,
            ledger,
            log: Notes::new(config.policy()),
            batch_pages: Vec::new(),
            links: Default::default(),
            state: EngineState::default(),
            storage,
            is_replay: false,
            shard: None,
            config,
        })
    }

    /// Restores the state of a checkpoint; `load` fills cells and ages. The caller checks the law, and restores the
    /// index.
    pub fn restore(
        &mut self,
        state: EngineState,
        load: impl FnOnce(&mut [u64], &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        self.ledger.restore(state.totals, load)?;
        self.state = state;
        Ok(())
    }

    /// Releases index and cash. No record may be applied afterwards.
    pub fn release_memory(&mut self) -> Result<()> {
        self.index = Index::new()?;
        self.ledger.release_memory();
        Ok(())
    }

    pub fn state(&self) -> EngineState {
        EngineState {
            totals: *self.ledger.totals(),
            ..self.state.clone()
        }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the retained marks, oldest first.
    pub fn marks(&self) -> &[CashMark] {
        &self.state.marks
    }

    pub fn counters(&self) -> &Counters {
        &self.state.counters
    }

    /// Sets the number of rows at which the log is cut into a run.
    pub fn cut_log_at(&mut self, rows: usize) {
        self.log.full = rows;
    }

    /// Returns the largest number of pages that fit in memory and in the storage.
    pub fn page_limit(&self) -> u64 {
        self.ledger.page_limit().min(self.storage.page_limit())
    }

    /// Marks all chunks of the ledger as unchanged, after they were written to disk.
    pub fn clean(&mut self) {
        self.ledger.clean();
    }

    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Applies an entry, whose pages were admitted. `links` are the distinct targets of a visit or, of an unchanged
    /// page, the page with the same content. `totals` are those of the page's fetches so far, if the record gives these
    /// instead of one fetch. After an error the engine must not be used.
    pub fn apply(
        &mut self,
        entry: &BatchEntry,
        page: PageId,
        links: TargetLinks<'_>,
        totals: Option<FetchTotals>,
    ) -> Result<()> {
        let last_failed = totals.and_then(|totals| totals.last_failed);
        self.note_time(entry.fetched_at.max(last_failed));
        let what = match entry.what {
            What::Unchanged if !links.targets.is_empty() && !self.has_row(page) => What::Visit,
            what => what,
        };
        self.state.counters.take(what, &entry.counts);
        let has_totals = totals.is_some();
        let totals = totals.filter(|_| !self.is_replay);
        let mut fetch = self.fetch(entry.fetched_at, totals.is_some());
        match what {
            What::Visit | What::Gone => {
                let gone = what == What::Gone;
                debug_assert!(!gone || links.targets.is_empty());
                let again = self.has_row(page);
                self.storage.row(page, gone, links, again)?;
                let digest = match entry.digest {
                    _ if gone => Digest::GONE,
                    Digest::NONE if !self.is_replay => digest_of(links),
                    digest => digest,
                };
                let age = if gone { age::GONE } else { age::NOW };
                self.visit(page, links, age, HistoryNote { digest, ..fetch }, totals);
            }
            What::Unchanged => {
                let digest = Digest::UNCHANGED;
                self.look(page, HistoryNote { digest, ..fetch }, totals);
            }
            What::Failed if has_totals => self.look(page, fetch, totals),
            What::Failed if !self.is_replay => {
                fetch.page = fetch.page & !REACHED | FAILED;
                self.look(page, fetch, None);
            }
            What::Failed | What::Skipped(_) | What::OutOfScope | What::OtherShard | What::Other => {
            }
        }
        self.end_record()
    }

    /// Visits a page with the links of its last record, in a pass after the first. This is not a fetch, but counts as a
    /// record.
    pub fn replay_visit(&mut self, page: PageId, gone: bool, links: TargetLinks<'_>) -> Result<()> {
        self.state.counters.records += 1;
        self.state.counters.gone += u64::from(gone);
        self.state.counters.links += links.targets.len() as u64;
        let age = if gone { age::GONE } else { age::NOW };
        self.visit(page, links, age, HistoryNote::default(), None);
        self.end_record()
    }

    /// Advances the stream's clock, which never goes back, to the time of a record. Records before the first time count
    /// as of that time.
    fn note_time(&mut self, fetched_at: Option<Time>) {
        let Some(time) = fetched_at else { return };
        self.state.time = self.state.time.max(fetched_at);
        if !self.is_replay {
            self.state.fetch_times.add(time);
        }
        if let Some(Span::Seconds(seconds)) = self.config.span() {
            self.state
                .times
                .note(time, self.ledger.totals().clock, seconds);
        }
    }

    /// Returns [`Error::Usage`] if the window is in fetch time and records were applied but none had a time.
    pub fn check_times(&self) -> Result<()> {
        let needs_times = matches!(self.config.span(), Some(Span::Seconds(_)));
        let is_empty = self.ledger.totals().pages == 0;
        if self.state.time.is_some() || !needs_times || is_empty {
            return Ok(());
        }
        let option = match self.config.max_age {
            Some(span) => format!("`max_age` {span}"),
            None => format!("`window` {}", self.config.window),
        };
        Err(Error::Usage(format!(
            "{option} is fetch time, and records have no times: give its length in turnovers"
        )))
    }

    fn has_row(&self, page: PageId) -> bool {
        !matches!(self.ledger.age(page), age::NEVER | age::COMPLETED)
    }

    /// Returns the note of the fetch that a record reports, without a digest. Without a time of its own, and unless it
    /// gives totals, it was at the latest time so far that is not an outlier.
    fn fetch(&self, fetched_at: Option<Time>, has_totals: bool) -> HistoryNote {
        let latest = || {
            let latest = self.state.fetch_times.latest().filter(|_| !has_totals);
            latest.map(|(time, _)| time)
        };
        let fetched = fetched_at.or_else(latest).filter(|_| !self.is_replay);
        let flags = if self.is_replay { 0 } else { REACHED };
        HistoryNote {
            page: flags | fetched.map_or(0, |_| FETCHED),
            fetched: fetched.unwrap_or(0),
            ..HistoryNote::default()
        }
    }

    /// Logs a fetch that was not a visit.
    fn look(&mut self, page: PageId, fetch: HistoryNote, totals: Option<FetchTotals>) {
        let visits = totals.map_or(0, |totals| totals.visits.into());
        self.ledger.count_visits(visits);
        self.log.add(page, 0, fetch, totals, Default::default());
    }

    fn visit(
        &mut self,
        page: PageId,
        links: TargetLinks<'_>,
        age: u8,
        mut note: HistoryNote,
        mut totals: Option<FetchTotals>,
    ) {
        note.page |= VISITED;
        if let Some(totals) = &mut totals {
            totals.visits = totals.visits.max(1);
            self.ledger.count_visits(u64::from(totals.visits) - 1);
        }
        if self.ledger.age(page) == age::NEVER {
            self.state.counters.visited += 1;
        }
        let cash = self.ledger.visit(page, links, age);
        let Totals { clock, pages, .. } = *self.ledger.totals();
        let moment = moment(self.config.window, &self.state.times, clock, pages);
        self.log.add(page, cash, note, totals, moment);
    }

    fn end_record(&mut self) -> Result<()> {
        if self.ledger.count_record() {
            return self.end_round();
        }
        if self.log.is_full() {
            self.flush_log()?;
        }
        Ok(())
    }

    /// Begins another pass over the same records: ends the current round, unless it is empty.
    pub fn begin_pass(&mut self) -> Result<()> {
        if self.ledger.totals().round_records == 0 {
            return Ok(());
        }
        self.end_round()
    }

    fn end_round(&mut self) -> Result<()> {
        let pages = self.ledger.totals().pages;
        let (log, storage) = (&mut self.log, &mut self.storage);
        let (window, times) = (self.config.window, &self.state.times);
        let interval = self.state.marks_made;
        self.ledger.end_round(|page, cash, clock| {
            let moment = moment(window, times, clock, pages);
            log.add(page, cash, HistoryNote::default(), None, moment);
            // A round may recycle most of the pages.
            if log.is_full() {
                log.cut(|notes| storage.run(interval, notes))?;
            }
            Ok::<(), Error>(())
        })?;
        // The start of the window moves forward.
        let clock = self.ledger.totals().clock;
        let start = window.start(clock, pages, &self.state.times);
        self.state.window_start = self.state.window_start.max(start);
        if !self.config.makes_marks() {
            return Ok(());
        }
        self.flush_log()?;
        self.state.marks_made += 1;
        let mark = CashMark {
            number: self.state.marks_made,
            totals: *self.ledger.totals(),
        };
        self.storage.keep_mark(&mark, self.ledger.cells())?;
        self.state.marks.push(mark);
        let (marks, start) = (&mut self.state.marks, self.state.window_start);
        if marks.len() > usize::from(self.config.marks) {
            let dropped = marks.remove(self.config.window.superfluous(marks, start));
            self.storage.drop_mark(dropped.number)?;
        }
        Ok(())
    }

    /// Passes the log to the storage as a run.
    pub fn flush_log(&mut self) -> Result<()> {
        if self.log.is_empty() {
            return Ok(());
        }
        let (storage, interval) = (&mut self.storage, self.state.marks_made);
        self.log.cut(|notes| storage.run(interval, notes))
    }

    // Names of batches as pages: admitted entry by entry, in the order of their first appearance, so page numbers do not
    // depend on where batches end.

    /// Begins a batch, to which all calls refer until the next one begins.
    pub fn begin_batch(&mut self) {
        self.batch_pages.clear();
    }

    /// Returns the pages of the batch's names, as far as they were admitted.
    pub fn batch_pages(&self) -> &[PageId] {
        &self.batch_pages
    }

    /// Returns [`Error::TooManyPages`] if admitting the batch's names up to `names_end` would exceed `limit` pages.
    #[inline]
    pub fn check_room(&self, batch: &Batch, names_end: u32, limit: u64) -> Result<()> {
        let known = self.batch_pages.len();
        let new = known..known.max(names_end as usize);
        let room = limit.saturating_sub(self.ledger.totals().pages);
        if new.len() as u64 <= room {
            return Ok(());
        }
        let is_new = |&&name: &&Fingerprint| self.index.get(name).is_none();
        let new = batch.fingerprints[new].iter().filter(is_new).count();
        if new as u64 <= room {
            return Ok(());
        }
        Err(Error::TooManyPages {
            limit,
            keeps_links: limit == self.storage.page_limit(),
        })
    }

    /// Applies the entry number `at`. Entries must come in order, without gaps. On [`Error::TooManyPages`], nothing of
    /// the entry was applied.
    pub fn apply_entry(&mut self, batch: &Batch, at: usize) -> Result<()> {
        let entry = &batch.entries[at];
        if !entry.what.is_of_page() {
            self.state.counters.take(entry.what, &entry.counts);
            return Ok(());
        }
        self.check_room(batch, entry.names_end, self.page_limit())?;
        self.admit(batch, entry.names_end)?;
        let page = self.batch_pages[entry.source as usize];
        let (mut targets, mut weights) = std::mem::take(&mut self.links);
        targets.clear();
        weights.clear();
        if matches!(entry.what, What::Visit | What::Unchanged) {
            batch.weigh(entry, &mut weights);
            let names = batch.targets(entry).iter();
            targets.extend(names.map(|&name| self.batch_pages[name as usize]));
        }
        let links = TargetLinks {
            targets: &targets,
            weights: &weights,
        };
        let applied = self.apply(entry, page, links, batch.totals(at));
        self.links = (targets, weights);
        applied
    }

    /// Admits the batch's names up to `names_end`, for which there must be room.
    pub fn admit(&mut self, batch: &Batch, names_end: u32) -> Result<()> {
        let known = self.batch_pages.len();
        if known >= names_end as usize {
            return Ok(());
        }
        let before = *self.ledger.totals();
        let (ledger, storage, pages) = (&mut self.ledger, &mut self.storage, &mut self.batch_pages);
        let (shard, remote_pages) = (self.shard, &mut self.state.counters.shard.remote_pages);
        let new = known..names_end as usize;
        self.index
            .admit_all(&batch.fingerprints, new, |at, page, is_new| {
                if is_new {
                    let name = batch.name(at as u32);
                    ledger.admit()?;
                    storage.page(batch.fingerprints[at], name)?;
                    *remote_pages += u64::from(shard.is_some_and(|shard| !shard.has(name)));
                }
                pages.push(page);
                Ok(())
            })?;
        if self.ledger.totals().pages > before.pages {
            self.storage.admission(Admission {
                first: before.pages,
                paid: before.paid,
                clock: if self.log.is_timed() { before.clock } else { 0 },
            })?;
        }
        Ok(())
    }
}

/// Returns the time of a measure, as far as the window needs it: G, pages, and the window's length.
fn moment(window: WindowPolicy, times: &TimeTable, clock: u128, pages: u64) -> (u128, u64, u128) {
    match window {
        WindowPolicy::Interpolation(span) => (clock, pages, span.units(clock, pages, times)),
        _ => (clock, 0, 0),
    }
}
