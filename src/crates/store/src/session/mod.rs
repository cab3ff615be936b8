//! Records pushed one by one by a program: [`Writer`] into a store, [`Reader`] into an engine in memory.
//!
//! A [`Writer`] gives the same results as an ingest of an input with the records in the same order: the same page
//! numbers, counts and rankings, wherever checkpoints fall. A crash loses all that was pushed since the last
//! checkpoint; [`Writer::pushed`] tells where to continue.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use crate::batch::{Batch, Builder, Rules};
use crate::disk::{Disk, RealDisk};
use crate::engine::{Config, Counters, Engine, InMemory};
use crate::memory::{Need, enough, largest, log_rows};
use crate::model::{HashKey, Limits, Names, PageId, Parsed, Record, What};
use crate::rank::Goal;
use crate::rules::InputRules;
use crate::snapshot::{self, KeepSnapshots, SettleSettings, Snapshot, Watcher};
use crate::store::rows::{GiveUpReason, KeepRows, ROWS_BYTES, Retention};
use crate::store::{
    InputProgress, Settings, StoreWriter, View, checkpoint, keep_index, settings_of,
};
use crate::{Error, Result};

/// Options of a [`Writer`]. The engine's settings, the rules and the limits on records must be the store's own: a store
/// that was created with others is refused.
#[derive(Debug, Clone)]
pub struct Options {
    pub config: Config,
    /// Rules for what is read from records.
    pub input: InputRules,
    /// Limits on records, pages and memory.
    pub limits: Limits,
    /// Retention of the links of pages.
    pub keep_links: KeepRows,
    /// Kind of page names: URLs or opaque.
    pub names: Names,
    /// Target bound on the L1 error for settling importance before a snapshot, if rows are kept and no window is
    /// requested; `None` disables settling.
    pub settle: Option<Goal>,
    /// Rule for which snapshots stay, besides pinned ones.
    pub keep_snapshots: KeepSnapshots,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            config: Config::default(),
            input: InputRules::default(),
            limits: Limits::default(),
            keep_links: KeepRows::Usual(ROWS_BYTES),
            names: Names::Url,
            settle: Some(Goal::default()),
            keep_snapshots: KeepSnapshots::ALL,
        }
    }
}

impl Options {
    /// Returns the settings of the store in `dir`, or the defaults if there is none. Links are kept as far as its disk
    /// has room.
    pub fn of(dir: impl AsRef<Path>) -> Result<Options> {
        let dir = dir.as_ref();
        let mut options = Options {
            keep_links: KeepRows::usual(dir),
            ..Options::default()
        };
        if let Some(settings) = settings_of(&RealDisk, dir)? {
            options.limits = settings.limits();
            options.config = settings.config;
            options.input = settings.input;
        }
        Ok(options)
    }
}

/// Number of records that are applied together, so that common names are looked up once.
const TOGETHER: usize = 1 << 10;

/// Writes records into a store, which has at most one writer at a time.
///
/// ```
/// # mod cashrank { pub use cashrank_base::model::*; pub use cashrank_store::session::*; }
/// use cashrank::{Options, Record, Writer};
///
/// # fn main() -> cashrank::Result<()> {
/// # let home = std::env::temp_dir().join(format!("cashrank-writer-{}", std::process::id()));
/// # std::fs::create_dir_all(&home).unwrap();
/// # let dir = home.join("store");
/// let crawl = [
///     ("http://a.example/", "http://b.example/"),
///     ("http://b.example/", "http://a.example/"),
///     ("http://c.example/", "http://a.example/"),
/// ];
/// let mut writer = Writer::open(&dir, &Options::default())?;
/// // After a crash: those before are in the store.
/// for &(url, link) in crawl.iter().skip(writer.pushed() as usize) {
///     writer.push(&Record::new(url, [link]))?;
/// }
/// writer.checkpoint()?;
/// let ranking = writer.publish()?;
/// assert_eq!(ranking.len(), 3);
/// # std::fs::remove_dir_all(&home).unwrap();
/// # Ok(())
/// # }
/// ```
pub struct Writer {
    #[doc(hidden)]
    pub engine: Engine<StoreWriter>,
    options: Options,
    rules: Rules,
    builder: Builder,
    /// Number of records in the builder that are not applied yet.
    waiting: usize,
    /// True if something was applied since the last checkpoint.
    changed: bool,
    /// True if the next record does not fit; those before it are applied, and no more are accepted.
    is_full: bool,
    /// True if a record was applied in part, or a checkpoint failed: no more records are accepted.
    has_failed: bool,
    /// Number of pages that fit in the memory limit, given the other parts of the need at the last computation.
    fits: u64,
    /// Number of pages at which that is computed again, as the bound gets tighter.
    renew_at: u64,
    /// Need, and the pages that would have fitted, once no more records are applied.
    released: Option<(Need, u64)>,
}

