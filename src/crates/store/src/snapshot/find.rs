//! Lookup of single pages in a snapshot: their values by number; their numbers by name, by the index on disk and the
//! fingerprints; and their ranks by URLs in any form. Search of pages by a part of their URL or by scope, and of pages
//! that could not be fetched: sweeps in number order.
//!
//! A search reads the names of at most [`SearchOptions::within`] pages, and columns of the blocks (131,072 pages) in
//! which it finds something.

use std::collections::HashMap;
use std::ops::Range;

use memchr::memmem::Finder;
use serde::Serialize;

use super::blocks::rows_at;
use super::levels::{RankedPages, pages_of_best};
use super::{Snapshot, SnapshotColumn, SnapshotPage};
use crate::engine::{CHUNK_PAGES, Fingerprint, PageId};
use crate::model::{Page, PageState, utc};
use crate::rows::Bits;
use crate::rules::Scope;
use crate::rules::list::ListLine;
use crate::store::{self, IndexFile};
use crate::{Result, url};

/// Number of bits in a filter per name that is looked up, and their minimum.
const FILTER: u64 = 64;
const FILTER_LEAST: u64 = 1 << 13;
/// Number of fingerprints that are scanned in the time of one index lookup.
const LOOKUP_PAGES: u64 = 1 << 12;

/// Columns of which [`SnapshotPage::named`] makes a page.
pub(super) const SHOWN: [SnapshotColumn; 8] = [
    SnapshotColumn::Importance,
    SnapshotColumn::Distributed,
    SnapshotColumn::Rank,
    SnapshotColumn::Visits,
    SnapshotColumn::LastFetch,
    SnapshotColumn::Cash,
    SnapshotColumn::Failed,
    SnapshotColumn::Gone,
];

impl Snapshot {
    /// Returns rank and fetches of pages, by URLs in any form or opaque names.
    pub fn ranks(&self, urls: &[String]) -> Result<Vec<Rank>> {
        let ranks = self.numbered_ranks(urls)?.into_iter();
        Ok(ranks.map(|(_, rank)| rank).collect())
    }

    /// Returns ranks like [`Snapshot::ranks`], each with the number of the page.
    #[doc(hidden)]
    pub fn numbered_ranks(&self, urls: &[String]) -> Result<Vec<(Option<PageId>, Rank)>> {
        let found = pages_of(urls, |names| self.find(names))?;
        let numbers: Vec<PageId> = found.iter().flatten().copied().collect();
        let mut pages = self.pages_of(&numbers)?.into_iter();
        let info = self.info();
        let ranks = urls.iter().zip(found).map(|(url, number)| {
            let page = number.and_then(|_| pages.next());
            let row = page.map(|page| page.named(url, info.pages));
            let fetches = page.map(|page| page.fetches);
            let rank = Rank {
                failed: fetches.map(|fetches| fetches.failed),
                compared: fetches.map(|fetches| fetches.compared),
                changed: fetches.map(|fetches| fetches.changed),
                ..Rank::of_row(url, row.as_ref(), info.ranked_pages())
            };
            (number, rank)
        });
        Ok(ranks.collect())
    }

    /// Returns one page; `None` if the snapshot does not have it.
    pub fn page(&self, page: PageId) -> Result<Option<SnapshotPage>> {
        Ok(self.pages_of(&[page])?.pop())
    }

    /// Returns these pages, which the snapshot must have, in the order given. Reads each block of columns once.
    pub fn pages_of(&self, pages: &[PageId]) -> Result<Vec<SnapshotPage>> {
        self.pages_with(pages, &SnapshotColumn::ALL)
    }

    /// Returns rank and importance of these pages, which the snapshot must have, in order. Reads no other columns.
    pub fn ranks_of(&self, pages: &[PageId]) -> Result<Vec<(u64, f64)>> {
        let wanted = [SnapshotColumn::Rank, SnapshotColumn::Importance];
        let pages = self.pages_with(pages, &wanted)?.into_iter();
        Ok(pages.map(|page| (page.rank, page.importance)).collect())
    }

