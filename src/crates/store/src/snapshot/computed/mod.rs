//! Rankings of pages or sites by a measure, computed beside a snapshot from the same links. See `formats/ranking.md`.
//!
//! `000000000300.host.harmonic.ranking` ranks hosts by harmonic centrality beside `000000000300.snapshot`, and stays as
//! long as the snapshot. A ranking of pages holds scores and ranks, since their names are those of the snapshot; a
//! ranking of sites also holds their names and totals over their pages.

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::blocks::{BlockFile, BlockWriter, FileInfo, Magic, flat, version_of};
use super::settling::{Watching, with_lock};
use super::{SNAPSHOTS, Snapshot, Watcher};
use crate::codec::varint;
use crate::disk::Disk;
use crate::engine::{CHUNK_PAGES, NO_TIME, Page, PageId, ranks};
use crate::memory::to_read;
use crate::model::SiteFacts;
use crate::rank::computing::{Computing, MeasureParameters, NamesVisit};
use crate::rank::measures::Accuracy;
use crate::rules::list::SkippedLines;
use crate::sites::{Level, SiteTotal, Sites};
use crate::store::{Settings, TempFile, View};
use crate::{Error, Result};

const MAGIC: Magic = *b"CRRANK02";
pub const RANKING_VERSION: u32 = version_of(&MAGIC);
pub const RANKING: &str = ".ranking";

/// Columns in the order of the directory. Rankings of pages have the first [`PAGE_COLUMNS`].
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub enum RankingColumn {
    Score,
    /// Rank, 1 + the number of strictly greater scores: u64.
    Rank,
    Pages,
    Visits,
    /// Last fetch of any page of the site in seconds since 1970; i64::MIN: unknown.
    LastFetch,
    /// Names of sites: the length of each as a variable-length integer, and its bytes.
    Name,
}

const PAGE_COLUMNS: usize = 2;
const SITE_COLUMNS: usize = 6;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComputedInfo {
    pub version: u32,
    pub measure: String,
    pub level: Level,
    pub count: u64,
    pub links: u64,
    pub pages: u64,
    pub without_site: u64,
    pub records: u64,
    pub parameters: MeasureParameters,
    pub accuracy: Accuracy,
    /// True if the requested bound, residual or change was reached.
    pub reached: bool,
    pub sweeps: u64,
    pub settings: Settings,
    /// Lines of the list of chosen pages that were skipped, if it was just computed.
    #[serde(skip)]
    pub skipped: SkippedLines,
}

impl FileInfo for ComputedInfo {
    type Column = RankingColumn;
    const NAME: &'static str = "ranking";
    const MAGIC: Magic = MAGIC;
    const COLUMNS: Option<usize> = None;
    const REMEDY: &'static str = "`cashrank compute` to make it again";

    fn fits(&self, rows: u64, columns: usize) -> bool {
        let is_page = self.level.is_page();
        let expected = if is_page { PAGE_COLUMNS } else { SITE_COLUMNS };
        self.count == rows && rows > 0 && columns == expected && (!is_page || rows == self.pages)
    }
}

