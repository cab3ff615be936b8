//! Cache of answers that take long: lists of pages to crawl next, and answers that are about all pages of a snapshot.
//!
//! A request is answered at once with the last answer, which names its snapshot. The first request for an answer
//! computes it; a thread makes the lists. Another thread, at a low priority, refreshes the answers that were requested
//! within the last minute ([`LIVELY`]) when a newer snapshot appears. Each thread makes one answer at a time and pauses
//! after it, so that it uses at most a quarter of a processor however fast snapshots come. An answer that was not
//! requested lately is computed by the next request for it.
//!
//! An answer has as many rows as anyone may request, of which each request gets the first ones, and holds no file of
//! its snapshot open. A question that cannot be answered takes no place. Each list is made from its snapshot alone: its
//! rows, and the ranking that it has ([`next_of`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use cashrank_base::threads::lock;
use cashrank_serve::{NextList, NextPage, NextQuery, Problem, Result, thread_time};
use cashrank_steer::answers::{LISTING_MAX, Subject};
use cashrank_steer::schedule::{Candidate, NextOptions, PageSelection, next_of};
use once_cell::sync::OnceCell;

use super::super::common::check_list;
use super::backend::problem;
use super::current::{AnswerRows, Current, OpenSnapshot};

/// Maximum number of cached lists; the least recently requested one is evicted.
const LISTS: usize = 4;
/// Maximum number of cached answers that are refreshed: there are no more.
const REFRESHED: usize = 6;
/// Maximum number of other cached answers; the least recently requested one is evicted.
const OTHERS: usize = 18;
/// Time for which an answer is refreshed after its last request.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerKind {
    /// Makes lists that do not exist yet.
    First,
    /// Refreshes answers that are older than the current snapshot.
    Refresh,
}

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
    answers: Vec<CachedAnswer>,
    stop: bool,
    started: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum CachedRequest {
    List(NextQuery),
    /// Subject of a question, and the time at which the ranking's own file was written, if it has one.
    Rows(Subject, Option<SystemTime>),
}

#[derive(Clone)]
enum CachedValue {
    List(Arc<NextList>),
    Rows(AnswerRows),
}

struct CachedAnswer {
    request: CachedRequest,
    asked: Instant,
    /// Version of the answer's snapshot.
    version: String,
    /// Time at which the answer's snapshot was written.
    written: Option<SystemTime>,
    /// Empty until the answer is computed. A list's error is kept: the list is not made again for the same snapshot.
    value: Arc<OnceCell<Result<CachedValue>>>,
}

