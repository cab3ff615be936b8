//! FICA with the other learning rates that its paper compares (section 4), as functions of x = 0.1 floor(pages read / K),
//! with K a 72nd of the known pages.

use cashrank_graph::rows::Row;
use cashrank_steer::schedule::{CrawlState, Strategy};

cashrank_base::words! {
    /// Function by which the learning rate falls with x.
    Learning {
        /// 1/x, at most 1.
        Inverse = "fica-inverse",
        /// x^-2.1, at most 1.
        Power = "fica-power",
        /// 1 - x, at least 0.
        Linear = "fica-linear",
        /// Always 1: the logarithm of the last page's links alone.
        One = "fica-one",
    }
}

impl Learning {
    /// Returns the learning rate at `x`.
    fn rate(self, x: f64) -> f64 {
        match self {
            Learning::Inverse => (1.0 / x).min(1.0),
            Learning::Power => x.powf(-2.1).min(1.0),
            Learning::Linear => (1.0 - x).max(0.0),
            Learning::One => 1.0,
        }
    }
}

/// Least distance by a learning rate.
pub(super) struct LearningOrder {
    pub learning: Learning,
    /// Negated distance of each page; negative infinity without one.
    pub scores: Vec<f64>,
}

impl LearningOrder {
    fn raise(&mut self, crawl: &CrawlState, page: u32, score: f64) {
        self.scores
            .resize(crawl.pages() as usize, f64::NEG_INFINITY);
        let known = &mut self.scores[page as usize];
        *known = known.max(score);
    }
}

impl Strategy for LearningOrder {
    fn found(&mut self, crawl: &CrawlState, page: u32, by: Option<u32>) {
        if by.is_none() {
            self.raise(crawl, page, 0.0);
        }
    }

    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        let own = self.scores.get(row.page as usize).copied();
        let own = own.filter(|own| own.is_finite()).unwrap_or(0.0);
        let alpha = match crawl.read() / (crawl.pages() / 72).max(1) {
            0 => 1.0,
            turns => self.learning.rate(0.1 * f64::from(turns)),
        };
        let score = (1.0 - alpha) * own - alpha * (row.degree() as f64).log10();
        for target in row.links().filter(|&target| !crawl.is_read(target)) {
            self.raise(crawl, target, score);
        }
    }

    fn score(&self, _crawl: &CrawlState, page: u32) -> Option<f64> {
        let score = self.scores.get(page as usize).copied();
        score.filter(|score| score.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use cashrank_graph::rows::Rows as _;
    use cashrank_steer::schedule::{CrawlFacts, CrawlHistory};

    use super::*;
    use crate::orders::tests::Small;

    #[test]
    fn rates_are_those_of_the_paper() {
        assert_eq!(Learning::Linear.rate(0.25), 0.75);
        assert_eq!(Learning::Linear.rate(4.0), 0.0);
        assert_eq!(Learning::Inverse.rate(4.0), 0.25);
        assert_eq!(Learning::Inverse.rate(0.0), 1.0);
        assert!((Learning::Power.rate(10.0) - 10f64.powf(-2.1)).abs() < 1e-15);
        assert_eq!(Learning::One.rate(7.0), 1.0);
    }

    /// Alpha = 1: the links of the page that was read last, alone.
    #[test]
    fn without_learning_the_last_page_counts() {
        let order = LearningOrder {
            learning: Learning::One,
            scores: Vec::new(),
        };
        let mut history = CrawlHistory::new(Box::new(order));
        Small
            .sweep(&mut |row| {
                history.row(row);
                Ok(())
            })
            .unwrap();
        let best = history.best(&CrawlFacts::of(&Small), 3).unwrap();
        let found: Vec<(u32, f64)> = best.iter().map(|of| (of.page, of.score)).collect();
        let (two, three) = (-2f64.log10(), -3f64.log10());
        assert_eq!(found, [(2, two), (4, two), (3, three)]);
    }
}