impl Writer {
    /// Opens the store in `dir` at its last checkpoint, or creates it.
    ///
    /// # Errors
    /// [`Error::Busy`] if the store has a writer; [`Error::Conflict`] if it was created with other settings, or an
    /// ingest of its inputs has not ended.
    pub fn open(dir: impl AsRef<Path>, options: &Options) -> Result<Writer> {
        Writer::open_on(Arc::new(RealDisk), dir.as_ref(), options)
    }

    /// Opens a store like [`Writer::open`], on another disk than the system's.
    #[doc(hidden)]
    pub fn open_on(disk: Arc<dyn Disk>, dir: &Path, options: &Options) -> Result<Writer> {
        options.limits.check()?;
        let mut settings = Settings::new(options.config.clone(), &options.limits);
        settings.input = options.input.clone();
        let mut writer = Writer::open_for_inputs(disk, dir, &settings, options.clone(), false)?;
        writer.storage().manifest.progress.check_finished(dir)?;
        snapshot::check_not_newer(&*writer.storage().disk, dir, writer.counters())?;
        // Rows that were given up during opening are still there.
        writer.changed = writer.storage_mut().rows_given_up.take().is_some();
        Ok(writer)
    }

    /// Opens a store for an ingest, which may continue one of its inputs. If `resumes`, the last stream is sent again.
    #[doc(hidden)]
    pub fn open_for_inputs(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: &Settings,
        options: Options,
        resumes: bool,
    ) -> Result<Writer> {
        let (limits, keep) = (&options.limits, options.keep_links);
        let mut engine = StoreWriter::open(disk, dir, settings, limits, keep, resumes)?;
        engine.cut_log_at(log_rows(engine.config(), limits.memory));
        let config = engine.config();
        let rules = Rules {
            limits: limits.clone(),
            self_links: config.self_links,
            key: engine.storage().identity.key,
            input: settings.input.clone(),
            follow: config.follow.clone(),
        };
        let mut writer = Writer {
            builder: Builder::new(rules.clone(), options.names),
            rules,
            engine,
            options,
            waiting: 0,
            changed: false,
            is_full: false,
            has_failed: false,
            fits: 0,
            renew_at: 0,
            released: None,
        };
        writer.find_room();
        Ok(writer)
    }

    /// Takes a record and returns what it means; an unusable record is counted and not an error. It is applied together
    /// with later ones, at the latest by the next checkpoint.
    ///
    /// # Errors
    /// [`Error::TooManyPages`] and [`Error::OverBudget`], of this record or an earlier one that was not applied yet:
    /// the records before that one are applied and can be kept by a checkpoint, but no more are accepted. Other errors
    /// are final.
    pub fn push(&mut self, record: &Record<'_>) -> Result<What> {
        self.check_open()?;
        let what = self.builder.add(Parsed::Record(record));
        self.waiting += 1;
        if self.waiting == TOGETHER || self.builder.is_full() {
            self.apply()?;
        }
        Ok(what)
    }

    pub fn rules(&self) -> Rules {
        self.rules.clone()
    }

    /// Returns the pages of a batch's names, in its order, and admits new names like link targets. The pages are
    /// durable with the next checkpoint.
    ///
    /// # Errors
    /// Those of [`Writer::push`]; no name is admitted unless all fit.
    pub fn admit(&mut self, batch: &Batch) -> Result<&[PageId]> {
        self.check_open()?;
        self.apply()?;
        let known = self.pages();
        let end = batch.fingerprints.len() as u32;
        self.engine.begin_batch();
        let room = self.check_room(batch, end);
        room.inspect_err(|_| self.is_full = true)?;
        let admitted = self.engine.admit(batch, end);
        admitted.inspect_err(|_| self.has_failed = true)?;
        self.changed |= self.pages() > known;
        Ok(self.engine.batch_pages())
    }

    pub fn array_bytes(&self) -> u64 {
        let (need, _) = self.memory();
        need.cash + need.index
    }

    /// Makes all that was pushed durable and ends. Returns the committed state, which holds the store's lock.
    pub fn into_view(mut self) -> Result<View> {
        self.checkpoint()?;
        // The index only saves time.
        let _ = self.keep_index();
        let disk = self.storage().disk.clone();
        let view = self.view()?;
        drop(self);
        view.reopened(&*disk)
    }

    /// Returns the number of records ever taken into the state of the store, including skipped ones, without those that
    /// wait to be applied. After opening, this is the number of durable records.
    pub fn pushed(&self) -> u64 {
        let counters = self.counters();
        counters.records
            + counters.skipped_total()
            + counters.out_of_scope
            + counters.shard.other_records
            + counters.other
    }

    /// Returns counts of what was read, without records that wait to be applied.
    pub fn counters(&self) -> &Counters {
        self.engine.counters()
    }

