//! Reading a snapshot. Every column is checked against its checksum when it is read.

use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    BEFORE, COLUMNS, COLUMNS_BEFORE, Column, ENTRY, Info, Latest, MAGIC, MAGIC_BEFORE, SNAPSHOTS,
    TRAILER, column,
};
use crate::codec::frame::{Fields, is_sealed};
use crate::decode::Time;
use crate::engine::{CHUNK_PAGES, Fingerprint, PageId};
use crate::metrics::Positions;
use crate::rows::Row;
use crate::store::rows::{KeptRows, Retention, RowsOf};
use crate::store::{self, Disk, DiskFile, NameReader};
use crate::threads::in_two;
use crate::{Error, Result};

/// A published snapshot, with the names of its pages.
pub struct Snapshot {
    pub(super) columns: Columns,
    pub(super) names: NameReader,
    pub(super) store: PathBuf,
    /// The store's key, which no two stores have unless one is a copy.
    key: [u64; 2],
    /// `None`: it is not the current one.
    rows: Option<RowsOf>,
}

/// A snapshot's file: all but the names.
pub(crate) struct Columns {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    info: Info,
    directory: Vec<u8>,
    /// How many columns a block has.
    columns: usize,
    /// Where the directory begins: columns end before it.
    end: u64,
}

/// What fetches of a page told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fetches {
    /// Last fetch, in seconds since 1970.
    pub last: Option<Time>,
    /// Fetches that failed since the page was last reached.
    pub failed: u64,
    /// When the last of them was.
    pub last_failed: Option<Time>,
}

/// One page of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SnapshotPage {
    /// The page's number.
    pub page: PageId,
    /// Its importance; all pages sum to 1.
    pub importance: f64,
    /// The distributed estimate.
    pub distributed: f64,
    /// 1 + pages of strictly greater importance.
    pub rank: u64,
    /// Visits.
    pub visits: u64,
    /// Last fetch, in seconds since 1970.
    pub last_fetch: Option<Time>,
    /// Cash, in units.
    pub cash: u64,
    /// Fetches that failed since the page was last reached.
    pub failed: u64,
    /// When the last of them was, in seconds since 1970.
    pub last_failed: Option<Time>,
    /// How often it could be told whether the page had changed since it was last looked at.
    pub compared: u64,
    /// How often it had.
    pub changed: u64,
    /// Seconds over which that was, from the first look to the last.
    pub watched_s: u64,
}

