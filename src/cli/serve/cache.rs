//! Cache of answers that take long: lists of pages to crawl next, and parts of snapshots.
//!
//! A request is answered at once with the last result, which names its snapshot. One thread makes lists for requests
//! that have no answer yet. Another, at a low priority, refreshes the results that were requested within the last
//! minute ([`LIVELY`]) when a newer snapshot appears. Each makes one result at a time and pauses after it, so that it
//! uses at most a quarter of a processor however fast snapshots come; an ingest at full speed loses less, and one that
//! waits for its crawler has the newest lists. A part that was not requested lately is read by the next request for it.
//!
//! Each list is made from its snapshot alone: its rows, and the ranking that it has ([`next_of`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cashrank_serve::{NextList, NextPage, NextQuery, Problem, Result, thread_time};
use cashrank_steer::schedule::{Candidate, NextOptions, PageSelection, next_of};

use super::super::common::check_list;
use super::backend::problem;
use super::current::{Current, OpenSnapshot, SnapshotPart, lock};

/// Maximum number of cached lists; the least recently requested one is evicted.
const LISTS: usize = 4;
/// Time for which a result is refreshed after its last request.
const LIVELY: Duration = Duration::from_secs(60);
/// Interval at which a newer snapshot is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Number of threads in addition to the one that makes a list.
const BESIDE: usize = 2;
/// Length of the pause after a task, as a multiple of the task's processor time.
const REST: u32 = 3;
/// Niceness of the thread that refreshes: competing with a normal thread, it gets about a tenth of a processor.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Task of a worker thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerKind {
    /// Makes lists that do not exist yet.
    First,
    /// Refreshes answers that are older than the current snapshot.
    Refresh,
}

/// Worker threads with their names, in the order in which they are started.
const WORKERS: [(WorkerKind, &str); 2] = [
    (WorkerKind::First, "next-first"),
    (WorkerKind::Refresh, "next-refresh"),
];

/// Cache of answers with the threads that compute them. On drop the threads end after their current task.
pub struct AnswerCache(Arc<CacheShared>);

struct CacheShared {
    current: Arc<Current>,
    kept: Mutex<Kept>,
    changed: Condvar,
}

#[derive(Default)]
struct Kept {
    lists: Vec<CachedList>,
    parts: Vec<CachedPart>,
    stop: bool,
    /// Number of threads started.
    started: usize,
}

/// Request for a list, with its last result.
struct CachedList {
    query: NextQuery,
    options: NextOptions,
    asked: Instant,
    /// Snapshot version, and the list made from it or the error.
    made: Option<(String, Result<Arc<NextList>>)>,
}

/// Part of a snapshot, and the snapshot that it was last read from.
struct CachedPart {
    part: SnapshotPart,
    asked: Instant,
    held: Arc<OpenSnapshot>,
}

enum Work {
    List(NextQuery, Box<NextOptions>),
    Part(SnapshotPart),
}

