//! What the lab (`crates/lab`) and the Python package (`crates/python`) take of the library beyond its interface. It is no
//! part of the interface: it may change with every version.

use std::ops::Range;

use crate::Result;
use crate::batch::Batch;
use crate::engine::{Admit, Engine, EngineState, Estimator, InMemory, WindowPolicy};

pub use crate::metrics::sum::Sum;
pub use crate::model::{Digest, Time};

/// A time that names its offset from UTC, as RFC 3339 has it or near that, in seconds since 1970.
pub fn time_of(text: &str) -> Option<Time> {
    crate::decode::time_of(text)
}

/// A number of seconds since 1970, with or without a fraction, which is dropped; `None`: outside the years 0000 to 9999, so
/// most likely no seconds.
pub fn time_of_seconds(seconds: f64) -> Option<Time> {
    crate::decode::time_of_seconds(seconds)
}

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

/// Returns whether a window keeps several measures of a page, and not their sum.
pub fn keeps_measures(window: WindowPolicy, estimator: Estimator) -> bool {
    window.measures(estimator).is_some()
}
