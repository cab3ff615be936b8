//! Cache of answers that take long: lists of pages to crawl next, and answers that are about all pages of a snapshot.
//!
//! A request is answered at once with the last answer, which names its snapshot. The first request for an answer
//! computes it; a thread makes the lists. Another thread, at a low priority, refreshes the answers that were requested
//! within the last minute ([`LIVELY`]) when a newer snapshot appears; others are computed by the next request. Each
//! thread makes one answer at a time and pauses after it, so that it uses at most a quarter of a processor.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cashrank_base::threads::lock;
use cashrank_graph::sites::Level;
use cashrank_serve::{NextList, NextPage, NextQuery, Problem, Result, start_thread, thread_time};
use cashrank_steer::answers::{LISTING_MAX, Question};
use cashrank_steer::schedule::{Candidate, NextOptions, PageSelection, next_of};

use super::backend::problem;
use super::current::{AnswerRows, Current, OpenSnapshot};

/// Maximum number of cached lists.
const LISTS: usize = 4;
/// Maximum number of other cached answers.
const ANSWERS: usize = 64;
/// Time for which an answer is refreshed after its last request.
const LIVELY: Duration = Duration::from_secs(60);
/// Interval at which a newer snapshot is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Length of the pause after a task, as a multiple of the task's processor time.
const REST: u32 = 3;
/// Niceness of the thread that refreshes: competing with a normal thread, it gets about a tenth of a processor.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Cache of answers with the threads that compute them. On drop the threads end after their current task.
pub struct AnswerCache(Arc<CacheShared>);

struct CacheShared {
    current: Arc<Current>,
    kept: Mutex<CacheState>,
    changed: Condvar,
}

#[derive(Default)]
struct CacheState {
    /// Answers, the one that was made last at the end.
    answers: Vec<CachedAnswer>,
    stop: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum CachedRequest {
    List(NextQuery),
    Question(Question),
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
    /// `None` while a list is made. Its error is kept: the list is not made again for the same snapshot.
    value: Option<Result<CachedValue>>,
}

/// Returns whether answers to a question are cached: those about all pages, which are few.
pub fn is_cached(question: &Question) -> bool {
    let ranking = &question.ranking;
    match &*question.name {
        "top" => {
            question.selection.is_all()
                && ranking.measure.is_none()
                && matches!(ranking.level, Level::Page | Level::Host)
        }
        name => ["movers", "coverage", "failures"].contains(&name),
    }
}

impl AnswerCache {
    /// Starts the threads: one makes lists that do not exist yet, the other refreshes answers. Fails like
    /// [`start_thread`].
    pub fn new(current: Arc<Current>) -> io::Result<AnswerCache> {
        let shared = Arc::new(CacheShared {
            current,
            kept: Mutex::default(),
            changed: Condvar::new(),
        });
        let cache = AnswerCache(shared.clone());
        for (refreshes, name) in [(false, "next-first"), (true, "next-refresh")] {
            let shared = shared.clone();
            start_thread(name, move || shared.work(refreshes))?;
        }
        Ok(cache)
    }

    /// Answers from the newest snapshot with an answer; if that was not requested lately, from the current one. The answer
    /// has as many rows as any may have, so that questions which differ in `n` share it.
    pub fn answer(&self, mut question: Question) -> Result<AnswerRows> {
        let newest = self.0.current.get()?;
        question.n = LISTING_MAX;
        let request = CachedRequest::Question(question.clone());
        let mut kept = lock(&self.0.kept);
        if let Some(at) = kept.answers.iter().position(|of| of.request == request) {
            let answer = &mut kept.answers[at];
            let is_new = answer.version == newest.version || answer.is_lively();
            if let (true, Some(Ok(CachedValue::Rows(rows)))) = (is_new, &answer.value) {
                answer.asked = Instant::now();
                self.0.changed.notify_all();
                return Ok(rows.clone());
            }
            // Meanwhile no request may get the old one.
            kept.answers.remove(at);
        }
        drop(kept);
        let rows = newest.answer(&question)?;
        let made = Ok(CachedValue::Rows(rows.clone()));
        lock(&self.0.kept).keep(&newest, request, made);
        self.0.changed.notify_all();
        Ok(rows)
    }

