//! `cashrank history`: the ranks of pages over the snapshots that a store keeps.

use std::io::Write;

use cashrank_steer::answers::{History, HistoryOptions, Moment, history};
use cashrank_store::store::RealDisk;

use super::common::{
    Exit, MemoryArg, StoreArg, positive, print, say, shown, thousands, time, write_json,
};
use super::levels::{LevelArgs, rounded_up};
use super::table::write_table;

/// Show how the ranks of pages or sites changed, snapshot by snapshot.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank history https://example.org/ --store ranks
  cashrank history https://example.org/ -n 10 --json --store ranks
  cashrank history example.org --level domain --store ranks

Importance falls when pages are added; its ratio to the mean of all pages does not. `ingest --keep-snapshots` says which snapshots stay.")]
pub struct HistoryArgs {
    /// URLs in any form, or names of nodes or sites.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    #[command(flatten)]
    store: StoreArg,
    /// At most this many snapshots, the newest [default: all].
    #[arg(short, value_name = "N", value_parser = positive)]
    n: Option<u64>,
    #[command(flatten)]
    level: LevelArgs,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print one JSON object per URL, for programs.
    #[arg(long)]
    json: bool,
}

impl HistoryArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let options = HistoryOptions {
            ranking: self.level.name(self.level.measure()),
            most: self.n.map(|n| n.try_into().unwrap_or(usize::MAX)),
            memory: self.level.budget(&self.memory),
        };
        let mut failed = None;
        let histories = history(
            &RealDisk,
            &self.store.store,
            &self.urls,
            &options,
            &mut |error| {
                say!("cashrank: {error}");
                failed = failed.or(Some(Exit::from(&error)));
                Ok(())
            },
        )?;
        print(|out| {
            for history in &histories {
                if self.json {
                    write_json(out, history)?;
                } else {
                    write_plain(out, history, self.level.measure())?;
                }
            }
            Ok(())
        })?;
        let unknown = histories.iter().any(|history| !history.known);
        let usual = if unknown { Exit::Unknown } else { Exit::Done };
        Ok(failed.unwrap_or(usual))
    }
}

fn write_plain(
    out: &mut dyn Write,
    history: &History,
    measure: Option<&str>,
) -> anyhow::Result<()> {
    writeln!(out, "{}", shown(&history.url))?;
    if !history.known {
        return Ok(writeln!(out, "  not known in any snapshot")?);
    }
    // Scores of other measures are on scales of their own.
    let score = measure.unwrap_or("importance");
    let columns = [
        ("snapshot", 15),
        ("crawled until", -20),
        ("rank", 15),
        (score, score.len().max(11) as isize),
        ("to mean", 9),
        ("error up to", 11),
    ];
    let row = |moment: &Moment| {
        let bound = moment.bound_l1.filter(|bound| *bound < 2.0);
        let bound = bound.map_or("-".into(), rounded_up);
        let importance = moment.importance.map(|of| format!("{of:.4e}"));
        [
            moment.snapshot.to_string(),
            moment.time.map_or("unknown".into(), |at| time(Some(at))),
            moment.rank.map_or("not known yet".into(), thousands),
            importance.unwrap_or_default(),
            match moment.ratio() {
                None => String::new(),
                Some(ratio) if measure.is_none() => format!("{ratio:.2}"),
                Some(_) => "-".into(),
            },
            moment.rank.map_or(String::new(), |_| bound),
        ]
    };
    let rows = history.history.iter().map(row);
    Ok(write_table(out, "  ", columns, rows)?)
}
