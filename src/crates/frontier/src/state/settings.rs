//! Settings by clients: whether URLs are handed out, and delays, blocks and limits of queues.

use super::{State, write};
use crate::item::queue_name;
use crate::queue::Queue;
use crate::tables::{FACTS, QUEUES, failed};
use cashrank_serve::Result;

impl State {
    pub(super) fn set_fact(&mut self, name: &str, value: u64) -> Result<()> {
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
        self.set_fact("inactive", u64::from(!active))?;
        self.is_active = active;
        Ok(())
    }

    pub(crate) fn set_usual_delay(&mut self, delay: u32) -> Result<()> {
        self.set_fact("delay", u64::from(delay))?;
        self.usual_delay = delay;
        Ok(())
    }

    /// Changes the settings of a queue; returns false if there is no such queue.
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
                    let row = (delay, new.blocked_until, u64::from(new.limit));
                    queues.insert(&*name, row).map_err(failed)?;
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

    /// Returns the queues of a crawl, by name, or one of them.
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

    /// Returns the crawls, by name.
    pub(crate) fn crawls(&self) -> Vec<String> {
        let crawls = self
            .queues
            .keys()
            .filter_map(|name| name.split('\0').next());
        let mut crawls: Vec<String> = crawls.map(str::to_owned).collect();
        crawls.dedup();
        crawls
    }
}
