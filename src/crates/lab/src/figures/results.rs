//! Results of the crawls, as tables.

use std::fmt::Write;

use cashrank::Result;
use cashrank_graph::metrics::kendall::tau_b;

use super::table::{VARIABLE_8, WEBS, fixed, interpolation, name, percent};
use crate::errors::Errors;
use crate::experiment::{Reading, Sample};
use crate::plot::Line;
use crate::web::Web;

/// Results of the crawls: by table, label and window.
pub(super) struct Results(pub Vec<(&'static str, String, Vec<Sample>)>);

impl Results {
    /// Returns the rows of one window of one crawl.
    pub fn rows<'r>(
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

    /// Returns a line over passes.
    pub fn line(
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

    /// Returns a line over change rates, from the last rows.
    pub fn over_rates(
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

    /// Formats a table as CSV.
    pub fn csv(&self, table: &str, first: &str) -> String {
        let mut out = format!("{first},{}\n", Sample::COLUMNS);
        for (_, label, samples) in self.0.iter().filter(|(t, _, _)| *t == table) {
            for sample in samples {
                // The header says that rates are in percent.
                let label = label.trim_end_matches(" %");
                let _ = writeln!(out, "{label},{}", sample.line());
            }
        }
        out
    }
}

pub(super) fn offline_csv(offline: &[Errors]) -> String {
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

/// Formats the paper's Figure 5, with its numbers next to ours.
pub(super) fn storage_csv(results: &Results) -> String {
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

/// Formats the degrees of the compared webs.
pub(super) fn degrees_csv(pages: u64, seed: u64) -> Result<String> {
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
