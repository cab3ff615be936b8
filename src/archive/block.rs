//! A block: some records of a crawl with the names that are new in them; what is the same packed and unpacked.
//!
//! On both sides stands a [`Batch`](crate::batch::Batch). Its names are numbered through the whole archive, in order of
//! first appearance, so what a record adds is a count. A block has two parts: a reader that knows the pages of the names
//! (in a second pass) never looks at the first.

use super::column::Column;
use super::{Fault, KINDS};
use crate::batch::{LinkCounts, What};
use crate::codec::varint::zigzag;
use crate::decode::Reason;

/// How the first known target of a list is stored, by the number in the block's head.
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
        What::Other => 4,
        What::Skipped(reason) => 5 + reason as u64,
        What::OutOfScope => KINDS,
    }
}

/// `scoped`: the block counts what was out of scope.
pub(super) fn what(kind: u64, scoped: bool) -> Result<What, Fault> {
    Ok(match kind {
        0 => What::Visit,
        1 => What::Gone,
        2 => What::Unchanged,
        3 => What::Failed,
        4 => What::Other,
        5..KINDS => What::Skipped(Reason::ALL[kind as usize - 5]),
        KINDS if scoped => What::OutOfScope,
        _ => return Err(Fault::new("a record of an unknown kind")),
    })
}

/// The columns of the records part, in the order in which they are stored.
#[derive(Default)]
pub(super) struct Columns {
    pub kinds: Column,
    pub sources: Column,
    pub hosts: Hosts,
    pub times: Column,
    pub copies: Copies,
    pub shapes: Column,
    /// Targets on other hosts: always 0, and then nothing.
    pub elsewhere: [Column; 3],
    pub lens: Lens,
    pub known: Targets,
    pub counts: [Column; 5],
    /// Links out of scope, in blocks with such only.
    pub out_of_scope: Column,
    /// In blocks with classes only.
    pub classes: Column,
}

impl Columns {
    /// All but the classes. `scoped`: with the links out of scope.
    pub fn all(&mut self, scoped: bool) -> impl Iterator<Item = &mut Column> {
        let of_records = [
            &mut self.kinds,
            &mut self.sources,
            &mut self.hosts.of_names,
            &mut self.hosts.names_before,
            &mut self.times,
            &mut self.copies.lists,
            &mut self.copies.run_counts,
            &mut self.copies.runs,
            &mut self.shapes,
        ];
        let of_known = [
            &mut self.lens.known,
            &mut self.known.firsts,
            &mut self.known.gaps,
            &mut self.lens.new,
        ];
        let all = of_records.into_iter().chain(self.elsewhere.iter_mut());
        let counts = self.counts.iter_mut();
        let scoped = scoped.then_some(&mut self.out_of_scope);
        all.chain(of_known).chain(counts).chain(scoped)
    }

    /// The columns of shapes that are new in the block.
    pub fn of_shape(&mut self, scoped: bool) -> impl Iterator<Item = &mut Column> {
        let [elsewhere, ..] = &mut self.elsewhere;
        let lens = [elsewhere, &mut self.lens.known, &mut self.lens.new];
        let counts = self.counts.iter_mut();
        let scoped = scoped.then_some(&mut self.out_of_scope);
        lens.into_iter().chain(counts).chain(scoped)
    }
}

/// The numbers that a list has, in the order of their columns: targets elsewhere, known targets that are not copied, new
/// names, and the counts, less those of the list that is copied from.
pub(super) type Shape = [u64; 9];

/// The block's entry for the host of its first name, which all others are on, too.
pub(super) fn first_host(first_name: u32) -> u64 {
    // A new one, or the first there is.
    if first_name == 0 { 1 } else { 3 }
}

/// The hosts of names: all are on the only one.
#[derive(Default)]
pub(super) struct Hosts {
    /// Which host each name is on.
    pub of_names: Column,
    /// How many names it had before the block.
    pub names_before: Column,
}

/// What lists copy from earlier ones.
#[derive(Default)]
pub(super) struct Copies {
    /// How far back the list is that is copied from.
    pub lists: Column,
    /// How many runs of it are copied or left out.
    pub run_counts: Column,
    /// Their lengths.
    pub runs: Column,
}

/// How many targets lists have that are not copied.
#[derive(Default)]
pub(super) struct Lens {
    /// Of names from before the list,
    pub known: Column,
    /// and of new names.
    pub new: Column,
}

/// Targets of lists: of each list the first, and what is between it and the others.
#[derive(Default)]
pub(super) struct Targets {
    pub firsts: Column,
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

    /// Appends ascending targets. `base`: what the first is stored relative to.
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
pub(super) fn counts_of(counts: &LinkCounts) -> [u32; 6] {
    [
        counts.own,
        counts.repeated,
        counts.scheme,
        counts.invalid,
        counts.too_long,
        counts.out_of_scope,
    ]
}
