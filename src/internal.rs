//! Items for the lab (`crates/lab`) and the Python package (`crates/python`) that are not part of the library's
//! interface: they may change with every version.

use std::ops::Range;

use crate::Result;
use crate::batch::Batch;
use crate::engine::{Admit, Engine, EngineState, Estimator, InMemory, WindowPolicy};

pub use crate::metrics::sum::CompensatedSum;
pub use crate::model::{Digest, Time};

/// Parses a time with its offset from UTC, in or near RFC 3339; returns seconds since 1970.
pub fn time_of(text: &str) -> Option<Time> {
    crate::decode::time_of(text)
}

/// Rounds down a number of seconds since 1970; `None` outside the years 0000 to 9999, where it is most likely not in
/// seconds.
pub fn time_of_seconds(seconds: f64) -> Option<Time> {
    crate::decode::time_of_seconds(seconds)
}

/// Restores an engine from a state; `load` fills its cells of cash and its ages.
pub fn restore(
    engine: &mut Engine<InMemory>,
    state: EngineState,
    load: impl FnOnce(&mut [u64], &mut [u8]) -> Result<()>,
) -> Result<()> {
    engine.restore(state, load)
}

/// Admits the names of a batch that are new to an engine.
pub fn admit(engine: &mut Engine<InMemory>, batch: &Batch, names: Range<usize>) -> Result<()> {
    engine.admit(batch, names, |_| ())
}

/// Returns whether a window keeps several measures of a page instead of their sum.
pub fn keeps_measures(window: WindowPolicy, estimator: Estimator) -> bool {
    window.measures(estimator).is_some()
}
