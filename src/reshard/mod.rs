//! A store made again with another number of partitions, out of what it keeps: no input is read again.
//!
//! **What is carried over exactly**: pages with their numbers and names, the last links of each, what fetches found (times,
//! visits, failures, changes), counts of records, settings, progress through inputs, a spool, and what importance was
//! settled to, if that is of the last checkpoint. So the same command continues where it stopped, and the next ranking is of
//! the same graph.
//!
//! **What is not**: snapshots, whose files name parts of the old store; superseded links, which nothing reads; and cash,
//! history and marks. The new store's cash is that of one visit of each page with the links that are kept, in about the order in which they were
//! read (`store/crawled.rs`); with epochs these are the first records of one that is not over, so that what goes to pages of other
//! partitions is on its way. Where a ranking is read from the history (`window`, `max_age`), a store stays as it is; so it does
//! inside a pass after the first, whose order is another in the new store, and where pages without a record were visited.
//!
//! The new store is made aside (`unfinished`) and gets its name once it is whole. The old one is locked meanwhile, and not
//! changed, but for a settled base that it still owes.
//!
//! Names are read once to deal pages out (`deal`), and then for each lot of new partitions that are in memory at a time
//! names, rows and facts. Each partition (`part`) is an engine of its own, as in an ingest.

mod base;
mod deal;
mod part;
mod unfinished;
mod watch;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::{Disk, allow_open_files};
use crate::engine::{Counters, Engine, HistoryView, check_funds};
use crate::formats::Format;
use crate::memory::{Need, PartsInMemory, log_rows};
use crate::model::{Limits, Time};
use crate::rank::Goal;
use crate::rows::{Rows, Stop};
use crate::session::WRITTEN_FILES;
use crate::snapshot::{Residency, Settle, make_owed_at_rest};
use crate::store::all::AllRows;
use crate::store::base::BaseState;
use crate::store::rows::KeepRows;
use crate::store::{
    PartOf, Partitions, Place, Progress, Settings, Store, View, checkpoint, copy_spool, keep_index,
    make_partitions, make_with_key, open_view_to_publish, partition_dir,
};
use crate::threads::dealt;
use crate::{Error, Result};
use deal::{A_PAGE, Deal, LOOK, unnamed};
use part::Part;
use unfinished::Unfinished;

pub use watch::{Stage, Watch};

/// Names, or links, that are queued for all partitions together.
const QUEUED: usize = 1 << 20;

/// A store, and what is to become of it.
#[derive(Debug)]
pub struct Job {
    /// The store.
    pub store: PathBuf,
    /// Where the new one is to be; there must be nothing.
    pub to: PathBuf,
    /// Partitions of the new one; with epochs as the store has them, if nothing is said of these.
    pub partitions: Partitions,
    /// How many of these are in memory at a time; `None`: all. The links are read once for each such lot.
    pub resident: Option<NonZeroUsize>,
    /// Threads that fill partitions.
    pub threads: usize,
    /// Most bytes of memory.
    pub memory: Option<u64>,
    /// Who watches.
    pub watch: Arc<Watch>,
}

/// A new store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resharded {
    /// Partitions that the old store has.
    pub before: u32,
    /// Pages,
    pub pages: u64,
    /// those of them that have links, or were found gone,
    pub rows: u64,
    /// and links.
    pub links: u64,
    /// Whether the next ranking starts from what importance was settled to.
    pub settled: bool,
}

