//! Plots of the experiments.

use super::Base;
use super::results::Results;
use super::table::{AUTO, CHURN, RATES, WHOLE, churned, name, percent, recovering, sizes, types};
use crate::errors::Errors;
use crate::experiment::{Reading, Sample};
use crate::plot::{Axis, Line, Plot, Scale};
use crate::strategy::Strategy;

pub(super) fn plots(
    base: &Base,
    results: &Results,
    offline: &[Errors],
) -> Vec<(&'static str, Plot)> {
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
    let (sizes, types, churned) = (sizes(), types(), churned());
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

/// Data that all plots share.
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

    /// Makes Figures 2 and 3, and corresponding plots of other errors.
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

    /// Compares the default window and estimator with the paper's.
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
