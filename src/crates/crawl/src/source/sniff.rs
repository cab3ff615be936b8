//! Recognises the compression of an input by its first bytes, never by its name.

use crate::model::Compression;

/// First bytes of a gzip member.
pub(super) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// First bytes of a zstd frame.
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Returns whether `head` begins a skippable zstd frame: 0x184D2A50 to 0x184D2A5F, little-endian.
pub(super) fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Returns the compression of an input whose first bytes are `head`: four of them, or all there are.
///
/// An input that ends within the magic of gzip or zstd counts as truncated: as plain text it would be one record of one
/// to three bytes. (The magic of a skippable frame begins like text and must be complete.)
pub fn sniff(head: &[u8]) -> Compression {
    if head.is_empty() {
        Compression::Plain
    } else if head.starts_with(&GZIP_MAGIC) || GZIP_MAGIC.starts_with(head) {
        Compression::Gzip
    } else if head.starts_with(&ZSTD_MAGIC) || ZSTD_MAGIC.starts_with(head) || is_skippable(head) {
        Compression::Zstd
    } else {
        Compression::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_content() {
        // Magic numbers as printed in RFC 1952 (2.3.1) and RFC 8878 (3.1.1, 3.1.2).
        assert_eq!(sniff(&[0x1f, 0x8b, 8, 0]), Compression::Gzip);
        assert_eq!(sniff(&0xFD2F_B528u32.to_le_bytes()), Compression::Zstd);
        for nibble in 0..16 {
            let magic = 0x184D_2A50u32 + nibble;
            assert_eq!(sniff(&magic.to_le_bytes()), Compression::Zstd);
        }
        assert_eq!(sniff(&0x184D_2A60u32.to_le_bytes()), Compression::Plain);
        assert_eq!(sniff(b"{\"ur"), Compression::Plain);
        assert_eq!(sniff(&[0x1f, 0x8c, 8, 0]), Compression::Plain);
        assert_eq!(sniff(b""), Compression::Plain);
    }

    #[test]
    fn inputs_cut_within_the_magic() {
        assert_eq!(sniff(&[0x1f]), Compression::Gzip);
        assert_eq!(sniff(&[0x28, 0xb5]), Compression::Zstd);
        assert_eq!(sniff(b"P*"), Compression::Plain);
    }
}
