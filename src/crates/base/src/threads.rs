//! Threads: pieces of a computation in parallel, and work that runs concurrently with other work.
//!
//! If the system refuses a thread for a computation, the computation does without it. A refused thread that would wait
//! (for an input, a disk, or other work) is an error, which says how many threads the command needs.

use std::io;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::{Error, Result};

/// Returns the number of processors. It is read once, as the system keeps it in several files.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get))
}

/// Maximum number of concurrent threads of an ingest besides the decoders and one per processor.
const BESIDE: usize = 12;

fn refused(source: io::Error) -> Error {
    let what = format!(
        "{source}; a command takes up to {} threads, and one that reads inputs as many more as `threads` says: raise the limit of \
         processes (`ulimit -u`, `TasksMax=` of systemd, that of a container) or address space (`ulimit -v`), or lower `threads`",
        processors() + BESIDE
    );
    Error::io("thread", "start")(io::Error::new(source.kind(), what))
}

/// Takes a lock even if its holder panicked: the data must be consistent after each change.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let started = Builder::new().name(name.into()).spawn(work);
    started.map_err(refused)
}

pub fn spawn_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    let started = Builder::new().name(name.into()).spawn_scoped(scope, work);
    started.map_err(refused)
}

/// Waits for the result of a thread; panics if the thread did.
pub fn result_of<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

pub fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Returns the results of both; the first runs on a thread of its own if `parallel` and if the system grants it.
pub fn join<A: Send, B>(
    parallel: bool,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B,
) -> (A, B) {
    if !parallel {
        return (first(), second());
    }
    let first = Mutex::new(Some(first));
    let run = || {
        let work = lock(&first).take();
        work.unwrap_or_else(|| unreachable!("it runs once"))()
    };
    std::thread::scope(|scope| {
        let started = spawn_in(scope, "work", run);
        let second = second();
        (started.map_or_else(|_| run(), result_of), second)
    })
}

/// Number of items from which halves are sorted by two threads.
const PARALLEL_SORT_MIN: usize = 1 << 15;

/// Sorts items by their keys, unstably; large slices by two threads.
pub fn sort_by_key<T: Send, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K + Copy + Send + Sync) {
    if items.len() < PARALLEL_SORT_MIN {
        return items.sort_unstable_by_key(key);
    }
    let (left, _, right) = items.select_nth_unstable_by_key(items.len() / 2, key);
    join(
        true,
        || left.sort_unstable_by_key(key),
        || right.sort_unstable_by_key(key),
    );
}

/// Returns the results of `work` for the parts 0, 1, ..., each on a thread of its own if the system grants it.
pub fn each_of<T: Send>(parts: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if parts <= 1 {
        return (0..parts).map(work).collect();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let start = |part| (part, spawn_in(scope, "work", move || work(part)));
        let threads: Vec<_> = (0..parts).map(start).collect();
        let done = threads
            .into_iter()
            .map(|(part, thread)| thread.map_or_else(|_| work(part), result_of));
        done.collect()
    })
}

/// Returns the results of `work` for each item in order, by a thread per processor, or the first item's error.
pub fn par_map<T: Send, R: Send>(
    items: &mut [T],
    work: impl Fn(usize, &mut T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = processors().min(items.len());
    let left = Mutex::new(items.iter_mut().enumerate());
    let next = || lock(&left).next();
    let take = |_| {
        let done = std::iter::from_fn(|| next().map(|(at, item)| (at, work(at, item))));
        done.collect::<Vec<_>>()
    };
    let mut done: Vec<_> = each_of(threads, take).into_iter().flatten().collect();
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