impl AnswerCache {
    pub fn new(current: Arc<Current>) -> AnswerCache {
        AnswerCache(Arc::new(CacheShared {
            current,
            kept: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Returns the newest snapshot whose `part` was read; if it was not requested lately, the current snapshot, and the
    /// caller reads it.
    pub fn with(&self, part: SnapshotPart) -> Result<Arc<OpenSnapshot>> {
        let newest = self.0.current.get()?;
        let mut kept = lock(&self.0.kept);
        let now = Instant::now();
        let held = match kept.parts.iter_mut().find(|read| read.part == part) {
            Some(read) => {
                if !is_lively(read.asked) {
                    read.held = newest.clone();
                }
                read.asked = now;
                read.held.clone()
            }
            None => {
                kept.parts.push(CachedPart {
                    part,
                    asked: now,
                    held: newest.clone(),
                });
                newest.clone()
            }
        };
        // If no thread refreshes parts, the caller reads the newest.
        Ok(self.0.start(&mut kept).map_or(newest, |()| held))
    }

    /// Returns the newest list for a query; it may be longer than requested. `None` if the first one is still being
    /// made.
    pub fn list(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        let version = self.0.current.get()?.version();
        let now = Instant::now();
        let mut kept = lock(&self.0.kept);
        let mut answer = Ok(None);
        if let Some(list) = kept.list_for(query) {
            list.asked = now;
            answer = match &list.made {
                Some((_, Ok(made))) => Ok(Some(made.clone())),
                // An error for one snapshot need not occur for the next.
                Some((of, Err(problem))) if *of == version => Err(problem.clone()),
                _ => Ok(None),
            };
        } else {
            let mut options = NextOptions::of(&query.options).map_err(problem)?;
            options.count = query.n;
            kept.make_room()?;
            kept.lists.push(CachedList {
                query: query.clone(),
                options,
                asked: now,
                made: None,
            });
        }
        // A thread that could not be started at an earlier request may start now.
        self.0.start(&mut kept)?;
        answer
    }
}

impl Drop for AnswerCache {
    fn drop(&mut self) {
        lock(&self.0.kept).stop = true;
        self.0.changed.notify_all();
    }
}

fn is_lively(asked: Instant) -> bool {
    asked.elapsed() < LIVELY
}

impl CachedList {
    /// Creates the task of making this list.
    fn work(&self) -> Work {
        Work::List(self.query.clone(), Box::new(self.options.clone()))
    }

    /// Returns whether this list answers a query. For unread pages, a shorter list is a prefix of a longer one.
    fn answers(&self, query: &NextQuery) -> bool {
        self.query.options == query.options
            && (self.query.n == query.n
                || self.options.which == PageSelection::NotFetched && self.query.n > query.n)
    }
}

impl Kept {
    /// Returns the longest list that answers a query, preferring lists that have a result.
    fn list_for(&mut self, query: &NextQuery) -> Option<&mut CachedList> {
        let lists = self.lists.iter_mut();
        let answering = lists.filter(|list| list.answers(query));
        answering.max_by_key(|list| (list.made.is_some(), list.query.n))
    }

    /// Evicts the least recently requested list if there are too many. A list without a result stays.
    fn make_room(&mut self) -> Result<()> {
        if self.lists.len() < LISTS {
            return Ok(());
        }
        let made = self.lists.iter().enumerate();
        let made = made.filter(|(_, list)| list.made.is_some());
        let (oldest, _) = made.min_by_key(|(_, list)| list.asked).ok_or_else(|| {
            Problem::Later(format!(
                "{LISTS} other lists are being made: try again later"
            ))
        })?;
        self.lists.remove(oldest);
        Ok(())
    }

    /// Returns whether this worker may have something to do once there is a newer snapshot.
    fn is_waiting(&self, kind: WorkerKind) -> bool {
        match kind {
            WorkerKind::First => self.lists.iter().any(|list| list.made.is_none()),
            WorkerKind::Refresh => {
                let lists = self.lists.iter().map(|list| list.asked);
                let parts = self.parts.iter().map(|read| read.asked);
                lists.chain(parts).any(is_lively)
            }
        }
    }

    /// Returns the next task for a snapshot: a list that has no result yet, or the refresh of the result that was made
    /// from the oldest snapshot.
    fn task(&self, kind: WorkerKind, held: &OpenSnapshot) -> Option<Work> {
        if kind == WorkerKind::First {
            let new = self.lists.iter().find(|list| list.made.is_none());
            return new.map(CachedList::work);
        }
        let version = held.version();
        let lists = self.lists.iter().filter_map(|list| {
            let (of, made) = list.made.as_ref()?;
            let since = made.as_ref().map_or(None, |made| made.made);
            (is_lively(list.asked) && *of != version).then_some((since, list))
        });
        let list = lists.min_by_key(|(since, _)| *since);
        let parts = self
            .parts
            .iter()
            .filter(|read| is_lively(read.asked) && read.held.version() != version);
        let part = parts.min_by_key(|read| read.held.written());
        match (list, part) {
            (Some((since, list)), part) if part.is_none_or(|part| part.held.written() >= since) => {
                Some(list.work())
            }
            (_, part) => part.map(|part| Work::Part(part.part.clone())),
        }
    }

    fn keep(&mut self, held: Arc<OpenSnapshot>, work: Work, made: Result<Option<Arc<NextList>>>) {
        match work {
            Work::List(query, _) => {
                if let Some(list) = self.lists.iter_mut().find(|list| list.query == query) {
                    list.made = made.transpose().map(|made| (held.version(), made));
                }
            }
            // A part that could not be read is read by the next request, which gets the error.
            Work::Part(part) => {
                if let Some(read) = self.parts.iter_mut().find(|read| read.part == part) {
                    read.held = held;
                }
            }
        }
    }
}

fn no_thread(error: &std::io::Error) -> Problem {
    Problem::Later(format!(
        "cannot start a thread for lists: {error}; they take 2: raise the limit of processes (`ulimit -u`, `TasksMax=` of \
         systemd, that of a container)"
    ))
}

impl CacheShared {
    /// Wakes the threads after a request; starts those that are not running yet.
    fn start(self: &Arc<CacheShared>, kept: &mut Kept) -> Result<()> {
        for (kind, name) in WORKERS.into_iter().skip(kept.started) {
            let shared = self.clone();
            let thread = std::thread::Builder::new().name(name.into());
            thread
                .spawn(move || shared.work(kind))
                .map_err(|error| no_thread(&error))?;
            kept.started += 1;
        }
        self.changed.notify_all();
        Ok(())
    }

    fn work(&self, kind: WorkerKind) {
        // Nothing changes if the system cannot lower the priority of one thread, or does not allow it.
        #[cfg(target_os = "linux")]
        if kind == WorkerKind::Refresh {
            let _ = rustix::process::nice(NICE);
        }
        let mut rested = Instant::now();
        while let Some((held, work)) = self.next_task(kind, rested) {
            let before = thread_time();
            let made = catch_unwind(AssertUnwindSafe(|| make(&held, &work)));
            let made =
                made.unwrap_or_else(|_| Err(Problem::Failed("making the list failed".into())));
            lock(&self.kept).keep(held, work, made);
            rested = Instant::now() + thread_time().saturating_sub(before) * REST;
        }
    }

    /// Waits for a task, at least until `rested`; `None` on shutdown.
    fn next_task(&self, kind: WorkerKind, rested: Instant) -> Option<(Arc<OpenSnapshot>, Work)> {
        let mut kept = lock(&self.kept);
        while !kept.stop {
            let is_waiting = kept.is_waiting(kind);
            if is_waiting && Instant::now() >= rested {
                drop(kept);
                // A store that is unreadable at the moment is tried again later.
                let held = self.current.get().ok();
                kept = lock(&self.kept);
                if let Some(held) = held
                    && let Some(work) = kept.task(kind, &held)
                {
                    return Some((held, work));
                }
            }
            let most = if is_waiting {
                LOOK_EVERY
            } else {
                Duration::MAX
            };
            let waited = self.changed.wait_timeout(kept, most);
            kept = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }
}

/// Makes a list, or reads a part, which stays with its snapshot.
fn make(held: &OpenSnapshot, work: &Work) -> Result<Option<Arc<NextList>>> {
    check_list(held.info().pages, BESIDE).map_err(problem)?;
    let options = match work {
        Work::List(_, options) => options,
        Work::Part(part) => return held.read(part).map(|()| None),
    };
    let pages = next_of(held.snapshot(), options, 1).map_err(problem)?;
    let page = |page: Candidate| NextPage {
        url: page.url,
        score: page.score,
    };
    Ok(Some(Arc::new(NextList {
        snapshot: held.name().into(),
        version: held.version(),
        records: held.info().counters.records,
        made: held.written(),
        pages: pages.into_iter().map(page).collect(),
    })))
}
