//! Table 1, Figure 1, Figure 2 and the run time, as tables (CSV) and plots (SVG).

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use cashrank::Result;
use cashrank_graph::rank::pagerank::PowerOptions;
use cashrank_steer::local::{LocalOptions, Policy, best_by};
use serde::Serialize;

use super::{Course, Distance, Method, Outcome, Ties, World, hosts};
use crate::folder::Folder;
use crate::plot::{Axis, Line, Plot, Scale};

/// Experiments on several domains of one graph.
#[derive(Debug)]
pub struct Study<'a> {
    /// Name of the graph in plots.
    pub name: String,
    /// Graph with its exact PageRank.
    pub world: World<'a>,
    /// Pages of each domain.
    pub domains: Vec<Vec<u32>>,
    /// Number of rounds: T.
    pub rounds: usize,
    /// Number of pages fetched outside, as a share of the domain's.
    pub outside: f64,
    /// Rule that decides between equal scores.
    pub ties: Ties,
    /// Settings of the power method.
    pub power: PowerOptions,
    /// Seed of random draws.
    pub seed: u64,
    /// Number of domains at a time; distances do not depend on it.
    pub threads: usize,
}

/// Row of Table 1: means over the domains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the method.
    pub method: String,
    /// Number of domains.
    pub domains: usize,
    /// L1 distance before anything was fetched.
    pub none_l1: f64,
    /// Distance after the last round.
    #[serde(flatten)]
    pub last: Distance,
    /// Number of pages fetched outside.
    pub fetched: f64,
    /// Share of them that was preferred to a page of the same score.
    pub tied: f64,
    /// Share of the rank flowing into the domain from outside that comes from the fetched pages.
    pub impact: f64,
    /// Seconds per domain for choosing pages.
    pub choosing_s: f64,
    /// Seconds per domain for ranks and the estimate.
    pub ranking_s: f64,
    /// L1 distance before the first round and after each.
    #[serde(skip)]
    pub curve: Vec<f64>,
    /// Distances by domain.
    #[serde(skip)]
    pub each: Vec<Distance>,
}

impl Row {
    /// Names of the columns of [`Row::line`].
    pub const COLUMNS: &str =
        "method,domains,none_l1,l1,l2,linf,tau,fetched,tied,impact,choosing_s,ranking_s";

    /// Formats a line of CSV.
    pub fn line(&self) -> String {
        format!(
            "{},{},{:.4},{:.4},{:.5},{:.5},{:.4},{:.0},{:.3},{:.4},{:.3},{:.3}",
            self.method,
            self.domains,
            self.none_l1,
            self.last.l1,
            self.last.l2,
            self.last.linf,
            self.last.tau,
            self.fetched,
            self.tied,
            self.impact,
            self.choosing_s,
            self.ranking_s
        )
    }
}

impl Study<'_> {
    /// Computes one row of Table 1; with `curve`, also the distance after each round.
    ///
    /// # Errors
    /// Errors of [`World::run`].
    pub fn row(&self, method: Method, curve: bool) -> Result<Row> {
        let course = Course {
            rounds: self.rounds,
            outside: self.outside,
            ties: self.ties,
            options: LocalOptions {
                policy: method.policy,
                extrapolates: method.extrapolated,
                power: self.power,
                seed: self.seed,
            },
        };
        let outcomes = self.each(|domain| self.world.run(domain, &course, curve))?;
        let count = outcomes.len() as f64;
        let mean = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / count;
        let points = outcomes.iter().map(|o| o.curve.len()).min().unwrap_or(0);
        Ok(Row {
            method: method.to_string(),
            domains: outcomes.len(),
            none_l1: mean(&|o| o.curve[0].l1),
            last: Distance {
                l1: mean(&|o| o.last().l1),
                l2: mean(&|o| o.last().l2),
                linf: mean(&|o| o.last().linf),
                tau: mean(&|o| o.last().tau),
            },
            fetched: mean(&|o| o.fetched as f64),
            impact: mean(&|o| o.impact),
            tied: mean(&|o| o.tied as f64 / o.fetched.max(1) as f64),
            choosing_s: mean(&|o| o.choosing_s),
            ranking_s: mean(&|o| o.ranking_s),
            curve: (0..points).map(|at| mean(&|o| o.curve[at].l1)).collect(),
            each: outcomes.iter().map(Outcome::last).collect(),
        })
    }

    /// Runs `work` for each domain, several at a time; returns the results in the domains' order.
    fn each<T: Send>(&self, work: impl Fn(&[u32]) -> Result<T> + Sync) -> Result<Vec<T>> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.threads.clamp(1, self.domains.len().max(1)) {
                scope.spawn(|| {
                    while let Some(domain) = {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        self.domains.get(at).map(|domain| (at, domain))
                    } {
                        let result = work(domain.1);
                        let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                        done.push((domain.0, result));
                    }
                });
            }
        });
        let mut done = done
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

