//! A store with partitions settled by several processes, each its share of them.
//!
//! Process 0 has the store's lock and its whole ([`super::Settle`]); it says how near to come, and publishes what all have
//! settled. Each of the others has the partitions of its share ([`Share`]), and writes nothing.

use std::path::Path;
use std::sync::Arc;

use super::base::parts;
use super::settling::{Watcher, Watching};
use crate::disk::Disk;
use crate::engine::{Certificate, Effort, Scores};
use crate::memory::UNPACKED_ROWS;
use crate::rank::Options;
use crate::rank::settle::{Gathered, Settled, Workers, settle_parts};
use crate::rows::Rows;
use crate::store::{RowBlock, SomeParts, View, ViewBlocks, open_some_parts};
use crate::{Error, Result};

/// Settles blocks of a state, with those who have the others.
pub(super) fn settle(
    view: &View,
    own: ViewBlocks,
    options: &Options,
    workers: &Workers,
    watch: &mut Watching<'_>,
) -> Result<Option<InOrder>> {
    let peers = &workers.peers;
    let message = [options.until.to_bits(), options.spare].map(u64::to_le_bytes);
    peers.hear(message.concat())?;
    let places = own.places.unwrap_or_default();
    let mut pages = vec![0; view.partitions()];
    for &(part, _) in places.iter() {
        pages[part as usize] += 1;
    }
    let settled = settle_blocks(&own.blocks, &pages, options, workers, watch)?;
    Ok(settled.map(|(settled, gathered)| InOrder {
        places: Some(if peers.processes() == 1 {
            places
        } else {
            by_owner(&places, workers)
        }),
        settled,
        gathered,
    }))
}

/// The places with the numbers that pages of other processes have among those that their partition owns: in the order of
/// all pages, they ascend.
fn by_owner(places: &[(u32, u32)], workers: &Workers) -> Arc<[(u32, u32)]> {
    let mut known = Vec::new();
    let place = |&(part, at): &(u32, u32)| {
        if workers.peers.has(part as usize) {
            return (part, at);
        }
        if known.len() <= part as usize {
            known.resize(part as usize + 1, 0);
        }
        let next = &mut known[part as usize];
        *next += 1;
        (part, *next - 1)
    };
    places.iter().map(place).collect()
}

fn settle_blocks(
    blocks: &[RowBlock],
    own: &[usize],
    options: &Options,
    workers: &Workers,
    watch: &mut Watching<'_>,
) -> Result<Option<(Settled, Gathered)>> {
    let settled = settle_parts(&parts(blocks), options, workers, watch)?;
    if watch.is_one_stopped(&workers.peers)? {
        return Ok(None);
    }
    let gathered = settled.map(|settled| Ok((settled.gather(own)?, settled)));
    let both = gathered.transpose()?;
    Ok(both.map(|(gathered, settled)| (settled, gathered)))
}

/// The partitions of a process that is not the first.
pub struct Share {
    parts: SomeParts,
}

impl Share {
    /// Opens the partitions that process number `process` of so many settles.
    ///
    /// # Errors
    /// [`Error::Usage`]: the store has no partitions, or fewer than processes; those of reading it.
    pub fn open(disk: &dyn Disk, dir: &Path, process: usize, processes: usize) -> Result<Share> {
        let parts = open_some_parts(disk, dir, &|part| part % processes.max(1) == process)?;
        check_processes(parts.count, processes)?;
        Ok(Share { parts })
    }

    /// See [`crate::store::View::digest`].
    pub fn digest(&self) -> u128 {
        self.parts.digest
    }

    /// How many partitions the store has in all.
    pub fn partitions(&self) -> usize {
        self.parts.count
    }

    /// Pages that it has to go over.
    pub fn pages(&self) -> u64 {
        let blocks = self.parts.blocks.iter();
        blocks.map(|block| block.rows.pages()).sum()
    }

    /// Settles as process 0 says ([`super::Settle::peers`]), unless it has nothing to do. Where a process was stopped, `watcher`
    /// knows.
    ///
    /// # Errors
    /// Those of reading rows, and of [`crate::rank::settle::Exchange`].
    pub fn settle(&self, workers: &Workers, watcher: &Watcher) -> Result<()> {
        let message = workers.peers.hear(Vec::new())?;
        if message.is_empty() {
            return Ok(());
        }
        let unknown = || Error::internal("process 0 said something unknown");
        let (until, rest) = message.split_first_chunk().ok_or_else(unknown)?;
        let spare = rest.try_into().map_err(|_| unknown())?;
        let [until, spare] = [*until, spare].map(u64::from_le_bytes);
        let options = Options {
            spare,
            ..Options::until(
                self.parts.settings.config.damping_units(),
                f64::from_bits(until),
            )
        };
        let mut watching = Watching::new(watcher, None);
        let blocks = &self.parts.blocks;
        for block in blocks {
            block.rows.stay_in(UNPACKED_ROWS / blocks.len() as u64);
        }
        settle_blocks(blocks, &[], &options, workers, &mut watching).map(drop)
    }
}

/// Checks that each of so many processes has a partition.
///
/// # Errors
/// [`Error::Usage`].
pub fn check_processes(partitions: usize, processes: usize) -> Result<()> {
    if partitions == 0 {
        let what = "the store has no `partitions` that processes could share";
        return Err(Error::Usage(what.into()));
    }
    if processes == 0 || processes > partitions {
        return Err(Error::Usage(format!(
            "{processes} processes cannot share {partitions} `partitions`: there can be as many as partitions at most"
        )));
    }
    Ok(())
}

/// Pages of a state that a process of several goes over, and pages that the others do.
pub fn settled_pages(view: &View, process: usize, processes: usize) -> (u64, u64) {
    let pages = view.settled_pages_of(&|part| part % processes.max(1) == process);
    (pages, view.settled_pages() - pages)
}

/// What was settled in blocks, in the order of all pages.
pub(super) struct InOrder {
    pub settled: Settled,
    /// What other processes settled.
    gathered: Gathered,
    /// The block of each page, and its number there, which [`by_owner`] counts where others have it; `None`: there is one
    /// block.
    places: Option<Arc<[(u32, u32)]>>,
}

impl InOrder {
    /// All by this process.
    pub fn of(settled: Settled, places: Option<Arc<[(u32, u32)]>>) -> InOrder {
        InOrder {
            settled,
            gathered: Gathered::default(),
            places,
        }
    }
}

impl Scores for InOrder {
    fn certificate(&self) -> Option<Certificate> {
        Scores::certificate(&self.settled)
    }

    fn effort(&self) -> Effort {
        self.settled.effort()
    }

    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) {
        let Some(places) = &self.places else {
            return self.settled.read(first, len, out);
        };
        let places = &places[first as usize..][..len];
        let pages = places.iter();
        out.clear();
        out.extend(pages.map(|&(block, at)| {
            self.settled
                .estimate_in(&self.gathered, block as usize, at as usize)
        }));
    }
}
