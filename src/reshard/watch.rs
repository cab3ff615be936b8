//! How far it is, for whoever watches, and whether it is to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::rows::Stop;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// It is found which partition has which page.
    Dealing,
    /// Names are written.
    Names,
    /// Links are written.
    Links,
    /// What fetches found is written.
    Facts,
    /// What was written is made durable.
    Committing,
}

/// All, in their order.
const STAGES: [Stage; 5] = [
    Stage::Dealing,
    Stage::Names,
    Stage::Links,
    Stage::Facts,
    Stage::Committing,
];

/// Watches it.
#[derive(Debug, Default)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    stage: AtomicU64,
    /// How many pages, rows or histories were passed, of how many.
    passed: AtomicU64,
    all: AtomicU64,
}

impl Watch {
    /// It ends once this is set.
    pub fn new(stop: Arc<AtomicBool>) -> Watch {
        Watch {
            stop,
            ..Watch::default()
        }
    }

    /// What is being done, how much of that is done, and how much there is.
    pub fn progress(&self) -> (Stage, u64, u64) {
        let [stage, passed, all] =
            [&self.stage, &self.passed, &self.all].map(|number| number.load(Ordering::Relaxed));
        let stage = STAGES.get(stage as usize).copied();
        (stage.unwrap_or(Stage::Dealing), passed, all)
    }

    /// The next stage begins, with so much to do.
    pub(super) fn begin(&self, stage: Stage, all: u64) -> Result<(), Stop> {
        self.stage.store(stage as u64, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
        self.at(0)
    }

    /// So much is done.
    ///
    /// # Errors
    /// [`Stop::Enough`]: it is to stop.
    pub(super) fn at(&self, passed: u64) -> Result<(), Stop> {
        self.passed.store(passed, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            Err(Stop::Enough)
        } else {
            Ok(())
        }
    }
}
