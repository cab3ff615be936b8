//! The memory that partitions need, of which all are in memory, or so many at a time.

use super::{
    BUFFERS, CASH, FEW, HUGE_PAGE, INDEX_GROWING, Need, PART_BUFFERS, PUBLISHING, PUBLISHING_LEAST,
    largest, part_of_cache, ranking,
};
use crate::engine::{CHUNK_PAGES, Config, Index};

/// Where at most `resident` of so many partitions are in memory at a time: how many stay there, and on how many of so many threads
/// the others take turns.
pub(crate) fn in_memory(resident: usize, partitions: usize, threads: usize) -> (usize, usize) {
    if resident >= partitions {
        return (partitions, threads);
    }
    let threads = threads.clamp(1, resident.max(1));
    (resident.saturating_sub(threads), threads)
}

/// The partitions of a process.
#[derive(Debug, Clone)]
pub(crate) struct PartsInMemory {
    /// Pages that each knows, and bytes of its index.
    pub parts: Vec<(u64, u64)>,
    /// So many at most are in memory at a time, on so many threads.
    pub resident: usize,
    pub threads: usize,
}

/// Bytes of a page of another partition where cash crosses: where it is, twice while that grows, and cash on its way there
/// when an epoch ends,
const CROSSING: u64 = 36 + 16;
/// and in a snapshot, where that of all partitions comes together.
const WAITING: u64 = 16;

/// Pages, and bytes of indexes.
#[derive(Default)]
struct Sum {
    pages: u64,
    index: u64,
    count: u32,
}

impl Sum {
    fn add(&mut self, (pages, index): (u64, u64)) {
        self.pages += pages;
        self.index += index;
        self.count += 1;
    }
}

impl PartsInMemory {
    /// Adds those that are in memory at a time, where they take most.
    fn add_to(&self, sum: &mut Sum) {
        let count = self.parts.len();
        let (stay, at_a_time) = in_memory(self.resident, count, self.threads);
        let (those, others) = self.parts.split_at(stay.min(count));
        those.iter().for_each(|&part| sum.add(part));
        if let Some(&largest) = others.iter().max() {
            (0..at_a_time.min(others.len())).for_each(|_| sum.add(largest));
        }
    }
}

/// The most partitions of each process that can be in memory at a time in a budget beside so many bytes, with `pages` pages, of
/// which they know `known`; no more than are, and one at least.
pub(crate) fn most_resident(
    config: &Config,
    shares: &[PartsInMemory],
    (known, pages): (u64, u64),
    (budget, beside): (u64, u64),
) -> usize {
    let resident = shares.iter().map(|share| share.resident).max();
    let need = |resident: u64| {
        let shares = residing(shares, resident as usize);
        Need::of_parts(config, &shares, (known, pages), Some(budget)).total() + beside
    };
    let most = largest(resident.unwrap_or(1) as u64, |resident| {
        resident <= 1 || need(resident) <= budget
    });
    most as usize
}

/// The same with so many of each in memory at a time, if there are not fewer.
pub(crate) fn residing(shares: &[PartsInMemory], resident: usize) -> Vec<PartsInMemory> {
    let share = |share: &PartsInMemory| PartsInMemory {
        resident: share.resident.min(resident),
        ..share.clone()
    };
    shares.iter().map(share).collect()
}

/// So many with `pages` pages, where there are `now` with `known`.
fn grown(now: u64, (known, pages): (u64, u64)) -> u64 {
    let grown = u128::from(now) * u128::from(pages) / u128::from(known.max(1));
    u64::try_from(grown).unwrap_or(u64::MAX)
}

/// The same of pages of others, of which there may be more where there are few.
fn grown_ghosts(now: u64, (known, pages): (u64, u64)) -> u64 {
    let least = if known < FEW { pages } else { 0 };
    grown(now, (known, pages)).max(least)
}

/// Bytes that it takes that cash crosses from partition to partition.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Crossing {
    /// At the ends of epochs,
    epochs: u64,
    /// and in a snapshot.
    publishing: u64,
}

impl Crossing {
    /// With `pages` pages, of which partitions know `known`, where those of a process know so many pages of others now.
    pub fn new((known, pages): (u64, u64), ghosts: u64) -> Crossing {
        Crossing {
            epochs: grown_ghosts(ghosts, (known, pages)) * CROSSING,
            publishing: 0,
        }
    }

    /// And of so many partitions, which know so many pages of others, this process makes snapshots.
    pub fn with_snapshots(
        self,
        config: &Config,
        parts: u64,
        (known, pages): (u64, u64),
        ghosts: u64,
    ) -> Crossing {
        let grown = grown_ghosts(ghosts, (known, pages));
        // Of cash and of each mark, a chunk of each partition.
        let chunks = parts * CHUNK_PAGES.min(pages + grown) * CASH;
        let copies = 1 + if config.makes_marks() {
            u64::from(config.marks)
        } else {
            0
        };
        Crossing {
            publishing: grown * WAITING + chunks * copies,
            ..self
        }
    }

    /// All of it.
    pub fn total(self) -> u64 {
        self.epochs + self.publishing
    }
}