impl Snapshot {
    /// Opens the current snapshot of a store. Works while a writer runs.
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
                // Nor are the rows kept that a compaction has replaced.
                (Ok(opened), now) if now != latest && opened.rows_failed() => latest = now,
                (Err(Error::Io { path, source, .. }), _)
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    return Err(Error::damaged(
                        path,
                        "it is missing, though snapshots/latest.json names it",
                    ));
                }
                (opened, _) => return opened,
            }
        }
    }

    /// Opens a snapshot by its path, which must be inside its store: names are kept there.
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
        let latest = Latest::read(disk, store)?.ok_or_else(outside)?;
        Self::open_with(disk, path, store, &latest)
    }

    fn open_with(disk: &dyn Disk, path: &Path, store: &Path, latest: &Latest) -> Result<Snapshot> {
        let columns = Columns::open(disk, path)?;
        let names = NameReader::open(disk, store, latest.names)?;
        let (settings, key) = store::identity_of(disk, store)?;
        names.check_end(&key)?;
        if columns.info.settings != settings {
            return Err(columns.damaged("it belongs to a store with other settings"));
        }
        let current = path
            .file_name()
            .is_some_and(|name| name == &*latest.snapshot);
        let pages = columns.info.pages;
        Ok(Snapshot {
            columns,
            names,
            rows: current.then(|| RowsOf::new(disk, store, latest.rows, pages)),
            store: store.into(),
            key: key.0,
        })
    }

    /// Whether the file at `path` begins like a snapshot, of whatever version.
    pub fn is_snapshot(disk: &dyn Disk, path: &Path) -> bool {
        let mut letters = [0; 6];
        disk.read(path)
            .and_then(|file| file.read_at(&mut letters, 0))
            .is_ok_and(|()| letters == MAGIC[..6])
    }

    /// What it says of the run.
    pub fn info(&self) -> &Info {
        &self.columns.info
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.columns.path
    }

    /// The store it belongs to.
    pub fn store(&self) -> &Path {
        &self.store
    }

    fn rows_failed(&self) -> bool {
        self.rows.as_ref().is_some_and(RowsOf::failed)
    }

    /// The rows of links as of this snapshot, which must be the store's current one.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if there are none, which says why; [`Error::Damaged`].
    pub fn rows(&self) -> Result<KeptRows> {
        self.rows_of_store()?.rows()
    }

    /// Calls `read` with the row of one page, without going over the others. Returns whether it has one.
    ///
    /// # Errors
    ///
    /// As of [`Snapshot::rows`].
    pub fn row(&self, page: u32, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        self.rows_of_store()?.row(page, read)
    }

    fn rows_of_store(&self) -> Result<&RowsOf> {
        self.rows.as_ref().ok_or_else(|| {
            Error::Missing(format!(
                "{}: only the current snapshot of a store has rows of links",
                self.columns.path.display()
            ))
        })
    }

    /// Whether there are rows; `None`: this is not the store's current snapshot.
    pub fn rows_retention(&self) -> Option<&Retention> {
        self.rows.as_ref().map(RowsOf::retention)
    }

    /// All pages, in number order.
    pub fn pages(&self) -> impl Iterator<Item = Result<SnapshotPage>> + '_ {
        self.columns.pages()
    }

    /// All names, in number order.
    pub fn names(&self) -> impl Iterator<Item = Result<String>> + '_ {
        self.all_pages("names", self.names.names())
    }

    /// The key of its store: no other has it, but for copies.
    pub(crate) fn key(&self) -> [u64; 2] {
        self.key
    }

    /// Calls `visit` with the names of these pages, in number order; they must be pages of the snapshot.
    ///
    /// # Errors
    /// Names are damaged, missing or cannot be read.
    pub(crate) fn each_name(&self, pages: Range<u64>, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let wanted = pages.end.saturating_sub(pages.start);
        let found = self.names.each(pages, &mut |name| visit(name.as_bytes()))?;
        if found == wanted {
            Ok(())
        } else {
            Err(self.columns.damaged(format!(
                "the store has {found} names for {wanted} of its pages"
            )))
        }
    }

    /// Calls `visit` with what fetches of each page told, in number order, and reads nothing else.
    ///
    /// # Errors
    /// Columns are damaged or cannot be read.
    pub(crate) fn fetches(&self, visit: &mut dyn FnMut(u32, &Fetches)) -> Result<()> {
        let read = |block| self.columns.fetches(block);
        self.columns.in_twos(read, |first, pages: Vec<Fetches>| {
            for (page, fetches) in (first as u32..).zip(&pages) {
                visit(page, fetches);
            }
        })
    }

    /// Calls `visit` with the importance of each page, in number order, and reads nothing else.
    ///
    /// # Errors
    /// The column is damaged or cannot be read.
    pub(crate) fn importances(&self, visit: &mut dyn FnMut(u32, f64)) -> Result<()> {
        let read = |block| self.columns.column(block, Column::Importance);
        self.columns.in_twos(read, |first, pages: Vec<u64>| {
            for (page, &bits) in (first as u32..).zip(&pages) {
                visit(page, f64::from_bits(bits));
            }
        })
    }

    /// How many of the first positions are certain: the greatest n so that the first n pages are the n of greatest PageRank, in
    /// some order ([`Positions`]). `None`: there is no bound. Reads all importances.
    ///
    /// # Errors
    /// The snapshot is damaged or cannot be read.
    pub fn certain_top(&self) -> Result<Option<u64>> {
        let Some(bound) = self.info().bound_l1() else {
            return Ok(None);
        };
        let mut positions = Positions::new(bound);
        self.importances(&mut |_, importance| positions.add(importance))?;
        Ok(Some(positions.certain()))
    }

    /// The first items of `from`, one a page; an error where there are fewer.
    pub(super) fn all_pages<T>(
        &self,
        what: &'static str,
        from: impl Iterator<Item = Result<T>>,
    ) -> impl Iterator<Item = Result<T>> {
        let pages = self.info().pages;
        let mut from = from.take(pages as usize);
        let mut found = 0;
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

    /// One page; `None` if the snapshot has no such page.
    pub fn page(&self, page: PageId) -> Result<Option<SnapshotPage>> {
        if page.0 >= self.info().pages {
            return Ok(None);
        }
        let block = self.columns.block(page.0 / CHUNK_PAGES)?;
        Ok(Some(block[(page.0 % CHUNK_PAGES) as usize]))
    }

    /// Some pages that the snapshot has, in the order given. Each block of columns is read once.
    pub fn pages_of(&self, pages: &[PageId]) -> Result<Vec<SnapshotPage>> {
        let mut sorted: Vec<usize> = (0..pages.len()).collect();
        sorted.sort_unstable_by_key(|&at| pages[at]);
        let mut found = vec![None; pages.len()];
        let mut held: Option<(u64, Vec<SnapshotPage>)> = None;
        for at in sorted {
            let number = pages[at].0 / CHUNK_PAGES;
            let block = match held.take().filter(|(block, _)| *block == number) {
                Some((_, block)) => block,
                None => self.columns.block(number)?,
            };
            found[at] = block.get((pages[at].0 % CHUNK_PAGES) as usize).copied();
            held = Some((number, block));
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// The names of some pages, in the order given. Each block of names is read once.
    pub fn names_of(&self, pages: &[PageId]) -> Result<Vec<String>> {
        let mut sorted: Vec<usize> = (0..pages.len()).collect();
        sorted.sort_unstable_by_key(|&at| pages[at]);
        let mut names = vec![String::new(); pages.len()];
        let mut held = None;
        for at in sorted {
            names[at] = self.names.name(pages[at].0, &mut held)?;
        }
        Ok(names)
    }

    /// The pages with these names, in one sweep over the fingerprints (10 bytes a page).
    pub fn find(&self, disk: &dyn Disk, names: &[&[u8]]) -> Result<Vec<Option<PageId>>> {
        let (_, key) = store::identity_of(disk, &self.store)?;
        let fingerprints = key.fingerprints();
        let mut wanted: HashMap<Fingerprint, Vec<usize>> = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            let print = store::kept(fingerprints.of(name));
            wanted.entry(print).or_default().push(at);
        }
        let mut found = vec![None; names.len()];
        let fingerprints = self.all_pages("fingerprints", self.names.fingerprints());
        for (page, fingerprint) in fingerprints.enumerate() {
            let fingerprint = fingerprint?;
            for &at in wanted.get(&fingerprint).into_iter().flatten() {
                found[at] = Some(PageId(page as u64));
            }
        }
        Ok(found)
    }

    /// The `n` pages of best rank; ties in order of first appearance.
    pub fn top(&self, n: usize) -> Result<Vec<SnapshotPage>> {
        let mut best: BinaryHeap<(u64, PageId)> = BinaryHeap::new();
        for block in 0..self.columns.blocks() {
            let ranks = self.columns.column(block, Column::Rank)?;
            for (at, rank) in ranks.into_iter().enumerate() {
                let candidate = (rank, PageId(block * CHUNK_PAGES + at as u64));
                if best.len() < n {
                    best.push(candidate);
                } else if best.peek().is_some_and(|worst| candidate < *worst) {
                    best.pop();
                    best.push(candidate);
                }
            }
        }
        let wanted: Vec<PageId> = best.into_iter().map(|(_, page)| page).collect();
        let mut pages = self.pages_of(&wanted)?;
        pages.sort_by_key(|page| (page.rank, page.page));
        Ok(pages)
    }

    /// Checks that all of it is as it was written.
    pub(super) fn check_sums(&self) -> Result<()> {
        self.columns.check_sums()
    }

    /// Checks every column, that the importances sum to 1, and that every page has its name.
    pub fn verify(&self) -> Result<()> {
        self.columns.verify()?;
        for name in self.names() {
            name?;
        }
        for fingerprint in self.all_pages("fingerprints", self.names.fingerprints()) {
            fingerprint?;
        }
        Ok(())
    }
}

impl Columns {
    /// Opens a snapshot's file.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<Columns> {
        let file = disk.read(path).map_err(Error::io(path, "open"))?;
        let (info, directory, end) = read_tail(&*file, path)?;
        let columns = columns_of(info.version);
        Ok(Columns {
            path: path.into(),
            file,
            info,
            directory,
            columns,
            end,
        })
    }

    /// What it says of the run.
    pub fn info(&self) -> &Info {
        &self.info
    }

    pub(super) fn blocks(&self) -> u64 {
        self.info.pages.div_ceil(CHUNK_PAGES)
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    pub(super) fn column(&self, block: u64, which: Column) -> Result<Vec<u64>> {
        let packed = self.packed(block, which)?;
        let count = CHUNK_PAGES.min(self.info.pages - block * CHUNK_PAGES);
        column::unpack(&packed, count as usize).ok_or_else(|| self.bad(block, which))
    }

    fn bad(&self, block: u64, which: Column) -> Error {
        self.damaged(format!("column {which:?} of block {block} is damaged"))
    }

    /// A column's packed bytes, checked against their checksum.
    fn packed(&self, block: u64, which: Column) -> Result<Vec<u8>> {
        let at = (block as usize * self.columns + which as usize) * ENTRY;
        let entry = &self.directory[at..at + ENTRY];
        let mut entry = Fields(entry);
        let (offset, len, sum) = (entry.u64(), u64::from(entry.u32()), entry.u64());
        if offset.checked_add(len).is_none_or(|end| end > self.end) {
            return Err(self.damaged(format!(
                "its directory puts column {which:?} of block {block} outside of the columns"
            )));
        }
        let mut packed = vec![0; len as usize];
        self.file
            .read_at(&mut packed, offset)
            .map_err(Error::reading(&self.path))?;
        if xxh3_64(&packed) != sum {
            return Err(self.bad(block, which));
        }
        Ok(packed)
    }

    /// Checks every column's checksum: that it is as it was written, not that it makes sense.
    pub fn check_sums(&self) -> Result<()> {
        for block in 0..self.blocks() {
            for &which in &Column::ALL[..self.columns] {
                self.packed(block, which)?;
            }
        }
        Ok(())
    }

    fn block(&self, block: u64) -> Result<Vec<SnapshotPage>> {
        let [importance, distributed, rank, visits, last_fetch, cash] = [
            self.column(block, Column::Importance)?,
            self.column(block, Column::Distributed)?,
            self.column(block, Column::Rank)?,
            self.column(block, Column::Visits)?,
            self.column(block, Column::LastFetch)?,
            self.column(block, Column::Cash)?,
        ];
        let told = match self.columns {
            COLUMNS => Some([
                self.column(block, Column::Failed)?,
                self.column(block, Column::LastFailed)?,
                self.column(block, Column::Compared)?,
                self.column(block, Column::Changed)?,
                self.column(block, Column::Watched)?,
            ]),
            _ => None,
        };
        let told = |column: usize, at: usize| told.as_ref().map(|told| told[column][at]);
        let time = |value: u64| Some(value as i64).filter(|&time| time != i64::MIN);
        let first = block * CHUNK_PAGES;
        let page = |at: usize| SnapshotPage {
            page: PageId(first + at as u64),
            importance: f64::from_bits(importance[at]),
            distributed: f64::from_bits(distributed[at]),
            rank: rank[at],
            visits: visits[at],
            last_fetch: time(last_fetch[at]),
            cash: cash[at],
            failed: told(0, at).unwrap_or(0),
            last_failed: told(1, at).and_then(time),
            compared: told(2, at).unwrap_or(0),
            changed: told(3, at).unwrap_or(0),
            watched_s: told(4, at).unwrap_or(0),
        };
        Ok((0..importance.len()).map(page).collect())
    }

    /// What fetches of the pages of a block told.
    fn fetches(&self, block: u64) -> Result<Vec<Fetches>> {
        let time = |value: u64| Some(value as i64).filter(|&time| time != i64::MIN);
        let last = self.column(block, Column::LastFetch)?;
        let told = match self.columns {
            COLUMNS => Some((
                self.column(block, Column::Failed)?,
                self.column(block, Column::LastFailed)?,
            )),
            _ => None,
        };
        let page = |(at, last): (usize, u64)| Fetches {
            last: time(last),
            failed: told.as_ref().map_or(0, |(failed, _)| failed[at]),
            last_failed: told.as_ref().and_then(|(_, last)| time(last[at])),
        };
        Ok(last.into_iter().enumerate().map(page).collect())
    }

    /// Calls `visit` with what `read` makes of each block and the block's first page, in order; two blocks are read at a time.
    fn in_twos<T: Send>(
        &self,
        read: impl Fn(u64) -> Result<T> + Sync,
        mut visit: impl FnMut(u64, T),
    ) -> Result<()> {
        for block in (0..self.blocks()).step_by(2) {
            let has_next = block + 1 < self.blocks();
            let next = || has_next.then(|| read(block + 1)).transpose();
            let (next, this) = in_two(has_next, next, || read(block));
            visit(block * CHUNK_PAGES, this?);
            if let Some(next) = next? {
                visit((block + 1) * CHUNK_PAGES, next);
            }
        }
        Ok(())
    }

    /// All pages, in number order.
    pub fn pages(&self) -> impl Iterator<Item = Result<SnapshotPage>> + '_ {
        (0..self.blocks()).flat_map(|block| {
            let (pages, error) = match self.block(block) {
                Ok(pages) => (pages, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            pages.into_iter().map(Ok).chain(error)
        })
    }

    /// Checks every column, and that the importances sum to 1.
    pub fn verify(&self) -> Result<()> {
        let mut sum = 0.0;
        for page in self.pages() {
            sum += page?.importance;
        }
        // Each value is within 2^-53 of its share, and so is each of the additions.
        let slack = 1e-15 * (self.info.pages as f64 + 10.0);
        let sound = (sum - 1.0f64).abs() <= slack.max(1e-9);
        if self.info.pages > 0 && !sound {
            return Err(self.damaged(format!("its importances sum to {sum}, not 1")));
        }
        Ok(())
    }
}

/// How many columns a block has in a snapshot of this version.
fn columns_of(version: u32) -> usize {
    match version {
        BEFORE => COLUMNS_BEFORE,
        _ => COLUMNS,
    }
}

/// Checks the file's first and last bytes.
fn check_magic(first: &[u8], last: &[u8], path: &Path) -> Result<()> {
    let whole = |magic: &[u8]| first == magic && last == magic;
    if whole(MAGIC) || whole(MAGIC_BEFORE) {
        return Ok(());
    }
    if first == last && first[..6] == MAGIC[..6] && first[6..].iter().all(u8::is_ascii_digit) {
        return Err(other_version(path, &String::from_utf8_lossy(&first[6..])));
    }
    Err(Error::damaged(
        path,
        "it does not begin and end like a snapshot",
    ))
}

fn other_version(path: &Path, found: &str) -> Error {
    Error::Unsupported(format!(
        "{}: a snapshot of version {found}; this cashrank reads versions {BEFORE} and {}: use the cashrank that \
         made it, or ingest the inputs into a new store",
        path.display(),
        super::VERSION
    ))
}

/// Parses the info. Its version is looked at first: another version may have other fields.
fn parse_info(text: &[u8], pages: u64, expected: u32, path: &Path) -> Result<Info> {
    #[derive(serde::Deserialize)]
    struct Version {
        version: u32,
    }
    let damaged = |error: serde_json::Error| Error::damaged(path, format!("its info: {error}"));
    let Version { version } = serde_json::from_slice(text).map_err(damaged)?;
    if version != expected {
        return Err(other_version(path, &version.to_string()));
    }
    let info: Info = serde_json::from_slice(text).map_err(damaged)?;
    if info.pages != pages {
        return Err(Error::damaged(path, "its info does not fit its trailer"));
    }
    Ok(info)
}

/// The info and the directory, checked, and where the directory begins.
fn read_tail(file: &dyn DiskFile, path: &Path) -> Result<(Info, Vec<u8>, u64)> {
    let damaged = |what: &str| Error::damaged(path, what);
    let len = file.size().map_err(Error::io(path, "measure"))?;
    if len < (MAGIC.len() + TRAILER) as u64 {
        return Err(damaged("too short for a snapshot"));
    }
    let mut trailer = [0; TRAILER];
    file.read_at(&mut trailer, len - TRAILER as u64)
        .map_err(Error::reading(path))?;
    let mut magic = [0; MAGIC.len()];
    file.read_at(&mut magic, 0).map_err(Error::reading(path))?;
    check_magic(&magic, &trailer[32..], path)?;
    let [directory, info, pages] = Fields(&trailer).u64s();
    let blocks = pages.div_ceil(CHUNK_PAGES);
    let version = if magic == *MAGIC {
        super::VERSION
    } else {
        BEFORE
    };
    let entries = columns_of(version) * ENTRY;
    let directory_len = blocks.checked_mul(entries as u64);
    if directory.checked_add(directory_len.unwrap_or(u64::MAX)) != Some(info)
        || info > len - TRAILER as u64
    {
        return Err(damaged("its trailer is damaged"));
    }
    let mut tail = vec![0; (len - directory) as usize];
    file.read_at(&mut tail, directory)
        .map_err(Error::reading(path))?;
    if !is_sealed(&tail[..tail.len() - MAGIC.len()]) {
        return Err(damaged("its directory does not match its checksum"));
    }
    let text = &tail[(info - directory) as usize..tail.len() - TRAILER];
    let info = parse_info(text, pages, version, path)?;
    tail.truncate((blocks as usize) * entries);
    Ok((info, tail, directory))
}
