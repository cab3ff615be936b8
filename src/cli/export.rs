//! `cashrank export`: the whole ranking or the link graph as a file.

use std::cell::Cell;
use std::path::PathBuf;

use cashrank::{Change, Result};
use cashrank_graph::rank::measures::{ScoreKind, measure};
use cashrank_ingest::records::{Dumped, RecordFile, RecordFormat, SortRoom, dump, names_of};
use cashrank_steer::answers::Rankings;
use cashrank_store::memory::to_read;
use cashrank_store::snapshot::export::{
    Content, ExportCounts, Format, MOST_SORTING, NumberColumn, Order, Page, Score, Setup, TableOf,
    export, ordered,
};
use cashrank_store::snapshot::links::{LinkGraph, write_common_crawl, write_ranks, write_tsv};
use cashrank_store::snapshot::{LevelRanking, Snapshot, SnapshotSelector};
use cashrank_store::store::RealDisk;

use super::common::{Exit, MemoryArg, counted, pages as common_pages, parsed, say, words};
use super::inputs::first_given;
use super::levels::{SelectionArgs, SiteGraphArgs, counted_of, note_parameters};
use super::output::{Keep, OutputTarget, SummedOutputArgs, folder_of};
use super::snapshots::{RankingArgs, check_one};

/// Write a ranking for other programs, as a table or for a search engine; or links.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank export --to tsv --sort rank --store ranks | head
  cashrank export --to parquet --measure importance,harmonic,in-degree -o ranks.parquet --store ranks
  cashrank export --links --level host --site-links once --to tsv --store ranks
  cashrank export --records -o store.jsonl.zst --store ranks
  cashrank export --to common-crawl --level domain --store ranks | gzip > domain-ranks.txt.gz
  cashrank export --to jsonl --since 2026-11-01 --store ranks
  cashrank export --to elasticsearch --into pages --score log --store ranks | split -l 20000 - bulk.
  cashrank export --to parquet --sort rank -o ranks.parquet --store ranks-0 --store ranks-1

Of sites, url is the name of the site.")]
#[command(mut_arg("measure", |arg| arg.value_delimiter(',').help(MEASURES)))]
pub struct ExportArgs {
    #[command(flatten)]
    ranking: RankingArgs,
    #[command(flatten)]
    pages: SelectionArgs,
    /// The format to write; of links: tsv or common-crawl.
    #[arg(long, value_name = "FORMAT", value_parser = all_formats(), required_unless_present = "records")]
    to: Option<String>,
    /// Write what the store knows as crawl records, from which `ingest` makes the same store again.
    ///
    /// -o names a file that ends in .jsonl, .jsonl.gz, .jsonl.zst or .parquet.
    #[arg(long, conflicts_with_all = ["to", "links", "sort", "cash", "without_gone", "score", "score_field", "into", "since",
        "level", "measure", "scope", "numbers"])]
    records: bool,
    /// Write the links that the store keeps, sorted by source; with --level, those between sites.
    ///
    /// `tsv` is a link per line; `common-crawl` a directory of pages and links in two files. Links between sites have weights.
    #[arg(long, conflicts_with_all = ["sort", "cash", "without_gone", "score", "score_field", "into", "since"])]
    links: bool,
    /// In `tsv`, write links as numbers of pages or sites, from 0 in the order of their first appearance; takes less memory.
    #[arg(long, requires = "links")]
    numbers: bool,
    #[command(flatten)]
    sites: SiteGraphArgs,
    #[command(flatten)]
    output: SummedOutputArgs,
    /// The order of the pages [default: id; for solr: url].
    ///
    /// All but id are sorted, by a temporary file beside the output, or for standard output in TMPDIR.
    #[arg(long, value_name = "ORDER", value_parser = words::<Order>(Order::ALL.map(|of| (of.name(), of.about()))))]
    sort: Option<Order>,
    /// Add the columns `cash` and `distributed`, C and H of the paper behind `ingest --window`, as shares of all.
    #[arg(long)]
    cash: bool,
    /// The score of a page, in formats that hold one; tables get a column of this name [default: importance].
    #[arg(long, value_name = "SCORE", value_parser = words::<Score>(Score::ALL.map(|of| (of.name(), of.about()))))]
    score: Option<Score>,
    /// The field that the score is for (elasticsearch, vespa) [default: importance].
    #[arg(long, value_name = "FIELD")]
    score_field: Option<String>,
    /// What holds the documents: the index of elasticsearch, or vespa's NAMESPACE:TYPE.
    #[arg(long, value_name = "NAME")]
    into: Option<String>,
    /// Write only what is new or has changed since this snapshot, by its number or by a time.
    ///
    /// Changed are scores that moved by more than the errors of both rankings may be. Tables have a column `change`: new, changed,
    /// diluted (it only gave way to new pages) or gone (404, 410).
    #[arg(long, value_name = "N|TIME", value_parser = parsed::<SnapshotSelector>)]
    since: Option<SnapshotSelector>,
    /// Count a score as changed if it moved by at least this share of what it was, like 0.1.
    #[arg(long, value_name = "RATIO", value_parser = ratio, requires = "since")]
    least: Option<f64>,
    #[command(flatten)]
    memory: MemoryArg,
}

