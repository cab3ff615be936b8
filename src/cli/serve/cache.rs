//! Cache of answers that take long: lists of pages to crawl next, and parts of snapshots.
//!
//! A request is answered at once with the last result, which names its snapshot. One thread makes lists for requests
//! that have no answer yet. Another refreshes the results that were requested within the last minute ([`LIVELY`]) when
//! a newer snapshot appears. Each makes one result at a time and pauses after it, so that it uses at most a quarter of
//! a processor however fast snapshots come. While this process is busy, refreshing uses a twentieth of its processor
//! time, or a fiftieth of one processor if that is more, at a low priority: an ingest at full speed loses little, and
//! one that waits for its crawler has the newest lists. A part that was not requested lately is read by the next
//! request for it.
//!
//! Each list is made from its snapshot alone: its rows, and the ranking that it has ([`next_of`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cashrank_serve::{NextList, NextPage, NextQuery, Problem, Result, cpu_time};
use cashrank_steer::schedule::{Candidate, NextOptions, PageSelection, next_of};

use super::super::common::check_list;
use super::current::{Current, OpenSnapshot, SnapshotPart};
use super::once::lock;
use super::problem::problem;

/// Maximum number of cached lists; the least recently requested one is evicted.
const LISTS: usize = 4;
/// Time for which a result is refreshed after its last request.
const LIVELY: Duration = Duration::from_secs(60);
/// Interval at which a newer snapshot is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Number of threads in addition to the one that makes a list.
const BESIDE: usize = 2;

/// Task of a worker thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerKind {
    /// Makes lists that do not exist yet.
    First,
    /// Refreshes answers that are older than the current snapshot.
    Refresh,
}

impl WorkerKind {
    const ALL: [WorkerKind; 2] = [WorkerKind::First, WorkerKind::Refresh];

    fn thread(self) -> &'static str {
        match self {
            WorkerKind::First => "next-first",
            WorkerKind::Refresh => "next-refresh",
        }
    }
}

/// Length of the pause after a task, as a multiple of the task's processor time.
const REST: u32 = 3;
/// Length of the pause after a refresh while this process is busy, as multiples of the task's processor time: it ends
/// when the process has used the first multiple, or the second has elapsed.
const BUSY_REST: (u32, u32) = (20, 50);
/// Number of processors in demand from which a process counts as busy.
const BUSY: f64 = 0.5;
/// Niceness of a refresh while this process is busy: competing with a normal thread, it gets about a tenth of a
/// processor.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Pause of a worker, with the processor time that this process had used and demanded when it began.
struct Pause {
    from: Instant,
    took: Duration,
    spent: Option<Duration>,
    wanted: Option<Duration>,
}

impl Pause {
    fn after(took: Duration) -> Pause {
        Pause {
            from: Instant::now(),
            took,
            spent: cpu_time::by_process(),
            wanted: cpu_time::wanted_by_process(),
        }
    }

    /// Returns whether the process was busy during the pause; true if that is unknown.
    fn is_busy(&self) -> bool {
        let wanted = self.wanted.zip(cpu_time::wanted_by_process());
        wanted.is_none_or(|(before, now)| {
            now.saturating_sub(before) > self.from.elapsed().mul_f64(BUSY)
        })
    }

    fn is_over(&self, job: WorkerKind) -> bool {
        let rested = self.from.elapsed();
        if rested < self.took * REST {
            return false;
        }
        let spent = self.spent.zip(cpu_time::by_process());
        let spent = spent.map_or(Duration::ZERO, |(before, now)| now.saturating_sub(before));
        job == WorkerKind::First
            || spent >= self.took * BUSY_REST.0
            || rested >= self.took * BUSY_REST.1
            || !self.is_busy()
    }
}

/// Cache of answers with the threads that compute them. On drop the threads end after their current task.
pub struct AnswerCache {
    shared: Arc<CacheShared>,
}

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

/// Task for a snapshot.
struct RefreshTask {
    held: Arc<OpenSnapshot>,
    work: Work,
}

enum Work {
    List(NextQuery, Box<NextOptions>),
    Part(SnapshotPart),
}

