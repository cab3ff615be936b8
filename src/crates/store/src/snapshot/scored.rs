//! Packed columns of scores and ranks: of one block, or of all blocks in memory while the facts about pages are still
//! being written.

use std::io;

use super::column;
use super::ranks::{RankSample, descending_key};
use crate::Result;
use crate::engine::{CHUNK_PAGES, Estimator, PageScores, Scores};
use crate::threads::join;

pub(super) type Column = io::Result<Vec<u8>>;

/// Packed columns of all blocks.
pub(super) struct PackedScores {
    /// Importance and distributed estimate of each block.
    pub scores: Vec<(Column, Column)>,
    /// Ranks of each block.
    pub ranks: Vec<Column>,
}

impl PackedScores {
    /// Packs the scores of all pages, if the ranks fit in memory, as `seen` does.
    pub fn of(
        scores: &dyn Scores,
        estimator: Estimator,
        pages: u64,
        mut seen: RankSample,
    ) -> Result<Option<PackedScores>> {
        let mut packed = Vec::new();
        each_block(scores, estimator, pages, |block| {
            packed.push(pack(block));
            see(block, &mut seen);
            Ok(())
        })?;
        Ok(seen.ranks().ok().map(|ranks| PackedScores {
            scores: packed,
            ranks: pack_ranks(&ranks).collect(),
        }))
    }
}

/// Passes the scores of `pages` pages to `each`, block by block; it may take the vector and leave another.
pub(super) fn each_block(
    scores: &dyn Scores,
    estimator: Estimator,
    pages: u64,
    mut each: impl FnMut(&mut Vec<PageScores>) -> Result<()>,
) -> Result<()> {
    let mut block = Vec::new();
    for first in (0..pages).step_by(CHUNK_PAGES as usize) {
        let len = CHUNK_PAGES.min(pages - first) as usize;
        scores.read(first, len, &mut block)?;
        for scores in &mut block {
            *scores = estimator.read(*scores);
        }
        each(&mut block)?;
    }
    Ok(())
}

/// Packs a block's scores.
pub(super) fn pack(pages: &[PageScores]) -> (Column, Column) {
    let importance: Vec<u64> = pages.iter().map(|page| page.0.to_bits()).collect();
    let distributed: Vec<u64> = pages.iter().map(|page| page.1.to_bits()).collect();
    // Threads are worth it for full blocks only.
    let parallel = importance.len() as u64 == CHUNK_PAGES;
    join(
        parallel,
        || column::pack(&importance),
        || column::pack(&distributed),
    )
}

/// Adds a block's importances to those to be ranked.
pub(super) fn see(pages: &[PageScores], seen: &mut RankSample) {
    let values: Vec<u64> = pages.iter().map(|page| descending_key(page.0)).collect();
    seen.add(&values);
}

/// Packs the ranks of all pages, one block at a time.
pub(super) fn pack_ranks(ranks: &[u64]) -> impl Iterator<Item = Column> + '_ {
    ranks.chunks(CHUNK_PAGES as usize).map(column::pack)
}
