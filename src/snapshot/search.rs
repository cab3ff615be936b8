//! Pages by a part of their URL or by scope, and the pages that could not be fetched: sweeps in number order.
//!
//! A search reads names, of [`SearchOptions::within`] pages at most. Columns are read of the blocks (131,072 pages) in which it
//! finds something.

use std::collections::HashMap;
use std::ops::Range;

use memchr::memmem::Finder;
use serde::Serialize;

use super::levels::{Best, is_better, keep};
use super::{Column, Snapshot, SnapshotPage};
use crate::engine::{CHUNK_PAGES, PageId};
use crate::model::{PageState, Time, rfc_3339};
use crate::rows::Bits;
use crate::rules::{Scope, Shard};
use crate::{Result, url};

/// Pages that a search looks at, unless it is given another number.
pub const WITHIN: u64 = 2_000_000;
/// Hosts of which failures are counted; those of further ones are counted together.
const HOSTS: usize = 1_000_000;

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchOptions {
    /// A part of the URL or name, whatever the case of its ASCII letters; `None`: any.
    pub text: Option<String>,
    /// Only pages in this scope.
    pub scope: Scope,
    /// Pages in each list, at most.
    pub count: usize,
    /// Only the first so many pages are looked at, in order of first appearance.
    pub within: u64,
}

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        SearchOptions {
            text: None,
            scope: Scope::default(),
            count: 20,
            within: WITHIN,
        }
    }
}

/// What a search found: counts of all that it found, and the best of them, best rank first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Found {
    /// Pages known.
    pub pages: u64,
    /// The first so many of them were looked at.
    pub searched: u64,
    /// Those found.
    pub found: u64,
    /// Of these: visited.
    pub visited: u64,
    /// Known, and never visited.
    pub frontier: u64,
    /// The last fetch failed, whether the page was visited before or not.
    pub failed: u64,
    /// Found gone (404, 410); absent where a snapshot of an older version does not say.
    pub gone: Option<u64>,
    /// The best of all found.
    pub best: Vec<FoundPage>,
    /// The best that were never visited.
    pub best_frontier: Vec<FoundPage>,
    /// The best whose last fetch failed.
    pub best_failed: Vec<FoundPage>,
    /// The best that are gone.
    pub best_gone: Vec<FoundPage>,
}

/// A page that was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FoundPage {
    /// 1 + pages of strictly greater importance.
    pub rank: u64,
    /// Its importance; all pages sum to 1.
    pub importance: f64,
    /// Visits.
    pub visits: u64,
    /// Its last fetch, in seconds since 1970; as text in RFC 3339.
    #[serde(serialize_with = "rfc_3339")]
    pub last_fetch: Option<Time>,
    /// Fetches that failed since it was last reached.
    pub failed: u64,
    /// What its fetches came to; absent where an older snapshot does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PageState>,
    /// Its URL in canonical form, or its opaque name.
    pub url: String,
}

/// Pages that could not be fetched, by host.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Failing {
    /// Pages whose last fetch failed: any status but those of pages that are there or gone, or no answer.
    pub failed: u64,
    /// Pages that were found gone (404, 410); absent where a snapshot of an older version does not say.
    pub gone: Option<u64>,
    /// Hosts of such pages, those with most first.
    pub hosts: Vec<FailingHost>,
    /// Such pages on hosts beyond the first million that were met, and nodes without a host.
    pub elsewhere: u64,
    /// The most important pages whose last fetch failed.
    pub best_failed: Vec<FoundPage>,
    /// The most important that are gone.
    pub best_gone: Vec<FoundPage>,
}

impl Failing {
    /// The first `n` of each list.
    pub fn first(&self, n: usize) -> Failing {
        let first = |list: &[FoundPage]| list.iter().take(n).cloned().collect();
        Failing {
            hosts: self.hosts.iter().take(n).cloned().collect(),
            best_failed: first(&self.best_failed),
            best_gone: first(&self.best_gone),
            ..*self
        }
    }
}

/// A host of pages that could not be fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FailingHost {
    /// Its name.
    pub host: String,
    /// Pages of it whose last fetch failed.
    pub failed: u64,
    /// Those that are gone.
    pub gone: u64,
}

/// Which names are searched for.
struct Wanted<'a> {
    text: Option<Finder<'a>>,
    scope: &'a Scope,
    shard: Option<Shard>,
    lower: Vec<u8>,
}

impl Wanted<'_> {
    fn has(&mut self, name: &[u8]) -> bool {
        if let Some(text) = &self.text {
            self.lower.clear();
            self.lower.extend(name.iter().map(u8::to_ascii_lowercase));
            if text.find(&self.lower).is_none() {
                return false;
            }
        }
        self.scope.has(name) && self.shard.is_none_or(|shard| shard.has(name))
    }
}

/// Counts, and the best, of some pages.
struct List {
    most: usize,
    count: u64,
    best: Best,
}

impl List {
    fn new(most: usize) -> List {
        List {
            most,
            count: 0,
            best: Best::new(),
        }
    }

    fn add(&mut self, page: (u64, PageId)) {
        self.count += 1;
        if is_better(&self.best, self.most, page) {
            keep(&mut self.best, self.most, page);
        }
    }

    fn numbers(self) -> Vec<PageId> {
        let best = self.best.into_sorted_vec();
        best.into_iter().map(|(_, page)| page).collect()
    }
}

