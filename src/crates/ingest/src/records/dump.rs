//! Dump of a store as crawl records: what it knows about each page, in the order of last fetch, for a new store.
//!
//! The record of a page with a row has its links by name, with their weights as kept; any other record only makes its
//! page known. All have their totals of fetches ([`FetchTotals`]). Specified in `formats/convert.md`.
//!
//! Nothing is held per page or link. Links are sorted by target, to be given its name; then by page, to be put into its
//! record; and records by the time of the last fetch.

use std::borrow::Cow;
use std::iter::Peekable;

use super::{RecordFile, SortRoom, time_key};
use crate::codec::varint::{be_number, number};
use crate::decode::records::write::write;
use crate::decode::{Link, Names, Record};
use crate::disk::{ExternalSorter, Sorted};
use crate::graph::gcd;
use crate::model::{FetchTotals, Fetches};
use crate::rows::{Rows, Stop};
use crate::snapshot::Snapshot;
use crate::url;
use crate::{Error, Result};

const SORTERS: usize = 3;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dumped {
    pub pages: u64,
    pub links: u64,
}

/// Returns the kind of a store's names: URLs, if all are in canonical form.
pub fn names_of(snapshot: &Snapshot) -> Result<Names> {
    let mut text = Vec::new();
    for name in snapshot.names() {
        let name = name?;
        let name = name.as_bytes();
        text.clear();
        let form = url::canonical(name, None, usize::MAX, &mut text);
        if !form.is_ok_and(|form| form.text(name, &text) == name) {
            return Ok(Names::Opaque);
        }
    }
    Ok(Names::Url)
}

/// Writes all pages of the store's current snapshot. Fails if it has no links, or weights that no record can state.
pub fn dump(
    snapshot: &Snapshot,
    names: Names,
    file: &mut RecordFile<'_>,
    room: &SortRoom,
) -> Result<Dumped> {
    let mut parts = room.sorter(SORTERS);
    let by_target = links_by_target(snapshot, &mut parts, room.sorter(SORTERS))?;
    name_links(snapshot, by_target, &mut parts)?;
    let mut parts = parts.sorted()?.peekable();
    let mut by_time = room.sorter(SORTERS);
    let mut dumped = Dumped::default();
    let mut line = Vec::new();
    for (page, name) in snapshot.pages().zip(snapshot.names()) {
        let (page, name) = (page?, name?);
        let row = NamedRow::next(page.page.0 as u32, &mut parts)?;
        dumped.pages += 1;
        dumped.links += row.links.len() as u64;
        line.clear();
        write(&record(&name, &page.fetches, &row)?, names, &mut line);
        // Pages come in the order of their numbers, and the sorter keeps the order of equal times.
        by_time.push(&time_key(page.fetches.last), &line)?;
    }
    for line in by_time.sorted()? {
        file.line(&line?.1)?;
    }
    Ok(dumped)
}

/// Sorts the links of all rows by target. `parts` gets an entry for each page that has a row, with whether it is gone.
fn links_by_target(
    snapshot: &Snapshot,
    parts: &mut ExternalSorter,
    mut by_target: ExternalSorter,
) -> Result<Sorted> {
    let mut value = Vec::new();
    snapshot.rows()?.sweep(&mut |row| {
        parts
            .push(&part_key(row.page, 0), &[row.gone.into()])
            .map_err(Stop::Failed)?;
        for (at, target) in (1u32..).zip(row.targets) {
            let weight = row.weights.get(at as usize - 1).copied().unwrap_or(1);
            value.clear();
            value.extend_from_slice(&part_key(row.page, at));
            value.extend_from_slice(&weight.to_le_bytes());
            by_target
                .push(&target.to_be_bytes(), &value)
                .map_err(Stop::Failed)?;
        }
        Ok(())
    })?;
    by_target.sorted()
}

