//! `cashrank rank`: rank, importance and other facts of given pages.

use std::io::Write;
use std::path::{Path, PathBuf};

use cashrank::{Error, PageState};
use cashrank_steer::answers::{Rank, Rankings, look_up};
use cashrank_store::memory::to_read;
use cashrank_store::snapshot::LevelRanking;
use cashrank_store::snapshot::export::{Format, LineWriter, NumberColumn, Page, Setup, TableOf};

use super::common::{
    Exit, MemoryArg, counted, lines, print, report_lines, say, shown, thousands, words, write_json,
};
use super::levels::{Basis, write_certain};
use super::output::OutputTarget;
use super::snapshots::RankingArgs;
use super::table::FactList;

/// Show rank, importance and last fetch of pages, or of sites.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank rank https://example.org/ https://example.org/about --store ranks
  cashrank rank example.org --level domain --store ranks
  cashrank rank --from urls.txt --to csv --store ranks > ranks.csv
  cut -f1 pages.tsv | cashrank rank - --store ranks
  cashrank rank https://example.org/ --store ranks-0 --store ranks-1

The percentile is the share of pages, in percent, that do not rank higher. Of several pages, one is certainly more \
important if they differ by more than the certified bound on errors.

--from, and - in place of URLs, print a table with the columns url (in canonical form), rank, importance and state: \
crawled, not crawled, failed, gone or unknown.")]
pub struct RankArgs {
    /// URLs in any form, or names of nodes or sites; `-`: a list on standard input, as with --from.
    #[arg(value_name = "URL", required_unless_present = "from")]
    urls: Vec<String>,
    /// Look up the URLs in this file, one per line, and print a table; `-`: standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "urls")]
    from: Option<PathBuf>,
    /// Print a table in this format [default with --from: tsv].
    #[arg(long, value_name = "FORMAT", value_parser = words::<Format>(TABLES.map(|of| (of.name(), of.about()))), conflicts_with = "json")]
    to: Option<Format>,
    #[command(flatten)]
    ranking: RankingArgs,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print one JSON object per line, for programs.
    #[arg(long)]
    json: bool,
}

impl RankArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let opened = self.ranking.open(&self.memory)?;
        let rankings = Rankings(&opened);
        let standard = (self.urls == ["-"]).then(|| "-".into());
        if let Some(list) = self.from.clone().or(standard) {
            return self.write_table(rankings, lines(&[list]));
        }
        if self.to.is_some() {
            let urls = self.urls.iter().map(|url| Ok(url.clone().into_bytes()));
            return self.write_table(rankings, urls);
        }
        let ranking = rankings.first();
        let snapshot = ranking.snapshot();
        let answers = rankings.ranks_of(&self.urls)?;
        let bound = ranking.bound_l1();
        let basis = match ranking.computed() {
            Some(_) => Basis::Latest,
            None => Basis::of(snapshot.info()),
        };
        let known = self.urls.iter().zip(&answers);
        let known = known.filter_map(|(url, (_, rank))| Some((&**url, rank.importance?)));
        let unknown = answers.iter().any(|(_, rank)| !rank.known);
        print(|out| {
            for (_, rank) in &answers {
                if self.json {
                    write_json(out, rank)?;
                } else {
                    write_plain(out, rank, ranking)?;
                }
            }
            if !self.json {
                write_certain(out, known.collect(), (bound, basis))?;
            }
            Ok(())
        })?;
        Ok(if unknown { Exit::Unknown } else { Exit::Done })
    }

    fn write_table(
        &self,
        rankings: Rankings<'_>,
        lines: impl Iterator<Item = Result<Vec<u8>, Error>>,
    ) -> anyhow::Result<Exit> {
        let format = self.to.unwrap_or(if self.json {
            Format::Jsonl
        } else {
            Format::Tsv
        });
        let setup = Setup {
            table: TableOf::LookedUp,
            score: NumberColumn::of_measure(self.ranking.level.measure()),
            ..Setup::default()
        };
        let held = rankings.held_bytes() + to_read(rankings.len());
        let memory = self.memory.budget().map(|of| of.saturating_sub(held));
        let found = OutputTarget::Standard.put(|out| {
            let path = Path::new("standard output");
            let mut table = LineWriter::new(format, &setup, out, path)?;
            let found = look_up(rankings, lines, memory, |row| {
                if row.rank > 0 {
                    return table.push(row);
                }
                // An unknown name may contain control characters.
                table.push(&Page {
                    url: shown(&row.url),
                    ..Page::default()
                })
            })?;
            table.finish()?;
            Ok(found)
        })?;
        report_lines("--from", found.skipped);
        if found.unknown == 0 {
            return Ok(Exit::Done);
        }
        let all = thousands(found.known + found.unknown);
        say!("{} of {all} are unknown", thousands(found.unknown));
        Ok(Exit::Unknown)
    }
}

const TABLES: [Format; 3] = [Format::Tsv, Format::Csv, Format::Jsonl];

fn write_plain(out: &mut dyn Write, known: &Rank, ranking: &LevelRanking) -> anyhow::Result<()> {
    let url = shown(&known.url);
    let (Some(importance), Some(rank), Some(percentile), Some(visits)) =
        (known.importance, known.rank, known.percentile, known.visits)
    else {
        let hint = if !ranking.level().is_page() {
            format!(
                ": give the name of a {}, as in `top`",
                ranking.level().singular()
            )
        } else if url.contains("://") || !url.contains('.') {
            String::new()
        } else {
            format!(": for a page give its URL with the scheme, as in https://{url}")
        };
        return Ok(writeln!(
            out,
            "{url}
  not known{hint}"
        )?);
    };
    writeln!(out, "{url}")?;
    let by = ranking.computed().map(|info| info.measure.as_str());
    let crawled = match (visits, &known.last_fetch) {
        (0, _) if known.state == Some(PageState::Failed) => "not crawled: fetches failed".into(),
        (0, _) => "not crawled: known only from links".into(),
        (1, None) => "once".into(),
        (1, Some(at)) => format!("once, at {at}"),
        (visits, None) => format!("{} times", thousands(visits)),
        (visits, Some(at)) => format!("{} times, last at {at}", thousands(visits)),
    };
    let share = |share: f64| format!("{share:.6e}, of 1 for all");
    let changed = known.compared.zip(known.changed);
    let changed = changed.filter(|(compared, _)| *compared > 0);
    let failed = known.failed.filter(|failed| *failed > 0);
    let mut facts = FactList::new(out, "  ", 11);
    match by {
        None => {
            let of = ranking.level().plural();
            facts.add("importance", format!("{} {of}", share(importance)))?;
        }
        Some(by) => facts.add("score", format!("{importance:.6e}, {by}"))?,
    }
    facts.add("rank", thousands(rank))?;
    facts.add("percentile", format!("{percentile:.3}"))?;
    facts.add("pages", known.pages.map(thousands))?;
    facts.add("crawled", crawled)?;
    if known.state == Some(PageState::Gone) {
        let text = "gone: it answered 404 or 410 when it was last fetched";
        facts.add("state", text.to_owned())?;
    }
    facts.add("cash", known.cash.map(share))?;
    facts.add("distributed", known.distributed.map(share))?;
    let looks = changed.map(|(compared, changed)| {
        let looks = counted(compared, "look", "looks");
        format!("at {} of {looks}", thousands(changed))
    });
    facts.add("changed", looks)?;
    let last = |failed| format!("the last {}", counted(failed, "fetch", "fetches"));
    Ok(facts.add("failed", failed.map(last))?)
}
