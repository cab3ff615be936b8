//! The experiments of section 4 of the paper, as one table of crawls; their tables and plots.
//!
//! A month is the time in which as many pages are crawled as the web has ([`MONTH`](super::crawl::MONTH)), so
//! that the windows of the paper's Figure 5 can be given as it gives them. Errors of a web that changes are
//! against exact PageRank of the web as it is at that moment.

mod plots;
mod results;
mod table;
mod unfinished;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use cashrank::Result;
use cashrank_base::model::thousands;
use cashrank_graph::graph::Graph;

use crate::experiment::{Sample, Setting};
use crate::folder::Folder;
use crate::web::{InDegree, OutDegree, Web};
use results::{Results, degrees_csv, offline_csv, storage_csv};
use table::{Job, jobs};
use unfinished::Unfinished;

/// Web of all experiments except for those that compare webs.
pub enum Base {
    /// Synthetic web.
    Synthetic {
        /// Number of pages.
        pages: u64,
        /// Distribution of in-degrees.
        in_degree: InDegree,
        /// Distribution of out-degrees.
        out_degree: OutDegree,
    },
    /// Real web.
    Graph {
        /// Name of the web.
        name: String,
        /// Its graph.
        graph: Graph,
    },
}

impl Base {
    fn pages(&self) -> u64 {
        match self {
            Base::Synthetic { pages, .. } => *pages,
            Base::Graph { graph, .. } => graph.nodes() as u64,
        }
    }

    /// Makes the web.
    ///
    /// # Errors
    /// Errors of [`Web::synthetic`] and [`Web::of_graph`].
    pub fn web(&self, seed: u64) -> Result<Web> {
        match self {
            Base::Synthetic {
                pages,
                in_degree,
                out_degree,
            } => Web::synthetic(*pages, *in_degree, *out_degree, seed),
            Base::Graph { graph, .. } => Web::of_graph(graph, seed),
        }
    }

    /// Describes the web for plots.
    fn describe(&self) -> String {
        let kind = match self {
            Base::Synthetic { in_degree, .. } => match in_degree {
                InDegree::Power(exponent) => format!("power law {exponent} in-degrees"),
                InDegree::Poisson(mean) => format!("Poisson in-degrees of mean {mean}"),
            },
            Base::Graph { name, .. } => name.clone(),
        };
        format!("{} pages, {kind}", thousands(self.pages()))
    }
}

/// Makes all tables and plots in `folder`, which is created if necessary, on `threads` threads; the result does not
/// depend on their number. Calls `tell` for each finished crawl. Until all are finished, `folder` has their rows in
/// `unfinished.jsonl`, from which an interrupted run continues.
///
/// # Errors
/// Errors of the crawls; [`cashrank::Error::Io`].
pub fn figures(
    base: &Base,
    seed: u64,
    threads: usize,
    tell: &(dyn Fn(&str) + Sync),
    folder: &Path,
) -> Result<()> {
    let files = Folder::make(folder)?;
    let mut unfinished = Unfinished::open(&folder.join("unfinished.jsonl"))?;
    let results = run(base, seed, threads, tell, &mut unfinished)?;
    let offline = Setting {
        seed,
        ..Setting::default()
    }
    .offline(&base.web(seed)?)?;
    for (table, first) in [
        ("convergence", "strategy"),
        ("growing", "strategy"),
        ("many-links", "strategy"),
        ("webs", "strategy_and_web"),
        ("figure4", "change_rate_percent_per_pass"),
        ("churn", "appear_and_vanish_rate_percent_per_pass"),
        ("figure6", "change_rate_percent_per_pass"),
        ("recovery", "strategy"),
    ] {
        files.write(&format!("{table}.csv"), &results.csv(table, first))?;
    }
    files.write("offline.csv", &offline_csv(&offline))?;
    files.write("figure5.csv", &storage_csv(&results))?;
    files.write("degrees.csv", &degrees_csv(base.pages(), seed)?)?;
    for (file, plot) in plots::plots(base, &results, &offline) {
        files.write(&format!("{file}.svg"), &plot.svg())?;
    }
    unfinished.remove()
}

/// Progress of the crawls.
struct Progress<'u> {
    /// Crawls that have not begun.
    left: Vec<usize>,
    done: Vec<Option<Vec<Sample>>>,
    unfinished: &'u mut Unfinished,
}

fn run(
    base: &Base,
    seed: u64,
    threads: usize,
    tell: &(dyn Fn(&str) + Sync),
    unfinished: &mut Unfinished,
) -> Result<Results> {
    let jobs = jobs(seed);
    let done: Vec<_> = jobs
        .iter()
        .map(|job| unfinished.take(&job.identity(base, seed)))
        .collect();
    let mut left: Vec<usize> = (0..jobs.len()).filter(|&at| done[at].is_none()).collect();
    // The list is taken from its end.
    left.reverse();
    left.sort_by_key(|&at| jobs[at].is_long());
    if left.len() < jobs.len() {
        let taken = jobs.len() - left.len();
        tell(&format!("{taken} of {} were done before", jobs.len()));
    }
    let progress = Mutex::new(Progress {
        left,
        done,
        unfinished,
    });
    let locked = || progress.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || -> Result<()> {
        loop {
            let Some(at) = locked().left.pop() else {
                return Ok(());
            };
            let job = &jobs[at];
            let ran = job.run(base, seed);
            let mut progress = locked();
            if ran.is_err() {
                progress.left.clear();
            }
            let samples = ran?;
            progress
                .unfinished
                .keep(job.identity(base, seed), &samples)?;
            progress.done[at] = Some(samples);
            let count = progress.done.iter().flatten().count();
            let all = jobs.len();
            tell(&format!(
                "{count} of {all} done: {}, {}",
                job.table, job.label
            ));
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })?;
    let Progress { done, .. } = progress
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let named = jobs.into_iter().zip(done.into_iter().flatten());
    Ok(Results(
        named
            .map(|(job, samples)| (job.table, job.label, samples))
            .collect(),
    ))
}

impl Job {
    fn run(&self, base: &Base, seed: u64) -> Result<Vec<Sample>> {
        let web = match self.web {
            None => base.web(seed)?,
            Some((in_degree, out_degree)) => {
                Web::synthetic(base.pages(), in_degree, out_degree, seed)?
            }
        };
        let mut samples = Vec::new();
        self.setting.run(web, |sample| {
            samples.push(sample);
            Ok(())
        })?;
        Ok(samples)
    }

    /// Returns a string that distinguishes its rows from those of other crawls, including those of other sets and
    /// versions.
    fn identity(&self, base: &Base, seed: u64) -> String {
        let Job { web, setting, .. } = self;
        let base = match base {
            Base::Synthetic { out_degree, .. } => format!("{}, out {out_degree}", base.describe()),
            Base::Graph { graph, .. } => format!("{}, {} links", base.describe(), graph.links()),
        };
        let version = env!("CARGO_PKG_VERSION");
        format!("{version}; {base}; seed {seed}; {web:?}; {setting:?}")
    }
}
