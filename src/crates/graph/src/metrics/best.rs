//! Selection of the best items.

use std::cmp::Ordering;

/// Top-k by an order, in memory for twice as many items.
#[derive(Debug, Clone)]
pub struct BestItems<T> {
    count: usize,
    pub added: u64,
    /// Items that may be among the best; once some were dropped, the last of the best is at `count - 1`.
    kept: Vec<T>,
}

impl<T> BestItems<T> {
    pub fn new(count: usize) -> BestItems<T> {
        BestItems {
            count,
            added: 0,
            kept: Vec::new(),
        }
    }

    /// Adds an item. `order` must be the same at every call, and total.
    pub fn add(&mut self, item: T, order: impl Fn(&T, &T) -> Ordering) {
        let has_dropped = self.added > self.kept.len() as u64;
        self.added += 1;
        let is_worse = |last: &T| has_dropped && order(last, &item).is_le();
        if self.count == 0 || self.kept.get(self.count - 1).is_some_and(is_worse) {
            return;
        }
        self.kept.push(item);
        if self.kept.len() >= self.count.saturating_mul(2) {
            self.kept.select_nth_unstable_by(self.count - 1, order);
            self.kept.truncate(self.count);
        }
    }

    /// Returns the best items, best first.
    pub fn finish(mut self, order: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
        self.kept.sort_unstable_by(order);
        self.kept.truncate(self.count);
        self.kept
    }
}
