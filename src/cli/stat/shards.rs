//! `cashrank stat` of several stores: the shards of a crawl, added up.

use std::io::Write;

use cashrank_steer::answers::Rankings;
use cashrank_store::memory::human;
use cashrank_store::snapshot::{ClusterRanking, LevelRanking, Snapshot};

use super::{Stat, how_accurate};
use crate::cli::common::{Basis, certain_pages, pages, thousands, time};

/// Contents of all shards of a crawl together.
#[derive(serde::Serialize)]
pub(super) struct AllStat {
    cluster: Option<ClusterRanking>,
    records: u64,
    links: u64,
    /// Number of own pages of all shards.
    pages: u64,
    visited: u64,
    visits: u64,
    last_fetch: Option<String>,
    bound_l1: Option<f64>,
    certain_top: Option<u64>,
    disk_bytes: u64,
    /// Contents of each shard.
    shards: Vec<Stat>,
}

impl AllStat {
    /// Adds up the shards, given their snapshots and the contents of each.
    pub fn of(snapshots: Vec<Snapshot>, shards: Vec<Stat>) -> cashrank::Result<AllStat> {
        let latest = snapshots.iter().filter_map(|of| of.info().time).max();
        let rankings = snapshots.into_iter().map(LevelRanking::of_pages);
        let rankings: Vec<_> = rankings.collect();
        let rankings = Rankings::of(&rankings)?;
        let sum = |count: fn(&Stat) -> u64| shards.iter().map(count).sum();
        Ok(AllStat {
            cluster: rankings.first().snapshot().info().cluster,
            records: sum(|stat| stat.records),
            links: sum(|stat| stat.links),
            pages: rankings.pages(),
            visited: sum(|stat| stat.visited),
            visits: sum(|stat| stat.visits),
            last_fetch: latest.map(|at| time(Some(at))),
            bound_l1: rankings.first().bound_l1(),
            certain_top: rankings.certain_top()?,
            disk_bytes: sum(|stat| stat.disk_bytes.total),
            shards,
        })
    }
}

/// Writes the contents for people.
pub(super) fn write_all(out: &mut dyn Write, all: &AllStat) -> anyhow::Result<()> {
    let mut line = |name: &str, value: String| writeln!(out, "{name:<14} {value}");
    line(
        "pages",
        format!(
            "{} in {} shards, of them {} crawled",
            thousands(all.pages),
            all.shards.len(),
            thousands(all.visited)
        ),
    )?;
    line("accuracy", how_accurate(all.bound_l1, Basis::Latest))?;
    if let Some(certain) = certain_pages(all.certain_top) {
        line("", certain)?;
    }
    let latest = all.last_fetch.clone();
    line("latest fetch", latest.unwrap_or("unknown".into()))?;
    line("disk", human(all.disk_bytes))?;
    line("records", thousands(all.records))?;
    line("links", thousands(all.links))?;
    for stat in &all.shards {
        let Some(shard) = &stat.shard else {
            continue;
        };
        let own = stat.pages.saturating_sub(shard.counts.remote_pages);
        line(
            &format!("shard {}/{}", shard.number, shard.count),
            format!(
                "{}, of them {} crawled, and {} of other shards; {}",
                pages(own),
                thousands(stat.visited),
                thousands(shard.counts.remote_pages),
                stat.snapshot
            ),
        )?;
    }
    Ok(())
}
