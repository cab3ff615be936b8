//! How much of an input is on its way through the pipeline at a time, whatever the number of
//! threads: its memory must not grow with them when records are huge.
//!
//! Two rules. The reader hands out a chunk when it fits the [`BUDGET`] with those on their way, or
//! alone. And a decoder whose record outgrows a batch by far (relative links on a long base) goes on
//! with it only once all pieces before it were applied. Pieces are applied in order and never wait
//! for later ones, so neither can wait for ever.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Bytes of chunks on their way from the reader to the caller.
const BUDGET: usize = 48 << 20;

/// What was handed out, and what of it is done. Copies are the same flow.
#[derive(Clone, Default)]
pub(super) struct Flow(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    /// Bytes of chunks that are on their way.
    bytes: usize,
    /// Chunks done, and pieces of the next one.
    chunks: u64,
    pieces: u64,
    /// Nobody takes pieces any longer.
    closed: bool,
}

impl Flow {
    fn wait_until(&self, ready: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap_or_else(|held| held.into_inner());
        while !ready(&state) && !state.closed {
            state = changed.wait(state).unwrap_or_else(|held| held.into_inner());
        }
        state
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let (state, changed) = &*self.0;
        change(&mut state.lock().unwrap_or_else(|held| held.into_inner()));
        changed.notify_all();
    }

    /// Waits until a chunk of `len` bytes may be on its way.
    pub fn admit(&self, len: usize) {
        self.wait_until(|state| state.bytes == 0 || state.bytes + len <= BUDGET)
            .bytes += len;
    }

    /// Waits until `chunks` chunks are done, and `pieces` of the next.
    pub fn await_turn(&self, chunks: u64, pieces: u64) {
        drop(self.wait_until(|state| (state.chunks, state.pieces) == (chunks, pieces)));
    }

    /// A piece is done; if it was the last of its chunk, of `len` bytes, so is that.
    pub fn done(&self, last: Option<usize>) {
        self.change(|state| match last {
            None => state.pieces += 1,
            Some(len) => {
                state.bytes -= len.min(state.bytes);
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
        let flow = Flow::default();
        flow.admit(BUDGET - 1);
        flow.admit(1);
        let reader = flow.clone();
        waits(move || reader.admit(1), || flow.done(Some(BUDGET - 1)));
        let reader = flow.clone();
        waits(
            move || reader.admit(2 * BUDGET),
            || {
                flow.done(Some(1));
                flow.done(Some(1));
            },
        );
    }

    #[test]
    fn a_huge_record_waits_for_its_turn() {
        let flow = Flow::default();
        flow.await_turn(0, 0);
        let decoder = flow.clone();
        waits(
            move || decoder.await_turn(1, 2),
            || {
                flow.done(None);
                flow.done(Some(5));
                flow.done(None);
                flow.done(None);
            },
        );
        let decoder = flow.clone();
        waits(move || decoder.await_turn(9, 0), || flow.close());
    }
}
