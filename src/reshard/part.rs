//! A partition of the new store while it is written, or the store itself where it has none.

use std::path::Path;

use super::deal::Deal;
use crate::batch::Batch;
use crate::engine::{
    Counters, Engine, Links, PageEntry, PageId, Resolver, Row as Facts, RowFetches, digest_of,
};
use crate::model::{Digest, Fingerprint, LinkCounts, Time, What};
use crate::rows::{Ghost, PAGES_MAX, Row};
use crate::store::{FactsRun, Progress, Store, checkpoint};
use crate::{Error, Result};

/// See the head of the file.
pub(super) struct Part {
    pub number: u32,
    pub engine: Engine<Store>,
    resolver: Resolver,
    /// Names of its own that wait for being admitted.
    names: Batch,
    /// Rows that wait for being applied.
    queue: Queue,
    /// Of each of its own pages that has a row, what tells the links of that by their new numbers from others.
    digests: Vec<Digest>,
    facts: Option<FactsRun>,
    /// Visits that these tell of.
    visits: u64,
    used: Used,
}

/// Rows by the numbers of all pages.
#[derive(Default)]
struct Queue {
    /// Page, whether it is gone, and where its targets and their weights end.
    heads: Vec<(u32, bool, usize, usize)>,
    targets: Vec<u32>,
    weights: Vec<u64>,
}

/// Room for one row after the other.
#[derive(Default)]
struct Used {
    targets: Vec<PageId>,
    ghosts: Batch,
}

impl Part {
    /// One that is open and has no page yet.
    pub fn new(number: u32, mut engine: Engine<Store>) -> Part {
        // Nothing is fetched now. What fetches found is told apart.
        engine.set_replay(true);
        Part {
            number,
            engine,
            resolver: Resolver::default(),
            names: Batch::default(),
            queue: Queue::default(),
            digests: Vec::new(),
            facts: None,
            visits: 0,
            used: Used::default(),
        }
    }

    /// Pages that it knows, and the bytes of its index.
    pub fn size(&self) -> (u64, u64) {
        let pages = self.engine.ledger().totals().pages;
        (pages, self.engine.index_bytes_at(pages))
    }

    /// Queues the name of its next page.
    pub fn queue_name(&mut self, name: &str, print: Fingerprint) {
        self.names.push_name(name.as_bytes(), print);
    }

    /// Admits the names that are queued.
    ///
    /// # Errors
    /// Those of writing; [`Error::Unsupported`]: one has the fingerprint of another.
    pub fn admit_names(&mut self) -> Result<()> {
        let names = &mut self.names;
        let first = self.engine.ledger().totals().pages;
        let count = names.fingerprints.len();
        self.engine.make_room(count as u64, PAGES_MAX)?;
        self.resolver.admit(&mut self.engine, names)?;
        let one = (first..)
            .zip(self.resolver.own())
            .position(|(page, own)| own.0 != page);
        if let Some(at) = one {
            return Err(Error::Unsupported(format!(
                "{}: to the index it is one page with another; as many partitions as the store has keep them apart",
                String::from_utf8_lossy(names.name(at as u32))
            )));
        }
        self.digests.resize(first as usize + count, Digest::NONE);
        clear(names);
        Ok(())
    }

    /// Queues a row, by the numbers of all pages, of a page of its own.
    pub fn queue_row(&mut self, row: &Row<'_>) {
        let queue = &mut self.queue;
        queue.targets.extend_from_slice(row.targets);
        queue.weights.extend_from_slice(row.weights);
        let ends = (queue.targets.len(), queue.weights.len());
        queue.heads.push((row.page, row.gone, ends.0, ends.1));
    }

