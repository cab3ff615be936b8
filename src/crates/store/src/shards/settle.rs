//! Joint ranking of the shards of one crawl, and its publication in each.
//!
//! ```text
//! check      all shards are there, once each, with the same settings
//! names      numbers of remote pages in their owners' stores; owners commit, then files are synced
//! settle     nothing is written
//! ranks      likewise
//! prepare    each shard's snapshot is written to a temporary file, and synced
//! publish    once all are prepared: each is renamed
//! ```
//! If killed before the last step, it leaves only the names. If killed in it, some shards have the new ranking and
//! others the previous one; the same command then gives all of them the same one, because the result depends on the
//! stores alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::names::{NamedShard, exchange_names};
use super::ranks::{ShardRanking, ShardScores, rank_together};
use super::{LocalShard, Peers, check_together, gather_values, local_shards};
use crate::disk::Disk;
use crate::engine::{HistoryView, Scores, Window};
use crate::memory::{SETTLING, check_room, making_blocks};
use crate::rank::RankOptions;
use crate::rank::settle::{SettlingResult, ShardRows, settle_shards};
use crate::snapshot::{ClusterRanking, Info, KeepSnapshots, Snapshot, Watcher, Watching};
use crate::snapshot::{prepare, put_in_place};
use crate::store::rows::KeptRows;
use crate::threads::{par_map, processors};
use crate::{Error, Result};

/// Version of the computation, which is part of a ranking's id.
const VERSION: u64 = 5;
/// Memory for caching rows between sweeps in bytes, for all shards of a process together.
const ROWS: u64 = 256 << 20;
/// Memory per page in bytes for ranks, numbers of remote pages and messages, besides the settled state.
const RANKING: u64 = 61;

/// Options of a joint ranking. All except for memory must be equal in all processes.
#[derive(Debug, Clone)]
pub struct SettleOptions {
    pub until: f64,
    pub keep: KeepSnapshots,
    pub memory: Option<u64>,
    pub watcher: Arc<Watcher>,
}

#[derive(Debug)]
pub struct RankedShard {
    pub dir: PathBuf,
    pub path: PathBuf,
    pub info: Info,
}

#[derive(Debug)]
pub struct Together {
    pub shards: Vec<RankedShard>,
    pub admitted: u64,
    /// True if the stores had the ranking already and nothing was done.
    pub is_done: bool,
    pub warnings: Vec<String>,
}

/// Settles the stores in `dirs` with those of all other processes, and publishes; `None` if an observer stopped it.
pub fn settle(
    disk: &Arc<dyn Disk>,
    dirs: &[PathBuf],
    peers: &mut dyn Peers,
    options: &SettleOptions,
) -> Result<Option<Together>> {
    let local = local_shards(&**disk, dirs)?;
    check_together(&local, peers)?;
    let names = exchange_names(disk, &local, peers, options.memory)?;
    let (shards, mut warnings) = (names.shards, names.warnings);
    for NamedShard { view, .. } in &shards {
        view.manifest.progress.check_verified(&view.dir)?;
    }
    let rows = shards.iter().map(|shard| shard.view.rows());
    let mut rows = rows.collect::<Result<Vec<_>>>()?;
    let room = ROWS / rows.len().max(1) as u64;
    rows.iter_mut()
        .for_each(|rows| rows.stay_in(Arc::default(), room));
    let current: Vec<_> = shards.iter().map(|shard| current(&**disk, shard)).collect();
    warnings.extend(current.iter().flatten().filter_map(left_out));
    let bound = common_bound(&current, peers)?;
    let id = ranking_id(&local, &shards, options.until, peers)?;
    let mut published = None;
    if bound > options.until {
        check_memory(&shards, options.memory)?;
        let Some(settled) = settle_rows(&shards, &rows, peers, options)? else {
            return Ok(None);
        };
        drop(rows);
        let config = local_config(&shards)?;
        let window = Window::settled(&config, &settled[0]);
        let reached = window.bound_l1().map(|new| new + config.damping_bound());
        // 64-bit numbers resolve no more than a bound that was reached before.
        if !bound.is_finite() || reached.is_some_and(|reached| reached < bound) {
            let by = (window.estimator, Some(settled[0].units(window.estimator)));
            let to_rank = shards.iter().zip(&settled);
            let to_rank = to_rank.map(|(shard, scores)| ShardScores {
                scores,
                pages: shard.view.totals().pages,
                remote: &shard.remote,
            });
            let ranked = rank_together(&to_rank.collect::<Vec<_>>(), by, peers)?;
            published = Some(publish(&**disk, &shards, &ranked, id, peers, options.keep)?);
        }
    }
    Ok(Some(Together {
        is_done: published.is_none(),
        shards: published.unwrap_or_else(|| current.into_iter().flatten().collect()),
        admitted: names.admitted,
        warnings,
    }))
}

/// Returns the settings of all shards, of which at least one is in this process.
fn local_config(shards: &[NamedShard]) -> Result<crate::engine::Config> {
    let first = shards.first();
    let first = first.ok_or_else(|| Error::internal("a process has no shard"))?;
    Ok(first.view.identity.settings.config.clone())
}

/// Returns true if `here` is true in all processes.
fn all_agree(here: bool, peers: &mut dyn Peers) -> Result<bool> {
    let mut disagree = [i128::from(!here)];
    peers.sum(&mut disagree)?;
    Ok(disagree == [0])
}

