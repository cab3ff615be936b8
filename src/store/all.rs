//! All pages of a store as readers see them: their names and rows, whether they are kept by the store or by its partitions.
//!
//! Pages are numbered in the order of first appearance in the stream, as where there are no partitions.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::addresses::{ADDRESSES, Addresses, CommittedAddresses, GHOSTS};
use super::names::{NameLengths, NameReader};
use super::partition_dir;
use super::rows::{CommittedRows, KeptRows, Retention, RowsOf};
use crate::batch::HashKey;
use crate::disk::log::{AHEAD, Held};
use crate::disk::{Disk, allow_open_files};
use crate::engine::Fingerprint;
use crate::rows::{Bits, Ghost, Row, RowVisitor, Rows, RowsVisitor, Stop};
use crate::{Error, Result};

/// Files that are open of each partition whose names, or rows, are read.
const READ_FILES: u64 = 6;

/// What a snapshot is read with, of a partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedPart {
    /// Pages, ghosts among them.
    pub pages: u64,
    /// Lengths of its name logs,
    pub names: NameLengths,
    /// of the log of ghosts,
    pub ghosts: CommittedAddresses,
    /// and its rows.
    pub rows: Retention,
}

/// The same of a store with partitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedParts {
    /// The order of all pages.
    pub addresses: CommittedAddresses,
    /// The partitions.
    pub parts: Vec<PublishedPart>,
}

impl PublishedParts {
    /// What all rows are together.
    pub fn retention(&self) -> Retention {
        let mut kept = self.parts.iter().map(|part| part.rows.kept());
        let all = kept.try_fold(CommittedRows::default(), |all, kept| Some(sum(all, kept?)));
        all.map_or(Retention::NotKept, Retention::Kept)
    }

    /// Sees to it that names, or rows, of all partitions can be open at a time.
    fn allow_open_files(&self) -> Result<()> {
        let count = self.parts.len() as u32;
        allow_open_files(READ_FILES * u64::from(count), count)
    }
}

/// Of the rows of two partitions.
fn sum(mut all: CommittedRows, kept: &CommittedRows) -> CommittedRows {
    all.rows += kept.rows;
    all.links += kept.links;
    all.superseded += kept.superseded;
    all.lengths.data += kept.lengths.data;
    all.lengths.index += kept.lengths.index;
    all
}

/// The names of all pages.
pub(crate) enum Names {
    One(NameReader),
    Parts {
        addresses: Addresses,
        parts: Vec<NameReader>,
    },
}

/// What [`Names::name`] read last, by partition.
#[derive(Default)]
pub(crate) struct HeldNames {
    addresses: Held<Ghost>,
    names: Vec<Held<String>>,
}

impl Names {
    /// Of a store without partitions, or of these.
    pub fn open(
        disk: &dyn Disk,
        dir: &Path,
        lengths: NameLengths,
        parts: Option<&PublishedParts>,
    ) -> Result<Names> {
        let Some(published) = parts else {
            return Ok(Names::One(NameReader::open(disk, dir, lengths)?));
        };
        published.allow_open_files()?;
        let parts = (0..).zip(&published.parts).map(|(number, part)| {
            Ok(NameReader::open(disk, &partition_dir(dir, number), part.names)?.of_part(true))
        });
        Ok(Names::Parts {
            parts: parts.collect::<Result<_>>()?,
            addresses: Addresses::open(disk, dir, ADDRESSES, published.addresses)?,
        })
    }

    /// See [`NameReader::check_end`].
    pub fn check_end(&self, key: &HashKey) -> Result<()> {
        match self {
            Names::One(names) => names.check_end(key),
            Names::Parts { parts, .. } => parts.iter().try_for_each(|part| part.check_end(key)),
        }
    }

    /// The name of one page. `held` has what was read before.
    pub fn name(&self, page: u64, held: &mut HeldNames) -> Result<String> {
        match self {
            Names::One(names) => {
                held.names.resize(1, None);
                names.name(page, &mut held.names[0])
            }
            Names::Parts { addresses, parts } => {
                held.names.resize(parts.len(), None);
                let Ghost { owner, at, .. } = addresses.get(page, &mut held.addresses)?;
                let (part, held) = addresses.part_of(owner, parts, &mut held.names)?;
                part.name(at.into(), held)
            }
        }
    }

