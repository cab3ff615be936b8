//! Answers that take long to find, kept for whoever asks again: lists of what to crawl next, and parts of snapshots.
//!
//! A question is answered at once from what was made last, which tells of which snapshot it is. One thread makes lists that
//! nobody has an answer to yet. Another refreshes what was asked for within the last minute ([`LIVELY`]), when there is
//! a newer snapshot. Each makes one thing at a time, and rests after it, so that it takes a quarter of a processor at
//! most however fast snapshots come. While this process is busy, refreshing takes a twentieth of its processor time, or
//! a fiftieth of one processor if that is more, at a low priority: an ingest at full speed loses little by it, and one
//! that waits for its crawler has the newest lists. A part that nobody asked for lately is read by whoever asks.
//!
//! Each list has a [`Follower`], which reads only what is new since the snapshot before. All together these take
//! [`FOLLOWED`] at most: where one has no room, its list is made from nothing each time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cashrank_serve::{NextList, NextPage, NextQuery, Problem, Result, cpu_time};
use cashrank_steer::schedule::{Candidate, Follower, NextOptions, PageSelection};

use super::super::common::check_list;
use super::current::{Current, OpenSnapshot, SnapshotPart};
use super::once::lock;
use super::problem::problem;

/// Lists that are kept; of more questions, those that nobody asked for longest are forgotten.
const LISTS: usize = 4;
/// Bytes of memory that followers of lists take, all together.
const FOLLOWED: u64 = 1 << 30;
/// How long a thing is refreshed after it was asked for last.
const LIVELY: Duration = Duration::from_secs(60);
/// How often a newer snapshot is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Threads beside the one that makes a list.
const BESIDE: usize = 2;

/// What a thread makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerKind {
    /// Lists of which there is none yet.
    First,
    /// Answers that are older than the current snapshot.
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

/// How long a thread rests after it made something, in times of what that took of a processor.
const REST: u32 = 3;
/// The same while this process is busy and the thing was refreshed: in times of what that took, either what the process
/// spends meanwhile, or the time that passes.
const BUSY_REST: (u32, u32) = (20, 50);
/// Processors that a process wants which is called busy.
const BUSY: f64 = 0.5;
/// By how much a refresh yields then: beside a thread that does not, it gets about a tenth of a processor.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// A rest, and what this process had spent and wanted when it began.
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

    /// Returns whether the process was busy meanwhile, or may have been.
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

/// Answers, and the threads that compute them. The threads end when this is dropped, after their current work.
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
    /// Threads that were started.
    started: usize,
}

/// A question, and the last answer.
struct CachedList {
    query: NextQuery,
    options: NextOptions,
    /// The follower that made it last, unless it is in use, or there is no room for it.
    follower: Option<Box<Follower>>,
    asked: Instant,
    /// Of which snapshot, and the list, or why there is none.
    made: Option<(String, Result<Arc<NextList>>)>,
}

/// A part, and the snapshot that it was read of last.
struct CachedPart {
    part: SnapshotPart,
    asked: Instant,
    held: Arc<OpenSnapshot>,
}

/// Work to do for a snapshot.
struct RefreshTask {
    held: Arc<OpenSnapshot>,
    work: Work,
}

enum Work {
    List(NextQuery, Box<Follower>),
    Part(SnapshotPart),
}

