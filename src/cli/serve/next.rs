//! What `/next` is asked for, by the names of `cashrank next`'s options: the command's own parser reads them.

use std::ffi::OsString;
use std::path::Path;

use cashrank::schedule::NextOptions;
use cashrank_serve::{NextQuery, Problem, Result};
use clap::Parser;

use crate::cli::next;

/// Options that may be asked for. The others are about files, or are given otherwise.
const VALUES: [&str; 10] = [
    "strategy",
    "budget",
    "per-host",
    "per-domain",
    "scope",
    "older-than",
    "retry-after",
    "max-failures",
    "as-of",
    "focus",
];
/// Options without a value: `1`, or nothing, is theirs.
const FLAGS: [&str; 2] = ["not-fetched", "refetch"];

#[derive(Parser)]
#[command(disable_help_flag = true)]
struct Words {
    #[command(flatten)]
    next: next::Args,
}

/// The options of a request.
pub fn options(store: &Path, query: &NextQuery) -> Result<NextOptions> {
    let mut words = vec![OsString::from("next"), "--store".into(), store.into()];
    for (name, value) in &query.options {
        if FLAGS.contains(&&**name) && matches!(&**value, "" | "1") {
            words.push(format!("--{name}").into());
        } else if FLAGS.contains(&&**name) {
            return Err(Problem::Asked(format!(
                "{name}={value}: it has no value, or 1"
            )));
        } else if VALUES.contains(&&**name) {
            words.push(format!("--{name}={value}").into());
        } else {
            return Err(Problem::Asked(format!(
                "{name}: there is no such parameter; there is n, to, {}, {}",
                VALUES.join(", "),
                FLAGS.join(", ")
            )));
        }
    }
    let words = Words::try_parse_from(words).map_err(|error| Problem::Asked(told(&error)))?;
    let mut options = words
        .next
        .options()
        .map_err(|error| Problem::Asked(error.to_string().replace("--", "")))?;
    options.count = query.n;
    Ok(options)
}

/// What is wrong, without what is of the command line alone.
fn told(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\n").next().unwrap_or_default();
    text.trim_start_matches("error: ").trim().replace("--", "")
}
