//! Stand-ins for commands that this build lacks: each says that it is missing, and how to get it.

use std::ffi::OsString;

use cashrank::Error;
use cashrank_base::model::Feature;

use super::common::Exit;

/// Defines the arguments of a command that this build lacks: it accepts any arguments and refuses to run.
macro_rules! absent {
    ($name:ident, $feature:literal, $about:literal) => {
        #[derive(clap::Args)]
        #[command(
            about = concat!($about, " (this build has none: cargo install --features ", $feature, ")"),
            disable_help_flag = true
        )]
        pub struct $name {
            #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
            _rest: Vec<OsString>,
        }

        impl $name {
            pub fn run(self) -> anyhow::Result<Exit> {
                refuse($feature)
            }
        }
    };
}

#[cfg(not(feature = "man"))]
absent!(Man, "man", "Write man pages to a folder");
#[cfg(not(feature = "serve"))]
absent!(Serve, "serve", "Answer questions about a store over HTTP");

fn refuse(feature: &str) -> anyhow::Result<Exit> {
    let refused =
        Feature::require(feature).map_err(|why| Error::Usage(format!("{feature}: {why}")));
    refused.map(|()| Exit::Done).map_err(Into::into)
}
