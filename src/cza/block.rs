//! A block: some records of a crawl with the names that are new in them; what is the same packed and unpacked.
//!
//! On both sides stands a [`Batch`](crate::batch::Batch). Its names are numbered through the whole archive, in order of
//! first appearance, so what a record adds is a count. Pages on the host of a record's page are given by their places
//! there ([`super::sites`]). A block has two parts: a reader that knows the pages of the names (in a second pass) never
//! looks at the first.

use super::column::Column;
use super::sites::LOCAL;
use super::{Fault, KINDS};
use crate::batch::{LinkCounts, What};
use crate::codec::varint::zigzag;
use crate::decode::Reason;

/// How the first known target of a list is told, by the number in the block's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// By itself.
    Zero = 0,
    /// By its distance from the page.
    Page = 1,
    /// By its distance from the newest name, targets descending.
    Newest = 2,
}

impl From {
    pub const ALL: [From; 3] = [From::Zero, From::Page, From::Newest];
}

/// A kind of record as it is stored: its place in the table of kinds.
pub(super) fn kind(what: What) -> u64 {
    match what {
        What::Visit => 0,
        What::Gone => 1,
        What::Unchanged => 2,
        What::Failed => 3,
        What::Other | What::OutOfScope => 4,
        What::Skipped(reason) => 5 + reason as u64,
    }
}

pub(super) fn what(kind: u64) -> Result<What, Fault> {
    Ok(match kind {
        0 => What::Visit,
        1 => What::Gone,
        2 => What::Unchanged,
        3 => What::Failed,
        4 => What::Other,
        5..KINDS => What::Skipped(Reason::ALL[kind as usize - 5]),
        _ => return Err(Fault::new("a record of an unknown kind")),
    })
}

/// The columns of the records part, in the order in which they are stored.
#[derive(Default)]
pub(super) struct Columns {
    pub kinds: Column,
    pub sources: Column,
    /// With hosts only.
    pub hosts: Column,
    /// Where hosts are counted only.
    pub before: Column,
    pub times: Column,
    pub lists: Column,
    pub run_counts: Column,
    pub runs: Column,
    /// With hosts only.
    pub shapes: Column,
    pub rest_counts: Column,
    pub rests: Targets,
    /// With hosts only; those before are of other hosts, then.
    pub local_counts: Column,
    pub locals: Targets,
    pub new: Column,
    pub counts: [Column; 5],
    /// In blocks with classes only.
    pub classes: Column,
}

impl Columns {
    /// All but the classes.
    pub fn all(&mut self, hosts: bool, counted: bool) -> impl Iterator<Item = &mut Column> {
        let always = [
            (&mut self.kinds, true),
            (&mut self.sources, true),
            (&mut self.hosts, hosts),
            (&mut self.before, counted),
            (&mut self.times, true),
            (&mut self.lists, true),
            (&mut self.run_counts, true),
            (&mut self.runs, true),
            (&mut self.shapes, hosts),
            (&mut self.rest_counts, true),
            (&mut self.rests.firsts, true),
            (&mut self.rests.gaps, hosts),
            (&mut self.local_counts, hosts),
            (&mut self.locals.firsts, hosts),
            (&mut self.locals.gaps, hosts),
            (&mut self.new, true),
        ];
        let counts = self.counts.iter_mut().map(|column| (column, true));
        let all = always.into_iter().chain(counts);
        all.filter_map(|(column, is_there)| is_there.then_some(column))
    }

    /// The columns that tell hosts, and their pages before the block.
    pub fn of_hosts(&mut self) -> (&mut Column, &mut Column) {
        (&mut self.hosts, &mut self.before)
    }

    /// The columns of shapes that are new in the block.
    pub fn of_shape(&mut self) -> impl Iterator<Item = &mut Column> {
        let lens = [&mut self.rest_counts, &mut self.local_counts, &mut self.new];
        lens.into_iter().chain(self.counts.iter_mut())
    }
}

/// The numbers that a list has, in the order of their columns: targets that are not copied, elsewhere and on the
/// page's host, new names, and the counts, told by those of the list that is copied from.
pub(super) type Shape = [u64; 8];

/// Targets of lists: of each list the first, and what is between it and the others.
#[derive(Default)]
pub(super) struct Targets {
    pub firsts: Column,
    /// Without hosts, gaps are among the firsts.
    pub gaps: Column,
}

impl Targets {
    pub fn clear(&mut self) {
        self.firsts.clear();
        self.gaps.clear();
    }

    /// As [`Column::cost`].
    pub fn cost(&self) -> usize {
        self.firsts.cost() + self.gaps.cost()
    }

    /// Tells ascending targets. `base`: what the first is told by.
    pub fn put(&mut self, from: From, targets: &[u32], base: u32) {
        let (Some(&lowest), Some(&highest)) = (targets.first(), targets.last()) else {
            return;
        };
        self.firsts.put(match from {
            From::Page => zigzag(i64::from(lowest) - i64::from(base)),
            From::Zero => u64::from(lowest - base),
            From::Newest => u64::from(base - 1 - highest),
        });
        let gaps = targets
            .windows(2)
            .map(|pair| u64::from(pair[1] - pair[0] - 1));
        match from {
            From::Newest => gaps.rev().for_each(|gap| self.gaps.put(gap)),
            _ => gaps.for_each(|gap| self.gaps.put(gap)),
        }
    }
}

/// The counts that are stored, in the columns' order.
pub(super) fn counts_of(counts: &LinkCounts) -> [u32; 5] {
    [
        counts.own,
        counts.repeated,
        counts.scheme,
        counts.invalid,
        counts.too_long,
    ]
}

/// Whether a target, as it is told, is on `host`. `hosts`: those of the names from `first_name` on.
pub(super) fn is_on(host: u32, target: u32, first_name: u32, hosts: &[u32]) -> bool {
    if target >= LOCAL {
        return true;
    }
    let new = target.checked_sub(first_name);
    new.and_then(|new| hosts.get(new as usize)) == Some(&host)
}
