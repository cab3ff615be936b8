//! Threads: pieces of work at a time, and work beside other work.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::{Error, Result};

/// As many as there are processors.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get())
}

/// Starts work on a thread of that name.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let builder = Builder::new().name(name.into());
    builder.spawn(work).map_err(Error::io("thread", "start"))
}

/// The same inside a scope.
pub(crate) fn spawn_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    let builder = Builder::new().name(name.into());
    let spawned = builder.spawn_scoped(scope, work);
    spawned.map_err(Error::io("thread", "start"))
}

/// Work on a thread of its own, or already done.
pub(crate) struct Apart<'scope, W, T> {
    work: Arc<Mutex<Option<W>>>,
    thread: Option<ScopedJoinHandle<'scope, Option<T>>>,
}

/// Does work on a thread of its own, or when it is waited for, where none can be started: fewer threads than a machine
/// could have make a command slow, and that is all.
pub(crate) fn apart<'scope, T: Send + 'scope, W: FnOnce() -> T + Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: W,
) -> Apart<'scope, W, T> {
    let work = Arc::new(Mutex::new(Some(work)));
    let given = work.clone();
    let thread = Builder::new().spawn_scoped(scope, move || Some(taken(&given)?()));
    Apart {
        work,
        thread: thread.ok(),
    }
}

fn taken<W>(work: &Mutex<Option<W>>) -> Option<W> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl<T, W: FnOnce() -> T> Apart<'_, W, T> {
    /// Waits for the result.
    pub fn join(self) -> T {
        let done = self.thread.and_then(|thread| {
            let done = thread.join();
            done.unwrap_or_else(|panic| resume_unwind(panic))
        });
        match done {
            Some(done) => done,
            None => {
                taken(&self.work).map_or_else(|| unreachable!("it was not done"), |work| work())
            }
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

/// As [`in_two`]; where it `yields`, the first does so to all other threads meanwhile: it is needed once the second is done.
pub(crate) fn beside<A: Send, B>(
    parallel: bool,
    yields: bool,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B,
) -> (A, B) {
    let caller = std::thread::current().id();
    let first = || {
        // Where no thread can be started it is this one.
        if yields && std::thread::current().id() != caller {
            yield_to_others();
        }
        first()
    };
    in_two(parallel, first, second)
}

/// How much less time a thread gets that yields to others.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// From now on this thread, and those that it starts, yield to others. Where that is not possible for one thread, or not
/// allowed, nothing changes.
pub(crate) fn yield_to_others() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICE);
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
