//! Part of a batch on its way to the process that has its partition, or to its turn in memory.
//!
//! ```text
//! message: partition u32 | names u32 | length u32 | zstd of the records of that partition; and so on for each partition
//! ```
//!
//! A name is given by its number. Where the other process does not know these (`numbers`), or what it knows may be another by
//! the time that the records are applied, names are there as well: one of the partition's own by its text, of which the
//! fingerprint is made, another by what an index looks at of its fingerprint.

use serde::{Deserialize, Serialize};

use super::numbers::Known;
use crate::batch::split::PartBatch;
use crate::codec::planes;
use crate::model::{Digest, Entry, Fingerprints, LinkClass, LinkCounts, Time, What};
use crate::store::{PRINT, packed, print_bytes, read_print, unpacked};
use crate::{Error, Result};

/// Little time, and a third of the bytes.
const LEVEL: i32 = 1;

#[derive(Serialize, Deserialize)]
struct Sent {
    /// Numbers of names (planes).
    numbers: Vec<u8>,
    names: Option<SentNames>,
    entries: Vec<SentEntry>,
    /// The places of links among the names (planes).
    links: Vec<u8>,
    classes: Vec<LinkClass>,
    weights: Vec<u64>,
}

#[derive(Default, Serialize, Deserialize)]
struct SentNames {
    /// The partitions that they are of.
    owners: Vec<u32>,
    /// Of the partition's own: the lengths of their texts, and these.
    lengths: Vec<u32>,
    text: Vec<u8>,
    /// Of others: what indexes look at of their fingerprints.
    prints: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct SentEntry {
    what: u8,
    source: u32,
    /// Names that it is the first to give, and links.
    names: u32,
    links: u32,
    fetched_at: Option<Time>,
    digest: Digest,
    counts: LinkCounts,
}

/// What entries of pages can be, by their numbers on the way.
const WHATS: [What; 4] = [What::Visit, What::Gone, What::Unchanged, What::Failed];

/// What there is for a partition, as it is sent, or waits: with its names, or without.
pub(super) fn pack(partition: u32, part: &PartBatch, with_names: bool) -> Result<Vec<u8>> {
    let bytes = packed(&sent(partition, part, with_names)?)?;
    compress(&bytes)
}

pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let packed = zstd::bulk::compress(bytes, LEVEL);
    packed.map_err(|error| Error::internal(error.to_string()))
}

/// Adds that to a message.
pub(super) fn put(message: &mut Vec<u8>, partition: u32, names: usize, bytes: &[u8]) {
    message.extend(partition.to_le_bytes());
    message.extend((names as u32).to_le_bytes());
    message.extend((bytes.len() as u32).to_le_bytes());
    message.extend(bytes);
}

fn sent(partition: u32, part: &PartBatch, with_names: bool) -> Result<Sent> {
    let batch = &part.batch;
    let mut sent = Sent {
        numbers: Vec::new(),
        names: with_names.then(|| names(partition, part)),
        entries: Vec::with_capacity(batch.entries.len()),
        links: Vec::new(),
        classes: batch.classes.clone(),
        weights: batch.weights.clone(),
    };
    let numbers: Vec<u64> = part.names.iter().map(|&number| number.into()).collect();
    planes::put(&mut sent.numbers, &numbers)?;
    planes::put_near(&mut sent.links, &batch.links)?;
    let mut named = 0;
    for entry in &batch.entries {
        let what = WHATS.iter().position(|what| *what == entry.what);
        let what = what.ok_or_else(|| Error::internal("an entry is of no page"))?;
        sent.entries.push(SentEntry {
            what: what as u8,
            source: entry.source,
            names: entry.names_end - named,
            links: entry.links_end - entry.links_start,
            fetched_at: entry.fetched_at,
            digest: entry.digest,
            counts: entry.counts,
        });
        named = entry.names_end;
    }
    Ok(sent)
}

fn names(partition: u32, part: &PartBatch) -> SentNames {
    let mut names = SentNames {
        owners: part.batch.owners.clone(),
        text: part.batch.text.clone(),
        ..SentNames::default()
    };
    for (at, &owner) in part.batch.owners.iter().enumerate() {
        if owner == partition {
            let text = part.batch.name(at as u32);
            names.lengths.push(text.len() as u32);
        } else {
            let print = part.batch.fingerprints[at];
            names.prints.extend(print_bytes(print));
        }
    }
    names
}

