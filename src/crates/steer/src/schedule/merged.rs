//! Merges the lists of a crawl's shards into one list of pages to fetch next.
//!
//! The lists of the shards' own pages are merged by score, ties by the shards' numbers. The hosts of a domain may be in
//! several, so domains are counted again. If that exhausts a list too early, all shards are asked for longer ones.

use std::collections::HashMap;

use super::list::THREADS;
use super::next::{Candidate, ListLimits, NextOptions, PageSelection};
use super::{Seed, next_of};
use crate::snapshot::Snapshot;
use crate::{Error, Result};

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
    fn a_list_that_is_used_up_is_asked_for_again() {
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