    /// Makes all that was pushed durable. Returns the number of the commit.
    ///
    /// # Errors
    /// Those of [`Writer::push`]. After [`Error::Io`] the writer accepts no more records, and the store is at its
    /// previous checkpoint.
    pub fn checkpoint(&mut self) -> Result<u64> {
        let applied = self.apply();
        if self.has_failed {
            return applied.and_then(|()| Err(self.no_more()));
        }
        if self.changed {
            // Progress of ingests of inputs into the store is preserved.
            let progress = self.storage().manifest.progress.clone();
            let made = checkpoint(&mut self.engine, &progress);
            made.inspect_err(|_| self.has_failed = true)?;
            self.changed = false;
            if self.storage_mut().rows_given_up.take().is_some() {
                self.release_rows()?;
            }
        }
        applied.map(|()| self.storage().manifest.generation)
    }

    /// Makes all that was pushed durable, ranks all pages, and publishes this as the store's current snapshot.
    ///
    /// # Errors
    /// Those of [`Writer::checkpoint`]. Unverified records of an earlier ingest prevent publication.
    pub fn publish(&mut self) -> Result<Snapshot> {
        let published = self.publish_watched(self.options.settle, Watcher::default())?;
        published.ok_or_else(|| Error::internal("settling was stopped"))
    }

    /// Publishes like [`Writer::publish`], settled to `settle`. Returns `None` if the watcher stopped it; what was pushed
    /// is durable then.
    #[doc(hidden)]
    pub fn publish_watched(
        &mut self,
        settle: Option<Goal>,
        watcher: Watcher,
    ) -> Result<Option<Snapshot>> {
        self.checkpoint()?;
        self.storage()
            .manifest
            .progress
            .check_verified(&self.storage().dir)?;
        let settle = self.settling(settle, watcher);
        // The index only saves time.
        let _ = self.keep_index();
        let (view, keep) = (self.view()?, self.options.keep_snapshots);
        if snapshot::publish(&*self.storage().disk, &view, keep, settle.as_ref())?.is_none() {
            return Ok(None);
        }
        drop(view);
        self.release_rows()?;
        Snapshot::latest(&*self.storage().disk, &self.storage().dir).map(Some)
    }

    /// Returns whether links of pages are kept. They are given up if they do not fit.
    pub fn rows_retention(&self) -> &Retention {
        &self.storage().manifest.retention
    }

    fn apply(&mut self) -> Result<()> {
        if self.waiting == 0 {
            return Ok(());
        }
        self.waiting = 0;
        let batch = self.builder.take();
        self.apply_batch(&batch)?;
        self.builder.recycle(batch);
        Ok(())
    }

    fn apply_batch(&mut self, batch: &Batch) -> Result<()> {
        self.begin_batch();
        for (at, entry) in batch.entries.iter().enumerate() {
            let room = self.check_room(batch, entry.names_end);
            room.inspect_err(|_| self.is_full = true)?;
            let applied = self.engine.apply_entry(batch, at);
            applied.inspect_err(|_| self.has_failed = true)?;
            self.changed = true;
        }
        Ok(())
    }

    fn check_open(&self) -> Result<()> {
        if self.is_full || self.has_failed {
            return Err(self.no_more());
        }
        Ok(())
    }

    fn no_more(&self) -> Error {
        Error::Conflict(format!(
            "{}: this writer takes no more records, because an earlier record or checkpoint failed; open the store \
            again",
            self.storage().dir.display()
        ))
    }
}

/// Methods for an ingest of inputs: storage, checkpoints of its own progress, and rankings in the background.
#[doc(hidden)]
impl Writer {
    pub fn storage(&self) -> &StoreWriter {
        self.engine.storage()
    }

    pub fn storage_mut(&mut self) -> &mut StoreWriter {
        self.engine.storage_mut()
    }

    pub fn pages(&self) -> u64 {
        self.engine.ledger().totals().pages
    }

    /// Makes the state durable, with the progress in the inputs. Returns why rows were given up, if they were: then call
    /// [`Writer::release_rows`]. After an error the store accepts no more records.
    pub fn commit(&mut self, progress: &InputProgress) -> Result<Option<GiveUpReason>> {
        checkpoint(&mut self.engine, progress)?;
        Ok(self.storage_mut().rows_given_up.take())
    }

    /// Writes the index of the last commit, unless the present one suffices. Errors leave the store writable.
    pub fn keep_index(&mut self) -> Result<()> {
        keep_index(&mut self.engine)
    }

    /// Removes row files that were compacted, except for the one that readers of the current snapshot use.
    pub fn release_rows(&mut self) -> Result<()> {
        let retention = self.storage().manifest.retention;
        let named = snapshot::rows_named(&*self.storage().disk, &self.storage().dir, &retention)?;
        self.storage_mut().release_rows(named)
    }