/// What there is for a partition in a message.
pub(super) struct Part<'m> {
    pub number: u32,
    /// How many names it has.
    pub names: usize,
    /// See [`take`].
    pub records: &'m [u8],
}

/// What there is for each partition in a message.
pub(super) fn parts(mut message: &[u8]) -> Result<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    while !message.is_empty() {
        let mut part = || {
            let (number, rest) = message.split_first_chunk()?;
            let (names, rest) = rest.split_first_chunk()?;
            let (len, rest) = rest.split_first_chunk()?;
            let (records, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            message = rest;
            Some(Part {
                number: u32::from_le_bytes(*number),
                names: u32::from_le_bytes(*names) as usize,
                records,
            })
        };
        parts.push(part().ok_or_else(unknown)?);
    }
    Ok(parts)
}

pub(super) fn unknown() -> Error {
    Error::internal("process 0 sent records that cannot be read")
}

/// What [`pack`] packed, by what is known of names if they are not there.
pub(super) fn take(
    bytes: &[u8],
    partition: u32,
    (known, prints): (&Known, &Fingerprints),
) -> Result<PartBatch> {
    let bytes = zstd::decode_all(bytes).map_err(|_| unknown())?;
    let mut sent: Sent = unpacked(&bytes)?;
    let mut part = PartBatch {
        names: numbers(&sent.numbers).ok_or_else(unknown)?,
        ..PartBatch::default()
    };
    let named = match sent.names.take() {
        Some(names) => take_names(names, &mut part, partition, prints),
        None => find_names(&mut part, partition, known),
    };
    named
        .and_then(|()| received(sent, part))
        .ok_or_else(unknown)
}

fn numbers(mut bytes: &[u8]) -> Option<Vec<u32>> {
    let numbers = planes::take(&mut bytes, u32::MAX as usize).filter(|_| bytes.is_empty())?;
    let number = |number| u32::try_from(number).ok();
    numbers.into_iter().map(number).collect()
}

/// Puts names in that were sent with the records.
fn take_names(
    names: SentNames,
    part: &mut PartBatch,
    partition: u32,
    prints: &Fingerprints,
) -> Option<()> {
    let batch = &mut part.batch;
    (batch.text, batch.owners) = (names.text, names.owners);
    let (others, _) = names.prints.as_chunks::<PRINT>();
    let (mut lengths, mut others) = (names.lengths.into_iter(), others.iter());
    let mut end = 0u32;
    for &owner in &batch.owners {
        let print = if owner == partition {
            let start = end as usize;
            end = end.checked_add(lengths.next()?)?;
            prints.of(batch.text.get(start..end as usize)?)
        } else {
            read_print(*others.next()?)
        };
        batch.fingerprints.push(print);
        batch.text_ends.push(end);
    }
    (part.batch.owners.len() == part.names.len()).then_some(())
}

/// Puts names in that are known.
fn find_names(part: &mut PartBatch, partition: u32, known: &Known) -> Option<()> {
    let batch = &mut part.batch;
    for &number in &part.names {
        let (print, owner) = known.name(number)?;
        let text = if owner == partition {
            known.text(number)
        } else {
            b""
        };
        u32::try_from(batch.text.len() + text.len()).ok()?;
        batch.owners.push(owner);
        batch.push_name(text, print);
    }
    Some(())
}

/// Puts the records in.
fn received(sent: Sent, mut part: PartBatch) -> Option<PartBatch> {
    let batch = &mut part.batch;
    batch.classes = sent.classes;
    batch.weights = sent.weights;
    batch.links = planes::all_near(&sent.links)?;
    let count = part.names.len() as u32;
    let (mut named, mut linked) = (0u32, 0u32);
    for entry in sent.entries {
        let start = linked;
        named = named.checked_add(entry.names)?;
        linked = linked.checked_add(entry.links)?;
        batch.entries.push(Entry {
            end: 0,
            what: *WHATS.get(usize::from(entry.what))?,
            source: entry.source,
            names_end: named,
            links_start: start,
            links_end: linked,
            fetched_at: entry.fetched_at,
            digest: entry.digest,
            counts: entry.counts,
        });
    }
    let is_named = |name: &u32| *name < count;
    let fits = named <= count
        && linked as usize == batch.links.len()
        && batch.weights.len() <= batch.links.len()
        && batch.links.iter().all(is_named)
        && batch.entries.iter().all(|entry| is_named(&entry.source));
    fits.then_some(part)
}
