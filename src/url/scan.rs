//! The scan that proves bytes canonical without parsing them.
//!
//! Every function here answers "yes, up to here" or `None`: don't know, ask the parser. A yes must
//! hold for the parser too: it would copy exactly these bytes. So each byte that the
//! parser would escape, drop, fold or act on ends in `None`, as does whatever is rare and hard to tell.

use super::host::authority;

/// In a host label: lower-case letters, digits, `-` and `_`.
pub(super) const HOST: u8 = 1;
/// In a path segment.
const SEGMENT: u8 = 2;
/// In a query, `?` included.
const QUERY: u8 = 4;

/// For each byte, the parts of a canonical URL in which it stands for itself.
///
/// `^` is left to the parser: the standard has begun to escape it in paths.
pub(super) const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    // All that is left out below stands for itself nowhere: controls, blanks, bytes from 0x7F on.
    let mut byte = b'!';
    while byte <= b'~' {
        let mut parts = 0;
        if matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_') {
            parts |= HOST;
        }
        if !matches!(
            byte,
            b'/' | b'?' | b'#' | b'\\' | b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | b'^'
        ) {
            parts |= SEGMENT;
        }
        if !matches!(byte, b'#' | b'"' | b'<' | b'>' | b'\'') {
            parts |= QUERY;
        }
        class[byte as usize] = parts;
        byte += 1;
    }
    class
};

/// Whether `url` is surely in canonical form: [`canonical`](super::canonical) would return
/// [`Form::AsIs`](super::Form::AsIs), limits aside. `false` means not sure.
pub fn is_canonical(url: &[u8]) -> bool {
    front(url) == Some(url.len())
}

/// The length of the canonical form at the front of `raw`, if nothing follows it but a fragment
/// or blanks.
pub(super) fn front(raw: &[u8]) -> Option<usize> {
    let (host, default_port) = match raw {
        [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => (8, 443),
        [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => (7, 80),
        _ => return None,
    };
    let slash = authority(raw, host, default_port)?;
    path(raw, slash + 1)
}

/// Scans on from `at`, where a path segment begins, to the end of the path and the query.
pub(super) fn path(raw: &[u8], mut at: usize) -> Option<usize> {
    loop {
        if is_dots(&raw[at..]) {
            return None;
        }
        at = run(raw, at, SEGMENT);
        match raw.get(at) {
            Some(b'/') => at += 1,
            Some(b'?') => return query(raw, at + 1),
            _ => return end(raw, at),
        }
    }
}

/// Scans on from `at`, behind the `?`, to the end of the query.
pub(super) fn query(raw: &[u8], at: usize) -> Option<usize> {
    end(raw, run(raw, at, QUERY))
}

/// Where the bytes of class `part` that begin at `at` end.
#[inline]
pub(super) fn run(raw: &[u8], at: usize, part: u8) -> usize {
    let rest = &raw[at..];
    at + rest
        .iter()
        .position(|&byte| CLASS[usize::from(byte)] & part == 0)
        .unwrap_or(rest.len())
}

/// `at`, if the URL ends there: nothing, a fragment, or only blanks follow.
fn end(raw: &[u8], at: usize) -> Option<usize> {
    let ends = match raw.get(at) {
        None | Some(b'#') => true,
        Some(_) => raw[at..].iter().all(|&byte| byte <= b' '),
    };
    ends.then_some(at)
}

/// Whether a segment consists of one or two dots, plain or escaped: the parser acts on those.
#[inline]
fn is_dots(rest: &[u8]) -> bool {
    matches!(rest.first(), Some(b'.' | b'%')) && count_dots(rest).is_some_and(|dots| dots <= 2)
}

/// How many dots a segment consists of, if of nothing else.
fn count_dots(rest: &[u8]) -> Option<usize> {
    let (mut at, mut dots) = (0, 0);
    loop {
        at += match &rest[at..] {
            [b'.', ..] => 1,
            [b'%', b'2', b'e' | b'E', ..] => 3,
            [byte, ..] if CLASS[usize::from(*byte)] & SEGMENT != 0 => return None,
            _ => return Some(dots),
        };
        dots += 1;
    }
}
