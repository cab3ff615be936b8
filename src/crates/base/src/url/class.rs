//! Parts of a canonical URL in which a byte stands for itself, and scans for the end of such bytes.

/// Bit of bytes that are allowed in a host label: lower-case letters, digits, `-` and `_`.
pub(super) const HOST: u8 = 1;
/// Bit of bytes that are allowed in a path, including `/`.
pub(super) const PATH: u8 = 2;
/// Bit of bytes that are allowed in a query, including `?`.
pub(super) const QUERY: u8 = 4;

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
pub(super) fn run(raw: &[u8], mut at: usize, part: u8) -> usize {
    while let Some(eight) = raw[at..].first_chunk::<8>() {
        let class = |byte: &u8| CLASS[usize::from(*byte)];
        if eight.iter().fold(part, |all, byte| all & class(byte)) == 0 {
            break;
        }
        at += 8;
    }
    short_run(raw, at, part)
}

/// Does what [`run`] does, byte by byte.
#[inline]
pub(super) fn short_run(raw: &[u8], at: usize, part: u8) -> usize {
    let rest = &raw[at..];
    at + rest
        .iter()
        .position(|&byte| CLASS[usize::from(byte)] & part == 0)
        .unwrap_or(rest.len())
}
