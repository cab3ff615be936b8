//! Lists of what to crawl next, kept for whoever asks again.
//!
//! A question is answered at once from the list that was made of it last, which tells of which snapshot it is. Lists are made by
//! one thread, one at a time: first those that nobody has an answer to yet, then anew those that were asked for within the last
//! minute ([`LIVELY`]), when there is a newer snapshot. That thread rests after each list, so that it takes a bounded share of a
//! processor however fast snapshots come: an eighth for lists made anew, a quarter for new ones. Lists are made anew at a
//! low priority, so that an ingest that keeps all processors busy loses less than that by it.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cashrank::schedule::{self, Candidate, NextOptions};
use cashrank::store::RealDisk;
use cashrank_serve::{NextList, NextPage, NextQuery, Problem, Result};

use super::backend::{Current, Held, problem};

/// Lists that are kept; of more questions, those that nobody asked for longest are forgotten.
const LISTS: usize = 4;
/// How long a list is made anew after it was asked for last.
const LIVELY: Duration = Duration::from_secs(60);
/// How often a newer snapshot is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the thread rests after a list, in times that it took: one made anew, and a new one.
const RESTS: (u32, u32) = (7, 3);

/// By how much lists that are made anew yield: beside a thread that does not, they get about a quarter of a processor.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// The lists, and the thread that makes them. The thread ends when this is dropped, after the list in the making.
pub struct Lists {
    shared: Arc<Shared>,
}

struct Shared {
    store: PathBuf,
    current: Arc<Current>,
    kept: Mutex<Kept>,
    changed: Condvar,
}

#[derive(Default)]
struct Kept {
    lists: Vec<List>,
    stop: bool,
    started: bool,
}

/// A question, and the last answer.
struct List {
    query: NextQuery,
    options: NextOptions,
    asked: Instant,
    /// Of which snapshot, and the list, or why there is none.
    made: Option<(String, Result<Arc<NextList>>)>,
}

/// A list to be made.
struct Job {
    query: NextQuery,
    options: NextOptions,
    held: Arc<Held>,
    is_new: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this thread yield to others. Where that is not possible for one thread, or not allowed, nothing changes.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICE);
}

impl Lists {
    pub fn new(store: PathBuf, current: Arc<Current>) -> Lists {
        Lists {
            shared: Arc::new(Shared {
                store,
                current,
                kept: Mutex::default(),
                changed: Condvar::new(),
            }),
        }
    }

    /// The newest list that there is; `None`: the first one is being made.
    pub fn get(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        let version = self.shared.current.get()?.version();
        let now = Instant::now();
        let mut kept = lock(&self.shared.kept);
        if let Some(list) = kept.lists.iter_mut().find(|list| list.query == *query) {
            list.asked = now;
            self.shared.changed.notify_one();
            return match &list.made {
                None => Ok(None),
                Some((_, Ok(made))) => Ok(Some(made.clone())),
                // What cannot be made of one snapshot may be of the next.
                Some((of, Err(problem))) if *of == version => Err(problem.clone()),
                Some(_) => Ok(None),
            };
        }
        let options = super::next::options(&self.shared.store, query)?;
        kept.make_room()?;
        kept.lists.push(List {
            query: query.clone(),
            options,
            asked: now,
            made: None,
        });
        if !kept.started {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("next".into());
            thread
                .spawn(move || shared.make_lists())
                .map_err(|error| Problem::Failed(format!("no thread for lists: {error}")))?;
            kept.started = true;
        }
        self.shared.changed.notify_one();
        Ok(None)
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        lock(&self.shared.kept).stop = true;
        self.shared.changed.notify_one();
    }
}

impl Kept {
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
                "{LISTS} other lists are being made: ask again"
            ))),
        }
    }

    /// What is to be made: nobody has an answer to it, or only an older one.
    fn due(&self, version: &str) -> Option<(&List, bool)> {
        let new = self.lists.iter().find(|list| list.made.is_none());
        let again = || {
            let older = |list: &&List| matches!(&list.made, Some((of, _)) if of != version);
            let lively = self
                .lists
                .iter()
                .filter(|list| list.asked.elapsed() < LIVELY);
            // Each in its turn.
            lively.filter(older).min_by_key(|list| match &list.made {
                Some((_, Ok(made))) => Some(made.made),
                _ => None,
            })
        };
        match new {
            Some(list) => Some((list, true)),
            None => again().map(|list| (list, false)),
        }
    }
}

impl Shared {
    fn make_lists(&self) {
        // Until when lists are not made anew, and new ones are not made.
        let mut rest = (Instant::now(), Instant::now());
        while let Some(job) = self.next_job(rest) {
            let started = Instant::now();
            let made = match job.is_new {
                true => self.make(&job.options, &job.held),
                false => self.make_yielding(&job),
            };
            let took = started.elapsed();
            let now = Instant::now();
            rest = (now + took * RESTS.0, now + took * RESTS.1);
            let mut kept = lock(&self.kept);
            if let Some(list) = kept.lists.iter_mut().find(|list| list.query == job.query) {
                list.made = Some((job.held.version(), made));
            }
        }
    }

    /// Waits for something to do; `None`: it ends.
    fn next_job(&self, rest: (Instant, Instant)) -> Option<Job> {
        let mut kept = lock(&self.kept);
        loop {
            if kept.stop {
                return None;
            }
            let now = Instant::now();
            let lively = kept.lists.iter().any(|list| list.asked.elapsed() < LIVELY);
            if lively && now >= rest.1 {
                drop(kept);
                // A store that cannot be read just now is looked at again.
                let held = self.current.get().ok();
                kept = lock(&self.kept);
                if let Some(held) = held
                    && let Some((list, new)) = kept.due(&held.version())
                    && (new || now >= rest.0)
                {
                    return Some(Job {
                        query: list.query.clone(),
                        options: list.options.clone(),
                        held,
                        is_new: new,
                    });
                }
            }
            kept = if lively {
                let waited = self.changed.wait_timeout(kept, LOOK_EVERY);
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else {
                let waited = self.changed.wait(kept);
                waited.unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    /// Makes a list on a thread of low priority, which is only ever lowered.
    fn make_yielding(&self, job: &Job) -> Result<Arc<NextList>> {
        std::thread::scope(|scope| {
            let making = scope.spawn(|| {
                lower_priority();
                self.make(&job.options, &job.held)
            });
            let failed = |_| Err(Problem::Failed("making the list failed".into()));
            making.join().unwrap_or_else(failed)
        })
    }

    fn make(&self, options: &NextOptions, held: &Held) -> Result<Arc<NextList>> {
        let pages = schedule::next(&RealDisk, &self.store, options).map_err(problem)?;
        let page = |page: Candidate| NextPage {
            url: page.url,
            score: page.score,
        };
        Ok(Arc::new(NextList {
            snapshot: held.name().into(),
            version: held.version(),
            records: held.records(),
            made: held.written(),
            pages: pages.into_iter().map(page).collect(),
        }))
    }
}
