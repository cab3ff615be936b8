//! Block of kept rows: the payload of a block in a [`BlockLog`](crate::disk::log::BlockLog).
//!
//! Its bytes are specified in `formats/rows.md`: heads of rows, and the targets of all rows as gaps, with controls. Two
//! bits of a control give the length of a gap, by the block's code ([`CODES`]), the one that makes the block shortest.
//! Four gaps at a time are decoded without a branch: 1,300 M links/s on one core, against 120 to 390 M for varints, in
//! fewer bytes. The heads have their own checksum, so that a page's last row is found without reading links.

use std::array::from_fn;
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

use crate::codec::frame;
use crate::codec::varint::{number, put, take, unzigzag, zigzag};
use crate::graph::Links;
use crate::rows::{PAGES_MAX, Row};

/// Length of the fields before the heads, in bytes.
pub const FIXED: usize = 24;
/// Number of rows and links together at which a block is full.
pub const FULL: usize = 1 << 16;

/// Length of a gap in bytes by its control, for each code.
const CODES: [[u8; 4]; 4] = [[0, 1, 2, 4], [0, 1, 2, 3], [0, 1, 3, 4], [1, 2, 3, 4]];
/// Maximum length of four gaps in bytes, plus the bytes read beyond the last one.
const AHEAD: usize = 20;

/// Head of a row: everything except its links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowHead {
    pub page: u32,
    pub links: u32,
    pub gone: bool,
    pub weighted: bool,
}

/// Rows of a block in the order of their visits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockRows {
    pub heads: Vec<RowHead>,
    /// Targets of all rows, concatenated.
    pub targets: Vec<u32>,
    /// Weights of the targets of those rows that have weights, concatenated.
    pub weights: Vec<u64>,
}

impl BlockRows {
    pub fn is_full(&self) -> bool {
        self.heads.len() + self.targets.len() >= FULL
    }

    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let (mut targets, mut weights) = (&self.targets[..], &self.weights[..]);
        self.heads.iter().map(move |head| {
            let links = ..head.links as usize;
            let weights = if head.weighted {
                weights.split_off(links)
            } else {
                None
            };
            Row {
                page: head.page,
                gone: head.gone,
                links: Links {
                    targets: targets.split_off(links).unwrap_or_default(),
                    weights: weights.unwrap_or_default(),
                },
            }
        })
    }
}

/// Packs rows into a block; sorts their targets in place.
pub fn pack(rows: &mut BlockRows) -> Vec<u8> {
    sort(rows);
    let mut heads = Vec::with_capacity(rows.heads.len() * 4);
    let mut gaps = Vec::with_capacity(rows.targets.len() + 3);
    let mut before = 0;
    let mut targets = &rows.targets[..];
    for head in &rows.heads {
        put(&mut heads, zigzag(i64::from(head.page) - before).into());
        before = head.page.into();
        let flags = u64::from(head.weighted) << 1 | u64::from(head.gone);
        put(&mut heads, (u64::from(head.links) << 2 | flags).into());
        let row = targets.split_off(..head.links as usize).unwrap_or_default();
        if let Some((first, rest)) = row.split_first() {
            gaps.push(zigzag_32(first.wrapping_sub(head.page)));
            let mut last = *first;
            for &target in rest {
                // Targets are distinct, as names are; the index may merge two names, once in 30,000 webs.
                gaps.push(target.wrapping_sub(last).wrapping_sub(1));
                last = target;
            }
        }
    }
    let links = gaps.len();
    gaps.resize(links.next_multiple_of(4), 0);
    let code = code_of(&gaps);
    let (controls, bytes) = pack_gaps(CODES[code], &gaps);
    let mut out = Vec::with_capacity(FIXED + heads.len() + controls.len() + bytes.len());
    for field in [heads.len(), links, bytes.len(), code] {
        out.extend_from_slice(&(field as u32).to_le_bytes());
    }
    let mut out = frame::BlockHead::after(out).summed(xxh3_64(&heads));
    out.extend_from_slice(&heads);
    out.extend_from_slice(&controls);
    out.extend_from_slice(&bytes);
    for &weight in &rows.weights {
        put(&mut out, weight.into());
    }
    out
}

