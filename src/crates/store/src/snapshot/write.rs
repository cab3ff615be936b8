//! The file of a snapshot, written column by column, what it says of itself, and `latest.json`, which names the current one.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crossbeam_channel::Sender;
use serde::{Deserialize, Serialize};

use super::blocks::BlockWriter;
use super::known::{self, COLUMNS as FETCHES, DefaultColumns, FactsCache};
use super::ranks::RankCollector;
use super::settling::{Expired, SettleSettings, with_lock};
use super::{COLUMNS, SnapshotColumn, VERSION, check_not_newer, column};
use crate::disk::recreate;
use crate::engine::{
    CHUNK_PAGES, Counters, Estimation, Estimator, FetchTimes, HistoryView, PageScores, Scores,
    Window, with_shard,
};
use crate::memory::RANKING_MOST;
use crate::model::Time;
use crate::rank::settle::SettlingResult;
use crate::store::rows::Retention;
use crate::store::{
    Disk, NameLengths, SNAPSHOTS, Settings, TempFile, View, is_busy, read_sealed, settings_of,
    write_sealed,
};
use crate::threads::{join, lock};
use crate::{Error, Result};

/// Writes the durable snapshot of a shard's commit; [`put_in_place`](super::put_in_place) publishes it. `of` is the
/// ranking of all shards.
pub fn prepare<'v>(
    disk: &'v dyn Disk,
    view: &'v View,
    (scores, ranks): (&dyn Scores, &[u64]),
    of: ClusterRanking,
) -> Result<(TempFile<'v>, Info)> {
    if ranks.len() as u64 != view.totals().pages {
        return Err(Error::internal("a ranking is not of the pages of a commit"));
    }
    with_lock(disk, view, || {
        let mut writer = SnapshotWriter::begin(disk, view)?;
        writer.facts(None)?;
        let window = Window::settled(&view.identity.settings.config, scores);
        writer.scores(scores, window.estimator, None)?;
        writer.ranks(ranks.iter().copied().map(Ok))?;
        writer.finish(window, None, Some(of))
    })
}

/// Writes a snapshot to a temporary file, with facts about pages while importance is settled. With `next`, the warm
/// start is written before the scores. `None` if the snapshot must not be published.
pub(super) fn write<'v>(
    disk: &'v dyn Disk,
    view: &'v View,
    settle: Option<&SettleSettings>,
    next: Option<(&SettleSettings, &Sender<()>)>,
) -> Result<Option<(TempFile<'v>, Info, Option<SettlingResult>)>> {
    let config = &view.identity.settings.config;
    let mut writer = SnapshotWriter::begin(disk, view)?;
    let mut ranks = RankCollector::new(view.totals().pages, RANKING_MOST, &view.dir)?;
    let settling = settle.filter(|settle| settle.is_possible(view));
    let estimate = || Estimation::begin(view, config);
    let (written, computed) = join(
        true,
        || writer.facts(settling),
        || match settling {
            Some(settle) => Ok((settle.run(disk, view)?, None)),
            None => Ok::<_, Error>((None, Some(estimate()?))),
        },
    );
    if settling.is_some_and(|settle| settle.watcher.is_stopped()) {
        return Ok(None);
    }
    written?;
    let (computed, estimated) = computed?;
    if computed.is_none() && settle.is_some_and(|settle| settle.or_nothing) {
        return Ok(None);
    }
    let (window, expired) = match &computed {
        Some((settled, expired)) => (Window::settled(config, settled), *expired),
        None => {
            let estimation = estimated.map_or_else(estimate, Ok)?;
            writer.measures =
                estimation.scores(|_, scores| writer.score(scores, Some(&mut ranks)))?;
            (estimation.window.clone(), None)
        }
    };
    // As in [`Info::bound_l1`].
    let bound = window.bound_l1().unwrap_or(f64::INFINITY) + config.damping_bound();
    if (settle.and_then(|settle| settle.below)).is_some_and(|below| bound >= below) {
        return Ok(None);
    }
    if let Some((settled, _)) = &computed {
        if let Some((warm, next)) = next {
            warm.write_warm(disk, view, settled)?;
            let _ = next.send(());
        }
        writer.scores(settled, window.estimator, Some(&mut ranks))?;
    }
    writer.ranks(ranks.ranks()?)?;
    let (file, info) = writer.finish(window, expired, None)?;
    Ok(Some((file, info, computed.map(|(settled, _)| settled))))
}

