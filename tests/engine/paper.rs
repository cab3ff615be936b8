//! `recycle_after` 0 against the algorithm of the OPIC paper, section 2, as published: pages that nobody visits and
//! pages that are gone keep their cash, so Lemmas 2.2 and 2.3 hold, and every page's history grows only by visits
//! (Lemma 6.2).

use std::borrow::Cow;

use cashrank_crawl::decode::{Link, Record};
use cashrank_graph::engine::{Config, Estimator, PageId, WindowPolicy};

use super::stream::Run;

const PAGES: usize = 40;
/// Index of the first page that is linked to and never visited.
const VISITED: usize = 30;
/// More than two rounds.
const RECORDS: usize = 3_000;
const ENDOWMENT: f64 = (1u64 << 30) as f64;

/// Vectors of section 2, with an initial cash of 1 for each page instead of 1/n. The virtual page, which links to every
/// page and from every page (section 1), passes on what it gets at once.
struct Opic {
    damping: f64,
    cash: Vec<f64>,
    history: Vec<f64>,
    /// G
    distributed: f64,
}

impl Opic {
    fn visit(&mut self, page: usize, children: &[usize]) {
        let cash = std::mem::take(&mut self.cash[page]);
        self.history[page] += cash;
        self.distributed += cash;
        let over_links = if children.is_empty() {
            0.0
        } else {
            cash * self.damping
        };
        for &child in children {
            self.cash[child] += over_links / children.len() as f64;
        }
        for cash_of in &mut self.cash {
            *cash_of += (cash - over_links) / PAGES as f64;
        }
    }

    /// Returns (H + C)/(G + 1), where 1 is all cash.
    fn estimate(&self, page: usize) -> f64 {
        (self.history[page] + self.cash[page]) / (self.distributed + PAGES as f64)
    }
}

fn name(page: usize) -> Cow<'static, [u8]> {
    Cow::Owned(format!("p{page}").into_bytes())
}

/// Visits a page in the engine and in the paper's algorithm. A page that is gone has no links.
fn visit(run: &mut Run, paper: &mut Opic, page: usize, gone: bool, children: &[usize]) {
    run.record(&Record {
        url: name(page),
        status: gone.then_some(404),
        links: children.iter().map(|&page| Link::to(name(page))).collect(),
        ..Record::default()
    });
    paper.visit(page, children);
}

#[test]
fn without_recycling_the_ledger_is_the_papers() {
    let mut config = Config::default();
    config.recycle_after = 0;
    config.window = WindowPolicy::Whole;
    config.set_estimator(Estimator::Distributed);
    let mut run = Run::new(&config);
    let mut paper = Opic {
        damping: config.damping(),
        cash: vec![1.0; PAGES],
        history: vec![0.0; PAGES],
        distributed: 0.0,
    };
    // In the paper all pages exist from the start: the first one links to all.
    visit(
        &mut run,
        &mut paper,
        0,
        false,
        &(1..PAGES).collect::<Vec<_>>(),
    );
    let mut state = 53u64;
    let mut draw = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for _ in 0..RECORDS {
        let (page, gone) = (draw(VISITED), draw(10) == 0);
        let mut children: Vec<usize> = (0..draw(6)).map(|_| draw(PAGES)).collect();
        children.retain(|&child| child != page && !gone);
        children.sort_unstable();
        children.dedup();
        visit(&mut run, &mut paper, page, gone, &children);
    }
    assert!(run.engine.state().totals.rounds >= 2, "rounds end as ever");
    let importance = run.importance();
    for (page, &importance) in importance.iter().enumerate() {
        // Each visit rounds by less than a unit per link.
        let cash = run.engine.ledger().cash(PageId(page as u64)) as f64 / ENDOWMENT;
        assert!(
            (cash - paper.cash[page]).abs() < 1e-4,
            "page {page}: {cash}"
        );
        assert!(
            (importance - paper.estimate(page)).abs() < 1e-6,
            "page {page}"
        );
        assert_eq!(paper.history[page] > 0.0, page < VISITED);
    }
    let distributed = run.engine.state().totals.clock as f64 / ENDOWMENT;
    assert!((distributed / paper.distributed - 1.0).abs() < 1e-6);
    run.engine.ledger().check_law().unwrap();
}