    /// All names in page order.
    pub fn names(&self) -> Box<dyn Iterator<Item = Result<String>> + '_> {
        match self {
            Names::One(names) => Box::new(names.names()),
            Names::Parts { addresses, parts } => {
                in_order(addresses, 0, parts, NameReader::name_blocks)
            }
        }
    }

    /// Calls `visit` with the names of these pages, in order. How many there are.
    pub fn each(&self, pages: Range<u64>, visit: &mut dyn FnMut(&str)) -> Result<u64> {
        match self {
            Names::One(names) => names.each(pages, visit),
            Names::Parts { addresses, parts } => {
                let wanted = pages.end.saturating_sub(pages.start);
                let from = pages.start;
                let names = in_order(addresses, from, parts, NameReader::name_blocks);
                let mut found = 0;
                for name in names.take(wanted as usize) {
                    visit(&name?);
                    found += 1;
                }
                Ok(found)
            }
        }
    }

    /// All fingerprints in page order, what is [`super::kept`] of them.
    pub fn fingerprints(&self) -> Box<dyn Iterator<Item = Result<Fingerprint>> + '_> {
        match self.fingerprints_from(0) {
            Ok(prints) => prints,
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    /// The same from page `from` on.
    pub fn fingerprints_from(
        &self,
        from: u64,
    ) -> Result<Box<dyn Iterator<Item = Result<Fingerprint>> + '_>> {
        Ok(match self {
            Names::One(names) => Box::new(names.fingerprints_from(from)?),
            Names::Parts { addresses, parts } => {
                in_order(addresses, from, parts, NameReader::print_blocks)
            }
        })
    }

    /// The names of a store without partitions.
    pub fn one(&self) -> Option<&NameReader> {
        match self {
            Names::One(names) => Some(names),
            Names::Parts { .. } => None,
        }
    }
}

/// Blocks of something that there is for each page of a partition: the first page of each, and what there is.
pub(super) type PageBlocks<'a, T> = Box<dyn Iterator<Item = Result<(u64, Vec<T>)>> + 'a>;

/// What the partitions have for each page, in the order of all pages from page `from` on.
fn in_order<'a, T: Default + 'a>(
    addresses: &'a Addresses,
    from: u64,
    parts: &'a [NameReader],
    blocks: impl Fn(&'a NameReader, u64, u64) -> Result<PageBlocks<'a, T>> + 'a,
) -> Box<dyn Iterator<Item = Result<T>> + 'a> {
    let mut cursors: Vec<Cursor<'a, T>> = parts.iter().map(|_| Cursor::default()).collect();
    // Together they read as much ahead as one store does.
    let ahead = AHEAD / parts.len().max(1) as u64;
    let mut failed = false;
    let mut order = match addresses.entries(from) {
        Ok(order) => order,
        Err(error) => return Box::new(std::iter::once(Err(error))),
    };
    Box::new(std::iter::from_fn(move || {
        let entry = order.next().filter(|_| !failed)?;
        let found = entry.and_then(|Ghost { owner, at, .. }| {
            let (part, cursor) = addresses.part_of(owner, parts, &mut cursors)?;
            cursor.at(at.into(), |from| blocks(part, from, ahead))
        });
        failed = found.is_err();
        Some(found)
    }))
}

/// Goes through what a partition has for its pages, forwards.
struct Cursor<'a, T> {
    blocks: Option<PageBlocks<'a, T>>,
    held: (u64, Vec<T>),
}

impl<T> Default for Cursor<'_, T> {
    fn default() -> Self {
        Cursor {
            blocks: None,
            held: (0, Vec::new()),
        }
    }
}

impl<'a, T: Default> Cursor<'a, T> {
    /// What there is for a page behind all that were asked for before.
    fn at(&mut self, page: u64, open: impl FnOnce(u64) -> Result<PageBlocks<'a, T>>) -> Result<T> {
        if self.blocks.is_none() {
            self.blocks = Some(open(page)?);
        }
        loop {
            let at = page.checked_sub(self.held.0);
            if let Some(found) = at.and_then(|at| self.held.1.get_mut(at as usize)) {
                return Ok(std::mem::take(found));
            }
            let next = self.blocks.as_mut().and_then(Iterator::next);
            self.held = next.unwrap_or_else(|| {
                Err(Error::internal(format!("a partition has no page {page}")))
            })?;
        }
    }
}

impl Addresses {
    /// What there is of a partition in two lists, if it is in them.
    fn part_of<'a, 'b, A, B>(
        &self,
        owner: u32,
        one: &'a [A],
        other: &'b mut [B],
    ) -> Result<(&'a A, &'b mut B)> {
        let found = one.get(owner as usize).zip(other.get_mut(owner as usize));
        found.ok_or_else(|| self.damaged(format!("there is no partition {owner}")))
    }
}

/// The rows of a store, by the numbers of all pages.
pub enum AllRows {
    /// The store's own.
    One(KeptRows),
    /// Those of its partitions.
    Parts(PartRows),
}

/// The rows of all partitions, one partition after the other.
pub struct PartRows {
    pub(super) parts: Vec<KeptRows>,
    /// By partition: the number of each of its pages, and ghosts, among all.
    pub(super) numbers: Vec<Vec<u32>>,
    /// The partition of each page, and its number there.
    addresses: Arc<Addresses>,
    links: u64,
}

