//! OutlinkCount: number of links from the domain to a page.

use super::{Matrix, Select};

/// Scores a page by the number of links to it from the local domain (section 6.1), or by their weights.
#[derive(Debug, Clone, Copy)]
pub struct OutlinkCount;

impl Select for OutlinkCount {
    fn scores(&mut self, matrix: &Matrix, _: &[f64], _: f64) -> Vec<f64> {
        let count = |place| {
            let mut count = 0.0;
            matrix.sources.at(place).each(|k, weight| {
                if (k as usize) < matrix.domain {
                    count += weight;
                }
            });
            count
        };
        (0..matrix.sources.nodes()).map(count).collect()
    }
}
