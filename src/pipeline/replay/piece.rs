//! One kept piece: a chunk's places and what it holds, as numbers of variable length, then hashes,
//! pages of links and classes, of a fixed length each.
//!
//! ```text
//! offset, end, oversize, compressed, flags (below), entries, links, complaints
//! each entry: its end less the one before (zigzag), kind (a byte), time + 1 (zigzag; 0: none), page, links, a byte with
//!     a bit for each count that is not 0, and those counts
//! each complaint: its entry, length, text
//! 16 bytes a hash: before, after, and if asked for each entry's
//! 4 bytes a link: its page; if asked for 2 bytes each: its class
//! ```

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::batch::{Batch, Entry, LinkCounts, What};
use crate::codec::varint::{put as put_number, take as take_number, unzigzag, zigzag};
use crate::decode::Reason;
use crate::model::{Digest, PageId};
use crate::pipeline::piece::{Hashes, Piece};
use crate::rules::LinkClass;
use crate::source::Chunk;

const VERIFIED: u64 = 1;
const LAST: u64 = 2;
const CLASSES: u64 = 4;
const EACH: u64 = 8;

/// Appends a piece. `page_of`: that of a name of its batch. False: it cannot be written so, as pages have too
/// large numbers.
pub(super) fn put(
    out: &mut Vec<u8>,
    piece: &Piece,
    page_of: impl Fn(u32) -> PageId,
    hashes: &Hashes,
) -> bool {
    let (chunk, batch) = (&*piece.chunk, &piece.batch);
    let of = |name: u32| u32::try_from(page_of(name).0).ok();
    let visits = || {
        batch
            .entries
            .iter()
            .filter(|entry| entry.what == What::Visit)
    };
    let links: usize = visits().map(|entry| batch.targets(entry).len()).sum();
    let flag = |set: bool, flag: u64| if set { flag } else { 0 };
    let flags = flag(chunk.verified, VERIFIED)
        | flag(piece.last, LAST)
        | flag(!batch.classes.is_empty(), CLASSES)
        | flag(!hashes.each.is_empty(), EACH);
    let complaints = &batch.complaints;
    for number in [
        chunk.offset,
        hashes.end,
        chunk.oversize,
        chunk.compressed,
        flags,
        batch.entries.len() as u64,
        links as u64,
        complaints.len() as u64,
    ] {
        put_number(out, number.into());
    }
    let mut end = 0;
    for entry in &batch.entries {
        let page = match entry.what.is_of_page() {
            true => of(entry.source),
            false => Some(0),
        };
        let Some(page) = page else { return false };
        put_entry(out, entry, end, page);
        end = entry.end;
    }
    for (of, text) in complaints {
        put_number(out, (*of).into());
        put_number(out, text.len() as u128);
        out.extend_from_slice(text.as_bytes());
    }
    for hash in [&hashes.before, &hashes.after]
        .into_iter()
        .chain(&hashes.each)
    {
        out.extend_from_slice(&hash.to_le_bytes());
    }
    for entry in visits() {
        for &target in batch.targets(entry) {
            let Some(page) = of(target) else { return false };
            out.extend_from_slice(&page.to_le_bytes());
        }
    }
    for class in visits().flat_map(|entry| batch.classes(entry)) {
        out.extend_from_slice(&class.number().to_le_bytes());
    }
    true
}

fn put_entry(out: &mut Vec<u8>, entry: &Entry, before: u64, page: u32) {
    let links = match entry.what {
        What::Visit => entry.links_end - entry.links_start,
        _ => 0,
    };
    // A line inside a record may end before that does.
    put_number(out, zigzag(entry.end.wrapping_sub(before) as i64).into());
    out.push(kind(entry.what));
    // 0: none.
    let time = entry
        .fetched_at
        .map_or(0, |time| u128::from(zigzag(time)) + 1);
    put_number(out, time);
    put_number(out, page.into());
    put_number(out, links.into());
    let counts = numbers(&entry.counts);
    // Most are zero: a bit for each that is not.
    let some = (0..)
        .zip(counts)
        .fold(0, |some, (at, count)| some | u8::from(count > 0) << at);
    out.push(some);
    for count in counts.into_iter().filter(|&count| count > 0) {
        put_number(out, count.into());
    }
}

/// What the entry is, as a byte; skipped ones are the last.
fn kind(what: What) -> u8 {
    match what {
        What::Visit => 0,
        What::Gone => 1,
        What::Unchanged => 2,
        What::Failed => 3,
        What::OutOfScope => 4,
        What::Other => 5,
        What::Skipped(reason) => 6 + reason as u8,
    }
}