/// What the rows of partitions are made of.
pub(crate) struct PartRowsOf {
    addresses: Arc<Addresses>,
    parts: Vec<(RowsOf, Addresses)>,
}

impl PartRowsOf {
    /// Of what was published of a store.
    fn open(disk: &dyn Disk, dir: &Path, published: &PublishedParts) -> Result<PartRowsOf> {
        published.allow_open_files()?;
        let parts = (0..).zip(&published.parts).map(|(number, part)| {
            let dir = partition_dir(dir, number);
            let ghosts = Addresses::open(disk, &dir, GHOSTS, part.ghosts)?;
            Ok((RowsOf::new(disk, &dir, part.rows, part.pages), ghosts))
        });
        Ok(PartRowsOf {
            addresses: Arc::new(Addresses::open(disk, dir, ADDRESSES, published.addresses)?),
            parts: parts.collect::<Result<_>>()?,
        })
    }

    /// The rows, with what links them. All addresses and ghosts are read.
    fn rows(&self) -> Result<PartRows> {
        let rows = self.parts.iter().map(|(kept, _)| kept.rows());
        let rows = rows.collect::<Result<Vec<KeptRows>>>()?;
        let pages = rows.iter().map(Rows::pages);
        let mut numbers = self.addresses.numbers(pages)?;
        for (number, (_, ghosts)) in self.parts.iter().enumerate() {
            for ghost in ghosts.entries(0)? {
                let Ghost { page, owner, at } = ghost?;
                let owned = numbers.get(owner as usize);
                let known = owned.and_then(|pages| pages.get(at as usize)).copied();
                let known = known.filter(|&known| known != u32::MAX);
                let here = numbers[number].get_mut(page as usize);
                let (known, here) = known.zip(here).ok_or_else(|| ghosts.nowhere(page))?;
                *here = known;
            }
        }
        Ok(PartRows {
            links: rows.iter().map(Rows::links).sum(),
            parts: rows,
            numbers,
            addresses: self.addresses.clone(),
        })
    }
}

impl PartRows {
    /// The row of a partition by the numbers of all pages. `targets` is used for it.
    pub(super) fn global<'t>(
        &self,
        part: usize,
        row: Row<'t>,
        targets: &'t mut Vec<u32>,
    ) -> Result<Row<'t>> {
        let numbers = &self.numbers[part];
        // Rows are checked to name pages that there are.
        targets.clear();
        targets.extend(row.targets.iter().map(|&target| numbers[target as usize]));
        let page = numbers[row.page as usize];
        if page == u32::MAX || targets.contains(&u32::MAX) {
            let what = format!(
                "row of page {} in partition {part} names a page of none",
                row.page
            );
            return Err(self.addresses.damaged(what));
        }
        Ok(Row {
            page,
            targets,
            ..row
        })
    }

    fn kept(&self) -> CommittedRows {
        let parts = self.parts.iter();
        parts.fold(CommittedRows::default(), |all, part| sum(all, part.kept()))
    }

    /// Tells these rows from others.
    fn sum(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        for part in &self.parts {
            let kept = part.kept();
            hash.update(&kept.number.to_le_bytes());
            hash.update(&kept.rows.to_le_bytes());
            hash.update(&part.sum_before(kept.rows)?.to_le_bytes());
        }
        Ok(hash.digest())
    }

    /// Calls `visit` with the rows that `walk` gives of each partition.
    fn each(
        &self,
        visit: &mut RowVisitor<'_>,
        walk: impl Fn(usize, &KeptRows, &mut RowsVisitor<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut targets = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            walk(number, part, &mut |rows| {
                let mut all = rows.iter();
                all.try_for_each(|row| visit(self.global(number, *row, &mut targets)?))
            })?;
        }
        Ok(())
    }
}

impl Rows for PartRows {
    fn pages(&self) -> u64 {
        self.addresses.count
    }

    fn links(&self) -> u64 {
        self.links
    }

    fn walk(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.each(visit, |_, part, visit| part.walk_many(visit))
    }

    fn walk_some(&self, marked: &Bits, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        self.each(&mut |row| visit(&[row]), |number, part, visit| {
            let numbers = &self.numbers[number];
            let mut here = Bits::new(numbers.len() as u64);
            for (at, &page) in (0..).zip(numbers) {
                if marked.get(page.into()) {
                    here.set(at);
                }
            }
            part.walk_some(&here, visit)
        })
    }

    fn row(&self, page: u32, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        let Ghost { owner, at, .. } = self.addresses.get(page.into(), &mut None)?;
        let part = self.parts.get(owner as usize);
        let part = part.ok_or_else(|| self.addresses.nowhere(page))?;
        let (mut targets, mut read_well) = (Vec::new(), Ok(()));
        let found = part.row(
            at,
            &mut |row| match self.global(owner as usize, row, &mut targets) {
                Ok(row) => read(row),
                Err(error) => read_well = Err(error),
            },
        )?;
        read_well.map(|()| found)
    }
}

