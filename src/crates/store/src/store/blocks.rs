//! History rows and admissions as packed, checksummed, write-once blocks: the values of `store.redb`.
//! Their bytes are specified in `formats/store.md`, "Tables".
//!
//! A block is sealed under the table's name and the key, so that a value stored under another key is detected.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::codec::varint::{put, take, unzigzag, zigzag};
use crate::engine::{Admission, HistoryRow, NO_TIME, RowFetches};
use crate::model::{Digest, Time};

/// Maximum length of a block in bytes, seal included. A value of 4,096 bytes would take two pages.
pub const BLOCK_BYTES: usize = 4080;
/// Maximum length of an entry in bytes: 128-bit varints take 19 bytes, 64-bit ones 10.
const ENTRY_MAX: usize = 11 + 10 + 10 + 19 + 10 + 19 + 1 + 19 + 1 + 10 + FETCHES_MAX;
/// Maximum length of the observations of fetches within an entry, in bytes.
const FETCHES_MAX: usize = 5 + 10 + 4 + 4 + 5 + 5 + 10;

const FETCHED: u8 = 1;
const VISITED: u8 = 2;
/// Flag: the row has fields that most rows lack.
const LONG: u8 = 4;
/// Both flags: the row has observations of fetches, and a byte of the following flags comes first.
const RECORDED: u8 = VISITED | LONG;
/// Flag: one visit.
const T_VISITED: u8 = 1;
/// Flag: the row has the fields of [`LONG`].
const T_LONG: u8 = 2;
/// Flag: the page was reached.
const T_REACHED: u8 = 4;
/// Flag: one observation, at the last fetch; its digest follows.
const T_LOOK: u8 = 8;
/// Flag: several observations; first and last digest, comparisons, changes, and first time less last fetch follow.
const T_LOOKS: u8 = 16;
/// Flag: failed fetches; their number and the time of the last less that of the last fetch follow.
const T_FAILED: u8 = 32;
/// Flag: cash recycled since the last visit, where it differs from the default; the amount follows.
const T_RECYCLED: u8 = 64;
const T_ALL: u8 = 127;

/// Packs entries into blocks that are not sealed yet: their first 8 bytes are reserved for the seal.
pub struct Packer<T: Entry> {
    block: Vec<u8>,
    before: T,
}

pub trait Entry: Copy + Default {
    fn put(&self, before: &Self, out: &mut Vec<u8>);
    /// Decodes the next entry in place, as entries are large, into `self`, which must have its default value.
    fn take(&mut self, before: &Self, from: &mut &[u8]) -> Option<()>;
}

impl<T: Entry> Packer<T> {
    pub fn new() -> Packer<T> {
        Packer {
            block: vec![0; 8],
            before: T::default(),
        }
    }

    /// Adds an entry. Returns the block if it is full.
    pub fn add(&mut self, entry: T) -> Option<Vec<u8>> {
        entry.put(&self.before, &mut self.block);
        self.before = entry;
        (self.block.len() + ENTRY_MAX > BLOCK_BYTES)
            .then(|| self.finish())
            .flatten()
    }

    /// Returns the open block, if it is not empty.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        if self.block.len() == 8 {
            return None;
        }
        self.before = T::default();
        Some(std::mem::replace(&mut self.block, vec![0; 8]))
    }
}

/// Returns the checksum of a value that belongs to a table and to the numbers of its key.
fn seal_of(table: &str, key: &[u64], content: &[u8]) -> u64 {
    let mut seed = Xxh3::new();
    seed.update(table.as_bytes());
    key.iter().for_each(|part| seed.update(&part.to_le_bytes()));
    xxh3_64_with_seed(content, seed.digest())
}

/// Length of a seal in bytes.
pub const SEAL: usize = 8;

/// Writes the seal of `value[8..]` into `value[..8]`.
pub fn seal(table: &str, key: &[u64], mut value: Vec<u8>) -> Vec<u8> {
    let sum = seal_of(table, key, &value[SEAL..]);
    value[..SEAL].copy_from_slice(&sum.to_le_bytes());
    value
}

