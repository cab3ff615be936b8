//! Proves the most common canonical URLs, sixteen bytes at a time.
//!
//! Accepts only what [`by_parts`](super::scan::by_parts) does, and rejects whatever needs a closer look: ports, unusual
//! bytes, short URLs. Works on sixteen bytes at a time, without a branch for each.

use wide::u8x16;

/// Number of bytes examined together.
const WIDE: usize = 16;
/// Distance between blocks, which overlap by one byte so that every pair of adjacent bytes is in one block.
const STEP: usize = WIDE - 1;

/// Returns whether all of `raw` is certainly canonical: `http` or `https`, a host of plain labels, a path and an
/// optional query of plain bytes.
#[inline]
pub(super) fn is_ordinary(raw: &[u8]) -> bool {
    let host = match raw {
        [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => 8,
        [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => 7,
        _ => return false,
    };
    end_of_host(raw, host).is_some_and(|slash| is_path(raw, slash))
}

/// Returns the offset of the slash after the host that begins at `host`, if the host consists of plain labels and the
/// last one does not look like a number.
#[inline]
fn end_of_host(raw: &[u8], host: usize) -> Option<usize> {
    let end = raw.len().checked_sub(WIDE)?;
    let mut last_label = host;
    let mut at = host;
    loop {
        let from = at.min(end);
        let bytes = load(raw, from)?;
        let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
        let (dot, hyphen) = (is(b'.'), is(b'-'));
        let strange = !(within(bytes, b'a', b'z') | within(bytes, b'0', b'9') | dot | hyphen);
        // Bits from `at` on.
        let which = |found: u8x16| found.to_bitmask() >> (at - from);
        let slash = which(is(b'/')).trailing_zeros();
        let inside = |found: u8x16| which(found) & !(u32::MAX << slash.min(WIDE as u32));
        let (dots, hyphens) = (inside(dot), inside(hyphen));
        // Doubled dots make an empty label, doubled hyphens perhaps punycode.
        let doubled = (dots & dots >> 1) | (hyphens & hyphens >> 1);
        if inside(strange) | doubled != 0 {
            return None;
        }
        if let Some(dot) = dots.checked_ilog2() {
            last_label = at + dot as usize + 1;
        }
        if slash < WIDE as u32 {
            let sound = raw[host] != b'.' && raw[last_label].is_ascii_lowercase();
            return sound.then_some(at + slash as usize);
        }
        if from == end {
            return None;
        }
        at = from + STEP;
    }
}

/// Returns whether every byte from `slash` on, where the path begins, stands for itself in a path and in a query, and
/// no segment begins like dots.
#[inline]
fn is_path(raw: &[u8], slash: usize) -> bool {
    let Some(end) = raw.len().checked_sub(WIDE) else {
        return false;
    };
    let mut at = slash;
    loop {
        let from = at.min(end);
        let Some(bytes) = load(raw, from) else {
            return false;
        };
        let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
        let letter = within(bytes | u8x16::splat(0x20), b'a', b'z');
        let known = letter
            | within(bytes, b'(', b';')
            | within(bytes, b'$', b'&')
            | is(b'_')
            | is(b'=')
            | is(b'?')
            | is(b'~');
        let dots = (is(b'.') | is(b'%')).to_bitmask() & is(b'/').to_bitmask() << 1;
        if !known.all() || dots != 0 {
            return false;
        }
        if from == end {
            return true;
        }
        at = from + STEP;
    }
}

#[inline]
fn load(raw: &[u8], at: usize) -> Option<u8x16> {
    raw.get(at..)?.first_chunk().copied().map(u8x16::new)
}

/// Returns a mask of the bytes from `first` to `last`.
#[inline]
fn within(bytes: u8x16, first: u8, last: u8) -> u8x16 {
    let above = bytes - u8x16::splat(first);
    above.min(u8x16::splat(last - first)).simd_eq(above)
}

#[cfg(test)]
mod tests {
    use super::super::scan::by_parts;
    use super::is_ordinary;

    /// Tests each byte at each position of URLs of all short lengths, inserted or in place of another. Returns the
    /// number of ordinary URLs.
    fn check(longest: &[u8]) -> usize {
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
        yes
    }

    #[test]
    fn a_yes_is_one_of_the_scan_by_parts() {
        let longest = b"https://www.example-site1.org/a/path_to/some-page.html?id=7&q=a~b";
        // From the slash after the host on.
        assert_eq!(check(longest), longest.len() - 29);
        check(b"http://a.b.example/%2E/some%20page/.%2e/%2e%2e/page");
        check(b"http://xn--a.example/?'/http://127.0.0.1/");
    }
}