/// Sorts the targets of each row together with their weights.
fn sort(rows: &mut BlockRows) {
    let (mut targets, mut weights) = (&mut rows.targets[..], &mut rows.weights[..]);
    let mut pairs: Vec<(u32, u64)> = Vec::new();
    for head in &rows.heads {
        let links = head.links as usize;
        let row = targets.split_off_mut(..links).unwrap_or_default();
        if !head.weighted {
            row.sort_unstable();
            continue;
        }
        let heavy = weights.split_off_mut(..links).unwrap_or_default();
        pairs.clear();
        pairs.extend(row.iter().copied().zip(heavy.iter().copied()));
        pairs.sort_unstable();
        for (at, &(target, weight)) in pairs.iter().enumerate() {
            (row[at], heavy[at]) = (target, weight);
        }
    }
}

fn heads_sum(fields: &[u8], heads: &[u8]) -> u64 {
    frame::checksum(&fields[..16], xxh3_64(heads))
}

/// Corrects the checksum of the heads, if the payload is long enough.
#[cfg(any(test, feature = "testing"))]
pub fn reseal(payload: &mut [u8]) {
    let end = heads_end(payload).unwrap_or(usize::MAX);
    if let Some(heads) = payload.get(FIXED..end) {
        let sum = heads_sum(payload, heads);
        payload[16..FIXED].copy_from_slice(&sum.to_le_bytes());
    }
}

fn zigzag_32(value: u32) -> u32 {
    value << 1 ^ ((value as i32) >> 31) as u32
}

fn unzigzag_32(value: u32) -> u32 {
    value >> 1 ^ 0u32.wrapping_sub(value & 1)
}

/// Returns the number of bytes that a gap needs.
fn least(gap: u32) -> usize {
    4 - gap.leading_zeros() as usize / 8
}

/// Returns the control of a gap that needs at least `least` bytes.
fn control(code: [u8; 4], least: usize) -> Option<usize> {
    code.iter().position(|&bytes| usize::from(bytes) >= least)
}

/// Returns the number of the code that encodes these gaps in the fewest bytes.
fn code_of(gaps: &[u32]) -> usize {
    let mut counts = [0u64; 5];
    gaps.iter().for_each(|&gap| counts[least(gap)] += 1);
    let cost = |code: [u8; 4]| {
        (0..).zip(counts).try_fold(0, |sum, (least, count)| {
            match (count, control(code, least)) {
                (0, _) => Some(sum),
                (_, at) => at.map(|at| sum + count * u64::from(code[at])),
            }
        })
    };
    let costs = CODES.map(|code| cost(code).unwrap_or(u64::MAX));
    (0..CODES.len()).min_by_key(|&at| costs[at]).unwrap_or(0)
}

/// Encodes gaps, whose number is a multiple of four, as controls and bytes.
fn pack_gaps(code: [u8; 4], gaps: &[u32]) -> (Vec<u8>, Vec<u8>) {
    let by_least: [usize; 5] = from_fn(|least| control(code, least).unwrap_or(3));
    let mut controls = Vec::with_capacity(gaps.len() / 4);
    let mut bytes = Vec::with_capacity(gaps.len() * 4);
    for four in gaps.as_chunks::<4>().0 {
        let mut all = 0;
        for (at, &gap) in four.iter().enumerate() {
            let control = by_least[least(gap)];
            all |= (control as u8) << (2 * at);
            bytes.extend_from_slice(&gap.to_le_bytes()[..code[control].into()]);
        }
        controls.push(all);
    }
    (controls, bytes)
}

/// Decoding table of a code: start of each of four gaps and their total length, by control.
struct GapTable {
    starts: [[u8; 4]; 256],
    lengths: [u8; 256],
    masks: [u32; 4],
}

impl GapTable {
    fn of(code: [u8; 4]) -> GapTable {
        let sum =
            |control: usize, gaps: usize| (0..gaps).map(|at| code[control >> (2 * at) & 3]).sum();
        GapTable {
            starts: from_fn(|control| from_fn(|at| sum(control, at))),
            lengths: from_fn(|control| sum(control, 4)),
            masks: code.map(|bytes| u32::MAX.unbounded_shr(32 - 8 * u32::from(bytes))),
        }
    }
}

static TABLES: LazyLock<[GapTable; 4]> = LazyLock::new(|| CODES.map(GapTable::of));

