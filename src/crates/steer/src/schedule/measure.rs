//! Distances as a measure of pages: FICA's (its section 5 ranks by them), and the plain logarithmic one.
//!
//! They are computed from the rows, in the order of reading, in 16 bytes per page; nothing is stored. Pages with lower
//! distances rank higher.

use std::fmt;
use std::str::FromStr;

use super::{Choice, CrawlHistory};
use crate::Result;
use crate::rows::Rows;

/// Distance measure of pages: the strategy `fica` or `distance` with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure(Choice);

impl Measure {
    /// Computes the distance of every page that the rows lead to; `None` for a page that was neither linked to nor
    /// read.
    pub fn of(&self, rows: &dyn Rows) -> Result<PageDistances> {
        let mut history = CrawlHistory::new(self.0.strategy());
        rows.sweep(&mut |row| {
            history.row(row);
            Ok(())
        })?;
        Ok(PageDistances(Some(history)))
    }
}

#[derive(Default)]
pub struct PageDistances(Option<CrawlHistory>);

/// Bytes per page: its distance, in an array that may have spare capacity.
const PAGE_BYTES: u64 = 16;

impl PageDistances {
    /// Returns the distance of a page; `None` if it was neither linked to nor read.
    pub fn get(&self, page: u64) -> Option<f64> {
        let history = self.0.as_ref()?;
        let page = u32::try_from(page).ok()?;
        if page >= history.crawl().pages() {
            return None;
        }
        let score = history.strategy().importance(page);
        score.map(|score| 0.0 - score)
    }

    /// Returns the memory for the distances of `pages` pages, in bytes.
    pub fn bytes(pages: u64) -> u64 {
        pages * PAGE_BYTES
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Measure, String> {
        let name = text.split(':').next().unwrap_or_default();
        match name {
            "fica" | "distance" => Ok(Measure(text.parse()?)),
            other => Err(format!(
                "{other:?} measures no distance: fica, with its parameters, or distance"
            )),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Row, RowVisitor, Stop};

    struct Read;

    impl Rows for Read {
        fn pages(&self) -> u64 {
            6
        }

        fn links(&self) -> u64 {
            5
        }

        /// 0 links to 1, 2, 3; 1 to 4 and 2. Nothing links to 5.
        fn walk(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
            for (page, targets) in [(0, &[1, 2, 3][..]), (1, &[4, 2])] {
                visit(Row::new(page, targets))?;
            }
            Ok(())
        }
    }

    fn distances(measure: &str) -> Vec<Option<f64>> {
        let found = measure.parse::<Measure>().unwrap().of(&Read).unwrap();
        (0..6).map(|page| found.get(page)).collect()
    }

    /// Works out equations 2 and 3 by hand.
    #[test]
    fn distances_are_those_of_the_equations() {
        let (two, three) = (2f64.log10(), 3f64.log10());
        let plain = [0.0, three, three, three, three + two];
        let mut expected: Vec<Option<f64>> = plain.into_iter().map(Some).collect();
        expected.push(None);
        assert_eq!(distances("distance"), expected);
        // With K = 1, alpha is exp(-0.1) at the first page and exp(-0.2) at the second.
        let (first, second) = ((-0.1f64).exp(), (-0.2f64).exp());
        let one = first * three;
        let four = second * two + (1.0 - second) * one;
        let found = distances("fica:k=1");
        for (page, expected) in [(0, 0.0), (1, one), (2, one.min(four)), (3, one), (4, four)] {
            assert!((found[page].unwrap() - expected).abs() < 1e-15, "{page}");
        }
        assert_eq!(found[5], None);
        // alpha = 1: the links of the last page alone.
        assert_eq!(distances("fica:k=1,learning=one")[2], Some(two));
        assert!("greedy".parse::<Measure>().is_err());
    }
}
