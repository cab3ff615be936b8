//! The power method over rows, wherever they are kept: one sweep per step, two numbers per page.
//!
//! ```text
//! y_j = sum over links i -> j of d x_i w_ij  +  what the virtual page pays j
//! ```
//!
//! The virtual page receives what pages do not pass on, so the sum is 1. Summation is plain, and its rounding is not
//! bounded.

use super::{RankMethod, VecScores};
use crate::Result;
use crate::engine::Scores;
use crate::rows::Rows;

pub(super) const METHOD: RankMethod = RankMethod {
    name: "power",
    about: "by power iteration over the rows where they are, with a residual",
    bytes: |pages, _| 16 * pages,
    compute: |rows, options, teleport, watch| {
        let pages = rows.pages() as usize;
        teleport.check(rows.pages())?;
        let damping = options.damping();
        let mut now: Vec<f64> = teleport.shares(1.0, pages).collect();
        let mut next = vec![0.0; pages];
        let (mut steps, mut moved) = (0, 2.0);
        let residual = options
            .residual
            .unwrap_or(options.until * (1.0 - damping) / damping);
        while pages > 0 && moved > residual && !watch.is_over() {
            step(rows, damping, |_| true, &now, &mut next)?;
            let rest = 1.0 - next.iter().sum::<f64>();
            let shares = teleport.shares(rest, pages);
            next.iter_mut()
                .zip(shares)
                .for_each(|(next, share)| *next += share);
            moved = now
                .iter()
                .zip(&next)
                .map(|(now, next)| (now - next).abs())
                .sum();
            std::mem::swap(&mut now, &mut next);
            steps += 1;
        }
        let computed = VecScores::new(now, rows, options, steps, moved);
        Ok((pages > 0).then(|| Box::new(computed) as Box<dyn Scores>))
    },
};

/// Adds the scores that pages pass on over their links in a step; only pages for which `counts` is true.
pub fn step(
    rows: &dyn Rows,
    damping: f64,
    counts: impl Fn(u32) -> bool,
    now: &[f64],
    next: &mut [f64],
) -> Result<()> {
    next.fill(0.0);
    rows.sweep(&mut |row| {
        if (row.page as usize) < now.len() && counts(row.page) {
            let handed = damping * now[row.page as usize];
            for (target, part) in row.parts() {
                if let Some(next) = next.get_mut(target as usize) {
                    *next += handed * part;
                }
            }
        }
        Ok(())
    })?;
    Ok(())
}
