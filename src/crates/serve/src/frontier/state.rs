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

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redb::{Database, Durability, ReadableDatabase, ReadableTable, WriteTransaction};

use super::file::{self, Fence, Fenced};
use super::item::{Item, Key, Order, UrlState, queue_name};
use super::queue::{Queue, count_in};
use super::tables::{All, FACTS, QUEUES, Tables, URLS, VERSION, failed};
use super::{FrontierLimits, Now};
use crate::backend::{Problem, Result};

/// Seconds between two answers of a queue of which nothing else is said.
const DELAY: u32 = 1;
/// URLs whose date has come that one call moves.
const DUE_MOST: usize = 10_000;
/// Calls that hand URLs out between two that make durable that they did.
const LEASES_BETWEEN: u32 = 1_000;
/// By how many seconds the system's clock may be off from the time that passed before leases follow it.
const CLOCK_OFF: i64 = 1;
/// How soon after a file could not be opened it is tried again.
const OPEN_AGAIN: Duration = Duration::from_secs(1);

/// A URL that is put.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Put {
    pub(crate) url: String,
    /// The URL in the form that pages of the store are named by.
    pub(crate) canonical: String,
    pub(crate) crawl: String,
    pub(crate) queue: String,
    pub(crate) metadata: Vec<u8>,
    /// `None`: it was discovered. Else it was fetched, and is to be fetched again from this date on, in seconds since
    /// 1970; 0: never.
    pub(crate) known: Option<u64>,
}

/// What became of a URL that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ack {
    Ok,
    Skipped,
    Failed,
}

/// A URL that is handed out, or told of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    pub(crate) key: String,
    pub(crate) item: Item,
}

/// Which URLs are asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Of this crawl; `None`: of any.
    pub(crate) crawl: Option<String>,
    /// Of this queue; `None`: of any.
    pub(crate) queue: Option<String>,
    /// At most so many queues.
    pub(crate) queues: usize,
    /// At most so many URLs of each.
    pub(crate) per_queue: usize,
    /// At most so many URLs.
    pub(crate) urls: usize,
    /// No more once they have so many bytes, metadata counted.
    pub(crate) bytes: usize,
    /// Seconds until they may be handed out again.
    pub(crate) lease: u64,
}

pub(crate) struct State {
    fence: Arc<Fence>,
    /// `None`: it is to be opened again.
    db: Option<Fenced<Database>>,
    open_not_before: Option<Instant>,
    limits: FrontierLimits,
    queues: BTreeMap<String, Queue>,
    /// Queues that have something ready, best first.
    order: BTreeSet<(Order, String)>,
    pub(crate) is_active: bool,
    pub(crate) usual_delay: u32,
    next_number: u64,
    urls: u64,
    /// The number of the newest list of scores.
    list: u64,
    scores: HashMap<String, f64>,
    /// Calls that handed URLs out.
    leases: u32,
    /// No lease is longer than until this date.
    leased_until: u64,
    /// By how many seconds the system's clock was ahead of the time that passed when URLs were last handed out.
    ahead: Option<i64>,
}

impl State {
    /// Opens the file, or makes it.
    pub(crate) fn open(path: PathBuf, limits: FrontierLimits) -> Result<State> {
        let mut state = State {
            fence: Fence::new(path),
            db: None,
            open_not_before: None,
            limits,
            queues: BTreeMap::new(),
            order: BTreeSet::new(),
            is_active: true,
            usual_delay: DELAY,
            next_number: 0,
            urls: 0,
            list: 0,
            scores: HashMap::new(),
            leases: 0,
            leased_until: 0,
            ahead: None,
        };
        state.run(|_, _| Ok(()))?;
        Ok(state)
    }

    /// Works on the file. After a failure it is closed: what is in memory may then differ from it.
    fn run<T>(&mut self, work: impl FnOnce(&mut State, &Database) -> Result<T>) -> Result<T> {
        let db = match self.db.take() {
            Some(db) => db,
            None => self.reopen()?,
        };
        let done = db.with(|db| work(self, db))?;
        self.db = Some(db);
        Ok(done)
    }

    /// Opens the file, and reads from it what is in memory, but for when queues were last served.
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

