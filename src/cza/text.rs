//! The text of names, packed by PPMd: a model of which byte follows which four.
//!
//! PPMd variant H with the range coder of 7-Zip (its method PPMD). It packs names into a tenth to a
//! quarter less than zstd does, and reads a name in about a microsecond, a hundred times as long.
//! Names are read in a first pass only.

use std::io::{Read, Write};

use ppmd_rust::{Ppmd7Decoder, Ppmd7Encoder};

use super::Fault;

/// Bytes that the model looks back. More would need more time and memory, and gain little.
const ORDER: u32 = 4;
/// Memory of the model: enough for a block of usual size.
pub(super) const MEMORY: u32 = 8 << 20;

/// A stream for [`unpack`].
pub(super) fn pack(raw: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut encoder = Ppmd7Encoder::new(Vec::new(), ORDER, MEMORY).map_err(unusable)?;
    let written = encoder.write_all(raw);
    written
        .and_then(|()| encoder.finish(false))
        .map_err(Fault::other)
}

/// Fills `raw` with what `packed` says.
pub(super) fn unpack(packed: &[u8], raw: &mut [u8]) -> Result<(), Fault> {
    let mut decoder = Ppmd7Decoder::new(packed, ORDER, MEMORY).map_err(unusable)?;
    decoder.read_exact(raw).map_err(Fault::other)
}

fn unusable(error: ppmd_rust::Error) -> Fault {
    Fault::new(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `TEXT` as 7-Zip's own code packs it (by way of Python's pyppmd 1.3.1: `Ppmd7Encoder(4, 8 << 20)`,
    /// no end mark).
    const PACKED: [u8; 24] = [
        0x00, 0x71, 0xfb, 0x59, 0x2e, 0xc0, 0x08, 0x85, 0xf2, 0x0a, 0xd4, 0x24, 0xb4, 0xc6, 0x76,
        0x6e, 0xc0, 0xb4, 0xda, 0xe7, 0xb4, 0xff, 0x97, 0x38,
    ];

    fn text() -> Vec<u8> {
        b"rose\ngarden\nrosegarden\nrose-garden\n".repeat(3)
    }

    #[test]
    fn streams_are_those_of_7_zip() {
        assert_eq!(pack(&text()).unwrap(), PACKED);
        let mut raw = [0; 105];
        unpack(&PACKED, &mut raw).unwrap();
        assert_eq!(raw[..], text());
    }

    #[test]
    fn what_is_cut_short_or_no_stream_is_refused() {
        for packed in [&[][..], &PACKED[..4], &PACKED[..12], &[1, 0, 0, 0, 0, 0]] {
            assert!(unpack(packed, &mut [0; 105]).is_err(), "{packed:?}");
        }
    }
}