/// Lowers the priority of this thread. Does nothing if the system cannot do so for one thread, or does not allow it.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICE);
}

impl AnswerCache {
    pub fn new(current: Arc<Current>) -> AnswerCache {
        AnswerCache {
            shared: Arc::new(CacheShared {
                current,
                kept: Mutex::default(),
                changed: Condvar::new(),
            }),
        }
    }

    /// Returns the newest snapshot whose `part` was read; if it was not requested lately, the current snapshot, and the
    /// caller reads it.
    pub fn with(&self, part: SnapshotPart) -> Result<Arc<OpenSnapshot>> {
        let newest = self.shared.current.get()?;
        let mut kept = lock(&self.shared.kept);
        let now = Instant::now();
        let known = kept.parts.iter().position(|read| read.part == part);
        let held = match known.map(|at| &mut kept.parts[at]) {
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
        Ok(self.shared.start(&mut kept).map_or(newest, |()| held))
    }

    /// Returns the newest list for a query; it may be longer than requested. `None` if the first one is still being
    /// made.
    pub fn list(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        let version = self.shared.current.get()?.version();
        let now = Instant::now();
        let mut kept = lock(&self.shared.kept);
        if let Some(list) = kept.list_for(query) {
            list.asked = now;
            let answer = match &list.made {
                None => Ok(None),
                Some((_, Ok(made))) => Ok(Some(made.clone())),
                // An error for one snapshot need not occur for the next.
                Some((of, Err(problem))) if *of == version => Err(problem.clone()),
                Some(_) => Ok(None),
            };
            // A thread that could not be started at the first request may start now.
            self.shared.start(&mut kept)?;
            return answer;
        }
        let mut options = NextOptions::of(&query.options).map_err(problem)?;
        options.count = query.n;
        kept.make_room()?;
        kept.lists.push(CachedList {
            query: query.clone(),
            options,
            asked: now,
            made: None,
        });
        self.shared.start(&mut kept)?;
        Ok(None)
    }
}

impl Drop for AnswerCache {
    fn drop(&mut self) {
        lock(&self.shared.kept).stop = true;
        self.shared.changed.notify_all();
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
        match made.min_by_key(|(_, list)| list.asked) {
            Some((oldest, _)) => {
                self.lists.remove(oldest);
                Ok(())
            }
            None => Err(Problem::Later(format!(
                "{LISTS} other lists are being made: try again later"
            ))),
        }
    }

    /// Returns whether anything was requested lately.
    fn is_lively(&self) -> bool {
        let lists = self.lists.iter().map(|list| list.asked);
        let parts = self.parts.iter().map(|read| read.asked);
        lists.chain(parts).any(is_lively)
    }

    /// Returns whether a list has no result yet.
    fn has_new_list(&self) -> bool {
        self.lists.iter().any(|list| list.made.is_none())
    }

    /// Returns the task of making a list that has no result yet.
    fn new_list(&self) -> Option<Work> {
        let new = self.lists.iter().find(|list| list.made.is_none());
        new.map(CachedList::work)
    }

