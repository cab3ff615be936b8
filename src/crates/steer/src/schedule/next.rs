//! Parameters of a list of pages to fetch next, its items, its limits, and the seeds that it begins with.
//!
//! Seeds come before everything that an order chooses: the unread ones, in the given order, within the same limits. A
//! crawl begins with seeds, without a snapshot or even a store.
//!
//! The lists of a crawl's shards are merged by score, ties by the shards' numbers. The hosts of a domain may be in
//! several, so domains are counted again. If that exhausts a list too early, all shards are asked for longer ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::list::{THREADS, next_of};
use super::{Choice, Focus};
use crate::decode::Time;
use crate::engine::YEAR;
use crate::model::{Fetches, PageId};
use crate::rows::Bits;
use crate::rules::{Scope, Shard};
use crate::snapshot::Snapshot;
use crate::url::{domain, host};
use crate::{Error, Result};

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

/// Returns the pages to crawl next from all shards of a crawl, best first, as of these snapshots. The options may
/// differ only in their seeds and in what is excluded. Fails with [`Error::Usage`] for [`PageSelection::Budget`].
pub fn next_of_shards(shards: &[(&Snapshot, NextOptions)]) -> Result<Vec<Candidate>> {
    let Some((_, first)) = shards.first() else {
        return Ok(Vec::new());
    };
    if let PageSelection::Budget { .. } = first.which {
        return Err(Error::Usage(
            "`budget`: a share is of one store's list; of several stores ask each, or for one kind of pages".into(),
        ));
    }
    let mut asked = first.count;
    loop {
        let list = |(snapshot, options): &(&Snapshot, NextOptions)| {
            if snapshot.is_empty() && options.seeds.is_empty() {
                return Ok(Vec::new());
            }
            let mut options = options.clone();
            options.count = asked;
            next_of(snapshot, &options, THREADS)
        };
        let lists = shards.iter().map(list).collect::<Result<Vec<_>>>()?;
        let options: Vec<&NextOptions> = shards.iter().map(|(_, options)| options).collect();
        if let Some(merged) = merge(&options, lists, asked) {
            return Ok(merged);
        }
        asked = asked.saturating_mul(4);
    }
}

/// Merges lists of up to `asked` pages each; `None` if they are too short.
fn merge(
    shards: &[&NextOptions],
    lists: Vec<Vec<Candidate>>,
    asked: usize,
) -> Option<Vec<Candidate>> {
    let options = *shards.first()?;
    let mut limits = ListLimits::new(options, None);
    let (mut seeds, mut rest) = (Vec::new(), Vec::new());
    // Number of pages of each list that are left, if it may be longer.
    let mut left = Vec::new();
    for (shard, (options, list)) in shards.iter().zip(lists).enumerate() {
        let named = |seed: &'_ Seed| (seed.page.url.clone(), seed.line);
        let named: HashMap<String, u64> = options.seeds.iter().map(named).collect();
        let is_full = list.len() >= asked;
        let mut list = list.into_iter().peekable();
        // Seeds come first in each list.
        while let Some(line) = list.peek().and_then(|page| named.get(&page.url)) {
            seeds.extend(list.next().map(|page| (*line, page)));
        }
        left.push(is_full.then_some(list.len()));
        rest.extend(list.map(|page| (shard, page)));
    }
    // Each list is ordered by score; of equal scores, the first shard's come first.
    rest.sort_by(|(_, a), (_, b)| (b.score + 0.0).total_cmp(&(a.score + 0.0)));
    let mut rest = rest.into_iter();
    seeds.sort_by_key(|(line, _)| *line);
    let mut merged: Vec<Candidate> = Vec::new();
    let seeds = seeds.into_iter().map(|(_, page)| page);
    merged.extend(
        seeds
            .filter(|page| limits.takes(&page.url))
            .take(options.count),
    );
    let seeds = merged.len();
    while merged.len() < options.count {
        if left.contains(&Some(0)) {
            return None;
        }
        let Some((shard, page)) = rest.next() else {
            break;
        };
        left[shard] = left[shard].map(|pages| pages - 1);
        merged.extend(Some(page).filter(|page| limits.takes(&page.url)));
    }
    // A list is ordered by score.
    let best = merged.get(seeds).map_or(0.0, |page| page.score);
    merged[..seeds]
        .iter_mut()
        .for_each(|seed| seed.score = best);
    Some(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(url: &str, score: f64) -> Candidate {
        Candidate {
            url: url.into(),
            score,
            ..Candidate::default()
        }
    }

    fn urls(merged: Option<Vec<Candidate>>) -> Option<Vec<String>> {
        merged.map(|pages| pages.into_iter().map(|page| page.url).collect())
    }

    /// The first two pages of `a.org` are in one shard, so those of the other shard exceed the limit; that it has
    /// others is known once it is asked for more.
    #[test]
    fn lists_that_run_out_are_requested_longer() {
        let options = NextOptions {
            count: 3,
            per_domain: Some(2),
            ..NextOptions::default()
        };
        let shards = [&options, &options];
        let one = || vec![page("http://x.a.org/1", 9.0), page("http://x.a.org/2", 8.0)];
        let short = vec![page("http://y.a.org/1", 7.0), page("http://y.a.org/2", 6.0)];
        let long = [short.clone(), vec![page("http://b.org/", 1.0)]].concat();
        assert_eq!(urls(merge(&shards, vec![one(), short.clone()], 2)), None);
        let expected = ["http://x.a.org/1", "http://x.a.org/2", "http://b.org/"];
        let merged = urls(merge(&shards, vec![one(), long], 4));
        assert_eq!(merged.unwrap(), expected);
        // There are no others.
        let merged = urls(merge(&shards, vec![one(), short], 4));
        assert_eq!(merged.unwrap(), expected[..2]);
    }

    #[test]
    fn seeds_come_first_in_the_order_of_their_list() {
        let seed = |name: &str, line| Seed {
            page: page(name, 0.0),
            line,
        };
        let with = |seeds: &[Seed]| NextOptions {
            count: 5,
            seeds: seeds.to_vec(),
            ..NextOptions::default()
        };
        let one = with(&[seed("http://a/1", 0), seed("http://a/2", 3)]);
        let other = with(&[seed("http://b/1", 2)]);
        let lists = vec![
            vec![
                page("http://a/1", 1.0),
                page("http://a/2", 1.0),
                page("http://a/3", 1.0),
            ],
            vec![
                page("http://b/1", 2.0),
                page("http://b/2", 2.0),
                page("http://b/3", 1.0),
            ],
        ];
        let merged = merge(&[&one, &other], lists, 5).unwrap();
        let scores: Vec<f64> = merged.iter().map(|page| page.score).collect();
        // Equal scores: in the order of the shards.
        let expected = [
            "http://a/1",
            "http://b/1",
            "http://a/2",
            "http://b/2",
            "http://a/3",
        ];
        assert_eq!(urls(Some(merged)).unwrap(), expected);
        assert_eq!(scores, [2.0, 2.0, 2.0, 2.0, 1.0]);
    }
}
