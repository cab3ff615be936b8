//! Decompressor of zstd (RFC 8878): consecutive frames, some of them skippable. The first may be a dictionary for all
//! others, optionally compressed, as in a `.warc.zst` ("Zstandard Compression for WARC Files 1.0", IIPC).
//!
//! Frame headers are parsed here first, to know whether a frame has a checksum, and to name errors that the library
//! would report in general terms. The library is then fed one block per call: on an error it discards the bytes that
//! the same call had decompressed before.

use std::io::{self, Read};

use zstd::zstd_safe::{
    DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_dict_id_from_dict, get_error_name,
    zstd_sys::ZSTD_ErrorCode::{ZSTD_error_checksum_wrong, ZSTD_error_memory_allocation},
};

use super::{Fault, Step, ZSTD_MAGIC, damage, is_skippable};
use crate::codec::varint::number;
use crate::model::DamageKind::{ChecksumFailed, InvalidData, Trailing, Truncated, Unsupported};
use crate::source::PeekReader;

const PIECE_MAX: usize = 128 << 10;
const BLOCK_HEADER: usize = 3;
/// Maximum length of a frame header with its magic.
const HEADER_MAX: usize = 18;
const WINDOW_LOGS: std::ops::RangeInclusive<u32> = 10..=31;

#[derive(Clone, Copy)]
enum ZstdState {
    Between,
    Header,
    Body {
        /// Number of compressed bytes up to the end of the current block, or of a header.
        wanted: usize,
        /// True if the last call filled its output: the bytes that it held back must be fetched first.
        held_back: bool,
    },
}

pub struct Zstd {
    context: DCtx<'static>,
    window_max: u64,
    state: ZstdState,
    start: u64,
    checked: bool,
    /// ID of the dictionary at the input's start, or 0 if the dictionary has no ID; `None` without a dictionary.
    pub dictionary: Option<u32>,
}

impl Zstd {
    pub fn new(window_log: u32) -> io::Result<Zstd> {
        let window_log = window_log.clamp(*WINDOW_LOGS.start(), *WINDOW_LOGS.end());
        let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        context
            .set_parameter(DParameter::WindowLogMax(window_log))
            .map_err(|code| io::Error::other(get_error_name(code)))?;
        Ok(Zstd {
            context,
            window_max: 1 << window_log,
            state: ZstdState::Between,
            start: 0,
            checked: false,
            dictionary: None,
        })
    }

    pub fn step(&mut self, raw: &mut PeekReader, out: &mut Vec<u8>) -> Result<Step, Fault> {
        match self.state {
            ZstdState::Between => self.between(raw),
            ZstdState::Header => self.header(raw),
            ZstdState::Body { wanted, held_back } => self.body(raw, out, wanted, held_back),
        }
    }

    fn between(&mut self, raw: &mut PeekReader) -> Result<Step, Fault> {
        loop {
            self.start = raw.consumed;
            let head = raw.peek(4)?;
            if head.is_empty() {
                return Ok(Step::Finished);
            } else if self.start == 0 && head.starts_with(&DICTIONARY_MAGIC) {
                self.take_dictionary(raw)?;
            } else if is_skippable(head) {
                self.skip_frame(raw)?;
            } else if head.starts_with(&ZSTD_MAGIC) || ZSTD_MAGIC.starts_with(head) {
                self.state = ZstdState::Header;
                return Ok(Step::Begin(self.start));
            } else {
                let what = format!(
                    "what follows at compressed byte {} is not a zstd frame",
                    self.start
                );
                return damage(Trailing, what);
            }
        }
    }

    fn take_dictionary(&mut self, raw: &mut PeekReader) -> Result<(), Fault> {
        let content = read_dictionary(raw, self.window_max)?;
        if content.is_empty() {
            return Ok(());
        }
        if self.context.load_dictionary(&content).is_err() {
            // The library reports a lack of memory for every error.
            return bad_dictionary("it cannot be loaded");
        }
        self.dictionary = Some(get_dict_id_from_dict(&content).map_or(0, |id| id.get()));
        Ok(())
    }

    fn skip_frame(&self, raw: &mut PeekReader) -> Result<(), Fault> {
        let Some(&[_, _, _, _, a, b, c, d]) = raw.peek(8)?.first_chunk::<8>() else {
            return self.truncated();
        };
        raw.consume(8);
        if raw.pass(u32::from_le_bytes([a, b, c, d]) as usize, |_| ())? {
            return Ok(());
        }
        self.truncated()
    }

