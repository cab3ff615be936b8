//! Cash in partitions: the ledgers of a store whose pages are dealt out to several engines, which are one economy.
//!
//! After section 4.1 of the paper, where each crawler has the cash of its own pages, and sends a "money transfer" for a link
//! to a page of another. There messages are asynchronous; here an *epoch* is so many records of the stream, and what crosses
//! does so at its end, so that nothing depends on threads, batches or commits. Where a pass after the first begins, an epoch ends
//! early, and a round with it; the next ends where it would have, and counts as a whole of its round.
//!
//! In an epoch each partition visits its own pages in the order of the stream. The share of a *ghost* (a page of another
//! partition) stays in its cell, where nobody hands it on; what goes to the virtual page stays, too. At the end of the epoch
//!
//! 1. each ghost's cash goes to the page's own cell, so that ghosts have none;
//! 2. if a round ends, pages are recycled ([`Ledger::end_round`]) in each partition;
//! 3. the virtual page, which is one for all, takes what it received everywhere, V in all, and pays each page
//!    `q = floor(V / pages)`: A += q; it keeps V - q x pages for the next epoch;
//! 4. G, the clock, grows by all that was distributed, and is then the same in all partitions; if a round ended, each keeps
//!    a mark.
//!
//! All of these are sums of whole units, so the order in which partitions give them does not matter.
//!
//! **Law.** A ledger's *funds* are what it was given (endowments, cash for its pages, payments) less what it gave; all its
//! cash, that of ghosts included, and what waits for the virtual page come to as much. The funds of all ledgers, and what the
//! virtual page kept, come to pages x [`ENDOWMENT`].
//!
//! **Certificate.** It is that of one ledger (`estimate.rs`): it holds for any order of visits, and says nothing of how long
//! cash waits. Whoever reads the state inside an epoch counts the cash of ghosts as their pages'. At a mark there is none.
//!
//! Inside an epoch a partition knows of the clock what it was at its beginning, and what it has distributed itself since; a
//! measure is noted at that.

use serde::{Deserialize, Serialize};

use super::history::{Admission, Moment};
use super::ledger::{ENDOWMENT, Ledger, Totals};
use super::window::{Span, TimeTable};
use super::{Engine, Storage, moment};
use crate::model::PageId;
use crate::rows::Ghost;
use crate::{Error, Result};

/// A ledger's part of the cash of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Joint {
    /// What it was given, less what it gave.
    pub funds: u128,
    /// Pages of all at the end of the last epoch.
    pub pages: u64,
}

/// The same with that at its marks: what a checkpoint keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JointState {
    pub joint: Joint,
    /// Its funds at each mark, oldest first.
    pub mark_funds: Vec<u128>,
}

/// Cash on its way to a page of another partition: the page's number there, and units.
pub(crate) type Transfer = (u32, u64);

/// What a partition hands in at an epoch's end.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct HandedIn {
    /// Units that the virtual page received.
    units: u64,
    /// The clock as far as the partition knows it,
    clock: u128,
    /// and what it followed and visited since the start.
    followed: u128,
    visits: u64,
}

/// What an epoch's end is for each partition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Epoch {
    /// What each page is paid.
    each: u64,
    /// All there is, of all pages.
    totals: Totals,
    times: TimeTable,
    window_start: u128,
    ends_round: bool,
}

impl Ledger {
    /// What of the cash of a page of another partition waits to be sent; there is none then.
    fn send(&mut self, page: PageId) -> u64 {
        let units = self.cash(page);
        if units > 0 {
            self.set_cash(page, 0);
            self.give(units);
        }
        units
    }

    /// Takes cash that was sent to a page.
    fn deliver(&mut self, page: PageId, units: u64) {
        let held = self.cash(page);
        self.set_cash(page, held + units);
        self.be_given(units.into());
    }

    /// What the virtual page received here since this was last asked.
    fn hand_in(&mut self) -> HandedIn {
        let units = self.take_virtual_cash();
        self.give(units);
        let totals = self.totals();
        HandedIn {
            units,
            clock: totals.clock,
            followed: totals.followed,
            visits: totals.visits,
        }
    }

    /// The virtual page has paid: each page but ghosts.
    fn be_paid(&mut self, epoch: &Epoch, ghosts: &[Ghost]) {
        let own = self.totals().pages - ghosts.len() as u64;
        self.raise_paid(epoch.each);
        if epoch.each > 0 {
            for ghost in ghosts {
                self.set_cash(PageId(ghost.page.into()), 0);
            }
        }
        self.be_given(u128::from(epoch.each) * u128::from(own));
    }
}

impl<S: Storage> Engine<S> {
    /// Its ledger is one of several from now on, in this state.
    pub(crate) fn join(&mut self, state: JointState) {
        self.ledger.join(state.joint);
        self.mark_funds = state.mark_funds;
    }

    /// The state of that, if it is.
    pub(crate) fn joint_state(&self) -> Option<JointState> {
        Some(JointState {
            joint: self.ledger.joint()?,
            mark_funds: self.mark_funds.clone(),
        })
    }

