//! In-degree and out-degree: how many nodes link to a node, and to how many it links.
//!
//! A link counts once, whatever it weighs, if it weighs anything. Both are exact, and sum to the number of links.
//! In-degree is the first estimate of importance (J. Cho, H. Garcia-Molina, L. Page, WWW 1998: "back-link count"), and
//! easy to forge: links of unknown pages count as much as links of important ones.

use super::{MeasureSpec, Measured, ScoreKind};
use crate::Result;
use crate::rows::{Row, Rows};

pub(super) const IN_DEGREE: MeasureSpec = MeasureSpec {
    name: "in-degree",
    about: "how many others link to it",
    scores: ScoreKind::Count,
    uses: &[],
    bytes: |nodes, _, _| 8 * nodes,
    compute: |work| {
        degrees(work.rows, |row, degrees| {
            for target in row.links() {
                degrees[target as usize] += 1.0;
            }
        })
    },
};

pub(super) const OUT_DEGREE: MeasureSpec = MeasureSpec {
    name: "out-degree",
    about: "to how many others it links",
    scores: ScoreKind::Count,
    uses: &[],
    bytes: |nodes, _, _| 8 * nodes,
    compute: |work| {
        degrees(work.rows, |row, degrees| {
            degrees[row.page as usize] = row.degree() as f64;
        })
    },
};

fn degrees(rows: &dyn Rows, add: impl Fn(Row<'_>, &mut [f64])) -> Result<Option<Measured>> {
    let mut scores = vec![0.0; rows.pages() as usize];
    rows.sweep(&mut |row| {
        add(row, &mut scores);
        Ok(())
    })?;
    Ok(Some(Measured::exact(scores)))
}