fn what(kind: u8) -> Option<What> {
    Some(match kind {
        0 => What::Visit,
        1 => What::Gone,
        2 => What::Unchanged,
        3 => What::Failed,
        4 => What::OutOfScope,
        5 => What::Other,
        skipped => What::Skipped(*Reason::ALL.get(usize::from(skipped) - 6)?),
    })
}

/// All counts but the class, which archives need only.
fn numbers(counts: &LinkCounts) -> [u32; 7] {
    [
        counts.read,
        counts.scheme,
        counts.invalid,
        counts.too_long,
        counts.own,
        counts.repeated,
        counts.out_of_scope,
    ]
}

/// The inverse of [`numbers`].
fn counts_of(numbers: [u32; 7]) -> LinkCounts {
    let [read, scheme, invalid, too_long, own, repeated, out_of_scope] = numbers;
    LinkCounts {
        read,
        scheme,
        invalid,
        too_long,
        own,
        repeated,
        out_of_scope,
        own_class: LinkClass::default(),
    }
}

/// Bytes of memory that a piece takes, as it lies here and read.
pub(super) fn memory(mut bytes: &[u8]) -> u64 {
    let length = bytes.len() as u64;
    let entries = [(); 6].map(|()| number(&mut bytes))[5].unwrap_or(0);
    (2 * length).saturating_add(entries.saturating_mul(size_of::<Entry>() as u64))
}

/// Reads a piece, its batch into `batch`; `None`: these bytes are none.
pub(super) fn take(mut bytes: &[u8], mut batch: Batch) -> Option<Piece> {
    let from = &mut bytes;
    let [offset, stop, oversize, compressed, flags] = [(); 5].map(|()| number(from));
    let flags = flags?;
    let [entries, links, complaints] = [(); 3].map(|()| number(from));
    batch.clear();
    batch.resolved = true;
    let (mut end, mut links_end) = (0u64, 0);
    for _ in 0..entries? {
        let entry = take_entry(from, end, links_end)?;
        (end, links_end) = (entry.end, entry.links_end);
        batch.entries.push(entry);
    }
    for _ in 0..complaints? {
        let (of, length) = (number(from)?, number(from)?);
        let text = from.split_off(..usize::try_from(length).ok()?)?;
        let text = std::str::from_utf8(text).ok()?;
        batch
            .complaints
            .push((u32::try_from(of).ok()?, text.into()));
    }
    let mut hash = || Some(u128::from_le_bytes(*from.split_off(..16)?.first_chunk()?));
    let (before, after) = (hash()?, hash()?);
    let each = match flags & EACH {
        0 => Vec::new(),
        _ => batch
            .entries
            .iter()
            .map(|_| hash())
            .collect::<Option<_>>()?,
    };
    let links = usize::try_from(links?)
        .ok()
        .filter(|&links| links == links_end as usize)?;
    let pages = from.split_off(..links.checked_mul(4)?)?.as_chunks().0;
    batch
        .links
        .extend(pages.iter().map(|&page| u32::from_le_bytes(page)));
    if flags & CLASSES != 0 {
        for &class in from.split_off(..links.checked_mul(2)?)?.as_chunks().0 {
            let class = u16::from_le_bytes(class);
            batch.classes.push(LinkClass::from_number(class.into())?);
        }
    }
    if !from.is_empty() {
        return None;
    }
    let chunk = Chunk {
        bytes: Vec::new(),
        offset: offset?,
        prefix: Xxh3::new(),
        prefix_after: after,
        oversize: oversize?,
        compressed: compressed?,
        verified: flags & VERIFIED != 0,
        member: None,
    };
    Some(Piece {
        chunk: Arc::new(chunk),
        batch,
        last: flags & LAST != 0,
        hashes: Some(Box::new(Hashes {
            before,
            each,
            after,
            end: stop?,
        })),
    })
}

fn take_entry(from: &mut &[u8], before: u64, links_start: u32) -> Option<Entry> {
    let end = before.wrapping_add(unzigzag(number(from)?) as u64);
    let what = what(byte(from)?)?;
    let fetched_at = number(from)?.checked_sub(1).map(unzigzag);
    let (source, links) = (short(from)?, short(from)?);
    let some = byte(from)?;
    let mut counts = [0; 7];
    for (at, count) in counts.iter_mut().enumerate() {
        if some >> at & 1 == 1 {
            *count = short(from)?;
        }
    }
    Some(Entry {
        end,
        what,
        source,
        names_end: 0,
        links_start,
        links_end: links_start.checked_add(links)?,
        fetched_at,
        digest: Digest::NONE,
        counts: counts_of(counts),
    })
}

fn byte(from: &mut &[u8]) -> Option<u8> {
    from.split_off_first().copied()
}