    /// Visits the pages whose rows are queued, in their order.
    ///
    /// # Errors
    /// Those of writing.
    pub fn apply_rows(&mut self, deal: &Deal) -> Result<()> {
        let queue = std::mem::take(&mut self.queue);
        let pages = self.admit_ghosts(&queue, deal)?;
        let (mut targets, mut weights, mut ghosts) = (0, 0, pages.into_iter());
        for (page, gone, targets_end, weights_end) in &queue.heads {
            let to = &queue.targets[targets..*targets_end];
            let heavy = &queue.weights[weights..*weights_end];
            (targets, weights) = (*targets_end, *weights_end);
            self.used.targets.clear();
            for &target in to {
                let (owner, at) = deal.place(target);
                let page = if owner == self.number {
                    Some(PageId(at.into()))
                } else {
                    ghosts.next()
                };
                let page = page.ok_or_else(|| Error::internal("a ghost has no page"))?;
                self.used.targets.push(page);
            }
            let links = Links {
                targets: &self.used.targets,
                weights: heavy,
            };
            let (_, at) = deal.place(*page);
            let (what, digest) = if *gone {
                (What::Gone, Digest::GONE)
            } else {
                (What::Visit, digest_of(links))
            };
            self.engine.apply(&PageEntry {
                what,
                page: PageId(at.into()),
                links,
                fetched_at: None,
                digest: Digest::NONE,
                counts: LinkCounts::default(),
            })?;
            let noted = self.digests.get_mut(at as usize);
            *noted.ok_or_else(|| Error::internal("a row is of no page"))? = digest;
        }
        Ok(())
    }

    /// Pages of others among the targets of queued rows, in their order. New ones are admitted.
    fn admit_ghosts(&mut self, queue: &Queue, deal: &Deal) -> Result<Vec<PageId>> {
        let batch = &mut self.used.ghosts;
        clear(batch);
        let is_ghost = |target: &&u32| deal.place(**target).0 != self.number;
        for &target in queue.targets.iter().filter(is_ghost) {
            batch.push_name(b"", deal.print(target));
        }
        let mut next = self.engine.ledger().totals().pages;
        self.engine
            .make_room(batch.fingerprints.len() as u64, PAGES_MAX)?;
        self.resolver.admit(&mut self.engine, batch)?;
        let pages = self.resolver.own().to_vec();
        for (&target, page) in queue.targets.iter().filter(is_ghost).zip(&pages) {
            if page.0 != next {
                continue;
            }
            let (owner, at) = deal.place(target);
            let page = next as u32;
            next += 1;
            let store = self.engine.storage_mut();
            store.add_address(Ghost { page, owner, at })?;
        }
        Ok(pages)
    }

    /// All rows were applied; facts come next.
    ///
    /// # Errors
    /// Those of writing.
    pub fn begin_facts(&mut self) -> Result<()> {
        self.engine.flush_log()?;
        let interval = self.engine.state().marks_made;
        self.facts = Some(self.engine.storage_mut().begin_facts(interval)?);
        Ok(())
    }

    /// Adds what is known of its page `at`, less the visit that its row made.
    ///
    /// # Errors
    /// Those of writing; `of`: the store's history has no visit of a page that has a row.
    pub fn add_facts(&mut self, at: u32, mut facts: Facts, of: &Path) -> Result<()> {
        let digest = self
            .digests
            .get(at as usize)
            .copied()
            .unwrap_or(Digest::NONE);
        let visited = u64::from(digest != Digest::NONE);
        let visits = facts.visits.checked_sub(visited).ok_or_else(|| {
            let what = format!("page {} has links and no visit", facts.page);
            Error::damaged(of.join("store.redb"), what)
        })?;
        if digest.is_of_links() {
            facts.fetches.renumber(digest);
        }
        let row = Facts {
            page: at.into(),
            visits,
            last_fetch: facts.last_fetch,
            fetches: facts.fetches,
            ..Facts::default()
        };
        self.visits += visits;
        let is_nothing =
            visits == 0 && row.last_fetch.is_none() && row.fetches == RowFetches::default();
        match &mut self.facts {
            Some(run) if !is_nothing => self.engine.storage_mut().add_facts(run, row),
            _ => Ok(()),
        }
    }

    /// Commits it.
    ///
    /// # Errors
    /// Those of writing.
    pub fn commit(
        &mut self,
        (counters, time): (&Counters, Option<Time>),
        progress: &Progress,
    ) -> Result<()> {
        if let Some(run) = self.facts.take() {
            self.engine.storage_mut().end_facts(run)?;
        }
        self.engine.set_replay(false);
        self.engine.take_over(counters, time, self.visits);
        checkpoint(&mut self.engine, progress)
    }
}

fn clear(batch: &mut Batch) {
    batch.text.clear();
    batch.text_ends.clear();
    batch.fingerprints.clear();
}
