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

/// Encoding of importances in a message as numbers that rise with importance. All shards have the same units.
#[derive(Clone, Copy)]
struct Notation(Option<ScoreUnits>);

impl Notation {
    /// Encodes importances: in units if all are whole multiples of them, else as the bits of `f64`.
    fn encode(units: Option<ScoreUnits>, importances: &[f64]) -> (Notation, Vec<i64>) {
        // Without importances the notation is not needed.
        let units = units.filter(|_| !importances.is_empty());
        let in_units = units.and_then(|units| {
            let numbers = importances.iter().map(|&of| units.of(of));
            numbers.collect::<Option<Vec<i64>>>()
        });
        match in_units {
            Some(numbers) => (Notation(units), numbers),
            None => {
                let bits = importances.iter().map(|of| of.to_bits() as i64);
                (Notation(None), bits.collect())
            }
        }
    }

    fn importance(self, number: i64) -> f64 {
        match self.0 {
            Some(units) => units.importance(number),
            None => f64::from_bits(number as u64),
        }
    }

    fn put(self, out: &mut Vec<u8>) {
        out.push(u8::from(self.0.is_some()));
    }

    fn take(from: &mut &[u8], units: Option<ScoreUnits>) -> Result<Notation> {
        match from.split_off_first() {
            Some(0) => Ok(Notation(None)),
            Some(1) if units.is_some() => Ok(Notation(units)),
            _ => Err(unreadable()),
        }
    }
}

/// Returns a key that falls as the number rises. It is its own inverse, except for the type.
fn falling(number: i64) -> u64 {
    !(number as u64 ^ 1 << 63)
}

pub(super) fn put_values(sorted: &[Keyed], units: Option<ScoreUnits>) -> Vec<u8> {
    let importances = groups(sorted).map(|group| importance_of(group[0].0));
    let (notation, numbers) = Notation::encode(units, &importances.collect::<Vec<_>>());
    let (mut out, mut ascending) = (Vec::new(), Ascending::default());
    notation.put(&mut out);
    for (group, number) in groups(sorted).zip(numbers) {
        ascending.put(&mut out, falling(number));
        if let repeats @ 1.. = group.len() as u64 - 1 {
            put(&mut out, 0);
            put(&mut out, repeats);
        }
    }
    out
}

/// Decodes distinct values as sort keys, ascending, each with the number of its pages.
pub(super) fn values_of(mut message: &[u8], units: Option<ScoreUnits>) -> Result<Vec<(u64, u64)>> {
    let notation = Notation::take(&mut message, units)?;
    let mut ascending = Ascending::default();
    let mut values: Vec<(u64, u64)> = Vec::new();
    while !message.is_empty() {
        let number = falling(ascending.take(&mut message)? as i64) as i64;
        let value = descending_key(notation.importance(number));
        if values.last().is_some_and(|last| last.0 >= value) {
            return Err(unreadable());
        }
        let mut count = 1;
        if let Some(rest) = message.strip_prefix(&[0]) {
            message = rest;
            count += u64::from(u32::try_from(take(&mut message)?).map_err(|_| unreadable())?);
        }
        values.push((value, count));
    }
    Ok(values)
}

pub(super) fn asked(there: &[u32]) -> Result<Vec<u8>> {
    if !there.is_sorted_by(|one, other| one < other) {
        return Err(Error::internal(
            "remote pages are not in the order of their owner",
        ));
    }
    let (mut out, mut ascending) = (Vec::new(), Ascending::default());
    for &page in there {
        ascending.put(&mut out, page.into());
    }
    Ok(out)
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
    importances: Vec<f64>,
    ranks: Vec<u64>,
    (units, shift): (Option<ScoreUnits>, u32),
) -> Vec<u8> {
    let (notation, mut numbers) = Notation::encode(units, &importances);
    let mut out = Vec::new();
    notation.put(&mut out);
    out.push(shift as u8);
    for number in &mut numbers {
        if notation.0.is_some() {
            *number >>= shift;
        }
        put(&mut out, varint::zigzag(*number));
    }
    let mut before = 0;
    for at in by_importance(&numbers) {
        let further = ranks[at].wrapping_sub(before) as i64;
        put(&mut out, varint::zigzag(further));
        before = ranks[at];
    }
    out
}

pub(super) fn answered(
    mut answer: &[u8],
    pages: usize,
    units: Option<ScoreUnits>,
) -> Result<(Vec<f64>, Vec<u64>)> {
    let notation = Notation::take(&mut answer, units)?;
    let shift = u32::from(*answer.split_off_first().ok_or_else(unreadable)?);
    if shift >= u64::BITS {
        return Err(unreadable());
    }
    let numbers = (0..pages).map(|_| Ok(varint::unzigzag(take(&mut answer)?)));
    let numbers = numbers.collect::<Result<Vec<i64>>>()?;
    let (mut ranks, mut rank) = (vec![0; pages], 0u64);
    for at in by_importance(&numbers) {
        rank = rank.wrapping_add(varint::unzigzag(take(&mut answer)?) as u64);
        ranks[at] = rank;
    }
    let shift = notation.0.map_or(0, |_| shift);
    let importances = numbers
        .into_iter()
        .map(|number| notation.importance(number << shift));
    Ok((importances.collect(), ranks))
}

/// Returns the positions of importances that these numbers encode, from the highest to the lowest.
fn by_importance(numbers: &[i64]) -> impl Iterator<Item = usize> + use<> {
    let keys: Vec<u64> = numbers.iter().map(|&number| falling(number)).collect();
    sorted_positions(&keys)
}