    /// Returns the results of these pages' fetches, in order. Reads no other columns.
    #[doc(hidden)]
    pub fn states_of(&self, pages: &[PageId]) -> Result<Vec<PageState>> {
        let wanted = [
            SnapshotColumn::Visits,
            SnapshotColumn::Failed,
            SnapshotColumn::Gone,
        ];
        let pages = self.pages_with(pages, &wanted)?.into_iter();
        Ok(pages.map(|page| page.fetches.state()).collect())
    }

    /// Returns these pages with their names, like [`Snapshot::pages_of`], by the columns that a [`Page`] shows.
    pub fn named_pages(&self, pages: &[PageId]) -> Result<Vec<Page<'static>>> {
        let known = self.pages_with(pages, &SHOWN)?.into_iter();
        let named = known.zip(self.names_of(pages)?);
        let named = named.map(|(page, url)| page.named(url, self.len()));
        Ok(named.collect())
    }

    fn pages_with(&self, pages: &[PageId], wanted: &[SnapshotColumn]) -> Result<Vec<SnapshotPage>> {
        let known = pages.iter().copied().filter(|page| page.0 < self.len());
        let known: Vec<PageId> = known.collect();
        rows_at(&known, |block, places| {
            self.columns.pages_at(block, wanted, places)
        })
    }

    /// Returns the names of these pages, in the order given. Reads each block of names once.
    pub fn names_of(&self, pages: &[PageId]) -> Result<Vec<String>> {
        let mut sorted: Vec<usize> = (0..pages.len()).collect();
        sorted.sort_unstable_by_key(|&at| pages[at]);
        let mut names = vec![String::new(); pages.len()];
        let mut at = sorted.iter();
        let numbers = sorted.iter().map(|&at| pages[at].0);
        self.names.each_of(numbers, &mut |name| {
            if let Some(&at) = at.next() {
                names[at] = std::str::from_utf8(name).unwrap_or_default().into();
            }
        })?;
        Ok(names)
    }

    /// Finds the pages with these names, in the index as far as that covers them and they are few, else by a scan of
    /// the fingerprints.
    pub fn find(&self, names: &[&[u8]]) -> Result<Vec<Option<PageId>>> {
        let fingerprints = self.key.fingerprints();
        let mut wanted: HashMap<Fingerprint, Vec<usize>> = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            let print = store::kept(fingerprints.of(name));
            wanted.entry(print).or_default().push(at);
        }
        let mut found = vec![None; names.len()];
        let mut note = |page: u64, places: Vec<usize>| {
            (places.into_iter()).for_each(|at| found[at] = Some(PageId(page)));
        };
        let mut behind = 0;
        let index = (self.index.as_ref())
            .filter(|_| (wanted.len() as u64).saturating_mul(LOOKUP_PAGES) < self.len());
        // A damaged index is ignored.
        if let Some(index) = index
            && let Ok(known) = self.look_up(index, wanted.keys().copied())
        {
            behind = index.pages.min(self.len());
            for (page, print) in known {
                note(page, wanted.remove(&print).unwrap_or_default());
            }
        }
        self.sweep_prints(behind..self.len(), &mut wanted, &mut note)?;
        let is_whole = |index: &IndexFile| index.check(self.len(), &self.names).is_ok();
        // An index of the snapshot has all pages that it should.
        if !wanted.is_empty() && !index.is_some_and(is_whole) {
            self.sweep_prints(0..behind, &mut wanted, &mut note)?;
        }
        Ok(found)
    }

    /// Scans these pages for `wanted` fingerprints, removes those it finds, and calls `found`, until none is left.
    fn sweep_prints(
        &self,
        pages: Range<u64>,
        wanted: &mut HashMap<Fingerprint, Vec<usize>>,
        found: &mut dyn FnMut(u64, Vec<usize>),
    ) -> Result<()> {
        if wanted.is_empty() || pages.is_empty() {
            return Ok(());
        }
        // Nearly all pages are excluded by their lowest bits.
        let slots = (wanted.len() as u64 * FILTER).next_power_of_two();
        let slots = slots.max(FILTER_LEAST);
        let slot = |print: Fingerprint| print as u64 & (slots - 1);
        let mut filter = Bits::new(slots);
        for &print in wanted.keys() {
            filter.set(slot(print));
        }
        let prints = self.fingerprints(pages.start)?;
        for (page, print) in pages.zip(prints) {
            let print = print?;
            if filter.get(slot(print))
                && let Some(places) = wanted.remove(&print)
            {
                found(page, places);
                if wanted.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Looks up fingerprints in the index. Returns those of the snapshot's pages, verified against its fingerprints.
    fn look_up(
        &self,
        index: &IndexFile,
        prints: impl Iterator<Item = Fingerprint>,
    ) -> Result<Vec<(u64, Fingerprint)>> {
        let mut known = Vec::new();
        for print in prints {
            let page = index.get(print)?.filter(|page| page.0 < self.len());
            known.extend(page.map(|page| (page.0, print)));
        }
        known.sort_unstable();
        let mut held = None;
        for &(page, print) in &known {
            if self.names.fingerprint(page, &mut held)? != Some(print) {
                return Err(index.file.damaged("it is of other fingerprints"));
            }
        }
        Ok(known)
    }
}

/// Rank and other facts of one page or site.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rank {
    pub url: String,
    /// True if the page is known; if not, all other fields are absent.
    pub known: bool,
    pub importance: Option<f64>,
    /// 1 + the number of pages of strictly greater importance.
    pub rank: Option<u64>,
    /// Share of pages, in percent, that do not rank higher.
    pub percentile: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// Cash as a share of all: C of the OPIC paper; absent for a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cash: Option<f64>,
    /// Cash distributed in the ranking's window, as a share of all: H of the OPIC paper. In a settled ranking, what the
    /// page would distribute in the long run. Absent for a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distributed: Option<f64>,
    pub visits: Option<u64>,
    pub last_fetch: Option<String>,
    /// Result of the page's fetches: crawled, not crawled, failed or gone. Absent for a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PageState>,
    /// Number of fetches that failed since the page was last reached.
    pub failed: Option<u64>,
    /// Number of times that two fetches showed whether the page had changed.
    pub compared: Option<u64>,
    pub changed: Option<u64>,
}

impl Rank {
    /// Creates the answer for a row of a ranking of `count` pages or sites; `None`: the name is unknown.
    pub fn of_row(url: &str, row: Option<&Page<'_>>, count: u64) -> Rank {
        let url = url.to_owned();
        let Some(row) = row else {
            return Rank {
                url,
                ..Rank::default()
            };
        };
        Rank {
            url,
            known: true,
            importance: Some(row.importance),
            rank: Some(row.rank),
            percentile: Some(100.0 * (1.0 - (row.rank - 1) as f64 / count as f64)),
            pages: row.site.as_ref().map(|site| site.pages),
            cash: row.cash,
            distributed: row.distributed,
            state: row.state,
            visits: Some(row.visits),
            last_fetch: row.last_fetch.and_then(utc),
            ..Rank::default()
        }
    }
}

/// Returns the canonical form of a URL; an opaque name stays as it is.
pub fn canonical(url: &str) -> Vec<u8> {
    ListLine::of(url.as_bytes(), 0).name
}

/// Looks up pages by URLs in any form or opaque names; `find` is called again for those that only look like URLs.
pub fn pages_of<P: Copy, E>(
    urls: &[String],
    find: impl FnMut(&[&[u8]]) -> std::result::Result<Vec<Option<P>>, E>,
) -> std::result::Result<Vec<Option<P>>, E> {
    let lines = (0..).zip(urls);
    let lines = lines.map(|(number, url)| ListLine::of(url.as_bytes(), number));
    let found = find_lines(lines.collect(), find)?;
    Ok(found.into_iter().map(|(_, page)| page).collect())
}

/// Looks up the pages of a chunk of lines. An opaque name that looks like a URL is also looked up as typed.
pub fn find_lines<P: Copy, E>(
    mut piece: Vec<ListLine>,
    mut find: impl FnMut(&[&[u8]]) -> std::result::Result<Vec<Option<P>>, E>,
) -> std::result::Result<Vec<(ListLine, Option<P>)>, E> {
    let names: Vec<&[u8]> = piece.iter().map(|line| &*line.name).collect();
    let mut pages = find(&names)?;
    let is_open = |at: &usize| pages[*at].is_none() && piece[*at].typed.is_some();
    let open: Vec<usize> = (0..piece.len()).filter(is_open).collect();
    if !open.is_empty() {
        let typed = open.iter().filter_map(|&at| piece[at].typed.as_deref());
        let found = find(&typed.collect::<Vec<_>>())?;
        for (at, page) in open.into_iter().zip(found) {
            if page.is_some() {
                pages[at] = page;
                piece[at].name = piece[at].typed.take().unwrap_or_default();
            }
        }
    }
    Ok(piece.into_iter().zip(pages).collect())
}

pub const WITHIN: u64 = 2_000_000;
/// Number of hosts whose failures are counted individually; those of further hosts are counted together.
const HOSTS: usize = 1_000_000;
/// Columns that a search reads; the list of failures reads all except for the last one.
const COLUMNS: [SnapshotColumn; 4] = [
    SnapshotColumn::Rank,
    SnapshotColumn::Failed,
    SnapshotColumn::Gone,
    SnapshotColumn::Visits,
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchOptions {
    /// Part of the URL or name, ignoring the case of ASCII letters; `None` for any.
    pub text: Option<String>,
    pub scope: Scope,
    pub count: usize,
    /// Number of pages that are read, in order of first appearance.
    pub within: u64,
}

/// Result of a search: counts of all pages found, and the best of them, best rank first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SearchResult {
    pub pages: u64,
    /// Number of pages that were read, from the first.
    pub searched: u64,
    pub found: u64,
    pub visited: u64,
    pub frontier: u64,
    /// Number of found pages whose last fetch failed, visited before or not.
    pub failed: u64,
    pub gone: u64,
    pub best: Vec<Page<'static>>,
    pub best_frontier: Vec<Page<'static>>,
    pub best_failed: Vec<Page<'static>>,
    pub best_gone: Vec<Page<'static>>,
}

/// Pages that could not be fetched, by host.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Failing {
    /// Number of pages whose last fetch failed: any status except those of pages that are there or gone, or no answer.
    pub failed: u64,
    pub gone: u64,
    /// Hosts of failed or gone pages, in descending order of the number of those pages.
    pub hosts: Vec<FailingHost>,
    /// Number of failed or gone pages on hosts after the first million, and of nodes without a host.
    pub elsewhere: u64,
    pub best_failed: Vec<Page<'static>>,
    pub best_gone: Vec<Page<'static>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FailingHost {
    pub host: String,
    pub failed: u64,
    pub gone: u64,
}