    /// Returns the newest list for a query, perhaps a longer one; `None` if the first one is still being made.
    pub fn list(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        let newest = self.0.current.get()?;
        let mut kept = lock(&self.0.kept);
        self.0.changed.notify_all();
        if let Some(answer) = kept.list_for(query)? {
            answer.asked = Instant::now();
            return match &answer.value {
                Some(Ok(CachedValue::List(list))) => Ok(Some(list.clone())),
                // An error for one snapshot need not occur for the next.
                Some(Err(problem)) if answer.version == newest.version => Err(problem.clone()),
                _ => Ok(None),
            };
        }
        kept.make_room(true)?;
        kept.answers.push(CachedAnswer {
            request: CachedRequest::List(query.clone()),
            asked: Instant::now(),
            version: newest.version.clone(),
            value: None,
        });
        Ok(None)
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

impl CachedAnswer {
    /// Returns whether the answer is refreshed for each new snapshot.
    fn is_lively(&self) -> bool {
        self.asked.elapsed() < LIVELY
    }

    fn is_list(&self) -> bool {
        matches!(self.request, CachedRequest::List(_))
    }
}

impl CacheState {
    /// Returns a list for a query, preferably one that exists. Of unread pages, shorter lists are prefixes.
    fn list_for(&mut self, query: &NextQuery) -> Result<Option<&mut CachedAnswer>> {
        let is_prefix = options_of(query)?.which == PageSelection::NotFetched;
        let fits = |list: &NextQuery| {
            let is_long = list.n == query.n || is_prefix && list.n > query.n;
            list.options == query.options && is_long
        };
        let lists = self
            .answers
            .iter_mut()
            .filter(|answer| matches!(&answer.request, CachedRequest::List(list) if fits(list)));
        Ok(lists.max_by_key(|answer| answer.value.is_some()))
    }

    /// Evicts the least recently requested list or other answer if there are too many; fails if all are in progress.
    fn make_room(&mut self, is_list: bool) -> Result<()> {
        let alike = self.answers.iter().enumerate();
        let alike = alike.filter(|(_, answer)| answer.is_list() == is_list);
        if alike.clone().count() < if is_list { LISTS } else { ANSWERS } {
            return Ok(());
        }
        let made = alike.filter(|(_, answer)| answer.value.is_some());
        let oldest = made.min_by_key(|(_, answer)| answer.asked);
        let busy = || {
            Problem::Later(format!(
                "{LISTS} other lists are being made: try again later"
            ))
        };
        let (oldest, _) = oldest.ok_or_else(busy)?;
        self.answers.remove(oldest);
        Ok(())
    }

    /// Returns the next task for a snapshot: a list that does not exist yet, or the refresh of the oldest answer.
    fn task(&self, refreshes: bool, version: &str) -> Option<CachedRequest> {
        let mut answers = self.answers.iter();
        let found = answers.find(|answer| match (refreshes, &answer.value) {
            (true, Some(_)) => answer.is_lively() && answer.version != version,
            (refreshes, value) => !refreshes && value.is_none(),
        });
        found.map(|answer| answer.request.clone())
    }

    /// Keeps a new answer, unless it is an error of a question, or a list that was evicted meanwhile.
    fn keep(&mut self, held: &OpenSnapshot, request: CachedRequest, made: Result<CachedValue>) {
        let is_list = matches!(request, CachedRequest::List(_));
        let known = self.answers.iter().position(|of| of.request == request);
        let asked = known.map(|known| self.answers.remove(known).asked);
        let is_kept = if is_list {
            asked.is_some()
        } else {
            made.is_ok()
        };
        if is_kept && self.make_room(is_list).is_ok() {
            self.answers.push(CachedAnswer {
                request,
                asked: asked.unwrap_or_else(Instant::now),
                version: held.version.clone(),
                value: Some(made),
            });
        }
    }
}

impl CacheShared {
    fn work(&self, refreshes: bool) {
        // Nothing changes if the system cannot lower the priority of one thread, or does not allow it.
        #[cfg(target_os = "linux")]
        if refreshes {
            let _ = rustix::process::nice(NICE);
        }
        let mut rested = Instant::now();
        while let Some((held, request)) = self.next_task(refreshes, rested) {
            let before = thread_time();
            let made = catch_unwind(AssertUnwindSafe(|| make(&held, &request)));
            let made =
                made.unwrap_or_else(|_| Err(Problem::Failed("making the list failed".into())));
            lock(&self.kept).keep(&held, request, made);
            rested = Instant::now() + thread_time().saturating_sub(before) * REST;
        }
    }

    /// Waits for a task, at least until `rested`; `None` on shutdown.
    fn next_task(
        &self,
        refreshes: bool,
        rested: Instant,
    ) -> Option<(Arc<OpenSnapshot>, CachedRequest)> {
        loop {
            let is_idle = |kept: &mut CacheState| !kept.stop && kept.task(refreshes, "").is_none();
            let waited = self.changed.wait_while(lock(&self.kept), is_idle);
            if waited.unwrap_or_else(PoisonError::into_inner).stop {
                return None;
            }
            // A store that is unreadable at the moment is tried again later.
            if Instant::now() >= rested
                && let Ok(held) = self.current.get()
                && let Some(request) = lock(&self.kept).task(refreshes, &held.version)
            {
                return Some((held, request));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn make(held: &OpenSnapshot, request: &CachedRequest) -> Result<CachedValue> {
    let query = match request {
        CachedRequest::List(query) => query,
        CachedRequest::Question(question) => {
            return held.answer(question).map(CachedValue::Rows);
        }
    };
    let pages = next_of(held.snapshot(), &options_of(query)?, 1).map_err(problem)?;
    let page = |page: Candidate| NextPage {
        url: page.url,
        score: page.score,
    };
    Ok(CachedValue::List(Arc::new(NextList {
        snapshot: held.name.clone(),
        version: held.version.clone(),
        records: held.info().counters.records,
        made: held.written,
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
        let cache = AnswerCache::new(current.clone()).unwrap();
        let top = |level: Level, scope: &str, n: usize| Question {
            name: "top".into(),
            n,
            ranking: RankingName {
                level,
                ..RankingName::default()
            },
            selection: Selection {
                scope: scope.parse().unwrap(),
                ..Selection::default()
            },
            ..Question::default()
        };
        let hosts = |n: usize| Question {
            selection: Selection::default(),
            ..top(Level::Host, "host:a", n)
        };
        let count = |n: usize| {
            let json = cache.answer(hosts(n)).unwrap()(n).unwrap();
            let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
            json["top"].as_array().map(Vec::len)
        };
        assert_eq!([1, 2, 9].map(count), [1, 2, 2].map(Some));
        assert_eq!(lock(&cache.0.kept).answers.len(), 1);
        assert!(is_cached(&hosts(1)));
        assert!(
            [Level::Page, Level::Domain]
                .iter()
                .all(|level| !is_cached(&top(*level, "host:a", 1)))
        );
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
