//! What a store's crawl should fetch next: a strategy applied to the last snapshot and its kept rows.
//!
//! Reads beside a writer, without a lock. Pages that have a row count as read, including those found gone; without
//! rows, pages that were visited. A page whose fetches failed since it was last reached is left out for some time, and
//! for good after several failures.
//!
//! Memory: what a [`Follower`](super::Follower) keeps, and the list.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::hosts::FetchedHosts;
use super::queue::PageTopK;
use super::refresh::{self, Looks};
use super::{Choice, CrawlState, Focus, ScoredPage};
use crate::decode::Time;
use crate::engine::YEAR;
use crate::model::{Fetches, PageId};
use crate::rows::Bits;
use crate::rules::{Scope, Shard};
use crate::snapshot::{Snapshot, SnapshotPage};
use crate::store::rows::KeptRows;
use crate::url::{domain, host};
use crate::{Error, Result};

/// Pages that are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PageSelection {
    /// Unread pages, by the strategy.
    NotFetched,
    /// Pages that were read, by the gain of reading them again.
    Refetch,
    /// Both: this share of unread pages, as far as there are any.
    Budget {
        /// Share of unread pages, 0 to 1.
        discovery: f64,
    },
    /// Both, by their claims alone, for strategies that order by cash ([`super::StrategySpec::by_cash`]).
    Either,
}

/// Parameters of a list of pages to crawl.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NextOptions {
    /// Order of unread pages.
    pub strategy: Choice,
    /// Maximum number of pages to list.
    pub count: usize,
    /// Pages that are wanted: unread, read, or both.
    pub which: PageSelection,
    /// Maximum number of pages per host.
    pub per_host: Option<u64>,
    /// Maximum number of pages per registered domain, by the public suffix list.
    pub per_domain: Option<u64>,
    /// Pages that may be listed.
    pub scope: Scope,
    /// Restriction to hosts of which a page was fetched, or is a seed.
    pub known_hosts: bool,
    /// Minimum age in seconds of a page's last fetch for it to be read again; pages without a known time qualify.
    pub older_than: Option<u64>,
    /// Rule for leaving out pages whose fetches failed.
    pub failures: RetryPolicy,
    /// Current time, in seconds since 1970; `None`: the time of the snapshot.
    pub now: Option<Time>,
    /// Pages that the virtual page pays more, so that they come earlier.
    pub focus: Focus,
    /// Bitmap of pages that must not be listed, for example because they were handed out already.
    pub exclude: Bits,
    /// Pages that come first, in this order, unless they were read.
    pub seeds: Vec<Seed>,
}

/// Rule for leaving out pages whose fetches failed since they were last reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Seconds after the last failure during which it is left out, if times are known.
    pub retry_after: u64,
    /// Number of failures from which it is left out for good; 0: no limit.
    pub most: u64,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            retry_after: RETRY_AFTER,
            most: MAX_FAILURES,
        }
    }
}

/// Page to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// Canonical URL, or opaque name.
    pub name: String,
    /// Number of the page; `None` if the store does not know it.
    pub page: Option<PageId>,
    /// Line of the list that names it, from 0.
    pub line: u64,
}

/// Number of pages whose names and facts are read at a time.
const NAMED: usize = 1 << 17;

/// Strategies with a virtual page, which can be focused.
pub(super) const FOCUSED: [&str; 3] = ["forecast", "settled", "xyleme"];

/// Default of [`RetryPolicy::retry_after`]: a day, in seconds.
pub const RETRY_AFTER: u64 = 86_400;
/// Default of [`RetryPolicy::most`]: failures in a row.
pub const MAX_FAILURES: u64 = 3;

impl Default for NextOptions {
    fn default() -> NextOptions {
        NextOptions {
            strategy: Choice::default(),
            count: 100,
            which: PageSelection::NotFetched,
            per_host: None,
            per_domain: None,
            scope: Scope::default(),
            known_hosts: false,
            older_than: None,
            failures: RetryPolicy::default(),
            now: None,
            focus: Focus::default(),
            exclude: Bits::default(),
            seeds: Vec::new(),
        }
    }
}

/// Page to be crawled.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Number of the page; `None` for a seed that the store does not know yet.
    pub page: Option<PageId>,
    /// Canonical URL, or opaque name.
    pub url: String,
    /// Score by the strategy, or the gain of reading the page again: higher is earlier.
    pub score: f64,
    /// True if it was read already.
    pub fetched: bool,
    /// Importance in the snapshot.
    pub importance: f64,
    /// Fetches of the page.
    pub fetches: Fetches,
}

/// Parameters of a list, and the snapshot it is made from.
pub(super) struct ListSource<'a> {
    pub snapshot: &'a Snapshot,
    pub rows: Option<&'a KeptRows>,
    pub options: &'a NextOptions,
}

