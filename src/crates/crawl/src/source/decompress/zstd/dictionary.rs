//! Dictionary at the start of a `.warc.zst`: a skippable frame with its own magic number that holds the dictionary,
//! optionally compressed ("Zstandard Compression for WARC Files 1.0", IIPC).

use std::io::Read;

use crate::model::DamageKind::{InvalidData, Truncated, Unsupported};
use crate::source::decompress::{Fault, damage};
use crate::source::input::PeekReader;
use crate::source::sniff::ZSTD_MAGIC;

/// First bytes of the frame: 0x184D2A5D, little-endian.
pub(super) const MAGIC: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];

/// Reads the frame at the input's start, whose magic was checked, and returns the dictionary, which may be empty.
/// Compressed or not, it may be no larger than a window: frames cannot refer further back.
pub(super) fn read(raw: &mut PeekReader, window_log: u32) -> Result<Vec<u8>, Fault> {
    let truncated = || {
        damage(
            Truncated,
            "the input ends inside the zstd dictionary it begins with",
        )
    };
    let Some(&[_, _, _, _, a, b, c, d]) = raw.peek(8)?.first_chunk::<8>() else {
        return truncated();
    };
    raw.consume(8);
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > 1 << window_log {
        return too_large(window_log);
    }
    let mut content = Vec::new();
    while content.len() < length {
        let bytes = raw.peek(1)?;
        let piece = bytes.len().min(length - content.len());
        if piece == 0 {
            return truncated();
        }
        content.extend_from_slice(&bytes[..piece]);
        raw.consume(piece);
    }
    if content.starts_with(&ZSTD_MAGIC) {
        return unpack(&content, window_log);
    }
    Ok(content)
}

fn unpack(packed: &[u8], window_log: u32) -> Result<Vec<u8>, Fault> {
    // The window, or the size if that is smaller.
    if super::FrameHeader::parse(packed).is_some_and(|header| header.window > 1 << window_log) {
        return too_large(window_log);
    }
    let mut content = Vec::new();
    let result = zstd::Decoder::with_buffer(packed).and_then(|decoder| {
        let mut decoder = decoder.single_frame();
        decoder.window_log_max(window_log)?;
        decoder
            .take((1 << window_log) + 1)
            .read_to_end(&mut content)
    });
    match result {
        Ok(_) if content.len() > 1 << window_log => too_large(window_log),
        Ok(_) => Ok(content),
        Err(error) => invalid(&error.to_string()),
    }
}

pub(super) fn invalid<T>(why: &str) -> Result<T, Fault> {
    let what = format!("the zstd dictionary that the input begins with is damaged: {why}");
    damage(InvalidData, what)
}

fn too_large<T>(window_log: u32) -> Result<T, Fault> {
    let what = format!(
        "the zstd dictionary that the input begins with is larger than 2^{window_log} bytes, or its window: raise \
         `limit_zstd_window`"
    );
    damage(Unsupported, what)
}
