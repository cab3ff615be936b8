//! Output of the list of pages to fetch: its format and its file, round by round.

use std::path::{Path, PathBuf};

use cashrank_steer::schedule::{Candidate, Taker};

use crate::cli::output::OutputTarget;
use crate::cli::values::takers;

/// How a list of pages is written.
#[derive(clap::Args)]
pub struct ListArgs {
    /// The format of the list, as of `next` [default: plain].
    #[arg(long, value_name = "FORMAT", value_parser = takers())]
    pub to: Option<Taker>,
    /// Write the list to FILE (`-`: standard output).
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace files that exist.
    #[arg(long)]
    pub force: bool,
}

impl ListArgs {
    pub fn to(&self) -> Taker {
        self.to.unwrap_or(Taker::Plain)
    }

    /// Opens the list's target; refuses to replace a file without `--force`, or to write binary data to a terminal.
    pub fn open(&self) -> anyhow::Result<OutputTarget> {
        let output = OutputTarget::open(self.output.as_deref(), self.force)?;
        output.must_show(self.to().name(), self.to().is_text())?;
        Ok(output)
    }

    pub fn is_standard(&self) -> anyhow::Result<bool> {
        Ok(OutputTarget::of(self.output.as_deref())? == OutputTarget::Standard)
    }

    /// Refuses `rounds` rounds if one of their lists would replace a file without `--force`.
    pub fn check_rounds(&self, rounds: u64) -> anyhow::Result<()> {
        (1..=rounds).try_for_each(|round| {
            let name = self.name(round);
            OutputTarget::open(name.as_deref(), self.force).map(drop)
        })
    }

    /// Writes the list of a round. On standard output, an empty line ends it. Without pages, no file is written.
    pub fn write_round(&self, pages: &[Candidate], round: u64) -> anyhow::Result<()> {
        let output = OutputTarget::of(self.name(round).as_deref())?;
        if output != OutputTarget::Standard {
            return if pages.is_empty() {
                Ok(())
            } else {
                output.put(|out| Ok(self.to().write(pages, out)?))
            };
        }
        output.put(|out| {
            self.to().write(pages, out)?;
            Ok(writeln!(out)?)
        })
    }

    /// Returns the name of a round's file: `*` stands for the number of the round.
    fn name(&self, round: u64) -> Option<PathBuf> {
        let name = self.output.as_deref().map(Path::to_string_lossy)?;
        Some(name.replace('*', &round.to_string()).into())
    }
}
