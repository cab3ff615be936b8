//! Parameters of a list of pages to fetch next, its items, its limits, and the seeds that it begins with.
//!
//! Seeds come before everything that an order chooses: the unread ones, in the given order, within the same limits. A
//! crawl begins with seeds, without a snapshot or even a store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::{Choice, Focus};
use crate::decode::Time;
use crate::engine::YEAR;
use crate::model::{Fetches, PageId};
use crate::rows::Bits;
use crate::rules::{Scope, Shard};
use crate::snapshot::Snapshot;
use crate::url::{domain, host};

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
    pub strategy: Choice,
    /// Maximum number of pages to list.
    pub count: usize,
    pub which: PageSelection,
    pub per_host: Option<u64>,
    /// Maximum number of pages per registered domain.
    pub per_domain: Option<u64>,
    pub scope: Scope,
    /// Restriction to hosts of which a page was fetched, or is a seed.
    pub known_hosts: bool,
    /// Minimum age in seconds of a page's last fetch for it to be read again; pages without a known time qualify.
    pub older_than: Option<u64>,
    /// Seconds after a failed fetch during which a page is left out, if times are known.
    pub retry_after: u64,
    /// Number of failures since a page was last reached from which it is left out for good; 0: no limit.
    pub max_failures: u64,
    /// Current time, in seconds since 1970; `None`: the time of the snapshot.
    pub now: Option<Time>,
    /// Pages that the virtual page pays more, so that they come earlier.
    pub focus: Focus,
    /// Bitmap of pages that must not be listed.
    pub exclude: Bits,
    /// Unread pages that come first, in this order: see [`NextOptions::name`].
    pub seeds: Vec<Seed>,
    /// True if importance and fetches of the listed pages are wanted; otherwise they stay 0.
    pub facts: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Seed {
    pub page: Candidate,
    /// Line of the list that names it, from 0.
    pub line: u64,
}

/// Default of [`NextOptions::max_failures`].
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
            retry_after: 86_400,
            max_failures: MAX_FAILURES,
            now: None,
            focus: Focus::default(),
            exclude: Bits::default(),
            seeds: Vec::new(),
            facts: true,
        }
    }
}

impl NextOptions {
    /// Returns the time that ages count from: the option, or the latest fetch that the snapshot believes.
    pub(crate) fn now(&self, snapshot: &Snapshot) -> Option<Time> {
        self.now.or(snapshot.info().time)
    }

    /// Returns whether a page is left out because its fetches failed too recently or too often.
    pub(crate) fn is_failing(&self, now: Option<Time>, page: &Fetches) -> bool {
        let (wait, most) = (self.retry_after, self.max_failures);
        let lately = |(now, failed): (Time, Time)| {
            // A time far ahead is not trusted to be recent.
            failed.saturating_sub(now) <= YEAR
                && now.saturating_sub(failed) < i64::try_from(wait).unwrap_or(i64::MAX)
        };
        page.failed > 0
            && (most > 0 && page.failed >= most || now.zip(page.last_failed).is_some_and(lately))
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidate {
    /// Number of the page; `None` for a seed that the store does not know yet.
    pub page: Option<PageId>,
    /// Canonical URL, or opaque name.
    pub url: String,
    /// Score by the strategy, or the gain of reading the page again: higher is earlier.
    pub score: f64,
    /// True if it was read already.
    pub fetched: bool,
    pub importance: f64,
    pub fetches: Fetches,
}

/// Counts the listed pages per host and per domain.
#[derive(Clone)]
pub(crate) struct ListLimits<'a> {
    options: &'a NextOptions,
    /// Shard whose pages may be listed; `None`: all.
    shard: Option<Shard>,
    /// Hashes of the hosts whose pages may be listed; `None`: all.
    pub known: Option<Arc<HashSet<u64>>>,
    hosts: HashMap<Vec<u8>, u64>,
    domains: HashMap<Vec<u8>, u64>,
}

impl<'a> ListLimits<'a> {
    /// Returns limits with nothing counted. For a store that is a shard only its own pages are listed.
    pub fn new(options: &'a NextOptions, snapshot: Option<&Snapshot>) -> ListLimits<'a> {
        ListLimits {
            options,
            shard: snapshot.and_then(|snapshot| snapshot.info().settings.input.shard),
            known: None,
            hosts: HashMap::new(),
            domains: HashMap::new(),
        }
    }

    pub fn any(&self) -> bool {
        self.options.per_host.is_some()
            || self.options.per_domain.is_some()
            || !self.options.scope.is_all()
            || self.shard.is_some()
            || self.known.is_some()
    }

    /// Returns whether another page of this name may be listed, and counts it if so.
    pub fn takes(&mut self, url: &str) -> bool {
        let is_other = |shard: Shard| !shard.has(url.as_bytes());
        let is_unknown = |known: &Arc<HashSet<u64>>| !known.contains(&host_hash(url.as_bytes()));
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

/// Returns the seeds that a list begins with, and what its limits leave for other pages.
pub(super) fn listed_seeds<'a>(
    options: &'a NextOptions,
    snapshot: Option<&Snapshot>,
) -> (Vec<Candidate>, ListLimits<'a>) {
    let mut limits = ListLimits::new(options, snapshot);
    let seeds = options.seeds.iter().map(|seed| &seed.page);
    let within = seeds.filter(|page| limits.takes(&page.url));
    let listed = within.take(options.count).cloned().collect();
    (listed, limits)
}

pub(super) fn host_hash(name: &[u8]) -> u64 {
    xxh3_64(host(name))
}