/// Makes this thread yield to others. Where that is not possible for one thread, or not allowed, nothing changes.
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

    /// The newest snapshot of which a part was read, or is to be by whoever asks for it now.
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
        // Where nothing is refreshed, whoever asks reads the newest.
        Ok(self.shared.start(&mut kept).map_or(newest, |()| held))
    }

    /// The newest list that there is, with more pages than were asked for if there is such a one; `None`: the first one is
    /// being made.
    pub fn list(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        let version = self.shared.current.get()?.version();
        let now = Instant::now();
        let mut kept = lock(&self.shared.kept);
        if let Some(list) = kept.list_for(query) {
            list.asked = now;
            let answer = match &list.made {
                None => Ok(None),
                Some((_, Ok(made))) => Ok(Some(made.clone())),
                // What cannot be made of one snapshot may be of the next.
                Some((of, Err(problem))) if *of == version => Err(problem.clone()),
                Some(_) => Ok(None),
            };
            // There may be more threads now than when it was asked for first.
            self.shared.start(&mut kept)?;
            return answer;
        }
        let mut options = NextOptions::of(&query.options).map_err(problem)?;
        options.count = query.n;
        kept.make_room()?;
        kept.lists.push(CachedList {
            query: query.clone(),
            options,
            follower: None,
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
    /// The making of it: by what made it last, if that is there.
    fn work(&mut self, followed: u64, held: &OpenSnapshot) -> Work {
        let new = || {
            let needs = Follower::needs(&self.options, held.snapshot());
            Box::new(if followed + needs <= FOLLOWED {
                Follower::new(self.options.clone())
            } else {
                Follower::once(self.options.clone())
            })
        };
        let follower = self.follower.take().unwrap_or_else(new);
        Work::List(self.query.clone(), follower)
    }

    /// Returns whether it has what is asked for: of pages not read yet, fewer are the first of more.
    fn answers(&self, query: &NextQuery) -> bool {
        self.query.options == query.options
            && (self.query.n == query.n
                || self.options.which == PageSelection::NotFetched && self.query.n > query.n)
    }
}

impl Kept {
    /// The longest list that has what is asked for, of those that are there.
    fn list_for(&mut self, query: &NextQuery) -> Option<&mut CachedList> {
        let lists = self.lists.iter_mut();
        let answering = lists.filter(|list| list.answers(query));
        answering.max_by_key(|list| (list.made.is_some(), list.query.n))
    }

    /// Forgets the list that nobody asked for longest, if there are too many. One that is still to be made is kept.
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

    /// Returns whether something was asked for lately.
    fn is_lively(&self) -> bool {
        let lists = self.lists.iter().map(|list| list.asked);
        let parts = self.parts.iter().map(|read| read.asked);
        lists.chain(parts).any(is_lively)
    }

    /// Bytes of memory that followers take.
    fn followed(&self) -> u64 {
        let followers = self.lists.iter().filter_map(|list| list.follower.as_ref());
        followers.map(|follower| follower.bytes()).sum()
    }

    /// Returns whether there is a list that nobody has an answer to yet.
    fn has_new_list(&self) -> bool {
        self.lists.iter().any(|list| list.made.is_none())
    }

    /// A list that nobody has an answer to yet.
    fn new_list(&mut self, held: &OpenSnapshot) -> Option<Work> {
        let followed = self.followed();
        let new = self.lists.iter_mut().find(|list| list.made.is_none());
        new.map(|list| list.work(followed, held))
    }

    /// Of what there is only an older one of, that which was made of the oldest snapshot.
    fn oldest(&mut self, held: &OpenSnapshot) -> Option<Work> {
        let (version, followed) = (held.version(), self.followed());
        let lists = self.lists.iter_mut().filter_map(|list| {
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
            (Some((_, list)), _) => Some(list.work(followed, held)),
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
    /// Tells the threads that something was asked for; starts them, if this is the first time.
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
        while let Some(mut task) = self.next_task(job, &rest) {
            let yields = job == WorkerKind::Refresh && rest.is_busy();
            let (made, took) = self.make_apart(&mut task, yields);
            self.keep(task, made);
            rest = Pause::after(took);
        }
    }

    /// Makes a thing on a thread of its own, for a priority is only ever lowered; and what that took of a processor. Where none
    /// can be started it is made on this one, which never yields.
    fn make_apart(
        &self,
        task: &mut RefreshTask,
        yields: bool,
    ) -> (Result<Option<Arc<NextList>>>, Duration) {
        let started = Instant::now();
        let caller = std::thread::current().id();
        let mut making = || {
            if yields && std::thread::current().id() != caller {
                lower_priority();
            }
            let spent = cpu_time::by_thread();
            let made = CacheShared::make(task);
            (made, cpu_time::since(spent, started.elapsed()))
        };
        let apart = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, &mut making);
            thread.ok().map(|thread| thread.join())
        });
        let made = apart.unwrap_or_else(|| catch_unwind(AssertUnwindSafe(making)));
        made.unwrap_or_else(|_| {
            let failed = Problem::Failed("making the list failed".into());
            (Err(failed), started.elapsed())
        })
    }

    /// Waits for something to do; `None`: it ends.
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
                // A store that cannot be read just now is looked at again.
                let held = self.current.get().ok();
                kept = lock(&self.kept);
                if let Some(held) = held {
                    let work = match job {
                        WorkerKind::First => kept.new_list(&held),
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

    /// A list; or a part is read, which is then kept with its snapshot.
    fn make(task: &mut RefreshTask) -> Result<Option<Arc<NextList>>> {
        check_list(task.held.info().pages, BESIDE).map_err(problem)?;
        match &mut task.work {
            Work::List(_, follower) => list_of(follower, &task.held).map(Some),
            Work::Part(part) => task.held.read(*part).map(|()| None),
        }
    }

    fn keep(&self, task: RefreshTask, made: Result<Option<Arc<NextList>>>) {
        let mut kept = lock(&self.kept);
        match task.work {
            Work::List(query, follower) => {
                let has_room = kept.followed() + follower.bytes() <= FOLLOWED;
                if let Some(list) = kept.lists.iter_mut().find(|list| list.query == query) {
                    let made = made.transpose();
                    list.made = made.map(|made| (task.held.version(), made));
                    // One that is asked once keeps nothing, and is chosen again where there is room now.
                    list.follower = Some(follower).filter(|of| has_room && of.bytes() > 0);
                }
            }
            // Whoever asks next tries again to read what could not be read now, and gets the error.
            Work::Part(part) => {
                if let Some(read) = kept.parts.iter_mut().find(|read| read.part == part) {
                    read.held = task.held;
                }
            }
        }
    }
}

/// The list as of a snapshot.
fn list_of(follower: &mut Follower, held: &OpenSnapshot) -> Result<Arc<NextList>> {
    let pages = follower.next(held.snapshot()).map_err(problem)?;
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
