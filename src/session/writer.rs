//! A store fed record by record.
//!
//! A [`Writer`] gives the same results as an ingest of an input that holds the records in the same order: the
//! same pages with the same numbers, the same counts and rankings, wherever checkpoints fall. What was pushed
//! since the last checkpoint is lost with the process, as a whole; [`Writer::pushed`] says where to go on.

use std::path::Path;
use std::sync::Arc;

use super::{Opened, Session};
use crate::batch::{Batch, Builder, Rules};
use crate::disk::{Disk, RealDisk};
use crate::engine::{Config, Counters, Resolver};
use crate::model::{Limits, Names, PageId, Parsed, Record, What};
use crate::rank::Goal;
use crate::rules::InputRules;
use crate::snapshot::{
    self, KeepSnapshots, Latest, RANK_BYTES, Snapshot, SnapshotOptions, Watcher,
};
use crate::store::rows::{KeepRows, ROWS_BYTES, Retention};
use crate::store::{Progress, Settings, View, settings_of};
use crate::{Error, Result};

/// How a store is written to. The engine's settings, the rules and the limits on records are the store's own: a
/// store that was made with others is refused.
#[derive(Debug, Clone)]
pub struct Options {
    /// The engine's settings.
    pub config: Config,
    /// Rules for what is read from records.
    pub input: InputRules,
    /// Limits on records, pages and memory.
    pub limits: Limits,
    /// Whether rows of links are kept.
    pub keep_rows: KeepRows,
    /// How the names of pages are read.
    pub names: Names,
    /// Settle importance to this bound on the L1 error before a snapshot, where rows are kept and no window is asked
    /// for; `None`: never.
    pub settle: Option<Goal>,
    /// Snapshots to keep, beside those that are pinned.
    pub keep_snapshots: KeepSnapshots,
    /// Memory for the ranks of a snapshot, in bytes; more pages take a temporary file.
    pub rank_bytes: u64,
}

impl Default for Options {
    /// The usual settings, for URLs.
    fn default() -> Options {
        Options {
            config: Config::default(),
            input: InputRules::default(),
            limits: Limits::default(),
            keep_rows: KeepRows::Usual(ROWS_BYTES),
            names: Names::Url,
            settle: Some(Goal::default()),
            keep_snapshots: KeepSnapshots::ALL,
            rank_bytes: RANK_BYTES,
        }
    }
}

impl Options {
    /// The settings of the store in `dir`, if there is one; else the usual ones. Links are kept as far as its disk has
    /// room.
    ///
    /// # Errors
    /// The store's settings cannot be read.
    pub fn of(dir: impl AsRef<Path>) -> Result<Options> {
        let dir = dir.as_ref();
        let mut options = Options {
            keep_rows: KeepRows::usual(dir),
            ..Options::default()
        };
        if let Some(settings) = settings_of(&RealDisk, dir)? {
            options.limits = settings.limits();
            options.config = settings.config;
            options.input = settings.input;
        }
        Ok(options)
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.config.clone(), &self.limits);
        settings.input = self.input.clone();
        settings
    }
}

/// Records that are applied together: so the names that they share are looked up once.
const TOGETHER: usize = 1 << 10;

/// Writes records into a store, of which there is one writer at a time.
///
/// ```
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
    session: Session,
    options: Options,
    builder: Builder,
    /// Records in the builder, not applied yet.
    waiting: usize,
    /// The inputs that ingests read into the store: they stay.
    progress: Progress,
    resolver: Resolver,
    /// Something was applied since the last checkpoint.
    changed: bool,
    /// Absent, or why no record is taken any more.
    ended: Option<EndReason>,
}

/// Why a writer ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndReason {
    /// The next record does not fit: those before it are applied.
    Full,
    /// A record was applied in part, or a checkpoint failed.
    Failed,
}

impl Writer {
    /// Opens the store in `dir`, or makes it, at its last checkpoint.
    ///
    /// # Errors
    /// [`Error::Busy`] if the store has a writer; [`Error::Conflict`] if it was made with other settings, or an ingest
    /// of its inputs has not ended; [`Error::Damaged`].
    pub fn open(dir: impl AsRef<Path>, options: &Options) -> Result<Writer> {
        Writer::open_on(Arc::new(RealDisk), dir.as_ref(), options)
    }

