//! `cashrank verify`: checks a store.

use std::io::Write;

use cashrank::Error;
use cashrank::snapshot::Snapshot;
use cashrank::store::{RealDisk, Report, open_view, verify_spool};

use super::common::{Exit, StoreArg, print, print_json, thousands};

/// Check a store: checksums, the conservation law, counts.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  cashrank verify --store ranks
While an ingest is running only the published snapshot is checked, and the names it uses; that is said.")]
pub struct Args {
    #[command(flatten)]
    store: StoreArg,
    /// One JSON object, for programs.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Verified {
    /// The checkpoint was checked; false: an ingest is running.
    checkpoint: bool,
    #[serde(flatten)]
    report: Option<Report>,
    /// Bytes of the stream in the spool that were checked.
    spool_bytes: u64,
    snapshot: Option<String>,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let store = &self.store.store;
        let (report, spool_bytes) = match open_view(&RealDisk, store) {
            Ok(view) => {
                let report = view.verify()?;
                let spool_bytes = verify_spool(&RealDisk, store, view.progress())?;
                view.check_database()?;
                (Some(report), spool_bytes)
            }
            Err(Error::Busy { .. }) => {
                eprintln!("an ingest is running: only the published snapshot is checked");
                (None, 0)
            }
            Err(error) => return Err(error.into()),
        };
        let snapshot = match Snapshot::latest(&RealDisk, store) {
            Ok(snapshot) => {
                snapshot.verify()?;
                Some(snapshot.path().display().to_string())
            }
            Err(Error::Refused(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let verified = Verified {
            checkpoint: report.is_some(),
            report,
            spool_bytes,
            snapshot,
        };
        if self.json {
            return print_json(&verified);
        }
        print(|out| write_plain(out, &verified))
    }
}

fn write_plain(out: &mut dyn Write, verified: &Verified) -> anyhow::Result<()> {
    if let Some(report) = &verified.report {
        writeln!(
            out,
            "checkpoint  sound: {} pages in {} cash chunks, all cash accounted for; {} names, {} history \
             rows, {} admissions, {} marks",
            thousands(report.pages),
            thousands(report.cash_chunks),
            thousands(report.names),
            thousands(report.history_rows),
            thousands(report.admissions),
            thousands(report.marks)
        )?;
        writeln!(
            out,
            "index       {:.1e} pairs of URLs expected to be taken for one page",
            report.expected_wrong_merges
        )?;
    }
    if verified.spool_bytes > 0 {
        writeln!(
            out,
            "spool       sound: {} bytes of the stream",
            thousands(verified.spool_bytes)
        )?;
    }
    match &verified.snapshot {
        Some(path) => writeln!(out, "snapshot    sound: {path}")?,
        None => writeln!(out, "snapshot    none published")?,
    }
    Ok(())
}