const COMMON_CRAWL: &str = "common-crawl";

const MEASURES: &str = "\
The ranking by this measure, which `cashrank compute` made. A table has a column named by it, and may have several measures: \
importance,harmonic,in-degree; ranks are those of the first [default: importance, which each snapshot has]";

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio > 0.0 && ratio.is_finite() => Ok(ratio),
        _ => Err(format!("{text:?}: a number above 0, like 0.1 for a tenth")),
    }
}

struct ChangeFilter {
    older: LevelRanking,
    least: Option<f64>,
    counts: [Cell<u64>; 4],
}

impl ChangeFilter {
    /// Returns the number of bytes that reading the older ranking takes in addition to the newer one.
    fn held_bytes(&self) -> u64 {
        to_read(self.older.len()) + self.older.held_bytes()
    }

    fn rows<'r>(
        &'r self,
        newer: &'r LevelRanking,
        score: Score,
    ) -> Result<impl Iterator<Item = Result<Page<'static>>> + 'r> {
        let scales = [&self.older, newer].map(|ranking| score.scale(ranking.ranked()));
        note_parameters(&self.older, newer);
        newer.changed_since(&self.older, scales, self.least)
    }

    fn count(&self, page: &Page<'_>) {
        if let Some(change) = page.change {
            let count = &self.counts[change as usize];
            count.set(count.get() + 1);
        }
    }

    fn summary(&self) -> serde_json::Value {
        let of = |change: Change| self.counts[change as usize].get();
        serde_json::json!({
            "snapshot": self.older.snapshot().path().display().to_string(),
            "new": of(Change::New),
            "changed": of(Change::Changed),
            "diluted": of(Change::Diluted),
            "gone": of(Change::Gone),
        })
    }

    fn said(&self) -> String {
        let [new, changed, diluted, gone] = self.counts.each_ref().map(Cell::get);
        let older = self.older.snapshot().info().counters.records;
        format!(
            "{new} new, {changed} changed, {diluted} diluted by new pages and {gone} gone since snapshot {older}"
        )
    }
}

pub(super) fn tables() -> impl clap::builder::TypedValueParser<Value = Format> {
    let tables = Format::ALL.into_iter();
    let tables = tables.filter(|format| format.content() == Content::Table);
    words::<Format>(tables.map(|format| (format.name(), format.about())))
}

/// Parses the names of all formats, including those of links only, for clap.
fn all_formats() -> impl clap::builder::TypedValueParser<Value = String> {
    let formats = Format::ALL.map(|format| (format.name(), format.about()));
    let links = (
        COMMON_CRAWL,
        "as Common Crawl publishes them: with --links vertices and edges; with --level barehost, host or domain ranks by \
         harmonic centrality and PageRank, which `compute` made",
    );
    words::<String>(formats.into_iter().chain([links]))
}