    /// As [`Writer::open`], on another disk than the system's.
    ///
    /// # Errors
    /// Those of [`Writer::open`].
    #[doc(hidden)]
    pub fn open_on(disk: Arc<dyn Disk>, dir: &Path, options: &Options) -> Result<Writer> {
        options.limits.check()?;
        let Opened {
            mut session,
            progress,
            ..
        } = Session::open(
            disk,
            dir,
            &options.settings(),
            &options.limits,
            options.keep_rows,
            false,
        )?;
        progress.check_finished(dir)?;
        snapshot::check_not_newer(&**session.disk(), dir, session.counters())?;
        Ok(Writer {
            builder: Builder::new(session.rules.clone(), options.names),
            options: options.clone(),
            waiting: 0,
            // Rows that were given up while it was opened are still there.
            changed: session.rows_given_up().is_some(),
            ended: None,
            session,
            progress,
            resolver: Resolver::default(),
        })
    }

    /// Takes a record, and says what it means: one that cannot be used is counted, and no error. It is applied with
    /// others that come later, by the next checkpoint at the latest.
    ///
    /// # Errors
    /// [`Error::TooManyPages`] and [`Error::OverBudget`], of this record or one before that was not applied yet: those
    /// before that one are applied, and can still be kept by a checkpoint; no more are taken. Other errors are final.
    pub fn push(&mut self, record: &Record<'_>) -> Result<What> {
        if self.ended.is_some() {
            return Err(self.no_more());
        }
        let what = self.builder.add(Parsed::Record(record));
        self.waiting += 1;
        if self.waiting == TOGETHER || self.builder.is_full() {
            self.apply()?;
        }
        Ok(what)
    }

    /// The rules by which batches for [`Writer::take`] are made.
    pub(crate) fn rules(&self) -> Rules {
        self.session.rules.clone()
    }

    /// The pages of the names of the batch that was taken last.
    pub(crate) fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// Takes the records of a batch that was made by [`Writer::rules`], and is no part of an archive.
    ///
    /// # Errors
    /// Those of [`Writer::push`].
    pub(crate) fn take(&mut self, batch: &Batch) -> Result<()> {
        if self.ended.is_some() {
            return Err(self.no_more());
        }
        self.apply()?;
        self.apply_batch(batch)
    }

    /// Gives the names of a batch their pages, in its order, as links give them: names that are new are admitted. The pages are
    /// durable with the next checkpoint.
    ///
    /// # Errors
    /// Those of [`Writer::push`]. No name of the batch was admitted if its pages do not fit.
    pub(crate) fn admit(&mut self, batch: &Batch) -> Result<&[PageId]> {
        if self.ended.is_some() {
            return Err(self.no_more());
        }
        self.apply()?;
        let session = &mut self.session;
        let known = session.pages();
        let end = batch.fingerprints.len() as u32;
        let mut names = self.resolver.begin(batch);
        let room = session.check_room(&names, end);
        room.inspect_err(|_| self.ended = Some(EndReason::Full))?;
        let admitted = names.admit(&mut session.engine, end);
        admitted.inspect_err(|_| self.ended = Some(EndReason::Failed))?;
        self.changed |= session.pages() > known;
        Ok(self.resolver.pages())
    }

    /// Bytes of memory that its arrays take.
    pub(crate) fn array_bytes(&self) -> u64 {
        let session = &self.session;
        let (need, _) = session.budget.now(&session.engine);
        need.cash + need.index
    }

    /// Makes all that was pushed durable, and ends: the committed state, which holds the store's lock.
    ///
    /// # Errors
    /// Those of [`Writer::checkpoint`]; those of reading the state.
    pub(crate) fn into_view(mut self) -> Result<View> {
        self.checkpoint()?;
        // It only saves time.
        let _ = self.session.keep_index();
        let disk = self.session.disk().clone();
        let view = self.session.view()?;
        drop(self);
        view.reopened(&*disk)
    }

