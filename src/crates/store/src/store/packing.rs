//! Packing of history runs on another thread while the engine continues.

use std::panic::resume_unwind;
use std::thread::JoinHandle;

use super::manifest::HistoryRun;
use super::tables::pack_run;
use crate::Result;
use crate::engine::Notes;
use crate::threads::spawn;

/// Packed run of the history.
pub(super) struct PackedRun {
    pub run: HistoryRun,
    /// Sealed blocks of the run.
    pub blocks: Vec<Vec<u8>>,
    /// Notes from which it was packed, for reuse.
    pub notes: Notes,
}

/// Handle of a run that is being packed.
pub(super) struct Packing(JoinHandle<Result<PackedRun>>);

impl Packing {
    /// Starts to pack run `number`.
    pub fn start(number: u64, interval: u64, notes: Notes) -> Result<Packing> {
        spawn("pack", move || pack(number, interval, notes)).map(Packing)
    }

    /// Waits for the packed run.
    pub fn end(self) -> Result<PackedRun> {
        self.0.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

pub(super) fn pack(number: u64, interval: u64, mut notes: Notes) -> Result<PackedRun> {
    let mut blocks = Vec::new();
    let run = pack_run(number, interval, notes.run().map(Ok), |_, block| {
        blocks.push(block);
        Ok(())
    })?;
    Ok(PackedRun { run, blocks, notes })
}
