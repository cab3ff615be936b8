//! Reading of a snapshot: its file, and the names of its pages.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::blocks::{BlockFile, FileInfo, Magic, flat};
use super::export::{Format, Setup, export};
use super::find::SHOWN;
use super::levels::best_of;
use super::{COLUMNS, Info, Latest, MAGIC, SNAPSHOTS, SnapshotColumn};
use crate::engine::{CHUNK_PAGES, ENDOWMENT, Fingerprint, NO_TIME, Page, PageId};
use crate::metrics::Positions;
use crate::model::{Fetches, HashKey};
use crate::rank::settle::Importances;
use crate::rows::{Bits, Row};
use crate::rules::Scope;
use crate::store::rows::{KeptRows, Retention, RowFile};
use crate::store::{self, Disk, IndexFile, NameReader};
use crate::{Error, Result};

/// File of a snapshot: columns by block, each checked against its checksum when it is read.
pub type SnapshotColumns = BlockFile<Info>;

impl FileInfo for Info {
    type Column = SnapshotColumn;
    const NAME: &'static str = "snapshot";
    const MAGIC: Magic = *MAGIC;
    const COLUMNS: Option<usize> = Some(COLUMNS);
    const REMEDY: &'static str = "rank again: `cashrank settle` or the same `cashrank ingest` replaces the current one; an older one can be deleted";

    fn fits(&self, rows: u64, _: usize) -> bool {
        self.pages == rows
    }
}

impl From<SnapshotColumn> for usize {
    fn from(column: SnapshotColumn) -> usize {
        column as usize
    }
}

impl SnapshotColumns {
    /// Opens a snapshot. If its name is a number, as in a store, it must have that number of records.
    pub fn of(disk: &dyn Disk, path: &Path) -> Result<SnapshotColumns> {
        let columns = SnapshotColumns::open(disk, path)?;
        let number = path.file_stem().and_then(|stem| stem.to_str());
        let number = number.and_then(|number| number.parse::<u64>().ok());
        let records = columns.info.counters.records;
        if number.is_some_and(|number| number != records) {
            let what = format!("it is of {records} records: another file was put in its place");
            return Err(columns.damaged(what));
        }
        Ok(columns)
    }

    /// Checks every column's checksum: that it is as written, not that it is consistent.
    pub fn check_sums(&self) -> Result<()> {
        for block in 0..self.blocks() {
            for which in SnapshotColumn::ALL {
                self.packed(block, which)?;
            }
        }
        Ok(())
    }

    /// Returns pages by columns that `read` reads, given the place in these columns and the page; facts outside of
    /// `wanted` are 0 or unknown.
    fn pages_by(
        &self,
        wanted: &[SnapshotColumn],
        read: &dyn Fn(SnapshotColumn) -> Result<Vec<u64>>,
    ) -> Result<impl Fn((usize, u64)) -> SnapshotPage + use<>> {
        let mut columns: [Option<Vec<u64>>; COLUMNS] = Default::default();
        for &which in wanted {
            if which != SnapshotColumn::Gone || self.info.counters.gone > 0 {
                columns[which as usize] = Some(read(which)?);
            }
        }
        Ok(move |(at, page): (usize, u64)| {
            let some = |which: SnapshotColumn| Some(columns[which as usize].as_ref()?[at]);
            let number = |which| some(which).unwrap_or(0);
            let real = |which| f64::from_bits(number(which));
            let time = |which| {
                let time = some(which).map(|time| time as i64);
                time.filter(|&time| time != NO_TIME)
            };
            SnapshotPage {
                page: PageId(page),
                importance: real(SnapshotColumn::Importance),
                distributed: real(SnapshotColumn::Distributed),
                rank: number(SnapshotColumn::Rank),
                cash: number(SnapshotColumn::Cash),
                fetches: Fetches {
                    visits: number(SnapshotColumn::Visits),
                    last: time(SnapshotColumn::LastFetch),
                    failed: number(SnapshotColumn::Failed),
                    last_failed: time(SnapshotColumn::LastFailed),
                    compared: number(SnapshotColumn::Compared),
                    changed: number(SnapshotColumn::Changed),
                    watched_s: number(SnapshotColumn::Watched),
                    gone: number(SnapshotColumn::Gone) != 0,
                    recycled: number(SnapshotColumn::Recycled),
                },
            }
        })
    }