/// See the head of the file. `None`: it was stopped, and nothing was made.
///
/// # Errors
/// [`Error::Usage`], [`Error::Conflict`]: it is refused, and why; [`Error::Busy`]; those of reading and writing.
pub fn reshard(disk: &Arc<dyn Disk>, job: &Job) -> Result<Option<Resharded>> {
    let view = open_view_to_publish(&**disk, &job.store)?;
    let settings = new_settings(&view, job.partitions)?;
    let settle = Settle {
        residency: Residency {
            memory: job.memory,
            ..Residency::default()
        },
        threads: job.threads,
        ..Settle::until(Goal::default())
    };
    let (view, _) = make_owed_at_rest(&**disk, view, &settle)?;
    // Without a slash at the end, which would put things inside.
    let to: PathBuf = job.to.components().collect();
    let unfinished = Unfinished::begin(&**disk, &to)?;
    let new = New {
        disk,
        view: &view,
        dir: unfinished.store(),
        settings,
        job,
    };
    let mut done = None;
    let made = new.make().map(|made| done = Some(made));
    match Stop::is_whole(made) {
        Ok(true) => unfinished.put(&to)?,
        Ok(false) => unfinished.give_up(),
        Err(error) => {
            unfinished.give_up();
            return Err(error);
        }
    }
    Ok(done)
}

/// The settings of a store with so many partitions, if it can become one.
fn new_settings(view: &View, mut partitions: Partitions) -> Result<Settings> {
    if partitions.split().is_some() {
        partitions.epoch = partitions.epoch.or(view.settings().partitions.epoch);
    }
    let settings = Settings {
        partitions,
        ..view.settings().clone()
    };
    let dir = view.dir().display();
    let refused = |why: String| Err(Error::Conflict(format!("{dir}: {why}")));
    if settings == *view.settings() {
        let count = partitions.count;
        return Err(Error::Usage(format!(
            "`partitions` {count}: {dir} has as many already"
        )));
    }
    if HistoryView::totals(view).pages == 0 {
        return refused(
            "it has no pages yet: let an ingest make a checkpoint first, or make a new store"
                .into(),
        );
    }
    if !settings.config.is_settled() {
        return refused(
            "its rankings are read from the cash that pages handed on (`window`, `max_age`), which is not carried over to \
             another number of `partitions`: ingest the inputs into a new store"
                .into(),
        );
    }
    let progress = view.progress();
    if let Some(why) = not_of_passes(progress, partitions) {
        return refused(why.into());
    }
    if partitions.split().is_none() {
        return Ok(settings);
    }
    let unread = progress.inputs.last().filter(|input| input.end.is_none());
    if let Some(input) = unread.filter(|input| input.format == Format::Cza.name()) {
        return refused(format!(
            "{} is a crawl archive, which a store with `partitions` does not read: let the ingest end first",
            input.name
        ));
    }
    Ok(settings)
}

/// Why a store with this progress cannot become one with such partitions, because of its passes.
fn not_of_passes(progress: &Progress, partitions: Partitions) -> Option<&'static str> {
    let begun = progress.input > 0 || progress.place != Place::start();
    if progress.complete {
        Some(
            "it was made with `complete`, and visits of pages without a record are not carried over: ingest the inputs into \
             a new store",
        )
    } else if progress.repeat == 1 {
        None
    } else if partitions.split().is_some() && partitions.epoch.is_none() {
        Some(
            "it was made with `repeat`, which goes by the cash that pages hand on: give `epoch`, so that it goes from \
             partition to partition",
        )
    } else if progress.pass > 1 && !progress.finished && begun {
        Some(
            "it is inside a pass (`repeat`), which would go on in another order: let the ingest end first",
        )
    } else {
        None
    }
}

/// The new store while it is made.
struct New<'j> {
    disk: &'j Arc<dyn Disk>,
    view: &'j View,
    dir: PathBuf,
    settings: Settings,
    job: &'j Job,
}

/// What there is of a partition that was written.
struct Filled {
    commit: (u64, u128),
    /// What it has of the cash, where that crosses.
    funds: u128,
    visited: u64,
    home: base::Home,
}

