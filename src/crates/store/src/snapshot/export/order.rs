//! Order of the rows of an export, sorted in bounded memory.

use std::borrow::Cow;
use std::path::Path;

use super::Page;
use super::columns::{host_of, reversed};
use crate::codec::varint::number;
use crate::disk::ExternalSorter;
use crate::engine::PageId;
use crate::model::{Change, PageState, SiteFacts, registry};
use crate::{Error, Result};

registry! {
    /// Order of rows.
    Order of OrderSpec, called "order";
    Id is OrderSpec {
        name: "id",
        about: "that of the pages' first appearance",
        key: |page, key| key.extend_from_slice(&page.page.0.to_be_bytes()),
    };
    Rank is OrderSpec {
        name: "rank",
        about: "the most important first",
        key: |page, key| {
            key.extend_from_slice(&page.rank.to_be_bytes());
            key.extend_from_slice(&page.page.0.to_be_bytes());
        },
    };
    Host is OrderSpec {
        name: "host",
        about: "by reversed host (org.example.www), then by URL",
        key: |page, key| {
            let host = host_of(page).unwrap_or_default();
            key.extend_from_slice(reversed(host).as_bytes());
            // Lower than every byte of a host: org.example sorts before org.example.www.
            key.push(0);
        },
    };
    Url is OrderSpec {
        name: "url",
        about: "by URL, byte by byte",
        key: |_, _| {},
    };
}

struct OrderSpec {
    name: &'static str,
    about: &'static str,
    /// Function that appends the sort key, before name and number.
    key: fn(&Page<'_>, &mut Vec<u8>),
}

/// Maximum memory for sorting in bytes; more does not make it faster.
pub const MOST_SORTING: u64 = 256 << 20;
pub const LEAST_SORTING: u64 = 1 << 20;

/// Sorts all rows with `memory` bytes; the rest is spilled to an unnamed file in `folder`.
pub fn ordered<'a, 'r>(
    rows: impl Iterator<Item = Result<Page<'a>>> + 'r,
    order: Order,
    memory: u64,
    folder: &Path,
) -> Result<Box<dyn Iterator<Item = Result<Page<'a>>> + 'r>>
where
    'a: 'r,
{
    if order == Order::Id {
        return Ok(Box::new(rows));
    }
    let memory = memory.clamp(LEAST_SORTING, MOST_SORTING);
    let mut sorter = ExternalSorter::new(memory as usize, folder);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for row in rows {
        let row = row?;
        key.clear();
        (order.spec().key)(&row, &mut key);
        value.clear();
        put(&row, key.len(), &mut value);
        key.extend_from_slice(row.url.as_bytes());
        sorter.push(&key, &value)?;
    }
    Ok(Box::new(sorter.sorted()?.map(|record| {
        let (key, value) = record?;
        take(key, &value).ok_or_else(|| Error::internal("a sorted row does not read back"))
    })))
}

/// Encodes what tables have of a row, except for its name, which is in the key at `at`.
fn put(row: &Page<'_>, at: usize, into: &mut Vec<u8>) {
    let real = |number: Option<f64>| number.map(f64::to_bits);
    let facts = [
        Some(at as u64),
        Some(row.page.0),
        real(Some(row.importance)),
        Some(row.rank),
        Some(row.visits),
        row.last_fetch.map(|time| time as u64),
        row.state.map(|state| state as u64),
        real(row.cash),
        real(row.distributed),
        row.change.map(|change| change as u64),
        row.site.as_ref().map(|site| site.pages),
    ];
    let more = row.more.iter().map(|number| real(*number));
    for fact in facts.into_iter().chain(more) {
        into.push(fact.is_some().into());
        into.extend_from_slice(&fact.unwrap_or_default().to_le_bytes());
    }
}

fn take(mut key: Vec<u8>, value: &[u8]) -> Option<Page<'static>> {
    let real = |bits: Option<u64>| bits.map(f64::from_bits);
    let mut facts = (value.chunks_exact(9)).map(|fact| (fact[0] == 1).then(|| number(&fact[1..])));
    let mut next = || facts.next().flatten();
    key.drain(..(next()? as usize).min(key.len()));
    Some(Page {
        page: PageId(next()?),
        importance: real(next())?,
        rank: next()?,
        visits: next()?,
        last_fetch: next().map(|time| time as i64),
        state: next().and_then(|at| PageState::ALL.get(at as usize).copied()),
        cash: real(next()),
        distributed: real(next()),
        change: next().and_then(|at| Change::ALL.get(at as usize).copied()),
        site: next().map(|pages| SiteFacts {
            pages,
            ..SiteFacts::default()
        }),
        url: Cow::Owned(String::from_utf8(key).ok()?),
        more: facts.map(real).collect(),
        ..Page::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(order: Order, pages: &[(&'static str, u64)]) -> Vec<(String, u64)> {
        let rows = pages.iter().enumerate().map(|(at, &(url, rank))| {
            Ok(Page {
                page: PageId(at as u64),
                rank,
                importance: 0.5,
                visits: 7,
                last_fetch: (at == 0).then_some(-5),
                failed: None,
                state: PageState::ALL.get(at).copied(),
                url: url.into(),
                cash: (at == 0).then_some(0.75),
                distributed: (at == 0).then_some(0.5),
                more: [vec![Some(0.25), None], vec![]][at.min(1)].clone(),
                change: Change::ALL.get(at).copied(),
                site: (at == 0).then(|| SiteFacts {
                    pages: 9,
                    ..SiteFacts::default()
                }),
            })
        });
        let dir = tempfile::tempdir().unwrap();
        let sorted = ordered(rows, order, 0, dir.path()).unwrap();
        let sorted = sorted.map(|row| row.unwrap()).inspect(|row| {
            let first = row.page == PageId(0);
            assert_eq!(row.last_fetch, first.then_some(-5));
            assert_eq!(row.cash, first.then_some(0.75));
            assert_eq!(row.distributed, first.then_some(0.5));
            assert_eq!(
                row.more,
                if first {
                    vec![Some(0.25), None]
                } else {
                    vec![]
                }
            );
            assert_eq!(row.state, PageState::ALL.get(row.page.index()).copied());
            assert_eq!(row.change, Change::ALL.get(row.page.index()).copied());
            let site = row.site.as_ref();
            assert_eq!(site.map(|site| site.pages), first.then_some(9));
            assert_eq!((row.importance, row.visits), (0.5, 7));
        });
        sorted
            .map(|row| (row.url.into_owned(), row.page.0))
            .collect()
    }

    #[test]
    fn each_order_is_what_it_says() {
        let pages = [
            ("www.example.org", 2), // A site.
            ("http://example.org/b", 2),
            ("https://192.0.2.7/", 300),
            ("opaque", 1),
            ("http://example.com/é", 5),
            ("http://example.org/a", 4),
        ];
        let numbers = |order| sorted(order, &pages).into_iter().map(|row| row.1);
        assert!(numbers(Order::Id).eq(0..6));
        // Equal ranks by number; 300 is above 5, as a number.
        assert!(numbers(Order::Rank).eq([3, 0, 1, 5, 4, 2]));
        // "", 192.0.2.7, com.example, org.example (a, b), org.example.www
        assert!(numbers(Order::Host).eq([3, 2, 4, 5, 1, 0]));
        assert!(numbers(Order::Url).eq([4, 5, 1, 2, 3, 0]));
        for (url, page) in sorted(Order::Host, &pages) {
            assert_eq!(url, pages[page as usize].0);
        }
    }
}