    /// What the ghosts of this partition have goes to their owners: to `mail`, by partition.
    pub(crate) fn send_cash(&mut self, ghosts: &[Ghost], mail: &mut [Vec<Transfer>]) -> Result<()> {
        for ghost in ghosts {
            let units = self.ledger.send(PageId(ghost.page.into()));
            if units > 0 {
                let owner = mail.get_mut(ghost.owner as usize);
                let owner = owner.ok_or_else(|| Error::internal("a ghost is of no partition"))?;
                owner.push((ghost.at, units));
            }
        }
        Ok(())
    }

    /// Takes what others sent to pages of this partition.
    pub(crate) fn receive_cash(&mut self, transfers: &[Transfer]) -> Result<()> {
        let pages = self.ledger.totals().pages;
        for &(at, units) in transfers {
            if u64::from(at) >= pages {
                return Err(Error::internal("cash for a page that there is not"));
            }
            self.ledger.deliver(PageId(at.into()), units);
        }
        Ok(())
    }

    /// The epoch of this partition is over, and with it a round, if that `ends_round`.
    pub(crate) fn close_epoch(&mut self, ends_round: bool) -> Result<HandedIn> {
        if ends_round {
            self.recycle()?;
        }
        Ok(self.ledger.hand_in())
    }

    /// The next epoch of this partition begins.
    pub(crate) fn begin_epoch(&mut self, epoch: &Epoch, ghosts: &[Ghost]) -> Result<()> {
        self.ledger.be_paid(epoch, ghosts);
        self.ledger.agree(&epoch.totals);
        self.times = epoch.times.clone();
        self.window_start = epoch.window_start;
        if epoch.ends_round {
            self.make_mark(*self.ledger.totals())?;
        }
        Ok(())
    }

    /// Pages from number `first` on are new in this epoch: of the whole store, whose pages are in partitions.
    pub(crate) fn note_admission(&mut self, first: u64) -> Result<()> {
        let Totals { paid, clock, .. } = *self.ledger.totals();
        let clock = if self.log.is_timed() { clock } else { 0 };
        self.storage.admission(Admission { first, paid, clock })
    }

    /// Counts records of an epoch. Whether they fill the round.
    pub(crate) fn fills_round(&mut self, records: u64) -> bool {
        self.ledger.count_records(records)
    }

    /// Ends an epoch of all partitions, with so many pages in all, by what they hand in: here are the virtual page and the
    /// clock, and no pages.
    pub(crate) fn end_epoch(
        &mut self,
        pages: u64,
        ends_round: bool,
        parts: &[HandedIn],
    ) -> Result<Epoch> {
        let each = self.ledger.collect(pages, parts)?;
        if ends_round {
            self.ledger.next_round(pages);
            self.move_window(pages);
        }
        let totals = Totals {
            pages,
            ..*self.ledger.totals()
        };
        if ends_round {
            self.make_mark(totals)?;
        }
        Ok(Epoch {
            each,
            totals,
            times: self.times.clone(),
            window_start: self.window_start,
            ends_round,
        })
    }

    /// Where the window begins, at a round's end. It never moves back.
    pub(super) fn move_window(&mut self, pages: u64) {
        let clock = self.ledger.totals().clock;
        let length = |span: Span| span.units(clock, pages, &self.times);
        let start = self.window.start(clock, &length);
        self.window_start = self.window_start.max(start);
    }

    /// The time of a measure at G = `clock`.
    pub(super) fn moment(&self, clock: u128) -> Moment {
        moment(&*self.window, &self.times, clock, self.ledger.known_pages())
    }
}

impl Ledger {
    /// See [`Engine::end_epoch`]. What each page is paid.
    fn collect(&mut self, pages: u64, parts: &[HandedIn]) -> Result<u64> {
        let before = self.totals().clock;
        let (mut clock, mut followed, mut visits) = (before, 0, 0);
        for part in parts {
            self.receive(part.units);
            self.be_given(part.units.into());
            let since = part.clock.checked_sub(before);
            clock += since.ok_or_else(|| Error::internal("a partition's clock is behind"))?;
            followed += part.followed;
            visits += part.visits;
        }
        self.agree(&Totals {
            pages,
            clock,
            ..*self.totals()
        });
        self.note_done(followed, visits);
        let each = self.totals().virtual_cash.checked_div(pages).unwrap_or(0);
        let paid = self.spend_virtual_cash(each * pages);
        self.give(paid);
        self.raise_paid(each);
        Ok(each)
    }
}

impl Totals {
    /// Those of all, where these are of the virtual page at the end of the last epoch, and `parts` of all partitions now.
    pub(crate) fn with_parts<'t>(self, parts: impl Iterator<Item = &'t Totals>) -> Totals {
        let mut all = Totals {
            followed: 0,
            visits: 0,
            ..self
        };
        for part in parts {
            all.virtual_cash += part.virtual_cash;
            all.virtual_received += u128::from(part.virtual_cash);
            all.clock += part.clock.saturating_sub(self.clock);
            all.followed += part.followed;
            all.visits += part.visits;
        }
        all
    }
}

/// The law over several ledgers: their funds come to what all their pages were endowed with.
///
/// # Errors
/// They do not, and by how much.
pub(crate) fn check_funds(funds: impl Iterator<Item = u128>, pages: u64) -> Result<(), String> {
    let found: u128 = funds.sum();
    let expected = u128::from(pages) * u128::from(ENDOWMENT);
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "the books of the partitions do not balance: together they have {found} units, but {pages} pages were endowed with \
         {expected}"
    ))
}