    /// Iterates over the pages of a block by these columns.
    pub(super) fn block_with(
        &self,
        block: u64,
        wanted: &[SnapshotColumn],
    ) -> Result<impl Iterator<Item = SnapshotPage> + use<>> {
        let page = self.pages_by(wanted, &|which| self.column(block, which))?;
        let rows = 0..self.rows_of(block);
        Ok(rows.zip(block * CHUNK_PAGES..).map(page))
    }

    /// Returns the pages at these places of a block by these columns.
    pub(super) fn pages_at(
        &self,
        block: u64,
        wanted: &[SnapshotColumn],
        places: &[usize],
    ) -> Result<Vec<SnapshotPage>> {
        let page = self.pages_by(wanted, &|which| self.column_at(block, which, places))?;
        let pages = places.iter().map(|&at| block * CHUNK_PAGES + at as u64);
        Ok((0..).zip(pages).map(page).collect())
    }

    pub fn pages(&self) -> impl Iterator<Item = Result<SnapshotPage>> + '_ {
        self.all_with(&SnapshotColumn::ALL)
    }

    /// Iterates over all pages, with the facts in these columns alone.
    pub(super) fn all_with<'a>(
        &'a self,
        wanted: &'a [SnapshotColumn],
    ) -> impl Iterator<Item = Result<SnapshotPage>> + 'a {
        let blocks = 0..self.blocks();
        flat(blocks.map(move |block| self.block_with(block, wanted)))
    }

    /// Checks every column, and that the importances sum to 1, or to at most 1 in a shard that was ranked with others.
    pub fn verify(&self) -> Result<()> {
        let mut sum = 0.0;
        for page in self.pages() {
            sum += page?.importance;
        }
        // Each value is within 2^-53 of its share, and so is each of the additions.
        let slack = 1e-15 * (self.info.pages as f64 + 10.0);
        let excess: f64 = sum - 1.0;
        let (excess, right) = match self.info.cluster {
            Some(_) => (excess, "at most 1"),
            None => (excess.abs(), "1"),
        };
        // A NaN is within no bounds.
        let is_sound = excess <= slack.max(1e-9);
        if self.info.pages > 0 && !is_sound {
            return Err(self.damaged(format!("its importances sum to {sum}, not {right}")));
        }
        Ok(())
    }
}

/// Published snapshot, with the names of its pages.
pub struct Snapshot {
    pub(super) columns: SnapshotColumns,
    pub(super) names: NameReader,
    /// Index on disk, if it can be used.
    pub(super) index: Option<IndexFile>,
    pub(super) store: PathBuf,
    /// Key of the store, which is unique except for copies.
    pub(super) key: HashKey,
    /// Retention of rows of links; `None` if it is not the current snapshot.
    retention: Option<Retention>,
    /// Rows of links, or why there are none.
    rows: Result<RowFile>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    pub scope: Scope,
    pub without_gone: bool,
}

impl Selection {
    pub fn is_all(&self) -> bool {
        self.scope.is_all() && !self.without_gone
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SnapshotPage {
    pub page: PageId,
    pub importance: f64,
    pub distributed: f64,
    /// Rank, 1 + the number of pages of strictly greater importance.
    pub rank: u64,
    pub cash: u64,
    pub fetches: Fetches,
}

impl SnapshotPage {
    /// Returns the page's cash plus what was recycled from it since its last visit, in endowments.
    pub fn claim(&self) -> f64 {
        let units = u128::from(self.cash) + u128::from(self.fetches.recycled);
        units as f64 / ENDOWMENT as f64
    }

    /// Adds the name, for a snapshot of `of` pages.
    pub fn named<'a>(&self, url: impl Into<Cow<'a, str>>, of: u64) -> Page<'a> {
        Page {
            page: self.page,
            rank: self.rank,
            importance: self.importance,
            visits: self.fetches.visits,
            last_fetch: self.fetches.last,
            url: url.into(),
            state: Some(self.fetches.state()),
            cash: Some(self.cash as f64 / (of as f64 * ENDOWMENT as f64)),
            distributed: Some(self.distributed),
            ..Page::default()
        }
    }
}

