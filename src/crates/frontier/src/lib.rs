//! A frontier for crawlers beside the service of `cashrank`: it speaks URLFrontier's interface over gRPC, keeps the URLs that
//! crawlers put, and hands them out in the order of a crawl strategy: at most a number of a queue at once, with its delays.
//!
//! A thread of its own asks the backend for the pages to crawl next, ten times a second, and gives those of a new list that
//! the frontier knows their places: the best first, then the others, from where the list before was left. It leaves a list
//! when there is a newer one. A URL that no list names comes after those that one names.
//!
//! | file | holds |
//! |---|---|
//! | `options` | the file's path, its order and its limits |
//! | `item` | a URL as it is kept, and the order of a queue |
//! | `file` | the file, opened |
//! | `state` | what is in it, and the queues |
//! | `grpc` | the calls |
//! | `wire` | their messages, made from `urlfrontier.proto` |

mod file;
mod grpc;
mod item;
mod options;
mod queue;
mod state;
mod tables;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use cashrank_serve::{
    Backend, Calls, NextList, NextPage, NextQuery, Problem, Result, RunningCalls, ServiceLimits,
    Workers, start_thread, thread_time,
};

use grpc::UrlFrontierCalls;
pub use options::{FrontierLimits, FrontierOptions};
use state::State;

type Fence = cashrank_fence::Fence<Problem>;
type Fenced<T> = cashrank_fence::Fenced<T, Problem>;

/// Interval at which a new list is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Number of pages that are reordered under one lock.
const CHUNK: usize = 500;

impl Calls for FrontierOptions {
    fn start(
        self: Box<Self>,
        backend: &Arc<dyn Backend>,
        limits: &ServiceLimits,
        address: String,
    ) -> io::Result<RunningCalls> {
        let opened = Frontier::open(&self).map_err(|why| match why {
            Problem::Asked(_) => io::Error::new(io::ErrorKind::InvalidInput, why),
            why => io::Error::other(why),
        });
        let opened = Arc::new(opened?);
        let keeper = Keeper::start(opened.clone(), backend.clone(), self.next)?;
        // Each request of each connection may wait for its turn.
        let workers = Workers::new(&ServiceLimits {
            waiting: limits.connections * limits.streams as usize,
            ..limits.clone()
        })?;
        let server = grpc::server(UrlFrontierCalls::new(
            opened,
            backend.clone(),
            workers.clone(),
            address,
        ));
        Ok(RunningCalls {
            routes: Router::new().route_service("/urlfrontier.URLFrontier/{call}", server),
            workers,
            keeper: Box::new(keeper),
        })
    }
}

/// Open frontier.
struct Frontier {
    state: Mutex<State>,
    limits: FrontierLimits,
}

impl Frontier {
    fn open(options: &FrontierOptions) -> Result<Frontier> {
        Ok(Frontier {
            state: Mutex::new(State::open(options.path.clone(), options.limits.clone())?),
            limits: options.limits.clone(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves at worst slightly wrong counts: the file contains no part of the interrupted work.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the pages of a list their positions, part by part: the first part, then those from `left` on, cyclically.
    /// Stops when `is_old` returns true, and returns the position.
    fn order(&self, list: &NextList, left: usize, is_old: impl Fn() -> bool) -> Result<usize> {
        self.state().begin_list(scores(list))?;
        let parts: Vec<&[NextPage]> = list.pages.chunks(CHUNK).collect();
        for part in in_turn(parts.len(), left) {
            if part > 0 && is_old() {
                return Ok(part);
            }
            let pages = parts[part].iter().map(|page| &*page.url);
            self.state().reorder(pages)?;
        }
        Ok(0)
    }
}

/// Returns the scores of a list's pages, at least 0. Those of some strategies are below: such a list gets others, up to 1, in
/// the same order.
fn scores(list: &NextList) -> HashMap<String, f64> {
    let scores = || list.pages.iter().map(|page| page.score);
    let highest = scores().fold(f64::NEG_INFINITY, f64::max);
    let has_lower = scores().any(|score| score < 0.0);
    let lift = |score: f64| {
        if has_lower {
            1.0 / (1.0 + highest - score)
        } else {
            score
        }
    };
    let pages = list.pages.iter();
    pages
        .map(|page| (page.url.clone(), lift(page.score)))
        .collect()
}

/// Returns the first of `parts` parts, then the others cyclically, from `left` on.
fn in_turn(parts: usize, left: usize) -> impl Iterator<Item = usize> {
    let left = left.clamp(1, parts.max(1));
    let others = (left..parts).chain(1..left.min(parts));
    (0..parts.min(1)).chain(others)
}

/// Thread that keeps a frontier in order; it ends when this is dropped.
#[derive(Debug)]
struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    fn start(
        frontier: Arc<Frontier>,
        backend: Arc<dyn Backend>,
        next: Vec<(String, String)>,
    ) -> std::io::Result<Keeper> {
        let (stop, stopped) = channel();
        let thread = start_thread("frontier", move || {
            let query = NextQuery {
                n: frontier.limits.scored,
                options: next,
            };
            let mut order = Ordering::default();
            loop {
                let rest = order.look(&frontier, &*backend, &query);
                let wait = LOOK_EVERY.max(rest);
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Keeper {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

/// Progress of ordering: the last list, and the last error that was printed.
#[derive(Default)]
struct Ordering {
    version: Option<String>,
    /// Part at which the list was left.
    left: usize,
    told: Option<Problem>,
}

impl Ordering {
    /// Orders a frontier by a new list. Returns how long to pause: three times the processor time that it took.
    fn look(&mut self, frontier: &Frontier, backend: &dyn Backend, query: &NextQuery) -> Duration {
        let before = thread_time();
        let done = match backend.next(query) {
            Ok(Some(list)) if self.version.as_ref() != Some(&list.version) => {
                self.version = Some(list.version.clone());
                let is_old = || {
                    let newest = backend.next(query);
                    matches!(newest, Ok(Some(newest)) if newest.version != list.version)
                };
                let ordered = frontier.order(&list, self.left, is_old);
                ordered.map(|left| self.left = left)
            }
            // There is no newer list, or none yet.
            Ok(_) | Err(Problem::Later(_)) => return Duration::ZERO,
            Err(why) => Err(why),
        };
        // Without a list the current order stays. Each error is printed once.
        if let Err(why) = &done
            && self.told.as_ref() != Some(why)
        {
            backend.log(&format!("frontier: no scores: {why}"));
        }
        self.told = done.err();
        thread_time().saturating_sub(before) * 3
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Point in time on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Now {
    /// Seconds since 1970, by the system's clock, which may be set.
    unix_s: u64,
    /// Milliseconds since an arbitrary time, by a clock that is never set.
    passed_ms: u64,
}

impl Now {
    fn read() -> Now {
        static START: OnceLock<Instant> = OnceLock::new();
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Now {
            unix_s: since.map_or(0, |since| since.as_secs()),
            passed_ms: START.get_or_init(Instant::now).elapsed().as_millis() as u64,
        }
    }
}