    /// Reads what is said once; makes all tables.
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
            self.list = fact("list")?.unwrap_or(0);
            facts.insert("version", VERSION).map_err(failed)?;
            let queues = transaction.open_table(QUEUES).map_err(failed)?;
            for entry in queues.iter().map_err(failed)? {
                let (name, told) = entry.map_err(failed)?;
                let (delay, blocked_until, limit) = told.value();
                let queue = self.queues.entry(name.value().into()).or_default();
                queue.delay = delay.checked_sub(1).map(|delay| delay as u32);
                queue.blocked_until = blocked_until;
                queue.limit = limit as u32;
            }
        }
        transaction.commit().map_err(failed)
    }

    /// Counts what each queue has.
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
                self.leased_until = self.leased_until.max(item.date);
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

    /// Reads where each of these queues now begins, and forgets those that have nothing left.
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

    /// Puts URLs, in order, all of them durable when it returns. An error changes nothing on disk.
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
        let scored = self.scores.get(&put.canonical);
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
                Some(score) => Order::scored(self.list, *score, number),
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

    /// Hands URLs out: queues in their order, and of each its best URLs.
    pub(crate) fn get(&mut self, wanted: &Wanted, now: Now) -> Result<Vec<Given>> {
        self.run(|state, db| state.get_in(db, wanted, now))
    }

    fn get_in(&mut self, db: &Database, wanted: &Wanted, now: Now) -> Result<Vec<Given>> {
        let mut transaction = write(db)?;
        self.leases += 1;
        let ahead = now.unix_s as i64 - (now.passed_ms / 1_000) as i64;
        let set = self.ahead.map_or(0, |before| ahead - before);
        let is_set = set.abs() > CLOCK_OFF;
        if !is_set && !self.leases.is_multiple_of(LEASES_BETWEEN) {
            transaction
                .set_durability(Durability::None)
                .map_err(|error| Problem::Failed(format!("the frontier's file: {error}")))?;
        }
        let mut taken = Taken::default();
        {
            let mut tables = Tables::open(&transaction)?;
            let mut touched = HashSet::new();
            if is_set {
                self.move_leases(&mut tables, set)?;
            }
            self.take_due(&mut tables, now.unix_s, &mut touched)?;
            self.settle(&tables, &touched)?;
            touched.clear();
            if self.is_active {
                for name in self.serving(wanted, now) {
                    if taken.given.len() >= wanted.urls || taken.bytes >= wanted.bytes {
                        break;
                    }
                    let most = wanted.per_queue.min(wanted.urls - taken.given.len());
                    self.hand_out(&mut tables, &name, wanted, most, now, &mut taken)?;
                    touched.insert(name);
                }
            }
            self.settle(&tables, &touched)?;
        }
        transaction.commit().map_err(failed)?;
        if is_set || self.ahead.is_none() {
            self.ahead = Some(ahead);
        }
        Ok(taken.given)
    }

    /// Follows the system's clock, which was set by so many seconds: a lease is a time that passes, and is kept as a date.
    fn move_leases(&mut self, tables: &mut Tables<'_>, set: i64) -> Result<()> {
        let mut leased = Vec::new();
        let until = (self.leased_until, u64::MAX);
        for entry in tables.waiting.range(..=until).map_err(failed)? {
            let key = entry.map_err(failed)?.1.value().to_owned();
            let item = tables.get(&key)?.ok_or_else(not_there)?;
            if item.place == UrlState::Leased {
                leased.push((key, item));
            }
        }
        for (key, mut item) in leased {
            let name = Key::parse(&key)?.queue_name();
            tables.lift(&name, &item)?;
            item.date = item.date.saturating_add_signed(set);
            self.leased_until = self.leased_until.max(item.date);
            tables.lay(&name, &key, &item)?;
        }
        Ok(())
    }

    /// Makes ready what has waited for long enough.
    fn take_due(
        &mut self,
        tables: &mut Tables<'_>,
        now: u64,
        touched: &mut HashSet<String>,
    ) -> Result<()> {
        let mut due = Vec::new();
        for entry in tables
            .waiting
            .range(..=(now, u64::MAX))
            .map_err(failed)?
            .take(DUE_MOST)
        {
            due.push(entry.map_err(failed)?.1.value().to_owned());
        }
        for key in due {
            let item = tables.get(&key)?.ok_or_else(not_there)?;
            let name = Key::parse(&key)?.queue_name();
            tables.lift(&name, &item)?;
            let queue = self.queues.entry(name.clone()).or_default();
            count_in(queue, &item, -1);
            let item = Item {
                place: UrlState::Ready,
                ..item
            };
            count_in(queue, &item, 1);
            tables.lay(&name, &key, &item)?;
            touched.insert(name);
        }
        Ok(())
    }

    /// The queues that serve this request, best first.
    fn serving(&self, wanted: &Wanted, now: Now) -> Vec<String> {
        let of_queue = |name: &str| match name.split_once('\0') {
            None => false,
            Some((crawl, queue)) => {
                wanted.crawl.as_deref().is_none_or(|wanted| wanted == crawl)
                    && wanted.queue.as_deref().is_none_or(|wanted| wanted == queue)
            }
        };
        let most = wanted.per_queue as u64;
        let serves = |name: &str| {
            let queue = self.queues.get(name);
            queue.is_some_and(|queue| queue.serves(now, self.usual_delay, most))
        };
        let names = self.order.iter().map(|(_, name)| name);
        let names = names.filter(|name| of_queue(name) && serves(name));
        names.take(wanted.queues).cloned().collect()
    }

    fn hand_out(
        &mut self,
        tables: &mut Tables<'_>,
        name: &str,
        wanted: &Wanted,
        most: usize,
        now: Now,
        taken: &mut Taken,
    ) -> Result<()> {
        let queue = self.queues.entry(name.to_owned()).or_default();
        for (_, key) in tables.first(name, most)? {
            if taken.bytes >= wanted.bytes {
                break;
            }
            let item = tables.get(&key)?.ok_or_else(not_there)?;
            tables.lift(name, &item)?;
            count_in(queue, &item, -1);
            let item = Item {
                place: UrlState::Leased,
                date: now.unix_s.saturating_add(wanted.lease),
                ..item
            };
            self.leased_until = self.leased_until.max(item.date);
            count_in(queue, &item, 1);
            tables.lay(name, &key, &item)?;
            queue.served = Some(now.passed_ms);
            taken.bytes += key.len() + item.metadata.len();
            taken.given.push(Given { key, item });
        }
        Ok(())
    }
}

