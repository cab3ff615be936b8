//! The experiments of section 4 of the paper, as one table of crawls; their tables and plots.
//!
//! A month is the time in which as many pages are crawled as the web has ([`MONTH`](super::crawl::MONTH)), so
//! that the windows of the paper's Figure 5 can be given as it gives them. Errors of a web that changes are
//! against exact PageRank of the web as it is at that moment.

mod plots;
mod results;
mod table;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::experiment::Setting;
use super::graph::Graph;
use super::web::{InDegree, OutDegree, Web};
use crate::Result;
use results::{Results, degrees_csv, offline_csv, storage_csv};
use table::jobs;

/// The web of all experiments but those that compare webs.
pub enum Base {
    /// A synthetic one.
    Synthetic {
        /// Pages.
        pages: u64,
        /// Distribution of in-degrees.
        in_degree: InDegree,
        /// Distribution of out-degrees.
        out_degree: OutDegree,
    },
    /// A real one.
    Graph {
        /// What to call it.
        name: String,
        /// The graph.
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
    /// Those of [`Web::synthetic`] and [`Web::of_graph`].
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

    /// What plots say of it.
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

/// Makes all tables and plots, on `threads` threads: the result does not depend on how many. `tell` hears of
/// each crawl that is done; `write` takes each file's name and text.
///
/// # Errors
/// Those of the crawls, and of `write`.
pub fn figures(
    base: &Base,
    seed: u64,
    threads: usize,
    tell: &(dyn Fn(&str) + Sync),
    write: &mut dyn FnMut(&str, &str) -> Result<()>,
) -> Result<()> {
    let results = run(base, seed, threads, tell)?;
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
        write(&format!("{table}.csv"), &results.csv(table, first))?;
    }
    write("offline.csv", &offline_csv(&offline))?;
    write("figure5.csv", &storage_csv(&results))?;
    write("degrees.csv", &degrees_csv(base.pages(), seed)?)?;
    for (file, plot) in plots::plots(base, &results, &offline) {
        write(&format!("{file}.svg"), &plot.svg())?;
    }
    Ok(())
}

fn run(base: &Base, seed: u64, threads: usize, tell: &(dyn Fn(&str) + Sync)) -> Result<Results> {
    let jobs = jobs(seed);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let work = || -> Result<()> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else {
                return Ok(());
            };
            let web = match job.web {
                None => base.web(seed)?,
                Some((in_degree, out_degree)) => {
                    Web::synthetic(base.pages(), in_degree, out_degree, seed)?
                }
            };
            let mut samples = Vec::new();
            let ran = job.setting.run(web, |sample| {
                samples.push(sample);
                Ok(())
            });
            if ran.is_err() {
                next.store(jobs.len(), Ordering::Relaxed);
            }
            ran?;
            if let Ok(mut done) = done.lock() {
                done.insert(at, samples);
                let (count, all) = (done.len(), jobs.len());
                tell(&format!(
                    "{count} of {all} done: {}, {}",
                    job.table, job.label
                ));
            }
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
    let done = done.into_inner().unwrap_or_default();
    let named = jobs.into_iter().zip(done.into_values());
    Ok(Results(
        named
            .map(|(job, samples)| (job.table, job.label, samples))
            .collect(),
    ))
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
