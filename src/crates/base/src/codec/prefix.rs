//! Front coding of names: the lengths of the prefix shared with the name before and of the rest, and the rest.

use super::varint;

/// Appends a name, coded against `last`, which is set to it.
pub fn put(out: &mut Vec<u8>, last: &mut Vec<u8>, name: &[u8]) {
    let shared = shared(last, name);
    let rest = &name[shared..];
    varint::put(out, shared as u128);
    varint::put(out, rest.len() as u128);
    out.extend_from_slice(rest);
    last.truncate(shared);
    last.extend_from_slice(rest);
}

/// Takes a name from the front, coded against `last`, which is set to it; `None` if there is none.
pub fn take(from: &mut &[u8], last: &mut Vec<u8>) -> Option<()> {
    let shared = usize::try_from(varint::take(from)?).ok()?;
    let len = usize::try_from(varint::take(from)?).ok()?;
    let rest = from.split_off(..len)?;
    last.truncate((shared <= last.len()).then_some(shared)?);
    last.extend_from_slice(rest);
    Some(())
}

#[inline]
fn shared(one: &[u8], other: &[u8]) -> usize {
    let eights = one.as_chunks::<8>().0.iter().zip(other.as_chunks().0);
    let whole = 8 * eights.take_while(|(one, other)| one == other).count();
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths() {
        let name = b"https://www.example.org/a";
        for len in 0..=name.len() {
            for other in 0..=name.len() {
                assert_eq!(shared(&name[..len], &name[..other]), len.min(other));
            }
            let mut changed = *name;
            if let Some(byte) = changed.get_mut(len) {
                *byte ^= 1;
                assert_eq!(shared(name, &changed), len);
                assert_eq!(shared(&changed, name), len);
            }
        }
    }

    #[test]
    fn names_come_back() {
        let names: [&[u8]; 4] = [
            b"http://a.example/",
            b"http://a.example/a",
            b"http://b.example/",
            b"",
        ];
        let (mut coded, mut last) = (Vec::new(), Vec::new());
        for name in names {
            put(&mut coded, &mut last, name);
        }
        let (mut rest, mut last) = (&coded[..], Vec::new());
        for name in names {
            assert_eq!((take(&mut rest, &mut last), &*last), (Some(()), name));
        }
        assert!(rest.is_empty() && take(&mut rest, &mut last).is_none());
        for wrong in [&[0][..], &[0, 2, b'a'], &[1, 0], &[0x80]] {
            assert_eq!(take(&mut &*wrong, &mut Vec::new()), None, "{wrong:?}");
        }
    }
}