impl Snapshot {
    /// The pages whose names have a text in them, or that are in a scope.
    ///
    /// ```
    /// # use cashrank::{Options, Record, Writer};
    /// use cashrank::snapshot::SearchOptions;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let home = tempfile::tempdir()?;
    /// let mut writer = Writer::open(home.path().join("store"), &Options::default())?;
    /// writer.push(&Record::new("http://a.example/", ["/News", "/b"]))?;
    /// let ranking = writer.publish()?;
    /// let wanted = SearchOptions { text: Some("/news".into()), ..SearchOptions::default() };
    /// let found = ranking.search(&wanted)?;
    /// assert_eq!((found.searched, found.found, found.frontier), (3, 1, 1));
    /// assert_eq!(found.best[0].url, "http://a.example/News");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The snapshot, names or rows are damaged or cannot be read.
    #[doc(hidden)]
    pub fn search(&self, options: &SearchOptions) -> Result<Found> {
        let lower = options.text.as_ref().map(|text| text.to_ascii_lowercase());
        let mut wanted = Wanted {
            text: lower.as_ref().map(Finder::new),
            scope: &options.scope,
            shard: self.info().settings.input.shard,
            lower: Vec::new(),
        };
        let searched = self.len().min(options.within);
        let [mut all, mut frontier, mut failed, mut gone] =
            [(); 4].map(|()| List::new(options.count));
        for block in 0..searched.div_ceil(CHUNK_PAGES) {
            let first = block * CHUNK_PAGES;
            let matching = self.matching(first..searched.min(first + CHUNK_PAGES), &mut wanted)?;
            if matching.is_empty() {
                continue;
            }
            let ranks = self.columns.column(block, Column::Rank)?;
            let visits = self.columns.column(block, Column::Visits)?;
            let failures = self.columns.failures(block)?;
            let is_gone = self.columns.gone_if(block)?;
            for page in matching {
                let at = (page - first) as usize;
                let ranked = (ranks[at], PageId(page));
                all.add(ranked);
                if visits[at] == 0 {
                    frontier.add(ranked);
                }
                if is_gone.as_ref().is_some_and(|is_gone| is_gone[at] != 0) {
                    gone.add(ranked);
                }
                if failures.at(at).failed > 0 {
                    failed.add(ranked);
                }
            }
        }
        Ok(Found {
            pages: self.len(),
            searched,
            found: all.count,
            visited: all.count - frontier.count,
            frontier: frontier.count,
            failed: failed.count,
            gone: self.says_gone().then_some(gone.count),
            best: self.found(&all.numbers())?,
            best_frontier: self.found(&frontier.numbers())?,
            best_failed: self.found(&failed.numbers())?,
            best_gone: self.found(&gone.numbers())?,
        })
    }

    /// Which of these pages are wanted. Where all are, no names are read.
    fn matching(&self, pages: Range<u64>, wanted: &mut Wanted<'_>) -> Result<Vec<u64>> {
        if wanted.text.is_none() && wanted.scope.is_all() && wanted.shard.is_none() {
            return Ok(pages.collect());
        }
        let mut matching = Vec::new();
        let mut page = pages.start;
        self.each_name(pages, &mut |name| {
            if wanted.has(name) {
                matching.push(page);
            }
            page += 1;
        })?;
        Ok(matching)
    }

    /// What is known of these pages.
    fn found(&self, pages: &[PageId]) -> Result<Vec<FoundPage>> {
        let known = self.pages_of(pages)?.into_iter();
        let found = |(page, url): (SnapshotPage, String)| FoundPage {
            rank: page.rank,
            importance: page.importance,
            visits: page.fetches.visits,
            last_fetch: page.fetches.last,
            failed: page.fetches.failed,
            state: page.fetches.state(),
            url,
        };
        Ok(known.zip(self.names_of(pages)?).map(found).collect())
    }

    /// The pages whose last fetch failed, and those that are gone, by host; in each list so many. Memory: 2 bits a page, and about 100 bytes for each host that has such pages.
    ///
    /// # Errors
    /// The snapshot, names or rows are damaged or cannot be read.
    #[doc(hidden)]
    pub fn failing(&self, count: usize) -> Result<Failing> {
        let [mut failed, mut gone] = [(); 2].map(|()| Bits::new(self.len()));
        self.failures(&mut |page, fetches| {
            if fetches.failed > 0 {
                failed.set(page.into());
            }
        })?;
        if self.says_gone() {
            gone = self.gone()?;
        }
        let mut lists = [List::new(count), List::new(count)];
        let mut by_host: HashMap<String, [u64; 2]> = HashMap::new();
        let mut elsewhere = 0;
        for block in 0..self.columns.blocks() {
            let first = block * CHUNK_PAGES;
            let end = self.len().min(first + CHUNK_PAGES);
            let is_wanted = |page: &u64| failed.get(*page) || gone.get(*page);
            let pages: Vec<PageId> = (first..end).filter(is_wanted).map(PageId).collect();
            if pages.is_empty() {
                continue;
            }
            let ranks = self.columns.column(block, Column::Rank)?;
            for (page, name) in pages.iter().zip(self.names_of(&pages)?) {
                let is = [failed.get(page.0), gone.get(page.0)];
                for (list, _) in lists.iter_mut().zip(is).filter(|(_, is)| *is) {
                    list.add((ranks[(page.0 - first) as usize], *page));
                }
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
            failed: failed.count,
            gone: self.says_gone().then_some(gone.count),
            hosts,
            elsewhere,
            best_failed: self.found(&failed.numbers())?,
            best_gone: self.found(&gone.numbers())?,
        })
    }
}
