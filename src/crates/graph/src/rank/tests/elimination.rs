//! PageRank by elimination, with which tests compare all other ways to compute it.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;

use crate::graph::Links;
use crate::rows::{Rows, RowsVisitor, Stop};

/// Latest rows in memory, in the order of their last visits.
#[derive(Default, Clone)]
pub struct TestRows {
    pub pages: u64,
    pub rows: Vec<(u32, Vec<u32>, Vec<u64>)>,
}

impl TestRows {
    pub fn visit(&mut self, page: u32, targets: &[u32], weights: &[u64]) {
        self.rows.retain(|row| row.0 != page);
        self.rows.push((page, targets.to_vec(), weights.to_vec()));
    }
}

impl Rows for TestRows {
    fn pages(&self) -> u64 {
        self.pages
    }

    fn links(&self) -> u64 {
        self.rows.iter().map(|row| row.1.len() as u64).sum()
    }

    fn walk(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        for (page, targets, weights) in &self.rows {
            visit(&[Links::new(targets, weights).of(*page)])?;
        }
        Ok(())
    }
}

/// Computes PageRank by elimination: (I - d L') x = (1 - d)/n, L' with rows of pages without links uniform.
pub fn dense(kept: &TestRows, d: f64) -> Vec<f64> {
    let n = kept.pages as usize;
    let mut step = vec![vec![1.0 / n as f64; n]; n];
    for (page, targets, weights) in &kept.rows {
        let all: u64 = if weights.is_empty() {
            targets.len() as u64
        } else {
            weights.iter().sum()
        };
        if all == 0 {
            continue;
        }
        step[*page as usize].fill(0.0);
        for (at, &target) in targets.iter().enumerate() {
            let weight = weights.get(at).map_or(1, |weight| *weight);
            step[*page as usize][target as usize] = weight as f64 / all as f64;
        }
    }
    let mut system: Vec<Vec<f64>> = (0..n)
        .map(|to| {
            let mut row: Vec<f64> = (0..n).map(|from| -d * step[from][to]).collect();
            row[to] += 1.0;
            row.push((1.0 - d) / n as f64);
            row
        })
        .collect();
    for pivot in 0..n {
        // The matrix is diagonally dominant by columns: no pivoting is needed.
        let (above, below) = system.split_at_mut(pivot + 1);
        let row = &above[pivot];
        for other in below {
            let factor = other[pivot] / row[pivot];
            for (cell, value) in other.iter_mut().zip(row).skip(pivot) {
                *cell -= factor * value;
            }
        }
    }
    let mut solution = vec![0.0; n];
    for at in (0..n).rev() {
        let rest: f64 = (at + 1..n).map(|to| system[at][to] * solution[to]).sum();
        solution[at] = (system[at][n] - rest) / system[at][at];
    }
    solution
}

/// Returns a generator of numbers below its argument.
pub fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut random = Pcg64::new(u128::from(seed), 1);
    move |below| ((u128::from(random.next_u64()) * u128::from(below)) >> 64) as u64
}
