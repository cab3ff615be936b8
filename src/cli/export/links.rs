//! `cashrank export --links`: the link graph that a store keeps.

use std::path::Path;

use cashrank_store::snapshot::LevelRanking;
use cashrank_store::snapshot::links::{LinkGraph, Room, write_common_crawl, write_tsv};

use super::super::common::{Exit, counted};
use super::super::output::OutputTarget;
use super::{ExportArgs, scratch};

/// Formats of `--to` that can hold links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkFormat {
    Tsv,
    Parquet,
    CommonCrawl,
}

impl LinkFormat {
    /// Parses the name of a format.
    fn of(name: &str) -> anyhow::Result<LinkFormat> {
        match name {
            "tsv" => Ok(LinkFormat::Tsv),
            "parquet" => Ok(LinkFormat::Parquet),
            COMMON_CRAWL => Ok(LinkFormat::CommonCrawl),
            _ => anyhow::bail!(
                "--links: {name} holds no links; choose --to tsv, parquet or {COMMON_CRAWL}"
            ),
        }
    }
}

/// Name of the format that holds links only.
pub(super) const COMMON_CRAWL: &str = "common-crawl";

impl ExportArgs {
    /// Writes the links of the current snapshot.
    pub(super) fn export_links(&self, output: &OutputTarget) -> anyhow::Result<Exit> {
        let to = self.to.as_deref().unwrap_or_default();
        let format = LinkFormat::of(to)?;
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
        let count = match format {
            LinkFormat::Tsv => self.links_as_lines(&ranking, output)?,
            _ => {
                anyhow::ensure!(
                    !self.numbers,
                    "--numbers: {to} has numbers anyway, and a file of names"
                );
                let OutputTarget::File(..) = output else {
                    anyhow::bail!("{to} is two files: name a directory for them with -o");
                };
                let folder = self.output.file.name();
                self.links_as_files(&ranking, format, folder)?
            }
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
        let pairs = folder.join(format!(".cashrank-{}-links", std::process::id()));
        let memory = self.memory.budget(2)?;
        let graph = LinkGraph::of(ranking, self.sites.pairing(memory, pairs))?;
        let room = Room {
            memory,
            folder: &folder,
        };
        let mut count = 0;
        output.put(|out| {
            count = write_tsv(&graph, self.numbers, room, out, self.output.file.name())?;
            Ok(())
        })?;
        Ok(count)
    }

    fn links_as_files(
        &self,
        ranking: &LevelRanking,
        format: LinkFormat,
        folder: &Path,
    ) -> anyhow::Result<u64> {
        OutputTarget::put_folder(folder, |aside| {
            let memory = self.memory.budget(2)?;
            let pairing = self.sites.pairing(memory, aside.join("pairs"));
            let graph = LinkGraph::of(ranking, pairing)?;
            let room = Room {
                memory,
                folder: aside,
            };
            Ok(match format {
                LinkFormat::CommonCrawl => write_common_crawl(&graph, room, aside)?,
                _ => write_parquet(&graph, room, aside)?,
            })
        })
    }
}

#[cfg(feature = "parquet")]
use cashrank_store::snapshot::links::write_parquet;

#[cfg(not(feature = "parquet"))]
use cashrank_base::model::Feature;

#[cfg(not(feature = "parquet"))]
fn write_parquet(_: &LinkGraph<'_>, _: Room<'_>, _: &Path) -> anyhow::Result<u64> {
    Feature::require("parquet").map_err(anyhow::Error::msg)?;
    Ok(0)
}
