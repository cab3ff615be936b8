//! The commonest canonical URLs, proved sixteen bytes at a time.
//!
//! Says yes only where [`by_parts`](super::scan::by_parts) does, and no to whatever it would have to
//! look at closely: ports, queries, odd bytes, short URLs. The loops over sixteen bytes have no
//! branches inside, so that the compiler makes vector code of them.

/// Bytes looked at together.
const WIDE: usize = 16;

/// Whether `raw` is surely canonical, all of it: `http` or `https`, a host of plain labels, a path of
/// plain bytes.
#[inline]
pub(super) fn is_ordinary(raw: &[u8]) -> bool {
    let host = match raw {
        [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => 8,
        [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => 7,
        _ => return false,
    };
    let Some(slash) = memchr::memchr(b'/', &raw[host..]) else {
        return false;
    };
    is_host(raw, host, slash) && are_plain(raw)
}

/// Whether the `len` bytes from `at` on, which are followed by others, are a host of plain labels, the
/// last of which does not look like a number.
#[inline]
fn is_host(raw: &[u8], at: usize, len: usize) -> bool {
    let host = &raw[at..at + len];
    let dot = host.iter().rposition(|&byte| byte == b'.');
    let last = host.get(dot.map_or(0, |dot| dot + 1));
    if !last.is_some_and(u8::is_ascii_lowercase) || host[0] == b'.' {
        return false;
    }
    let Some(end) = (at + len).checked_sub(WIDE).filter(|&end| end >= at) else {
        let mut padded = [b'a'; WIDE + 1];
        padded[..len].copy_from_slice(host);
        return are_labels(&padded);
    };
    everywhere(raw, at, end, are_labels)
}

/// Whether `holds` is true of the bytes from `first` on, from every sixteenth after it up to `last`, and
/// from `last` on, whatever was looked at before. It is given one byte more than it goes on by.
#[inline]
fn everywhere(
    raw: &[u8],
    first: usize,
    last: usize,
    holds: impl Fn(&[u8; WIDE + 1]) -> bool,
) -> bool {
    let mut from = first;
    while from < last + WIDE {
        let bytes = raw[from.min(last)..].first_chunk::<{ WIDE + 1 }>();
        if !bytes.is_some_and(&holds) {
            return false;
        }
        from += WIDE;
    }
    true
}

/// Whether all bytes but the last may stand in a host, and none of them repeats as the next one in a
/// way that makes an empty label or perhaps punycode.
#[inline]
fn are_labels(bytes: &[u8; WIDE + 1]) -> bool {
    let mut bad = false;
    for n in 0..WIDE {
        let (byte, next) = (bytes[n], bytes[n + 1]);
        let separator = within(byte, b'-', b'.');
        let known = within(byte, b'a', b'z') | within(byte, b'0', b'9') | separator;
        bad |= !known | ((byte == next) & separator);
    }
    !bad
}

/// Whether every byte stands for itself in a path, and no segment begins like dots.
#[inline]
fn are_plain(raw: &[u8]) -> bool {
    let last = raw.len().checked_sub(WIDE + 1);
    last.is_some_and(|last| everywhere(raw, 0, last, is_path))
}

/// Whether all bytes but the first stand for themselves in a path, and none begins a segment of dots.
#[inline]
fn is_path(bytes: &[u8; WIDE + 1]) -> bool {
    let mut bad = false;
    for n in 0..WIDE {
        let (before, byte) = (bytes[n], bytes[n + 1]);
        let known = within(byte, b'$', b';')
            | within(byte, b'@', b'[')
            | within(byte, b'a', b'z')
            | (byte == b'_')
            | (byte == b'~')
            | (byte == b'!');
        let dots = (before == b'/') & ((byte == b'.') | (byte == b'%'));
        bad |= !known | dots;
    }
    !bad
}

#[inline]
fn within(byte: u8, first: u8, last: u8) -> bool {
    byte.wrapping_sub(first) <= last - first
}

#[cfg(test)]
mod tests {
    use super::super::scan::by_parts;
    use super::is_ordinary;

    /// Each byte in each place of URLs of all short lengths, put in or in place of another.
    #[test]
    fn a_yes_is_one_of_the_scan_by_parts() {
        let longest = b"https://www.example-site1.org/a/path_to/some-page.html";
        let mut yes = 0;
        for len in 1..=longest.len() {
            yes += usize::from(is_ordinary(&longest[..len]));
            for place in 0..len {
                for byte in 0..=255 {
                    let mut other = longest[..len].to_vec();
                    other[place] = byte;
                    let mut longer = longest[..len].to_vec();
                    longer.insert(place, byte);
                    for raw in [&other, &longer] {
                        if is_ordinary(raw) {
                            assert_eq!(by_parts(raw), Some(raw.len()), "{}", raw.escape_ascii());
                        }
                    }
                }
            }
        }
        // From the slash behind the host on.
        assert_eq!(yes, longest.len() - 29);
    }
}