/// What a commit says of the rows of a store, or of its partitions, with their files open.
pub(crate) enum AllRowsOf {
    One(RowsOf),
    Parts {
        of: PartRowsOf,
        all: Retention,
        /// For the rows of single pages, once one was asked for.
        held: OnceLock<PartRows>,
    },
}

impl AllRowsOf {
    /// Of a store without partitions, or of these.
    pub fn new(
        disk: &dyn Disk,
        dir: &Path,
        (retention, pages): (Retention, u64),
        parts: Option<&PublishedParts>,
    ) -> Result<AllRowsOf> {
        Ok(match parts {
            None => AllRowsOf::One(RowsOf::new(disk, dir, retention, pages)),
            Some(parts) => AllRowsOf::Parts {
                of: PartRowsOf::open(disk, dir, parts)?,
                all: parts.retention(),
                held: OnceLock::new(),
            },
        })
    }

    pub fn retention(&self) -> &Retention {
        match self {
            AllRowsOf::One(rows) => rows.retention(),
            AllRowsOf::Parts { all, .. } => all,
        }
    }

    /// Returns whether a file could not be opened.
    pub fn failed(&self) -> bool {
        match self {
            AllRowsOf::One(rows) => rows.failed(),
            AllRowsOf::Parts { of, .. } => of.parts.iter().any(|(rows, _)| rows.failed()),
        }
    }

    /// See [`RowsOf::rows`].
    pub fn rows(&self) -> Result<AllRows> {
        Ok(match self {
            AllRowsOf::One(rows) => AllRows::One(rows.rows()?),
            AllRowsOf::Parts { of, .. } => AllRows::Parts(of.rows()?),
        })
    }

    /// See [`RowsOf::row`].
    pub fn row(&self, page: u32, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        match self {
            AllRowsOf::One(rows) => rows.row(page, read),
            AllRowsOf::Parts { of, held, .. } => match held.get() {
                Some(rows) => rows.row(page, read),
                None => {
                    let rows = of.rows()?;
                    held.get_or_init(|| rows).row(page, read)
                }
            },
        }
    }
}

impl AllRows {
    fn rows(&self) -> &dyn Rows {
        match self {
            AllRows::One(rows) => rows,
            AllRows::Parts(rows) => rows,
        }
    }

    /// How much there is of rows, and of those that are superseded.
    pub fn kept(&self) -> CommittedRows {
        match self {
            AllRows::One(rows) => *rows.kept(),
            AllRows::Parts(rows) => rows.kept(),
        }
    }

    /// How many rows were written, and what tells these from others.
    pub(crate) fn written(&self) -> Result<(CommittedRows, u64)> {
        let kept = self.kept();
        let sum = match self {
            AllRows::One(rows) => rows.sum_before(kept.rows)?,
            AllRows::Parts(rows) => rows.sum()?,
        };
        Ok((kept, sum))
    }

    /// Returns whether so many of the rows that were written first are those with this sum. In partitions: all are.
    pub(crate) fn begins_with(&self, rows: u64, sum: u64) -> Result<bool> {
        match self {
            AllRows::One(kept) => Ok(rows <= kept.kept().rows && sum == kept.sum_before(rows)?),
            AllRows::Parts(kept) => Ok(rows == kept.kept().rows && sum == kept.sum()?),
        }
    }

    /// Calls `visit` with every row that was written behind those that [`AllRows::begins_with`].
    ///
    /// # Errors
    /// As of [`Rows::sweep`].
    pub(crate) fn written_from(&self, from: u64, visit: &mut RowVisitor<'_>) -> Result<bool> {
        match self {
            AllRows::One(rows) => rows.written_from(from, visit),
            // Where rows were written since, these do not begin with those of before.
            AllRows::Parts(_) => Ok(true),
        }
    }
}

impl AllRows {
    /// Returns whether links of some rows weigh more than others: only heads of rows are read.
    ///
    /// # Errors
    /// Those of reading.
    pub fn has_weights(&self) -> Result<bool> {
        let parts = match self {
            AllRows::One(rows) => std::slice::from_ref(rows),
            AllRows::Parts(parts) => &parts.parts,
        };
        for rows in parts {
            if rows.has_weights()? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Rows for AllRows {
    fn pages(&self) -> u64 {
        self.rows().pages()
    }

    fn links(&self) -> u64 {
        self.rows().links()
    }

    fn walk(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.rows().walk(visit)
    }

    fn walk_some(&self, marked: &Bits, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        self.rows().walk_some(marked, visit)
    }

    fn row(&self, page: u32, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        self.rows().row(page, read)
    }
}
