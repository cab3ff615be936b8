//! Common prefixes of names.

/// Returns the length of the common prefix.
#[inline]
pub fn shared(one: &[u8], other: &[u8]) -> usize {
    let eights = one.as_chunks::<8>().0.iter().zip(other.as_chunks().0);
    let whole = 8 * eights.take_while(|(one, other)| one == other).count();
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::shared;

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
}
