//! Proves bytes canonical without parsing them.
//!
//! Every function here returns "canonical up to here", or `None` for "unknown, ask the parser". In the first case the
//! parser must copy exactly these bytes. So each byte that the parser would escape, drop, fold or act on yields `None`,
//! as does anything rare and hard to decide.

use super::class::{PATH, QUERY, run};
use super::host::authority;
use super::ordinary::is_ordinary;

/// Returns whether `url` is certainly in canonical form: [`canonical`](super::canonical) would return
/// [`CanonicalForm::AsIs`](super::CanonicalForm::AsIs), limits permitting. `false` means unknown.
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

/// Does what [`front`] does, component by component.
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

/// Returns whether a segment of `path` consists of one or two dots, plain or escaped: the parser acts on those.
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

fn is_dots(segment: &[u8]) -> bool {
    let (mut rest, mut dots) = (segment, 0);
    while let [b'.', after @ ..] | [b'%', b'2', b'e' | b'E', after @ ..] = rest {
        rest = after;
        dots += 1;
    }
    rest.is_empty() && (1..=2).contains(&dots)
}
