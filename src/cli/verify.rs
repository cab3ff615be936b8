//! `cashrank verify`: checks a store.

use std::io::Write;
use std::path::Path;

use cashrank::Error;
use cashrank_store::check::{CheckReport, Depth, VerifyReport, check};
use cashrank_store::store::{RealDisk, part_of};

use super::common::{
    self, Exit, MemoryArg, StoreArg, as_options, counted, pages, print, print_json, say, thousands,
};

/// Check a store for damage.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank verify --store ranks
  cashrank verify --deep --store ranks --json

Without --deep it reads what an ingest reads when it starts (all cash, which must add up, the fingerprints of URLs, \
and the end of the URLs), the marks, and the current snapshot.

With --deep it reads everything: also all URLs, each compared with its fingerprint; the index, rebuilt from the \
fingerprints, none of which may occur twice (about 12.5 bytes of memory a page); the history; all pages of \
store.redb; the warm start; and all snapshots.

Nothing is changed. Each damaged file is reported, with the consequences and what to do; the exit code is then 5. A \
file that cannot be read is not damage: the exit code is then 7. While an ingest is running, only snapshots and the \
URLs that they use are checked. This command never makes an ingest wait.")]
pub struct VerifyArgs {
    #[command(flatten)]
    store: StoreArg,
    /// Read everything.
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Verified<'a> {
    /// True if all data was read.
    deep: bool,
    /// True if the checkpoint was checked and is sound.
    checkpoint: bool,
    /// True while an ingest is running.
    busy: bool,
    #[serde(flatten)]
    report: Option<&'a VerifyReport>,
    /// Number of bytes of the spooled stream that were checked.
    spool_bytes: u64,
    snapshot: Option<String>,
    snapshots: u64,
    rankings: u64,
    damage: Vec<DamagedFile>,
    /// Files that could not be read.
    unreadable: Vec<String>,
    notes: &'a [String],
    strangers: Vec<String>,
}

#[derive(serde::Serialize)]
struct DamagedFile {
    file: String,
    what: String,
    meaning: Option<String>,
    remedy: Option<String>,
}

impl VerifyArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let depth = if self.deep { Depth::Deep } else { Depth::Quick };
        let checked = check(&RealDisk, &self.store.store, depth, self.memory.budget(3)?)?;
        if checked.busy {
            say!("an ingest is running: only snapshots are checked");
        }
        for note in &checked.notes {
            say!("{note}");
        }
        for path in &checked.strangers {
            say!("{}: not part of the store", path.display());
        }
        for error in &checked.damage {
            say!("cashrank: {error}");
            if let Some(part) = file_of(error)
                .filter(|_| is_damage(error))
                .and_then(part_of)
            {
                say!("    what this means: {}", part.meaning);
            }
        }
        if self.json {
            print_json(&verified(&checked, self.deep))?;
        } else {
            print(|out| write_plain(out, &checked))?;
        }
        let worst = |exit: &Exit| *exit == Exit::Damaged;
        let exits: Vec<Exit> = checked.damage.iter().map(Exit::from).collect();
        let exit = exits.iter().copied().find(worst);
        Ok(exit.or(exits.first().copied()).unwrap_or(Exit::Done))
    }
}

fn file_of(error: &Error) -> Option<&Path> {
    match error {
        Error::Damaged { path, .. } | Error::Io { path, .. } => Some(path),
        _ => None,
    }
}

/// Returns whether the error is damage rather than a failure to read.
fn is_damage(error: &Error) -> bool {
    !matches!(error, Error::Io { .. })
}

fn verified(checked: &CheckReport, deep: bool) -> Verified<'_> {
    let damage = |error: &Error| {
        let file = file_of(error);
        let part = file.and_then(part_of);
        DamagedFile {
            file: file.map_or(String::new(), |file| file.display().to_string()),
            what: match error {
                Error::Damaged { what, .. } => as_options(what),
                other => as_options(&other.to_string()),
            },
            meaning: part.map(|part| as_options(part.meaning)),
            remedy: part.map(|part| as_options(part.remedy)),
        }
    };
    Verified {
        deep,
        checkpoint: checked.checkpoint.is_some(),
        busy: checked.busy,
        report: checked.checkpoint.as_ref(),
        spool_bytes: checked.spool_bytes,
        snapshot: checked.current.as_deref().map(text),
        snapshots: checked.snapshots,
        rankings: checked.rankings,
        damage: checked
            .damage
            .iter()
            .filter(|e| is_damage(e))
            .map(damage)
            .collect(),
        unreadable: checked
            .damage
            .iter()
            .filter(|e| !is_damage(e))
            .map(|error| as_options(&error.to_string()))
            .collect(),
        notes: &checked.notes,
        strangers: checked.strangers.iter().map(|path| text(path)).collect(),
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn write_plain(out: &mut dyn Write, checked: &CheckReport) -> anyhow::Result<()> {
    match &checked.checkpoint {
        Some(report) => write_report(out, report)?,
        None if checked.busy => writeln!(out, "checkpoint  not checked")?,
        None if !checked.damage.iter().any(is_damage) => {
            writeln!(out, "checkpoint  not checked: it could not be read")?;
        }
        None => writeln!(out, "checkpoint  damaged")?,
    }
    if checked.spool_bytes > 0 {
        let bytes = thousands(checked.spool_bytes);
        writeln!(out, "spool       sound: {bytes} bytes of the stream")?;
    }
    match &checked.current {
        Some(path) => writeln!(out, "snapshot    sound: {}", path.display())?,
        None if checked.damage.is_empty() => writeln!(out, "snapshot    none published")?,
        None => writeln!(out, "snapshot    none that is sound and current")?,
    }
    if checked.snapshots > 1 {
        writeln!(out, "snapshots   sound: {}", thousands(checked.snapshots))?;
    }
    if checked.rankings > 0 {
        writeln!(out, "rankings    sound: {}", thousands(checked.rankings))?;
    }
    Ok(())
}

fn write_report(out: &mut dyn Write, report: &VerifyReport) -> anyhow::Result<()> {
    write!(
        out,
        "checkpoint  sound: {}, no cash lost or created; {}, {}",
        pages(report.pages),
        counted(report.fingerprints, "fingerprint", "fingerprints"),
        counted(report.marks, "mark", "marks")
    )?;
    if let (Some(rows), Some(links)) = (report.rows, report.row_links) {
        write!(out, "; {} of {}", common::links(links), pages(rows))?;
    }
    if let (Some(names), Some(rows), Some(admissions)) =
        (report.names, report.history_rows, report.admissions)
    {
        write!(
            out,
            "; {}, {} of the history, {}",
            counted(names, "name", "names"),
            counted(rows, "entry", "entries"),
            counted(admissions, "first link", "first links")
        )?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "index       the chance that two URLs were taken for one page is at most {:.1e}",
        report.expected_wrong_merges
    )?;
    Ok(())
}