    /// Checks the header; the library then reads it again.
    fn header(&mut self, raw: &mut PeekReader) -> Result<Step, Fault> {
        let Some(header) = FrameHeader::parse(raw.peek(HEADER_MAX)?) else {
            return self.truncated();
        };
        if header.dictionary != 0 && self.dictionary != Some(header.dictionary) {
            let what = format!(
                "the zstd frame at compressed byte {} needs dictionary {}, and the input {}: decompress \
                 it with zstd -D first",
                self.start,
                header.dictionary,
                match self.dictionary {
                    None => "does not begin with one".to_owned(),
                    Some(0) => "begins with one without a number".to_owned(),
                    Some(other) => format!("begins with dictionary {other}"),
                }
            );
            return damage(Unsupported, what);
        }
        if header.window > self.window_max {
            let log = u64::BITS - (header.window - 1).leading_zeros();
            let advice = if WINDOW_LOGS.contains(&log) {
                format!("raise `limit_zstd_window` to {log}")
            } else {
                "zstd cannot read it as a stream".into()
            };
            let what = format!(
                "the zstd frame at compressed byte {} needs a window of {} bytes, over the limit of \
                 {}: {advice}",
                self.start, header.window, self.window_max
            );
            return damage(Unsupported, what);
        }
        self.checked = header.checked;
        self.context
            .reset(ResetDirective::SessionOnly)
            .map_err(|code| self.fault(code))?;
        self.state = ZstdState::Body {
            wanted: ZSTD_MAGIC.len(),
            held_back: false,
        };
        Ok(header.size.map_or(Step::Data, Step::Size))
    }

    fn body(
        &mut self,
        raw: &mut PeekReader,
        out: &mut Vec<u8>,
        wanted: usize,
        held_back: bool,
    ) -> Result<Step, Fault> {
        let piece: &[u8] = if held_back {
            &[]
        } else {
            let at_hand = raw.peek(wanted)?;
            if at_hand.is_empty() {
                return self.truncated();
            }
            &at_hand[..at_hand.len().min(wanted)]
        };
        let mut input = InBuffer::around(piece);
        let from = out.len();
        let mut output = OutBuffer::around_pos(out, from);
        let result = self.context.decompress_stream(&mut output, &mut input);
        let consumed = input.pos;
        let hint = result.map_err(|code| self.fault(code))?;
        raw.consume(consumed);
        if hint == 0 {
            self.state = ZstdState::Between;
            return Ok(Step::End {
                checked: self.checked,
            });
        }
        self.state = ZstdState::Body {
            wanted: piece_of(hint),
            held_back: out.len() == out.capacity(),
        };
        Ok(Step::Data)
    }

    fn fault(&self, code: usize) -> Fault {
        let number = code.wrapping_neg();
        if number == ZSTD_error_memory_allocation as usize {
            return Fault::Io(io::ErrorKind::OutOfMemory.into());
        }
        let start = self.start;
        if number == ZSTD_error_checksum_wrong as usize {
            let what = format!("the zstd frame at compressed byte {start} fails its checksum");
            return Fault::Damage(ChecksumFailed, what);
        }
        let name = get_error_name(code);
        let what = format!("the zstd frame at compressed byte {start} holds invalid data: {name}");
        Fault::Damage(InvalidData, what)
    }

    fn truncated<T>(&self) -> Result<T, Fault> {
        let what = format!(
            "the input ends inside the zstd frame that starts at compressed byte {}",
            self.start
        );
        damage(Truncated, what)
    }
}

/// Returns how many of the requested bytes to pass at once: without the next block's header, which may be bad.
fn piece_of(hint: usize) -> usize {
    match hint {
        0..=BLOCK_HEADER => hint.max(1),
        _ => (hint - BLOCK_HEADER).min(PIECE_MAX),
    }
}

/// Fields of a frame header (RFC 8878 section 3.1.1.1).
#[derive(Debug, PartialEq, Eq)]
struct FrameHeader {
    checked: bool,
    /// Dictionary ID; 0 if there is none.
    dictionary: u32,
    window: u64,
    size: Option<u64>,
}

impl FrameHeader {
    /// Parses the header of a frame; returns `None` if `bytes` ends inside it.
    fn parse(bytes: &[u8]) -> Option<FrameHeader> {
        let (&descriptor, rest) = bytes.get(ZSTD_MAGIC.len()..)?.split_first()?;
        let [window, dictionary, size_bytes] = field_lengths(descriptor);
        let (window, rest) = rest.split_at_checked(window)?;
        let (dictionary, rest) = rest.split_at_checked(dictionary)?;
        let size = number(rest.get(..size_bytes)?);
        // Sizes of two bytes count from 256.
        let size = if size_bytes == 2 { size + 256 } else { size };
        let window = window.first().map(|byte| {
            let base = 1u64 << (10 + (byte >> 3));
            base + base / 8 * u64::from(byte & 7)
        });
        Some(FrameHeader {
            checked: descriptor & 4 != 0,
            dictionary: number(dictionary) as u32,
            window: window.unwrap_or(size),
            size: (size_bytes > 0).then_some(size),
        })
    }
}

/// Returns the lengths of the fields after the descriptor: window, which a single segment lacks, dictionary ID, size.
fn field_lengths(descriptor: u8) -> [usize; 3] {
    let is_single_segment = descriptor & 0x20 != 0;
    let size = match descriptor >> 6 {
        0 => usize::from(is_single_segment),
        log => 1 << log,
    };
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    [usize::from(!is_single_segment), dictionary, size]
}

