//! Threads: pieces of work at a time, and work beside other work. Where a thread cannot be started, work that would be done by it
//! is done by those that there are: fewer threads than a machine could have make a command slow, and that is all. Only what
//! waits for an input cannot do without ([`spawn`]).

use std::io;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// As many as there are processors.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get())
}

/// How long a thread is waited for that work cannot do without: those that end just now may still count.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is tried meanwhile.
const AGAIN: Duration = Duration::from_millis(5);

/// Starts work on a thread of that name, which it cannot do without.
///
/// # Errors
/// That none can be started, and what to do.
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

/// The same, for what may be done later: it is tried once.
///
/// # Errors
/// As of [`spawn`].
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

/// Starts `work` on `given`, on a thread of that name; where none can be started it is given back, for the caller to do the work
/// itself or to leave it to the threads that there are.
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

/// The same inside a scope.
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

/// Two ways to take a thing, of which one is to be used.
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

/// Work on a thread of its own, or done already where none could be started.
pub(crate) enum Task<T> {
    Running(JoinHandle<T>),
    Done(T),
}

impl<T: Send + 'static> Task<T> {
    /// Starts it, or does it.
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

/// Work on a thread of its own, or to be done when it is waited for, where none could be started.
pub(crate) enum Apart<'scope, W, T> {
    Running(ScopedJoinHandle<'scope, T>),
    Later(W),
}

/// Does work on a thread of its own, or when it is waited for.
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
        let first = apart(scope, first);
        let second = second();
        (first.join(), second)
    })
}

/// From this many items on, halves are sorted by two threads.
const PARALLEL_SORT_MIN: usize = 1 << 15;

/// Sorts items by their keys, unstably; many by two threads.
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

/// The results of `work` for each of the parts 0, 1, ..., in their order, each part on a thread of its own.
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

/// The results of `work` for each item, in the order of the items, which are dealt out to so many threads as they come. Where it
/// fails for one, it is done for the others all the same.
///
/// # Errors
/// That of the first item that has one.
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
