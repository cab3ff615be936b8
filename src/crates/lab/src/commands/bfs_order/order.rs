//! Breadth-first order over a graph, as a crawler fetches pages.

use std::collections::VecDeque;

/// Numbers that a seed gives (xorshift64*).
pub struct Random(u64);

impl Random {
    /// Those of a seed.
    pub fn new(seed: u64) -> Random {
        // No seed may give 0, and near seeds should not give near numbers.
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

    /// Any of `0..n`.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

/// All pages in the order in which a crawl would fetch them that begins with `seeds` random pages and goes on,
/// when it has followed all links it found, with another random page.
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
    // Fewer pages than seeds.
    order.extend(found);
    order
}
