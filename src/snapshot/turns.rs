//! How many partitions of a state are in memory at a time while they are settled: all, or they take turns, as many as memory
//! has room for. The result is the same.

use std::num::NonZeroUsize;

use std::path::Path;

use super::settling::Settle;
use crate::Result;
use crate::disk::Disk;
use crate::memory::{GATHERED, RANKS_IN_TURNS, SETTLING, UNPACKED_ROWS, in_memory, ranking};
use crate::rank::settle::{A_GHOST, Turns, Workers};
use crate::rows::Rows;
use crate::store::{RowBlock, SNAPSHOTS, View};

/// What of partitions is in memory at a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Residency {
    /// So many of them at most, and no more than there is memory for.
    pub partitions: Option<NonZeroUsize>,
    /// Bytes of memory that they may take; `None`: any.
    pub memory: Option<u64>,
    /// Nothing else needs memory meanwhile: half of what they leave of it may hold rows, so that these are unpacked once.
    pub alone: bool,
}

/// The blocks of a process, and how many of them are in memory at a time.
pub(super) struct Plan {
    /// Bytes of memory of each.
    blocks: Vec<u64>,
    /// What other processes settle is brought here.
    gathered: u64,
    threads: usize,
    resident: usize,
}

impl Plan {
    /// Blocks that know so many pages, and ghosts among these; other processes have so many pages.
    pub fn new(blocks: &[(u64, u64)], others: u64, threads: usize, within: Residency) -> Plan {
        let Residency {
            partitions: resident,
            memory,
            ..
        } = within;
        let bytes = |&(pages, ghosts): &(u64, u64)| pages * SETTLING + ghosts * A_GHOST;
        let count = blocks.len().max(1);
        let mut plan = Plan {
            blocks: blocks.iter().map(bytes).collect(),
            gathered: others * GATHERED,
            threads: threads.max(1),
            resident: resident.map_or(count, |most| most.get().min(count)),
        };
        let fits = |plan: &Plan| memory.is_none_or(|memory| plan.bytes() <= memory);
        while plan.resident > 1 && !fits(&plan) {
            plan.resident -= 1;
        }
        plan
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> u64 {
        let (stay, at_a_time) = in_memory(self.resident, self.blocks.len(), self.threads);
        let (stay, others) = self.blocks.split_at(stay);
        let largest = others.iter().max().copied().unwrap_or(0);
        self.gathered + stay.iter().sum::<u64>() + at_a_time as u64 * largest
    }

    /// Returns whether some wait aside while others are in memory.
    pub fn takes_turns(&self) -> bool {
        self.resident < self.blocks.len()
    }

    /// Bytes for rows that stay in memory from one sweep to the next.
    pub fn rows(&self, within: Residency) -> u64 {
        if self.takes_turns() {
            0
        } else {
            within.rows_beside(self.bytes())
        }
    }

    /// The files for it, in the folder of a store, as process `process` of several.
    pub fn turns(&self, disk: &dyn Disk, dir: &Path, process: usize) -> Result<Option<Turns>> {
        let name = dir.join(SNAPSHOTS).join(format!("settling-{process}"));
        let turns = || Turns::new(disk, &name, self.resident);
        self.takes_turns().then(turns).transpose()
    }
}

/// Bytes of memory that process number `process` of so many takes to settle a state, and to rank it, where at most so many partitions
/// are in memory at a time; `None`: as few as can be.
pub fn settling_needs(
    view: &View,
    (process, processes): (usize, usize),
    partitions: Option<NonZeroUsize>,
    threads: usize,
) -> u64 {
    let (own, others) = shares(view, &|block| block % processes.max(1) == process);
    least(&own, others, partitions, threads)
}

/// The same of blocks that know so many pages, and ghosts among these.
pub(super) fn least(
    blocks: &[(u64, u64)],
    others: u64,
    partitions: Option<NonZeroUsize>,
    threads: usize,
) -> u64 {
    let (partitions, threads) = match partitions {
        None => (NonZeroUsize::new(1), 1),
        given => (given, threads),
    };
    let within = Residency {
        partitions,
        ..Residency::default()
    };
    let plan = Plan::new(blocks, others, threads, within);
    plan.bytes() + beside(blocks, others, plan.takes_turns())
}

/// What making the ranking takes beside.
fn beside(blocks: &[(u64, u64)], others: u64, in_turns: bool) -> u64 {
    let own: u64 = blocks
        .iter()
        .map(|(pages, ghosts)| pages.saturating_sub(*ghosts))
        .sum();
    ranking(own + others, in_turns)
}

/// Rows of these blocks may stay in memory, in so many bytes, shared by the number of their links.
pub(super) fn keep_rows(blocks: &[RowBlock], room: u64) {
    let all: u64 = blocks.iter().map(|block| block.rows.links()).sum();
    for RowBlock { rows, .. } in blocks {
        let share = u128::from(room) * u128::from(rows.links()) / u128::from(all.max(1));
        rows.stay_in(share as u64);
    }
}

/// The blocks of which `has` says so: how many pages each knows, and ghosts among these; and pages of the others.
fn shares(view: &View, has: &dyn Fn(usize) -> bool) -> (Vec<(u64, u64)>, u64) {
    let (mut own, mut others) = (Vec::new(), 0);
    for (block, (pages, ghosts)) in view.block_pages().into_iter().enumerate() {
        if has(block) {
            own.push((pages, ghosts));
        } else {
            others += pages.saturating_sub(ghosts);
        }
    }
    (own, others)
}

impl Residency {
    /// Bytes for rows that stay in memory from one sweep to the next, beside so many that settling takes.
    pub(super) fn rows_beside(self, taken: u64) -> u64 {
        let Some(memory) = self.memory else {
            return UNPACKED_ROWS;
        };
        let left = memory.saturating_sub(taken);
        let half = if self.alone { left / 2 } else { 0 };
        half.max(left.min(UNPACKED_ROWS))
    }

