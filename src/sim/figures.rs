//! The experiments of section 4 of the paper, as one table of crawls; their tables and plots.
//!
//! A month is the time in which as many pages are crawled as the web has ([`MONTH`](super::crawl::MONTH)), so
//! that the windows of the paper's Figure 5 can be given as it gives them. Errors of a web that changes are
//! against exact PageRank of the web as it is at that moment.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::errors::Errors;
use super::experiment::{Changes, Reading, Sample, Setting};
use super::graph::Graph;
use super::plot::{Axis, Line, Plot, Scale};
use super::strategy::Strategy;
use super::web::{InDegree, OutDegree, Web};
use crate::Result;
use crate::engine::{Estimator, WindowPolicy};
use crate::metrics::kendall::tau_b;

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

/// The paper's change rates, as shares of all pages in a pass.
const RATES: [f64; 7] = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3];
/// Pages that appear in a pass, and as many that vanish.
const CHURN: [f64; 4] = [0.001, 0.01, 0.03, 0.1];
/// Passes of most experiments: "For each change rate the graph is crawled ten times".
const PASSES: u32 = 10;
/// Passes after which the longest windows, of 8 months, have been full for long.
const LONG: u32 = 24;

const VARIABLE_4: Reading = (WindowPolicy::Variable(4), None);
const VARIABLE_8: Reading = (WindowPolicy::Variable(8), None);
const VARIABLE_16: Reading = (WindowPolicy::Variable(16), None);
const WHOLE: Reading = (WindowPolicy::Whole, Some(Estimator::Distributed));
const AUTO: Reading = (WindowPolicy::Auto, None);

fn months(months: i64) -> crate::engine::Span {
    crate::engine::Span::Seconds(months * super::crawl::MONTH)
}

fn fixed(length: i64, least: u32) -> Reading {
    let span = months(length);
    (
        WindowPolicy::Fixed { span, least },
        Some(Estimator::Distributed),
    )
}

fn received(length: i64) -> Reading {
    let span = months(length);
    let window = WindowPolicy::Fixed { span, least: 0 };
    (window, Some(Estimator::Received))
}

fn interpolation(length: i64) -> Reading {
    (WindowPolicy::Interpolation(months(length)), None)
}

/// What plots call a window.
fn name((window, estimator): Reading) -> String {
    let text = match window {
        WindowPolicy::Fixed { span, least } => match least {
            0 => format!("fixed, {}", in_months(span)),
            least => format!("fixed, {}, at least {least}", in_months(span)),
        },
        WindowPolicy::Interpolation(span) => format!("interpolation, {}", in_months(span)),
        WindowPolicy::Variable(last) => format!("variable, {last} measures"),
        WindowPolicy::Whole => "whole history".into(),
        WindowPolicy::Auto => "auto".into(),
    };
    match estimator.unwrap_or(window.estimator()) {
        Estimator::Received => format!("{text} (received)"),
        Estimator::Distributed => text,
    }
}

fn in_months(span: crate::engine::Span) -> String {
    match span {
        crate::engine::Span::Seconds(seconds) => match seconds / super::crawl::MONTH {
            1 => "1 month".into(),
            months => format!("{months} months"),
        },
        turnovers => format!("{turnovers} turnovers"),
    }
}

/// A crawl of the table.
struct Job {
    /// The table it belongs to.
    table: &'static str,
    /// What differs from others of that table.
    label: String,
    /// Another web than the base.
    web: Option<(InDegree, OutDegree)>,
    setting: Setting,
}

/// All crawls.
fn jobs(seed: u64) -> Vec<Job> {
    let setting = Setting {
        seed,
        ..Setting::default()
    };
    let mut jobs = Vec::new();
    for strategy in Strategy::ALL {
        jobs.push(Job {
            table: "convergence",
            label: strategy.to_string(),
            web: None,
            setting: Setting {
                strategy,
                windows: vec![WHOLE, AUTO],
                ..setting.clone()
            },
        });
        jobs.push(Job {
            table: "growing",
            label: strategy.to_string(),
            web: None,
            setting: Setting {
                strategy,
                growing: true,
                recycle_after: 4,
                windows: vec![WHOLE, AUTO],
                ..setting.clone()
            },
        });
    }
    jobs.push(Job {
        table: "many-links",
        label: "greedy".into(),
        web: Some((InDegree::Poisson(50.0), OutDegree::Poisson)),
        setting: setting.clone(),
    });
    for web in WEBS {
        for strategy in Strategy::ALL {
            jobs.push(Job {
                table: "webs",
                label: format!("{strategy} on {} out {}", web.0, web.1),
                web: Some(web),
                setting: Setting {
                    strategy,
                    samples: 0,
                    ..setting.clone()
                },
            });
        }
    }
    jobs.extend(changing(&setting));
    jobs
}