/// Number of candidates drawn in Figure 1.
const CANDIDATES: usize = 400;

/// Makes all tables and plots in `folder`, which is created if necessary. Calls `tell` for each finished method. With
/// `sizes`, also measures the run time on domains of these sizes.
///
/// # Errors
/// Errors of [`Study::row`]; [`cashrank::Error::Io`].
pub fn figures(
    study: &Study<'_>,
    sizes: &[usize],
    tell: &dyn Fn(&str),
    folder: &Path,
) -> Result<()> {
    let files = Folder::make(folder)?;
    let mut rows = Vec::new();
    for method in Method::all() {
        let row = study.row(method, true)?;
        tell(&row.line());
        rows.push(row);
    }
    files.write("local-table1.csv", &table(&rows))?;
    files.write("local-domains.csv", &domains(&rows))?;
    files.write("local-figure2.csv", &curves(study, &rows))?;
    files.write("local-figure2.svg", &figure2(study, &rows).svg())?;
    let options = LocalOptions {
        power: study.power,
        ..LocalOptions::of(study.power.damping)
    };
    if let Some(domain) = study.domains.first() {
        let points = study.world.influences(domain, &options, CANDIDATES)?;
        let mut csv = String::from("influence,outlinks,objective\n");
        for point in &points {
            let (a, b, c) = (point.influence, point.outlinks, point.objective);
            let _ = writeln!(csv, "{a:e},{b},{c:.8}");
        }
        files.write("local-figure1.csv", &csv)?;
        let plots = [
            ("local-figure1a.svg", "Influence", true),
            ("local-figure1b.svg", "Links from the domain", false),
        ];
        for (name, label, influence) in plots {
            let x = |p: &super::Influence| {
                if influence {
                    p.influence
                } else {
                    p.outlinks as f64
                }
            };
            let points = points.iter().map(|p| (x(p), p.objective)).collect();
            files.write(name, &figure1(study, label, points).scatter())?;
        }
    }
    if !sizes.is_empty() {
        let times = times(sizes, study.power, study.seed, tell)?;
        files.write("local-time.csv", &time_table(&times))?;
        files.write("local-time.svg", &time_plot(&times).svg())?;
    }
    Ok(())
}

fn table(rows: &[Row]) -> String {
    // Times differ from run to run; the rest does not.
    let mut csv = format!("{}\n", Row::COLUMNS);
    for row in rows {
        let _ = writeln!(csv, "{}", row.line());
    }
    csv
}

fn domains(rows: &[Row]) -> String {
    let mut csv = String::from("method,domain,l1,l2,linf,tau\n");
    for row in rows {
        for (domain, d) in row.each.iter().enumerate() {
            let method = &row.method;
            let _ = writeln!(
                csv,
                "{method},{domain},{:.5},{:.6},{:.6},{:.4}",
                d.l1, d.l2, d.linf, d.tau
            );
        }
    }
    csv
}

fn curves(study: &Study<'_>, rows: &[Row]) -> String {
    let mut csv = String::from("round,outside");
    for row in rows {
        let _ = write!(csv, ",{}", row.method);
    }
    csv.push('\n');
    for round in 0..=study.rounds {
        let outside = study.outside * round as f64 / study.rounds as f64;
        let _ = write!(csv, "{round},{outside:.3}");
        for row in rows {
            let l1 = row.curve.get(round).copied().unwrap_or(f64::NAN);
            let _ = write!(csv, ",{l1:.5}");
        }
        csv.push('\n');
    }
    csv
}

fn figure2(study: &Study<'_>, rows: &[Row]) -> Plot {
    let line = |row: &Row| Line {
        name: row.method.clone(),
        points: row
            .curve
            .iter()
            .enumerate()
            .map(|(x, &y)| (x as f64, y))
            .collect(),
    };
    Plot {
        title: "Figure 2: distance to the global PageRank of the domain".into(),
        subtitle: format!(
            "{}; mean of {} domains, {} n pages outside in {} rounds",
            study.name,
            study.domains.len(),
            study.outside,
            study.rounds
        ),
        x: Axis {
            label: "rounds".into(),
            scale: Scale::Linear,
        },
        y: Axis {
            label: "L1".into(),
            scale: Scale::Linear,
        },
        lines: rows.iter().map(line).collect(),
    }
}

