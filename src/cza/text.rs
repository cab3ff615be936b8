//! The text of names, packed by PPMd: a model of which byte follows which four.
//!
//! PPMd variant H with the range coder of 7-Zip (its method PPMD). It packs names into a tenth to a
//! quarter less than zstd does, and takes a microsecond or two to read one, in a first pass only.

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
    let read = decoder.read_exact(raw);
    match (read, decoder.into_inner()) {
        (Ok(()), []) => Ok(()),
        _ => Err(Fault::new("the text of its names is no whole PPMd stream")),
    }
}

fn unusable(error: ppmd_rust::Error) -> Fault {
    Fault::new(format!("PPMd: {error}"))
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    /// [`text`] as 7-Zip's own code packs it (by way of Python's pyppmd 1.3.1: `Ppmd7Encoder(4, 8 << 20)`,
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

    /// A model that has filled its memory begins anew; the same in 7-Zip's code.
    #[test]
    fn streams_are_those_of_7_zip_when_memory_is_full() {
        let mut state = 0u64;
        let letters = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            b'a' + ((state >> 33) % 26) as u8
        });
        let text: Vec<u8> = letters.take(1 << 20).collect();
        let packed = pack(&text).unwrap();
        assert_eq!(packed.len(), 635_459);
        assert_eq!(xxh3_64(&packed), 0x3c80_269a_dbe7_2fb4);
        let mut raw = vec![0; text.len()];
        unpack(&packed, &mut raw).unwrap();
        assert!(raw == text);
    }

    #[test]
    fn what_is_cut_short_longer_or_no_stream_is_refused() {
        let longer = [&PACKED[..], b"x"].concat();
        for packed in [
            &[][..],
            &PACKED[..4],
            &PACKED[..12],
            &[1, 0, 0, 0, 0, 0],
            &longer,
        ] {
            assert!(unpack(packed, &mut [0; 105]).is_err(), "{packed:?}");
        }
    }
}
