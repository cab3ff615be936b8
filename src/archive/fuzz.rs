//! Fuzz target: a block whose checksums are right, whatever is in it.

use super::block::From;
use super::pack::Packer;
use super::section::BlockHead;
use super::unpack::{Policy, Unpacker};
use crate::batch::{Batch, Entry, HashKey};
use crate::codec::varint::number;
use crate::engine::SelfLinks;
use crate::rules::LinkClass;

/// Longest name allowed.
const URL_BYTES: u64 = 64;

/// A head's numbers as its input begins with them, and the rest.
fn head_of(data: &[u8]) -> Option<(BlockHead, &[u8])> {
    let (fields, parts) = data.split_first_chunk::<24>()?;
    let field = |at: usize, size: usize| number(&fields[at..at + size]);
    let mut head = BlockHead::empty(fields[22] & 1 == 1, field(0, 4) as u32, 0);
    head.features.classes = fields[22] & 2 == 2;
    head.features.scoped = fields[22] & 128 == 128;
    head.records = field(4, 2) as u32;
    head.names = field(6, 2) as u32;
    head.text = field(8, 4);
    head.targets = field(12, 4);
    head.links = field(16, 4);
    head.packed_names.len = field(20, 2) as u32;
    head.from = From::ALL[usize::from(fields[23] & 15) % 3];
    // A reader refuses what takes more than its limit.
    (head.memory() < 16 << 20).then_some((head, parts))
}

/// A block is refused, or its numbers keep to what its head says, and packed again it says the same.
pub(crate) fn block(data: &[u8]) {
    let Some((head, parts)) = head_of(data) else {
        return;
    };
    let (names, records) = parts.split_at(parts.len().min(head.packed_names.len as usize));
    let read = |names: &[u8], records: &[u8], head: &BlockHead, self_links| {
        let policy = Policy {
            self_links,
            classes: true,
        };
        let mut unpacker = Unpacker::new().ok()?;
        let mut batch = Batch::default();
        let fingerprints = HashKey([1, 2]).fingerprints();
        unpacker
            .records(records, head, policy, 7, &mut batch)
            .ok()?;
        unpacker
            .names(names, head, URL_BYTES, &fingerprints, &mut batch)
            .ok()?;
        Some(batch)
    };
    let Some(batch) = read(names, records, &head, SelfLinks::Drop) else {
        return;
    };
    check(&batch, &head);
    let kept = read(names, records, &head, SelfLinks::Keep).expect("either policy reads it");
    for (one, other) in batch.entries.iter().zip(&kept.entries) {
        assert_eq!(one.counts.read, other.counts.read);
        let followed = |entry: &Entry| {
            let dropped = entry.counts;
            entry.links_end - entry.links_start + dropped.own + dropped.repeated
        };
        assert_eq!(followed(one), followed(other));
    }
    if !batch.entries.iter().all(|entry| is_distinct(&batch, entry)) {
        return;
    }
    let mut packer = Packer::new(1).expect("a level that is there");
    let before = BlockHead::empty(head.features.urls, head.first_name, 0);
    let packed = packer.pack(&as_written(&batch), before);
    let packed = packed.expect("what was read can be written");
    let again = read(
        &packed.names,
        &packed.records,
        &packed.head,
        SelfLinks::Drop,
    );
    let again = again.expect("what was written can be read");
    assert_eq!(batch.text, again.text);
    for (one, other) in batch.entries.iter().zip(&again.entries) {
        assert_eq!(
            (one.what, one.source, one.names_end),
            (other.what, other.source, other.names_end)
        );
        assert_eq!(
            (one.fetched_at, one.counts),
            (other.fetched_at, other.counts)
        );
        assert_eq!(sorted(&batch, one), sorted(&again, other));
    }
}

/// Links to a page itself that were dropped are there no more.
fn as_written(read: &Batch) -> Batch {
    let mut written = Batch {
        text: read.text.clone(),
        text_ends: read.text_ends.clone(),
        ..Batch::default()
    };
    for entry in &read.entries {
        let start = written.links.len() as u32;
        written.links.extend_from_slice(read.targets(entry));
        written.classes.extend_from_slice(read.classes(entry));
        written.entries.push(Entry {
            links_start: start,
            links_end: written.links.len() as u32,
            ..*entry
        });
    }
    written
}

fn sorted(batch: &Batch, entry: &Entry) -> Vec<(u32, LinkClass)> {
    let targets = batch.targets(entry).iter().copied();
    let mut targets: Vec<_> = targets.zip(batch.classes(entry).iter().copied()).collect();
    targets.sort_unstable_by_key(|link| link.0);
    targets
}

/// Returns whether its targets are as the writer makes them: distinct, without the page itself.
fn is_distinct(batch: &Batch, entry: &Entry) -> bool {
    let targets = sorted(batch, entry);
    targets.iter().all(|link| link.0 != entry.source)
        && targets.windows(2).all(|pair| pair[0].0 != pair[1].0)
}

fn check(batch: &Batch, head: &BlockHead) {
    assert_eq!(batch.entries.len(), head.records as usize);
    assert_eq!(batch.text_ends.len(), head.names as usize);
    assert_eq!(batch.fingerprints.len(), head.names as usize);
    assert_eq!(batch.text.len() as u64, head.text);
    assert_eq!(batch.links.len() as u64, head.targets);
    assert_eq!(batch.links.len(), batch.classes.len());
    let mut names = head.first_name;
    for entry in &batch.entries {
        assert!(entry.names_end >= names && entry.end == 7);
        names = entry.names_end;
        if entry.what.is_of_page() {
            assert!(entry.source < names);
        }
        assert!(batch.targets(entry).iter().all(|&target| target < names));
    }
    assert_eq!(names, head.first_name + head.names);
    for name in 0..head.names {
        let name = batch.name(name);
        assert!(!name.is_empty() && name.len() as u64 <= URL_BYTES);
        assert!(std::str::from_utf8(name).is_ok_and(|name| !name.contains(['\t', '\n'])));
    }
}