impl From<RankingColumn> for usize {
    fn from(column: RankingColumn) -> usize {
        column as usize
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComputedName {
    pub level: Level,
    pub measure: String,
}

impl ComputedName {
    pub(super) fn path_for(&self, snapshot: &Path) -> PathBuf {
        let level = self.level.to_string().replace(':', "-");
        snapshot.with_extension(format!("{level}.{}{RANKING}", self.measure))
    }

    /// Parses the name of a file into the number of the snapshot and the name of the ranking.
    fn of_file(name: &str) -> Option<(u64, ComputedName)> {
        let mut parts = name.strip_suffix(RANKING)?.splitn(3, '.');
        let number = parts.next()?.parse().ok()?;
        let level = parts.next()?.replacen('-', ":", 1).parse().ok()?;
        let measure = parts.next().filter(|measure| !measure.is_empty())?.into();
        Some((number, ComputedName { level, measure }))
    }
}

/// Lists the rankings in a store's folder with the numbers of their snapshots, by number, level and measure.
pub fn computed(disk: &dyn Disk, store: &Path) -> Result<Vec<(u64, ComputedName, PathBuf)>> {
    let folder = store.join(SNAPSHOTS);
    let names = disk.list(&folder).map_err(Error::opening(&folder))?;
    let found = names.iter().filter_map(|name| {
        let (number, of) = ComputedName::of_file(name)?;
        Some((number, of, folder.join(name)))
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    Ok(found)
}

pub type ComputedRanking = BlockFile<ComputedInfo>;

impl ComputedRanking {
    /// Opens the ranking of this name beside `snapshot`; [`Error::Missing`] if there is none.
    pub fn open_named(
        disk: &dyn Disk,
        snapshot: &Snapshot,
        name: &ComputedName,
    ) -> Result<ComputedRanking> {
        let ranking = ComputedRanking::open_any(disk, &name.path_for(snapshot.path()))?
            .ok_or_else(|| not_computed(disk, snapshot, name))?;
        let info = &ranking.info;
        let of = snapshot.info();
        let fits = info.measure == name.measure
            && info.level == name.level
            && info.records == of.counters.records
            && info.pages == of.pages
            && info.settings == of.settings;
        if !fits {
            return Err(ranking.damaged("it belongs to another snapshot"));
        }
        Ok(ranking)
    }

    /// Returns the nodes of a block in number order, sites with their names.
    pub fn block(&self, block: u64) -> Result<Vec<Page<'static>>> {
        let scores = self.column(block, RankingColumn::Score)?;
        let ranks = self.column(block, RankingColumn::Rank)?;
        let numbers = block * CHUNK_PAGES..;
        let rows = numbers
            .zip(scores)
            .zip(ranks)
            .map(|((number, score), rank)| {
                let score = f64::from_bits(score);
                if !score.is_finite() || !(1..=self.info.count).contains(&rank) {
                    return Err(self.damaged(format!(
                        "it has a score {score} and a rank {rank} of {}",
                        self.info.count
                    )));
                }
                Ok(Page {
                    page: PageId(number),
                    rank,
                    importance: score,
                    ..Page::default()
                })
            });
        let mut rows = rows.collect::<Result<Vec<_>>>()?;
        if !self.info.level.is_page() {
            self.add_sites(block, &mut rows)?;
        }
        Ok(rows)
    }

    fn add_sites(&self, block: u64, rows: &mut [Page<'static>]) -> Result<()> {
        let pages = self.column(block, RankingColumn::Pages)?;
        let visits = self.column(block, RankingColumn::Visits)?;
        let last_fetch = self.column(block, RankingColumn::LastFetch)?;
        let names = self.names(block)?;
        for (at, (row, name)) in rows.iter_mut().zip(names).enumerate() {
            row.url = Cow::Owned(name);
            row.visits = visits[at];
            row.last_fetch = Some(last_fetch[at] as i64).filter(|&time| time != NO_TIME);
            row.site = Some(SiteFacts {
                pages: pages[at],
                ..SiteFacts::default()
            });
        }
        Ok(())
    }

    fn names(&self, block: u64) -> Result<Vec<String>> {
        let bad = || self.bad(block, RankingColumn::Name);
        let packed = self.packed(block, RankingColumn::Name)?;
        let count = self.rows_of(block);
        // Names are parts of URLs, whose length is limited; and a length takes 5 bytes at most.
        let most = (count as u64).saturating_mul(self.info.settings.url_bytes.saturating_add(5));
        let mut text = Vec::new();
        let decoder = zstd::stream::read::Decoder::new(packed.as_slice()).map_err(|_| bad())?;
        let mut decoder = decoder.take(most);
        decoder.read_to_end(&mut text).map_err(|_| bad())?;
        let mut rest = text.as_slice();
        let names = (0..count).map(|_| {
            let len = usize::try_from(varint::take(&mut rest)?).ok()?;
            let (name, behind) = rest.split_at_checked(len)?;
            rest = behind;
            String::from_utf8(name.to_vec()).ok()
        });
        let names = names.collect::<Option<Vec<_>>>();
        names.filter(|_| rest.is_empty()).ok_or_else(bad)
    }

    /// Iterates over all rows in number order: sites with their names, pages without.
    pub fn rows(&self) -> impl Iterator<Item = Result<Page<'static>>> + '_ {
        flat((0..self.blocks()).map(|block| self.block(block)))
    }

    pub fn verify(&self) -> Result<()> {
        let mut scores = Vec::new();
        let mut found = Vec::new();
        for row in self.rows() {
            let row = row?;
            scores.push(row.importance);
            found.push(row.rank);
        }
        if ranks(&scores) != found {
            return Err(self.damaged("its ranks are not those of its scores"));
        }
        Ok(())
    }
}

fn not_computed(disk: &dyn Disk, snapshot: &Snapshot, name: &ComputedName) -> Error {
    let ComputedName { level, measure } = name;
    let number = snapshot.info().counters.records;
    let all = computed(disk, snapshot.store()).unwrap_or_default();
    let here = all.iter().filter(|(of, ..)| *of == number);
    let here: Vec<String> = here
        .map(|(_, name, _)| format!("`level` {} by {}", name.level, name.measure))
        .collect();
    let here = match here.len() {
        0 => "none was computed beside it".into(),
        _ => format!("there are those of {}", here.join(" and ")),
    };
    Error::Missing(format!(
        "no ranking of {} by {measure} beside snapshot {number}: {here}; `cashrank compute` with `measure` {measure} and \
         `level` {level} makes one of the current snapshot",
        level.plural()
    ))
}

const NAMES_LEVEL: i32 = 3;

/// Computes a measure for the store's current snapshot and publishes it; `None` if it was stopped from outside.
pub fn publish_computed(
    disk: &dyn Disk,
    view: &View,
    computing: &Computing,
    watcher: &Watcher,
) -> Result<Option<(PathBuf, ComputedInfo)>> {
    view.manifest.progress.check_verified(&view.dir)?;
    with_lock(disk, view, || {
        let snapshot = Snapshot::latest(disk, &view.dir)?;
        let rows = snapshot.rows()?;
        let (level, measure) = (computing.level, computing.measure.name.into());
        let name = ComputedName { level, measure };
        let path = name.path_for(snapshot.path());
        let names: &NamesVisit<'_> =
            &|visit| (snapshot.names()).try_for_each(|name| visit(name?.as_bytes()));
        let reading = to_read(snapshot.len());
        let mut watching = Watching { watcher, end: None };
        let computed = computing.compute(&rows, (names, reading), &view.dir, &mut watching)?;
        let Some(computed) = computed.filter(|_| !watcher.is_stopped()) else {
            return Ok(None);
        };
        let totals = computed.sites.as_ref().map(|sites| snapshot.roll_up(sites));
        let sites = computed.sites.as_ref().zip(totals.transpose()?);
        let (of, measured) = (snapshot.info(), computed.measured);
        let info = ComputedInfo {
            version: RANKING_VERSION,
            measure: name.measure,
            level: name.level,
            count: measured.scores.len() as u64,
            links: computed.links,
            pages: of.pages,
            without_site: computed.sites.as_ref().map_or(0, |sites| sites.without),
            records: of.counters.records,
            parameters: computed.parameters,
            accuracy: measured.accuracy,
            reached: measured.reached,
            sweeps: measured.sweeps,
            settings: of.settings.clone(),
            skipped: computed.skipped,
        };
        let file = TempFile::of(disk, path);
        write(disk, &file.path, &measured.scores, sites, &info)?;
        Ok(Some((file.put_in_place()?, info)))
    })
}

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
    let columns = if sites.is_some() {
        SITE_COLUMNS
    } else {
        PAGE_COLUMNS
    };
    let mut file = BlockWriter::create(disk, path, columns)?;
    let blocks = scores.chunks(CHUNK_PAGES as usize);
    let blocks = blocks.zip(ranks.chunks(CHUNK_PAGES as usize));
    for (block, (scores, ranks)) in blocks.enumerate() {
        let scores: Vec<u64> = scores.iter().map(|score| score.to_bits()).collect();
        file.column(block, RankingColumn::Score, &scores)?;
        file.column(block, RankingColumn::Rank, ranks)?;
        let Some((sites, totals)) = &sites else {
            continue;
        };
        let first = block * CHUNK_PAGES as usize;
        let totals = &totals[first..first + ranks.len()];
        let mut put = |which: RankingColumn, value: fn(&SiteTotal) -> u64| {
            let values: Vec<u64> = totals.iter().map(value).collect();
            file.column(block, which, &values)
        };
        put(RankingColumn::Pages, |total| total.pages)?;
        put(RankingColumn::Visits, |total| total.visits)?;
        put(RankingColumn::LastFetch, |total| {
            total.last_fetch.unwrap_or(NO_TIME) as u64
        })?;
        let mut names = Vec::new();
        for site in first..first + ranks.len() {
            let name = sites.name(site);
            varint::put(&mut names, name.len() as u128);
            names.extend_from_slice(name.as_bytes());
        }
        let names = zstd::bulk::compress(&names, NAMES_LEVEL);
        let names = names.map_err(Error::io(path, "compress"))?;
        file.packed(block, RankingColumn::Name, &names)?;
    }
    file.finish(info.count, info)
}
