//! Decoders of a body's codings: chunks and compression.
//!
//! Archivers often store a decoded body with its original header. A body that is not encoded as its header says is
//! therefore left unchanged; one that is valid at first and then breaks off yields its front.

use std::io::{self, ErrorKind, Read};

use brotli_decompressor::Decompressor as Brotli;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::LARGE;
use crate::decode::{Bad, Reason};

const SIZE_LINE_MAX: usize = 1 << 10;
/// Maximum window of zstd in HTTP, as a power of two (RFC 9659).
const ZSTD_WINDOW_LOG: u32 = 23;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Chunked,
    Gzip,
    /// zlib by the standard, but raw deflate from some servers.
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    /// Yields the codings listed in a header's value, in order. Unknown names, such as `identity`, are ignored.
    pub fn list(value: &[u8]) -> impl Iterator<Item = Coding> {
        value.split(|&byte| byte == b',').filter_map(|name| {
            Some(match &name.trim_ascii().to_ascii_lowercase()[..] {
                b"chunked" => Coding::Chunked,
                b"gzip" | b"x-gzip" => Coding::Gzip,
                b"deflate" => Coding::Deflate,
                b"br" => Coding::Brotli,
                b"zstd" => Coding::Zstd,
                _ => return None,
            })
        })
    }

    /// Decodes the body; `None` if it is not in this coding. Fails if the result exceeds `most` bytes.
    pub fn undo(
        self,
        body: &[u8],
        most: u64,
        large: &mut dyn FnMut(),
    ) -> Result<Option<Vec<u8>>, Bad> {
        match self {
            Coding::Chunked => {
                if body.len() > LARGE {
                    large();
                }
                Ok(chunks(body))
            }
            Coding::Gzip if body.starts_with(&[0x1f, 0x8b]) => {
                read(MultiGzDecoder::new(body), true, most, large)
            }
            Coding::Deflate if is_zlib(body) => read(ZlibDecoder::new(body), true, most, large),
            Coding::Deflate => read(DeflateDecoder::new(body), false, most, large),
            Coding::Brotli => read(Brotli::new(body.chain(CutShort), 4096), false, most, large),
            Coding::Zstd if body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => {
                let Ok(mut decoder) = zstd::Decoder::new(body) else {
                    return Ok(None);
                };
                match decoder.window_log_max(ZSTD_WINDOW_LOG) {
                    Ok(()) => read(decoder, true, most, large),
                    Err(_) => Ok(None),
                }
            }
            Coding::Gzip | Coding::Zstd => Ok(None),
        }
    }
}

/// Reader that reports an unexpected end: brotli's reader alone would call a truncated body invalid.
struct CutShort;

impl Read for CutShort {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(ErrorKind::UnexpectedEof.into())
    }
}

/// Returns whether a body has a zlib header: method 8 and a valid check value (RFC 1950, section 2.2).
fn is_zlib(body: &[u8]) -> bool {
    matches!(body, &[method, flags, ..]
        if method & 15 == 8 && (u16::from(method) << 8 | u16::from(flags)).is_multiple_of(31))
}

/// Decodes up to the end or the first error; `None` if that yields nothing, or for an error other than the
/// premature end of an unmarked body.
fn read(
    reader: impl Read,
    is_marked: bool,
    most: u64,
    large: &mut dyn FnMut(),
) -> Result<Option<Vec<u8>>, Bad> {
    let mut decoded = Vec::new();
    let most_read = most.saturating_add(1);
    let mut reader = reader.take(most_read.min(LARGE as u64 + 1));
    let mut result = reader.read_to_end(&mut decoded);
    if result.is_ok() && decoded.len() > LARGE {
        large();
        reader.set_limit(most_read - decoded.len() as u64);
        result = reader.read_to_end(&mut decoded);
    }
    if decoded.len() as u64 > most {
        let message = format!("its HTTP body expands beyond `limit_line` {most}");
        return Err(Bad::new(Reason::TooLong, message));
    }
    let is_cut = |error: io::Error| error.kind() == ErrorKind::UnexpectedEof;
    let is_sound = is_marked || result.err().is_none_or(is_cut);
    Ok(Some(decoded).filter(|decoded| is_sound && !decoded.is_empty()))
}

/// Joins the chunks (RFC 9112, section 7.1); copies all bytes from a framing error on. `None` if that is at the start.
fn chunks(body: &[u8]) -> Option<Vec<u8>> {
    let (mut size, mut rest) = chunk_size(body)?;
    let mut whole = Vec::with_capacity(rest.len());
    while size > 0 {
        let Some((chunk, after)) = rest.split_at_checked(size) else {
            break;
        };
        whole.extend_from_slice(chunk);
        rest = after;
        let end = rest
            .strip_prefix(b"\r\n")
            .or_else(|| rest.strip_prefix(b"\n"));
        let Some(next) = end.and_then(chunk_size) else {
            break;
        };
        (size, rest) = next;
    }
    // Trailers follow the last chunk.
    if size > 0 {
        whole.extend_from_slice(rest);
    }
    Some(whole)
}

