//! Stand-in for commands that this build lacks: it says which feature is missing, and how to get it.

use std::ffi::OsString;

use cashrank::Error;
use cashrank_base::model::Feature;

use super::common::Exit;

/// Arguments of a command that this build lacks: it accepts any, and refuses to run.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Absent {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

impl Absent {
    pub fn run(self, feature: &str) -> anyhow::Result<Exit> {
        Feature::require(feature).map_err(|why| Error::Usage(format!("{feature}: {why}")))?;
        Ok(Exit::Done)
    }
}