impl ExportArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let [measure, level] = self.ranking.level.given();
        let of_one = [
            measure,
            level,
            (self.records, "--records"),
            (self.links, "--links"),
            (self.since.is_some(), "--since"),
        ];
        check_one(&self.ranking.stores.all, &of_one)?;
        let output = self.output.open()?;
        anyhow::ensure!(
            self.links || self.sites.is_usual(),
            "--site-links is for the links of sites: add --links"
        );
        if self.records {
            return self.export_records(&output);
        }
        let to = self.to.as_deref().unwrap_or_default();
        if self.links {
            return self.export_links(&output);
        }
        if to == COMMON_CRAWL {
            anyhow::ensure!(
                !self.ranking.level.level.is_page(),
                "{COMMON_CRAWL} holds the links of pages (--links), or the ranks of hosts or domains: add --level barehost, \
                 host or domain"
            );
            return self.export_ranks(&output);
        }
        self.export(to.parse()?, &output)
    }

    fn export(&self, format: Format, output: &OutputTarget) -> anyhow::Result<Exit> {
        output.must_show(format.name(), format.is_text())?;
        self.check(format)?;
        let order = self.sort.unwrap_or(format.order());
        let path = self.output.file.name();
        let opened = self.ranking.open(&self.memory)?;
        let rankings = Rankings(&opened);
        let ranking = rankings.first();
        let level = ranking.level();
        let scope = self.pages.selection().scope;
        if !level.is_page() {
            let of_pages = "is for pages: leave it or --level out";
            anyhow::ensure!(scope.is_all(), "--scope {of_pages}");
            anyhow::ensure!(!self.cash, "--cash {of_pages}");
            anyhow::ensure!(!self.pages.without_gone, "--without-gone {of_pages}");
        }
        let since = self.changes()?;
        let further = self.further(ranking)?;
        let further_bytes: u64 = further.iter().map(|(_, of)| of.held_bytes()).sum();
        let held = since.as_ref().map_or(0, ChangeFilter::held_bytes)
            + rankings.held_bytes()
            + format.buffer_bytes(rankings.len())
            + further_bytes;
        let cache = self.memory.budget();
        let beside = to_read(rankings.len()) + held;
        let cache = cache.map(|budget| budget.saturating_sub(beside) / 2);
        let mut room = self.room(order, rankings.len(), held)?;
        if format == Format::Sqlite {
            // The database sorts rows, too: each gets half.
            room /= 2;
        }
        let folder = scratch(output);
        let setup = Setup {
            table: TableOf::Ranking,
            level,
            score: NumberColumn::of_measure(self.ranking.level.measure()),
            state: level.is_page(),
            cash: self.cash,
            more: further.iter().map(|(column, _)| column.clone()).collect(),
            change: since.is_some(),
            kind: self.score,
            field: self.score_field.clone(),
            into: self.into.clone(),
            without_gone: self.pages.without_gone,
            pages: ranking.ranked(),
            sorted: order != Order::Id,
            folder: Some(folder.clone()),
            memory: cache,
        };
        let in_scope = |page: &Result<Page<'_>>| {
            let url = page.as_ref().map(|page| page.url.as_bytes());
            scope.is_all() || url.is_ok_and(|url| scope.has(url)) || page.is_err()
        };
        let rows: Box<dyn Iterator<Item = _>> = match &since {
            None => Box::new(rankings.rows()),
            Some(since) => {
                let kind = setup.kind.unwrap_or(Score::Importance);
                let rows = since.rows(ranking, kind)?;
                let is_listed = |page: &Result<Page<'_>>| {
                    page.as_ref().map_or(true, |page| ranking.lists(page))
                };
                Box::new(rows.filter(is_listed))
            }
        };
        let rows = rows.filter(in_scope).inspect(|page| {
            if let (Some(since), Ok(page)) = (&since, page) {
                since.count(page);
            }
        });
        let rows = ordered(with_scores(rows, &further), order, room, &folder)?;
        let ExportCounts {
            pages,
            left_out,
            gone,
        } = output.put(|out| Ok(export(format, &setup, out, path, rows)?))?;
        if left_out > 0 {
            say!(
                "left out: {}, which {} does not take as an _id (1 to 512 bytes)",
                counted(left_out, "URL", "URLs"),
                format.name()
            );
        }
        if gone > 0 {
            say!("left out, because they are gone: {}", common_pages(gone));
        }
        let mut summary = serde_json::json!({"pages": pages, "left_out": left_out, "gone": gone});
        let paths = rankings
            .snapshots()
            .map(|of| of.path().display().to_string());
        if rankings.are_several() {
            summary["snapshots"] = paths.collect();
        } else {
            summary["snapshot"] = paths.collect::<String>().into();
        }
        if !self.ranking.level.is_usual() {
            summary["level"] = level.to_string().into();
            summary["computed"] = serde_json::to_value(ranking.computed())?;
        }
        if let Some(since) = &since {
            summary["since"] = since.summary();
        }
        let changes = since.map_or(String::new(), |since| format!(", {}", since.said()));
        let said = format!("{}{changes}", counted_of(level, pages));
        self.output.report(output, &said, summary)
    }

    fn changes(&self) -> Result<Option<ChangeFilter>> {
        let open = |since| {
            let snapshot = Snapshot::of(&RealDisk, self.ranking.store(), Some(since))?;
            Ok(ChangeFilter {
                older: self.ranking.level.open(snapshot, &self.memory)?,
                least: self.least,
                counts: Default::default(),
            })
        };
        self.since.map(open).transpose()
    }

    /// Opens the rankings by all measures but the first, whose scores are further columns of the table.
    fn further(&self, ranking: &LevelRanking) -> anyhow::Result<Vec<(NumberColumn, LevelRanking)>> {
        let (level, mut further) = (&self.ranking.level, Vec::new());
        let measures = level.measures();
        for (at, &measure) in measures.iter().enumerate() {
            let column = NumberColumn::of_measure(measure);
            let is_new = !measures[..at].contains(&measure);
            anyhow::ensure!(is_new, "--measure: {} is named twice", column.name);
            if at > 0 {
                let snapshot = Snapshot::open(&RealDisk, ranking.snapshot().path())?;
                let ranking = level.open_by(snapshot, measure, &self.memory)?;
                further.push((column, ranking));
            }
        }
        Ok(further)
    }

    fn check(&self, format: Format) -> anyhow::Result<()> {
        let (content, name) = (format.content(), format.name());
        let field = self.score_field.as_ref().map(|_| "--score-field");
        if let Some(option) = field.or(self.into.as_ref().map(|_| "--into")) {
            anyhow::ensure!(
                content == Content::Field,
                "{option}: {name} has no documents with fields"
            );
        }
        anyhow::ensure!(
            format != Format::Vespa || self.into.is_some(),
            "vespa needs --into NAMESPACE:TYPE, like web:page"
        );
        // It needs all rows, not only the changed ones.
        anyhow::ensure!(
            self.since.is_none() || format != Format::Solr,
            "--since: Solr takes all scores from one file, and pages that are not in it would have none; export all, or \
             --to scores"
        );
        let by = self.ranking.level.measure().map(measure).transpose()?;
        let are_shares = by.is_none_or(|measure| measure.scores == ScoreKind::Share);
        let is_scaled = (self.score).is_some_and(|score| score != Score::Importance);
        anyhow::ensure!(
            are_shares || !is_scaled,
            "--score: ratio and log are those of importances, which sum to 1; scores of this measure do not: leave out --score, or \
             name `importance` first in --measure"
        );
        let is_several = self.ranking.level.measures().len() > 1;
        let columns = [(self.cash, "--cash"), (is_several, "several measures")];
        if let Some(option) = first_given(&columns) {
            anyhow::ensure!(
                content == Content::Table,
                "{option}: {name} has no columns; choose --to tsv, csv, jsonl or parquet"
            );
        }
        Ok(())
    }

    /// Returns the number of bytes for sorting beside `held` bytes of other data; refuses the export if there is too
    /// little memory for both. An export in page order needs nothing for sorting.
    fn room(&self, order: Order, pages: u64, held: u64) -> Result<u64> {
        if order == Order::Id {
            let need = if held > 0 { held + to_read(pages) } else { 0 };
            let work = || format!("an export of {pages} pages");
            let instead = "export on a machine with more memory";
            self.memory.left_after(need, work, instead)?;
            return Ok(MOST_SORTING);
        }
        let work = || format!("sorting {pages} pages by {}", order.name());
        let instead = "export without --sort and sort the lines";
        self.memory.to_sort(held + to_read(pages), work, instead)
    }

    fn export_links(&self, output: &OutputTarget) -> anyhow::Result<Exit> {
        let to = self.to.as_deref().unwrap_or_default();
        anyhow::ensure!(
            ["tsv", COMMON_CRAWL].contains(&to),
            "--links: {to} holds no links; choose --to tsv or {COMMON_CRAWL}"
        );
        anyhow::ensure!(
            self.ranking.level.is_importance() && self.pages.selection().scope.is_all(),
            "--links writes the links of all pages or sites: leave --measure and --scope out"
        );
        anyhow::ensure!(
            !self.ranking.level.level.is_page() || self.sites.is_usual(),
            "--site-links is for the links of sites: add --level"
        );
        let snapshot = self.ranking.snapshot()?;
        let ranking = self.ranking.level.open(snapshot, &self.memory)?;
        let (path, memory) = (self.output.file.name(), self.memory.budget());
        let count = if to == "tsv" {
            let folder = scratch(output);
            let graph = LinkGraph::of(&ranking, self.sites.site_links, memory, &folder)?;
            output.put(|out| Ok(write_tsv(&graph, self.numbers, out, path)?))?
        } else {
            anyhow::ensure!(
                !self.numbers,
                "--numbers: {to} has numbers anyway, and a file of names"
            );
            let OutputTarget::File(..) = output else {
                anyhow::bail!("{to} is two files: name a directory for them with -o");
            };
            OutputTarget::put_folder(path, |temp| {
                let graph = LinkGraph::of(&ranking, self.sites.site_links, memory, temp)?;
                Ok(write_common_crawl(&graph, temp)?)
            })?
        };
        let summary = serde_json::json!({
            "links": count,
            "level": ranking.level().to_string(),
            "snapshot": ranking.snapshot().path().display().to_string(),
        });
        let said = counted(count, "link", "links");
        self.output.report(output, &said, summary)
    }

    /// Writes the ranks of hosts or domains, which must have been computed before.
    fn export_ranks(&self, output: &OutputTarget) -> anyhow::Result<Exit> {
        anyhow::ensure!(
            self.ranking.level.is_importance()
                && self.sort.is_none()
                && self.pages.selection().is_all()
                && self.score.is_none()
                && self.score_field.is_none()
                && self.into.is_none()
                && !self.cash
                && self.since.is_none(),
            "common-crawl has measures, columns and an order of its own: leave --measure, --sort, --scope, --score, \
             --score-field, --into, --cash, --without-gone and --since out"
        );
        let open = |measure: &str| {
            let snapshot = self.ranking.snapshot()?;
            let level = &self.ranking.level;
            level.open_by(snapshot, Some(measure), &self.memory)
        };
        let (harmonic, pagerank) = (open("harmonic")?, open("pagerank")?);
        let memory = self.memory.budget();
        let path = self.output.file.name();
        let count = output.put(|out| Ok(write_ranks(&harmonic, &pagerank, memory, out, path)?))?;
        let level = harmonic.level();
        let summary = serde_json::json!({
            "count": count,
            "level": level.to_string(),
            "snapshot": harmonic.snapshot().path().display().to_string(),
        });
        self.output
            .report(output, &counted_of(level, count), summary)
    }

    fn export_records(&self, output: &OutputTarget) -> anyhow::Result<Exit> {
        let path = self.output.file.name();
        let format = RecordFormat::of_name(path)?;
        output.must_show("a packed file", format.is_text())?;
        let work = || "a dump of a store".to_owned();
        let instead = "dump it on a machine with more memory";
        let memory = self.memory.to_sort(0, work, instead)?;
        let snapshot = self.ranking.snapshot()?;
        let names = names_of(&snapshot)?;
        let folder = scratch(output);
        let room = SortRoom { memory, folder };
        let dumped = output.write(|out| {
            let mut file = RecordFile::new(format, names, Box::new(out), path)?;
            let dumped = dump(&snapshot, names, &mut file, &room)?;
            file.finish()?;
            Ok((dumped, Keep::Durably))
        })?;
        let Dumped { pages, links } = dumped;
        let summary = serde_json::json!({
            "pages": pages,
            "links": links,
            "snapshot": snapshot.path().display().to_string(),
        });
        let links = counted(links, "link", "links");
        let said = format!("{}, {links}", common_pages(pages));
        self.output.report(output, &said, summary)
    }
}

/// Fills in the further columns of rows, which must be in number order.
fn with_scores<'r, 'p: 'r>(
    rows: impl Iterator<Item = Result<Page<'p>>> + 'r,
    further: &'r [(NumberColumn, LevelRanking)],
) -> impl Iterator<Item = Result<Page<'p>>> + 'r {
    let scores = further.iter().map(|(_, of)| (0..).zip(of.scores()));
    let mut scores: Vec<_> = scores.collect();
    rows.map(move |page| {
        let mut page = page?;
        let number = page.page.0;
        let more = scores.iter_mut().map(|scores| {
            let score = scores.find(|(at, score)| *at == number || score.is_err());
            score.map(|(_, score)| score).transpose()
        });
        page.more = more.collect::<Result<_>>()?;
        Ok(page)
    })
}

/// Returns the folder for temporary files: that of the output, or else the system's.
pub(super) fn scratch(output: &OutputTarget) -> PathBuf {
    match output {
        OutputTarget::File(path, _) => folder_of(path).to_owned(),
        _ => std::env::temp_dir(),
    }
}