struct SnapshotWriter<'v> {
    view: &'v View,
    temporary: TempFile<'v>,
    file: BlockWriter<Info>,
    scored: usize,
    measures: u64,
    times: FetchTimes,
}

impl<'v> SnapshotWriter<'v> {
    /// Begins the file of a commit's snapshot; an error if a newer one was published.
    pub fn begin(disk: &'v dyn Disk, view: &'v View) -> Result<SnapshotWriter<'v>> {
        check_not_newer(disk, &view.dir, &view.manifest.engine.counters)?;
        let name = format!("{:012}.snapshot", view.manifest.engine.counters.records);
        let temporary = TempFile::of(disk, view.dir.join(SNAPSHOTS).join(name));
        Ok(SnapshotWriter {
            view,
            file: BlockWriter::create(disk, &temporary.path, COLUMNS)?,
            temporary,
            scored: 0,
            measures: 0,
            times: FetchTimes::default(),
        })
    }

    /// Writes the columns of facts about pages, from the cache of the previous snapshot and into that for the next.
    pub fn facts(&mut self, settling: Option<&SettleSettings>) -> Result<()> {
        let (view, none) = (self.view, Mutex::default());
        // The previous snapshot holds the cache until it has written these columns.
        let mut held = lock(settling.map_or(&none, |settle| &*settle.known));
        let mut room = settling.map_or(0, |settle| settle.known_room(view));
        let (before, runs) = held.take(view);
        let (mut cache, mut defaults) = (FactsCache::default(), DefaultColumns::new());
        let mut at = 0;
        self.measures = known::read(
            view,
            view.rows_of_runs(runs, 0, 0)?,
            before,
            |mut block, cash| {
                if settling.is_some_and(|settle| settle.watcher.is_stopped()) {
                    return Err(Error::internal("it was stopped"));
                }
                block.times().for_each(|time| self.times.add(time));
                for (which, packed) in FETCHES.into_iter().zip(block.packed(&mut defaults)?) {
                    self.file.packed(at, which, packed)?;
                }
                self.file.column(at, SnapshotColumn::Cash, cash)?;
                at += 1;
                cache.add(block, &mut room);
                Ok(())
            },
        )?;
        cache.finish(view);
        *held = cache;
        Ok(())
    }

    /// Writes the columns of importance and of the distributed estimate; `ranks` takes importances to be ranked.
    pub fn scores(
        &mut self,
        scores: &dyn Scores,
        estimator: Estimator,
        mut ranks: Option<&mut RankCollector>,
    ) -> Result<()> {
        let (pages, mut block) = (self.view.totals().pages, Vec::new());
        for first in (0..pages).step_by(CHUNK_PAGES as usize) {
            let len = CHUNK_PAGES.min(pages - first) as usize;
            scores.read(first, len, &mut block)?;
            for scores in &mut block {
                *scores = estimator.read(*scores);
            }
            self.score(&block, ranks.as_deref_mut())?;
        }
        Ok(())
    }

    fn score(&mut self, pages: &[PageScores], ranks: Option<&mut RankCollector>) -> Result<()> {
        if let Some(ranks) = ranks {
            ranks.add(pages.iter().map(|page| page.0))?;
        }
        let importance: Vec<u64> = pages.iter().map(|page| page.0.to_bits()).collect();
        let distributed: Vec<u64> = pages.iter().map(|page| page.1.to_bits()).collect();
        // Threads are worth it for full blocks only.
        let (importance, distributed) = join(
            pages.len() as u64 == CHUNK_PAGES,
            || column::pack(&importance),
            || column::pack(&distributed),
        );
        let (block, file) = (self.scored, &mut self.file);
        file.packed(block, SnapshotColumn::Importance, &importance?)?;
        file.packed(block, SnapshotColumn::Distributed, &distributed?)?;
        self.scored += 1;
        Ok(())
    }

    pub fn ranks(&mut self, mut ranks: impl Iterator<Item = Result<u64>>) -> Result<()> {
        for block in 0..self.scored {
            let ranks = ranks.by_ref().take(CHUNK_PAGES as usize);
            let ranks = ranks.collect::<Result<Vec<u64>>>()?;
            self.file.column(block, SnapshotColumn::Rank, &ranks)?;
        }
        Ok(())
    }

    /// Completes the file, and makes it durable. The certificate of the window must be finite: JSON has no infinity.
    pub fn finish(
        self,
        mut window: Window,
        expired: Option<Expired>,
        cluster: Option<ClusterRanking>,
    ) -> Result<(TempFile<'v>, Info)> {
        if window.certificate.is_some_and(|claim| !claim.is_finite()) {
            return Err(Error::internal(
                "a ranking would have no finite certificate",
            ));
        }
        let (view, settings) = (self.view, &self.view.identity.settings);
        let (state, totals) = (view.state(), view.totals());
        let bound = window
            .bound_l1()
            .map(|bound| bound + settings.config.damping_bound());
        if let Some((effort, bound)) = window.settled.as_mut().zip(bound) {
            // The published bound is against PageRank at the damping that was requested.
            effort.reached &= bound <= effort.until;
        }
        let latest = self.times.latest_with(state.time);
        let info = Info {
            version: VERSION,
            pages: totals.pages,
            visits: totals.visits,
            rounds: totals.rounds,
            turnovers: totals.clock as f64 / (totals.supply() as f64).max(1.0),
            clock: totals.clock.to_string(),
            counters: state.counters.clone(),
            time: latest.map(|(time, _)| time),
            measures: self.measures,
            window,
            expired,
            cluster,
            settings: settings.clone(),
        };
        self.file.finish(totals.pages, &info)?;
        Ok((self.temporary, info))
    }
}

