//! Limits on how much of an input is in flight in the pipeline: if records are huge, memory must not grow with threads.
//!
//! By the first rule, the reader hands out a chunk if it fits the budget with those in flight, or alone. By the second,
//! a decoder whose record far outgrows a batch (relative links on a long base) waits until all pieces before it were
//! applied. Pieces are applied in order and never wait for later ones, so neither rule can deadlock.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crate::threads::lock;

/// Counts of the pieces handed out and done. Clones share the state.
#[derive(Clone)]
pub(super) struct FlowControl {
    /// Maximum number of bytes in flight from the reader to the caller.
    budget: u64,
    state: Arc<(Mutex<FlowState>, Condvar)>,
}

#[derive(Default)]
struct FlowState {
    /// Size in bytes of each chunk in flight, in order.
    taken: VecDeque<u64>,
    chunks: u64,
    /// Number of pieces done of the chunk after the last one that is done.
    pieces: u64,
    /// True once nobody takes pieces any longer.
    closed: bool,
}

impl FlowControl {
    pub fn new(budget: u64) -> FlowControl {
        FlowControl {
            budget,
            state: Arc::default(),
        }
    }

    fn wait_until(&self, ready: impl Fn(&FlowState) -> bool) -> MutexGuard<'_, FlowState> {
        let (state, changed) = &*self.state;
        let mut state = lock(state);
        while !ready(&state) && !state.closed {
            state = changed.wait(state).unwrap_or_else(|held| held.into_inner());
        }
        state
    }

    fn change(&self, change: impl FnOnce(&mut FlowState)) {
        let (state, changed) = &*self.state;
        change(&mut lock(state));
        changed.notify_all();
    }

    /// Waits until a chunk of `bytes` bytes may be in flight.
    pub fn admit(&self, bytes: u64) {
        let fits = |state: &FlowState| {
            let all = state.taken.iter().copied().fold(bytes, u64::saturating_add);
            state.taken.is_empty() || all <= self.budget
        };
        self.wait_until(fits).taken.push_back(bytes);
    }

    /// Waits until `chunks` chunks are done, and `pieces` pieces of the next chunk.
    pub fn await_turn(&self, chunks: u64, pieces: u64) {
        drop(self.wait_until(|state| (state.chunks, state.pieces) == (chunks, pieces)));
    }

    /// Marks a piece as done; with `last`, also its chunk.
    pub fn done(&self, last: bool) {
        self.change(|state| {
            state.pieces += 1;
            if last {
                state.taken.pop_front();
                state.chunks += 1;
                state.pieces = 0;
            }
        });
    }

    /// Releases all threads that wait or will wait.
    pub fn close(&self) {
        self.change(|state| state.closed = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    /// Runs `wait` on a thread; checks that it waits until `go` was called.
    fn waits(wait: impl FnOnce() + Send + 'static, go: impl FnOnce()) {
        let (give, take) = mpsc::channel();
        let thread = thread::spawn(move || {
            wait();
            give.send(()).unwrap();
        });
        assert!(take.recv_timeout(Duration::from_millis(50)).is_err());
        go();
        take.recv_timeout(Duration::from_secs(20)).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn a_huge_chunk_goes_alone() {
        let flow = FlowControl::new(10);
        flow.admit(9);
        flow.admit(1);
        flow.done(false);
        let reader = flow.clone();
        waits(move || reader.admit(9), || flow.done(true));
        let reader = flow.clone();
        waits(
            move || reader.admit(20),
            || {
                flow.done(true);
                flow.done(true);
            },
        );
    }

    #[test]
    fn a_huge_record_waits_for_its_turn() {
        let flow = FlowControl::new(10);
        flow.await_turn(0, 0);
        let decoder = flow.clone();
        waits(
            move || decoder.await_turn(1, 2),
            || {
                flow.done(false);
                flow.done(true);
                flow.done(false);
                flow.done(false);
            },
        );
        let decoder = flow.clone();
        waits(move || decoder.await_turn(9, 0), || flow.close());
    }
}
