//! `cashrank verify`: checks a store.

use std::io::Write;
use std::path::Path;

use cashrank::Error;
use cashrank_store::check::{CheckReport, Depth, VerifyReport, check};
use cashrank_store::store::{RealDisk, part_of};

use super::common::{
    self, Exit, MemoryArg, StoreArg, as_options, counted, pages, print, print_json, say, thousands,
    worst_of,
};
use super::json::{joined, object};
use super::table::FactList;

/// Check a store for damage.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank verify --store ranks
  cashrank verify --deep --store ranks --json

Without --deep it reads what an ingest reads when it starts (all cash, which must add up, fingerprints, and the end of \
the URLs), the marks, and the current snapshot. With --deep it reads every file (about 12.5 bytes of memory a page).

Nothing is changed. Each damaged file is reported, with what to do; the exit code is then 5, or 7 if a file cannot be \
read. While an ingest is running, only snapshots and the URLs that they use are checked.")]
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

impl VerifyArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let depth = if self.deep { Depth::Deep } else { Depth::Quick };
        let checked = check(&RealDisk, &self.store.store, depth, self.memory.budget())?;
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
            let file = file_of(error).filter(|_| is_damage(error));
            if let Some((meaning, _)) = file.and_then(part_of) {
                say!("    what this means: {meaning}");
            }
        }
        if self.json {
            print_json(&verified(&checked, self.deep))?;
        } else {
            print(|out| write_plain(out, &checked))?;
        }
        Ok(worst_of(&checked.damage))
    }
}

fn file_of(error: &Error) -> Option<&Path> {
    match error {
        Error::Damaged { path, .. } | Error::Io { path, .. } => Some(path),
        _ => None,
    }
}

fn is_damage(error: &Error) -> bool {
    !matches!(error, Error::Io { .. })
}

fn verified(checked: &CheckReport, deep: bool) -> impl serde::Serialize {
    let text = |path: &Path| path.display().to_string();
    let (damage, unreadable): (Vec<&Error>, Vec<&Error>) =
        checked.damage.iter().partition(|error| is_damage(error));
    let damage = damage.into_iter().map(|error| {
        let file = file_of(error);
        let part = file.and_then(part_of);
        object! {
            "file": file.map_or(String::new(), text),
            "what": match error {
                Error::Damaged { what, .. } => as_options(what),
                other => as_options(&other.to_string()),
            },
            "meaning": part.map(|(meaning, _)| as_options(meaning)),
            "remedy": part.map(|(_, remedy)| as_options(remedy)),
        }
    });
    let unreadable = unreadable.into_iter();
    let unreadable = unreadable.map(|error| as_options(&error.to_string()));
    let strangers = checked.strangers.iter().map(|path| text(path));
    let head = object! {
        "deep": deep,
        // True if the checkpoint was checked and is sound; its counts follow.
        "checkpoint": checked.checkpoint.is_some(),
        "busy": checked.busy,
    };
    let tail = object! {
        "spool_bytes": checked.spool_bytes,
        "snapshot": checked.current.as_deref().map(text),
        "snapshots": checked.snapshots,
        "rankings": checked.rankings,
        "damage": damage.collect::<Vec<_>>(),
        "unreadable": unreadable.collect::<Vec<_>>(),
        "notes": &checked.notes,
        "strangers": strangers.collect::<Vec<_>>(),
    };
    joined(joined(head, checked.checkpoint.as_ref()), tail)
}

fn write_plain(out: &mut dyn Write, checked: &CheckReport) -> anyhow::Result<()> {
    let is_sound = !checked.damage.iter().any(is_damage);
    let checkpoint = match &checked.checkpoint {
        Some(report) => report_text(report),
        None if checked.busy => "not checked".into(),
        None if is_sound => "not checked: it could not be read".into(),
        None => "damaged".into(),
    };
    let merges = checked.checkpoint.as_ref().map(|report| {
        format!(
            "the chance that two URLs were taken for one page is at most {:.1e}",
            report.expected_wrong_merges
        )
    });
    let spool = thousands(checked.spool_bytes);
    let spool = format!("sound: {spool} bytes of the stream");
    let snapshot = match &checked.current {
        Some(path) => format!("sound: {}", path.display()),
        None if checked.damage.is_empty() => "none published".into(),
        None => "none that is sound and current".into(),
    };
    let sound = |n: u64, least: u64| (n >= least).then(|| format!("sound: {}", thousands(n)));
    let mut facts = FactList::new(out, "", 11);
    facts.add("checkpoint", checkpoint)?;
    facts.add("index", merges)?;
    facts.add("spool", Some(spool).filter(|_| checked.spool_bytes > 0))?;
    facts.add("snapshot", snapshot)?;
    facts.add("snapshots", sound(checked.snapshots, 2))?;
    Ok(facts.add("rankings", sound(checked.rankings, 1))?)
}

fn report_text(report: &VerifyReport) -> String {
    let mut text = format!(
        "sound: {}, no cash lost or created; {}, {}",
        pages(report.pages),
        counted(report.fingerprints, "fingerprint", "fingerprints"),
        counted(report.marks, "mark", "marks")
    );
    if let (Some(rows), Some(links)) = (report.rows, report.row_links) {
        text += &format!("; {} of {}", common::links(links), pages(rows));
    }
    if let (Some(names), Some(rows), Some(admissions)) =
        (report.names, report.history_rows, report.admissions)
    {
        text += &format!(
            "; {}, {} of the history, {}",
            counted(names, "name", "names"),
            counted(rows, "entry", "entries"),
            counted(admissions, "first link", "first links")
        );
    }
    text
}
