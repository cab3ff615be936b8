//! How much of an input is on its way through the pipeline at a time, whatever the number of
//! threads: its memory must not grow with them when records are huge.
//!
//! Two rules. The reader hands out a chunk when it fits the budget with those on their way, or
//! alone. And a decoder whose record outgrows a batch by far (relative links on a long base) goes on
//! with it only once all pieces before it were applied. Pieces are applied in order and never wait
//! for later ones, so neither can wait for ever.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Pieces that were handed out, and those of them that are done. Copies are the same flow.
#[derive(Clone)]
pub(super) struct Flow {
    /// Bytes that may be on their way from the reader to the caller.
    budget: u64,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    /// Bytes that each chunk on its way takes, in order.
    taken: VecDeque<u64>,
    /// Chunks done, and pieces of the next one.
    chunks: u64,
    pieces: u64,
    /// Nobody takes pieces any longer.
    closed: bool,
}

impl Flow {
    pub fn new(budget: u64) -> Flow {
        Flow {
            budget,
            state: Arc::default(),
        }
    }

    fn wait_until(&self, ready: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let (state, changed) = &*self.state;
        let mut state = state.lock().unwrap_or_else(|held| held.into_inner());
        while !ready(&state) && !state.closed {
            state = changed.wait(state).unwrap_or_else(|held| held.into_inner());
        }
        state
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let (state, changed) = &*self.state;
        change(&mut state.lock().unwrap_or_else(|held| held.into_inner()));
        changed.notify_all();
    }

    /// Waits until a chunk that takes so many bytes may be on its way.
    pub fn admit(&self, bytes: u64) {
        let fits = |state: &State| {
            let all = state.taken.iter().copied().fold(bytes, u64::saturating_add);
            state.taken.is_empty() || all <= self.budget
        };
        self.wait_until(fits).taken.push_back(bytes);
    }

    /// Waits until `chunks` chunks are done, and `pieces` of the next.
    pub fn await_turn(&self, chunks: u64, pieces: u64) {
        drop(self.wait_until(|state| (state.chunks, state.pieces) == (chunks, pieces)));
    }

    /// A piece is done; if it was the last of its chunk, so is that.
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

    /// Lets all go that wait, now and later.
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
        let flow = Flow::new(10);
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
        let flow = Flow::new(10);
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
