//! Table of all crawls.

use cashrank_graph::engine::{Config, Estimator, Span, WindowPolicy};

use crate::crawl::MONTH;
use crate::experiment::{Changes, Reading, Setting};
use crate::strategy::Strategy;
use crate::web::{InDegree, OutDegree};

/// The paper's change rates, as shares of all pages in a pass.
pub(super) const RATES: [f64; 7] = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3];
/// Shares of pages that appear in a pass; as many vanish.
pub(super) const CHURN: [f64; 4] = [0.001, 0.01, 0.03, 0.1];
/// Number of passes of most experiments: "For each change rate the graph is crawled ten times".
const PASSES: u32 = 10;
/// Number of passes after which the longest windows, of 8 months, have been full for a long time.
const LONG: u32 = 24;

const VARIABLE_4: Reading = (WindowPolicy::Variable(4), None);
pub(super) const VARIABLE_8: Reading = (WindowPolicy::Variable(8), None);
const VARIABLE_16: Reading = (WindowPolicy::Variable(16), None);
pub(super) const WHOLE: Reading = (WindowPolicy::Whole, Some(Estimator::Distributed));
pub(super) const AUTO: Reading = (WindowPolicy::Auto, None);

fn months(months: i64) -> Span {
    Span::Seconds(months * MONTH)
}

pub(super) fn fixed(length: i64, least: u32) -> Reading {
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

pub(super) fn interpolation(length: i64) -> Reading {
    (WindowPolicy::Interpolation(months(length)), None)
}

/// Names a window in plots.
pub(super) fn name((window, estimator): Reading) -> String {
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

fn in_months(span: Span) -> String {
    match span {
        Span::Seconds(seconds) => match seconds / MONTH {
            1 => "1 month".into(),
            months => format!("{months} months"),
        },
        turnovers => format!("{turnovers} turnovers"),
    }
}

/// Crawl of the table.
pub(super) struct Job {
    /// Table that it belongs to.
    pub table: &'static str,
    /// Label that distinguishes it from others of that table.
    pub label: String,
    /// Web, if it is not the base.
    pub web: Option<(InDegree, OutDegree)>,
    pub setting: Setting,
}

impl Job {
    fn new(table: &'static str, label: String, setting: Setting) -> Job {
        Job {
            table,
            label,
            web: None,
            setting,
        }
    }

    /// Returns whether it takes far longer than the others: hubs with many links each are crawled often.
    pub fn is_long(&self) -> bool {
        let like_in = matches!(self.web, Some((_, OutDegree::LikeIn)));
        like_in && self.setting.strategy == Strategy::Greedy
    }
}

/// Returns all crawls.
pub(super) fn jobs(seed: u64) -> Vec<Job> {
    let setting = Setting {
        seed,
        ..Setting::default()
    };
    let mut jobs = Vec::new();
    for strategy in Strategy::ALL {
        let convergence = Setting {
            strategy,
            windows: vec![WHOLE, AUTO],
            ..setting.clone()
        };
        let growing = Setting {
            growing: true,
            recycle_after: Config::default().recycle_after,
            ..convergence.clone()
        };
        let label = strategy.to_string();
        jobs.push(Job::new("convergence", label.clone(), convergence));
        jobs.push(Job::new("growing", label, growing));
    }
    let many_links = (InDegree::Poisson(50.0), OutDegree::Poisson);
    jobs.push(Job {
        web: Some(many_links),
        ..Job::new("many-links", "greedy".into(), setting.clone())
    });
    for web in WEBS {
        for strategy in Strategy::ALL {
            let label = format!("{strategy} on {} out {}", web.0, web.1);
            let setting = Setting {
                strategy,
                samples: 0,
                ..setting.clone()
            };
            jobs.push(Job {
                web: Some(web),
                ..Job::new("webs", label, setting)
            });
        }
    }
    jobs.extend(changing(&setting));
    jobs
}

/// Webs that are compared (section 4.2, the graph model).
pub(super) const WEBS: [(InDegree, OutDegree); 4] = [
    (InDegree::Power(2.1), OutDegree::Poisson),
    (InDegree::Power(2.1), OutDegree::Power),
    (InDegree::Power(2.1), OutDegree::LikeIn),
    (InDegree::Poisson(5.0), OutDegree::Poisson),
];

/// Returns the crawls of webs that change.
fn changing(setting: &Setting) -> Vec<Job> {
    let rate = |in_degree| Changes {
        in_degree,
        ..Changes::NONE
    };
    let last = |windows, changes| Setting {
        windows,
        changes,
        samples: 0,
        ..setting.clone()
    };
    let mut jobs = Vec::new();
    for share in RATES {
        let mut windows = sizes();
        windows.extend(types().into_iter().filter(|of| !sizes().contains(of)));
        jobs.push(Job::new(
            "figure4",
            percent(share),
            last(windows, rate(share)),
        ));
    }
    for share in CHURN {
        let changes = Changes {
            appear: share,
            vanish: share,
            ..Changes::NONE
        };
        jobs.push(Job::new("churn", percent(share), last(churned(), changes)));
    }
    for share in [0.0, 0.01] {
        let setting = Setting {
            windows: types(),
            changes: rate(share),
            passes: LONG,
            ..setting.clone()
        };
        jobs.push(Job::new("figure6", percent(share), setting));
    }
    for strategy in [Strategy::Greedy, Strategy::Cycle] {
        let setting = Setting {
            strategy,
            windows: recovering(),
            changes: Changes {
                after: PASSES,
                until: Some(PASSES + 1),
                ..rate(0.1)
            },
            passes: PASSES + 6,
            ..setting.clone()
        };
        jobs.push(Job::new("recovery", strategy.to_string(), setting));
    }
    jobs
}

/// Returns windows of the paper's Figure 4, and others.
pub(super) fn sizes() -> Vec<Reading> {
    vec![
        VARIABLE_4,
        VARIABLE_8,
        VARIABLE_16,
        interpolation(4),
        interpolation(2),
        WHOLE,
        AUTO,
    ]
}

/// Returns windows of the paper's Figures 5 and 6.
pub(super) fn types() -> Vec<Reading> {
    vec![
        VARIABLE_8,
        fixed(8, 0),
        fixed(4, 0),
        fixed(4, 3),
        interpolation(4),
    ]
}

/// Returns windows for pages that appear and vanish.
pub(super) fn churned() -> Vec<Reading> {
    vec![VARIABLE_4, VARIABLE_8, interpolation(4), WHOLE, AUTO]
}

/// Returns windows in which a change is observed.
pub(super) fn recovering() -> Vec<Reading> {
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

/// Formats a rate, to a tenth of a percent.
pub(super) fn percent(rate: f64) -> String {
    format!("{} %", (1000.0 * rate).round() / 10.0)
}