/// Returns the content of a sealed value, or `None` if it is damaged or belongs to another key.
pub fn unseal<'v>(table: &str, key: &[u64], value: &'v [u8]) -> Option<&'v [u8]> {
    let (sum, content) = value.split_first_chunk::<SEAL>()?;
    (u64::from_le_bytes(*sum) == seal_of(table, key, content)).then_some(content)
}

/// Appends all entries of a block's content; `None` if it is invalid.
pub fn unpack<T: Entry>(mut rest: &[u8], entries: &mut Vec<T>) -> Option<()> {
    unpack_some(&mut rest, usize::MAX, T::default(), entries)
}

/// Appends at most `most` entries of the rest of a block's content, which follow on `before`, and advances `rest`.
pub fn unpack_some<T: Entry>(
    rest: &mut &[u8],
    most: usize,
    before: T,
    entries: &mut Vec<T>,
) -> Option<()> {
    let first = entries.len();
    while !rest.is_empty() && entries.len() - first < most {
        entries.push(T::default());
        let (next, earlier) = entries[first..].split_last_mut()?;
        next.take(earlier.last().unwrap_or(&before), rest)?;
    }
    Some(())
}

fn take_u64(from: &mut &[u8]) -> Option<u64> {
    u64::try_from(take(from)?).ok()
}

impl Entry for HistoryRow {
    fn put(&self, before: &HistoryRow, out: &mut Vec<u8>) {
        let is_long = self.visits > 1 || self.clock != 0 || self.folded;
        let recorded = fetch_flags(self);
        let flags = flags(&[
            (FETCHED, self.last_fetch.is_some()),
            (VISITED, recorded > 0 || self.visits == 1 && !is_long),
            (LONG, recorded > 0 || is_long),
        ]);
        let further = u128::from(self.page - before.page);
        put(out, further << 3 | u128::from(flags));
        if recorded > 0 {
            let visited = self.visits == 1 && !is_long;
            out.push(recorded | self::flags(&[(T_VISITED, visited), (T_LONG, is_long)]));
        }
        if let Some(fetched) = self.last_fetch {
            let since = fetched.wrapping_sub(before.last_fetch.unwrap_or(0));
            put(out, u128::from(zigzag(since)));
        }
        if is_long {
            put(out, u128::from(self.visits));
            put(out, self.clock);
            put(out, u128::from(self.pages));
            put(out, self.span);
            out.push(self.folded.into());
        }
        put(out, self.cash);
        put_fetches(self, recorded, out);
        if recorded & T_RECYCLED != 0 {
            put(out, u128::from(self.recycled));
        }
    }

    #[inline]
    fn take(&mut self, before: &HistoryRow, from: &mut &[u8]) -> Option<()> {
        let head = take(from)?;
        self.page = before.page.checked_add(u64::try_from(head >> 3).ok()?)?;
        let flags = head as u8 & 7;
        let recorded = match flags & RECORDED {
            RECORDED => Some(byte(from)?).filter(|recorded| recorded & !T_ALL == 0)?,
            VISITED => T_VISITED,
            LONG => T_LONG,
            _ => 0,
        };
        self.visits = u64::from(recorded & T_VISITED != 0);
        if flags & FETCHED != 0 {
            let since = unzigzag(take_u64(from)?);
            self.last_fetch = Some(before.last_fetch.unwrap_or(0).wrapping_add(since));
        }
        if recorded & T_LONG != 0 {
            self.visits = take_u64(from)?;
            self.clock = take(from)?;
            self.pages = take_u64(from)?;
            self.span = take(from)?;
            self.folded = byte(from)? != 0;
        }
        self.cash = take(from)?;
        self.fetches = take_fetches(self, recorded, from)?;
        self.recycled = match recorded & T_RECYCLED {
            0 => usual_recycled(self),
            _ => take_u64(from)?,
        };
        Some(())
    }
}

