//! `auto`: the window since the retained mark that gives the least certified residual.

use super::WindowPolicy;
use super::shape::{Shape, WindowSpec};
use crate::engine::estimator::Estimator;
use crate::engine::mark::CashMark;

pub(super) const WINDOW: WindowSpec = WindowSpec {
    name: "auto",
    forms: &[("auto", "since the mark that gives the best certificate")],
    read: |rest| rest.is_none().then_some(Ok(WindowPolicy::Auto)),
};

pub(super) struct Auto;

impl Shape for Auto {
    fn uses_marks(&self, _: Estimator) -> bool {
        true
    }

    fn chooses(&self) -> bool {
        true
    }

    fn candidates<'m>(
        &self,
        marks: &[&'m CashMark],
        _: Estimator,
        _: u128,
        oldest: u128,
    ) -> Vec<&'m CashMark> {
        // If all marks are too old, the newest is the best available.
        let old = marks.partition_point(|mark| mark.totals.clock < oldest);
        marks[old.min(marks.len().saturating_sub(1))..].to_vec()
    }

    fn form(&self) -> String {
        "auto".into()
    }
}