impl ListSource<'_> {
    /// Returns the error for a strategy that needs rows where there are none.
    pub fn needs_rows(&self, name: &str) -> Error {
        let others: Vec<&str> = super::STRATEGIES
            .iter()
            .filter(|strategy| strategy.without_rows)
            .map(|strategy| strategy.name)
            .collect();
        let why = match self.snapshot.rows_retention() {
            Some(standing) => standing.why_not(),
            None => "the snapshot is not the store's current one".into(),
        };
        Error::Missing(format!(
            "strategy {name} needs the links of pages: {}: {why}. Without them: `strategy` {}",
            self.snapshot.store().display(),
            others.join(", ")
        ))
    }

    /// Returns the time that ages count from: the option, or the latest fetch that the snapshot believes.
    fn now(&self) -> Option<Time> {
        self.options.now.or(self.snapshot.info().time)
    }

    /// Returns whether a page is left out because its fetches failed too recently or too often.
    pub fn is_failing(&self, page: &Fetches) -> bool {
        let RetryPolicy { retry_after, most } = self.options.failures;
        let lately = |(now, failed): (Time, Time)| {
            // A time far ahead is not trusted to be recent.
            failed.saturating_sub(now) <= YEAR
                && now.saturating_sub(failed) < i64::try_from(retry_after).unwrap_or(i64::MAX)
        };
        page.failed > 0
            && (most > 0 && page.failed >= most
                || self.now().zip(page.last_failed).is_some_and(lately))
    }

    /// Returns the time before which a page must have been fetched to be read again, if the options set an age.
    pub fn refetch_before(&self) -> Option<Time> {
        let seconds = i64::try_from(self.options.older_than?).unwrap_or(i64::MAX);
        Some(self.now()?.saturating_sub(seconds))
    }

    /// Returns whether a page was read and may be read again: it is not gone, and was last fetched before `before`.
    pub fn may_refetch(&self, page: &SnapshotPage, before: Option<Time>) -> bool {
        page.fetches.visits > 0
            && page.fetches.gone != Some(true)
            && !self.is_failing(&page.fetches)
            && !self.options.exclude.get(page.page.0)
            && match (before, page.fetches.last) {
                (Some(before), Some(fetched)) => fetched < before,
                _ => true,
            }
    }

    /// Chooses pages to read again: by cash if the strategy uses it, else by gain.
    pub fn refetch(&self, count: usize, limits: &mut ListLimits<'_>) -> Result<Vec<ChosenPage>> {
        if self.options.strategy.spec().by_cash {
            let before = self.refetch_before();
            return self.select(
                count,
                limits,
                |_| true,
                |most| {
                    let mut best = PageTopK::new(most);
                    for page in self.snapshot.pages() {
                        let page = page?;
                        if self.may_refetch(&page, before) {
                            best.offer(page.page.0 as u32, page.claim());
                        }
                    }
                    Ok(best.sorted())
                },
            );
        }
        let (now, before) = (self.now(), self.refetch_before());
        let mut all = Looks::default();
        for page in self.snapshot.pages() {
            all.add(Looks::of(&page?.fetches));
        }
        let usual = all.usual_rate();
        let order = |most| {
            let pages = self
                .snapshot
                .pages()
                .filter(|page| !matches!(page, Ok(page) if !self.may_refetch(page, before)));
            let read = pages.map(|page| {
                let page = page?;
                Ok((page.page.0 as u32, page.importance, page.fetches))
            });
            refresh::best(read, now, usual, most)
        };
        self.select(count, limits, |_| true, order)
    }

    /// Returns the first `count` pages of an order that may be listed, requesting more of the order until there are
    /// enough.
    pub fn select(
        &self,
        count: usize,
        limits: &mut ListLimits<'_>,
        is_fetched: impl Fn(u32) -> bool,
        mut order: impl FnMut(usize) -> Result<Vec<ScoredPage>>,
    ) -> Result<Vec<ChosenPage>> {
        let pages = self.snapshot.info().pages as usize;
        let mut most = if limits.any() {
            count.saturating_mul(4)
        } else {
            count
        }
        .min(pages);
        loop {
            let best = order(most)?;
            let mut trial = limits.clone();
            let mut chosen = Vec::new();
            for best in best.chunks(NAMED) {
                if chosen.len() == count {
                    break;
                }
                let numbers: Vec<PageId> =
                    best.iter().map(|of| PageId(u64::from(of.page))).collect();
                let names = self.snapshot.names_of(&numbers)?;
                for (scored, url) in best.iter().zip(names) {
                    if chosen.len() < count && trial.takes(&url) {
                        chosen.push(ChosenPage {
                            scored: *scored,
                            url,
                            fetched: is_fetched(scored.page),
                        });
                    }
                }
            }
            if chosen.len() == count || best.len() < most || most >= pages {
                *limits = trial;
                return Ok(chosen);
            }
            most = most.saturating_mul(4).min(pages);
        }
    }

    /// Adds the snapshot's facts to the chosen pages.
    pub fn describe(&self, chosen: Vec<ChosenPage>) -> Result<Vec<Candidate>> {
        let mut described = Vec::with_capacity(chosen.len());
        let mut chosen = chosen.into_iter().peekable();
        while chosen.peek().is_some() {
            let chosen: Vec<ChosenPage> = chosen.by_ref().take(NAMED).collect();
            let numbers = chosen.iter().map(|of| PageId(u64::from(of.scored.page)));
            let known = self.snapshot.pages_of(&numbers.collect::<Vec<_>>())?;
            let pages = chosen.into_iter().zip(known).map(|(of, page)| Candidate {
                fetched: of.fetched,
                ..Candidate::of(&page, of.url, of.scored.score)
            });
            described.extend(pages);
        }
        Ok(described)
    }
}

