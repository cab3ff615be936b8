//! Tables of the frontier: its URLs, and the order in which each may be handed out.

use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};

use super::Fenced;
use super::item::{Item, Key, Order, UrlState};
use cashrank_serve::{Problem, Result};

/// [`Key`] -> [`Item`].
pub(super) const URLS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("urls");
/// crawl \0 queue \0 order -> key: what may be handed out, in its order.
pub(super) const READY: TableDefinition<'_, &[u8], &str> = TableDefinition::new("ready");
/// (date, number) -> key: what may be handed out from a date on.
pub(super) const WAITING: TableDefinition<'_, (u64, u64), &str> = TableDefinition::new("waiting");
/// crawl \0 queue -> delay + 1 or 0, blocked until, limit.
pub(super) const QUEUES: TableDefinition<'_, &str, (u64, u64, u64)> =
    TableDefinition::new("queues");
/// Global settings.
pub(super) const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");

/// Version of these tables, stored in [`FACTS`].
pub(super) const VERSION: u64 = 1;

pub(super) fn failed(error: impl Into<redb::Error>) -> Problem {
    Problem::Failed(format!("the frontier's file: {}", error.into()))
}

/// Tables of a transaction.
pub(super) struct Tables<'t> {
    pub(super) urls: Table<'t, &'static str, &'static [u8]>,
    pub(super) ready: Table<'t, &'static [u8], &'static str>,
    pub(super) waiting: Table<'t, (u64, u64), &'static str>,
}

impl<'t> Tables<'t> {
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Tables<'t>> {
        Ok(Tables {
            urls: transaction.open_table(URLS).map_err(failed)?,
            ready: transaction.open_table(READY).map_err(failed)?,
            waiting: transaction.open_table(WAITING).map_err(failed)?,
        })
    }

    pub(super) fn get(&self, key: &str) -> Result<Option<Item>> {
        let found = self.urls.get(key).map_err(failed)?;
        found.map(|bytes| Item::parse(bytes.value())).transpose()
    }

    /// Removes an item from the table of its state.
    pub(super) fn lift(&mut self, name: &str, item: &Item) -> Result<()> {
        match item.place {
            UrlState::Ready => {
                self.ready
                    .remove(&*ready_key(name, item.order))
                    .map_err(failed)?;
            }
            UrlState::Waiting | UrlState::Leased => {
                self.waiting
                    .remove((item.date, item.number))
                    .map_err(failed)?;
            }
            UrlState::Completed => {}
        }
        Ok(())
    }

    /// Stores an item, and adds it to the table of its state.
    pub(super) fn lay(&mut self, name: &str, key: &str, item: &Item) -> Result<()> {
        match item.place {
            UrlState::Ready => {
                self.ready
                    .insert(&*ready_key(name, item.order), key)
                    .map_err(failed)?;
            }
            UrlState::Waiting | UrlState::Leased => {
                self.waiting
                    .insert((item.date, item.number), key)
                    .map_err(failed)?;
            }
            UrlState::Completed => {}
        }
        self.urls.insert(key, &*item.bytes()).map_err(failed)?;
        Ok(())
    }

    /// Returns the first positions of a queue.
    pub(super) fn first(&self, name: &str, count: usize) -> Result<Vec<(Order, String)>> {
        let (from, to) = (
            ready_key(name, Order([0; 24])),
            ready_key(name, Order([255; 24])),
        );
        let mut found = Vec::new();
        for entry in self.ready.range(&*from..=&*to).map_err(failed)?.take(count) {
            let (place, key) = entry.map_err(failed)?;
            let mut order = [0; Order::LEN];
            order.copy_from_slice(&place.value()[from.len() - Order::LEN..]);
            found.push((Order(order), key.value().to_owned()));
        }
        Ok(found)
    }
}

pub(super) fn ready_key(name: &str, order: Order) -> Vec<u8> {
    [name.as_bytes(), b"\0", &order.0].concat()
}

/// All URLs as of one time.
pub(crate) struct All(pub(super) Fenced<redb::ReadTransaction>);

impl All {
    pub(crate) fn each(&self, mut see: impl FnMut(Key<'_>, &str, Item) -> bool) -> Result<()> {
        self.0.with(|reading| {
            let urls = reading.open_table(URLS).map_err(failed)?;
            for entry in urls.iter().map_err(failed)? {
                let (key, bytes) = entry.map_err(failed)?;
                let item = Item::parse(bytes.value())?;
                if !see(Key::parse(key.value())?, key.value(), item) {
                    return Ok(());
                }
            }
            Ok(())
        })
    }
}
