//! Threads, for pieces of work in parallel. If a thread cannot be started, the present threads do its work: too few
//! threads make a command slow, but do not break it. Only work that waits for an input requires a thread of its own
//! ([`spawn`]).

use std::io;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crate::{Error, Result};

pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get())
}

/// Time for which starting a required thread is retried: threads that are ending may still count against a limit.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval between retries.
const AGAIN: Duration = Duration::from_millis(5);

/// Starts a required thread of this name.
///
/// # Errors
///
/// Fails with advice if none can be started.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let begun = Instant::now();
    let mut work = work;
    loop {
        match try_spawn(name, work, |work| work()) {
            Ok(thread) => return Ok(thread),
            Err((back, _)) if begun.elapsed() < PATIENCE => work = back,
            Err((_, source)) => return Err(none_started(source)),
        }
        std::thread::sleep(AGAIN);
    }
}

/// Starts a thread of this name for work that can be postponed; does not retry.
pub(crate) fn spawn_now<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    try_spawn(name, work, |work| work()).map_err(|(_, source)| none_started(source))
}

fn none_started(source: io::Error) -> Error {
    let what = format!(
        "{source}; reading takes 2 threads at least (with `spool` 3): raise the limit of processes (`ulimit -u`, \
         `TasksMax=` of systemd, that of a container)"
    );
    Error::io("thread", "start")(io::Error::new(source.kind(), what))
}

/// Starts `work` on `given` in a thread of this name; if none can be started, returns `given`, so that the caller can
/// do the work itself or leave it to other threads.
pub(crate) fn try_spawn<V: Send + 'static, T: Send + 'static>(
    name: &str,
    given: V,
    work: impl FnOnce(V) -> T + Send + 'static,
) -> Result<JoinHandle<T>, (V, io::Error)> {
    let (lent, taken) = lend(given);
    let builder = Builder::new().name(name.into());
    let started = builder.spawn(move || work(taken()));
    started.map_err(|error| (lent(), error))
}

/// Starts work like [`try_spawn`], inside a scope.
pub(crate) fn try_spawn_in<'scope, V: Send + 'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    given: V,
    work: impl FnOnce(V) -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, V> {
    let (lent, taken) = lend(given);
    let builder = Builder::new().name(name.into());
    let started = builder.spawn_scoped(scope, move || work(taken()));
    started.map_err(|_| lent())
}

/// Returns two functions that take a value, of which one must be used.
fn lend<V>(given: V) -> (impl FnOnce() -> V, impl FnOnce() -> V) {
    let lent = Arc::new(Mutex::new(Some(given)));
    let take = |lent: Arc<Mutex<Option<V>>>| {
        move || {
            let given = lent.lock().unwrap_or_else(PoisonError::into_inner).take();
            given.unwrap_or_else(|| unreachable!("it was taken"))
        }
    };
    (take(lent.clone()), take(lent))
}

/// Work in a thread of its own, or already done if none could be started.
pub(crate) enum Task<T> {
    Running(JoinHandle<T>),
    Done(T),
}

impl<T: Send + 'static> Task<T> {
    /// Starts the work, or does it.
    pub fn start(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Task<T> {
        match try_spawn(name, work, |work| work()) {
            Ok(thread) => Task::Running(thread),
            Err((work, _)) => Task::Done(work()),
        }
    }

    pub fn is_finished(&self) -> bool {
        match self {
            Task::Running(thread) => thread.is_finished(),
            Task::Done(_) => true,
        }
    }

    /// Waits for the result.
    pub fn join(self) -> std::thread::Result<T> {
        match self {
            Task::Running(thread) => thread.join(),
            Task::Done(done) => Ok(done),
        }
    }
}

/// Work in a thread of its own or, if none could be started, postponed until it is joined.
pub(crate) enum Apart<'scope, W, T> {
    Running(ScopedJoinHandle<'scope, T>),
    Later(W),
}

/// Starts work in a scoped thread, or postpones it until it is joined.
pub(crate) fn apart<'scope, T: Send + 'scope, W: FnOnce() -> T + Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: W,
) -> Apart<'scope, W, T> {
    try_spawn_in(scope, "work", work, |work| work()).map_or_else(Apart::Later, Apart::Running)
}

impl<T, W: FnOnce() -> T> Apart<'_, W, T> {
    /// Waits for the result.
    pub fn join(self) -> T {
        match self {
            Apart::Running(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Apart::Later(work) => work(),
        }
    }
}

/// Returns the results of both, computed by two threads if `parallel`.
pub(crate) fn in_two<A: Send, B>(
    parallel: bool,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B,
) -> (A, B) {
    if !parallel {
        return (first(), second());
    }
    std::thread::scope(|scope| {
        let first = apart(scope, first);
        let second = second();
        (first.join(), second)
    })
}

/// Smallest slice that is sorted by two threads.
const PARALLEL_SORT_MIN: usize = 1 << 15;

/// Sorts items by their keys, unstably; large slices by two threads.
pub(crate) fn sort_by_key<T: Send, K: Ord>(
    items: &mut [T],
    key: impl Fn(&T) -> K + Copy + Send + Sync,
) {
    if items.len() < PARALLEL_SORT_MIN {
        return items.sort_unstable_by_key(key);
    }
    let (left, _, right) = items.select_nth_unstable_by_key(items.len() / 2, key);
    in_two(
        true,
        || left.sort_unstable_by_key(key),
        || right.sort_unstable_by_key(key),
    );
}

/// Returns the results of `work` for parts 0, 1, ..., in order, each computed by a thread of its own.
pub(crate) fn each_of<T: Send>(parts: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if parts <= 1 {
        return (0..parts).map(work).collect();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..parts)
            .map(|part| apart(scope, move || work(part)))
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    })
}

/// Returns the results of `work` for each item, in order, computed by `threads` threads that take items as they come.
/// An error of one item does not stop the others.
///
/// # Errors
///
/// The first error in the order of items.
pub(crate) fn dealt<T: Send, R: Send>(
    threads: usize,
    items: &mut [T],
    work: impl Fn(usize, &mut T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        let items = items.iter_mut().enumerate();
        let done: Vec<_> = items.map(|(at, item)| work(at, item)).collect();
        return done.into_iter().collect();
    }
    let left = Mutex::new(items.iter_mut().enumerate());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take = |_| {
        let done = std::iter::from_fn(|| next().map(|(at, item)| (at, work(at, item))));
        done.collect::<Vec<_>>()
    };
    let mut done: Vec<_> = each_of(threads, take).into_iter().flatten().collect();
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
