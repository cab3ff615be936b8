//! OutlinkCount: links from the domain to a page.

use super::{Matrix, Select};

/// Scores a page by the number of links to it from the local domain (section 6.1).
#[derive(Debug, Clone, Copy)]
pub struct OutlinkCount;

impl Select for OutlinkCount {
    fn scores(&mut self, matrix: &Matrix, _: &[f64], _: f64) -> Vec<f64> {
        let is_local = |k: &&u32| (**k as usize) < matrix.domain;
        let sources = matrix.sources.iter();
        sources
            .map(|sources| sources.iter().filter(is_local).count() as f64)
            .collect()
    }
}
