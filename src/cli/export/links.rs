//! `cashrank export --links`: the link graph that a store keeps.

use cashrank_store::snapshot::LevelRanking;
use cashrank_store::snapshot::links::{LinkGraph, write_common_crawl, write_tsv};

use super::super::common::{Exit, counted};
use super::super::output::OutputTarget;
use super::{ExportArgs, scratch};

pub(super) const COMMON_CRAWL: &str = "common-crawl";

impl ExportArgs {
    pub(super) fn export_links(&self, output: &OutputTarget) -> anyhow::Result<Exit> {
        let to = self.to.as_deref().unwrap_or_default();
        anyhow::ensure!(
            ["tsv", "parquet", COMMON_CRAWL].contains(&to),
            "--links: {to} holds no links; choose --to tsv, parquet or {COMMON_CRAWL}"
        );
        anyhow::ensure!(
            self.level.is_roll_up() && self.scope.rules().is_all(),
            "--links writes the links of all pages or sites: leave --measure, --roll-up and --scope out"
        );
        anyhow::ensure!(
            !self.level.level.is_page() || self.sites.is_usual(),
            "--site-links and --inside are for the links of sites: add --level"
        );
        let snapshot = self.snapshot.open(self.stores.first())?;
        let ranking = self.level.open(snapshot, &self.memory)?;
        let count = if to == "tsv" {
            self.links_as_lines(&ranking, output)?
        } else {
            anyhow::ensure!(
                !self.numbers,
                "--numbers: {to} has numbers anyway, and a file of names"
            );
            let OutputTarget::File(..) = output else {
                anyhow::bail!("{to} is two files: name a directory for them with -o");
            };
            self.links_as_files(&ranking, to)?
        };
        let summary = serde_json::json!({
            "links": count,
            "level": ranking.level().to_string(),
            "snapshot": ranking.snapshot().path().display().to_string(),
        });
        let said = counted(count, "link", "links");
        self.output.report(output, &said, summary)
    }

    fn links_as_lines(&self, ranking: &LevelRanking, output: &OutputTarget) -> anyhow::Result<u64> {
        let folder = scratch(output);
        let memory = self.memory.budget(2)?;
        let pairing = self.sites.pairing(memory, &folder);
        let graph = LinkGraph::of(ranking, pairing, memory, &folder)?;
        let mut count = 0;
        output.put(|out| {
            count = write_tsv(&graph, self.numbers, out, self.output.file.name())?;
            Ok(())
        })?;
        Ok(count)
    }

    fn links_as_files(&self, ranking: &LevelRanking, to: &str) -> anyhow::Result<u64> {
        OutputTarget::put_folder(self.output.file.name(), |aside| {
            let memory = self.memory.budget(2)?;
            let pairing = self.sites.pairing(memory, aside);
            let graph = LinkGraph::of(ranking, pairing, memory, aside)?;
            if to == COMMON_CRAWL {
                Ok(write_common_crawl(&graph, aside)?)
            } else {
                Ok(write_parquet(&graph, aside)?)
            }
        })
    }
}

#[cfg(feature = "parquet")]
use cashrank_store::snapshot::links::write_parquet;

#[cfg(not(feature = "parquet"))]
use cashrank_base::model::Feature;

#[cfg(not(feature = "parquet"))]
fn write_parquet(_: &LinkGraph<'_>, _: &std::path::Path) -> anyhow::Result<u64> {
    Feature::require("parquet").map_err(anyhow::Error::msg)?;
    Ok(0)
}