impl AnswerCache {
    pub fn new(current: Arc<Current>) -> AnswerCache {
        AnswerCache(Arc::new(CacheShared {
            current,
            kept: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Answers from the newest snapshot with an answer; if the subject was not requested lately, from the current one.
    pub fn rows(&self, subject: Subject) -> Result<AnswerRows> {
        let newest = self.0.current.get()?;
        let written = match &subject {
            Subject::Top(ranking, ..) => newest.ranking_written(ranking),
            _ => None,
        };
        let request = CachedRequest::Rows(subject.clone(), written);
        let mut kept = lock(&self.0.kept);
        // If no thread refreshes answers, the caller computes the newest.
        let is_refreshed = self.0.start(&mut kept).is_ok();
        let found = kept.answers.iter().position(|of| of.request == request);
        let at = found.unwrap_or_else(|| kept.add(request.clone(), &newest));
        let answer = &mut kept.answers[at];
        if answer.version != newest.version() && !(is_refreshed && answer.is_lively()) {
            answer.renew(&newest);
        }
        answer.asked = Instant::now();
        let value = answer.value.clone();
        drop(kept);
        let made = value.get_or_try_init(|| rows_of(&newest, &subject).map(Ok));
        let mut kept = lock(&self.0.kept);
        match &made {
            Ok(_) => kept.evict(request.kind(), 0),
            Err(_) => kept.forget(&request),
        }
        drop(kept);
        match made?.clone()? {
            CachedValue::Rows(rows) => Ok(rows),
            CachedValue::List(_) => Err(Problem::Failed("a list answers a question".into())),
        }
    }

    /// Returns the newest list for a query, perhaps a longer one; `None` if the first one is still being made.
    pub fn list(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        let newest = self.0.current.get()?;
        let mut kept = lock(&self.0.kept);
        let mut found = Ok(None);
        if let Some(answer) = kept.list_for(query)? {
            answer.asked = Instant::now();
            found = match answer.value.get() {
                Some(Ok(CachedValue::List(list))) => Ok(Some(list.clone())),
                // An error for one snapshot need not occur for the next.
                Some(Err(problem)) if answer.version == newest.version() => Err(problem.clone()),
                _ => Ok(None),
            };
        } else {
            kept.evict(RequestKind::List, 1);
            if kept.count(RequestKind::List) == LISTS {
                return Err(Problem::Later(format!(
                    "{LISTS} other lists are being made: try again later"
                )));
            }
            kept.add(CachedRequest::List(query.clone()), &newest);
        }
        // A thread that could not be started at an earlier request may start at this one.
        self.0.start(&mut kept)?;
        found
    }
}

impl Drop for AnswerCache {
    fn drop(&mut self) {
        lock(&self.0.kept).stop = true;
        self.0.changed.notify_all();
    }
}

fn options_of(query: &NextQuery) -> Result<NextOptions> {
    let mut options = NextOptions::of(&query.options).map_err(problem)?;
    options.count = query.n;
    Ok(options)
}

/// Kind of request; each kind has its own limit of cached answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    List,
    /// Questions about all pages: few enough to refresh all their answers.
    Refreshed,
    Other,
}

impl CachedRequest {
    fn kind(&self) -> RequestKind {
        match self {
            CachedRequest::List(_) => RequestKind::List,
            CachedRequest::Rows(Subject::Top(name, selection), _)
                if !(name.is_usual() && selection.is_all()) =>
            {
                RequestKind::Other
            }
            CachedRequest::Rows(..) => RequestKind::Refreshed,
        }
    }
}

impl CachedAnswer {
    /// Returns whether the answer is refreshed for each new snapshot.
    fn is_lively(&self) -> bool {
        self.asked.elapsed() < LIVELY && self.request.kind() != RequestKind::Other
    }

    /// Returns whether the answer is a list that does not exist yet.
    fn is_awaited(&self) -> bool {
        self.request.kind() == RequestKind::List && self.value.get().is_none()
    }

    fn renew(&mut self, held: &OpenSnapshot) {
        self.version = held.version();
        self.written = held.written();
        self.value = Arc::default();
    }
}

impl Kept {
    /// Returns the longest list for a query, preferably one that exists. Of unread pages, shorter lists are prefixes.
    fn list_for(&mut self, query: &NextQuery) -> Result<Option<&mut CachedAnswer>> {
        let is_prefix = options_of(query)?.which == PageSelection::NotFetched;
        let answers = self.answers.iter_mut().filter_map(|answer| {
            let CachedRequest::List(list) = &answer.request else {
                return None;
            };
            let n = list.n;
            let is_long = n == query.n || is_prefix && n > query.n;
            (list.options == query.options && is_long).then_some((n, answer))
        });
        let best = answers.max_by_key(|(n, answer)| (answer.value.get().is_some(), *n));
        Ok(best.map(|(_, answer)| answer))
    }

    fn add(&mut self, request: CachedRequest, held: &OpenSnapshot) -> usize {
        self.answers.push(CachedAnswer {
            request,
            asked: Instant::now(),
            version: held.version(),
            written: held.written(),
            value: Arc::default(),
        });
        self.answers.len() - 1
    }

    fn count(&self, kind: RequestKind) -> usize {
        let kinds = self.answers.iter().map(|answer| answer.request.kind());
        kinds.filter(|of| *of == kind).count()
    }

    /// Evicts the least recently requested answers of a kind, but no list in progress, until `more` have places.
    fn evict(&mut self, kind: RequestKind, more: usize) {
        let places = match kind {
            RequestKind::List => LISTS,
            RequestKind::Refreshed => REFRESHED,
            RequestKind::Other => OTHERS,
        };
        while self.count(kind) + more > places {
            let all = self.answers.iter().enumerate();
            let made = all.filter(|(_, of)| of.request.kind() == kind && !of.is_awaited());
            let Some((oldest, _)) = made.min_by_key(|(_, answer)| answer.asked) else {
                return;
            };
            self.answers.remove(oldest);
        }
    }

    fn forget(&mut self, request: &CachedRequest) {
        self.answers
            .retain(|answer| answer.request != *request || answer.value.get().is_some());
    }

    /// Returns whether this worker has a list to make, or answers to refresh once a newer snapshot appears.
    fn is_waiting(&self, kind: WorkerKind) -> bool {
        self.answers.iter().any(|answer| match kind {
            WorkerKind::First => answer.is_awaited(),
            WorkerKind::Refresh => answer.is_lively(),
        })
    }

    /// Returns the next task for a snapshot: a list that does not exist yet, or the refresh of the oldest answer.
    fn task(&self, kind: WorkerKind, newest: &OpenSnapshot) -> Option<CachedRequest> {
        if kind == WorkerKind::First {
            let new = self.answers.iter().find(|answer| answer.is_awaited());
            return new.map(|answer| answer.request.clone());
        }
        let version = newest.version();
        let made = self.answers.iter().filter(|of| of.value.get().is_some());
        let old = made.filter(|of| of.is_lively() && of.version != version);
        let oldest = old.min_by_key(|answer| answer.written);
        oldest.map(|answer| answer.request.clone())
    }

    /// Keeps a new answer. A question that cannot be answered is forgotten, so that its next request gets the error.
    fn keep(&mut self, held: &OpenSnapshot, request: &CachedRequest, made: Result<CachedValue>) {
        let known = self.answers.iter_mut().find(|of| of.request == *request);
        let Some(answer) = known else {
            return;
        };
        answer.renew(held);
        match (request, made) {
            (CachedRequest::Rows(..), Err(_)) => self.forget(request),
            (_, made) => answer.value = Arc::new(OnceCell::with_value(made)),
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
        while let Some((held, request)) = self.next_task(kind, rested) {
            let before = thread_time();
            let made = catch_unwind(AssertUnwindSafe(|| make(&held, &request)));
            let made =
                made.unwrap_or_else(|_| Err(Problem::Failed("making the list failed".into())));
            lock(&self.kept).keep(&held, &request, made);
            rested = Instant::now() + thread_time().saturating_sub(before) * REST;
        }
    }

    /// Waits for a task, at least until `rested`; `None` on shutdown.
    fn next_task(
        &self,
        kind: WorkerKind,
        rested: Instant,
    ) -> Option<(Arc<OpenSnapshot>, CachedRequest)> {
        let mut kept = lock(&self.kept);
        while !kept.stop {
            let is_waiting = kept.is_waiting(kind);
            if is_waiting && Instant::now() >= rested {
                drop(kept);
                // A store that is unreadable at the moment is tried again later.
                let held = self.current.get().ok();
                kept = lock(&self.kept);
                if let Some(held) = held
                    && let Some(request) = kept.task(kind, &held)
                {
                    return Some((held, request));
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

fn rows_of(held: &OpenSnapshot, subject: &Subject) -> Result<CachedValue> {
    held.answer(subject, LISTING_MAX).map(CachedValue::Rows)
}

fn make(held: &OpenSnapshot, request: &CachedRequest) -> Result<CachedValue> {
    check_list(held.info().pages, BESIDE).map_err(problem)?;
    let query = match request {
        CachedRequest::List(query) => query,
        CachedRequest::Rows(subject, _) => return rows_of(held, subject),
    };
    let pages = next_of(held.snapshot(), &options_of(query)?, 1).map_err(problem)?;
    let page = |page: Candidate| NextPage {
        url: page.url,
        score: page.score,
    };
    Ok(CachedValue::List(Arc::new(NextList {
        snapshot: held.name().into(),
        version: held.version(),
        records: held.info().counters.records,
        made: held.written(),
        pages: pages.into_iter().map(page).collect(),
    })))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cashrank::{Options, Record, Writer};
    use cashrank_store::snapshot::{RankingName, Selection};

    use super::*;

    fn publish(dir: &Path, urls: &[&str]) {
        let mut writer = Writer::open(dir, &Options::default()).unwrap();
        for url in urls {
            let record = Record {
                url: url.as_bytes().into(),
                ..Record::default()
            };
            writer.push(&record).unwrap();
        }
        writer.publish().unwrap();
    }

    /// Regression: questions that differ in the number of rows, that failed, or that are about some pages evicted the
    /// answers that dashboards ask for; and each answer held its snapshot's files open.
    #[test]
    fn other_questions_evict_no_prepared_answers() {
        let home = cashrank_base::folder::in_memory();
        let dir = home.path().join("store");
        publish(&dir, &["http://a/", "http://b/"]);
        let current = Arc::new(Current::new(dir.clone()));
        let cache = AnswerCache::new(current.clone());
        let all = || Subject::Top(RankingName::default(), Selection::default());
        let pages = || cache.rows(all()).unwrap();
        let count = |n: usize| {
            let json: serde_json::Value = serde_json::from_slice(&pages()(n).unwrap()).unwrap();
            json["top"].as_array().map(Vec::len)
        };
        assert_eq!([1, 2, 9].map(count), [1, 2, 2].map(Some));
        let top = |name: &RankingName, scope: &str| {
            let selection = Selection {
                scope: scope.parse().unwrap(),
                ..Selection::default()
            };
            cache.rows(Subject::Top(name.clone(), selection))
        };
        for at in 0..=OTHERS {
            top(&RankingName::default(), &format!("host:h{at}")).unwrap();
        }
        let absent = RankingName {
            measure: Some("harmonic".into()),
            ..RankingName::default()
        };
        assert!(top(&absent, "host:a").is_err());
        let kept = lock(&cache.0.kept);
        assert_eq!(kept.count(RequestKind::Refreshed), 1);
        assert_eq!(kept.count(RequestKind::Other), OTHERS);
        drop(kept);
        let old = Arc::downgrade(&current.get().unwrap());
        publish(&dir, &["http://c/"]);
        current.get().unwrap();
        let by = Instant::now() + Duration::from_secs(60);
        // A thread may still look at it.
        while old.upgrade().is_some() || count(9) != Some(3) {
            assert!(Instant::now() < by);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
