//! Numbers of like size: all first bytes, then all second bytes and so on, each of these *planes* compressed if that makes it
//! smaller. High bytes are much alike, and low ones are not. Numbers that come often are taken out, and named by a byte.
//!
//! ```text
//! count varint | common numbers, how many u8, and if there are some: their planes | for each number which it is, from 1 on, or
//!     0: none (plane) | planes of the others
//! planes: how many u8 | each plane
//! plane: length of what follows varint, 0: a byte for each number as it is | zstd of that
//! ```
//! Planes of zeros above the last one are left out.

use std::cell::RefCell;
use std::{io, mem};

use zstd::bulk::{Compressor, Decompressor};

use super::varint;
use crate::{Error, Result};

const LEVEL: i32 = 1;

thread_local! {
    /// To begin is dear, and there are many small planes.
    static ZSTD: RefCell<Option<(Compressor<'static>, Decompressor<'static>)>> = const { RefCell::new(None) };
}

fn with_zstd<T>(
    work: impl FnOnce(&mut Compressor<'static>, &mut Decompressor<'static>) -> io::Result<T>,
) -> io::Result<T> {
    ZSTD.with_borrow_mut(|zstd| {
        let (compressor, decompressor) = match zstd {
            Some(zstd) => zstd,
            None => zstd.insert((Compressor::new(LEVEL)?, Decompressor::new()?)),
        };
        work(compressor, decompressor)
    })
}

/// So many values are looked at for any that is there twice, and if there is one, so many for those that come often.
const SAMPLES: [usize; 2] = [1 << 7, 1 << 10];
/// A value comes often if it is there so many times.
const OFTEN: usize = 3;

/// Appends values.
///
/// # Errors
/// Those of compressing.
pub(crate) fn put(out: &mut Vec<u8>, values: &[u64]) -> Result<()> {
    try_put(out, values).map_err(|error| Error::internal(error.to_string()))
}

/// Appends ascending numbers, none of which comes twice, as how many come between each and the one before.
///
/// # Errors
/// As of [`put`].
pub(crate) fn put_ascending(out: &mut Vec<u8>, numbers: impl Iterator<Item = u64>) -> Result<()> {
    let mut next = 0;
    let gap = |number| number - mem::replace(&mut next, number + 1);
    put(out, &numbers.map(gap).collect::<Vec<u64>>())
}

/// Takes what [`put_ascending`] appended: so many at most, all below `end`.
pub(crate) fn take_ascending(from: &mut &[u8], most: usize, end: u32) -> Option<Vec<u32>> {
    let mut next = 0u64;
    let number = |gap: u64| {
        let number = next
            .checked_add(gap)
            .filter(|number| *number < end.into())?;
        next = number + 1;
        Some(number as u32)
    };
    take(from, most)?.into_iter().map(number).collect()
}

/// Appends numbers, most of which come soon behind the one before, as how much they are more than that, zigzag.
///
/// # Errors
/// As of [`put`].
pub(crate) fn put_near(out: &mut Vec<u8>, numbers: &[u32]) -> Result<()> {
    let mut next = 0;
    let change = |&number: &u32| {
        let number = i64::from(number);
        varint::zigzag(number - mem::replace(&mut next, number + 1))
    };
    put(out, &numbers.iter().map(change).collect::<Vec<u64>>())
}

/// What [`put_near`] made, and nothing else.
pub(crate) fn all_near(mut bytes: &[u8]) -> Option<Vec<u32>> {
    let mut next = 0i64;
    let number = |change: u64| {
        let number = u32::try_from(next.checked_add(varint::unzigzag(change))?).ok()?;
        next = i64::from(number) + 1;
        Some(number)
    };
    let changes = take(&mut bytes, u32::MAX as usize).filter(|_| bytes.is_empty())?;
    changes.into_iter().map(number).collect()
}

fn try_put(out: &mut Vec<u8>, values: &[u64]) -> io::Result<()> {
    varint::put(out, values.len() as u128);
    let common = common(values);
    out.push(common.len() as u8);
    if common.is_empty() {
        return put_planes(out, values);
    }
    put_planes(out, &common)?;
    let which = |value: &u64| common.binary_search(value).map_or(0, |at| at as u8 + 1);
    let which: Vec<u8> = values.iter().map(which).collect();
    put_plane(out, &which)?;
    let others = values.iter().zip(&which).filter(|(_, which)| **which == 0);
    put_planes(out, &others.map(|(value, _)| *value).collect::<Vec<u64>>())
}

/// Values that come often, ascending; none where all take a byte.
fn common(values: &[u64]) -> Vec<u64> {
    let [few, many] = SAMPLES;
    let few = sample(values, few);
    let is_twice = || few.windows(2).any(|pair| pair[0] == pair[1]);
    if few.last().is_none_or(|last| *last <= u8::MAX.into()) || !is_twice() {
        return Vec::new();
    }
    let many = sample(values, many);
    let runs = many.chunk_by(|one, other| one == other);
    let often = runs.filter(|run| run.len() >= OFTEN);
    often.map(|run| run[0]).take(u8::MAX.into()).collect()
}

/// So many values at most, in ascending order.
fn sample(values: &[u64], most: usize) -> Vec<u64> {
    let step = values.len().div_ceil(most).max(1);
    let mut sample: Vec<u64> = values.iter().copied().step_by(step).collect();
    sample.sort_unstable();
    sample
}

