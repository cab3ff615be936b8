use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::rows::{RowVisitor, Stop};
use crate::schedule::{Ask, CrawlHistory, ScoredPage};

/// Rows of pages read, in that order; the last row of a page counts.
#[derive(Clone)]
struct RowsRead(Vec<(u32, Vec<u32>)>);

impl Rows for RowsRead {
    fn pages(&self) -> u64 {
        u64::from(PAGES)
    }

    fn links(&self) -> u64 {
        self.0.iter().map(|(_, row)| row.len() as u64).sum()
    }

    fn walk(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.0
            .iter()
            .try_for_each(|(page, targets)| visit(Row::new(*page, targets)))
    }
}

struct Nothing;

impl crate::schedule::Strategy for Nothing {
    fn best(&mut self, _ask: &Ask<'_>) -> Result<Vec<ScoredPage>> {
        Ok(Vec::new())
    }
}

const PAGES: u32 = 12;

/// Solves the equations by fixed-point iteration, for two payers: each page read pays a unit to itself, and page 0, if
/// read, a unit.
fn solved(crawl: &CrawlState, kept: &RowsRead, damping: f64, returned: f64) -> Vec<[f64; 2]> {
    let mut now = vec![[0.0; 2]; PAGES as usize];
    for _ in 0..400 {
        let mut then = vec![[0.0; 2]; PAGES as usize];
        for (page, targets) in &kept.0 {
            let of = *page as usize;
            add(&mut then[of], [1.0, f64::from(u8::from(of == 0))]);
            for target in targets {
                let handed = now[of].map(|units| damping * units / targets.len() as f64);
                add(&mut then[*target as usize], handed);
                if !crawl.is_read(*target) {
                    add(&mut then[of], handed.map(|units| returned * units));
                }
            }
        }
        now = then;
    }
    now
}

fn rows() -> impl Strategy<Value = Vec<(u32, Vec<u32>)>> {
    vec((0..PAGES, vec(0..PAGES, 0..5)), 1..14).prop_map(|rows| {
        let mut seen = Vec::new();
        let clean = |(page, mut targets): (u32, Vec<u32>)| {
            targets.sort_unstable();
            targets.dedup();
            targets.retain(|&target| target != page);
            (page, targets)
        };
        let mut rows: Vec<_> = rows.into_iter().map(clean).collect();
        rows.retain(|(page, _)| {
            let new = !seen.contains(page);
            seen.push(*page);
            new
        });
        rows
    })
}

/// Returns the sum of all residuals that the law predicts.
fn held_by_law(pushes: &Pushes<2>, crawl: &CrawlState, kept: &RowsRead) -> [f64; 2] {
    let mut sum = [0.0; 2];
    for (page, targets) in &kept.0 {
        let open = pushes.open[*page as usize];
        let has_links = if targets.is_empty() {
            0.0
        } else {
            pushes.damping
        };
        let factor = has_links + pushes.returned * pushes.damping * open - 1.0;
        add(&mut sum, [1.0, f64::from(u8::from(*page == 0))]);
        add(&mut sum, pushes.handed(*page).map(|handed| factor * handed));
    }
    assert_eq!(u32::try_from(kept.0.len()).unwrap(), crawl.read());
    sum
}

fn check(
    pushes: &Pushes<2>,
    crawl: &CrawlState,
    kept: &RowsRead,
) -> std::result::Result<(), TestCaseError> {
    let law = held_by_law(pushes, crawl, kept);
    let exact = solved(crawl, kept, pushes.damping, pushes.returned);
    let bound = pushes.bound(crawl);
    for payer in 0..2 {
        let held: f64 = (0..PAGES).map(|page| pushes.held(page)[payer]).sum();
        prop_assert!((held - law[payer]).abs() < 1e-9, "{held} {law:?}");
        let mut off = [0.0; 2];
        for page in 0..PAGES {
            let is_read = crawl.pages() > page && crawl.is_read(page);
            let found = if is_read {
                pushes.handed(page)[payer]
            } else {
                pushes.held(page)[payer]
            };
            off[usize::from(is_read)] += (found - exact[page as usize][payer]).abs();
        }
        prop_assert!(off[1] <= bound[payer] + 1e-9, "{off:?} {bound:?}");
        prop_assert!(
            off[0] <= pushes.damping * bound[payer] + 1e-9,
            "{off:?} {bound:?}"
        );
    }
    Ok(())
}

proptest! {
    /// Checks the law and the certificate after every page, and the solution in the end, whatever was settled on the
    /// way; then with another returned part.
    #[test]
    fn pushes_solve_the_equations(rows in rows(), settled in vec(any::<bool>(), 14), damping in 0.0..0.9, returned in 0.0..1.0) {
        let worth = PushThresholds { weights: [1.0, 1.0], least: 1e-13, enough: 0.0 };
        let mut history = CrawlHistory::new(Box::new(Nothing));
        let mut pushes = Pushes::<2>::new(damping, returned);
        pushes.grow(PAGES);
        let mut kept = RowsRead(Vec::new());
        let mut found = std::collections::HashMap::new();
        for ((page, targets), settle) in rows.iter().zip(settled) {
            let new = |target: &&u32| **target >= history.crawl().pages();
            let part = 1.0 / targets.len() as f64;
            found.extend(targets.iter().filter(new).map(|&target| (target, (*page, part))));
            history.row(Row::new(*page, targets));
            kept.0.push((*page, targets.clone()));
            pushes.begin(*page, found.get(page).copied());
            pushes.pay(*page, [1.0, f64::from(u8::from(*page == 0))]);
            pushes.push(history.crawl(), Row::new(*page, targets));
            if settle {
                pushes.settle(history.crawl(), &kept, worth, 3).unwrap();
            }
            check(&pushes, history.crawl(), &kept)?;
        }
        pushes.set_returned(1.0 - returned);
        check(&pushes, history.crawl(), &kept)?;
        // Every second row changes: its links become those of the row before it.
        let earlier = kept.clone();
        for at in (1..kept.0.len()).step_by(2) {
            let page = kept.0[at].0;
            kept.0[at].1 = earlier.0[at - 1].1.iter().copied().filter(|&target| target != page).collect();
        }
        let paid = |page: u32| {
            let is_read = f64::from(u8::from(history.crawl().pages() > page && history.crawl().is_read(page)));
            [is_read, if page == 0 { is_read } else { 0.0 }]
        };
        pushes.renew(history.crawl(), &kept, returned, paid, Pushes::handed).unwrap();
        check(&pushes, history.crawl(), &kept)?;
        // Starts from an arbitrary state.
        pushes.renew(history.crawl(), &kept, returned, paid, |_, page| [f64::from(page), 0.5]).unwrap();
        check(&pushes, history.crawl(), &kept)?;
        // Rows that were not pushed since other pages were read still have stale returns: pushes all of them.
        for (page, targets) in &kept.0 {
            pushes.push(history.crawl(), Row::new(*page, targets));
        }
        pushes.settle(history.crawl(), &kept, worth, 1000).unwrap();
        prop_assert!(pushes.bound(history.crawl()).iter().all(|bound| *bound < 1e-9), "{:?}", pushes.bound(history.crawl()));
        check(&pushes, history.crawl(), &kept)?;
    }
}
