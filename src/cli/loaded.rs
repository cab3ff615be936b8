//! Options of commands that read inputs into a graph in memory, and reports about these inputs.

use std::ffi::OsString;

use cashrank::Limits;
use cashrank_base::rules::Follow;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::{Config, SelfLinks};
use cashrank_ingest::load::{LoadReport, LoadedGraph, load};

use super::common::{Exit, as_options, counted, note_keyboard, parsed, report_skipped, self_links};
use super::missing;
use super::rules::RulesArgs;
use super::values::{FormatArg, formats};
use crate::cli::common::say;

/// How inputs are read.
#[derive(clap::Args)]
pub struct LoadArgs {
    /// The format of the inputs (see formats/). auto recognises it from the content [default: auto].
    #[arg(long, value_parser = formats())]
    format: Option<FormatArg>,
    /// Weights of links, as for `ingest`.
    #[arg(long, value_name = "WEIGHTS", value_parser = parsed::<Follow>)]
    follow: Option<Follow>,
    /// What to do with links from a page to itself [default: drop].
    #[arg(long, value_name = "HOW", value_parser = self_links())]
    self_links: Option<SelfLinks>,
    #[command(flatten)]
    rules: RulesArgs,
}

impl LoadArgs {
    /// Returns the first of these options that is given. They apply to inputs only: a store has settings of its own.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.format.is_some(), "--format"),
            (self.follow.is_some(), "--follow"),
            (self.self_links.is_some(), "--self-links"),
        ];
        let given = given.into_iter().find(|given| given.0);
        given.map(|given| given.1).or(self.rules.given())
    }

    /// Reads the inputs into a graph in at most `memory` bytes; `command` is named in messages.
    pub fn load(
        &self,
        inputs: &[OsString],
        command: &str,
        memory: Option<u64>,
    ) -> anyhow::Result<LoadedGraph> {
        let inputs: Vec<InputName> = inputs.iter().map(|i| InputName::parse(i)).collect();
        note_keyboard(&inputs, &format!("{command} -"));
        let mut config = Config::default();
        config.self_links = self.self_links.unwrap_or(config.self_links);
        config.follow = self.follow.clone().unwrap_or_default();
        let limits = Limits {
            memory,
            ..Limits::default()
        };
        let rules = self.rules.resolve(None)?;
        Ok(load(
            &inputs,
            self.format.and_then(|format| format.0),
            &config,
            &rules,
            &limits,
        )?)
    }
}

/// Reports inputs that lack fields, a caveat about their formats, and lines that return to a source.
pub fn report_remarks(report: &LoadReport) {
    for (input, missing) in &report.missing {
        say!("warning: {input}: {}", missing::message(missing));
    }
    if let Some(caveat) = report.caveat {
        say!("{}", as_options(caveat));
    }
    if report.ungrouped > 0 {
        say!("{}", ungrouped(report.ungrouped));
    }
}

/// Returns the warning that sources of a list of links came back.
pub fn ungrouped(sources: u64) -> String {
    format!(
        "{} to an earlier source: each group of lines counts as a crawl of its own. If the file is not grouped by source, \
         sort it first (edges: sort -s -k1,1; crawl-log: sort -s -k6,6; csv-links: sort -s -t, -k1,2)",
        counted(sources, "line returns", "lines return")
    )
}

/// Reports remarks on the inputs after the result is written. Returns the exit code.
pub fn report_loaded(report: &LoadReport) -> Exit {
    report_remarks(report);
    if report.timeless > 0 {
        say!(
            "used without a time, because it cannot be read: {} (bad-time)",
            counted(report.timeless, "record", "records")
        );
    }
    if report.skipped > 0 {
        report_skipped(report.skipped);
        return Exit::Skipped;
    }
    Exit::Done
}