/// Ranking over the shards of a crawl that a shard's snapshot is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRanking {
    #[serde(with = "hex")]
    pub id: u64,
    pub shards: u32,
    /// Number of own pages in all shards; ranks refer to them, and their importance sums to 1.
    pub pages: u64,
}

/// Serde functions for 64-bit numbers as 16 hexadecimal digits.
mod hex {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{number:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(&text, 16).ok().filter(|_| is_hex);
        number.ok_or_else(|| D::Error::custom(format!("{text:?}: 16 hexadecimal digits")))
    }
}

/// Counters, settings and accuracy of the run that made a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    pub version: u32,
    pub pages: u64,
    pub visits: u64,
    pub rounds: u64,
    /// G in units of a full supply: how often all cash has been distributed.
    pub turnovers: f64,
    /// G in units, in decimal digits.
    pub clock: String,
    #[serde(with = "with_shard")]
    pub counters: Counters,
    /// Latest accepted time of a record, in seconds since 1970: see `formats/snapshot.md`.
    pub time: Option<i64>,
    /// Number of measures that the window was read from; for a window of sums or an interpolation, one for each page
    /// that ever distributed cash.
    pub measures: u64,
    pub window: Window,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired: Option<Expired>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterRanking>,
    pub settings: Settings,
}

impl Info {
    /// Returns the number of the store's own pages, without the remote pages of a shard.
    pub fn local_pages(&self) -> u64 {
        self.pages.saturating_sub(self.counters.shard.remote_pages)
    }

    /// Returns the number of pages that ranks refer to; those of all shards for a ranking over several.
    pub fn ranked_pages(&self) -> u64 {
        self.cluster.map_or(self.pages, |of| of.pages)
    }