fn name_links(snapshot: &Snapshot, by_target: Sorted, parts: &mut ExternalSorter) -> Result<()> {
    let mut names = (0u64..).zip(snapshot.names());
    let mut current: Option<(u64, String)> = None;
    let mut value = Vec::new();
    for link in by_target {
        let (target, of) = link?;
        let target = be_number(&target);
        while current.as_ref().is_none_or(|(at, _)| *at < target) {
            let Some((at, name)) = names.next() else {
                return Err(Error::internal("a link to a page without a name"));
            };
            current = Some((at, name?));
        }
        let (key, weight) = of.split_at(8);
        value.clear();
        value.extend_from_slice(weight);
        let name = current.as_ref().map_or("", |(_, name)| name);
        value.extend_from_slice(name.as_bytes());
        parts.push(key, &value)?;
    }
    Ok(())
}

/// Returns the key of a part of a page's row: 0 for the row itself, then its links.
fn part_key(page: u32, place: u32) -> [u8; 8] {
    (u64::from(page) << 32 | u64::from(place)).to_be_bytes()
}

/// Row of a page, if it has one, by the names of its targets.
#[derive(Default)]
struct NamedRow {
    /// True if the page is gone; `None` without a row.
    row: Option<bool>,
    links: Vec<(Vec<u8>, u64)>,
}

impl NamedRow {
    fn next(page: u32, parts: &mut Peekable<Sorted>) -> Result<NamedRow> {
        let mut row = NamedRow::default();
        let is_of_page = |part: &Result<(Vec<u8>, Vec<u8>)>| {
            part.as_ref()
                .map_or(true, |(key, _)| be_number(&key[..4]) == u64::from(page))
        };
        while let Some(part) = parts.next_if(is_of_page) {
            let (key, mut value) = part?;
            if be_number(&key[4..]) == 0 {
                row.row = Some(value == [1]);
            } else {
                let name = value.split_off(8);
                row.links.push((name, number(&value)));
            }
        }
        Ok(row)
    }
}

fn record<'a>(name: &'a str, fetches: &Fetches, row: &'a NamedRow) -> Result<Record<'a>> {
    let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let scale = scale(row).ok_or_else(|| {
        Error::Unsupported(format!(
            "{name}: weights of its links, to the least whole numbers, are above {}, the most that a record can state",
            u32::MAX
        ))
    })?;
    let link = |(name, weight): &'a (Vec<u8>, u64)| Link {
        weight: count(weight / scale),
        ..Link::to(&name[..])
    };
    Ok(Record {
        url: Cow::Borrowed(name.as_bytes()),
        fetched_at: fetches.last,
        status: match row.row {
            Some(true) => Some(404),
            Some(false) => None,
            // Visited, with unknown links: unchanged.
            None => (fetches.visits > 0).then_some(304),
        },
        links: row.links.iter().map(link).collect(),
        totals: Some(FetchTotals {
            visits: count(fetches.visits),
            failed: count(fetches.failed),
            last_failed: fetches.last_failed,
            compared: count(fetches.compared),
            changed: count(fetches.changed),
            watched_s: count(fetches.watched_s),
        }),
        ..Record::default()
    })
}

/// Returns the divisor of weights: 1, or the greatest common one if they are too large; `None` if they still are then.
fn scale(row: &NamedRow) -> Option<u64> {
    let weights = || row.links.iter().map(|(_, weight)| *weight);
    let most = weights().max().unwrap_or(1);
    let fits = |scale: u64| most / scale <= u32::MAX.into();
    if fits(1) {
        return Some(1);
    }
    Some(weights().fold(0, gcd)).filter(|divisor| fits(*divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_keep_their_ratios() {
        let row = |weights: &[u64]| NamedRow {
            row: Some(false),
            links: weights.iter().map(|weight| (Vec::new(), *weight)).collect(),
        };
        let most = u64::from(u32::MAX);
        assert_eq!(scale(&row(&[])), Some(1));
        assert_eq!(scale(&row(&[2, 4, most])), Some(1));
        assert_eq!(scale(&row(&[0, 6 * most, 4 * most])), Some(2 * most));
        assert_eq!(scale(&row(&[1, most + 1])), None);
    }
}
