//! Decompressor of gzip (RFC 1952): consecutive members, zero padding after the last.
//!
//! Headers and trailers are read here and only the deflate data is left to the library, so that members have exact
//! bounds and the caller can decide about failed checksums.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::{Fault, GZIP_MAGIC, Step, damage};
use crate::model::DamageKind::{ChecksumFailed, InvalidData, Trailing, Truncated};
use crate::source::input::PeekReader;

/// Maximum number of compressed bytes per call: their expansion stays in the cache until its checksum is computed.
const PIECE: usize = 64 << 10;

// Header flags (RFC 1952 section 2.3.1).
const FHCRC: u8 = 1 << 1;
const FEXTRA: u8 = 1 << 2;
const FNAME: u8 = 1 << 3;
const FCOMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

#[derive(Clone, Copy)]
enum GzipState {
    Between,
    Header,
    Body,
    Trailer,
    Ended,
}

pub struct Gzip {
    inflate: Decompress,
    crc: Crc,
    state: GzipState,
    /// Offset of the current member in the compressed input.
    start: u64,
}

impl Gzip {
    pub fn new() -> Gzip {
        Gzip {
            inflate: Decompress::new(false),
            crc: Crc::new(),
            state: GzipState::Between,
            start: 0,
        }
    }

    pub fn step(&mut self, raw: &mut PeekReader, out: &mut Vec<u8>) -> Result<Step, Fault> {
        match self.state {
            GzipState::Between => self.between(raw),
            GzipState::Header => {
                self.header(raw)?;
                self.inflate.reset(false);
                self.crc.reset();
                self.state = GzipState::Body;
                Ok(Step::Data)
            }
            GzipState::Body => self.body(raw, out),
            GzipState::Trailer => self.trailer(raw),
            GzipState::Ended => Ok(Step::Finished),
        }
    }

    /// Begins another member, or skips zero padding up to the end of the input.
    fn between(&mut self, raw: &mut PeekReader) -> Result<Step, Fault> {
        self.start = raw.consumed();
        let head = raw.peek(GZIP_MAGIC.len())?;
        if head.is_empty() || head[0] == 0 {
            skip_zeros(raw)?;
            self.state = GzipState::Ended;
            Ok(Step::Finished)
        } else if head.starts_with(&GZIP_MAGIC) || GZIP_MAGIC.starts_with(head) {
            self.state = GzipState::Header;
            Ok(Step::Begin(self.start))
        } else {
            trailing(self.start)
        }
    }

    fn header(&self, raw: &mut PeekReader) -> Result<(), Fault> {
        let mut header = GzipHeader {
            raw,
            crc: Crc::new(),
            start: self.start,
        };
        let [_, _, method, flags, ..] = header.take::<10>()?;
        if method != 8 || flags & RESERVED != 0 {
            let what = format!(
                "the gzip member at compressed byte {} has an unknown method or flag",
                self.start
            );
            return damage(InvalidData, what);
        }
        if flags & FEXTRA != 0 {
            let length = u16::from_le_bytes(header.take()?);
            header.skip(usize::from(length))?;
        }
        if flags & FNAME != 0 {
            header.skip_string()?;
        }
        if flags & FCOMMENT != 0 {
            header.skip_string()?;
        }
        if flags & FHCRC != 0 {
            // The field is the low half of the CRC-32 of the header before it.
            let found = header.crc.sum() as u16;
            let recorded = u16::from_le_bytes(header.take()?);
            if found != recorded {
                let what = format!(
                    "the header of the gzip member at compressed byte {} fails its checksum",
                    self.start
                );
                return damage(ChecksumFailed, what);
            }
        }
        Ok(())
    }

    fn body(&mut self, raw: &mut PeekReader, out: &mut Vec<u8>) -> Result<Step, Fault> {
        let input = raw.peek(1)?;
        let input = &input[..input.len().min(PIECE)];
        let (from, at_end) = (out.len(), input.is_empty());
        let before = self.inflate.total_in();
        let status = self
            .inflate
            .decompress_vec(input, out, FlushDecompress::None);
        let consumed = (self.inflate.total_in() - before) as usize;
        raw.consume(consumed);
        self.crc.update(&out[from..]);
        match status {
            Ok(Status::StreamEnd) => self.state = GzipState::Trailer,
            Err(error) => {
                let what = format!(
                    "the gzip member at compressed byte {} holds invalid data near byte {}: {error}",
                    self.start,
                    raw.consumed()
                );
                return damage(InvalidData, what);
            }
            // The library may hold back bytes without room: only a call without input and output shows a cut.
            Ok(_) if at_end && out.len() == from => return truncated(self.start),
            Ok(_) => {}
        }
        Ok(Step::Data)
    }

    fn trailer(&mut self, raw: &mut PeekReader) -> Result<Step, Fault> {
        let Some((trailer, _)) = raw.peek(8)?.split_first_chunk::<8>() else {
            return truncated(self.start);
        };
        let [a, b, c, d, e, f, g, h] = *trailer;
        let crc = u32::from_le_bytes([a, b, c, d]);
        let length = u32::from_le_bytes([e, f, g, h]);
        if crc != self.crc.sum() || length != self.inflate.total_out() as u32 {
            let what = format!(
                "the gzip member at compressed byte {} fails its check: recorded CRC {crc:08x} and \
                 length {length} (modulo 2^32), found {:08x} and {}",
                self.start,
                self.crc.sum(),
                self.inflate.total_out() as u32
            );
            return damage(ChecksumFailed, what);
        }
        raw.consume(8);
        self.state = GzipState::Between;
        Ok(Step::End { checked: true })
    }
}

/// Bytes of a member's header, with their running CRC.
struct GzipHeader<'r> {
    raw: &'r mut PeekReader,
    crc: Crc,
    start: u64,
}

impl GzipHeader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let Some((bytes, _)) = self.raw.peek(N)?.split_first_chunk::<N>() else {
            return truncated(self.start);
        };
        let bytes = *bytes;
        self.crc.update(&bytes);
        self.raw.consume(N);
        Ok(bytes)
    }

    fn skip(&mut self, n: usize) -> Result<(), Fault> {
        if self.raw.pass(n, |bytes| self.crc.update(bytes))? {
            return Ok(());
        }
        truncated(self.start)
    }

    fn skip_string(&mut self) -> Result<(), Fault> {
        loop {
            let bytes = self.raw.peek(1)?;
            if let Some(zero) = memchr::memchr(0, bytes) {
                return self.skip(zero + 1);
            }
            // If nothing is left, skipping one byte reports the truncation.
            let n = bytes.len().max(1);
            self.skip(n)?;
        }
    }
}

fn skip_zeros(raw: &mut PeekReader) -> Result<(), Fault> {
    loop {
        let bytes = raw.peek(1)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let more = zeros < bytes.len();
        raw.consume(zeros);
        if more {
            return trailing(raw.consumed());
        }
    }
}

fn truncated<T>(start: u64) -> Result<T, Fault> {
    let what =
        format!("the input ends inside the gzip member that starts at compressed byte {start}");
    damage(Truncated, what)
}

fn trailing<T>(at: u64) -> Result<T, Fault> {
    let what = format!("what follows at compressed byte {at} is not a gzip member");
    damage(Trailing, what)
}
