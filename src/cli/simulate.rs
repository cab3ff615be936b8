//! `cashrank simulate`: says where it went.

use super::common::Exit;

/// Say where the simulations are now.
#[derive(clap::Args)]
#[command(hide = true, disable_help_flag = true)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _any: Vec<std::ffi::OsString>,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        anyhow::bail!(
            "simulate is now a program of its own, built from the source of cashrank: `cargo run \
             --release -p cashrank-lab -- simulate`, with the same options; crawl, local and figures replace simulate \
             --crawl, --local and --figures"
        )
    }
}
