//! Compressed inputs, for tests and for the fault campaign.
#![allow(dead_code)] // Each user uses its part.

use std::io::Write;

/// Compresses to one gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Compresses to one zstd frame with a checksum.
pub fn zstandard(bytes: &[u8]) -> Vec<u8> {
    let mut out = zstd::Encoder::new(Vec::new(), 3).unwrap();
    out.include_checksum(true).unwrap();
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Compresses a text in pieces of `size` bytes, and concatenates them.
pub fn in_pieces(bytes: &[u8], size: usize, compress: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    bytes.chunks(size).flat_map(compress).collect()
}