    /// Returns the certified bound on the L1 distance to PageRank at the requested damping.
    pub fn bound_l1(&self) -> Option<f64> {
        let rounding = self.settings.config.damping_bound();
        self.window.bound_l1().map(|bound| bound + rounding)
    }

    /// Returns why the bound is not as low as requested; `None` if it is.
    pub fn unreached(&self, until: f64) -> Option<&'static str> {
        if self.bound_l1().is_some_and(|bound| bound <= until) {
            None
        } else if self.settings.config.bound_for(until).is_none() {
            Some("damping is stored as a multiple of 2^-32, and the bound includes the difference")
        } else {
            Some("time was up, or 64-bit numbers are not precise enough")
        }
    }

    pub fn expire(&self) -> Option<Time> {
        self.expired.map(|expired| expired.after)
    }
}

/// Contents of `snapshots/latest.json`: the current snapshot, and the lengths of the logs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latest {
    pub snapshot: String,
    pub names: NameLengths,
    #[serde(default, skip_serializing_if = "Retention::is_not_kept")]
    pub rows: Retention,
}

impl Latest {
    fn path(dir: &Path) -> PathBuf {
        dir.join(SNAPSHOTS).join("latest.json")
    }

    /// Reads which snapshot of the store in `dir` is current; `None` if none is published yet.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<Latest>> {
        read_sealed(disk, &Self::path(dir))
    }

    /// Reads like [`Latest::read`], for readers: if there are snapshots, the file must not be absent.
    pub(super) fn published(disk: &dyn Disk, dir: &Path) -> Result<Option<Latest>> {
        let latest = Latest::read(disk, dir)?;
        if latest.is_some() {
            return Ok(latest);
        }
        let folder = dir.join(SNAPSHOTS);
        let names = match disk.list(&folder) {
            Err(_) if settings_of(disk, dir)?.is_none() => return Ok(None),
            names => names.map_err(Error::opening(&folder))?,
        };
        let count = names.iter().filter(|n| n.ends_with(".snapshot")).count();
        // A running or interrupted writer may be about to publish the first snapshot.
        let is_begun = || names.iter().any(|name| name == "latest.tmp") || is_busy(disk, dir);
        if count > 1 || count == 1 && !is_begun() {
            // A writer may have published its first ones since.
            let latest = Latest::read(disk, dir)?;
            return latest.map_or_else(|| Err(Latest::lost(dir, count)), |latest| Ok(Some(latest)));
        }
        Ok(None)
    }

    pub(super) fn names_missing(path: PathBuf) -> Error {
        Error::damaged(path, "it is missing, though snapshots/latest.json names it")
    }

    pub fn lost(dir: &Path, snapshots: usize) -> Error {
        let what = match snapshots {
            1 => "it is missing, and there is a snapshot".into(),
            _ => format!("it is missing, and there are {snapshots} snapshots"),
        };
        Error::damaged(Self::path(dir), what)
    }

    /// Reads like [`Latest::published`]; an error if no snapshot is published.
    pub(super) fn current(disk: &dyn Disk, dir: &Path) -> Result<Latest> {
        Latest::published(disk, dir)?.ok_or_else(|| {
            Error::Missing(format!(
                "{}: no snapshot published yet (there is no snapshots/latest.json); `cashrank \
                 ingest` publishes one at its end and at every `snapshot_every`",
                dir.display()
            ))
        })
    }

    /// Announces the first snapshot, by `latest.tmp`: then a snapshot without `latest.json` is no sign of damage.
    pub(super) fn begin(disk: &dyn Disk, dir: &Path) -> Result<()> {
        let temp = Self::path(dir).with_extension("tmp");
        recreate(disk, &temp)
            .and_then(|file| file.sync())
            .and_then(|()| disk.sync_dir(&dir.join(SNAPSHOTS)))
            .map_err(Error::io(&temp, "write"))
    }

    pub(super) fn write(&self, disk: &dyn Disk, dir: &Path) -> Result<()> {
        write_sealed(disk, &Self::path(dir), self)
    }
}
