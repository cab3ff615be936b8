//! Handing out of URLs: queues in their order, and of each its best URLs, each leased to the client.

use std::collections::HashSet;

use redb::{Database, Durability, ReadableTable};

use super::{State, UrlEntry, UrlQuery, not_there, write};
use crate::Now;
use crate::item::{Item, Key, UrlState};
use crate::queue::count_in;
use crate::tables::{Tables, failed};
use cashrank_serve::{Problem, Result};

/// Maximum number of due URLs that one call moves.
const DUE_MOST: usize = 10_000;
/// Number of calls that hand out URLs between two durable commits of leases.
const LEASES_BETWEEN: u32 = 1_000;
/// Difference between the system's clock and elapsed time, in seconds, beyond which leases are adjusted.
const CLOCK_OFF: i64 = 1;

/// Bookkeeping of URLs that are handed out.
#[derive(Default)]
pub(super) struct Leases {
    /// Number of calls that handed out URLs.
    calls: u32,
    /// Upper bound of the ends of all leases.
    pub(super) until: u64,
    /// Seconds by which the system's clock was ahead of elapsed time when URLs were last handed out.
    ahead: Option<i64>,
}

/// URLs that a call hands out, with their length.
#[derive(Default)]
struct HandOut {
    given: Vec<UrlEntry>,
    bytes: usize,
}

impl State {
    /// Hands out URLs: queues in their order, and of each its best URLs.
    pub(crate) fn get(&mut self, wanted: &UrlQuery, now: Now) -> Result<Vec<UrlEntry>> {
        self.run(|state, db| state.get_in(db, wanted, now))
    }

    fn get_in(&mut self, db: &Database, wanted: &UrlQuery, now: Now) -> Result<Vec<UrlEntry>> {
        let mut transaction = write(db)?;
        self.leases.calls += 1;
        let ahead = now.unix_s as i64 - (now.passed_ms / 1_000) as i64;
        let set = self.leases.ahead.map_or(0, |before| ahead - before);
        let is_set = set.abs() > CLOCK_OFF;
        if !is_set && !self.leases.calls.is_multiple_of(LEASES_BETWEEN) {
            transaction
                .set_durability(Durability::None)
                .map_err(|error| Problem::Failed(format!("the frontier's file: {error}")))?;
        }
        let mut taken = HandOut::default();
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
        if is_set || self.leases.ahead.is_none() {
            self.leases.ahead = Some(ahead);
        }
        Ok(taken.given)
    }

    /// Adjusts the leases after the system's clock was set by `set` seconds: a lease is a duration, and is stored as a
    /// date.
    fn move_leases(&mut self, tables: &mut Tables<'_>, set: i64) -> Result<()> {
        let mut leased = Vec::new();
        let until = (self.leases.until, u64::MAX);
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
            self.leases.until = self.leases.until.max(item.date);
            tables.lay(&name, &key, &item)?;
        }
        Ok(())
    }

    /// Makes URLs ready whose waiting time is over.
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

    /// Returns the queues that can serve this request, best first.
    fn serving(&self, wanted: &UrlQuery, now: Now) -> Vec<String> {
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
        wanted: &UrlQuery,
        most: usize,
        now: Now,
        taken: &mut HandOut,
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
            self.leases.until = self.leases.until.max(item.date);
            count_in(queue, &item, 1);
            tables.lay(name, &key, &item)?;
            queue.served = Some(now.passed_ms);
            taken.bytes += key.len() + item.metadata.len();
            taken.given.push(UrlEntry { key, item });
        }
        Ok(())
    }
}
