//! `cashrank-lab figures`: all experiments of Abiteboul, Preda and Cobena (2003), as tables and plots.

use std::num::NonZero;
use std::path::PathBuf;

use cashrank_lab::figures::figures;

use super::web::WebArgs;
use super::{progress, threads};

/// Make the experiments of the AOPIC paper, as tables (CSV) and plots (SVG).
///
/// If interrupted, the same command continues: until all crawls are done, the finished ones are in the folder's
/// unfinished.jsonl.
#[derive(clap::Args)]
pub struct Args {
    /// The folder for tables and plots.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    web: WebArgs,
    /// The random seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of crawls at a time [default: one for each processor]. Results do not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

impl Args {
    pub fn run(self) -> anyhow::Result<()> {
        let (base, _) = self.web.base()?;
        figures(
            &base,
            self.seed,
            threads(self.threads),
            &progress,
            &self.folder,
        )?;
        progress(&format!("the figures are in {}", self.folder.display()));
        Ok(())
    }
}
