//! Encoding of the messages for ranks: see the parent module.

use super::{Keyed, groups};
use crate::codec::varint;
use crate::engine::ScoreUnits;
use crate::snapshot::{descending_key, importance_of, sorted_positions};
use crate::{Error, Result};

/// Error for an unreadable message, which a process of the same version never sends.
pub(super) fn unreadable() -> Error {
    Error::internal("a message of another shard cannot be read")
}

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

    /// Encodes an importance, in units rounded down to a multiple of 2^`shift`.
    fn rounded(self, importance: f64, shift: u32) -> u64 {
        match self.0.and_then(|units| units.of(importance)) {
            Some(units) => varint::zigzag(units >> shift),
            None => importance.to_bits(),
        }
    }

    /// Returns the importance of a number made by [`Notation::rounded`].
    fn importance(self, rounded: u64, shift: u32) -> f64 {
        match self.0 {
            Some(units) => units.importance(varint::unzigzag(rounded) << shift),
            None => f64::from_bits(rounded),
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
    pub fn of(mut message: &'m [u8]) -> Result<ValueReader<'m>> {
        Ok(ValueReader {
            notation: Notation::take(&mut message)?,
            rest: message,
            ascending: Ascending::default(),
            last: None,
        })
    }

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

pub(super) fn asked(there: &[u32]) -> Result<Vec<u8>> {
    if !there.is_sorted_by(|one, other| one < other) {
        return Err(Error::internal(
            "remote pages are not in the order of their owner",
        ));
    }
    Ok(ascending(there.iter().map(|&page| page.into())))
}

fn ascending(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    let (mut out, mut ascending) = (Vec::new(), Ascending::default());
    numbers.for_each(|number| ascending.put(&mut out, number));
    out
}

pub(super) fn pages_asked(mut asked: &[u8]) -> Result<Vec<u32>> {
    let (mut ascending, mut found) = (Ascending::default(), Vec::new());
    while !asked.is_empty() {
        let page = ascending.take(&mut asked)?;
        found.push(page.try_into().map_err(|_| unreadable())?);
    }
    Ok(found)
}

/// Encodes importances and ranks of pages. Importances in units are rounded down to multiples of 2^`shift` units.
pub(super) fn answer(
    mut importances: Vec<f64>,
    ranks: &[u64],
    (units, shift): (Option<ScoreUnits>, u32),
) -> Vec<u8> {
    let mut out = Vec::new();
    let notation = Notation::of(units, importances.iter().copied());
    notation.put(&mut out);
    out.push(shift as u8);
    for importance in &mut importances {
        let number = notation.rounded(*importance, shift);
        *importance = notation.importance(number, shift);
        put(&mut out, number);
    }
    let mut before = 0;
    for at in by_importance(&importances) {
        let rank = ranks[at];
        let further = rank.wrapping_sub(before) as i64;
        put(&mut out, varint::zigzag(further));
        before = rank;
    }
    out
}

pub(super) fn answered(mut answer: &[u8], pages: usize) -> Result<(Vec<f64>, Vec<u64>)> {
    let notation = Notation::take(&mut answer)?;
    let shift = u32::from(*answer.split_off_first().ok_or_else(unreadable)?);
    if shift >= u64::BITS {
        return Err(unreadable());
    }
    let importances = (0..pages).map(|_| Ok(notation.importance(take(&mut answer)?, shift)));
    let importances = importances.collect::<Result<Vec<f64>>>()?;
    let (mut ranks, mut rank) = (vec![0; pages], 0u64);
    for at in by_importance(&importances) {
        rank = rank.wrapping_add(varint::unzigzag(take(&mut answer)?) as u64);
        ranks[at] = rank;
    }
    Ok((importances, ranks))
}

/// Returns the positions of these importances, from the highest to the lowest.
fn by_importance(importances: &[f64]) -> impl Iterator<Item = usize> + use<> {
    let keys = importances.iter().map(|of| descending_key(*of));
    sorted_positions(&keys.collect::<Vec<_>>())
}