impl Snapshot {
    /// Finds the pages whose names contain a text, or that are in a scope.
    #[doc(hidden)]
    pub fn search(&self, options: &SearchOptions) -> Result<SearchResult> {
        let searched = self.len().min(options.within);
        let mut lists = [(); 4].map(|()| RankedPages::new(options.count));
        for block in 0..searched.div_ceil(CHUNK_PAGES) {
            let first = block * CHUNK_PAGES;
            let matching = self.matching(first..searched.min(first + CHUNK_PAGES), options)?;
            if matching.is_empty() {
                continue;
            }
            for page in self.columns.pages_at(block, &COLUMNS, &matching)? {
                let fetches = &page.fetches;
                let is = [true, fetches.visits == 0, fetches.failed > 0, fetches.gone];
                add(&mut lists, is, &page);
            }
        }
        let [found, frontier, failed, gone] = lists.each_ref().map(|list| list.added);
        let [best, best_frontier, best_failed, best_gone] = lists.map(|list| self.found(list));
        Ok(SearchResult {
            pages: self.len(),
            searched,
            found,
            visited: found - frontier,
            frontier,
            failed,
            gone,
            best: best?,
            best_frontier: best_frontier?,
            best_failed: best_failed?,
            best_gone: best_gone?,
        })
    }