const DICTIONARY_MAGIC: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];

/// Reads the frame at the input's start, whose magic was checked, and returns the dictionary, which may be empty.
fn read_dictionary(raw: &mut PeekReader, window_max: u64) -> Result<Vec<u8>, Fault> {
    let window_log = window_max.ilog2();
    let too_large = || {
        let what = format!(
            "the zstd dictionary that the input begins with is larger than 2^{window_log} bytes, or its window: raise \
             `limit_zstd_window`"
        );
        damage(Unsupported, what)
    };
    let what = "the input ends inside the zstd dictionary it begins with";
    let Some(&[_, _, _, _, a, b, c, d]) = raw.peek(8)?.first_chunk::<8>() else {
        return damage(Truncated, what);
    };
    raw.consume(8);
    let length = u32::from_le_bytes([a, b, c, d]);
    if u64::from(length) > window_max {
        return too_large();
    }
    let mut packed = Vec::new();
    if !raw.pass(length as usize, |bytes| packed.extend_from_slice(bytes))? {
        return damage(Truncated, what);
    }
    if !packed.starts_with(&ZSTD_MAGIC) {
        return Ok(packed);
    }
    // `window` is the window, or the size if that is smaller.
    if FrameHeader::parse(&packed).is_some_and(|header| header.window > window_max) {
        return too_large();
    }
    let mut content = Vec::new();
    let result = zstd::Decoder::with_buffer(&packed[..]).and_then(|decoder| {
        let mut decoder = decoder.single_frame();
        decoder.window_log_max(window_log)?;
        decoder.take(window_max + 1).read_to_end(&mut content)
    });
    match result {
        Ok(_) if content.len() as u64 > window_max => too_large(),
        Ok(_) => Ok(content),
        Err(error) => bad_dictionary(&error.to_string()),
    }
}

fn bad_dictionary<T>(why: &str) -> Result<T, Fault> {
    let what = format!("the zstd dictionary that the input begins with is damaged: {why}");
    damage(InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a block and the next one's header went into one call. If that header was bad, the block was lost
    /// when the output had much room, but came out when it had little.
    #[test]
    fn a_block_before_a_bad_one_comes_out_whatever_the_room() {
        // A single segment of 17 bytes: a raw block of 6, then a last block, raw and too large.
        let text = b"a\nbcd\n";
        let (start, bad) = ([0x20, 17, 6 << 3, 0, 0], [0x29, 0x22, 0x11]);
        let frame = [&ZSTD_MAGIC[..], &start, text, &bad].concat();
        for room in [1, 5, 6, 7, 4096] {
            let mut raw = PeekReader::new(Box::new(io::Cursor::new(frame.clone())));
            let mut zstd = Zstd::new(17).unwrap();
            let mut found = Vec::new();
            let fault = loop {
                let mut out = Vec::with_capacity(room);
                let step = zstd.step(&mut raw, &mut out);
                found.extend(out);
                if let Err(fault) = step {
                    break fault;
                }
            };
            assert!(matches!(fault, Fault::Damage(InvalidData, _)), "{fault:?}");
            assert_eq!(found, text, "room for {room}");
        }
    }

    #[test]
    fn frame_headers() {
        // Built by hand from RFC 8878, section 3.1.1.1.
        let parse = |tail: &[u8]| FrameHeader::parse(&[&ZSTD_MAGIC[..], tail].concat());
        let header = |checked, dictionary, window| {
            Some(FrameHeader {
                checked,
                dictionary,
                window,
                size: None,
            })
        };
        let single = |checked, dictionary, size| {
            Some(FrameHeader {
                checked,
                dictionary,
                window: size,
                size: Some(size),
            })
        };
        // Window: exponent 17 (log 27), mantissa 0; then mantissa 1.
        assert_eq!(parse(&[0x00, 17 << 3]), header(false, 0, 1 << 27));
        assert_eq!(
            parse(&[0x04, 17 << 3 | 1]),
            header(true, 0, (1 << 27) + (1 << 24))
        );
        // Single segment with a size of one byte, two bytes (plus 256), four, eight.
        assert_eq!(parse(&[0x24, 200]), single(true, 0, 200));
        assert_eq!(parse(&[0x60, 1, 1]), single(false, 0, 257 + 256));
        assert_eq!(parse(&[0xa0, 0, 0, 0, 1]), single(false, 0, 1 << 24));
        assert_eq!(
            parse(&[0xe0, 0, 0, 0, 0, 0, 0, 0, 1]),
            single(false, 0, 1 << 56)
        );
        // A dictionary id of two bytes.
        assert_eq!(parse(&[0x22, 0x39, 0x30, 9]), single(false, 12345, 9));
        // Truncated.
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[0x00]), None);
        assert_eq!(parse(&[0x60, 1]), None);
        assert_eq!(parse(&[0x22, 0x39]), None);
    }
}
