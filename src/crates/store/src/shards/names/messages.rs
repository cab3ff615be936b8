//! Encoding of names and page numbers in messages.

use crate::codec::prefix;
use crate::codec::varint::{put, take, unzigzag, zigzag};
use crate::model::PageId;
use crate::shards::remote_log::Remote;

/// Appends a name, front-coded against `last`, which is set to it.
pub(super) fn put_name(message: &mut Vec<u8>, last: &mut Vec<u8>, name: &[u8]) {
    let shared = prefix::shared(last, name);
    put(message, shared as u128);
    put(message, (name.len() - shared) as u128);
    message.extend_from_slice(&name[shared..]);
    last.truncate(shared);
    last.extend_from_slice(&name[shared..]);
}

/// Reads a name, front-coded against `last`, which is set to it; `None` if there is none.
pub(super) fn take_name(message: &mut &[u8], last: &mut Vec<u8>) -> Option<()> {
    let shared = usize::try_from(take(message)?).ok()?;
    let len = usize::try_from(take(message)?).ok()?;
    let (rest, more) = message.split_at_checked(len)?;
    last.truncate((shared <= last.len()).then_some(shared)?);
    last.extend_from_slice(rest);
    *message = more;
    Some(())
}

pub(super) fn put_numbers(pages: &[PageId]) -> Vec<u8> {
    let mut answer = Vec::new();
    let mut last = 0;
    for page in pages {
        let number = page.0 as i64;
        put(&mut answer, zigzag(number - last).into());
        last = number;
    }
    answer
}

/// Decodes an answer into the pages that were asked for; `None` if it does not match.
pub(super) fn read_numbers(mut answer: &[u8], asked: &mut [Remote]) -> Option<()> {
    let mut last = 0i64;
    for page in asked {
        let step = u64::try_from(take(&mut answer)?).ok()?;
        last = last.checked_add(unzigzag(step))?;
        page.there = u32::try_from(last).ok()?;
    }
    answer.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_whole_or_not_at_all() {
        let numbers = [9, 0, u32::MAX.into()].map(PageId);
        let mut asked = [Remote { there: 0, here: 3 }; 3];
        assert_eq!(read_numbers(&put_numbers(&numbers), &mut asked), Some(()));
        assert_eq!(asked.map(|page| page.there), [9, 0, u32::MAX]);
        let answer = |steps: &[i64]| {
            let mut answer = Vec::new();
            let mut step = |&step: &i64| put(&mut answer, zigzag(step).into());
            steps.iter().for_each(&mut step);
            answer
        };
        for wrong in [
            &[9, 1][..],
            &[9, 1, 1, 1],
            &[-1, 2, 2],
            &[0, 1 << 32, 0],
            &[i64::MAX, i64::MAX, 0],
        ] {
            assert_eq!(read_numbers(&answer(wrong), &mut asked), None, "{wrong:?}");
        }

        let names = [
            &b"http://a.example/"[..],
            b"http://a.example/a",
            b"http://b.example/",
            b"",
        ];
        let (mut message, mut last) = (Vec::new(), Vec::new());
        for name in names {
            put_name(&mut message, &mut last, name);
        }
        let (mut rest, mut last) = (&message[..], Vec::new());
        for name in names {
            assert_eq!((take_name(&mut rest, &mut last), &*last), (Some(()), name));
        }
        assert!(rest.is_empty() && take_name(&mut rest, &mut last).is_none());
        for wrong in [&[0][..], &[0, 2, b'a'], &[1, 0], &[0x80]] {
            assert_eq!(take_name(&mut &*wrong, &mut Vec::new()), None, "{wrong:?}");
        }
    }
}