    /// Returns whether the store's current snapshot is of all that was pushed before.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Damaged`], of a snapshot that cannot be read.
    pub fn is_published(&self) -> Result<bool> {
        let (disk, dir) = (&**self.session.disk(), self.session.dir());
        if Latest::read(disk, dir)?.is_none() {
            return Ok(false);
        }
        let latest = Snapshot::latest(disk, dir)?;
        Ok(self.waiting == 0 && latest.info().counters == *self.counters())
    }

    /// Records taken into the state of the store since it was made, in whatever way, those that were skipped too;
    /// not those that wait to be applied. After opening: so many are durable.
    pub fn pushed(&self) -> u64 {
        let counters = self.counters();
        counters.records
            + counters.skipped_total()
            + counters.out_of_scope
            + counters.shard.other_records
            + counters.other
    }

    /// Counts of what was read; records that wait to be applied are not among them.
    pub fn counters(&self) -> &Counters {
        self.session.counters()
    }

    /// Makes all that was pushed durable, and gives the number of the commit.
    ///
    /// # Errors
    /// Those of [`Writer::push`]; [`Error::Io`], after which the writer takes no more, and the store is at its
    /// checkpoint before.
    pub fn checkpoint(&mut self) -> Result<u64> {
        let applied = self.apply();
        if self.ended == Some(EndReason::Failed) {
            return applied.and_then(|()| Err(self.no_more()));
        }
        if self.changed {
            let made = self.session.checkpoint(&self.progress);
            let given_up = made.inspect_err(|_| self.ended = Some(EndReason::Failed))?;
            self.changed = false;
            if given_up.is_some() {
                self.session.release_rows()?;
            }
        }
        applied.map(|()| self.session.generation())
    }

    /// Makes all that was pushed durable, ranks all pages, and makes this the store's current snapshot.
    ///
    /// # Errors
    /// Those of [`Writer::checkpoint`]. Records of an earlier ingest that could not be verified keep a ranking from
    /// being published.
    pub fn publish(&mut self) -> Result<Snapshot> {
        let published = self.publish_watched(self.options.settle, Watcher::default())?;
        published.ok_or_else(|| Error::internal("settling was stopped"))
    }

    /// The same, settled to `settle` in place of [`Options::settle`]. `None`: the watcher stopped it, and there is no new
    /// snapshot; what was pushed is durable.
    ///
    /// # Errors
    /// Those of [`Writer::publish`].
    #[doc(hidden)]
    pub fn publish_watched(
        &mut self,
        settle: Option<Goal>,
        watcher: Watcher,
    ) -> Result<Option<Snapshot>> {
        self.checkpoint()?;
        self.progress.check_verified(self.session.dir())?;
        let making = SnapshotOptions {
            keep: self.options.keep_snapshots,
            rank_bytes: self.options.rank_bytes,
            settle: self.session.settling(settle, watcher),
        };
        // It only saves time, and where there is no room for both, the ranking has it.
        let _ = self.session.keep_index();
        let view = self.session.view()?;
        let publish = |disk: &dyn Disk| snapshot::publish(disk, &view, &making);
        let published = match publish(&**self.session.disk()) {
            Err(error) if self.session.makes_room(&error)? => publish(&**self.session.disk()),
            published => published,
        };
        if published?.is_none() {
            return Ok(None);
        }
        self.session.release_rows()?;
        Snapshot::latest(&**self.session.disk(), self.session.dir()).map(Some)
    }

    /// Returns whether links of pages are kept. They are given up where they don't fit.
    pub fn rows_retention(&self) -> &Retention {
        self.session.engine.storage().rows_retention()
    }

