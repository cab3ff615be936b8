//! Threads: pieces of work at a time, and work beside other work.

use std::panic::resume_unwind;
use std::thread::{Builder, JoinHandle};

use crate::{Error, Result};

/// Starts work on a thread of that name.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let builder = Builder::new().name(name.into());
    builder.spawn(work).map_err(Error::io("thread", "start"))
}

/// The results of both, on two threads if `parallel`.
pub(crate) fn in_two<A: Send, B>(
    parallel: bool,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B,
) -> (A, B) {
    if !parallel {
        return (first(), second());
    }
    std::thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = second();
        let first = first.join().unwrap_or_else(|panic| resume_unwind(panic));
        (first, second)
    })
}

/// The results of `work` for each of the parts 0, 1, ..., in their order, each part on a thread of its own.
pub(crate) fn each_of<T: Send>(parts: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if parts <= 1 {
        return (0..parts).map(work).collect();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..parts)
            .map(|part| scope.spawn(move || work(part)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}