impl Snapshot {
    /// Opens the current snapshot of a store. Works while a writer runs.
    #[doc(hidden)]
    pub fn latest(disk: &dyn Disk, store: &Path) -> Result<Snapshot> {
        store::settings_of(disk, store)?.ok_or_else(|| {
            Error::Missing(format!(
                "{}: not a cashrank store; `cashrank ingest` creates one",
                store.display()
            ))
        })?;
        let mut latest = Latest::current(disk, store)?;
        loop {
            let path = store.join(SNAPSHOTS).join(&latest.snapshot);
            let opened = Self::open_with(disk, &path, store, &latest);
            // A writer with --keep-snapshots may have removed it since: then there is a newer one.
            match (opened, Latest::current(disk, store)?) {
                (Err(_), now) if now != latest => latest = now,
                // Rows that a compaction has replaced are not kept either.
                (Ok(opened), now)
                    if now != latest && opened.rows.is_err() && latest.rows.kept().is_some() =>
                {
                    latest = now;
                }
                (Err(Error::Io { path, source, .. }), _)
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    return Err(Latest::names_missing(path));
                }
                (opened, _) => return opened,
            }
        }
    }

    /// Opens a snapshot by its path, which must be inside its store, where the names are.
    #[doc(hidden)]
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<Snapshot> {
        let outside = || {
            Error::Usage(format!(
                "{}: a snapshot can only be read inside its store, which holds the names; export it to use it \
                 elsewhere",
                path.display()
            ))
        };
        let store = path.parent().and_then(Path::parent).ok_or_else(outside)?;
        let store = if store.as_os_str().is_empty() {
            Path::new(".")
        } else {
            store
        };
        let latest = Latest::published(disk, store)?.ok_or_else(outside)?;
        Self::open_with(disk, path, store, &latest)
    }

    fn open_with(disk: &dyn Disk, path: &Path, store: &Path, latest: &Latest) -> Result<Snapshot> {
        let columns = SnapshotColumns::of(disk, path)?;
        let names = NameReader::open(disk, store, latest.names)?;
        let identity = store::identity_of(disk, store)?;
        names.check_end(&identity.key)?;
        if columns.info.settings != identity.settings {
            return Err(columns.damaged("it belongs to a store with other settings"));
        }
        let current = path
            .file_name()
            .is_some_and(|name| name == &*latest.snapshot);
        let rows = if current {
            RowFile::of(disk, store, &latest.rows, columns.info.pages)
        } else {
            Err(Error::Missing(format!(
                "{}: only the current snapshot of a store has rows of links",
                path.display()
            )))
        };
        // An unreadable index is not used.
        let index = IndexFile::open(disk, store, identity.hash);
        Ok(Snapshot {
            index: index.ok().flatten(),
            columns,
            names,
            retention: current.then_some(latest.rows),
            rows,
            store: store.into(),
            key: identity.key,
        })
    }

    /// Returns true if the file at `path` begins like a snapshot, of whatever version.
    #[doc(hidden)]
    pub fn is_snapshot(disk: &dyn Disk, path: &Path) -> bool {
        let mut letters = [0; 6];
        disk.read(path)
            .and_then(|file| file.read_at(&mut letters, 0))
            .is_ok_and(|()| letters == MAGIC[..6])
    }

    pub fn info(&self) -> &Info {
        &self.columns.info
    }

    pub fn len(&self) -> u64 {
        self.info().pages
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the page of this name is the store's own. All are, unless the store is a shard.
    pub fn is_local(&self, name: &[u8]) -> bool {
        let shard = self.info().settings.input.shard;
        shard.is_none_or(|shard| shard.has(name))
    }

    /// Returns the certified bound on the L1 distance to PageRank ([`Info::bound_l1`]).
    pub fn bound_l1(&self) -> Option<f64> {
        self.info().bound_l1()
    }

    pub fn path(&self) -> &Path {
        self.columns.path()
    }

    pub fn store(&self) -> &Path {
        &self.store
    }

    /// Returns the rows of links; [`Error::Missing`] unless this is the current snapshot of a store with rows.
    pub fn rows(&self) -> Result<KeptRows> {
        self.rows_of_store().cloned().and_then(KeptRows::of)
    }

    /// Calls `read` with the row of one page, without a sweep. Returns whether the page has one.
    pub fn row(&self, page: u32, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        self.rows_of_store()?.row(page, read)
    }

    fn rows_of_store(&self) -> Result<&RowFile> {
        self.rows.as_ref().map_err(Error::again)
    }

    /// Returns whether rows are kept; `None` if this is not the store's current snapshot.
    pub fn rows_retention(&self) -> Option<&Retention> {
        self.retention.as_ref()
    }

    pub fn pages(&self) -> impl Iterator<Item = Result<SnapshotPage>> + '_ {
        self.columns.pages()
    }

    pub fn named(&self) -> impl Iterator<Item = Result<Page<'static>>> + '_ {
        let all = self.columns.all_with(&SHOWN).zip(self.names());
        all.map(|(page, name)| Ok(page?.named(name?, self.len())))
    }

    /// Writes all pages with their names in number order; in a shard, its own. Returns the number of rows written.
    /// [`Format::Vespa`] is refused, as it needs more than the pages.
    ///
    /// ```
    /// # fn write(snapshot: &cashrank_store::snapshot::Snapshot) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut out = Vec::new();
    /// snapshot.export(cashrank_store::snapshot::export::Format::Tsv, &mut out)?;
    /// assert!(out.starts_with(b"url\timportance\trank\tvisits\tlast_fetch\t"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn export(&self, format: Format, out: impl Write + Send) -> Result<u64> {
        let setup = Setup {
            state: true,
            pages: self.info().ranked_pages(),
            ..Setup::default()
        };
        let is_listed = |page: &Result<Page<'_>>| {
            page.as_ref()
                .map_or(true, |page| self.is_local(page.url.as_bytes()))
        };
        let pages = self.named().filter(is_listed);
        let written = export(format, &setup, out, Path::new("export"), pages)?;
        Ok(written.pages)
    }

    pub fn names(&self) -> impl Iterator<Item = Result<String>> + '_ {
        self.pages_from(0, "names", self.names.names())
    }

    /// Iterates over the fingerprints from page `from` on.
    pub(super) fn fingerprints(
        &self,
        from: u64,
    ) -> Result<impl Iterator<Item = Result<Fingerprint>> + '_> {
        let prints = self.names.fingerprints(from)?;
        Ok(self.pages_from(from, "fingerprints", prints))
    }

    /// Calls `visit` with the names of these pages, in number order; the snapshot must have them.
    #[doc(hidden)]
    pub fn each_name(&self, pages: Range<u64>, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let wanted = pages.end.saturating_sub(pages.start);
        let found = self.names.each(pages, visit)?;
        if found == wanted {
            Ok(())
        } else {
            Err(self.columns.damaged(format!(
                "the store has {found} names for {wanted} of its pages"
            )))
        }
    }

    /// Calls `visit` with the last fetch and the failures of each page, in order; other facts are not read or set.
    pub fn failures(&self, visit: &mut dyn FnMut(u32, &Fetches)) -> Result<()> {
        let wanted = [
            SnapshotColumn::LastFetch,
            SnapshotColumn::Failed,
            SnapshotColumn::LastFailed,
        ];
        let read = |block| self.columns.block_with(block, &wanted);
        for page in flat(self.columns.in_twos(read)) {
            let page = page?;
            visit(page.page.0 as u32, &page.fetches);
        }
        Ok(())
    }

    pub fn ranking(&self) -> &dyn Importances {
        &self.columns
    }

    /// Calls `visit` with the importance of each page, in number order. Reads no other columns.
    pub fn importances(&self, visit: &mut dyn FnMut(u32, f64)) -> Result<()> {
        self.columns
            .each_value(SnapshotColumn::Importance, |page, bits| {
                visit(page as u32, f64::from_bits(bits));
            })
    }

    /// Returns a bitmap of the pages that were visited at least `times` times. Reads no other column.
    pub fn visited(&self, times: u64) -> Result<Bits> {
        self.pages_with_least(SnapshotColumn::Visits, times)
    }

    pub(super) fn gone(&self) -> Result<Bits> {
        self.pages_with_least(SnapshotColumn::Gone, 1)
    }

    fn pages_with_least(&self, which: SnapshotColumn, least: u64) -> Result<Bits> {
        let mut pages = Bits::new(self.len());
        self.columns.each_value(which, |page, value| {
            if value >= least {
                pages.set(page);
            }
        })?;
        Ok(pages)
    }

    /// Returns the largest n such that the first n pages are certain to be, in some order, the n of greatest PageRank
    /// ([`Positions`]); `None` if there is no bound, or for a shard, which has only a part of the ranking.
    pub fn certain_top(&self) -> Result<Option<u64>> {
        let bound = self.info().bound_l1();
        let Some(bound) = bound.filter(|_| self.info().cluster.is_none()) else {
            return Ok(None);
        };
        let mut positions = Positions::new(bound);
        self.importances(&mut |_, importance| positions.add(importance))?;
        Ok(Some(positions.certain()))
    }

    /// Returns the first items of `from`, one for each page from page `found` on; an error if there are fewer.
    fn pages_from<T>(
        &self,
        mut found: u64,
        what: &'static str,
        from: impl Iterator<Item = Result<T>>,
    ) -> impl Iterator<Item = Result<T>> {
        let pages = self.info().pages;
        let mut from = from.take(pages.saturating_sub(found) as usize);
        std::iter::from_fn(move || match from.next() {
            Some(item) => {
                found += 1;
                Some(item)
            }
            None if found < pages => {
                let error = self.columns.damaged(format!(
                    "the store has {found} {what} for its {pages} pages"
                ));
                found = pages;
                Some(Err(error))
            }
            None => None,
        })
    }

    /// Returns the `n` pages of best rank with their names, best first; in a shard, its own pages.
    pub fn top(&self, n: usize) -> Result<Vec<Page<'static>>> {
        self.top_in(n, &Scope::default())
    }

    /// Returns the `n` pages of best rank in `scope`, best first. Reads the names of all pages, unless the scope is
    /// everything.
    ///
    /// ```
    /// # mod cashrank { pub use cashrank_base::model::*; pub use cashrank_store::session::*; }
    /// # use cashrank::{Options, Record, Writer};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let home = tempfile::tempdir()?;
    /// let mut writer = Writer::open(home.path().join("store"), &Options::default())?;
    /// writer.push(&Record::new("http://a.example/", ["/b", "http://b.example/"]))?;
    /// let ranking = writer.publish()?;
    /// let best = ranking.top_in(10, &"host:b.example".parse()?)?;
    /// assert_eq!((best.len(), &*best[0].url), (1, "http://b.example/"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn top_in(&self, n: usize, scope: &Scope) -> Result<Vec<Page<'static>>> {
        let within = self.within(&Selection {
            scope: scope.clone(),
            without_gone: false,
        })?;
        let is_within = |page| within.as_ref().is_none_or(|within| within.get(page));
        let ranks = self.columns.column_blocks(SnapshotColumn::Rank);
        self.named_pages(&best_of(n, ranks, is_within)?)
    }

    /// Returns a bitmap of the selected pages; in a shard only own pages count. `None` selects all.
    pub fn within(&self, selection: &Selection) -> Result<Option<Bits>> {
        let scope = &selection.scope;
        let gone = selection.without_gone.then(|| self.gone()).transpose()?;
        if scope.is_all() && self.info().settings.input.shard.is_none() {
            return Ok(gone.map(|gone| Bits::of(0..self.len(), |page| !gone.get(page))));
        }
        let is_there = |page| gone.as_ref().is_none_or(|gone| !gone.get(page));
        let mut within = Bits::new(self.len());
        let mut page = 0;
        self.each_name(0..self.len(), &mut |name| {
            if scope.has(name) && self.is_local(name) && is_there(page) {
                within.set(page);
            }
            page += 1;
        })?;
        Ok(Some(within))
    }

    #[doc(hidden)]
    pub fn check_sums(&self) -> Result<()> {
        self.columns.check_sums()
    }

    /// Checks every column, that the importances sum to 1, and that every page has its name.
    pub fn verify(&self) -> Result<()> {
        self.columns.verify()?;
        for name in self.names() {
            name?;
        }
        for fingerprint in self.fingerprints(0)? {
            fingerprint?;
        }
        Ok(())
    }
}
