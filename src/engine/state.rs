//! All of the engine that is not an array.

use serde::{Deserialize, Serialize};

use super::{Counters, Mark, TimeTable, Totals};
use crate::model::Time;

/// All of the engine that is not an array: what a checkpoint's manifest holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineState {
    /// The ledger's totals.
    pub totals: Totals,
    /// The retained marks, oldest first.
    pub marks: Vec<Mark>,
    /// Marks ever made.
    pub marks_made: u64,
    /// Counts of what was read.
    pub counters: Counters,
    /// Running maximum of the records' times.
    pub time: Option<Time>,
    /// When the last part of the clock was, if the window is in fetch time.
    pub times: TimeTable,
    /// G where the window began at the last round's end, if it keeps measures. It never moves back.
    pub window_start: u128,
}

impl EngineState {
    /// Before the first record.
    pub fn start() -> EngineState {
        EngineState {
            totals: Totals::start(),
            ..EngineState::default()
        }
    }
}
