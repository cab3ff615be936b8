//! Reading of computed rankings, with the names of what is ranked.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use super::{
    ComputedInfo, ComputedName, KIND, PAGE_COLUMNS, RANKING_VERSION, RankingColumn, SITE_COLUMNS,
};
use crate::codec::varint;
use crate::disk::Disk;
use crate::engine::{CHUNK_PAGES, Page, PageId};
use crate::model::SiteFacts;
use crate::snapshot::Snapshot;
use crate::snapshot::blocks::BlockFile;
use crate::{Error, Result};

/// Ranking that was computed beside a snapshot.
pub struct ComputedRanking {
    file: BlockFile,
    info: ComputedInfo,
}

impl ComputedRanking {
    /// Opens the ranking of this name beside `snapshot`.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none; [`Error::Unsupported`] if it has another version.
    pub fn beside(
        disk: &dyn Disk,
        snapshot: &Snapshot,
        name: &ComputedName,
    ) -> Result<ComputedRanking> {
        let opened = Self::open(disk, &name.beside(snapshot.path()));
        let ranking = match opened {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(none_beside(disk, snapshot, name));
            }
            opened => opened?,
        };
        let info = &ranking.info;
        let of = snapshot.info();
        let fits = info.measure == name.measure
            && info.level == name.level
            && info.records == of.counters.records
            && info.pages == of.pages
            && info.settings == of.settings;
        if !fits {
            return Err(ranking.file.damaged("it belongs to another snapshot"));
        }
        Ok(ranking)
    }

    /// Opens the ranking in a file.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<ComputedRanking> {
        let (file, described) = BlockFile::open(disk, path, &KIND, |_| None)?;
        #[derive(serde::Deserialize)]
        struct RankingVersion {
            version: u32,
        }
        let damaged = |error: serde_json::Error| file.damaged(format!("its info: {error}"));
        let RankingVersion { version } =
            serde_json::from_slice(&described.info).map_err(damaged)?;
        if version != RANKING_VERSION {
            return Err(super::other_version(path, &version.to_string()));
        }
        let info: ComputedInfo = serde_json::from_slice(&described.info).map_err(damaged)?;
        let columns = if info.level.is_page() {
            PAGE_COLUMNS
        } else {
            SITE_COLUMNS
        };
        let pages_fit = !info.level.is_page() || info.count == info.pages;
        if info.count != file.count || file.count == 0 || file.columns != columns || !pages_fit {
            return Err(file.damaged("its info does not fit its trailer"));
        }
        Ok(ComputedRanking { file, info })
    }

    pub fn info(&self) -> &ComputedInfo {
        &self.info
    }

    pub fn path(&self) -> &Path {
        &self.file.path
    }

    fn numbers(&self, block: u64, column: RankingColumn) -> Result<Vec<u64>> {
        self.file
            .numbers(block, column as usize, &format!("{column:?}"))
    }

    /// Iterates over the rank columns of all blocks.
    pub fn rank_blocks(&self) -> impl Iterator<Item = Result<Vec<u64>>> + '_ {
        (0..self.file.blocks()).map(|block| self.numbers(block, RankingColumn::Rank))
    }

    /// Iterates over the score columns of all blocks, as bits.
    pub fn score_blocks(&self) -> impl Iterator<Item = Result<Vec<u64>>> + '_ {
        (0..self.file.blocks()).map(|block| self.numbers(block, RankingColumn::Score))
    }

    /// Returns the nodes of a block in number order, sites with their names.
    pub fn block(&self, block: u64) -> Result<Vec<Page<'static>>> {
        let scores = self.numbers(block, RankingColumn::Score)?;
        let ranks = self.numbers(block, RankingColumn::Rank)?;
        let first = block * CHUNK_PAGES;
        let both = (first..).zip(scores.into_iter().zip(ranks));
        let mut rows = Vec::with_capacity(self.file.rows_of(block));
        for (number, (score, rank)) in both {
            let score = f64::from_bits(score);
            if !score.is_finite() || !(1..=self.info.count).contains(&rank) {
                return Err(self.file.damaged(format!(
                    "it has a score {score} and a rank {rank} of {}",
                    self.info.count
                )));
            }
            rows.push(Page {
                page: PageId(number),
                rank,
                importance: score,
                ..Page::default()
            });
        }
        if !self.info.level.is_page() {
            self.add_sites(block, &mut rows)?;
        }
        Ok(rows)
    }

    fn add_sites(&self, block: u64, rows: &mut [Page<'static>]) -> Result<()> {
        let pages = self.numbers(block, RankingColumn::Pages)?;
        let visits = self.numbers(block, RankingColumn::Visits)?;
        let last_fetch = self.numbers(block, RankingColumn::LastFetch)?;
        let names = self.names(block)?;
        for (at, (row, name)) in rows.iter_mut().zip(names).enumerate() {
            row.url = Cow::Owned(name);
            row.visits = visits[at];
            row.last_fetch = Some(last_fetch[at] as i64).filter(|&time| time != i64::MIN);
            row.site = Some(SiteFacts {
                pages: pages[at],
                ..SiteFacts::default()
            });
        }
        Ok(())
    }

    /// Reads the names of a block's sites.
    fn names(&self, block: u64) -> Result<Vec<String>> {
        let bad = || self.file.bad(block, "Name");
        let packed = self
            .file
            .packed(block, RankingColumn::Name as usize, "Name")?;
        let count = self.file.rows_of(block);
        // Names are parts of URLs, whose length is limited; and a length takes 5 bytes at most.
        let most = (count as u64).saturating_mul(self.info.settings.url_bytes.saturating_add(5));
        let mut text = Vec::new();
        let decoder = zstd::stream::read::Decoder::new(packed.as_slice()).map_err(|_| bad())?;
        let mut decoder = decoder.take(most);
        decoder.read_to_end(&mut text).map_err(|_| bad())?;
        let mut rest = text.as_slice();
        let mut names = Vec::with_capacity(count);
        for _ in 0..count {
            let len = varint::take(&mut rest).and_then(|len| usize::try_from(len).ok());
            let name = len.and_then(|len| rest.split_at_checked(len));
            let (name, behind) = name.ok_or_else(bad)?;
            rest = behind;
            names.push(String::from_utf8(name.to_vec()).map_err(|_| bad())?);
        }
        if rest.is_empty() {
            Ok(names)
        } else {
            Err(bad())
        }
    }

    /// Iterates over all rows in number order: sites with their names, pages without.
    pub fn rows(&self) -> impl Iterator<Item = Result<Page<'static>>> + '_ {
        (0..self.file.blocks()).flat_map(|block| {
            let (rows, error) = match self.block(block) {
                Ok(rows) => (rows, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            rows.into_iter().map(Ok).chain(error)
        })
    }

    /// Checks every column, and that the ranks follow from the scores.
    pub fn verify(&self) -> Result<()> {
        let mut scores = Vec::new();
        let mut ranks = Vec::new();
        for row in self.rows() {
            let row = row?;
            scores.push(row.importance);
            ranks.push(row.rank);
        }
        if crate::engine::ranks(&scores) != ranks {
            return Err(self.file.damaged("its ranks are not those of its scores"));
        }
        Ok(())
    }
}

fn none_beside(disk: &dyn Disk, snapshot: &Snapshot, name: &ComputedName) -> Error {
    let ComputedName { level, measure } = name;
    let number = snapshot.info().counters.records;
    let all = super::computed(disk, snapshot.store()).unwrap_or_default();
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
