//! State of the engine without its arrays.

use serde::{Deserialize, Serialize};

use super::{CashMark, Counters, FetchTimes, TimeTable, Totals};
use crate::model::Time;

/// State of the engine without its arrays, as a checkpoint's manifest stores it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineState {
    pub totals: Totals,
    /// Retained marks, oldest first.
    pub marks: Vec<CashMark>,
    /// Number of marks ever made.
    pub marks_made: u64,
    /// Counts of what was read.
    pub counters: Counters,
    /// Running maximum of the records' times.
    pub time: Option<Time>,
    /// Table that maps times to G, if the window is in fetch time.
    pub times: TimeTable,
    /// G at the start of a window of measures, as of the last end of a round; never moves back.
    pub window_start: u128,
    /// Times of all records, read once. Not encoded with the rest: the manifest keeps them at its end.
    #[serde(skip)]
    pub fetch_times: FetchTimes,
}

impl EngineState {
    /// Returns the state before the first record.
    pub fn start() -> EngineState {
        EngineState {
            totals: Totals::start(),
            ..EngineState::default()
        }
    }
}
