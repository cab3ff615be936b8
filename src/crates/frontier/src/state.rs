//! The frontier's state: URLs in one file of redb, and its queues in memory.
//!
//! **Durable** when a call returns: URLs that were put, and what became of them (fetched, when to fetch again,
//! completed); delays, blocks and limits of queues; whether it is active. Not durable: which URLs are handed out and when a
//! queue was last asked; after a crash those may be handed out again. A power cut during a call leaves the state before it.
//!
//! **After a failure** (a full disk, a page that cannot be read) the file is closed, for redb refuses all work on a file
//! that it could not read or write once. The next call opens it again and counts from it. A file on whose pages redb panics
//! is not opened again.
//!
//! **Bounded**: URLs and queues by [`FrontierLimits`](super::FrontierLimits). In memory are the queues, some hundred bytes each, not their
//! URLs.
//!
//! Time is an argument ([`Now`]): dates are of the system's clock, which may be set; delays and leases are times that pass.

mod handing_out;
mod settings;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use handing_out::Leases;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, WriteTransaction};

use super::file;
use super::item::{Item, Key, Order, UrlState};
use super::queue::{Queue, count_in};
use super::tables::{All, FACTS, QUEUES, Tables, URLS, VERSION, failed};
use super::{Fence, Fenced};
use super::{FrontierLimits, Now};
use cashrank_serve::{Problem, Result};

/// Default delay between two requests of a queue, in seconds.
const DELAY: u32 = 1;
/// Pause before another attempt to open a file.
const OPEN_AGAIN: Duration = Duration::from_secs(1);

/// URL to put.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Put {
    pub(crate) url: String,
    /// URL in the form in which pages of the store are named.
    pub(crate) canonical: String,
    pub(crate) crawl: String,
    pub(crate) queue: String,
    pub(crate) metadata: Vec<u8>,
    /// `None` for a discovered URL; for a fetched one, the time from which it is fetched again, in seconds since 1970,
    /// or 0 for never.
    pub(crate) known: Option<u64>,
}

/// Outcome of putting a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ack {
    Ok,
    Skipped,
    Failed,
}

/// URL that is handed out, or listed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UrlEntry {
    pub(crate) key: String,
    pub(crate) item: Item,
}

/// Request for URLs.
#[derive(Debug, Clone, Default)]
pub(crate) struct UrlQuery {
    /// Name of the crawl; `None`: any.
    pub(crate) crawl: Option<String>,
    /// Key of the queue; `None`: any.
    pub(crate) queue: Option<String>,
    /// Maximum number of queues.
    pub(crate) queues: usize,
    /// Maximum number of URLs per queue.
    pub(crate) per_queue: usize,
    /// Maximum number of URLs.
    pub(crate) urls: usize,
    /// Length, including metadata, from which on no more URLs are added, in bytes.
    pub(crate) bytes: usize,
    /// Seconds until the URLs may be handed out again.
    pub(crate) lease: u64,
}

/// Newest list of scores.
#[derive(Default)]
struct Scores {
    /// Number of the list.
    list: u64,
    /// Scores of its pages.
    of: HashMap<String, f64>,
}

pub(crate) struct State {
    fence: Arc<Fence>,
    /// Open database; `None` if it must be opened again.
    db: Option<Fenced<Database>>,
    open_not_before: Option<Instant>,
    limits: FrontierLimits,
    queues: BTreeMap<String, Queue>,
    /// Queues with available URLs, best first.
    order: BTreeSet<(Order, String)>,
    pub(crate) is_active: bool,
    pub(crate) usual_delay: u32,
    next_number: u64,
    urls: u64,
    scores: Scores,
    leases: Leases,
}

impl State {
    /// Opens the file, or creates it.
    pub(crate) fn open(path: PathBuf, limits: FrontierLimits) -> Result<State> {
        let mut state = State {
            fence: Fence::new(path, |path, what| {
                Problem::Failed(format!("{}: damaged: {what}", path.display()))
            }),
            db: None,
            open_not_before: None,
            limits,
            queues: BTreeMap::new(),
            order: BTreeSet::new(),
            is_active: true,
            usual_delay: DELAY,
            next_number: 0,
            urls: 0,
            scores: Scores::default(),
            leases: Leases::default(),
        };
        state.run(|_, _| Ok(()))?;
        Ok(state)
    }

