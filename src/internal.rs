//! What the lab (`crates/lab`) takes of the library beyond its interface. It is no part of the interface: it may
//! change with every version.

use std::ops::Range;

use crate::Result;
use crate::batch::Batch;
use crate::engine::{Admit, Engine, EngineState, Estimator, InMemory, WindowPolicy};

pub use crate::metrics::sum::Sum;
pub use crate::model::Digest;

/// Sets an engine to a state; `load` fills its cells of cash and its ages.
pub fn restore(
    engine: &mut Engine<InMemory>,
    state: EngineState,
    load: impl FnOnce(&mut [u64], &mut [u8]) -> Result<()>,
) -> Result<()> {
    engine.restore(state, load)
}

/// Admits those of a batch's names that are new to an engine.
pub fn admit(engine: &mut Engine<InMemory>, batch: &Batch, names: Range<usize>) -> Result<()> {
    engine.admit(batch, names, |_| ())
}

/// Whether a window keeps several measures of a page, and not their sum.
pub fn keeps_measures(window: WindowPolicy, estimator: Estimator) -> bool {
    window.measures(estimator).is_some()
}
