//! Checking the partitions of a committed state: each as a store ([`super::verify`]), and that they fit together.
//!
//! | part | [`Depth::Quick`] reads | [`Depth::Deep`] reads too |
//! |---|---|---|
//! | `addresses` | all: each of a partition's own pages occurs once, in ascending order | its index |
//! | `ghosts` | all: its pages are none of the partition's own, each is one of its owner's | its index, and that both have one fingerprint |
//! | `urls` | | that a page is in the partition of its host, and ghosts have no name |
//! | counts | visits and records of the partitions are those of the store, and so is their cash, where it crosses | |

use super::View;
use super::addresses::{ADDRESSES, GHOSTS};
use super::verify::{Depth, Report};
use super::view_parts::{GhostLog, ViewParts};
use crate::batch::split::partition_of;
use crate::engine::{Counters, Fingerprint, check_funds};
use crate::rows::{Ghost, Ghosts};
use crate::{Error, Result};

/// Bytes a page that a deep check takes for fingerprints.
pub(super) const PRINT_BYTES: u64 = size_of::<u64>() as u64;

impl ViewParts {
    /// Checks all partitions of a store. What they have together.
    pub(super) fn inspect(&self, whole: &View, depth: Depth, damage: &mut Vec<Error>) -> Report {
        let pages = self.totals.pages;
        let mut all = Report {
            pages,
            expected_wrong_merges: crate::engine::expected_wrong_merges(pages),
            ..Report::default()
        };
        let add = |sum: &mut Option<u64>, part: Option<u64>, less: u64| {
            *sum = part
                .map(|part| part.saturating_sub(less) + sum.unwrap_or(0))
                .or(*sum);
        };
        for (view, ghosts) in self.views.iter().zip(&self.ghosts) {
            let part = view.inspect(depth, damage);
            // Of pages of others there is a fingerprint, and no name.
            let ghosts = ghosts.count();
            all.cash_chunks += part.cash_chunks;
            all.marks += part.marks;
            all.fingerprints += part.fingerprints.saturating_sub(ghosts);
            add(&mut all.rows, part.rows, 0);
            add(&mut all.row_links, part.row_links, 0);
            add(&mut all.names, part.names, ghosts);
            add(&mut all.history_rows, part.history_rows, 0);
            add(&mut all.admissions, part.admissions, 0);
        }
        let mut note = |checked: Result<()>| damage.extend(checked.err());
        note(self.inspect_counts(whole));
        note(self.inspect_funds(whole));
        match self.read() {
            Ok(inside) => inside.inspect(whole, depth, &mut note),
            Err(error) => note(Err(error)),
        }
        if depth == Depth::Deep {
            note(self.order.verify_index());
            for log in &self.ghosts {
                note(log.verify_index());
            }
        }
        all
    }

    /// Reads how they hang together.
    fn read(&self) -> Result<Inside<'_>> {
        let pages = self.views.iter().map(|view| view.state().totals.pages);
        let ghosts = self.ghosts.iter().map(GhostLog::read);
        Ok(Inside {
            parts: self,
            numbers: self.order.numbers(pages)?,
            ghosts: ghosts.collect::<Result<_>>()?,
        })
    }

    /// What the partitions counted must be what the store did.
    fn inspect_counts(&self, whole: &View) -> Result<()> {
        let of_pages = |counters: &Counters| {
            [
                counters.records,
                counters.gone,
                counters.unchanged,
                counters.failed,
                counters.links,
                counters.visited,
            ]
        };
        let mut sums = [0; 6];
        for view in &self.views {
            for (sum, count) in sums.iter_mut().zip(of_pages(view.counters())) {
                *sum += count;
            }
        }
        if sums == of_pages(whole.counters()) {
            return Ok(());
        }
        let what = "its counts of records, links and visited pages are not those of its partitions";
        Err(Error::damaged(whole.dir.join("store.redb"), what))
    }
}

impl ViewParts {
    /// Where cash crosses, none was lost or made on the way.
    fn inspect_funds(&self, whole: &View) -> Result<()> {
        if !whole.has_cash() {
            return Ok(());
        }
        let funds = |view: &View| {
            let joint = view.manifest.joint.as_ref();
            joint.map_or(0, |joint| joint.joint.funds)
        };
        let all = self.views.iter().chain([whole]).map(funds);
        let law = check_funds(all, self.totals.pages);
        law.map_err(|what| Error::damaged(whole.dir.join("store.redb"), what))
    }
}