fn write(db: &Database) -> Result<WriteTransaction> {
    db.begin_write().map_err(failed)
}

fn not_there() -> Problem {
    Problem::Failed("the frontier's file is damaged: a URL that has a place is not there".into())
}

/// What a call hands out, and its bytes.
#[derive(Default)]
struct Taken {
    given: Vec<Given>,
    bytes: usize,
}

/// Scores.
impl State {
    /// Begins a new list of scores: pages that are put from now on are looked up in it.
    pub(crate) fn begin_list(&mut self, scores: HashMap<String, f64>) -> Result<()> {
        self.list += 1;
        self.scores = scores;
        self.tell("list", self.list)
    }

    /// Gives these pages, of the newest list, their new places, in one transaction.
    pub(crate) fn reorder<'a>(&mut self, pages: impl Iterator<Item = &'a str>) -> Result<()> {
        self.run(|state, db| state.reorder_in(db, pages))
    }

    fn reorder_in<'a>(
        &mut self,
        db: &Database,
        pages: impl Iterator<Item = &'a str>,
    ) -> Result<()> {
        let mut transaction = write(db)?;
        // Scores are found again by the next list.
        transaction
            .set_durability(Durability::None)
            .map_err(|error| Problem::Failed(format!("the frontier's file: {error}")))?;
        {
            let mut tables = Tables::open(&transaction)?;
            let mut touched = HashSet::new();
            for page in pages {
                let Some(&score) = self.scores.get(page) else {
                    continue;
                };
                for (key, mut item) in entries_of(&tables, page)? {
                    // It gets a place when it is put anew.
                    if item.place == UrlState::Completed {
                        continue;
                    }
                    let name = Key::parse(&key)?.queue_name();
                    tables.lift(&name, &item)?;
                    item.order = Order::scored(self.list, score, item.number);
                    tables.lay(&name, &key, &item)?;
                    touched.insert(name);
                }
            }
            self.settle(&tables, &touched)?;
        }
        transaction.commit().map_err(failed)
    }
}