    /// Runs `work` on the file. On failure the file is closed, since the state in memory may then differ from it.
    fn run<T>(&mut self, work: impl FnOnce(&mut State, &Database) -> Result<T>) -> Result<T> {
        let db = match self.db.take() {
            Some(db) => db,
            None => self.reopen()?,
        };
        let done = db.with(|db| work(self, db))?;
        self.db = Some(db);
        Ok(done)
    }

    /// Opens the file, and reads the state in memory from it, except for the times at which queues were last served.
    fn reopen(&mut self) -> Result<Fenced<Database>> {
        if self.open_not_before.is_some_and(|at| Instant::now() < at) {
            return Err(Problem::Later(
                "the frontier's file could not be opened: it will be tried again soon".into(),
            ));
        }
        self.open_not_before = Some(Instant::now() + OPEN_AGAIN);
        let db = file::open(&self.fence, self.limits.cache_bytes)?;
        for queue in self.queues.values_mut() {
            *queue = Queue {
                served: queue.served,
                ..Queue::default()
            };
        }
        (self.urls, self.next_number) = (0, 0);
        db.with(|db| {
            self.begin(db)?;
            self.count(db)
        })?;
        self.queues
            .retain(|_, queue| !queue.is_empty() || !queue.is_plain());
        self.open_not_before = None;
        Ok(db)
    }

    /// Reads the global settings; creates all tables.
    fn begin(&mut self, db: &Database) -> Result<()> {
        let transaction = write(db)?;
        {
            let _ = Tables::open(&transaction)?;
            let mut facts = transaction.open_table(FACTS).map_err(failed)?;
            let fact = |name: &str| -> Result<Option<u64>> {
                Ok(facts.get(name).map_err(failed)?.map(|value| value.value()))
            };
            self.is_active = fact("inactive")?.unwrap_or(0) == 0;
            self.usual_delay = fact("delay")?.map_or(DELAY, |delay| delay as u32);
            self.scores.list = fact("list")?.unwrap_or(0);
            facts.insert("version", VERSION).map_err(failed)?;
            let queues = transaction.open_table(QUEUES).map_err(failed)?;
            for entry in queues.iter().map_err(failed)? {
                let (name, row) = entry.map_err(failed)?;
                let (delay, blocked_until, limit) = row.value();
                let queue = self.queues.entry(name.value().into()).or_default();
                queue.delay = delay.checked_sub(1).map(|delay| delay as u32);
                queue.blocked_until = blocked_until;
                queue.limit = limit as u32;
            }
        }
        transaction.commit().map_err(failed)
    }

    /// Counts the URLs of each queue.
    fn count(&mut self, db: &Database) -> Result<()> {
        let reading = db.begin_read().map_err(failed)?;
        let urls = reading.open_table(URLS).map_err(failed)?;
        for entry in urls.iter().map_err(failed)? {
            let (key, bytes) = entry.map_err(failed)?;
            let item = Item::parse(bytes.value())?;
            let name = Key::parse(key.value())?.queue_name();
            let queue = self.queues.entry(name).or_default();
            count_in(queue, &item, 1);
            if item.place == UrlState::Leased {
                self.leases.until = self.leases.until.max(item.date);
            }
            if item.place == UrlState::Ready && queue.head.is_none_or(|head| item.order < head) {
                queue.head = Some(item.order);
            }
            self.urls += 1;
            self.next_number = self.next_number.max(item.number + 1);
        }
        for queue in self.queues.values_mut() {
            queue.place = queue.head.map(|head| queue.place_of(head));
        }
        let places = self.queues.iter();
        let places = places.filter_map(|(name, queue)| Some((queue.place?, name.clone())));
        self.order = places.collect();
        Ok(())
    }