/// Returns an id of the ranking, which depends on the state of all stores and the requested bound.
fn ranking_id(
    local: &[LocalShard],
    shards: &[NamedShard],
    until: f64,
    peers: &mut dyn Peers,
) -> Result<u64> {
    let states = local.iter().zip(shards).map(|(store, shard)| {
        let number = u64::from(store.shard.number());
        let records = shard.view.manifest.engine.counters.records;
        let pages = shard.view.totals().pages;
        [number, store.identity, records, pages]
    });
    let states = gather_values(&states.collect::<Vec<_>>(), peers)?;
    let states = states.into_iter().flatten();
    let mut bytes: Vec<u8> = states.flat_map(u64::to_be_bytes).collect();
    bytes.extend(until.to_bits().to_be_bytes());
    bytes.extend(VERSION.to_be_bytes());
    Ok(xxh3_64(&bytes))
}

/// Returns the store's current snapshot if it is of its last commit and, for a ranking of all shards, intact.
fn current(disk: &dyn Disk, shard: &NamedShard) -> Option<RankedShard> {
    let view = &shard.view;
    let latest = Snapshot::latest(disk, &view.dir).ok()?;
    let info = latest.info();
    let is_current =
        info.counters == view.manifest.engine.counters && info.pages == view.totals().pages;
    // A ranking that will be replaced in any case need not be read.
    let is_sound = is_current && (info.cluster.is_none() || latest.check_sums().is_ok());
    is_sound.then(|| RankedShard {
        dir: view.dir.clone(),
        path: latest.path().into(),
        info: info.clone(),
    })
}

/// Returns a warning if a ranking left out links, which the joint ranking does not.
fn left_out(ranked: &RankedShard) -> Option<String> {
    ranked.info.expire()?;
    let dir = ranked.dir.display();
    Some(format!(
        "{dir}: its ranking left out the links of pages that were not reached for long (`expire`); that of all shards counts them"
    ))
}

/// Returns the bound of the ranking that all shards have as their current one; infinity if there is none.
fn common_bound(current: &[Option<RankedShard>], peers: &mut dyn Peers) -> Result<f64> {
    let ranking = |ranked: &Option<RankedShard>| {
        let info = ranked.as_ref().map(|ranked| &ranked.info);
        let of = info.and_then(|info| Some((info.cluster?.id, info.bound_l1()?)));
        // JSON has no infinity.
        of.map(|(id, bound)| (id, bound.to_bits()))
    };
    let current: Vec<_> = current.iter().map(ranking).collect();
    let mut all = gather_values(&current, peers)?;
    all.dedup();
    Ok(match all[..] {
        [Some((_, bound))] => f64::from_bits(bound),
        _ => f64::INFINITY,
    })
}

fn check_memory(shards: &[NamedShard], memory: Option<u64>) -> Result<()> {
    let mut each: Vec<u64> = (shards.iter().map(|shard| shard.view.totals().pages)).collect();
    let pages: u64 = each.iter().sum();
    // The snapshots of some shards are written in parallel.
    each.sort_unstable_by(|one, other| other.cmp(one));
    let at_once = each.into_iter().take(processors());
    let blocks: u64 = at_once.map(making_blocks).sum();
    check_room(
        memory,
        pages * (SETTLING + RANKING) + blocks,
        || format!("settling shards that know {pages} pages"),
        "settle some of the shards on another machine (`hosts`)",
    )
}

fn settle_rows(
    shards: &[NamedShard],
    rows: &[KeptRows],
    peers: &mut dyn Peers,
    options: &SettleOptions,
) -> Result<Option<Vec<SettlingResult>>> {
    let together = shards.iter().zip(rows).map(|(shard, rows)| ShardRows {
        rows,
        remote: &shard.remote,
    });
    let together: Vec<_> = together.collect();
    let config = local_config(shards)?;
    let (watcher, end) = (&*options.watcher, None);
    let mut watching = Watching { watcher, end };
    // The published bound is against PageRank at the requested damping.
    let until = config.bound_for(options.until).unwrap_or(options.until);
    let until = RankOptions::until(config.damping_units(), until);
    let settled = settle_shards(&together, peers, &until, &mut watching)?;
    // If stopped in the last sweep, some processes may have a result.
    let goes_on = all_agree(!options.watcher.is_stopped(), peers)?;
    if settled.is_none() && goes_on {
        return Err(Error::Usage("nothing to settle: there are no pages".into()));
    }
    Ok(settled.filter(|_| goes_on))
}

/// Publishes the ranking of each shard, after those of all processes are durable.
fn publish(
    disk: &dyn Disk,
    shards: &[NamedShard],
    ranked: &[ShardRanking<'_>],
    id: u64,
    peers: &mut dyn Peers,
    keep: KeepSnapshots,
) -> Result<Vec<RankedShard>> {
    let all_shards = peers.shards() as u32;
    let mut ranked: Vec<_> = shards.iter().zip(ranked).collect();
    let prepared = par_map(&mut ranked, |_, (shard, ranking)| {
        let of = ClusterRanking {
            id,
            shards: all_shards,
            pages: ranking.all_pages,
        };
        let scores: (&dyn Scores, &[u64]) = (*ranking, &ranking.ranks);
        prepare(disk, &shard.view, scores, of)
    })?;
    all_agree(true, peers)?;
    let published = shards.iter().zip(prepared).map(|(shard, prepared)| {
        let (path, info) = put_in_place(disk, &shard.view, prepared, keep)?;
        let dir: &Path = &shard.view.dir;
        Ok(RankedShard {
            dir: dir.into(),
            path,
            info,
        })
    });
    let published = published.collect();
    all_agree(true, peers)?;
    published
}

#[cfg(test)]
mod tests;