fn number(from: &mut &[u8]) -> Option<u64> {
    take_number(from).and_then(|number| u64::try_from(number).ok())
}

fn short(from: &mut &[u8]) -> Option<u32> {
    number(from).and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = (Entry, Vec<u32>)> {
        let counts = any::<[u32; 7]>().prop_map(counts_of);
        let what = (0..14u8).prop_map(|kind| what(kind).unwrap());
        let links = vec(0..50u32, 0..9);
        (
            any::<u64>(),
            what,
            0..50u32,
            any::<Option<i64>>(),
            counts,
            links,
        )
            .prop_map(|(end, what, source, fetched_at, counts, links)| {
                let fetched_at = fetched_at.map(|time| time >> 2);
                let entry = Entry {
                    end,
                    what,
                    source,
                    names_end: 50,
                    links_start: 0,
                    links_end: 0,
                    fetched_at,
                    digest: Digest::NONE,
                    counts,
                };
                (entry, links)
            })
    }

    /// The page of a name.
    fn page(name: u32) -> PageId {
        PageId(u64::from(name) * 7 + 3)
    }

    proptest! {
        #[test]
        fn pieces_come_back(
            entries in vec(entry(), 0..12),
            [offset, oversize, compressed, end] in any::<[u64; 4]>(),
            [verified, last, classes, each] in any::<[bool; 4]>(),
            [before, after] in any::<[u128; 2]>(),
            complaints in vec((any::<u32>(), any::<String>()), 0..3),
        ) {
            let mut batch = Batch { complaints: complaints.clone(), ..Batch::default() };
            for (mut entry, links) in entries {
                entry.links_start = batch.links.len() as u32;
                batch.links.extend(links);
                entry.links_end = batch.links.len() as u32;
                batch.entries.push(entry);
            }
            let class = |&link: &u32| LinkClass::from_number(u64::from(link) % 2).unwrap();
            if classes {
                batch.classes = batch.links.iter().map(class).collect();
            }
            let hashes = Hashes {
                before,
                each: batch.entries.iter().take(if each { 99 } else { 0 }).map(|e| e.end.into()).collect(),
                after,
                end,
            };
            let chunk = Chunk {
                bytes: Vec::new(),
                offset,
                prefix: Xxh3::new(),
                prefix_after: 0,
                oversize,
                compressed,
                verified,
                member: None,
            };
            let piece = Piece { chunk: Arc::new(chunk), batch, last, hashes: None };
            let mut bytes = Vec::new();
            prop_assert!(put(&mut bytes, &piece, page, &hashes));
            let entries = piece.batch.entries.len() * size_of::<Entry>();
            prop_assert_eq!(memory(&bytes), (2 * bytes.len() + entries) as u64);
            let back = take(&bytes, Batch::default()).unwrap();
            let found = back.hashes.unwrap();
            prop_assert_eq!((found.before, &found.each, found.after, found.end), (before, &hashes.each, after, end));
            let chunk = back.chunk;
            prop_assert_eq!(
                (chunk.offset, chunk.oversize, chunk.compressed, chunk.verified, back.last),
                (offset, oversize, compressed, verified, last)
            );
            prop_assert!(back.batch.resolved);
            prop_assert_eq!(&back.batch.complaints, &complaints);
            prop_assert_eq!(back.batch.entries.len(), piece.batch.entries.len());
            for (found, entry) in back.batch.entries.iter().zip(&piece.batch.entries) {
                let of_page = entry.what.is_of_page();
                prop_assert_eq!((found.end, found.what, found.names_end), (entry.end, entry.what, 0));
                prop_assert_eq!((found.fetched_at, found.counts), (entry.fetched_at, entry.counts));
                prop_assert!(!of_page || u64::from(found.source) == page(entry.source).0);
                let (links, classes) = match entry.what {
                    What::Visit => (piece.batch.targets(entry), piece.batch.classes(entry)),
                    // Nothing is done with theirs.
                    _ => (&[][..], &[][..]),
                };
                let pages: Vec<u32> = links.iter().map(|&link| page(link).0 as u32).collect();
                prop_assert_eq!(back.batch.targets(found), &pages);
                prop_assert_eq!(back.batch.classes(found), classes);
            }
            prop_assert!(take(&bytes[..bytes.len() - 1], Batch::default()).is_none());
            let large = |_| PageId(1 << 32);
            let uses = piece.batch.entries.iter().any(|entry| entry.what.is_of_page());
            prop_assert_eq!(put(&mut bytes, &piece, large, &hashes), !uses);
        }

        #[test]
        fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..200)) {
            let _ = (memory(&bytes), take(&bytes, Batch::default()));
        }
    }
}