fn figure1(study: &Study<'_>, label: &str, points: Vec<(f64, f64)>) -> Plot {
    Plot {
        title: format!("Figure 1: {} against the objective", label.to_lowercase()),
        subtitle: format!(
            "{}; {} candidates of the first domain",
            study.name,
            points.len()
        ),
        x: Axis {
            label: label.into(),
            scale: Scale::Log,
        },
        y: Axis {
            label: "objective: L1 with that page fetched".into(),
            scale: Scale::Range,
        },
        lines: vec![Line {
            name: "a candidate".into(),
            points,
        }],
    }
}

/// Time of one round on a domain: links, and seconds for choosing by SC-Select and by Share, and
/// for ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// Number of pages of the domain.
    pub pages: usize,
    /// Number of links of its pages.
    pub links: usize,
    /// Seconds of SC-Select.
    pub sc_s: f64,
    /// Seconds of Share.
    pub share_s: f64,
    /// Seconds of the power method, from a uniform start.
    pub rank_s: f64,
}

/// Times one round on domains of synthetic webs of hosts three times as large.
///
/// # Errors
/// Errors of [`World::domain`].
pub fn times(
    sizes: &[usize],
    power: PowerOptions,
    seed: u64,
    tell: &dyn Fn(&str),
) -> Result<Vec<Times>> {
    let mut all = Vec::new();
    for &pages in sizes {
        let graph = hosts(3 * pages, 6, seed);
        let world = World::new(&graph, &[]);
        let domain: Vec<u32> = (pages as u32..2 * pages as u32).collect();
        let known = world.domain(&domain)?;
        let links = known.links();
        let matrix = known.matrix();
        let ranks = matrix.ranks(&power, &[]);
        let rank_s = least(&mut || matrix.ranks(&power, &[]).len());
        let time = |policy: Policy| {
            least(&mut || {
                let scores = policy.scores(&matrix, &ranks, power.damping, seed);
                best_by(&scores, pages / 12, |_| 0).len()
            })
        };
        let times = Times {
            pages,
            links,
            sc_s: time(Policy::Complement),
            share_s: time(Policy::Share),
            rank_s,
        };
        tell(&format!(
            "{pages} pages, {links} links: one round takes {:.3} s",
            times.sc_s
        ));
        all.push(times);
    }
    Ok(all)
}

/// Returns the smallest time of three runs of `work`, or of fewer once they took two seconds together: other load of
/// the machine only adds.
fn least(work: &mut dyn FnMut() -> usize) -> f64 {
    let (mut least, mut all) = (f64::INFINITY, 0.0);
    for _ in 0..3 {
        let began = Instant::now();
        std::hint::black_box(work());
        let took = began.elapsed().as_secs_f64();
        least = least.min(took);
        all += took;
        if all > 2.0 {
            break;
        }
    }
    least
}

fn time_table(times: &[Times]) -> String {
    let mut csv = String::from("pages,links,sc_s,share_s,rank_s\n");
    for t in times {
        let _ = writeln!(
            csv,
            "{},{},{:.4},{:.4},{:.4}",
            t.pages, t.links, t.sc_s, t.share_s, t.rank_s
        );
    }
    csv
}

fn time_plot(times: &[Times]) -> Plot {
    let line = |name: &str, of: &dyn Fn(&Times) -> f64| Line {
        name: name.into(),
        points: times.iter().map(|t| (t.links as f64, of(t))).collect(),
    };
    Plot {
        title: "Run time of a round".into(),
        subtitle: "domains of synthetic webs of hosts, one thread".into(),
        x: Axis {
            label: "links of the domain's pages".into(),
            scale: Scale::Log,
        },
        y: Axis {
            label: "seconds".into(),
            scale: Scale::Log,
        },
        lines: vec![
            line("sc", &|t| t.sc_s),
            line("share", &|t| t.share_s),
            line("PageRank", &|t| t.rank_s),
            // Scaled to the last point of PageRank.
            line("linear", &|t| {
                let last = times.last().unwrap_or(t);
                last.rank_s / last.links as f64 * t.links as f64
            }),
        ],
    }
}
