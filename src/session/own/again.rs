//! Pages that are visited without a record of theirs: again, with their kept links, in passes after the first, and where a pass
//! is completed. Each partition has an order for these; how far it goes in an epoch, process 0 says (`session/again.rs`).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Part;
use crate::engine::{Engine, Links, PageId};
use crate::model::Time;
use crate::rows::{Ghost, Row};
use crate::store::Store;
use crate::store::rows::{KeptRows, RowCursor};
use crate::{Error, Result};

/// Which pages are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Again {
    /// Those that have a row, with the links in it, in the order of the rows.
    Rows,
    /// Those that are known as link targets only, in the order of their numbers.
    Unread,
}

/// The visits of a partition that are under way.
pub(super) struct Visits {
    pages: Pages,
    /// How many there are, and how many of them were made.
    all: u64,
    done: u64,
}

enum Pages {
    Rows(Box<RowCursor<KeptRows>>),
    /// From this one on.
    Unread(u64),
}

impl Visits {
    /// How many there are.
    pub fn all(&self) -> u64 {
        self.all
    }
}

impl Part {
    /// Such visits begin: none was made yet.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) fn begin_again(&mut self, again: Again) -> Result<()> {
        let (pages, all) = match again {
            Again::Rows => {
                let rows = RowCursor::new(self.engine.storage().kept_rows()?);
                let all = rows.rows();
                (Pages::Rows(Box::new(rows)), all)
            }
            Again::Unread => (Pages::Unread(0), self.count_unread()?),
        };
        self.again = Some(Visits {
            pages,
            all,
            done: 0,
        });
        Ok(())
    }

    fn count_unread(&mut self) -> Result<u64> {
        let ghosts = std::mem::take(&mut self.ghosts);
        let mut all = 0;
        let counted = self.with_cash(|engine| {
            let mut from = 0;
            while let Some(page) = own_unread(engine, &ghosts, from) {
                (all, from) = (all + 1, page.0 + 1);
            }
            Ok(())
        });
        self.ghosts = ghosts;
        counted.map(|()| all)
    }

    /// Makes these of the visits, no earlier ones than were made; `time`: the latest of a record.
    ///
    /// # Errors
    /// Those of reading and writing.
    pub(super) fn visit_again(&mut self, visits: &Range<u64>, time: Option<Time>) -> Result<()> {
        if visits.is_empty() {
            return Ok(());
        }
        let mut again = self.again.take().ok_or_else(none)?;
        self.engine.take_time(time);
        self.change_cash(|part| match &mut again.pages {
            Pages::Rows(rows) => {
                if again.done != visits.start {
                    rows.skip_to(visits.start)?;
                }
                visit_rows(&mut part.engine, rows, visits.end - visits.start)
            }
            Pages::Unread(next) => {
                let Part { engine, ghosts, .. } = part;
                for at in again.done..visits.end {
                    let page = own_unread(engine, ghosts, *next).ok_or_else(none)?;
                    *next = page.0 + 1;
                    if at >= visits.start {
                        engine.visit_unread(page)?;
                    }
                }
                Ok(())
            }
        })?;
        again.done = visits.end;
        self.is_changed = true;
        self.again = Some(again).filter(|again| again.done < again.all);
        Ok(())
    }
}

fn none() -> Error {
    Error::internal("there is no such visit")
}

/// The first page of its own from page `from` on that is known as a link target only.
fn own_unread(engine: &Engine<Store>, ghosts: &[Ghost], mut from: u64) -> Option<PageId> {
    let number = |ghost: &Ghost| u64::from(ghost.page);
    let mut next = ghosts.partition_point(|ghost| number(ghost) < from);
    loop {
        let page = engine.next_unread(from)?;
        // Most are ghosts: one is found from the one before.
        let rest = ghosts.get(next..).unwrap_or_default();
        next += rest
            .iter()
            .take_while(|ghost| number(ghost) < page.0)
            .count();
        if ghosts.get(next).map(number) != Some(page.0) {
            return Some(page);
        }
        from = page.0 + 1;
    }
}

fn visit_rows(
    engine: &mut Engine<Store>,
    rows: &mut RowCursor<KeptRows>,
    visits: u64,
) -> Result<()> {
    let mut targets = Vec::new();
    for _ in 0..visits {
        let Row {
            page,
            gone,
            targets: to,
            weights,
        } = rows.next_row()?.ok_or_else(none)?;
        let page = PageId(page.into());
        targets.clear();
        targets.extend(to.iter().map(|&target| PageId(target.into())));
        engine.prefetch(std::iter::once(page), &targets);
        let links = Links {
            targets: &targets,
            weights,
        };
        engine.replay_visit(page, gone, links)?;
    }
    Ok(())
}