/// The webs that are compared (section 4.2, the graph model).
const WEBS: [(InDegree, OutDegree); 4] = [
    (InDegree::Power(2.1), OutDegree::Poisson),
    (InDegree::Power(2.1), OutDegree::Power),
    (InDegree::Power(2.1), OutDegree::LikeIn),
    (InDegree::Poisson(5.0), OutDegree::Poisson),
];

/// The crawls of webs that change.
fn changing(setting: &Setting) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut job = |table, label: String, setting| {
        jobs.push(Job {
            table,
            label,
            web: None,
            setting,
        });
    };
    for rate in RATES {
        let windows = vec![
            VARIABLE_4,
            VARIABLE_8,
            VARIABLE_16,
            interpolation(2),
            interpolation(4),
            WHOLE,
            AUTO,
            fixed(8, 0),
            fixed(4, 0),
            fixed(4, 3),
        ];
        let changes = Changes {
            in_degree: rate,
            ..Changes::NONE
        };
        let setting = Setting {
            windows,
            changes,
            samples: 0,
            ..setting.clone()
        };
        job("figure4", percent(rate), setting);
    }
    for rate in CHURN {
        let setting = Setting {
            windows: vec![VARIABLE_4, VARIABLE_8, interpolation(4), WHOLE, AUTO],
            changes: Changes {
                appear: rate,
                vanish: rate,
                ..Changes::NONE
            },
            samples: 0,
            ..setting.clone()
        };
        job("churn", percent(rate), setting);
    }
    for rate in [0.0, 0.01] {
        let setting = Setting {
            windows: vec![
                VARIABLE_8,
                fixed(8, 0),
                fixed(4, 0),
                fixed(4, 3),
                interpolation(4),
            ],
            changes: Changes {
                in_degree: rate,
                ..Changes::NONE
            },
            passes: LONG,
            ..setting.clone()
        };
        job("figure6", percent(rate), setting);
    }
    for strategy in [Strategy::Greedy, Strategy::Cycle] {
        let setting = Setting {
            strategy,
            windows: recovering(),
            changes: Changes {
                in_degree: 0.1,
                after: PASSES,
                until: Some(PASSES + 1),
                ..Changes::NONE
            },
            passes: PASSES + 6,
            ..setting.clone()
        };
        job("recovery", strategy.to_string(), setting);
    }
    jobs
}

fn recovering() -> Vec<Reading> {
    vec![
        WHOLE,
        VARIABLE_4,
        (WindowPolicy::Variable(2), None),
        interpolation(1),
        fixed(2, 3),
        received(2),
        AUTO,
    ]
}

/// Of the rates here: to a tenth of a percent.
fn percent(rate: f64) -> String {
    format!("{} %", (1000.0 * rate).round() / 10.0)
}