fn flags(of: &[(u8, bool)]) -> u8 {
    let set = of.iter().filter(|(_, set)| *set);
    set.fold(0, |flags, (flag, _)| flags | flag)
}

fn byte(from: &mut &[u8]) -> Option<u8> {
    from.split_off_first().copied()
}

/// Returns the flags of the observations to be stored for a row; 0 if there are none.
fn fetch_flags(row: &HistoryRow) -> u8 {
    let recorded = &row.fetches;
    let looks = (
        recorded.first,
        recorded.last,
        recorded.compared,
        recorded.changed,
        recorded.since,
    );
    let looked = looks != (Digest::NONE, Digest::NONE, 0, 0, NO_TIME);
    let once = recorded.compared == 0
        && recorded.changed == 0
        && recorded.first == recorded.last
        && recorded.since == row.last_fetch.unwrap_or(NO_TIME);
    flags(&[
        (T_REACHED, recorded.reached),
        (T_LOOK, looked && once),
        (T_LOOKS, looked && !once),
        (
            T_FAILED,
            recorded.failed > 0 || recorded.last_failed != NO_TIME,
        ),
        (T_RECYCLED, row.recycled != usual_recycled(row)),
    ])
}

/// Returns the recycled cash of a row that does not store it: without visits, all of the cash was recycled.
fn usual_recycled(row: &HistoryRow) -> u64 {
    match row.visits {
        0 if !row.folded => u64::try_from(row.cash).unwrap_or(u64::MAX),
        _ => 0,
    }
}

/// Encodes a time relative to the row's last fetch.
fn put_time(row: &HistoryRow, time: Time, out: &mut Vec<u8>) {
    let since = time.wrapping_sub(row.last_fetch.unwrap_or(0));
    put(out, u128::from(zigzag(since)));
}

fn take_time(row: &HistoryRow, from: &mut &[u8]) -> Option<Time> {
    let since = unzigzag(take_u64(from)?);
    Some(row.last_fetch.unwrap_or(0).wrapping_add(since))
}

fn put_fetches(row: &HistoryRow, recorded: u8, out: &mut Vec<u8>) {
    let fetches = &row.fetches;
    if recorded & (T_LOOK | T_LOOKS) != 0 {
        out.extend_from_slice(&fetches.first.bits().to_le_bytes());
    }
    if recorded & T_LOOKS != 0 {
        out.extend_from_slice(&fetches.last.bits().to_le_bytes());
        put(out, u128::from(fetches.compared));
        put(out, u128::from(fetches.changed));
        put_time(row, fetches.since, out);
    }
    if recorded & T_FAILED != 0 {
        put(out, u128::from(fetches.failed));
        put_time(row, fetches.last_failed, out);
    }
}