/// How the partitions of a state hang together.
struct Inside<'p> {
    parts: &'p ViewParts,
    /// By partition: the number of each of its own pages among all. They ascend.
    numbers: Vec<Vec<u32>>,
    ghosts: Vec<Vec<Ghost>>,
}

impl Inside<'_> {
    fn inspect(&self, whole: &View, depth: Depth, note: &mut impl FnMut(Result<()>)) {
        note(self.inspect_order(whole));
        for number in 0..self.ghosts.len() {
            note(self.inspect_ghosts(number));
        }
        if depth == Depth::Deep {
            for number in 0..self.ghosts.len() {
                note(self.inspect_names(number));
            }
            note(self.inspect_prints());
        }
    }

    /// Each of a partition's own pages must have its place in the order of all.
    fn inspect_order(&self, whole: &View) -> Result<()> {
        let own = self
            .numbers
            .iter()
            .flatten()
            .filter(|&&page| page != u32::MAX);
        let ascend = |numbers: &Vec<u32>| {
            let own = numbers.iter().filter(|&&page| page != u32::MAX);
            own.is_sorted_by(|one, other| one < other)
        };
        let what = if own.count() as u64 != self.parts.totals.pages {
            "a page occurs twice"
        } else if self.numbers.iter().all(ascend) {
            return Ok(());
        } else {
            "pages of a partition are not in its order"
        };
        Err(Error::damaged(whole.dir.join(ADDRESSES), what))
    }

    /// The ghosts of a partition are all of its pages that are not its own, and their owners have them.
    fn inspect_ghosts(&self, number: usize) -> Result<()> {
        let (ghosts, numbers) = (&self.ghosts[number], &self.numbers[number]);
        let bad = |what: String| Error::damaged(self.parts.views[number].dir.join(GHOSTS), what);
        let own = numbers.iter().filter(|&&page| page != u32::MAX).count();
        if own + ghosts.len() != numbers.len() {
            let what = format!(
                "{} pages, where {} are not its own",
                ghosts.len(),
                numbers.len() - own
            );
            return Err(bad(what));
        }
        for ghost in ghosts.iter() {
            let at = |owner: usize, page: u32| self.numbers.get(owner)?.get(page as usize).copied();
            let here = at(number, ghost.page);
            let there = at(ghost.owner as usize, ghost.at);
            if here != Some(u32::MAX) || there.is_none_or(|page| page == u32::MAX) {
                let what = format!(
                    "page {} is said to be page {} of partition {}, which it is not",
                    ghost.page, ghost.at, ghost.owner
                );
                return Err(bad(what));
            }
        }
        Ok(())
    }

    /// Names are those of the partition's own pages, and no others.
    fn inspect_names(&self, number: usize) -> Result<()> {
        let view = &self.parts.views[number];
        let count = self.parts.views.len() as u32;
        for (page, (name, &own)) in view.names.names().zip(&self.numbers[number]).enumerate() {
            let name = name?;
            let is_right = match own {
                u32::MAX => name.is_empty(),
                _ => partition_of(name.as_bytes(), count) == number as u32,
            };
            if !is_right {
                let what =
                    format!("page {page} has the name {name:?}, which is another partition's");
                return Err(Error::damaged(view.dir.join("urls"), what));
            }
        }
        Ok(())
    }

    /// A ghost has the fingerprint that its owner has of the page.
    fn inspect_prints(&self) -> Result<()> {
        let mut prints = vec![0u64; self.parts.totals.pages as usize];
        for (view, numbers) in self.parts.views.iter().zip(&self.numbers) {
            for (print, &page) in view.names.fingerprints().zip(numbers) {
                if let Some(slot) = prints.get_mut(page as usize) {
                    *slot = low(print?);
                }
            }
        }
        for (view, ghosts) in self.parts.views.iter().zip(&self.ghosts) {
            let mut ghosts = ghosts.iter().peekable();
            for (page, print) in view.names.fingerprints().enumerate() {
                let print = low(print?);
                let Some(ghost) = ghosts.next_if(|ghost| ghost.page as usize == page) else {
                    continue;
                };
                let owner = self.numbers.get(ghost.owner as usize);
                let there = owner.and_then(|pages| pages.get(ghost.at as usize));
                let there = there.and_then(|&page| prints.get(page as usize));
                if there != Some(&print) {
                    let what = format!(
                        "page {page} is another than page {} of partition {}",
                        ghost.at, ghost.owner
                    );
                    return Err(Error::damaged(view.dir.join(GHOSTS), what));
                }
            }
        }
        Ok(())
    }
}

/// Enough of a fingerprint to tell two pages apart.
fn low(print: Fingerprint) -> u64 {
    print as u64
}
