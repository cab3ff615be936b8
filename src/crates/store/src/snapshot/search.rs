//! Search of pages by a part of their URL or by scope, and of pages that could not be fetched: sweeps in number order.
//!
//! A search reads the names of at most [`SearchOptions::within`] pages, and columns of the blocks (131,072 pages) in
//! which it finds something.

use std::collections::HashMap;
use std::ops::Range;

use memchr::memmem::Finder;
use serde::Serialize;

use super::levels::{RankedPages, pages_of_best};
use super::{Snapshot, SnapshotColumn, SnapshotPage};
use crate::engine::{CHUNK_PAGES, Page, PageId};
use crate::rules::Scope;
use crate::{Result, url};

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
            let page = self.columns.pages_with(block, &COLUMNS)?;
            for page in matching.into_iter().map(page) {
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

    /// Finds the pages whose last fetch failed, and those that are gone, by host, with at most `count` entries per
    /// list. Memory: about 100 bytes for each host with such pages.
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
