//! Breadth-first order over a graph, as a crawler fetches pages.

use std::collections::VecDeque;

/// Random numbers from a seed (xorshift64*).
pub struct Random(u64);

impl Random {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Random {
        // No seed may give 0, and similar seeds should not give similar numbers.
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number in `0..n`.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

/// Returns all pages in the order in which a breadth-first crawl would fetch them. It begins with `seeds` random pages,
/// and continues with another random page when all links are followed.
pub fn breadth_first<R: AsRef<[u32]>>(links: &[R], seeds: usize, random: &mut Random) -> Vec<u32> {
    let mut starts: Vec<u32> = (0..links.len() as u32).collect();
    for at in (1..starts.len()).rev() {
        starts.swap(at, random.below(at + 1));
    }
    let mut seen = vec![false; links.len()];
    let mut order = Vec::with_capacity(links.len());
    let mut found = VecDeque::new();
    for (at, start) in starts.into_iter().enumerate() {
        if !std::mem::replace(&mut seen[start as usize], true) {
            found.push_back(start);
        }
        if at + 1 < seeds {
            continue;
        }
        while let Some(page) = found.pop_front() {
            order.push(page);
            for &target in links[page as usize].as_ref() {
                if !std::mem::replace(&mut seen[target as usize], true) {
                    found.push_back(target);
                }
            }
        }
    }
    // There are fewer pages than seeds.
    order.extend(found);
    order
}