/// Decodes into `gaps`, the inverse of [`pack_gaps`]; `None` if the bytes do not match the controls.
fn unpack_gaps(code: usize, controls: &[u8], mut bytes: &[u8], gaps: &mut Vec<u32>) -> Option<()> {
    let (code, table) = (CODES[code], &TABLES[code]);
    gaps.resize(controls.len() * 4, 0);
    for (&all, four) in controls.iter().zip(gaps.as_chunks_mut::<4>().0) {
        if let Some(window) = bytes.first_chunk::<AHEAD>() {
            let starts = &table.starts[usize::from(all)];
            for at in 0..4 {
                // At most 12; the mask tells the compiler.
                let start = usize::from(starts[at] & 15);
                let read = [
                    window[start],
                    window[start + 1],
                    window[start + 2],
                    window[start + 3],
                ];
                let mask = table.masks[usize::from(all >> (2 * at) & 3)];
                four[at] = u32::from_le_bytes(read) & mask;
            }
            bytes = &bytes[usize::from(table.lengths[usize::from(all)] & 31)..];
        } else {
            for (at, gap) in four.iter_mut().enumerate() {
                let length = code[usize::from(all >> (2 * at) & 3)].into();
                *gap = number(bytes.split_off(..length)?) as u32;
            }
        }
    }
    bytes.is_empty().then_some(())
}

/// Reads the fields before the heads: bytes of heads, number of links, bytes of gaps, and the code.
fn fields(bytes: &[u8]) -> Option<[usize; 4]> {
    let mut fields = frame::HeadReader(bytes.first_chunk::<FIXED>()?);
    let fields = from_fn(|_| fields.u32() as usize);
    (fields[3] < CODES.len()).then_some(fields)
}

/// Returns the number of bytes that [`unpack_heads`] needs, given the first [`FIXED`] bytes of a payload.
pub fn heads_end(bytes: &[u8]) -> Option<usize> {
    fields(bytes).map(|[heads, ..]| FIXED + heads)
}

/// Unpacks the heads alone into `heads`; `None` if these bytes are not the beginning of a block of `rows` rows.
pub fn unpack_heads(bytes: &[u8], rows: usize, heads: &mut Vec<RowHead>) -> Option<()> {
    let [packed, all_links, ..] = fields(bytes)?;
    let mut packed = bytes.get(FIXED..FIXED.checked_add(packed)?)?;
    if heads_sum(bytes, packed).to_le_bytes() != bytes[16..FIXED] {
        return None;
    }
    heads.clear();
    let (mut before, mut links) = (0i64, 0);
    // A head takes at least two bytes.
    if rows > packed.len() / 2 {
        return None;
    }
    heads.reserve(rows);
    for _ in 0..rows {
        let step = unzigzag(u64::try_from(take(&mut packed)?).ok()?);
        let page = before.checked_add(step)?;
        before = page;
        let rest = u64::try_from(take(&mut packed)?).ok()?;
        let head = RowHead {
            page: u32::try_from(page).ok()?,
            links: u32::try_from(rest >> 2).ok()?,
            gone: rest & 1 == 1,
            weighted: rest & 2 == 2,
        };
        if head.gone && head.links > 0 || head.weighted && head.links == 0 {
            return None;
        }
        links += head.links as usize;
        heads.push(head);
    }
    (packed.is_empty() && links == all_links).then_some(())
}

/// Unpacks a block of `count` rows; `None` if it is damaged or names a page that is not below `pages`.
pub fn unpack(bytes: &[u8], count: usize, pages: u64) -> Option<BlockRows> {
    let mut rows = BlockRows::default();
    unpack_heads(bytes, count, &mut rows.heads)?;
    let [heads, links, gaps, code] = fields(bytes)?;
    let mut rest = bytes.get(FIXED + heads..)?;
    let controls = rest.split_off(..links.div_ceil(4))?;
    let gaps = rest.split_off(..gaps)?;
    unpack_gaps(code, controls, gaps, &mut rows.targets)?;
    if rows.targets.split_off(links).iter().any(|&gap| gap > 0) {
        return None;
    }
    let limit = pages.min(PAGES_MAX);
    let mut targets = &mut rows.targets[..];
    let mut weights = 0;
    for head in &rows.heads {
        let row = targets.split_off_mut(..head.links as usize)?;
        if head.weighted {
            weights += row.len();
        }
        let last = add_up(head.page, row);
        if u64::from(head.page).max(last) >= limit {
            return None;
        }
    }
    // A weight takes at least a byte.
    if weights > rest.len() {
        return None;
    }
    for _ in 0..weights {
        rows.weights.push(u64::try_from(take(&mut rest)?).ok()?);
    }
    rest.is_empty().then_some(rows)
}