    pub fn view(&self) -> Result<View> {
        self.storage().view()
    }

    /// Returns the settings for settling before a snapshot in the memory that is left; `None` if a window is used.
    pub fn settling(&self, goal: Option<Goal>, watcher: Watcher) -> Option<SettleSettings> {
        let goal = goal.filter(|_| self.engine.config().is_settled())?;
        Some(SettleSettings {
            memory: self.memory_left(),
            watcher: Arc::new(watcher),
            ..SettleSettings::until(goal)
        })
    }
}

/// Least growth in pages before it is computed again how many fit.
const RENEWED_AFTER: u64 = 1 << 20;

/// Methods about the memory limit: the number of pages that fit, computed again as they grow.
#[doc(hidden)]
impl Writer {
    /// Begins a batch, and computes again how many pages fit, if it is due.
    pub fn begin_batch(&mut self) {
        self.engine.begin_batch();
        if self.memory_limit().is_some() && self.pages() >= self.renew_at {
            self.find_room();
        }
    }

    fn find_room(&mut self) {
        let (limit, pages) = (self.engine.page_limit(), self.pages());
        self.renew_at = pages + (pages / 8).max(RENEWED_AFTER);
        self.fits = match self.memory_limit() {
            None => limit,
            Some(bytes) => largest(limit, |pages| self.need(pages).total() <= bytes),
        };
    }

    fn need(&self, pages: u64) -> Need {
        Need::of(&self.engine, pages.max(self.pages()), self.memory_limit())
    }

    pub fn memory_limit(&self) -> Option<u64> {
        self.options.limits.memory
    }

    /// Returns the present need of memory, and how many pages fit.
    pub fn memory(&self) -> (Need, u64) {
        let now = || (self.need(0), self.fits);
        self.released.unwrap_or_else(now)
    }

    /// Releases memory that only further records need, for settling. After an error the store accepts no more of them.
    pub fn release_memory(&mut self) -> Result<()> {
        self.released = Some(self.memory());
        self.engine.release_memory()
    }

    pub fn has_released_memory(&self) -> bool {
        self.released.is_some()
    }

    /// Returns the bytes of memory that are left; `None` without a limit.
    pub fn memory_left(&self) -> Option<u64> {
        let (mut need, _) = self.memory();
        if self.has_released_memory() {
            need = need.without_records();
        }
        Some(self.memory_limit()?.saturating_sub(need.total()))
    }

    /// Checks that the pages of the batch's names up to `names_end` fit.
    pub fn check_room(&self, batch: &Batch, names_end: u32) -> Result<()> {
        let limit = self.engine.page_limit();
        let most = limit.min(self.fits);
        let room = self.engine.check_room(batch, names_end, most);
        let is_limited = matches!(room, Err(Error::TooManyPages { .. }));
        if !is_limited || most >= self.options.limits.pages.min(limit) {
            return room;
        }
        // The memory limit determined it.
        let pages = self.pages();
        let budget = self.memory_limit().unwrap_or(u64::MAX);
        let next = pages.max(self.fits) + 1;
        let needed = enough(|bytes| Need::of(&self.engine, next, Some(bytes)).total());
        Err(Error::OverBudget {
            pages,
            // One record may bring many pages: those that fit need no more than the budget.
            need: needed.max(budget.saturating_add(1)),
            budget,
        })
    }
}

/// Applies records to an engine in memory, one at a time.
pub struct Reader {
    builder: Builder,
}

impl Reader {
    /// Returns a reader of records; `names` tells whether their names are URLs or opaque.
    pub fn new(engine: &Engine<InMemory>, names: Names) -> Result<Reader> {
        let rules = Rules {
            limits: Limits::default(),
            self_links: engine.config().self_links,
            key: HashKey::random()?,
            input: Default::default(),
            follow: engine.config().follow.clone(),
        };
        Ok(Reader {
            builder: Builder::new(rules, names),
        })
    }

    /// Applies one record. An unusable one is counted by its reason, and is an error (`Error::BadRecord`).
    pub fn apply(&mut self, engine: &mut Engine<InMemory>, record: &Record<'_>) -> Result<()> {
        self.builder.add(Parsed::Record(record));
        let batch: Batch = self.builder.take();
        engine.begin_batch();
        for (at, entry) in batch.entries.iter().enumerate() {
            engine.apply_entry(&batch, at)?;
            if let What::Skipped(reason) = entry.what {
                let detail = batch.complaints.first().map_or("", |(_, text)| text);
                return Err(Error::BadRecord {
                    input: "record".into(),
                    record: engine.counters().records + engine.counters().skipped_total(),
                    offset: 0,
                    reason: reason.name(),
                    detail: detail.into(),
                });
            }
        }
        Ok(())
    }
}
