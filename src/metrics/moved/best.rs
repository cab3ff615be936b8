//! The first few of many by an order, in room for twice as many.

use std::cmp::Ordering;

#[derive(Debug)]
pub(super) struct Best<T> {
    count: usize,
    kept: Vec<T>,
}

impl<T> Best<T> {
    /// Will keep `count`.
    pub(super) fn new(count: usize) -> Best<T> {
        Best {
            count,
            kept: Vec::new(),
        }
    }

    /// One more. `order` must be the same at every call, and tell all items apart.
    pub(super) fn add(&mut self, item: T, order: impl Fn(&T, &T) -> Ordering) {
        if self.count == 0 {
            return;
        }
        // The last of the best kept so far is at `count - 1` once they were cut.
        self.kept.push(item);
        if self.kept.len() >= self.count.saturating_mul(2) {
            self.kept.select_nth_unstable_by(self.count - 1, order);
            self.kept.truncate(self.count);
        }
    }

    /// The best, the best first.
    pub(super) fn finish(mut self, order: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
        self.kept.sort_unstable_by(order);
        self.kept.truncate(self.count);
        self.kept
    }
}