/// Converts the gaps of a page's row to targets. Returns the last one, which is the largest.
fn add_up(page: u32, row: &mut [u32]) -> u64 {
    let Some((first, rest)) = row.split_first_mut() else {
        return 0;
    };
    *first = unzigzag_32(*first).wrapping_add(page);
    let mut last = u64::from(*first);
    for gap in rest {
        last += u64::from(*gap) + 1;
        *gap = last as u32;
    }
    last
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    /// Generates pages of all magnitudes.
    fn page() -> impl Strategy<Value = u32> {
        (any::<u32>(), 0..32u32).prop_map(|(page, shift)| (page >> shift).min(PAGES_MAX as u32 - 1))
    }

    type RowParts = (u32, u8, BTreeMap<u32, u64>);

    fn made() -> impl Strategy<Value = RowParts> {
        let weight = (any::<u64>(), 0..64u32).prop_map(|(weight, shift)| weight >> shift);
        (page(), 0..3u8, btree_map(page(), weight, 0..40))
    }

    fn rows_of(made: &[RowParts], backwards: bool) -> BlockRows {
        let mut rows = BlockRows::default();
        for (page, kind, links) in made {
            let mut links: Vec<(u32, u64)> = links.iter().map(|(t, w)| (*t, *w)).collect();
            if backwards {
                links.reverse();
            }
            if *kind == 1 {
                links.clear();
            }
            let weighted = *kind == 2 && !links.is_empty();
            rows.heads.push(RowHead {
                page: *page,
                links: links.len() as u32,
                gone: *kind == 1,
                weighted,
            });
            rows.targets.extend(links.iter().map(|link| link.0));
            if weighted {
                rows.weights.extend(links.iter().map(|link| link.1));
            }
        }
        rows
    }

    proptest! {
        #[test]
        fn rows_come_back_sorted(made in vec(made(), 0..30), backwards in any::<bool>()) {
            let expected = rows_of(&made, false);
            let payload = pack(&mut rows_of(&made, backwards));
            prop_assert_eq!(unpack(&payload, made.len(), PAGES_MAX), Some(expected.clone()));
            let mut heads = Vec::new();
            let end = heads_end(&payload).unwrap();
            prop_assert_eq!(unpack_heads(&payload[..end], made.len(), &mut heads), Some(()));
            prop_assert_eq!(&heads, &expected.heads);
            // Neither with more rows, nor with fewer, nor with one page fewer than they name.
            prop_assert!(unpack(&payload, made.len() + 1, PAGES_MAX).is_none());
            if let Some(fewer) = made.len().checked_sub(1) {
                prop_assert!(unpack(&payload, fewer, PAGES_MAX).is_none());
                let largest = expected.targets.iter().copied();
                let largest = largest.chain(expected.heads.iter().map(|head| head.page)).max().unwrap();
                prop_assert!(unpack(&payload, made.len(), largest.into()).is_none());
                prop_assert!(unpack(&payload, made.len(), u64::from(largest) + 1).is_some());
            }
        }

        #[test]
        fn any_bytes_are_survived(mut bytes in vec(any::<u8>(), 0..200), heads in 0..40u32, links in 0..60u32, count in 0..20usize) {
            let _ = unpack(&bytes, count, PAGES_MAX);
            if bytes.len() < FIXED + heads as usize {
                return Ok(());
            }
            bytes[..4].copy_from_slice(&heads.to_le_bytes());
            bytes[4..8].copy_from_slice(&links.to_le_bytes());
            bytes[12..16].copy_from_slice(&(links % 4).to_le_bytes());
            let sum = heads_sum(&bytes, &bytes[FIXED..FIXED + heads as usize]);
            bytes[16..24].copy_from_slice(&sum.to_le_bytes());
            let _ = unpack(&bytes, count, PAGES_MAX);
        }
    }

    /// Computed by hand: row of page 5 to 6, 7, 300; code 0, as no other is shorter.
    #[test]
    fn a_block_is_as_specified() {
        let mut rows = rows_of(&[(5, 0, [(7, 1), (6, 1), (300, 1)].into())], false);
        let payload = pack(&mut rows);
        let heads = [10, 12];
        let gaps = [2, 0x24, 1];
        let control = 0b10_00_01;
        let fields = [2u32, 3, 3, 0].map(u32::to_le_bytes).concat();
        let sum = heads_sum(&fields, &heads);
        let expected = [&fields[..], &sum.to_le_bytes(), &heads, &[control], &gaps].concat();
        assert_eq!(payload, expected);
    }

    #[test]
    fn a_block_of_far_links_takes_three_bytes_each_and_a_quarter() {
        let links: BTreeMap<u32, u64> = (0..1000).map(|at| (at * 100_000, 1)).collect();
        let payload = pack(&mut rows_of(&[(0, 0, links)], false));
        assert!(payload.len() <= FIXED + 8 + 3250);
    }
}
