//! Proves bytes canonical without parsing them.
//!
//! Every function here returns "canonical up to here", where the parser must copy exactly these bytes, or `None` for
//! "unknown, ask the parser".

use wide::u8x16;

use super::host::authority;

/// Returns whether `url` is certainly in canonical form, limits permitting. `false` means unknown.
pub fn is_canonical(url: &[u8]) -> bool {
    front(url) == Some(url.len())
}

/// Returns the length of the canonical form at the front of `raw`, if only a fragment or blanks follow it.
pub(super) fn front(raw: &[u8]) -> Option<usize> {
    if is_ordinary(raw) {
        return Some(raw.len());
    }
    by_parts(raw)
}

/// Returns the same as [`front`], component by component.
pub(super) fn by_parts(raw: &[u8]) -> Option<usize> {
    let (host, default_port) = match raw {
        [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => (8, 443),
        [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => (7, 80),
        _ => return None,
    };
    let slash = authority(raw, host, default_port)?;
    path(raw, slash + 1)
}

/// Scans from `at`, where a path segment begins, to the end of the path and the query.
pub(super) fn path(raw: &[u8], at: usize) -> Option<usize> {
    let end_of_path = run(raw, at, PATH);
    if has_dots(&raw[at..end_of_path]) {
        return None;
    }
    match raw.get(end_of_path) {
        Some(b'?') => query(raw, end_of_path + 1),
        _ => end(raw, end_of_path),
    }
}

/// Scans from `at`, after the `?`, to the end of the query.
pub(super) fn query(raw: &[u8], at: usize) -> Option<usize> {
    end(raw, run(raw, at, QUERY))
}

/// Returns `at` if the URL ends there: nothing, a fragment, or only blanks follow.
fn end(raw: &[u8], at: usize) -> Option<usize> {
    let ends = match raw.get(at) {
        None | Some(b'#') => true,
        Some(_) => raw[at..].iter().all(|&byte| byte <= b' '),
    };
    ends.then_some(at)
}

/// Returns whether a segment of `path` [`is_dots`]: the parser acts on those.
#[inline]
fn has_dots(path: &[u8]) -> bool {
    let begins = |byte: u8| (byte == b'.') | (byte == b'%');
    // Branch-free, so that the compiler vectorises it: most paths have no such bytes.
    let pairs = path.iter().zip(path.iter().skip(1));
    let inside = pairs.fold(false, |any, (&slash, &byte)| {
        any | ((slash == b'/') & begins(byte))
    });
    let any = inside || path.first().is_some_and(|&byte| begins(byte));
    any && path.split(|&byte| byte == b'/').any(is_dots)
}

/// Returns whether a segment means its folder or the one above: one or two dots, plain or escaped.
pub fn is_dots(segment: &[u8]) -> bool {
    let (mut rest, mut dots) = (segment, 0);
    while let [b'.', after @ ..] | [b'%', b'2', b'e' | b'E', after @ ..] = rest {
        rest = after;
        dots += 1;
    }
    rest.is_empty() && (1..=2).contains(&dots)
}

/// Bit of bytes that are allowed in a host label: lower-case letters, digits, `-` and `_`.
pub(super) const HOST: u8 = 1;
/// Bit of bytes that are allowed in a path, including `/`.
const PATH: u8 = 2;
/// Bit of bytes that are allowed in a query, including `?`.
const QUERY: u8 = 4;

/// For each byte, the parts of a canonical URL in which it stands for itself.
///
/// `^` is left to the parser: the standard has begun to escape it in paths.
const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    // Bytes outside this range stand for themselves nowhere: controls, blanks, bytes from 0x7F on.
    let mut byte = b'!';
    while byte <= b'~' {
        let mut parts = 0;
        if matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_') {
            parts |= HOST;
        }
        if !matches!(
            byte,
            b'?' | b'#' | b'\\' | b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | b'^'
        ) {
            parts |= PATH;
        }
        if !matches!(byte, b'#' | b'"' | b'<' | b'>' | b'\'') {
            parts |= QUERY;
        }
        class[byte as usize] = parts;
        byte += 1;
    }
    class
};

/// Returns the end of the bytes of class `part`, one bit, that begin at `at`. One branch per eight bytes.
#[inline]
fn run(raw: &[u8], mut at: usize, part: u8) -> usize {
    while let Some(eight) = raw[at..].first_chunk::<8>() {
        let class = |byte: &u8| CLASS[usize::from(*byte)];
        if eight.iter().fold(part, |all, byte| all & class(byte)) == 0 {
            break;
        }
        at += 8;
    }
    short_run(raw, at, part)
}

/// Returns the same as [`run`], byte by byte.
#[inline]
pub(super) fn short_run(raw: &[u8], at: usize, part: u8) -> usize {
    let rest = &raw[at..];
    at + rest
        .iter()
        .position(|&byte| CLASS[usize::from(byte)] & part == 0)
        .unwrap_or(rest.len())
}

const WIDE: usize = 16;
/// Distance between blocks, which overlap by one byte so that every pair of adjacent bytes is in one block.
const STEP: usize = WIDE - 1;

/// Returns whether all of `raw` is certainly canonical, as [`by_parts`] would find, by sixteen bytes at a time. Rejects
/// whatever needs a closer look: ports, unusual bytes, short URLs.
#[inline]
fn is_ordinary(raw: &[u8]) -> bool {
    let host = match raw {
        [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => 8,
        [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => 7,
        _ => return false,
    };
    end_of_host(raw, host).is_some_and(|slash| is_path(raw, slash))
}

/// Returns the offset of the slash after the host at `host`, if it has plain labels and the last is no number.
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

/// Returns whether every byte from `slash` on is plain in a path and a query, and no segment begins like dots.
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

#[inline]
fn within(bytes: u8x16, first: u8, last: u8) -> u8x16 {
    let above = bytes - u8x16::splat(first);
    above.min(u8x16::splat(last - first)).simd_eq(above)
}

#[cfg(test)]
mod tests {
    use super::{by_parts, is_ordinary};

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
