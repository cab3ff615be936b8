//! Fuzz targets: a block whose checksums are right, whatever is in it, and its text.

use super::block::From;
use super::hosts::Hosts;
use super::pack::{Packer, SMALL_LEVEL};
use super::places::Places;
use super::section::BlockHead;
use super::text::{pack, unpack};
use super::unpack::{Policy, Unpacker};
use crate::batch::{Batch, HashKey};
use crate::codec::varint::number;
use crate::engine::SelfLinks;
use crate::model::Part;
use crate::rules::LinkClass;

/// Longest name allowed.
const URL_BYTES: u64 = 64;

/// A head's numbers as its input begins with them, and the rest.
fn head_of(data: &[u8]) -> Option<(BlockHead, &[u8])> {
    let (fields, parts) = data.split_first_chunk::<24>()?;
    let field = |at: usize, size: usize| number(&fields[at..at + size]);
    let mut head = BlockHead::empty(fields[22] & 1 == 1, field(0, 4) as u32, 0);
    head.classes = fields[22] & 2 == 2;
    head.words = fields[22] & 4 == 4;
    head.ppmd = fields[22] & 8 == 8;
    head.hosts = fields[22] & 16 == 16;
    head.counted = fields[22] & 32 == 32;
    head.sites = fields[22] & 64 == 64;
    head.records = field(4, 2) as u32;
    head.names = field(6, 2) as u32;
    head.text = field(8, 4);
    head.targets = field(12, 4);
    head.links = field(16, 4);
    head.names_len = field(20, 2) as u32;
    head.from = From::ALL[usize::from(fields[23] & 15) % 3];
    head.local_from = From::ALL[usize::from(fields[23] >> 4) % 3];
    head.first_host = u32::from(fields[22] >> 7);
    // A reader refuses what takes more than its limit, and what makes no sense.
    let is_sound = head.is_sound() && head.memory() < 16 << 20;
    is_sound.then_some((head, parts))
}

/// A block is refused, or its numbers keep to what its head says, and packed again it says the same.
pub(crate) fn block(data: &[u8]) {
    let Some((head, parts)) = head_of(data) else {
        return;
    };
    let (names, records) = parts.split_at(parts.len().min(head.names_len as usize));
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
        if head.hosts {
            let part = Part::of_block(head);
            let mut hosts = Hosts::new(fingerprints, URL_BYTES);
            hosts.complete(&mut batch, &part).ok()?;
        }
        Some(batch)
    };
    let Some(batch) = read(names, records, &head, SelfLinks::Drop) else {
        return;
    };
    check(&batch, &head);
    let kept = read(names, records, &head, SelfLinks::Keep).expect("either policy reads it");
    for (one, other) in batch.entries.iter().zip(&kept.entries) {
        assert_eq!(one.counts.read, other.counts.read);
        let followed = |entry: &crate::batch::Entry| {
            let dropped = entry.counts;
            entry.links_end - entry.links_start + dropped.own + dropped.repeated
        };
        assert_eq!(followed(one), followed(other));
    }
    // Names before the block are on no host.
    if head.first_name > 0 || !batch.entries.iter().all(|entry| is_distinct(&batch, entry)) {
        return;
    }
    let level = if head.ppmd { SMALL_LEVEL } else { 1 };
    let told = told(&batch, head.urls && head.ppmd);
    let mut packer = Packer::new(level).expect("a level that is there");
    let mut empty = BlockHead::empty(head.urls, 0, 0);
    empty.sites = head.urls && head.ppmd;
    let packed = packer.pack(&told, empty);
    let packed = packed.expect("what was read can be written");
    assert!(packed.head.is_sound());
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

/// Text that is unpacked is refused or as long as it should be, whatever it was packed to; and what was
/// packed comes back.
pub(crate) fn text(data: &[u8]) {
    let (len, packed) = data.split_at(data.len().min(2));
    let mut raw = vec![0; number(len) as usize];
    let _ = unpack(packed, &mut raw);
    let again = pack(data).expect("memory takes it");
    let mut raw = vec![0; data.len()];
    unpack(&again, &mut raw).expect("what was packed can be unpacked");
    assert_eq!(raw, data);
}

/// The first block of an archive, as it is told.
fn told(batch: &Batch, by_site: bool) -> Batch {
    let mut places = Places::new().expect("memory");
    let mut told = Batch::default();
    told.text.clone_from(&batch.text);
    told.text_ends.clone_from(&batch.text_ends);
    let mut known = 0;
    for entry in &batch.entries {
        let start = told.links.len() as u32;
        let mut added = *entry;
        if entry.what.is_of_page() {
            for name in known..entry.names_end {
                let name = batch.name(name);
                let added = places.add(name, by_site, &mut told.sites);
                added.expect("memory");
            }
            let (host, page, known_then) = places.page(entry.source, known, &mut told.sites);
            let targets = batch.targets(entry).iter();
            let targets = targets.map(|&target| places.target(target, host, known_then));
            told.links.extend(targets);
            known = entry.names_end;
            added.source = page;
        }
        // Links to a page itself that were dropped are there no more.
        (added.links_start, added.links_end) = (start, told.links.len() as u32);
        told.classes.extend_from_slice(batch.classes(entry));
        told.entries.push(added);
    }
    told
}

fn sorted(batch: &Batch, entry: &crate::batch::Entry) -> Vec<(u32, LinkClass)> {
    let targets = batch.targets(entry).iter().copied();
    let mut targets: Vec<_> = targets.zip(batch.classes(entry).iter().copied()).collect();
    targets.sort_unstable_by_key(|link| link.0);
    targets
}

/// Whether its targets are as the writer makes them: distinct, without the page itself.
fn is_distinct(batch: &Batch, entry: &crate::batch::Entry) -> bool {
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