/// The entries of a page, in whatever queues.
fn entries_of(tables: &Tables<'_>, page: &str) -> Result<Vec<(String, Item)>> {
    let (from, to) = (format!("{page}\0"), format!("{page}\x01"));
    let mut found = Vec::new();
    for entry in tables.urls.range(&*from..&*to).map_err(failed)? {
        let (key, bytes) = entry.map_err(failed)?;
        found.push((key.value().to_owned(), Item::parse(bytes.value())?));
    }
    Ok(found)
}

/// What is set, and what is told.
impl State {
    fn tell(&mut self, name: &str, value: u64) -> Result<()> {
        self.run(|_, db| {
            let transaction = write(db)?;
            {
                let mut facts = transaction.open_table(FACTS).map_err(failed)?;
                facts.insert(name, value).map_err(failed)?;
            }
            transaction.commit().map_err(failed)
        })
    }

    pub(crate) fn set_active(&mut self, active: bool) -> Result<()> {
        self.tell("inactive", u64::from(!active))?;
        self.is_active = active;
        Ok(())
    }

    pub(crate) fn set_usual_delay(&mut self, delay: u32) -> Result<()> {
        self.tell("delay", u64::from(delay))?;
        self.usual_delay = delay;
        Ok(())
    }

    /// Changes what is said of a queue; false: there is no such queue.
    pub(crate) fn set(
        &mut self,
        crawl: &str,
        queue: &str,
        change: impl FnOnce(&mut Queue),
    ) -> Result<bool> {
        let name = queue_name(crawl, queue);
        self.run(|state, db| {
            let Some(queue) = state.queues.get(&name) else {
                return Ok(false);
            };
            let mut new = queue.clone();
            change(&mut new);
            let transaction = write(db)?;
            {
                let mut queues = transaction.open_table(QUEUES).map_err(failed)?;
                if new.is_plain() {
                    queues.remove(&*name).map_err(failed)?;
                } else {
                    let delay = new.delay.map_or(0, |delay| u64::from(delay) + 1);
                    let told = (delay, new.blocked_until, u64::from(new.limit));
                    queues.insert(&*name, told).map_err(failed)?;
                }
            }
            transaction.commit().map_err(failed)?;
            if new.is_empty() && new.is_plain() {
                state.queues.remove(&name);
            } else {
                state.queues.insert(name, new);
            }
            Ok(true)
        })
    }

    /// The queues of a crawl, by name, or one of them.
    pub(crate) fn queues(
        &self,
        crawl: &str,
        queue: Option<&str>,
    ) -> impl Iterator<Item = (&str, &Queue)> {
        let from = format!("{crawl}\0");
        let skip = from.len();
        let to = format!("{crawl}\x01");
        let queue = queue.map(str::to_owned);
        self.queues
            .range(from..to)
            .map(move |(name, found)| (&name[skip..], found))
            .filter(move |(name, _)| queue.as_deref().is_none_or(|queue| queue == *name))
    }

    /// The crawls, by name.
    pub(crate) fn crawls(&self) -> Vec<String> {
        let crawls = self
            .queues
            .keys()
            .filter_map(|name| name.split('\0').next());
        let mut crawls: Vec<String> = crawls.map(str::to_owned).collect();
        crawls.dedup();
        crawls
    }

    /// A URL, if it is there.
    pub(crate) fn find(&mut self, key: &str) -> Result<Option<Given>> {
        self.run(|_, db| {
            let reading = db.begin_read().map_err(failed)?;
            let urls = reading.open_table(URLS).map_err(failed)?;
            let Some(bytes) = urls.get(key).map_err(failed)? else {
                return Ok(None);
            };
            Ok(Some(Given {
                key: key.into(),
                item: Item::parse(bytes.value())?,
            }))
        })
    }

    /// Sees all URLs as they are now, in the order of their keys, until `see` says false. Others may change what there
    /// is meanwhile: [`All`] needs no lock.
    pub(crate) fn all(&mut self) -> Result<All> {
        let fence = self.fence.clone();
        self.run(|_, db| fence.hold(|| db.begin_read().map_err(failed)))
            .map(All)
    }

    /// Removes URLs by their keys; how many there were.
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