impl New<'_> {
    fn count(&self) -> u32 {
        self.settings.partitions.count
    }

    fn watch(&self) -> &Watch {
        &self.job.watch
    }

    fn pages(&self) -> u64 {
        HistoryView::totals(self.view).pages
    }

    fn make(&self) -> Result<Resharded, Stop> {
        let rows = self.view.all_rows(&**self.disk)?;
        let count = self.count();
        self.check_pages()?;
        allow_open_files(WRITTEN_FILES * self.lot() as u64, count)?;
        make_with_key(&**self.disk, &self.dir, &self.settings, self.view.key())?;
        let settled = match self.settings.partitions.split() {
            None => self.whole(&rows)?,
            Some(_) => self.split(&rows)?,
        };
        let stores = (self.view.dir(), &*self.dir);
        copy_spool(&**self.disk, stores, self.view.progress())?;
        let kept = rows.kept();
        Ok(Resharded {
            before: self.view.settings().partitions.count,
            pages: self.pages(),
            rows: kept.rows - kept.superseded,
            links: rows.links(),
            settled,
        })
    }

    /// Opens the store, which was just made.
    fn open(&self, keep: KeepRows) -> Result<Engine<Store>> {
        let limits = self.limits();
        let opened = Store::open(
            self.disk.clone(),
            &self.dir,
            &self.settings,
            &limits,
            keep,
            false,
        )?;
        Ok(opened.engine)
    }

    fn limits(&self) -> Limits {
        Limits {
            pages: self.pages(),
            // What it all needs is found here.
            memory: None,
            ..self.settings.limits()
        }
    }

    /// Fills a store without partitions. Whether it has a base.
    fn whole(&self, rows: &AllRows) -> Result<bool, Stop> {
        let deal = Deal::whole(self.pages());
        let mut part = Part::new(0, self.open(KeepRows::Usual(u64::MAX))?);
        self.fill(&deal, rows, std::slice::from_mut(&mut part))?;
        self.watch().begin(Stage::Committing, 1)?;
        part.commit(self.counted(), self.view.progress())?;
        keep_index(&mut part.engine)?;
        let home = base::Home::of(&part.engine)?;
        let number = part.engine.storage().generation();
        let base = base::Settled::read(self.view, rows, self.job.memory)?;
        let base = base.map(|base| base.write(&**self.disk, number, &deal, &[home]));
        let Some(made) = base.transpose()? else {
            return Ok(false);
        };
        let store = part.engine.storage_mut();
        store.set_base(made.first().copied().unwrap_or_default());
        store.commit_base()?;
        Ok(true)
    }

    /// Fills one with partitions: as many at a time as are to be. Whether they have bases.
    fn split(&self, rows: &AllRows) -> Result<bool, Stop> {
        let mut whole = self.open(KeepRows::None)?;
        if self.settings.partitions.epoch.is_some() {
            whole.note_admission(0)?;
        }
        make_partitions(&**self.disk, &self.dir)?;
        let deal = Deal::new(
            &**self.disk,
            (self.view, self.count()),
            &mut whole,
            self.watch(),
        )?;
        let all: Vec<u32> = (0..self.count()).collect();
        let mut filled = Vec::new();
        for numbers in all.chunks(self.lot()) {
            filled.extend(self.fill_lot(&deal, rows, numbers)?);
        }
        self.watch().begin(Stage::Committing, 1)?;
        let number = whole.storage().generation() + 1;
        let (counters, time) = self.counted();
        whole.set_visited(filled.iter().map(|part| part.visited).sum());
        if whole.ledger().joint().is_some() {
            let funds = filled.iter().map(|part| part.funds);
            check_funds(funds, self.pages()).map_err(Error::internal)?;
        }
        whole.take_over(counters, time, 0);
        let (commits, homes): (Vec<_>, Vec<_>) = filled
            .into_iter()
            .map(|part| (part.commit, part.home))
            .unzip();
        let base = base::Settled::read(self.view, rows, self.job.memory)?;
        let base = base.map(|base| base.write(&**self.disk, number, &deal, &homes));
        let bases = base.transpose()?;
        let store = whole.storage_mut();
        store.set_parts(commits);
        let has_bases = bases.is_some();
        store.set_bases(bases.unwrap_or_else(|| vec![BaseState::default(); all.len()]));
        checkpoint(&mut whole, self.view.progress())?;
        Ok(has_bases)
    }

    /// Makes the partitions of these numbers, which follow each other.
    fn fill_lot(&self, deal: &Deal, rows: &AllRows, numbers: &[u32]) -> Result<Vec<Filled>, Stop> {
        let opened = numbers.iter().map(|&number| self.open_part(number));
        let mut parts = opened.collect::<Result<Vec<Part>>>()?;
        self.fill(deal, rows, &mut parts)?;
        self.watch().begin(Stage::Committing, 1)?;
        let (counters, time) = self.counted();
        let none = Counters::default();
        let end = |_, part: &mut Part| {
            // All that matters of the counts is their sum: nobody knows which records were of whose pages.
            let counters = if part.number == 0 { counters } else { &none };
            part.commit((counters, time), &Progress::default())?;
            // It says nothing of what its store commits.
            part.engine.storage_mut().confirm(true)?;
            keep_index(&mut part.engine)?;
            let store = part.engine.storage();
            Ok(Filled {
                commit: (store.generation(), store.sum()?),
                funds: part.engine.ledger().joint().map_or(0, |joint| joint.funds),
                visited: part.engine.counters().visited,
                home: base::Home::of(&part.engine)?,
            })
        };
        Ok(dealt(self.job.threads, &mut parts, end)?)
    }

    fn open_part(&self, number: u32) -> Result<Part> {
        let part = PartOf {
            key: self.view.key(),
            generation: 0,
            sum: None,
            base: &BaseState::default(),
        };
        let opened = Store::open_part(
            self.disk.clone(),
            &partition_dir(&self.dir, number),
            &self.settings.of_partition(number),
            &self.limits(),
            KeepRows::Usual(u64::MAX),
            part,
        )?;
        Ok(Part::new(number, opened.engine))
    }

    /// What the old store counted, and the latest time there.
    fn counted(&self) -> (&Counters, Option<Time>) {
        (self.view.counters(), self.view.state().time)
    }

    /// Fills partitions whose numbers follow each other with their names, rows and facts.
    fn fill(&self, deal: &Deal, rows: &AllRows, parts: &mut [Part]) -> Result<(), Stop> {
        let config = &self.settings.config;
        let log = log_rows(config, self.job.memory) / parts.len().max(1);
        for part in &mut *parts {
            part.engine.cut_log_at(log.max(1));
        }
        let first = parts.first().map_or(0, |part| part.number);
        let of = |parts: &mut [Part], page: u32| {
            let (owner, at) = deal.place(page);
            let part = owner
                .checked_sub(first)
                .filter(|&part| (part as usize) < parts.len());
            part.map(|part| (part as usize, at))
        };
        self.fill_names(parts, &of)?;
        self.fill_rows(deal, rows, parts, &of)?;
        self.fill_facts(parts, &of)
    }

    fn fill_names(&self, parts: &mut [Part], of: &Of<'_>) -> Result<(), Stop> {
        let pages = self.pages();
        self.watch().begin(Stage::Names, pages)?;
        let names = self.view.names(&**self.disk)?;
        let mut queued = 0;
        let mut passed = 0;
        for (page, (name, print)) in (0..pages).zip(names.names().zip(names.fingerprints())) {
            let name = name?;
            if let Some((part, _)) = of(parts, page as u32) {
                parts[part].queue_name(&name, print?);
                queued += NAME + name.len();
            }
            passed = page + 1;
            if queued >= QUEUED * NAME || passed == pages {
                queued = 0;
                self.check_memory(parts)?;
                each(self.job.threads, parts, Part::admit_names)?;
            }
            if page % LOOK == 0 {
                self.watch().at(page)?;
            }
        }
        if passed == pages {
            Ok(())
        } else {
            Err(unnamed(self.view.dir(), passed, pages).into())
        }
    }

    fn fill_rows(
        &self,
        deal: &Deal,
        rows: &AllRows,
        parts: &mut [Part],
        of: &Of<'_>,
    ) -> Result<(), Stop> {
        let kept = rows.kept();
        self.watch()
            .begin(Stage::Links, kept.rows - kept.superseded)?;
        let (mut queued, mut passed) = (0, 0);
        let apply = |parts: &mut [Part]| {
            self.check_memory(parts)?;
            each(self.job.threads, parts, |part| part.apply_rows(deal))
        };
        rows.as_crawled(&mut |row| {
            if let Some((part, _)) = of(parts, row.page) {
                parts[part].queue_row(&row);
                queued += 1 + row.targets.len();
            }
            if queued >= QUEUED {
                queued = 0;
                apply(parts)?;
            }
            passed += 1;
            if passed % LOOK == 0 {
                self.watch().at(passed)?;
            }
            Ok(())
        })?;
        Ok(apply(parts)?)
    }

    fn fill_facts(&self, parts: &mut [Part], of: &Of<'_>) -> Result<(), Stop> {
        self.watch().begin(Stage::Facts, self.pages())?;
        parts.iter_mut().try_for_each(Part::begin_facts)?;
        let mut next = HistoryView::rows(self.view, 0, HistoryView::window_start(self.view))?;
        let mut rows = Vec::new();
        loop {
            rows.clear();
            next(&mut rows)?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            let passed = last.page;
            for &row in &rows {
                if let Some((part, at)) = of(parts, row.page as u32) {
                    parts[part].add_facts(at, row, self.view.dir())?;
                }
            }
            self.watch().at(passed)?;
        }
    }

    /// How many partitions are in memory at a time.
    fn lot(&self) -> usize {
        let all = self.count() as usize;
        self.job.resident.map_or(all, |most| all.min(most.get()))
    }

    /// Refuses to begin where there is less memory than their own pages need.
    fn check_pages(&self) -> Result<()> {
        let lot = self.lot() as u64;
        let pages = self.pages() * lot / u64::from(self.count());
        let config = &self.settings.config;
        self.check_need(Need::to_resume_parts(config, lot as u32, pages, pages))
    }

    /// Refuses to continue where partitions need more memory than there is.
    fn check_memory(&self, parts: &[Part]) -> Result<()> {
        let share = PartsInMemory {
            parts: parts.iter().map(Part::size).collect(),
            resident: parts.len(),
            threads: 1,
        };
        let local = share.parts.iter().map(|(pages, _)| pages).sum();
        let (config, memory) = (&self.settings.config, self.job.memory);
        self.check_need(Need::of_parts(config, &[share], (local, local), memory))
    }

    fn check_need(&self, need: Need) -> Result<()> {
        let known: u64 = self.view.block_pages().iter().map(|(pages, _)| pages).sum();
        // Old partitions have the numbers of all pages that they know.
        let need = need.total() + self.pages() * A_PAGE + known * 4;
        match self.job.memory {
            Some(budget) if need > budget => Err(Error::TooLarge {
                work: format!(
                    "making {} of {} partitions at a time",
                    self.lot(),
                    self.count()
                ),
                need,
                budget,
                instead: "make fewer at a time by `resident`",
            }),
            _ => Ok(()),
        }
    }
}

/// Which of some partitions has a page, and under which number.
type Of<'f> = dyn Fn(&mut [Part], u32) -> Option<(usize, u32)> + 'f;

/// Bytes that a queued name takes beside its text.
const NAME: usize = 20;

/// Does something with each, on so many threads.
fn each(
    threads: usize,
    parts: &mut [Part],
    work: impl Fn(&mut Part) -> Result<()> + Sync,
) -> Result<()> {
    dealt(threads, parts, |_, part| work(part)).map(drop)
}
