//! Encoding of the messages for ranks: see the parent module.

use super::{Keyed, groups};
use crate::codec::varint;
use crate::engine::{CHUNK_PAGES, ScoreUnits};
use crate::snapshot::{column, descending_key, importance_of};
use crate::threads::sort_by_key;
use crate::{Error, Result};

/// Level of compression of messages by zstd.
const LEVEL: i32 = 1;
/// Maximum length of a number in a message, in bytes.
const NUMBER_BYTES: usize = 10;

/// Error for an unreadable message, which a process of the same version never sends.
pub(super) fn unreadable() -> Error {
    Error::internal("a message of another shard cannot be read")
}

/// Decodes a number from the front.
pub(super) fn take(from: &mut &[u8]) -> Result<u64> {
    let number = varint::take(from).and_then(|number| number.try_into().ok());
    number.ok_or_else(unreadable)
}

pub(super) fn put(out: &mut Vec<u8>, number: u64) {
    varint::put(out, number.into());
}

/// Delta coding of strictly ascending numbers.
#[derive(Default)]
struct Ascending {
    /// Smallest possible next number.
    next: u128,
}

impl Ascending {
    fn put(&mut self, out: &mut Vec<u8>, number: u64) {
        let following = u128::from(number) + 1;
        varint::put(out, following - self.next);
        self.next = following;
    }

    fn take(&mut self, from: &mut &[u8]) -> Result<u64> {
        let distance = varint::take(from).filter(|distance| *distance > 0);
        let following = distance.and_then(|distance| self.next.checked_add(distance));
        self.next = following.ok_or_else(unreadable)?;
        u64::try_from(self.next - 1).map_err(|_| unreadable())
    }
}

/// Compresses numbers at the end of a message.
pub(super) fn compress(numbers: &[u8], out: &mut Vec<u8>) -> Result<()> {
    put(out, numbers.len() as u64);
    let packed = zstd::bulk::compress(numbers, LEVEL);
    let packed = packed.map_err(|error| Error::internal(format!("a message: {error}")))?;
    out.extend_from_slice(&packed);
    Ok(())
}

/// Decompresses, the inverse of [`compress`]; refuses more bytes than `numbers` can take.
pub(super) fn decompress(mut from: &[u8], numbers: usize) -> Result<Vec<u8>> {
    let len = take(&mut from)? as usize;
    if len > numbers.saturating_mul(NUMBER_BYTES) {
        return Err(unreadable());
    }
    let bytes = zstd::bulk::decompress(from, len).map_err(|_| unreadable())?;
    (bytes.len() == len).then_some(bytes).ok_or_else(unreadable)
}

/// Encoding of importances in a message.
#[derive(Clone, Copy)]
struct Notation(Option<ScoreUnits>);

impl Notation {
    /// Chooses the shortest encoding that represents all of these importances.
    fn of(units: Option<ScoreUnits>, mut importances: impl Iterator<Item = f64>) -> Notation {
        Notation(units.filter(|units| importances.all(|of| units.of(of).is_some())))
    }

    fn put(self, out: &mut Vec<u8>) {
        out.push(u8::from(self.0.is_some()));
        if let Some(units) = self.0 {
            out.extend(units.offset.to_le_bytes());
            out.extend(units.sum.to_le_bytes());
        }
    }

    fn take(from: &mut &[u8]) -> Result<Notation> {
        let has_units = from.split_off_first().ok_or_else(unreadable)?;
        if *has_units == 0 {
            return Ok(Notation(None));
        }
        let mut number = || {
            let bytes = from.split_off(..size_of::<f64>()).ok_or_else(unreadable)?;
            let bytes = bytes.try_into().map_err(|_| unreadable())?;
            Ok::<f64, Error>(f64::from_le_bytes(bytes))
        };
        Ok(Notation(Some(ScoreUnits {
            offset: number()?,
            sum: number()?,
        })))
    }

    /// Encodes an importance as a number that decreases with importance.
    fn number(self, importance: f64) -> u64 {
        match self.0.and_then(|units| units.of(importance)) {
            Some(units) => !(units as u64 ^ 1 << 63),
            None => descending_key(importance),
        }
    }

    /// Returns the sort key of an encoded importance.
    fn key(self, number: u64) -> u64 {
        match self.0 {
            Some(units) => descending_key(units.importance((!number ^ 1 << 63) as i64)),
            None => number,
        }
    }

    /// Encodes an importance exactly, as a number that is small for a small one.
    fn exact(self, importance: f64) -> u64 {
        match self.0.and_then(|units| units.of(importance)) {
            Some(units) => varint::zigzag(units),
            None => importance.to_bits(),
        }
    }

    fn importance(self, exact: u64) -> f64 {
        match self.0 {
            Some(units) => units.importance(varint::unzigzag(exact)),
            None => f64::from_bits(exact),
        }
    }
}

