//! `cashrank compare`: how far two rankings are apart.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use cashrank::metrics::{Scores, compare, read_scores};
use cashrank::snapshot::Snapshot;
use cashrank::source::open_plain;
use cashrank::store::RealDisk;
use cashrank::{Error, Limits};

use super::common::{Exit, print, print_json};

/// Compare two rankings; the second is the reference.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank compare ranks exact.tsv.gz
  cashrank compare ranks/snapshots/000000050000.snapshot ranks --json")]
pub struct Args {
    /// A store (its current snapshot), a snapshot, or `name<TAB>score` lines (plain, gzip or zstd;
    /// one bare number a line: names are line numbers from 0).
    left: PathBuf,
    /// The same; the reference.
    right: PathBuf,
    /// One JSON object, for programs.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let comparison = compare(scores(&self.left)?, scores(&self.right)?)?;
        if self.json {
            return print_json(&comparison);
        }
        print(|out| Ok(write!(out, "{comparison}")?))
    }
}

fn scores(path: &Path) -> Result<Scores, Error> {
    if path.is_dir() {
        return of_snapshot(&Snapshot::latest(&RealDisk, path)?);
    }
    if Snapshot::is_snapshot(&RealDisk, path) {
        return of_snapshot(&Snapshot::open(&RealDisk, path)?);
    }
    let limits = Limits::default();
    let lines = BufReader::new(open_plain(path, &limits)?);
    read_scores(lines, &path.display().to_string(), &limits).map_err(own_error)
}

/// A damaged input comes back through `Read` as an I/O error around ours.
fn own_error(error: Error) -> Error {
    match error {
        Error::Io {
            path,
            action,
            source,
        } => match source.downcast::<Error>() {
            Ok(own) => own,
            Err(source) => Error::Io {
                path,
                action,
                source,
            },
        },
        other => other,
    }
}

fn of_snapshot(snapshot: &Snapshot) -> Result<Scores, Error> {
    let mut scores = Scores::new();
    for (page, name) in snapshot.pages().zip(snapshot.names()) {
        scores.push(name?.as_bytes(), page?.importance)?;
    }
    Ok(scores)
}