    /// Returns the places in their block of the pages that are searched for. Reads no names if all are.
    fn matching(&self, pages: Range<u64>, options: &SearchOptions) -> Result<Vec<usize>> {
        let (scope, is_shard) = (&options.scope, self.info().settings.input.shard.is_some());
        if options.text.is_none() && scope.is_all() && !is_shard {
            return Ok((0..(pages.end - pages.start) as usize).collect());
        }
        let text = options.text.as_ref().map(|text| text.to_ascii_lowercase());
        let text = text.as_ref().map(Finder::new);
        let (mut matching, mut at, mut lower) = (Vec::new(), 0, Vec::new());
        self.each_name(pages, &mut |name| {
            let has_text = text.as_ref().is_none_or(|text| {
                lower.clear();
                lower.extend(name.iter().map(u8::to_ascii_lowercase));
                text.find(&lower).is_some()
            });
            if has_text && scope.has(name) && self.is_local(name) {
                matching.push(at);
            }
            at += 1;
        })?;
        Ok(matching)
    }

    fn found(&self, best: RankedPages) -> Result<Vec<Page<'static>>> {
        let pages = pages_of_best(best);
        let known = self.pages_of(&pages)?.into_iter();
        let found = known.zip(self.names_of(&pages)?).map(|(page, url)| Page {
            failed: Some(page.fetches.failed),
            ..page.named(url, self.len())
        });
        Ok(found.collect())
    }

    /// Finds the pages whose last fetch failed, and those that are gone, by host: at most `count` entries per list.
    #[doc(hidden)]
    pub fn failing(&self, count: usize) -> Result<Failing> {
        let mut lists = [(); 2].map(|()| RankedPages::new(count));
        let mut by_host: HashMap<String, [u64; 2]> = HashMap::new();
        let mut elsewhere = 0;
        let read = |block| {
            let pages = self.columns.block_with(block, &COLUMNS[..3])?;
            let meant = pages.filter(|page| page.fetches.failed > 0 || page.fetches.gone);
            Ok(meant.collect::<Vec<_>>())
        };
        for pages in self.columns.in_twos(read) {
            let pages = pages?;
            let numbers: Vec<PageId> = pages.iter().map(|page| page.page).collect();
            for (page, name) in pages.iter().zip(self.names_of(&numbers)?) {
                let is = [page.fetches.failed > 0, page.fetches.gone];
                add(&mut lists, is, page);
                let host = String::from_utf8_lossy(url::host(name.as_bytes()));
                let is_met = by_host.contains_key(&*host);
                if host.is_empty() || !is_met && by_host.len() == HOSTS {
                    elsewhere += 1;
                    continue;
                }
                let counts = by_host.entry(host.into_owned()).or_default();
                for (count, is) in counts.iter_mut().zip(is) {
                    *count += u64::from(is);
                }
            }
        }
        let host = |(host, [failed, gone]): (String, [u64; 2])| FailingHost { host, failed, gone };
        let mut hosts: Vec<FailingHost> = by_host.into_iter().map(host).collect();
        hosts.sort_by(|a, b| {
            let of = |host: &FailingHost| host.failed + host.gone;
            of(b).cmp(&of(a)).then_with(|| a.host.cmp(&b.host))
        });
        hosts.truncate(count);
        let [failed, gone] = lists;
        Ok(Failing {
            failed: failed.added,
            gone: gone.added,
            hosts,
            elsewhere,
            best_failed: self.found(failed)?,
            best_gone: self.found(gone)?,
        })
    }
}

fn add<const N: usize>(lists: &mut [RankedPages; N], is: [bool; N], page: &SnapshotPage) {
    for (list, _) in lists.iter_mut().zip(is).filter(|(_, is)| *is) {
        list.add((page.rank, page.page), Ord::cmp);
    }
}
