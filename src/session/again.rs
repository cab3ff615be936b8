//! Visits without records in a store with partitions: of pages that were read, in passes after the first, and of those that were
//! not, where a pass is completed.
//!
//! Each partition has its own order for them (`own/again.rs`). Which of them come in the same epoch decides what cash they find,
//! so it must follow from the stream and the number of partitions alone. All go through theirs at the same pace: of a partition
//! with R visits, visit j is at floor(j 2^64 / R) of its way, and whatever is less far comes first; of those at one place the one
//! of the partition of the lower number. So a place in the whole, a number of visits, says how many each has made.

use std::ops::Range;

use super::own::{Again, Order, PartState};
use super::parts::Parts;
use crate::Result;
use crate::engine::Engine;
use crate::store::Store;

/// Visits between two looks at the clock.
const AT_A_TIME: u64 = 1 << 16;

/// By partition, how many visits it has.
#[derive(Default)]
pub(super) struct Pace(Vec<u64>);

impl Pace {
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// How many of the first `place` visits each makes.
    pub fn made(&self, place: u64) -> Vec<u64> {
        // Of each, how many are at less than `far` of 2^64.
        let below = |far: u128| {
            let below = move |&visits: &u64| (far * u128::from(visits)).div_ceil(1 << 64) as u64;
            self.0.iter().map(below)
        };
        let (mut far, mut too_far) = (0, (1u128 << 64) + 1);
        while too_far - far > 1 {
            let middle = far + (too_far - far) / 2;
            if below(middle).sum::<u64>() <= place {
                far = middle;
            } else {
                too_far = middle;
            }
        }
        let mut made: Vec<u64> = below(far).collect();
        let mut left = place - made.iter().sum::<u64>();
        for (made, next) in made.iter_mut().zip(below(far + 1)) {
            let more = (next - *made).min(left);
            *made += more;
            left -= more;
        }
        made
    }

    /// The same from one place to another.
    fn between(&self, from: u64, to: u64) -> Vec<Range<u64>> {
        let made = self.made(from).into_iter().zip(self.made(to));
        made.map(|(from, to)| from..to).collect()
    }
}

impl Parts {
    /// Another pass begins. The running round ends, and with it the epoch, unless nothing was read in it.
    ///
    /// # Errors
    /// Those of writing, which are final.
    pub fn begin_pass(&mut self, whole: &mut Engine<Store>) -> Result<()> {
        let records = whole.counters().records;
        if self.ends_epoch(records) && whole.ledger().totals().round_records == 0 {
            return Ok(());
        }
        self.end_epoch(whole, true)
    }

    /// Visits without records begin. How many there are.
    ///
    /// # Errors
    /// Those of applying what waits, and of reading.
    pub fn begin_again(&mut self, whole: &mut Engine<Store>, again: Again) -> Result<u64> {
        self.catch_up(whole)?;
        self.order(Order::BeginAgain(again))??;
        self.pace = Pace(self.states.iter().map(|state| state.again).collect());
        Ok(self.pace.all())
    }

    /// Makes some of them from number `from` on, no more than `most` and none of the next epoch. Where it has come to.
    ///
    /// # Errors
    /// Those of reading and writing, which are final.
    pub fn visit_again(&mut self, whole: &mut Engine<Store>, from: u64, most: u64) -> Result<u64> {
        let done = self.try_visit_again(whole, from, most);
        done.inspect_err(|_| whole.storage_mut().fail())
    }

    fn try_visit_again(&mut self, whole: &mut Engine<Store>, from: u64, most: u64) -> Result<u64> {
        let epoch = self.left_of_epoch(whole.counters().records);
        let most = most.min(epoch).min(self.at_a_time());
        let to = self.pace.all().min(from.saturating_add(most));
        let before = self.counted();
        let visits = self.pace.between(from, to);
        let time = whole.latest_time();
        self.order(Order::VisitAgain { visits, time })??;
        let after = self.counted();
        whole.count_again(to - from, after.0 - before.0, after.1 - before.1);
        self.note_visited(whole);
        if to > from && self.ends_epoch(whole.counters().records) {
            self.end_epoch(whole, false)?;
        }
        Ok(to)
    }

    /// Where partitions take turns each has its own for some visits, which costs reading and writing its cash.
    fn at_a_time(&self) -> u64 {
        if self.take_turns() {
            AT_A_TIME.max(self.pace.all() / 4)
        } else {
            AT_A_TIME
        }
    }

    /// Visits of gone pages that all partitions have counted, and links.
    fn counted(&self) -> (u64, u64) {
        let sum = |count: fn(&PartState) -> u64| self.states.iter().map(count).sum();
        (sum(|state| state.gone), sum(|state| state.links))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// As all visits in the order of the definition have it, one after the other.
        #[test]
        fn all_go_at_the_same_pace(visits in proptest::collection::vec(0u64..40, 1..9)) {
            let mut order: Vec<(u128, usize)> = Vec::new();
            for (part, &all) in visits.iter().enumerate() {
                order.extend((0..all).map(|visit| ((u128::from(visit) << 64) / u128::from(all), part)));
            }
            order.sort_unstable();
            let pace = Pace(visits);
            prop_assert_eq!(pace.all(), order.len() as u64);
            let mut made = vec![0; pace.0.len()];
            for place in 0..=order.len() {
                prop_assert_eq!(pace.made(place as u64), &*made);
                if let Some(&(_, part)) = order.get(place) {
                    made[part] += 1;
                }
            }
        }
    }

    #[test]
    fn many_visits_are_dealt_out() {
        let pace = Pace(vec![u64::from(u32::MAX), 0, 1, 3_000_000_000]);
        assert_eq!(pace.made(0), [0; 4]);
        assert_eq!(pace.made(2), [1, 0, 1, 0]);
        assert_eq!(pace.made(pace.all()), pace.0);
        let half = pace.made(pace.all() / 2);
        assert!(half[0].abs_diff(1 << 31) <= 1 && half[3].abs_diff(1_500_000_000) <= 1);
    }
}