    /// Updates the heads of these queues, and removes empty ones.
    fn settle(&mut self, tables: &Tables<'_>, touched: &HashSet<String>) -> Result<()> {
        for name in touched {
            let Some(queue) = self.queues.get_mut(name) else {
                continue;
            };
            let head = tables.first(name, 1)?.pop().map(|(order, _)| order);
            let place = head.map(|head| queue.place_of(head));
            if place != queue.place {
                if let Some(old) = queue.place {
                    self.order.remove(&(old, name.clone()));
                }
                if let Some(new) = place {
                    self.order.insert((new, name.clone()));
                }
            }
            (queue.head, queue.place) = (head, place);
            if queue.is_empty() && queue.is_plain() {
                self.queues.remove(name);
            }
        }
        Ok(())
    }

    /// Puts URLs, in order; all of them are durable when it returns. On error nothing changes on disk.
    pub(crate) fn put(&mut self, puts: &[Put], now: Now) -> Result<Vec<Ack>> {
        if puts.is_empty() {
            return Ok(Vec::new());
        }
        self.run(|state, db| state.put_in(db, puts, now))
    }

    fn put_in(&mut self, db: &Database, puts: &[Put], now: Now) -> Result<Vec<Ack>> {
        let transaction = write(db)?;
        let mut acks = Vec::with_capacity(puts.len());
        {
            let mut tables = Tables::open(&transaction)?;
            let mut touched = HashSet::new();
            for put in puts {
                acks.push(self.put_one(&mut tables, put, now, &mut touched)?);
            }
            self.settle(&tables, &touched)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(acks)
    }

    fn put_one(
        &mut self,
        tables: &mut Tables<'_>,
        put: &Put,
        now: Now,
        touched: &mut HashSet<String>,
    ) -> Result<Ack> {
        let limits = &self.limits;
        let parts = [&put.url, &put.canonical, &put.crawl, &put.queue];
        if put.url.is_empty()
            || put.queue.is_empty()
            || parts.iter().any(|part| part.contains('\0'))
            || put.url.len().max(put.canonical.len()) > limits.url_bytes
            || put.crawl.len().max(put.queue.len()) > limits.name_bytes
            || put.metadata.len() > limits.metadata_bytes
        {
            return Ok(Ack::Skipped);
        }
        let key = Key::new(&put.canonical, &put.crawl, &put.queue, &put.url);
        let (name, key) = (key.queue_name(), key.text());
        let old = tables.get(&key)?;
        if old.is_some() && put.known.is_none() {
            return Ok(Ack::Skipped);
        }
        if old.is_none()
            && (self.urls >= limits.urls
                || !self.queues.contains_key(&name) && self.queues.len() as u64 >= limits.queues)
        {
            return Ok(Ack::Failed);
        }
        let now = now.unix_s;
        let (number, created) = match &old {
            Some(old) => (old.number, old.created),
            None => {
                self.next_number += 1;
                (self.next_number - 1, now)
            }
        };
        let scored = self.scores.of.get(&put.canonical);
        let item = Item {
            place: match put.known {
                Some(0) => UrlState::Completed,
                Some(date) if date > now => UrlState::Waiting,
                _ => UrlState::Ready,
            },
            fetched: put.known.is_some(),
            number,
            created,
            date: put.known.unwrap_or(0),
            order: match scored {
                Some(score) => Order::scored(self.scores.list, *score, number),
                None => Order::unscored(number),
            },
            metadata: put.metadata.clone(),
        };
        let queue = self.queues.entry(name.clone()).or_default();
        if let Some(old) = &old {
            count_in(queue, old, -1);
            tables.lift(&name, old)?;
        } else {
            self.urls += 1;
        }
        count_in(queue, &item, 1);
        tables.lay(&name, &key, &item)?;
        touched.insert(name);
        Ok(Ack::Ok)
    }
}

fn write(db: &Database) -> Result<WriteTransaction> {
    db.begin_write().map_err(failed)
}

fn not_there() -> Problem {
    Problem::Failed("the frontier's file is damaged: a URL that has a place is not there".into())
}

impl State {
    /// Begins a new list of scores, in which pages that are put from now on are looked up.
    pub(crate) fn begin_list(&mut self, scores: HashMap<String, f64>) -> Result<()> {
        self.scores.list += 1;
        self.scores.of = scores;
        self.set_fact("list", self.scores.list)
    }

