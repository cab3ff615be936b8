//! Graphs from arrays of link sources and targets in any order.

use super::{LinkRows, Links, starts};
use crate::model::SelfLinks;

impl LinkRows<u64> {
    /// Returns the graph of `nodes` nodes with a link from each of `sources` to the corresponding target; repeated
    /// links count once. All numbers must be below `nodes`, and both lists equally long.
    pub fn of_pairs(
        nodes: usize,
        sources: &[u32],
        targets: &[u32],
        self_links: SelfLinks,
    ) -> LinkRows {
        by_source(
            nodes,
            sources,
            targets.iter().copied(),
            |table, source, row| {
                row.sort_unstable();
                for same in row.chunk_by(|one, next| one == next) {
                    if self_links == SelfLinks::Keep || same[0] != source {
                        table.link(same[0], None);
                    }
                }
                table.end();
            },
        )
    }

    /// Returns the graph of links with weights, finite numbers of at least 0. Weights of repeated links add up, links
    /// of weight 0 are dropped, and the weights of each row are rounded by [`whole_numbers`].
    pub fn of_weighted_pairs(
        nodes: usize,
        sources: &[u32],
        targets: &[u32],
        weights: &[f64],
        self_links: SelfLinks,
    ) -> LinkRows {
        let links = targets.iter().copied().zip(weights.iter().copied());
        let (mut row, mut summed) = (Vec::new(), Vec::new());
        by_source(nodes, sources, links, |table, source, links| {
            links.sort_by_key(|link| link.0);
            row.clear();
            summed.clear();
            // Dividing by a power of two rounds nothing, and no sum overflows.
            let unit = unit_of(links.iter().map(|link| link.1));
            for same in links.chunk_by(|one, next| one.0 == next.0) {
                let target = same[0].0;
                let is_own = self_links == SelfLinks::Drop && target == source;
                let weight: f64 = same.iter().map(|link| link.1 / unit).sum();
                if weight > 0.0 && !is_own {
                    row.push(target);
                    summed.push(weight);
                }
            }
            let mut whole = whole_numbers(&summed);
            if whole.iter().all(|&weight| weight == 1) {
                whole.clear();
            }
            table.push(Links::new(&row, &whole));
        })
    }
}

/// Rounds finite numbers of at least 0 to whole numbers in the same ratios, each by at most 2^-52 of their sum. The sum
/// is at most 2^53, so that floats add them exactly. Whole numbers with a smaller sum keep their exact ratios.
pub fn whole_numbers(numbers: &[f64]) -> Vec<u64> {
    let unit = unit_of(numbers.iter().copied());
    let sum: f64 = numbers.iter().map(|number| number / unit).sum();
    if sum == 0.0 {
        return vec![0; numbers.len()];
    }
    let scale = 2f64.powi(51) / unit_of([sum]);
    let whole = numbers.iter().map(|number| (number / unit * scale).round());
    let mut whole: Vec<u64> = whole.map(|number| number as u64).collect();
    let divisor = whole.iter().copied().fold(0, gcd).max(1);
    whole.iter_mut().for_each(|number| *number /= divisor);
    whole
}

/// Returns the largest power of two that is at most the largest of these numbers, or [`f64::MIN_POSITIVE`] if none is.
fn unit_of(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let largest = numbers.into_iter().fold(f64::MIN_POSITIVE, f64::max);
    f64::from_bits(largest.to_bits() >> 52 << 52)
}