    /// Applies the records that wait.
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
        let mut names = self.resolver.begin(batch);
        let session = &mut self.session;
        session.find_fits();
        for (at, entry) in batch.entries.iter().enumerate() {
            let room = session.check_room(&names, entry.names_end);
            room.inspect_err(|_| self.ended = Some(EndReason::Full))?;
            let applied = session.apply(&mut names, at);
            applied.inspect_err(|_| self.ended = Some(EndReason::Failed))?;
            self.changed = true;
        }
        Ok(())
    }

    fn no_more(&self) -> Error {
        Error::Conflict(format!(
            "{}: this writer takes no more records, because an earlier record or checkpoint failed; open the store \
            again",
            self.session.dir().display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    /// The limit of page numbers in rows ends an ingest before it is met, with its links kept; without links it goes on.
    #[test]
    fn a_store_that_keeps_links_ends_at_their_page_numbers() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("store");
        let record = |from: &str, to: &str| Record {
            url: format!("http://{from}.example/").into_bytes().into(),
            links: vec![crate::Link::to(
                format!("http://{to}.example/").into_bytes(),
            )],
            ..Record::default()
        };
        let mut writer = Writer::open(&dir, &Options::default()).unwrap();
        writer.session.engine.storage_mut().limit_row_pages(3);
        writer.push(&record("a", "b")).unwrap();
        assert_eq!(writer.session.nears_page_limit(), None);
        writer.push(&record("b", "c")).unwrap();
        writer.checkpoint().unwrap();
        assert_eq!(writer.session.nears_page_limit(), Some(3));
        assert_eq!(writer.session.nears_page_limit(), None);
        let error = writer
            .push(&record("c", "d"))
            .and_then(|_| writer.checkpoint().map(drop))
            .unwrap_err();
        let Error::TooManyPages { limit, keeps_links } = error else {
            panic!("{error}");
        };
        assert_eq!((limit, keeps_links), (3, true));
        assert!(error.to_string().contains("32 bits"), "{error}");
        drop(writer);
        let without = Options {
            keep_rows: KeepRows::None,
            ..Options::default()
        };
        let mut writer = Writer::open(&dir, &without).unwrap();
        writer.push(&record("c", "d")).unwrap();
        writer.checkpoint().unwrap();
        assert_eq!(writer.session.nears_page_limit(), None);
        assert_eq!(writer.session.pages(), 4);
    }

    /// Names that are admitted get the next numbers, or their own, and no row; where they do not all fit, none is admitted.
    #[test]
    fn names_are_admitted_all_or_none() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("store");
        let mut writer = Writer::open(&dir, &Options::default()).unwrap();
        writer
            .push(&Record::new("http://a.example/", ["http://b.example/"]))
            .unwrap();
        let batch_of = |writer: &Writer, hosts: &[&str]| {
            let fingerprints = writer.rules().key.fingerprints();
            let mut batch = Batch::default();
            for host in hosts {
                let name = format!("http://{host}.example/").into_bytes();
                batch.push_name(&name, fingerprints.of(&name));
            }
            batch
        };
        let batch = batch_of(&writer, &["c", "b", "d", "c"]);
        let pages: Vec<u64> = writer
            .admit(&batch)
            .unwrap()
            .iter()
            .map(|page| page.0)
            .collect();
        assert_eq!(pages, [2, 1, 3, 2], "behind the records that waited");
        let generation = writer.checkpoint().unwrap();
        assert_eq!(writer.counters().records, 1);
        // What is known changes nothing.
        let batch = batch_of(&writer, &["d", "a"]);
        writer.admit(&batch).unwrap();
        assert_eq!(writer.checkpoint().unwrap(), generation);

        writer.session.engine.storage_mut().limit_row_pages(5);
        let batch = batch_of(&writer, &["e", "a", "f"]);
        let error = writer.admit(&batch).unwrap_err();
        assert!(
            matches!(error, Error::TooManyPages { limit: 5, .. }),
            "{error}"
        );
        assert!(writer.admit(&batch).is_err(), "it takes no more");
        assert_eq!(
            (writer.checkpoint().unwrap(), writer.session.pages()),
            (generation, 4)
        );
        drop(writer);
        let writer = Writer::open(&dir, &Options::default()).unwrap();
        let view = writer.into_view().unwrap();
        assert!(view.is_writers() && view.verify().unwrap().pages == 4);
        let error = Writer::open(&dir, &Options::default()).err().unwrap();
        assert!(
            matches!(error, Error::Busy { .. }),
            "its lock goes on: {error}"
        );
    }
}