    /// Gives these pages of the newest list their new positions, in one transaction.
    pub(crate) fn reorder<'a>(&mut self, pages: impl Iterator<Item = &'a str>) -> Result<()> {
        self.run(|state, db| state.reorder_in(db, pages))
    }

    fn reorder_in<'a>(
        &mut self,
        db: &Database,
        pages: impl Iterator<Item = &'a str>,
    ) -> Result<()> {
        let mut transaction = write(db)?;
        // The next list has scores again.
        transaction
            .set_durability(Durability::None)
            .map_err(|error| Problem::Failed(format!("the frontier's file: {error}")))?;
        {
            let mut tables = Tables::open(&transaction)?;
            let mut touched = HashSet::new();
            for page in pages {
                let Some(&score) = self.scores.of.get(page) else {
                    continue;
                };
                for (key, mut item) in entries_of(&tables, page)? {
                    // It gets a position when it is put again.
                    if item.place == UrlState::Completed {
                        continue;
                    }
                    let name = Key::parse(&key)?.queue_name();
                    tables.lift(&name, &item)?;
                    item.order = Order::scored(self.scores.list, score, item.number);
                    tables.lay(&name, &key, &item)?;
                    touched.insert(name);
                }
            }
            self.settle(&tables, &touched)?;
        }
        transaction.commit().map_err(failed)
    }
}

/// Returns the entries of a page, in any queue.
fn entries_of(tables: &Tables<'_>, page: &str) -> Result<Vec<(String, Item)>> {
    let (from, to) = (format!("{page}\0"), format!("{page}\x01"));
    let mut found = Vec::new();
    for entry in tables.urls.range(&*from..&*to).map_err(failed)? {
        let (key, bytes) = entry.map_err(failed)?;
        found.push((key.value().to_owned(), Item::parse(bytes.value())?));
    }
    Ok(found)
}

impl State {
    /// Returns a URL, if it is there.
    pub(crate) fn find(&mut self, key: &str) -> Result<Option<UrlEntry>> {
        self.run(|_, db| {
            let reading = db.begin_read().map_err(failed)?;
            let urls = reading.open_table(URLS).map_err(failed)?;
            let Some(bytes) = urls.get(key).map_err(failed)? else {
                return Ok(None);
            };
            Ok(Some(UrlEntry {
                key: key.into(),
                item: Item::parse(bytes.value())?,
            }))
        })
    }

    /// Returns all URLs as they are now, in the order of their keys. Needs no lock afterwards: see [`All`].
    pub(crate) fn all(&mut self) -> Result<All> {
        let fence = self.fence.clone();
        self.run(|_, db| fence.hold(|| db.begin_read().map_err(failed)))
            .map(All)
    }

    /// Removes URLs by key; returns how many there were.
    pub(crate) fn remove(&mut self, keys: &[String]) -> Result<u64> {
        self.run(|state, db| state.remove_in(db, keys))
    }

    fn remove_in(&mut self, db: &Database, keys: &[String]) -> Result<u64> {
        let mut removed = 0;
        let transaction = write(db)?;
        {
            let mut tables = Tables::open(&transaction)?;
            let mut touched = HashSet::new();
            for key in keys {
                let Some(item) = tables.get(key)? else {
                    continue;
                };
                let name = Key::parse(key)?.queue_name();
                tables.lift(&name, &item)?;
                tables.urls.remove(&**key).map_err(failed)?;
                if let Some(queue) = self.queues.get_mut(&name) {
                    count_in(queue, &item, -1);
                }
                self.urls = self.urls.saturating_sub(1);
                removed += 1;
                touched.insert(name);
            }
            self.settle(&tables, &touched)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(removed)
    }
}