impl Candidate {
    /// Returns a candidate without any known fetches.
    pub fn new(page: Option<PageId>, url: String, score: f64, importance: f64) -> Candidate {
        Candidate {
            page,
            url,
            score,
            fetched: false,
            importance,
            fetches: Fetches::default(),
        }
    }

    /// Returns an unread page of a snapshot as a candidate.
    pub(super) fn of(page: &SnapshotPage, url: String, score: f64) -> Candidate {
        Candidate {
            fetches: page.fetches,
            ..Candidate::new(Some(page.page), url, score, page.importance)
        }
    }
}

pub(super) struct ChosenPage {
    scored: ScoredPage,
    url: String,
    fetched: bool,
}

impl ChosenPage {
    pub fn score(&self) -> f64 {
        self.scored.score
    }
}

/// Appends to an order the open pages that it lacks, in the order in which they became known: those that no page links
/// to any more, and seeds whose fetch failed.
pub(super) fn completed(
    mut best: Vec<ScoredPage>,
    crawl: &CrawlState,
    most: usize,
) -> Vec<ScoredPage> {
    if best.len() >= most {
        return best;
    }
    let named: HashSet<u32> = best.iter().map(|of| of.page).collect();
    let score = best.last().map_or(0.0, |last| last.score.min(0.0));
    let rest = (0..crawl.pages()).filter(|page| crawl.is_open(*page) && !named.contains(page));
    let room = most - best.len();
    best.extend(rest.take(room).map(|page| ScoredPage { page, score }));
    best
}

/// Spreads new pages and pages to be read again evenly over the list, each kind in its order.
pub(super) fn interleave(chosen: Vec<ChosenPage>) -> Vec<ChosenPage> {
    let (again, new): (Vec<ChosenPage>, Vec<ChosenPage>) =
        chosen.into_iter().partition(|of| of.fetched);
    let all = again.len() + new.len();
    let (again_len, mut again, mut new) = (again.len(), again.into_iter(), new.into_iter());
    let mut mixed = Vec::with_capacity(all);
    let mut taken = 0;
    for at in 1..=all {
        // The first `at` pages have the same share as the whole list.
        let due = at * again_len / all;
        let next = if taken < due {
            again.next()
        } else {
            new.next()
        };
        taken += usize::from(taken < due);
        mixed.extend(next);
    }
    mixed
}

/// Counts the listed pages per host and per domain.
#[derive(Clone)]
pub(super) struct ListLimits<'a> {
    options: &'a NextOptions,
    /// Shard whose pages may be listed; `None`: all.
    shard: Option<Shard>,
    /// Hosts whose pages may be listed; `None`: all.
    pub known: Option<Arc<FetchedHosts>>,
    hosts: HashMap<Vec<u8>, u64>,
    domains: HashMap<Vec<u8>, u64>,
}

impl<'a> ListLimits<'a> {
    /// Returns limits with nothing counted yet. For a store that is a shard only its own pages are listed.
    pub fn new(options: &'a NextOptions, snapshot: Option<&Snapshot>) -> ListLimits<'a> {
        ListLimits {
            options,
            shard: snapshot.and_then(|snapshot| snapshot.info().settings.input.shard),
            known: None,
            hosts: HashMap::new(),
            domains: HashMap::new(),
        }
    }

    fn any(&self) -> bool {
        let NextOptions {
            per_host,
            per_domain,
            scope,
            ..
        } = self.options;
        per_host.is_some()
            || per_domain.is_some()
            || !scope.is_all()
            || self.shard.is_some()
            || self.known.is_some()
    }

    /// Returns whether another page of this name may be listed, and counts it if so.
    pub fn takes(&mut self, url: &str) -> bool {
        let is_other = |shard: Shard| !shard.has(url.as_bytes());
        let is_unknown = |known: &Arc<FetchedHosts>| !known.has(url.as_bytes());
        if !self.options.scope.has(url.as_bytes())
            || self.shard.is_some_and(is_other)
            || self.known.as_ref().is_some_and(is_unknown)
        {
            return false;
        }
        let host = host(url.as_bytes());
        let domain = domain(host);
        let full = |of: &HashMap<Vec<u8>, u64>, name: &[u8], most: Option<u64>| {
            most.is_some_and(|most| of.get(name).is_some_and(|&count| count >= most) || most == 0)
        };
        if full(&self.hosts, host, self.options.per_host)
            || full(&self.domains, domain, self.options.per_domain)
        {
            return false;
        }
        if self.options.per_domain.is_some() {
            *self.domains.entry(domain.to_vec()).or_default() += 1;
        }
        if self.options.per_host.is_some() {
            *self.hosts.entry(host.to_vec()).or_default() += 1;
        }
        true
    }
}