    /// Returns the task of refreshing the result that was made from the oldest snapshot.
    fn oldest(&self, held: &OpenSnapshot) -> Option<Work> {
        let version = held.version();
        let lists = self.lists.iter().filter_map(|list| {
            let (of, made) = list.made.as_ref()?;
            let since = made.as_ref().map_or(None, |made| made.made);
            (is_lively(list.asked) && *of != version).then_some((since, list))
        });
        let list = lists.min_by_key(|(since, _)| *since);
        let parts = self.parts.iter().filter_map(|read| {
            let older = is_lively(read.asked) && read.held.version() != version;
            older.then_some((read.held.written(), read.part))
        });
        let part = parts.min_by_key(|(since, _)| *since);
        match (list, part) {
            (Some((list_since, _)), Some((since, part))) if since < list_since => {
                Some(Work::Part(part))
            }
            (Some((_, list)), _) => Some(list.work()),
            (None, part) => part.map(|(_, part)| Work::Part(part)),
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
        for job in WorkerKind::ALL.into_iter().skip(kept.started) {
            let shared = self.clone();
            let thread = std::thread::Builder::new().name(job.thread().into());
            thread
                .spawn(move || shared.make_all(job))
                .map_err(|error| no_thread(&error))?;
            kept.started += 1;
        }
        self.changed.notify_all();
        Ok(())
    }

    fn make_all(&self, job: WorkerKind) {
        let mut rest = Pause::after(Duration::ZERO);
        while let Some(task) = self.next_task(job, &rest) {
            let yields = job == WorkerKind::Refresh && rest.is_busy();
            let (made, took) = self.make_apart(&task, yields);
            self.keep(task, made);
            rest = Pause::after(took);
        }
    }

    /// Runs a task on a new thread, because a thread's priority can only be lowered. Returns the result and the
    /// processor time used. If no thread can be started, the task runs on this thread, whose priority stays.
    fn make_apart(
        &self,
        task: &RefreshTask,
        yields: bool,
    ) -> (Result<Option<Arc<NextList>>>, Duration) {
        let started = Instant::now();
        let caller = std::thread::current().id();
        let making = || {
            if yields && std::thread::current().id() != caller {
                lower_priority();
            }
            let spent = cpu_time::by_thread();
            let made = CacheShared::make(task);
            (made, cpu_time::since(spent, started.elapsed()))
        };
        let apart = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, &making);
            thread.ok().map(|thread| thread.join())
        });
        let made = apart.unwrap_or_else(|| catch_unwind(AssertUnwindSafe(making)));
        made.unwrap_or_else(|_| {
            let failed = Problem::Failed("making the list failed".into());
            (Err(failed), started.elapsed())
        })
    }

    /// Waits for a task; `None` on shutdown.
    fn next_task(&self, job: WorkerKind, rest: &Pause) -> Option<RefreshTask> {
        let mut kept = lock(&self.kept);
        loop {
            if kept.stop {
                return None;
            }
            let waits = match job {
                WorkerKind::First => kept.has_new_list(),
                WorkerKind::Refresh => kept.is_lively(),
            };
            if waits && rest.is_over(job) {
                drop(kept);
                // A store that is unreadable at the moment is tried again later.
                let held = self.current.get().ok();
                kept = lock(&self.kept);
                if let Some(held) = held {
                    let work = match job {
                        WorkerKind::First => kept.new_list(),
                        WorkerKind::Refresh => kept.oldest(&held),
                    };
                    if let Some(work) = work {
                        return Some(RefreshTask { held, work });
                    }
                }
            }
            kept = if waits {
                let waited = self.changed.wait_timeout(kept, LOOK_EVERY);
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else {
                let waited = self.changed.wait(kept);
                waited.unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    /// Makes a list, or reads a part, which stays with its snapshot.
    fn make(task: &RefreshTask) -> Result<Option<Arc<NextList>>> {
        check_list(task.held.info().pages, BESIDE).map_err(problem)?;
        match &task.work {
            Work::List(_, options) => list_of(options, &task.held).map(Some),
            Work::Part(part) => task.held.read(*part).map(|()| None),
        }
    }

    fn keep(&self, task: RefreshTask, made: Result<Option<Arc<NextList>>>) {
        let mut kept = lock(&self.kept);
        match task.work {
            Work::List(query, _) => {
                if let Some(list) = kept.lists.iter_mut().find(|list| list.query == query) {
                    let made = made.transpose();
                    list.made = made.map(|made| (task.held.version(), made));
                }
            }
            // A part that could not be read is read by the next request, which gets the error.
            Work::Part(part) => {
                if let Some(read) = kept.parts.iter_mut().find(|read| read.part == part) {
                    read.held = task.held;
                }
            }
        }
    }
}

/// Makes the list for a snapshot.
fn list_of(options: &NextOptions, held: &OpenSnapshot) -> Result<Arc<NextList>> {
    let pages = next_of(held.snapshot(), options, 1).map_err(problem)?;
    let page = |page: Candidate| NextPage {
        url: page.url,
        score: page.score,
    };
    Ok(Arc::new(NextList {
        snapshot: held.name().into(),
        version: held.version(),
        records: held.info().counters.records,
        made: held.written(),
        pages: pages.into_iter().map(page).collect(),
    }))
}
