//! `cashrank stat` of several stores: the shards of a crawl, added up.

use cashrank_steer::answers::Rankings;
use cashrank_store::memory::human;
use cashrank_store::snapshot::{Info, LevelRanking, Snapshot};
use cashrank_store::store::RealDisk;

use super::{Stat, WIDTH, fetch_text, how_accurate};
use crate::cli::common::{Basis, Exit, certain_pages, pages, print, print_json, thousands, time};
use crate::cli::json::object;
use crate::cli::table::FactList;

pub(super) fn show(shards: &[Stat<'_>], is_json: bool) -> anyhow::Result<Exit> {
    let opened = shards
        .iter()
        .map(|stat| Snapshot::open(&RealDisk, stat.snapshot.path()).map(LevelRanking::of_pages));
    let opened = opened.collect::<cashrank::Result<Vec<_>>>()?;
    let rankings = Rankings::of(&opened)?;
    let all = rankings.first();
    let sum = |count: fn(&Info) -> u64| shards.iter().map(|stat| count(stat.info())).sum::<u64>();
    let [records, links, visited, visits] = [
        sum(|info| info.counters.records),
        sum(|info| info.counters.links),
        sum(|info| info.counters.visited),
        sum(|info| info.visits),
    ];
    let latest = shards.iter().filter_map(|stat| stat.info().time).max();
    let disk_bytes = shards.iter().map(|stat| stat.disk.total).sum::<u64>();
    let (bound_l1, certain_top) = (all.bound_l1(), rankings.certain_top()?);
    if is_json {
        return print_json(&object! {
            "cluster": all.snapshot().info().cluster,
            "records": records,
            "links": links,
            "pages": rankings.pages(),
            "visited": visited,
            "visits": visits,
            "last_fetch": latest.map(|at| time(Some(at))),
            "bound_l1": bound_l1,
            "certain_top": certain_top,
            "disk_bytes": disk_bytes,
            "shards": shards.iter().map(Stat::json).collect::<Vec<_>>(),
        });
    }
    print(|out| {
        let mut facts = FactList::new(out, "", WIDTH);
        let pages_text = format!(
            "{} in {} shards, of them {} crawled",
            thousands(rankings.pages()),
            shards.len(),
            thousands(visited)
        );
        facts.add("pages", pages_text)?;
        facts.add("accuracy", how_accurate(bound_l1, Basis::Latest))?;
        facts.add("", certain_pages(certain_top))?;
        facts.add("latest fetch", fetch_text(latest))?;
        facts.add("disk", human(disk_bytes))?;
        facts.add("records", thousands(records))?;
        facts.add("links", thousands(links))?;
        for stat in shards {
            let Some(shard) = stat.shard() else {
                continue;
            };
            let info = stat.info();
            let remote = info.counters.shard.remote_pages;
            let text = format!(
                "{}, of them {} crawled, and {} of other shards; {}",
                pages(info.pages.saturating_sub(remote)),
                thousands(info.counters.visited),
                thousands(remote),
                stat.snapshot.path().display()
            );
            let name = format!("shard {}/{}", shard.number(), shard.count());
            facts.add(&name, text)?;
        }
        Ok(())
    })
}