fn chunk_size(chunk: &[u8]) -> Option<(usize, &[u8])> {
    let lf = memchr::memchr(b'\n', &chunk[..chunk.len().min(SIZE_LINE_MAX)])?;
    let line = chunk[..lf].split(|&byte| byte == b';').next()?.trim_ascii();
    let digits = std::str::from_utf8(line).ok()?;
    let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let size = usize::from_str_radix(digits, 16).ok().filter(|_| hex)?;
    Some((size, &chunk[lf + 1..]))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"<a href=one>1</a>\n<a href=two>2</a>\n";

    fn undone(coding: Coding, body: &[u8]) -> Option<Vec<u8>> {
        coding.undo(body, 1 << 20, &mut || ()).unwrap()
    }

    #[test]
    fn names() {
        let list: Vec<_> =
            Coding::list(b" GZip ,identity,x-gzip, utf-8,br,,zstd,deflate").collect();
        use Coding::*;
        assert_eq!(list, [Gzip, Gzip, Brotli, Zstd, Deflate]);
    }

    /// Encoders are those of flate2 and zstd; the brotli sample is from Python's `brotli.compress(TEXT).hex()`.
    #[test]
    fn every_coding_is_undone_and_what_is_none_stands() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
        for out in [&mut gzip as &mut dyn Write, &mut zlib, &mut bare] {
            out.write_all(TEXT).unwrap();
        }
        let zstd = zstd::encode_all(TEXT, 0).unwrap();
        let all = [
            (Coding::Gzip, gzip.finish().unwrap()),
            (Coding::Deflate, zlib.finish().unwrap()),
            (Coding::Deflate, bare.finish().unwrap()),
            (Coding::Brotli, BROTLI.to_vec()),
            (Coding::Zstd, zstd),
        ];
        for (coding, coded) in &all {
            assert_eq!(undone(*coding, coded).unwrap(), TEXT, "{coding:?}");
            assert_eq!(undone(*coding, TEXT), None, "{coding:?}");
            assert_eq!(undone(*coding, b""), None, "{coding:?}");
            // A truncated body yields its front, or nothing.
            for cut in 0..coded.len() {
                let front = undone(*coding, &coded[..cut]).unwrap_or_default();
                assert!(TEXT.starts_with(&front), "{coding:?} cut at {cut}");
            }
        }
    }

    const BROTLI: &[u8] = b"\x8b\x11\x80\x3c\x61\x20\x68\x72\x65\x66\x3d\x6f\x6e\x65\x3e\x31\x3c\x2f\x61\x3e\x0a\x3c\x61\x20\x68\x72\x65\x66\x3d\x74\x77\x6f\x3e\x32\x3c\x2f\x61\x3e\x0a\x03";

    #[test]
    fn chunks_and_what_is_none() {
        let undone = |body: &[u8]| undone(Coding::Chunked, body);
        let message = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(
            undone(
                b"4;x=y\r\nWiki\r\n A \npedia in c\nB\r\nhunks.12345\r\n0\r\nTrailer: x\r\n\r\n"
            ),
            message("Wikipedia in chunks.12345")
        );
        // Truncated; no line end after a chunk; no size there; then text.
        assert_eq!(undone(b"9\r\nWiki"), message("Wiki"));
        assert_eq!(undone(b"4\r\nWikipedia"), message("Wikipedia"));
        assert_eq!(
            undone(b"4\r\nWiki\r\npedia\r\n"),
            message("Wiki\r\npedia\r\n")
        );
        assert_eq!(undone(b"0\r\n\r\n"), message(""));
        for none in [
            &b"<html>\n"[..],
            b"",
            b"4",
            b"-4\r\nWiki",
            b"+4\r\nWiki",
            b"\r\nx",
        ] {
            assert_eq!(undone(none), None);
        }
        assert_eq!(undone(b"ffffffffffffffffffff\r\nx"), None);
        assert_eq!(undone(b"ffffffffffffffff\r\nx"), message("x"));
    }

    /// A body that expands too far is refused, also if read in two parts.
    #[test]
    fn a_bomb_is_refused() {
        let zeros = |len: u64| zstd::encode_all(std::io::repeat(0).take(len), 1).unwrap();
        for most in [1 << 20, LARGE as u64, LARGE as u64 + 1, 3 * LARGE as u64] {
            let mut told = false;
            let mut undo = |coded: &[u8]| Coding::Zstd.undo(coded, most, &mut || told = true);
            let error = undo(&zeros(most + 1)).unwrap_err();
            assert_eq!(error.reason, Reason::TooLong);
            let fits = undo(&zeros(most)).unwrap();
            assert_eq!(fits.map(|body| body.len() as u64), Some(most));
            assert_eq!(told, most >= LARGE as u64);
        }
    }
}