fn take_fetches(row: &HistoryRow, recorded: u8, from: &mut &[u8]) -> Option<RowFetches> {
    let short = |from: &mut &[u8]| u32::try_from(take(from)?).ok();
    let digest = |from: &mut &[u8]| {
        let (bits, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(Digest::from_bits(u32::from_le_bytes(*bits)))
    };
    let mut fetches = RowFetches {
        reached: recorded & T_REACHED != 0,
        ..RowFetches::default()
    };
    if recorded & (T_LOOK | T_LOOKS) != 0 {
        fetches.first = digest(from)?;
        fetches.last = fetches.first;
        fetches.since = row.last_fetch.unwrap_or(NO_TIME);
    }
    if recorded & T_LOOKS != 0 {
        fetches.last = digest(from)?;
        fetches.compared = short(from)?;
        fetches.changed = short(from)?;
        fetches.since = take_time(row, from)?;
    }
    if recorded & T_FAILED != 0 {
        fetches.failed = short(from)?;
        fetches.last_failed = take_time(row, from)?;
    }
    Some(fetches)
}

impl Entry for Admission {
    fn put(&self, before: &Admission, out: &mut Vec<u8>) {
        put(out, u128::from(self.first - before.first));
        put(out, u128::from(self.paid.wrapping_sub(before.paid)));
        put(out, self.clock);
    }

    fn take(&mut self, before: &Admission, from: &mut &[u8]) -> Option<()> {
        self.first = before.first.checked_add(take_u64(from)?)?;
        self.paid = before.paid.wrapping_add(take_u64(from)?);
        self.clock = take(from)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &[u64] = &[7, 3];

    fn row() -> impl Strategy<Value = HistoryRow> {
        (
            0u64..1 << 34,
            any::<u128>(),
            prop_oneof![0u64..40, any::<u64>()],
            any::<Option<i64>>(),
            any::<Option<(u128, u64, u128)>>(),
            any::<bool>(),
            (prop_oneof![Just(0u64), any::<u64>()], fetches()),
        )
            .prop_map(
                |(page, cash, visits, last_fetch, at, folded, (recycled, fetches))| {
                    let at = at.filter(|(clock, ..)| *clock != 0);
                    let (clock, pages, span) = at.unwrap_or_default();
                    HistoryRow {
                        page,
                        cash,
                        visits,
                        last_fetch,
                        clock,
                        pages,
                        span,
                        folded,
                        recycled,
                        fetches: fetches.unwrap_or(RowFetches {
                            reached: true,
                            since: last_fetch.unwrap_or(NO_TIME),
                            first: Digest::GONE,
                            last: Digest::GONE,
                            ..RowFetches::default()
                        }),
                    }
                },
            )
    }

    /// Generates any observations; `None`: one, at the last fetch.
    fn fetches() -> impl Strategy<Value = Option<RowFetches>> {
        let number = || prop_oneof![Just(0u32), any::<u32>()];
        let time = || prop_oneof![Just(NO_TIME), any::<i64>()];
        let digest = || number().prop_map(Digest::from_bits);
        let looks = (digest(), digest(), number(), number(), time());
        let any = (any::<bool>(), looks, number(), time()).prop_map(
            |(reached, (first, last, compared, changed, since), failed, last_failed)| {
                Some(RowFetches {
                    failed,
                    last_failed,
                    reached,
                    first,
                    last,
                    compared,
                    changed,
                    since,
                })
            },
        );
        prop_oneof![Just(Some(RowFetches::default())), Just(None), any]
    }

    proptest! {
        #[test]
        fn rows_come_back(mut rows in proptest::collection::vec(row(), 0..400)) {
            rows.sort_by_key(|row| row.page);
            let mut packer = Packer::new();
            let mut blocks: Vec<Vec<u8>> = rows.iter().filter_map(|row| packer.add(*row)).collect();
            blocks.extend(packer.finish());
            let mut back = Vec::new();
            for block in &blocks {
                prop_assert!(block.len() <= BLOCK_BYTES);
                let block = seal("history", KEY, block.clone());
                let content = unseal("history", KEY, &block).unwrap();
                unpack::<HistoryRow>(content, &mut back).unwrap();
            }
            prop_assert_eq!(back, rows);
        }

        #[test]
        fn a_flipped_bit_is_noticed(rows in proptest::collection::vec(row(), 1..20), at in any::<proptest::sample::Index>(), bit in 0u8..8) {
            let mut packer = Packer::new();
            let mut before = 0;
            for row in rows {
                before += row.page;
                packer.add(HistoryRow { page: before, ..row });
            }
            let mut block = seal("history", KEY, packer.finish().unwrap());
            prop_assert!(unseal("history", KEY, &block).is_some());
            // Not valid under another key, in another table, or with a flipped bit.
            prop_assert!(unseal("history", &[7, 4], &block).is_none());
            prop_assert!(unseal("elsewhere", KEY, &block).is_none());
            let at = at.index(block.len());
            block[at] ^= 1u8 << bit;
            prop_assert!(unseal("history", KEY, &block).is_none());
        }
    }
}