/// Reader of the values of one shard in a range, each with its number of repetitions.
pub(super) struct ValueReader<'m> {
    notation: Notation,
    rest: &'m [u8],
    ascending: Ascending,
    last: Option<u64>,
}

impl<'m> ValueReader<'m> {
    /// Begins to read a message.
    pub fn of(mut message: &'m [u8]) -> Result<ValueReader<'m>> {
        Ok(ValueReader {
            notation: Notation::take(&mut message)?,
            rest: message,
            ascending: Ascending::default(),
            last: None,
        })
    }

    /// Encodes a message.
    pub fn message(sorted: &[Keyed], units: Option<ScoreUnits>) -> Vec<u8> {
        let (mut out, mut ascending) = (Vec::new(), Ascending::default());
        let importance = |group: &[Keyed]| importance_of(group[0].0);
        let notation = Notation::of(units, groups(sorted).map(importance));
        notation.put(&mut out);
        for group in groups(sorted) {
            ascending.put(&mut out, notation.number(importance(group)));
            if let repeats @ 1.. = group.len() as u64 - 1 {
                put(&mut out, 0);
                put(&mut out, repeats);
            }
        }
        out
    }

    /// Returns the next value as a sort key, with its number of repetitions.
    pub fn next(&mut self) -> Result<Option<(u64, u64)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let value = self.notation.key(self.ascending.take(&mut self.rest)?);
        if self.last.replace(value).is_some_and(|last| last >= value) {
            return Err(unreadable());
        }
        let mut count = 1;
        if let Some(rest) = self.rest.strip_prefix(&[0]) {
            self.rest = rest;
            count += u64::from(u32::try_from(take(&mut self.rest)?).map_err(|_| unreadable())?);
        }
        Ok(Some((value, count)))
    }
}

/// Encodes a request for these pages.
pub(super) fn asked(there: &[u32]) -> Result<Vec<u8>> {
    let (mut numbers, mut out, mut ascending) = (Vec::new(), Vec::new(), Ascending::default());
    if !there.is_sorted_by(|one, other| one < other) {
        return Err(Error::internal(
            "remote pages are not in the order of their owner",
        ));
    }
    for &page in there {
        ascending.put(&mut numbers, page.into());
    }
    compress(&numbers, &mut out)?;
    Ok(out)
}

/// Decodes which of `pages` pages another shard asks for.
pub(super) fn pages_asked(asked: &[u8], pages: u64) -> Result<Vec<u32>> {
    let numbers = decompress(asked, pages as usize)?;
    let (mut rest, mut ascending, mut found) = (&numbers[..], Ascending::default(), Vec::new());
    while !rest.is_empty() {
        let page = ascending.take(&mut rest)?;
        found.push(page.try_into().map_err(|_| unreadable())?);
    }
    Ok(found)
}

/// Encodes the importance and rank of each requested page.
pub(super) fn answer(
    importances: &[f64],
    mut ranks: Vec<u64>,
    units: Option<ScoreUnits>,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let notation = Notation::of(units, importances.iter().copied());
    notation.put(&mut out);
    for block in importances.chunks(CHUNK_PAGES as usize) {
        let block: Vec<u64> = block.iter().map(|of| notation.exact(*of)).collect();
        let packed = column::pack(&block);
        let packed = packed.map_err(|error| Error::internal(format!("a message: {error}")))?;
        put(&mut out, packed.len() as u64);
        out.extend(packed);
    }
    ranks.sort_unstable();
    ranks.dedup();
    let (mut numbers, mut ascending) = (Vec::new(), Ascending::default());
    for rank in ranks {
        ascending.put(&mut numbers, rank);
    }
    compress(&numbers, &mut out)?;
    Ok(out)
}

/// Decodes the importances and ranks of the `pages` requested pages.
pub(super) fn answered(answer: &[u8], pages: usize) -> Result<(Vec<f64>, Vec<u64>)> {
    let mut rest = answer;
    let notation = Notation::take(&mut rest)?;
    let mut importances: Vec<f64> = Vec::with_capacity(pages);
    while importances.len() < pages {
        let len = take(&mut rest)? as usize;
        let packed = rest.split_off(..len).ok_or_else(unreadable)?;
        let count = (pages - importances.len()).min(CHUNK_PAGES as usize);
        let block = column::unpack(packed, count).ok_or_else(unreadable)?;
        importances.extend(block.into_iter().map(|exact| notation.importance(exact)));
    }
    let keys = importances.iter().map(|of| descending_key(*of));
    let mut sorted: Vec<Keyed> = keys.zip(0..).collect();
    sort_by_key(&mut sorted, |of| *of);
    let numbers = decompress(rest, pages)?;
    let (mut rest, mut ascending, mut ranks) = (&numbers[..], Ascending::default(), vec![0; pages]);
    for group in groups(&sorted) {
        let rank = ascending.take(&mut rest)?;
        for &(_, at) in group {
            ranks[at as usize] = rank;
        }
    }
    Ok((importances, ranks))
}
