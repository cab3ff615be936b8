//! `variable:K`: the last K measures of every page (the paper, section 3.3).

use super::measures::KeptMeasures;
use super::shape::{Shape, WindowSpec};
use super::{RowContent, WindowPolicy, measures};
use crate::engine::estimator::Estimator;

pub(super) const WINDOW: WindowSpec = WindowSpec {
    name: "variable",
    forms: &[("variable:K", "the last K visits of each page")],
    read: |rest| rest.map(|last| Ok(WindowPolicy::Variable(measures(last)?))),
};

pub(super) struct Variable(pub u32);

impl Shape for Variable {
    fn kept(&self, _: Estimator) -> RowContent {
        RowContent::Measures(KeptMeasures::Last(self.0))
    }

    fn allows_received(&self) -> bool {
        false
    }

    fn form(&self) -> String {
        format!("variable:{}", self.0)
    }
}
