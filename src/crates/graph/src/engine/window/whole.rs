//! `whole`: everything since the start of the stream, including the cash that pages hold (the paper, section 3.2).

use super::WindowPolicy;
use super::shape::{Shape, WindowSpec};
use crate::engine::estimator::Estimator;
use crate::engine::mark::CashMark;

pub(super) const WINDOW: WindowSpec = WindowSpec {
    name: "whole",
    forms: &[("whole", "all of it")],
    read: |rest| rest.is_none().then_some(Ok(WindowPolicy::Whole)),
};

pub(super) struct WholeWindow;

impl Shape for WholeWindow {
    fn candidates<'m>(
        &self,
        marks: &[&'m CashMark],
        _: Estimator,
        _: u128,
        _: u128,
    ) -> Vec<&'m CashMark> {
        marks[..1].to_vec()
    }

    fn counts_cash(&self) -> bool {
        true
    }

    fn form(&self) -> String {
        "whole".into()
    }
}