impl Need {
    /// The memory that partitions need with `pages` pages, of which they know `known`. Pages of others that they link to
    /// are taken to grow with them.
    pub(crate) fn of_parts(
        config: &Config,
        shares: &[PartsInMemory],
        (known, pages): (u64, u64),
        budget: Option<u64>,
    ) -> Need {
        let (mut all, mut there) = (Sum::default(), Sum::default());
        let mut most = 0;
        for share in shares {
            share.add_to(&mut there);
            share.parts.iter().for_each(|&part| all.add(part));
            most = share.parts.iter().fold(most, |most, part| most.max(part.0));
        }
        let grown = |local: u64| grown(local, (known, pages));
        let least = if known < FEW { 2 * pages } else { pages };
        let local = grown(all.pages).max(least);
        let mean = least * u64::from(there.count) / u64::from(all.count.max(1));
        let in_memory = match there.count {
            here if here == all.count => local,
            // Hosts are of different sizes: the largest partition has about twice as many pages as the mean.
            _ if known < FEW => grown(there.pages).max(least.min(2 * mean)),
            _ => grown(there.pages).max(mean),
        };
        let index = there.index + in_memory.saturating_sub(there.pages) * INDEX_GROWING;
        let need = Need::in_parts(config, index, (all.count, pages, local), budget);
        // What there is of two of them is there twice while it grows.
        let twice = u128::from(in_memory) * 2 * u128::from(most) / u128::from(there.pages.max(1));
        let twice = u64::try_from(twice).unwrap_or(u64::MAX).min(in_memory);
        let cash = Need::new(config, in_memory, 0, 0, budget).cash;
        let publishing = if there.count < all.count {
            PUBLISHING_LEAST + ranking(pages, true)
        } else {
            PUBLISHING
        };
        Need {
            publishing: need.publishing.min(publishing),
            cash: cash + u64::from(there.count) * 2 * HUGE_PAGE.min(pages * 9) + twice * CASH,
            ..need
        }
    }

    /// The same where cash crosses, with what that takes.
    pub(crate) fn with(self, crossing: Crossing) -> Need {
        Need {
            cash: self.cash + crossing.epochs,
            publishing: self.publishing + crossing.publishing,
            ..self
        }
    }

    /// In so many partitions, with so many pages, of which the partitions know `local` when each counts its own and those
    /// that it links to.
    fn in_parts(
        config: &Config,
        index: u64,
        (count, pages, local): (u32, u64, u64),
        budget: Option<u64>,
    ) -> Need {
        let parts = u64::from(count);
        let all = Need::new(config, local, index, 0, budget);
        let one = Need::new(config, pages, 0, 0, budget);
        Need {
            cash: all.cash + parts * 2 * HUGE_PAGE.min(pages * 9),
            database: part_of_cache(count) * parts,
            buffers: BUFFERS + parts * PART_BUFFERS,
            publishing: one.publishing,
            ..all
        }
    }

    /// To continue with a store of so many partitions and pages, of which the partitions know `local` when each counts its own
    /// and those that it links to.
    pub(crate) fn to_resume_parts(config: &Config, count: u32, pages: u64, local: u64) -> Need {
        let index = Index::bytes_with_room(local);
        Need::in_parts(config, index, (count, pages, local), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: u64 = 1_000_000;

    /// Eight partitions of two million pages each, with an index of 12.5 bytes a page.
    fn need(resident: usize, threads: usize, budget: Option<u64>) -> Need {
        let share = PartsInMemory {
            parts: vec![(2 * MILLION, 25 * MILLION); 8],
            resident,
            threads,
        };
        let pages = (12 * MILLION, 12 * MILLION);
        Need::of_parts(&Config::default(), &[share], pages, budget)
    }

    #[test]
    fn those_that_are_there_count() {
        for (resident, threads, there) in [(1, 1, 1), (1, 4, 1), (3, 1, 3), (3, 2, 3), (8, 2, 8)] {
            let need = need(resident, threads, None);
            assert_eq!(need.index, there * 25 * MILLION, "{resident}, {threads}");
            // 8.5 bytes of each, and 9 more of two that grow.
            let twice = there.min(2) * 2 * MILLION * 9;
            let cash = there * 2 * MILLION * 17 / 2 + twice;
            // A ranking of those that take turns has little memory for its ranks.
            let ranks = [PUBLISHING, PUBLISHING_LEAST + ranking(12 * MILLION, true)];
            assert_eq!(need.publishing, ranks[usize::from(there < 8)]);
            let in_pages = (2 * there + 2) * HUGE_PAGE;
            assert!((cash..cash + in_pages).contains(&need.cash), "{need:?}");
        }
        // A bit of each page of all.
        assert_eq!(need(1, 1, None).rows, need(8, 1, None).rows);
    }

    #[test]
    fn as_many_are_there_as_a_budget_has_room_for() {
        let share = PartsInMemory {
            parts: vec![(2 * MILLION, 25 * MILLION); 8],
            resident: 8,
            threads: 2,
        };
        let pages = (12 * MILLION, 12 * MILLION);
        let of = |budget| {
            most_resident(
                &Config::default(),
                std::slice::from_ref(&share),
                pages,
                (budget, 0),
            )
        };
        assert_eq!((of(0), of(u64::MAX)), (1, 8));
        for resident in 1..=8 {
            // The log takes a share of a budget, and no more than without one.
            let budget = need(resident, 2, None).total();
            let found = of(budget);
            assert!(found >= resident && need(found, 2, Some(budget)).total() <= budget);
            assert!(found == 8 || need(found + 1, 2, Some(budget)).total() > budget);
        }
    }
}
