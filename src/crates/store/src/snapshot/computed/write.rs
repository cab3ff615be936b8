//! Computation and publication of a ranking beside a snapshot.

use std::path::{Path, PathBuf};

use super::{
    Attained, ComputedInfo, ComputedName, MAGIC, PAGE_COLUMNS, RANKING_VERSION, RankingColumn,
    SITE_COLUMNS,
};
use crate::codec::varint;
use crate::disk::Disk;
use crate::engine::{CHUNK_PAGES, ranks};
use crate::memory::to_read;
use crate::rank::computing::{Computing, MeasureResult, Naming};
use crate::sites::{SiteTotal, Sites};
use crate::snapshot::blocks::{BlockWriter, PackedColumnRef};
use crate::snapshot::prepared::TempFile;
use crate::snapshot::settling::Watching;
use crate::snapshot::write::check_lock;
use crate::snapshot::{Snapshot, Watcher, column};
use crate::store::View;
use crate::{Error, Result};

/// Level of compression of names by zstd.
const NAMES_LEVEL: i32 = 3;

/// Computes a measure from the links of the store's current snapshot and publishes the ranking beside it: written to a
/// temporary file, synced, renamed. Replaces an earlier one of the same level and measure. Returns `None` if it was
/// stopped from outside; nothing is published then.
///
/// # Errors
/// [`Error::Missing`] if no snapshot was published yet or no links are kept; [`Error::Conflict`] if records of the store
/// are not verified.
pub fn publish_computed(
    disk: &dyn Disk,
    view: &View,
    computing: &Computing,
    watcher: &Watcher,
) -> Result<Option<(PathBuf, ComputedInfo)>> {
    view.check_in_place(disk)?;
    check_lock(view)?;
    view.progress().check_verified(view.dir())?;
    let made = make(disk, view, computing, watcher);
    made.map_err(|error| view.check_in_place(disk).err().unwrap_or(error))
}

fn make(
    disk: &dyn Disk,
    view: &View,
    computing: &Computing,
    watcher: &Watcher,
) -> Result<Option<(PathBuf, ComputedInfo)>> {
    let snapshot = Snapshot::latest(disk, view.dir())?;
    let rows = snapshot.rows()?;
    let mut naming = computing.begin()?.beside(to_read(snapshot.len()));
    if !computing.needs_no_names() {
        add_names(&snapshot, &mut naming)?;
    }
    let named = naming.finish()?;
    let name = ComputedName::of(computing);
    let path = name.beside(snapshot.path());
    let links = path.with_extension("links");
    let mut watching = Watching::new(watcher, None);
    let computed = named.compute(&rows, Some((disk, links)), &mut watching)?;
    let Some(computed) = computed.filter(|_| !watcher.is_stopped()) else {
        return Ok(None);
    };
    let totals = named.sites.as_ref().map(|sites| snapshot.roll_up(sites));
    let sites = named.sites.as_ref().zip(totals.transpose()?);
    let info = info(&snapshot, &name, &computed, named.sites.as_ref());
    let file = TempFile::of(disk, path);
    write(disk, &file.path, &computed.measured.scores, sites, &info)?;
    Ok(Some((file.put_in_place()?, info)))
}

fn add_names(snapshot: &Snapshot, naming: &mut Naming<'_>) -> Result<()> {
    let mut added = Ok(());
    snapshot.each_name(0..snapshot.len(), &mut |name| {
        if added.is_ok() {
            added = naming.add(name);
        }
    })?;
    added
}

fn info(
    snapshot: &Snapshot,
    name: &ComputedName,
    computed: &MeasureResult,
    sites: Option<&Sites>,
) -> ComputedInfo {
    let of = snapshot.info();
    let measured = &computed.measured;
    ComputedInfo {
        version: RANKING_VERSION,
        measure: name.measure.clone(),
        level: name.level,
        count: measured.scores.len() as u64,
        links: computed.links,
        pages: of.pages,
        without_site: sites.map_or(0, Sites::without),
        records: of.counters.records,
        parameters: computed.parameters.clone(),
        attained: Attained {
            accuracy: measured.accuracy,
            reached: measured.reached,
            sweeps: measured.sweeps,
        },
        settings: of.settings.clone(),
        skipped: computed.skipped,
    }
}

/// Writes a whole file.
fn write(
    disk: &dyn Disk,
    path: &Path,
    scores: &[f64],
    sites: Option<(&Sites, Vec<SiteTotal>)>,
    info: &ComputedInfo,
) -> Result<()> {
    if scores.iter().any(|score| !score.is_finite()) {
        return Err(Error::internal("a measure has a score that is no number"));
    }
    let ranks = ranks(scores);
    let mut file = BlockWriter::create(disk, path, MAGIC)?;
    let mut directory = Vec::new();
    let blocks = scores.chunks(CHUNK_PAGES as usize);
    let blocks = blocks.zip(ranks.chunks(CHUNK_PAGES as usize));
    for (block, (scores, ranks)) in blocks.enumerate() {
        let first = block * CHUNK_PAGES as usize;
        let mut packed = [PackedColumnRef::default(); SITE_COLUMNS];
        let scores: Vec<u64> = scores.iter().map(|score| score.to_bits()).collect();
        packed[RankingColumn::Score as usize] = file.column(column::pack(&scores))?;
        packed[RankingColumn::Rank as usize] = file.column(column::pack(ranks))?;
        let Some((sites, totals)) = &sites else {
            directory.extend_from_slice(&packed[..PAGE_COLUMNS]);
            continue;
        };
        let totals = &totals[first..first + ranks.len()];
        let mut put = |which: RankingColumn, value: &dyn Fn(&SiteTotal) -> u64| {
            let values: Vec<u64> = totals.iter().map(value).collect();
            packed[which as usize] = file.column(column::pack(&values))?;
            Ok::<(), Error>(())
        };
        put(RankingColumn::Pages, &|total| total.pages)?;
        put(RankingColumn::Visits, &|total| total.visits)?;
        put(RankingColumn::LastFetch, &|total| {
            total.last_fetch.unwrap_or(i64::MIN) as u64
        })?;
        let mut names = Vec::new();
        for site in first..first + ranks.len() {
            let name = sites.name(site);
            varint::put(&mut names, name.len() as u128);
            names.extend_from_slice(name.as_bytes());
        }
        let names = zstd::bulk::compress(&names, NAMES_LEVEL);
        packed[RankingColumn::Name as usize] = file.column(names)?;
        directory.extend_from_slice(&packed);
    }
    file.finish(directory.into_iter(), info.count, info)
}
