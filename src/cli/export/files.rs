//! Exports other than tables of ranks: the link graph, crawl records, and Common Crawl's ranks.

use cashrank_ingest::records::{Dumped, RecordFile, RecordFormat, SortRoom, dump, names_of};
use cashrank_store::snapshot::links::{LinkGraph, write_common_crawl, write_ranks, write_tsv};

use super::super::common::{Exit, counted, pages as counted_pages};
use super::super::levels::counted_of;
use super::super::output::{Keep, OutputTarget};
use super::{ExportArgs, scratch};

pub(super) const COMMON_CRAWL: &str = "common-crawl";

impl ExportArgs {
    pub(super) fn export_links(&self, output: &OutputTarget) -> anyhow::Result<Exit> {
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
            let pairing = self.sites.pairing(memory, &folder);
            let graph = LinkGraph::of(&ranking, pairing, memory, &folder)?;
            output.put(|out| Ok(write_tsv(&graph, self.numbers, out, path)?))?
        } else {
            anyhow::ensure!(
                !self.numbers,
                "--numbers: {to} has numbers anyway, and a file of names"
            );
            let OutputTarget::File(..) = output else {
                anyhow::bail!("{to} is two files: name a directory for them with -o");
            };
            OutputTarget::put_folder(path, |aside| {
                let pairing = self.sites.pairing(memory, aside);
                let graph = LinkGraph::of(&ranking, pairing, memory, aside)?;
                Ok(write_common_crawl(&graph, aside)?)
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
    pub(super) fn export_ranks(&self, output: &OutputTarget) -> anyhow::Result<Exit> {
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

    pub(super) fn export_records(&self, output: &OutputTarget) -> anyhow::Result<Exit> {
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
        let said = format!("{}, {links}", counted_pages(pages));
        self.output.report(output, &said, summary)
    }
}
