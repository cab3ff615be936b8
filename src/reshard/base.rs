//! What importance was settled to, dealt out again: it is a number of each page, whichever partition that is in. Where it is of
//! the last checkpoint, the next ranking of the new store starts from it, as one of the old store does.

use std::path::PathBuf;

use super::deal::Deal;
use crate::disk::Disk;
use crate::engine::{Engine, SettledPages, SettledPagesMut, SettledTotals};
use crate::rank::settle::GHOST;
use crate::rows::Rows;
use crate::store::all::AllRows;
use crate::store::base::{self, BaseHead, BaseState};
use crate::store::rows::CommittedRows;
use crate::store::{Store, View};
use crate::{Error, Result};

/// Bytes of memory of each page: its numbers, as they are by all pages, and its place among those of its partition,
const A_PAGE: u64 = 17 + 4;
/// and of each page that one partition knows: its numbers there.
const A_LOCAL_PAGE: u64 = 17;

/// A store, or a partition, that was written.
pub(super) struct Home {
    dir: PathBuf,
    identity: u64,
    /// Pages that it knows.
    pages: u64,
    rows: CommittedRows,
}

impl Home {
    /// That of a store as it is committed.
    ///
    /// # Errors
    /// It has no rows.
    pub fn of(engine: &Engine<Store>) -> Result<Home> {
        let store = engine.storage();
        let rows = store.rows_retention().kept();
        Ok(Home {
            dir: store.dir().into(),
            identity: store.identity(),
            pages: engine.ledger().totals().pages,
            rows: *rows.ok_or_else(|| Error::internal("the new store has no rows"))?,
        })
    }
}

/// What importance was settled to, by the numbers of all pages.
pub(super) struct Settled {
    own: Vec<i64>,
    accounts: Vec<i64>,
    costs: Vec<u8>,
    totals: SettledTotals,
    records: u64,
}

impl Settled {
    /// Reads that of the last checkpoint. `None`: there is none of it, or it is damaged, or there is too little memory: then
    /// the next ranking is settled from the start.
    ///
    /// # Errors
    /// Those of reading, but for damage.
    pub fn read(view: &View, rows: &AllRows, memory: Option<u64>) -> Result<Option<Settled>> {
        match Settled::try_read(view, rows, memory) {
            Err(Error::Damaged { .. }) => Ok(None),
            read => read,
        }
    }

    fn try_read(view: &View, rows: &AllRows, memory: Option<u64>) -> Result<Option<Settled>> {
        let Some((named, now)) = view.named_bases().zip(view.settled_rows()) else {
            return Ok(None);
        };
        let is_latest = |(base, (_, rows)): (&base::CommittedBase, &(u64, CommittedRows))| {
            base.place == (rows.number, rows.rows)
        };
        if !named.iter().zip(&now).all(is_latest) {
            return Ok(None);
        }
        let Some(bases) = view.bases()? else {
            return Ok(None);
        };
        let largest = now.iter().map(|(pages, _)| *pages).max().unwrap_or(0);
        let need = rows.pages() * A_PAGE + largest * A_LOCAL_PAGE;
        if memory.is_some_and(|memory| need > memory) {
            return Ok(None);
        }
        let pages = rows.pages() as usize;
        let mut all: Option<Settled> = None;
        for (number, base) in bases.into_iter().enumerate() {
            let head = base.file.head;
            if head.totals.pages != now[number].0 {
                return Ok(None);
            }
            let all = all.get_or_insert_with(|| Settled {
                own: vec![0; pages],
                accounts: vec![0; pages],
                costs: vec![0; pages],
                totals: head.totals,
                records: head.records,
            });
            let here = head.totals.pages as usize;
            let (mut own, mut accounts, mut costs) = (vec![0; here], vec![0; here], vec![0; here]);
            base.file.load(SettledPagesMut {
                own: &mut own,
                accounts: &mut accounts,
                costs: &mut costs,
            })?;
            let numbers = rows.numbers().get(number);
            for at in (0..here).filter(|&at| costs[at] != GHOST) {
                let page = numbers.map_or(at, |numbers| numbers[at] as usize);
                (all.own[page], all.accounts[page], all.costs[page]) =
                    (own[at], accounts[at], costs[at]);
            }
        }
        Ok(all)
    }

    /// Writes those of the new store, or of its partitions, as of its commit of this number. What commits are to say of them.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(
        &self,
        disk: &dyn Disk,
        number: u64,
        deal: &Deal,
        homes: &[Home],
    ) -> Result<Vec<BaseState>> {
        let order = deal.order(self.own.len());
        let mut rest = &order[..];
        let mut made = Vec::new();
        for (home, &count) in homes.iter().zip(&deal.own) {
            let pages = rest.split_off(..count as usize).unwrap_or_default();
            let here = home.pages as usize;
            let of = |numbers: &[i64]| {
                let own = pages.iter().map(|&page| numbers[page as usize]);
                let mut own: Vec<i64> = own.collect();
                own.resize(here, 0);
                own
            };
            let costs = pages.iter().map(|&page| self.costs[page as usize]);
            let mut costs: Vec<u8> = costs.collect();
            costs.resize(here, GHOST);
            let head = BaseHead {
                number,
                records: self.records,
                totals: SettledTotals {
                    pages: home.pages,
                    ..self.totals
                },
            };
            let settled = SettledPages {
                own: &of(&self.own),
                accounts: &of(&self.accounts),
                costs: &costs,
            };
            let base = base::write(
                disk,
                &home.dir,
                home.identity,
                head,
                settled,
                home.rows,
                false,
            )?;
            made.push(BaseState {
                base: Some(base),
                owed: None,
            });
        }
        Ok(made)
    }
}
