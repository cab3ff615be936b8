//! A frontier for crawlers that speak URLFrontier's interface over gRPC: it keeps the URLs that crawlers put, and hands
//! them out in the order of a crawl strategy, so many of a queue at once, with its delays.
//!
//! A thread of its own asks the backend for the pages to crawl next, ten times a second, and gives those of a new list that
//! the frontier knows their places: the best first, then the others, from where the list before was left. It leaves a list
//! when there is a newer one. A URL that no list names comes after those that one names.
//!
//! | file | holds |
//! |---|---|
//! | `item` | a URL as it is kept, and the order of a queue |
//! | `file` | the file, opened |
//! | `state` | what is in it, and the queues |
//! | `grpc` | the calls |
//! | `wire` | their messages, made from `urlfrontier.proto` |

mod fence;
mod file;
mod grpc;
mod item;
mod queue;
mod state;
mod tables;
#[cfg(test)]
mod tests;
mod wire;

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::backend::{Backend, NextList, NextPage, NextQuery, Problem, Result};
use crate::{cpu_time, pool};
use state::State;

pub(crate) use grpc::{Calls, Server, server};

/// How often a new list is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Pages that get new places at once, while nobody else may use the frontier.
const CHUNK: usize = 500;

/// A frontier's file, and how it orders what it hands out.
#[derive(Debug, Clone)]
pub struct FrontierOptions {
    /// The file; made if there is none.
    pub path: PathBuf,
    /// Options of [`NextQuery`]: the strategy, and all else but how many.
    pub next: Vec<(String, String)>,
    /// Its limits.
    pub limits: FrontierLimits,
}

/// The limits of a frontier.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontierLimits {
    /// URLs; further ones are answered by FAIL.
    pub urls: u64,
    /// Queues; URLs of further ones are answered by FAIL.
    pub queues: u64,
    /// Bytes of a URL; a longer one is answered by SKIPPED.
    pub url_bytes: usize,
    /// Bytes of a queue's key and of a crawl's name; URLs of longer ones are answered by SKIPPED.
    pub name_bytes: usize,
    /// Bytes of a URL's metadata; a URL with more is answered by SKIPPED.
    pub metadata_bytes: usize,
    /// URLs that a call hands out or lists.
    pub urls_a_call: usize,
    /// Bytes of URLs and metadata after which a call hands out, or lists, no more.
    pub bytes_a_call: usize,
    /// Pages that a strategy is asked for.
    pub scored: usize,
    /// Memory for the file, in bytes.
    pub cache_bytes: usize,
}

impl Default for FrontierLimits {
    fn default() -> FrontierLimits {
        FrontierLimits {
            urls: 50_000_000,
            queues: 1_000_000,
            url_bytes: 8 << 10,
            name_bytes: 255,
            metadata_bytes: 64 << 10,
            urls_a_call: 10_000,
            bytes_a_call: 16 << 20,
            scored: 100_000,
            cache_bytes: 64 << 20,
        }
    }
}

/// A frontier that is open.
pub(crate) struct Frontier {
    state: Mutex<State>,
    limits: FrontierLimits,
}

impl Frontier {
    pub(crate) fn open(options: &FrontierOptions) -> Result<Frontier> {
        Ok(Frontier {
            state: Mutex::new(State::open(options.path.clone(), options.limits.clone())?),
            limits: options.limits.clone(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves at worst counts that are a little off: the file has no part of what was going on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the pages of a list their places, part by part: the first part, then those from `left` on, around. Stops when
    /// `is_old` says so, and returns where.
    fn order(&self, list: &NextList, left: usize, is_old: impl Fn() -> bool) -> Result<usize> {
        let scores = list.pages.iter().map(|page| (page.url.clone(), page.score));
        self.state().begin_list(scores.collect())?;
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

/// The first of so many parts, and then the others, from `left` on.
fn in_turn(parts: usize, left: usize) -> impl Iterator<Item = usize> {
    let left = left.clamp(1, parts.max(1));
    let others = (left..parts).chain(1..left.min(parts));
    (0..parts.min(1)).chain(others)
}

/// The thread that keeps a frontier in order; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(
        frontier: Arc<Frontier>,
        backend: Arc<dyn Backend>,
        next: Vec<(String, String)>,
    ) -> std::io::Result<Keeper> {
        let (stop, stopped) = channel();
        let thread = pool::start("frontier", move || {
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

/// Which list a frontier was last ordered by, and what was said of there being none.
#[derive(Default)]
struct Ordering {
    version: Option<String>,
    /// The part at which that list was left.
    left: usize,
    told: Option<Problem>,
}

impl Ordering {
    /// Orders a frontier by a list that is new. How long it is then left in peace: three times as long as that took of a
    /// processor.
    fn look(&mut self, frontier: &Frontier, backend: &dyn Backend, query: &NextQuery) -> Duration {
        let (started, spent) = (Instant::now(), cpu_time::by_thread());
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
            // Nothing new; or nothing yet.
            Ok(_) | Err(Problem::Later(_)) => return Duration::ZERO,
            Err(why) => Err(why),
        };
        // Without a list things stay in the order they are in. The same is said once.
        if let Err(why) = &done
            && self.told.as_ref() != Some(why)
        {
            backend.log(&format!("frontier: no scores: {why}"));
        }
        self.told = done.err();
        cpu_time::since(spent, started.elapsed()) * 3
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

/// A time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    /// Seconds since 1970, by the system's clock, which may be set.
    pub(crate) unix_s: u64,
    /// Milliseconds that passed since some time.
    pub(crate) passed_ms: u64,
}

impl Now {
    pub(crate) fn read() -> Now {
        static START: OnceLock<Instant> = OnceLock::new();
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Now {
            unix_s: since.map_or(0, |since| since.as_secs()),
            passed_ms: START.get_or_init(Instant::now).elapsed().as_millis() as u64,
        }
    }
}
