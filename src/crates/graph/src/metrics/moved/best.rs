//! Top-k by an order, in memory for twice as many items.

use std::cmp::Ordering;

#[derive(Debug)]
pub(super) struct BestItems<T> {
    count: usize,
    kept: Vec<T>,
}

impl<T> BestItems<T> {
    /// Returns an empty collection that keeps `count` items.
    pub(super) fn new(count: usize) -> BestItems<T> {
        BestItems {
            count,
            kept: Vec::new(),
        }
    }

    /// Adds an item. `order` must be the same at every call, and total.
    pub(super) fn add(&mut self, item: T, order: impl Fn(&T, &T) -> Ordering) {
        if self.count == 0 {
            return;
        }
        // After each cut, the last of the best is at `count - 1`.
        self.kept.push(item);
        if self.kept.len() >= self.count.saturating_mul(2) {
            self.kept.select_nth_unstable_by(self.count - 1, order);
            self.kept.truncate(self.count);
        }
    }

    /// Returns the best items, best first.
    pub(super) fn finish(mut self, order: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
        self.kept.sort_unstable_by(order);
        self.kept.truncate(self.count);
        self.kept
    }
}