fn put_planes(out: &mut Vec<u8>, values: &[u64]) -> io::Result<()> {
    let used = values.iter().fold(0, |used, value| used | value);
    let planes = (u64::BITS - used.leading_zeros()).div_ceil(8);
    out.push(planes as u8);
    let mut bytes = Vec::with_capacity(values.len());
    for plane in 0..planes {
        bytes.clear();
        bytes.extend(values.iter().map(|value| (value >> (8 * plane)) as u8));
        put_plane(out, &bytes)?;
    }
    Ok(())
}

fn put_plane(out: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
    let packed = with_zstd(|zstd, _| zstd.compress(bytes))?;
    let (len, bytes) = if packed.len() < bytes.len() {
        (packed.len(), &*packed)
    } else {
        (0, bytes)
    };
    varint::put(out, len as u128);
    out.extend_from_slice(bytes);
    Ok(())
}

/// Takes values from the front, so many at most; `None`: it is something else.
pub(crate) fn take(from: &mut &[u8], most: usize) -> Option<Vec<u64>> {
    let count = usize::try_from(varint::take(from)?).ok()?;
    let (&common, rest) = from.split_first()?;
    *from = rest;
    if count > most {
        return None;
    }
    if common == 0 {
        return take_planes(from, count);
    }
    let common = take_planes(from, common.into())?;
    let which = take_plane(from, count)?;
    let others = which.iter().filter(|which| **which == 0).count();
    let mut others = take_planes(from, others)?.into_iter();
    let value = |which: u8| match which.checked_sub(1) {
        None => others.next(),
        Some(at) => common.get(usize::from(at)).copied(),
    };
    which.into_iter().map(value).collect()
}

fn take_planes(from: &mut &[u8], count: usize) -> Option<Vec<u64>> {
    let (&planes, rest) = from.split_first()?;
    *from = rest;
    if planes > 8 {
        return None;
    }
    let mut values = vec![0; count];
    for plane in 0..planes {
        let bytes = take_plane(from, count)?;
        for (value, byte) in values.iter_mut().zip(bytes) {
            *value |= u64::from(byte) << (8 * plane);
        }
    }
    Some(values)
}

fn take_plane(from: &mut &[u8], count: usize) -> Option<Vec<u8>> {
    let len = usize::try_from(varint::take(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(if len == 0 { count } else { len })?;
    *from = rest;
    let bytes = if len == 0 {
        bytes.to_vec()
    } else {
        with_zstd(|_, zstd| zstd.decompress(bytes, count)).ok()?
    };
    (bytes.len() == count).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64;

    proptest! {
        #[test]
        fn values_come_back(
            values in proptest::collection::vec(any::<u64>(), 0..2_000),
            bits in 0u32..65,
            often in 1u64..50,
            after in any::<u8>(),
        ) {
            let value = |value: u64| match value % often {
                0 => value.checked_shr(64 - bits).unwrap_or(0),
                one => one << bits.min(58),
            };
            let values: Vec<u64> = values.into_iter().map(value).collect();
            let mut bytes = Vec::new();
            put(&mut bytes, &values).unwrap();
            bytes.push(after);
            let mut rest = &bytes[..];
            prop_assert_eq!(take(&mut rest, values.len()), Some(values.clone()));
            prop_assert_eq!(rest, [after]);
            if let Some(most) = values.len().checked_sub(1) {
                prop_assert_eq!(take(&mut &bytes[..], most), None);
            }
        }

        #[test]
        fn ascending_numbers_come_back(numbers in proptest::collection::btree_set(0u64..1 << 32, 0..50)) {
            let last = numbers.last().map_or(0, |last| *last as u32);
            let all: Vec<u32> = numbers.iter().map(|number| *number as u32).collect();
            let mut bytes = Vec::new();
            put_ascending(&mut bytes, numbers.into_iter()).unwrap();
            let below = |end: u32| take_ascending(&mut &bytes[..], 50, end);
            prop_assert!(all.is_empty() || below(last).is_none());
            // No end is above the last number of all.
            if let Some(end) = last.checked_add(1) {
                prop_assert_eq!(below(end), Some(all));
            }
        }

        #[test]
        fn near_numbers_come_back(numbers in proptest::collection::vec(any::<u32>(), 0..50), byte in any::<u8>()) {
            let mut bytes = Vec::new();
            put_near(&mut bytes, &numbers).unwrap();
            prop_assert_eq!(all_near(&bytes), Some(numbers));
            bytes.push(byte);
            prop_assert_eq!(all_near(&bytes), None);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let values = take(&mut &bytes[..], 1_000);
            prop_assert!(values.is_none_or(|values| values.len() <= 1_000));
        }
    }

    /// Random bytes stay as they are; one that is the same everywhere takes next to nothing.
    #[test]
    fn planes_take_what_is_in_them() {
        let count = 10_000u64;
        let values = (0..count).map(|at: u64| xxh3_64(&at.to_le_bytes()) >> 40 | 7 << 24);
        let mut bytes = Vec::new();
        put(&mut bytes, &values.collect::<Vec<u64>>()).unwrap();
        let more = bytes.len() as u64 - 3 * count;
        assert!(more < 100, "{more}");
    }

    /// Every other one is one of a few: a byte or less says which.
    #[test]
    fn common_values_take_little() {
        let count = 10_000u64;
        let values = (0..count).map(|at| {
            let random = xxh3_64(&at.to_le_bytes());
            if random.is_multiple_of(2) {
                random
            } else {
                xxh3_64(&[(random >> 60) as u8])
            }
        });
        let mut bytes = Vec::new();
        put(&mut bytes, &values.collect::<Vec<u64>>()).unwrap();
        // 3 bits a value say which, and half of the values are of 64: 35 at least.
        let bits = 8 * bytes.len() as u64 / count;
        assert!((34..38).contains(&bits), "{bits}");
    }
}