/// Returns the greatest common divisor; that of 0 and a number is the number.
pub fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Groups `links` by their sources, in the order given, and calls `row` with each source and its links; it adds a row.
fn by_source<L: Copy + Default>(
    nodes: usize,
    sources: &[u32],
    links: impl Iterator<Item = L>,
    mut row: impl FnMut(&mut LinkRows, u32, &mut [L]),
) -> LinkRows {
    let (mut ends, sum) = starts(nodes, sources);
    let mut all = vec![L::default(); sum];
    for (&source, link) in sources.iter().zip(links) {
        let at = &mut ends[source as usize];
        all[*at] = link;
        *at += 1;
    }
    let mut table = LinkRows::with_room(nodes, sum, 0);
    let mut start = 0;
    for (source, end) in (0..).zip(ends) {
        row(
            &mut table,
            source,
            &mut all[std::mem::replace(&mut start, end)..end],
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn links(table: &LinkRows) -> impl Iterator<Item = ((u32, u32), u64)> {
        let rows = (0..).zip(table.all());
        rows.flat_map(|(from, row)| row.iter().map(move |(to, weight)| ((from, to), weight)))
    }

    proptest! {
        #[test]
        fn a_graph_of_pairs_has_each_link_once(pairs in prop::collection::vec((0u32..9, 0u32..9), 0..60)) {
            let (sources, targets): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
            for self_links in [SelfLinks::Keep, SelfLinks::Drop] {
                let graph = LinkRows::of_pairs(9, &sources, &targets, self_links);
                let kept = |(from, to): &&(u32, u32)| self_links == SelfLinks::Keep || from != to;
                let expected: BTreeSet<(u32, u32)> = pairs.iter().filter(kept).copied().collect();
                let found = links(&graph).map(|(link, _)| link);
                prop_assert!(found.eq(expected));
                prop_assert_eq!(graph.nodes(), 9);
                // Without repeated links, equal weights have no effect.
                let (sources, targets): (Vec<u32>, Vec<u32>) = links(&graph).map(|(link, _)| link).unzip();
                let alike = vec![0.3; sources.len()];
                prop_assert_eq!(LinkRows::of_weighted_pairs(9, &sources, &targets, &alike, self_links), graph);
            }
        }

        /// In any unit, even at both ends of the range of floats, the weights of a row have the ratios of the sums.
        #[test]
        fn weights_of_repeated_links_add_up(
            pairs in prop::collection::vec((0u32..9, 0u32..9, 0u64..50), 0..60),
            exponent in -1060i32..1010,
        ) {
            let unit = 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
            let sources: Vec<u32> = pairs.iter().map(|pair| pair.0).collect();
            let targets: Vec<u32> = pairs.iter().map(|pair| pair.1).collect();
            let weights: Vec<f64> = pairs.iter().map(|pair| pair.2 as f64 * unit).collect();
            let graph = LinkRows::of_weighted_pairs(9, &sources, &targets, &weights, SelfLinks::Keep);
            let mut sums = BTreeMap::new();
            for &(from, to, weight) in pairs.iter().filter(|pair| pair.2 > 0) {
                *sums.entry((from, to)).or_insert(0) += weight;
            }
            let found: BTreeMap<_, _> = links(&graph).collect();
            prop_assert!(found.keys().eq(sums.keys()));
            for (one, weight) in &found {
                for (other, of_other) in found.range((one.0, 0)..=(one.0, 9)) {
                    prop_assert_eq!(weight * sums[other], of_other * sums[one]);
                }
            }
        }
    }

    #[test]
    fn numbers_become_whole() {
        assert!(whole_numbers(&[]).is_empty());
        assert_eq!(whole_numbers(&[0.0, 0.0]), [0, 0]);
        assert_eq!(whole_numbers(&[0.25, 0.0, 0.75]), [1, 0, 3]);
        assert_eq!(whole_numbers(&[1e300, 1e300]), [1, 1]);
        assert_eq!(whole_numbers(&[6.0, 9.0, 1200.0]), [2, 3, 400]);
        assert_eq!(
            whole_numbers(&[f64::MAX, f64::MAX, f64::MIN_POSITIVE]),
            [1, 1, 0]
        );
        for numbers in [
            vec![0.1; 1_000],
            (1..1_000).map(|n| 1.0 / f64::from(n)).collect(),
        ] {
            let whole = whole_numbers(&numbers);
            let all: u64 = whole.iter().sum();
            let sum: f64 = numbers.iter().sum();
            assert!(all <= 1 << 53);
            for (number, whole) in numbers.iter().zip(whole) {
                let off = (number / sum - whole as f64 / all as f64).abs();
                assert!(off < 1e-13, "{number}: {off}");
            }
        }
    }
}