    /// What blocks may take that know so many pages, and ghosts among these, where all that is made of them has this
    /// memory.
    pub(super) fn beside(self, blocks: &[(u64, u64)], others: u64, threads: usize) -> Residency {
        let left = |in_turns| {
            let memory = self
                .memory?
                .saturating_sub(beside(blocks, others, in_turns));
            Some(Residency {
                memory: Some(memory),
                ..self
            })
        };
        let Some(all) = left(false) else {
            return self;
        };
        if Plan::new(blocks, others, threads, all).takes_turns() {
            left(true).unwrap_or(all)
        } else {
            all
        }
    }
}

impl Settle {
    /// Settles with at most so many partitions in memory at a time, where all that is made of a state has this memory.
    #[must_use]
    pub fn within(self, view: &View, within: Residency) -> Settle {
        if !view.has_partitions() {
            return self;
        }
        let (own, others) = self.shares(view);
        Settle {
            residency: within.beside(&own, others, self.threads),
            ..self
        }
    }

    fn shares(&self, view: &View) -> (Vec<(u64, u64)>, u64) {
        shares(view, &|block| {
            let peers = self.peers.as_ref();
            peers.is_none_or(|peers| peers.has(block))
        })
    }

    /// How many partitions of a state are in memory at a time, and how many there are, if they take turns.
    pub fn in_turns(&self, view: &View) -> Option<(usize, usize)> {
        let plan = view.has_partitions().then(|| self.plan(view))?;
        plan.takes_turns()
            .then_some((plan.resident, plan.blocks.len()))
    }

    /// The same, with what that takes.
    pub(super) fn plan(&self, view: &View) -> Plan {
        let (own, others) = self.shares(view);
        Plan::new(&own, others, self.threads, self.residency)
    }

    /// Who settles a state, in turns if need be.
    ///
    /// # Errors
    /// Files for partitions that take turns cannot be made.
    pub(super) fn workers_in_turns(&self, disk: &dyn Disk, view: &View) -> Result<Workers> {
        let workers = self.workers();
        let plan = view.has_partitions().then(|| self.plan(view));
        let turns = plan.map(|plan| plan.turns(disk, view.dir(), workers.peers.process()));
        Ok(Workers {
            turns: turns.transpose()?.flatten(),
            ..workers
        })
    }

    /// Memory for ranks, of so many bytes that there are for them.
    pub(super) fn rank_bytes(&self, view: &View, bytes: u64) -> u64 {
        if view.has_partitions() && self.plan(view).takes_turns() {
            bytes.min(RANKS_IN_TURNS)
        } else {
            bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: [(u64, u64); 4] = [(100, 10), (300, 0), (200, 50), (250, 0)];

    fn plan(partitions: usize, memory: Option<u64>, threads: usize) -> Plan {
        let within = Residency {
            partitions: NonZeroUsize::new(partitions),
            memory,
            alone: false,
        };
        Plan::new(&BLOCKS, 7, threads, within)
    }

    /// 18 bytes a page, 28 more a ghost, 16 of a page of others.
    #[test]
    fn those_that_stay_and_the_largest_of_the_others_count() {
        let [a, b, c, d] = [100 * 18 + 280, 300 * 18, 200 * 18 + 1400, 250 * 18];
        for (resident, threads, bytes) in [
            (1, 1, b),
            (1, 2, b),
            (2, 1, a + b),
            (2, 2, 2 * b),
            (3, 1, a + b + c.max(d)),
            (4, 2, a + b + c + d),
            (9, 2, a + b + c + d),
        ] {
            let plan = plan(resident, None, threads);
            assert_eq!(plan.bytes(), bytes + 7 * 16, "{resident}, {threads}");
            assert_eq!(plan.takes_turns(), resident < 4);
        }
    }

    #[test]
    fn rows_have_half_of_what_is_left_where_nothing_else_needs_it() {
        let most = UNPACKED_ROWS;
        for (memory, alone, rows) in [
            (None, true, most),
            (Some(100), true, 0),
            (Some(100 + most / 2), true, most / 2),
            (Some(100 + most), true, most),
            (Some(100 + 6 * most), true, 3 * most),
            (Some(100 + 6 * most), false, most),
        ] {
            let within = Residency {
                partitions: None,
                memory,
                alone,
            };
            assert_eq!(within.rows_beside(100), rows, "{memory:?}, {alone}");
        }
        assert_eq!(plan(3, None, 1).rows(Residency::default()), 0);
    }

    #[test]
    fn as_many_as_fit_are_there() {
        for memory in [0, 6_000, 7_600, 13_000, 17_000, 1 << 20] {
            let found = plan(0, Some(memory), 1);
            let fits = |plan: &Plan| plan.bytes() <= memory;
            assert!(fits(&found) || found.resident == 1);
            let more = plan(found.resident + 1, None, 1);
            assert!(found.resident == 4 || !fits(&more), "{memory}");
        }
    }
}