/// What the crawls gave: by table, label and window.
struct Results(Vec<(&'static str, String, Vec<Sample>)>);

impl Results {
    /// Rows of one window of one crawl.
    fn rows<'r>(
        &'r self,
        table: &'r str,
        label: &'r str,
        (window, estimator): Reading,
    ) -> impl Iterator<Item = &'r Sample> {
        let estimator = estimator.unwrap_or(window.estimator());
        let of = self
            .0
            .iter()
            .filter(move |(t, l, _)| *t == table && l == label);
        of.flat_map(|(_, _, samples)| samples)
            .filter(move |sample| sample.window == window && sample.estimator == estimator)
    }

    /// A line over passes.
    fn line(
        &self,
        name: String,
        (table, label): (&str, &str),
        reading: Reading,
        y: impl Fn(&Sample) -> f64,
    ) -> Line {
        let rows = self.rows(table, label, reading);
        Line {
            name,
            points: rows.map(|sample| (sample.passes, y(sample))).collect(),
        }
    }

    /// A line over change rates: the last rows.
    fn over_rates(
        &self,
        table: &str,
        rates: &[f64],
        reading: Reading,
        y: fn(&Errors) -> f64,
    ) -> Line {
        let at = |(nth, rate): (usize, &f64)| {
            let label = percent(*rate);
            let last = self.rows(table, &label, reading).last()?;
            Some((nth as f64, y(&last.errors)))
        };
        Line {
            name: name(reading),
            points: rates.iter().enumerate().filter_map(at).collect(),
        }
    }

    /// A table as CSV.
    fn csv(&self, table: &str, first: &str) -> String {
        let mut out = format!("{first},{}\n", Sample::COLUMNS);
        for (_, label, samples) in self.0.iter().filter(|(t, _, _)| *t == table) {
            for sample in samples {
                let _ = writeln!(out, "{label},{}", sample.line());
            }
        }
        out
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
        ("figure4", "change_rate_per_pass"),
        ("churn", "appear_and_vanish_rate_per_pass"),
        ("figure6", "change_rate_per_pass"),
        ("recovery", "strategy"),
    ] {
        write(&format!("{table}.csv"), &results.csv(table, first))?;
    }
    write("offline.csv", &offline_csv(&offline))?;
    write("figure5.csv", &storage_csv(&results))?;
    write("degrees.csv", &degrees_csv(base.pages(), seed)?)?;
    for (file, plot) in plots(base, &results, &offline) {
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

fn offline_csv(offline: &[Errors]) -> String {
    let mut out = String::from(
        "iterations,error_percent,error_top_tenth_percent,error_weighted_percent,\
         above_twice_the_mean_percent,wrong_order_percent\n",
    );
    for (errors, iteration) in offline.iter().zip(1..) {
        let Errors {
            all,
            top,
            weighted,
            above_twice,
            ordering,
        } = errors;
        let _ = writeln!(
            out,
            "{iteration},{all:.4},{top:.4},{weighted:.4},{above_twice:.4},{ordering:.4}"
        );
    }
    out
}

/// The paper's Figure 5, with its figures beside ours.
fn storage_csv(results: &Results) -> String {
    let mut out = String::from("window,measures_per_page,measures_per_page_in_the_paper\n");
    let unchanged = percent(0.0);
    for (reading, paper) in [
        (VARIABLE_8, "8"),
        (fixed(8, 0), "8.4"),
        (fixed(4, 0), "4"),
        (fixed(4, 3), "6.1"),
        (interpolation(4), "1"),
    ] {
        let last = results.rows("figure6", &unchanged, reading).last();
        let measures = last.map_or(String::new(), |sample| format!("{:.2}", sample.measures));
        let _ = writeln!(out, "\"{}\",{measures},{paper}", name(reading));
    }
    out
}

/// What the compared webs are like.
fn degrees_csv(pages: u64, seed: u64) -> Result<String> {
    let mut out = String::from(
        "in_degrees,out_degrees,links_per_page,greatest_in_degree,greatest_out_degree,dangling_percent,\
         in_out_kendall_tau_b\n",
    );
    for (in_degree, out_degree) in WEBS {
        let web = Web::synthetic(pages, in_degree, out_degree, seed)?;
        let degrees: Vec<(f64, f64)> = (0..web.pages() as u32)
            .map(|page| (web.in_degree(page) as f64, web.links(page).len() as f64))
            .collect();
        let links: f64 = degrees.iter().map(|pair| pair.0).sum();
        let most = |of: fn(&(f64, f64)) -> f64| degrees.iter().map(of).fold(0.0, f64::max);
        let dangling = degrees.iter().filter(|pair| pair.1 == 0.0).count();
        let (most_in, most_out) = (most(|pair| pair.0), most(|pair| pair.1));
        let n = pages as f64;
        let _ = writeln!(
            out,
            "{in_degree},{out_degree},{:.3},{most_in},{most_out},{:.2},{}",
            links / n,
            100.0 * dangling as f64 / n,
            tau_b(degrees).map_or(String::new(), |tau| format!("{tau:.3}")),
        );
    }
    Ok(out)
}

fn plots(base: &Base, results: &Results, offline: &[Errors]) -> Vec<(&'static str, Plot)> {
    let of = Drawing {
        what: base.describe(),
        results,
        offline,
    };
    let mut plots = vec![
        (
            "figure2",
            of.convergence("Figure 2: convergence on all pages", ALL, |e| e.all),
        ),
        (
            "figure3",
            of.convergence("Figure 3: convergence on the top tenth", TOP, |e| e.top),
        ),
        (
            "weighted",
            of.convergence("Error weighted with importance", WEIGHTED, |e| e.weighted),
        ),
        (
            "ordering",
            of.convergence("Error in ordering", ORDER, |e| e.ordering),
        ),
        ("auto", of.auto()),
        ("error-factor", of.error_factor()),
        ("cash", of.cash()),
        ("growing", of.growing()),
    ];
    let sizes = [
        VARIABLE_4,
        VARIABLE_8,
        VARIABLE_16,
        interpolation(4),
        interpolation(2),
        WHOLE,
        AUTO,
    ];
    let types = [
        VARIABLE_8,
        fixed(8, 0),
        fixed(4, 0),
        fixed(4, 3),
        interpolation(4),
    ];
    let churned = [VARIABLE_4, VARIABLE_8, interpolation(4), WHOLE, AUTO];
    let after = "Greedy, after 10 passes";
    plots.extend([
        (
            "figure4",
            of.rates(
                "Figure 4: sizes of windows",
                after,
                ("figure4", &RATES),
                &sizes,
                ALL,
                |e| e.all,
            ),
        ),
        (
            "figure4-top",
            of.rates(
                "Figure 4, on the top tenth",
                after,
                ("figure4", &RATES),
                &sizes,
                TOP,
                |e| e.top,
            ),
        ),
        (
            "figure6-rates",
            of.rates(
                "Figure 6: types of windows, over change rates",
                after,
                ("figure4", &RATES),
                &types,
                ALL,
                |e| e.all,
            ),
        ),
        (
            "churn",
            of.rates(
                "Pages that appear and vanish",
                after,
                ("churn", &CHURN),
                &churned,
                ALL,
                |e| e.all,
            ),
        ),
        ("figure6", of.types(&types)),
        ("recovery-cycle", of.recovery("cycle", ALL, |e| e.all)),
        (
            "recovery-greedy",
            of.recovery("greedy", WEIGHTED, |e| e.weighted),
        ),
    ]);
    plots
}

const ALL: &str = "mean relative error of all pages (%)";
const TOP: &str = "mean relative error of the top tenth (%)";
const WEIGHTED: &str = "relative error weighted with importance (%)";
const ORDER: &str = "pairs of pages in the wrong order (%)";
const CRAWLED: &str = "pages crawled, in passes (multiples of the number of pages)";
const RATE: &str = "in-degrees doubled or halved per pass (% of pages; steps not to scale)";

/// What all plots are made of.
struct Drawing<'r> {
    what: String,
    results: &'r Results,
    offline: &'r [Errors],
}

impl Drawing<'_> {
    fn plot(
        &self,
        title: &str,
        how: &str,
        x: (&str, Scale),
        y: (&str, Scale),
        lines: Vec<Line>,
    ) -> Plot {
        let axis = |(label, scale): (&str, Scale)| Axis {
            label: label.into(),
            scale,
        };
        Plot {
            title: title.into(),
            subtitle: format!("{how}; {}", self.what),
            x: axis(x),
            y: axis(y),
            lines,
        }
    }

    fn offline(&self, y: fn(&Errors) -> f64) -> Line {
        let points = self.offline.iter().zip(1..);
        Line {
            name: "off-line (power iteration)".into(),
            points: points
                .map(|(errors, at)| (f64::from(at), y(errors)))
                .collect(),
        }
    }

    /// Figures 2 and 3, and the same for other errors.
    fn convergence(&self, title: &str, label: &str, y: fn(&Errors) -> f64) -> Plot {
        let line = |strategy: Strategy| {
            let label = strategy.to_string();
            let of = ("convergence", label.as_str());
            self.results
                .line(label.clone(), of, WHOLE, |sample| y(&sample.errors))
        };
        let mut lines: Vec<Line> = Strategy::ALL.map(line).into();
        lines.push(self.offline(y));
        let how = "OPIC, whole history; no changes";
        self.plot(
            title,
            how,
            (CRAWLED, Scale::Linear),
            (label, Scale::Log),
            lines,
        )
    }

    /// The default window and estimator beside the paper's.
    fn auto(&self) -> Plot {
        let mut lines = Vec::new();
        for strategy in Strategy::ALL {
            let label = strategy.to_string();
            for (reading, what) in [(WHOLE, "the paper's"), (AUTO, "auto (received)")] {
                let of = ("convergence", label.as_str());
                let name = format!("{label}, {what}");
                lines.push(
                    self.results
                        .line(name, of, reading, |sample| sample.errors.all),
                );
            }
        }
        lines.push(self.offline(|e| e.all));
        let title = "The default window and estimator beside the paper's";
        self.plot(
            title,
            "no changes",
            (CRAWLED, Scale::Linear),
            (ALL, Scale::Log),
            lines,
        )
    }

    fn by_strategy(&self, y: fn(&Sample) -> f64) -> Vec<Line> {
        let line = |strategy: Strategy| {
            let label = strategy.to_string();
            let of = ("convergence", label.as_str());
            self.results.line(label.clone(), of, WHOLE, y)
        };
        Strategy::ALL.map(line).into()
    }

    fn error_factor(&self) -> Plot {
        let lines = self.by_strategy(|sample| 1.0 / sample.turnovers);
        let label = "1/G, G in turnovers of all cash";
        let title = "The error factor 1/G";
        self.plot(
            title,
            "no changes",
            (CRAWLED, Scale::Linear),
            (label, Scale::Log),
            lines,
        )
    }

    fn cash(&self) -> Plot {
        let mut lines = self.by_strategy(|sample| sample.cash);
        let name = "greedy, Poisson of mean 50".into();
        let of = ("many-links", "greedy");
        lines.push(self.results.line(name, of, WHOLE, |sample| sample.cash));
        let label = "cash of a page when it is crawled (times 1/n)";
        let title = "Mean cash of the pages crawled";
        self.plot(
            title,
            "no changes",
            (CRAWLED, Scale::Linear),
            (label, Scale::Linear),
            lines,
        )
    }

    fn growing(&self) -> Plot {
        let mut lines = Vec::new();
        for strategy in Strategy::ALL {
            let label = strategy.to_string();
            for reading in [WHOLE, AUTO] {
                let title = format!("{label}, {}", name(reading));
                let of = ("growing", label.as_str());
                lines.push(
                    self.results
                        .line(title, of, reading, |sample| sample.errors.all),
                );
            }
        }
        let title = "A crawl that begins with a page in a thousand";
        let how = "pages are found by links, unknown ones count 100 %";
        self.plot(
            title,
            how,
            (CRAWLED, Scale::Linear),
            (ALL, Scale::Log),
            lines,
        )
    }

    fn rates(
        &self,
        title: &str,
        how: &str,
        (table, rates): (&str, &[f64]),
        windows: &[Reading],
        label: &str,
        y: fn(&Errors) -> f64,
    ) -> Plot {
        let lines = windows.iter();
        let lines = lines.map(|&reading| self.results.over_rates(table, rates, reading, y));
        let steps = rates.iter().map(|&rate| percent(rate)).collect();
        let x = match table {
            "churn" => {
                "pages that appear, and as many that vanish, per pass (% of pages; not to scale)"
            }
            _ => RATE,
        };
        self.plot(
            title,
            how,
            (x, Scale::Steps(steps)),
            (label, Scale::Log),
            lines.collect(),
        )
    }

    fn types(&self, windows: &[Reading]) -> Plot {
        let rate = percent(0.01);
        let line = |&reading: &Reading| {
            let of = ("figure6", rate.as_str());
            self.results
                .line(name(reading), of, reading, |sample| sample.errors.all)
        };
        let lines = windows.iter().map(line).collect();
        let title = "Figure 6: types of windows";
        let how = "Greedy, 1 % of in-degrees changed per pass";
        self.plot(
            title,
            how,
            (CRAWLED, Scale::Linear),
            (ALL, Scale::Log),
            lines,
        )
    }

    fn recovery(&self, strategy: &str, label: &str, y: fn(&Errors) -> f64) -> Plot {
        let line = |reading: Reading| {
            let of = ("recovery", strategy);
            self.results
                .line(name(reading), of, reading, |sample| y(&sample.errors))
        };
        let lines = recovering().into_iter().map(line).collect();
        let title = format!("After a change: 10 % of in-degrees in pass 11 ({strategy})");
        let how = "no changes before and after";
        self.plot(
            &title,
            how,
            (CRAWLED, Scale::Linear),
            (label, Scale::Log),
            lines,
        )
    }
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
