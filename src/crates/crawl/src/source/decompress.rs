//! Decompression in steps that append to the caller's buffer. An input's first bytes tell its compression.
//!
//! A step reports where members (gzip) and frames (zstd) begin and end, so that the caller knows what is verified. Up
//! to the first fault, the bytes yielded do not depend on how reads cut the input or on the room given to each step.

mod zstd;

use std::io;

use flate2::{Decompress, FlushDecompress, Status};

use super::PeekReader;
use super::table::Rows;
use crate::Error;
use crate::model::DamageKind::{ChecksumFailed, InvalidData, Trailing, Truncated};
use crate::model::{Compression, DamageKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A member or frame begins; its first byte is at this offset of the compressed input.
    Begin(u64),
    /// The member or frame declares this decompressed size; if the size differs, the member is damaged.
    Size(u64),
    /// Bytes were appended, perhaps none. This is not an end: step again.
    Data,
    /// Bytes were appended, perhaps none, and the member or frame ended well: with a checksum, if `checked`.
    End { checked: bool },
    /// The input ended at a valid place.
    Finished,
}

/// Reason why a step failed. The bytes appended before the fault are as good as those of earlier steps.
#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    Damage(DamageKind, String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Io(error)
    }
}

/// The damage of a file that belongs to an input becomes the input's.
impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        match error {
            Error::Corrupt { input, damage, .. } => {
                Fault::Damage(damage.kind, format!("{input}: {}", damage.what))
            }
            error => Fault::Io(io::Error::other(error)),
        }
    }
}

fn damage<T>(kind: DamageKind, what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Damage(kind, what.into()))
}

/// Capacity in bytes that a buffer of a table's text has beyond its full length, for the end of its last row.
const SLACK: usize = 4 << 10;

pub(super) enum Unpacker {
    Plain,
    Gzip(Gzip),
    Zstd(Box<zstd::Zstd>),
    /// Table, which reads its file itself; `None` after its last row.
    Table(Option<Rows>),
}

impl Unpacker {
    pub fn new(compression: Compression, zstd_window_log: u32) -> io::Result<Unpacker> {
        Ok(match compression {
            // A stream is not a table, but may be a table's text.
            Compression::Plain | Compression::Table => Unpacker::Plain,
            Compression::Gzip => Unpacker::Gzip(Gzip::new()),
            Compression::Zstd => Unpacker::Zstd(Box::new(zstd::Zstd::new(zstd_window_log)?)),
        })
    }

    pub fn compression(&self) -> Compression {
        match self {
            Unpacker::Plain => Compression::Plain,
            Unpacker::Gzip(_) => Compression::Gzip,
            Unpacker::Zstd(_) => Compression::Zstd,
            Unpacker::Table(_) => Compression::Table,
        }
    }

    /// Returns whether resuming at a later place needs the input's start, as it does if frames come after a dictionary.
    pub fn needs_start(&self) -> bool {
        matches!(self, Unpacker::Zstd(zstd) if zstd.dictionary.is_some())
    }

    /// Appends decompressed bytes within the free capacity of `out`, or the text of a table until it has `full` bytes.
    pub fn step(
        &mut self,
        raw: &mut PeekReader,
        out: &mut Vec<u8>,
        full: usize,
    ) -> Result<Step, Fault> {
        debug_assert!(out.len() < out.capacity());
        match self {
            Unpacker::Plain => Ok(match raw.read_into(out)? {
                0 => Step::Finished,
                _ => Step::Data,
            }),
            Unpacker::Gzip(gzip) => gzip.step(raw, out),
            Unpacker::Zstd(zstd) => zstd.step(raw, out),
            Unpacker::Table(table) => {
                let Some(rows) = table else {
                    return Ok(Step::Finished);
                };
                out.reserve_exact((full + SLACK).saturating_sub(out.len()));
                while out.len() < full {
                    if !rows(out)? {
                        *table = None;
                        break;
                    }
                }
                Ok(Step::Data)
            }
        }
    }
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Returns whether `head` begins a skippable zstd frame: 0x184D2A50 to 0x184D2A5F, little-endian.
fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Returns the compression of an input whose first four bytes, or all if it is shorter, are `head`. One that ends
/// within the magic of gzip or zstd counts as truncated.
pub(super) fn sniff(head: &[u8]) -> Compression {
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

/// Maximum number of compressed bytes per call: their expansion stays in the cache until its checksum is computed.
const PIECE: usize = 64 << 10;
const WINDOW_BITS: u8 = 15;

#[derive(Clone, Copy)]
enum GzipState {
    Between,
    Member,
    /// After a member whose checksum matched; the next step reports its end.
    Checked,
}

/// Decompressor of gzip (RFC 1952): members, and zero padding after the last. The library checks each member.
pub(super) struct Gzip {
    inflate: Decompress,
    state: GzipState,
    start: u64,
}

impl Gzip {
    pub fn new() -> Gzip {
        Gzip {
            inflate: Decompress::new_gzip(WINDOW_BITS),
            state: GzipState::Between,
            start: 0,
        }
    }

    pub fn step(&mut self, raw: &mut PeekReader, out: &mut Vec<u8>) -> Result<Step, Fault> {
        match self.state {
            GzipState::Between => self.between(raw),
            GzipState::Member => self.member(raw, out),
            GzipState::Checked => {
                self.state = GzipState::Between;
                Ok(Step::End { checked: true })
            }
        }
    }

    fn between(&mut self, raw: &mut PeekReader) -> Result<Step, Fault> {
        self.start = raw.consumed;
        let head = raw.peek(GZIP_MAGIC.len())?;
        if head.is_empty() || head[0] == 0 {
            skip_zeros(raw)?;
            Ok(Step::Finished)
        } else if head.starts_with(&GZIP_MAGIC) || GZIP_MAGIC.starts_with(head) {
            self.inflate.reset(true);
            self.state = GzipState::Member;
            Ok(Step::Begin(self.start))
        } else {
            trailing(self.start)
        }
    }

    fn member(&mut self, raw: &mut PeekReader, out: &mut Vec<u8>) -> Result<Step, Fault> {
        let input = raw.peek(1)?;
        let input = &input[..input.len().min(PIECE)];
        let (from, at_end) = (out.len(), input.is_empty());
        let before = self.inflate.total_in();
        let status = self
            .inflate
            .decompress_vec(input, out, FlushDecompress::None);
        raw.consume((self.inflate.total_in() - before) as usize);
        let start = self.start;
        match status {
            Ok(Status::StreamEnd) => {
                self.state = GzipState::Checked;
                Ok(Step::Data)
            }
            // The library may hold back bytes without room: only a call without input and output shows a cut.
            Ok(_) if at_end && out.len() == from => damage(
                Truncated,
                format!(
                    "the input ends inside the gzip member that starts at compressed byte {start}"
                ),
            ),
            Ok(_) => Ok(Step::Data),
            Err(error) => match error.message() {
                Some(
                    check @ ("incorrect data check"
                    | "incorrect length check"
                    | "header crc mismatch"),
                ) => damage(
                    ChecksumFailed,
                    format!(
                        "the gzip member at compressed byte {start} fails its check: {check}, near byte {}",
                        raw.consumed
                    ),
                ),
                _ => damage(
                    InvalidData,
                    format!(
                        "the gzip member at compressed byte {start} holds invalid data near byte {}: {error}",
                        raw.consumed
                    ),
                ),
            },
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
            return trailing(raw.consumed);
        }
    }
}

fn trailing<T>(at: u64) -> Result<T, Fault> {
    let what = format!("what follows at compressed byte {at} is not a gzip member");
    damage(Trailing, what)
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
