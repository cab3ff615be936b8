//! Part of a batch on its way to the process that has its partition, or to its turn in memory.
//!
//! ```text
//! message: partition u32 | names u32 | length u32 | zstd of the records and names of that partition; and so on for each partition
//! ```
//!
//! A name is given by its number in the whole batch: one of the partition's own by its text, of which the fingerprint is
//! made, another by what an index looks at of its fingerprint.

use serde::{Deserialize, Serialize};

use crate::batch::split::PartBatch;
use crate::model::{Batch, Digest, Entry, Fingerprints, LinkClass, LinkCounts, Time, What};
use crate::store::{PRINT, packed, print_bytes, read_print, unpacked};
use crate::{Error, Result};

/// Little time, and a third of the bytes.
const LEVEL: i32 = 1;

#[derive(Serialize, Deserialize)]
struct Sent {
    /// Names: by how much each number is more than the one before, and the partition that it is of.
    names: Vec<i64>,
    owners: Vec<u32>,
    /// Of the partition's own: the lengths of their texts, and these.
    lengths: Vec<u32>,
    text: Vec<u8>,
    /// Of others: what indexes look at of their fingerprints.
    prints: Vec<u8>,
    entries: Vec<SentEntry>,
    links: Vec<u32>,
    classes: Vec<LinkClass>,
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

/// What there is for a partition, as it is sent, or waits.
pub(super) fn pack(partition: u32, part: &PartBatch) -> Result<Vec<u8>> {
    let bytes = packed(&sent(partition, part)?)?;
    let bytes = zstd::bulk::compress(&bytes, LEVEL);
    bytes.map_err(|error| Error::internal(error.to_string()))
}

/// Adds that to a message.
pub(super) fn put(message: &mut Vec<u8>, partition: u32, names: usize, bytes: &[u8]) {
    message.extend(partition.to_le_bytes());
    message.extend((names as u32).to_le_bytes());
    message.extend((bytes.len() as u32).to_le_bytes());
    message.extend(bytes);
}

fn sent(partition: u32, part: &PartBatch) -> Result<Sent> {
    let batch = &part.batch;
    let mut sent = Sent {
        names: Vec::with_capacity(part.names.len()),
        owners: part.owners.clone(),
        lengths: Vec::new(),
        text: batch.text.clone(),
        prints: Vec::new(),
        entries: Vec::with_capacity(batch.entries.len()),
        links: batch.links.clone(),
        classes: batch.classes.clone(),
    };
    let mut last = 0;
    for (at, (&name, &owner)) in part.names.iter().zip(&part.owners).enumerate() {
        sent.names.push(i64::from(name) - last);
        last = name.into();
        if owner == partition {
            sent.lengths.push(batch.name(at as u32).len() as u32);
        } else {
            sent.prints.extend(print_bytes(batch.fingerprints[at]));
        }
    }
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

fn unknown() -> Error {
    Error::internal("process 0 sent records that cannot be read")
}

/// What [`pack`] packed.
pub(super) fn take(bytes: &[u8], partition: u32, prints: &Fingerprints) -> Result<PartBatch> {
    let bytes = zstd::decode_all(bytes).map_err(|_| unknown())?;
    let sent: Sent = unpacked(&bytes)?;
    received(sent, partition, prints).ok_or_else(unknown)
}

fn received(sent: Sent, partition: u32, prints: &Fingerprints) -> Option<PartBatch> {
    let mut part = PartBatch {
        owners: sent.owners,
        ..PartBatch::default()
    };
    let mut batch = Batch {
        text: sent.text,
        links: sent.links,
        classes: sent.classes,
        ..Batch::default()
    };
    let (others, _) = sent.prints.as_chunks::<PRINT>();
    let (mut lengths, mut others) = (sent.lengths.into_iter(), others.iter());
    let (mut last, mut end) = (0i64, 0u32);
    for (step, &owner) in sent.names.into_iter().zip(&part.owners) {
        last = last.checked_add(step)?;
        part.names.push(u32::try_from(last).ok()?);
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
        && batch.links.iter().all(is_named)
        && batch.entries.iter().all(|entry| is_named(&entry.source));
    part.batch = batch;
    fits.then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::split::{Slots, Split, partition_of};
    use crate::batch::{Builder, Rules};
    use crate::model::Fingerprint;
    use crate::model::{HashKey, Limits, Link, Names, Parsed, Record};
    use crate::store::kept;

    fn batch(key: HashKey) -> Batch {
        let rules = Rules {
            limits: Limits::default(),
            self_links: Default::default(),
            key,
            input: Default::default(),
            classes: true,
        };
        let mut builder = Builder::new(rules, Names::Url);
        for at in 0..40u8 {
            let links: Vec<String> = (0..at % 7)
                .map(|link| format!("http://h{}.example/{}", (at * 3 + link) % 5, link * at % 11))
                .collect();
            let links: Vec<Link<'_>> = links.iter().map(|link| Link::to(link.as_bytes())).collect();
            let url = format!("http://h{}.example/{}", at % 5, at % 13);
            builder.add(Parsed::Record(&Record {
                url: url.as_bytes().into(),
                links,
                fetched_at: (at % 3 == 0).then_some(i64::from(at) - 20),
                ..Record::default()
            }));
        }
        builder.take()
    }

    #[test]
    fn parts_arrive_as_they_were_sent() {
        let key = HashKey([3, 4]);
        let batch = batch(key);
        let count = 3;
        let names = 0..batch.fingerprints.len() as u32;
        let owners: Vec<u32> = names
            .map(|name| partition_of(batch.name(name), count))
            .collect();
        let times = vec![Some(5); batch.entries.len()];
        let split = Split::new(&batch, &owners, (0, 0), &times, count);
        let mut message = Vec::new();
        let made: Vec<PartBatch> = (0..count)
            .map(|number| split.part(number, &mut Slots::default()))
            .collect();
        for (number, made) in (0..).zip(&made) {
            let names = made.names.len();
            put(&mut message, number, names, &pack(number, made).unwrap());
        }
        let entries: Vec<usize> = made.iter().map(|part| part.batch.entries.len()).collect();
        assert_eq!(entries.iter().sum::<usize>(), batch.entries.len());
        assert!(entries.iter().filter(|&&entries| entries > 0).count() > 1);
        let sent = parts(&message).unwrap();
        assert_eq!(sent.len(), made.len());
        for (part, made) in sent.into_iter().zip(&made) {
            let (number, bytes) = (part.number, part.records);
            assert_eq!(part.names, made.names.len());
            let got = take(bytes, number, &key.fingerprints()).unwrap();
            assert_eq!((&got.names, &got.owners), (&made.names, &made.owners));
            let of = |batch: &Batch| {
                let entries: Vec<Entry> = batch
                    .entries
                    .iter()
                    .map(|e| Entry { end: 0, ..*e })
                    .collect();
                let prints: Vec<Fingerprint> =
                    batch.fingerprints.iter().copied().map(kept).collect();
                let names = (prints, batch.text_ends.clone());
                let links = (batch.links.clone(), batch.classes.clone());
                (format!("{entries:?}"), names, batch.text.clone(), links)
            };
            assert_eq!(of(&got.batch), of(&made.batch));
            assert!(take(&bytes[..bytes.len() - 1], number, &key.fingerprints()).is_err());
        }
        assert!(parts(&message[..message.len() - 1]).is_err());
    }
}
