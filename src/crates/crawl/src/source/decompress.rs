//! Decompression in steps, each of which appends to the caller's buffer.
//!
//! A step reports where members (gzip) and frames (zstd) begin and end, so that the caller knows what is verified. Up
//! to the first fault, the bytes yielded do not depend on how reads cut the input or on the room given to each step.

mod gzip;
mod zstd;

use std::io;

use super::input::PeekReader;
use super::sniff::sniff;
use super::table::TableText;
use crate::Error;
use crate::model::Compression;
use crate::model::DamageKind;

/// Result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A member or frame begins; its first byte is at this offset of the compressed input.
    Begin(u64),
    /// The member or frame declares this decompressed size; if it differs, the member is damaged.
    Size(u64),
    /// Bytes were appended, perhaps none. Not an end: step again.
    Data,
    /// The member or frame ended well. `checked`: it had a checksum, which matched.
    End { checked: bool },
    /// The input ended at a valid place.
    Finished,
}

/// Reason why a step failed. Bytes that it appended before are as good as those of earlier steps.
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

/// Converts the error of a file that another is read from: its damage becomes that one's.
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

/// Decompressor of one input.
pub(super) enum Unpacker {
    Plain,
    Gzip(gzip::Gzip),
    Zstd(Box<zstd::Zstd>),
    /// Table, which reads its file itself.
    Table(Box<TableText>),
}

impl Unpacker {
    /// Chooses the decompressor by the first bytes of `raw`.
    pub fn sniff(raw: &mut PeekReader, zstd_window_log: u32) -> io::Result<Unpacker> {
        Unpacker::new(sniff(raw.peek(4)?), zstd_window_log)
    }

    /// Returns the decompressor of a stream whose compression is known.
    pub fn new(compression: Compression, zstd_window_log: u32) -> io::Result<Unpacker> {
        Ok(match compression {
            // A stream is not a table, but may be a table's text.
            Compression::Plain | Compression::Table => Unpacker::Plain,
            Compression::Gzip => Unpacker::Gzip(gzip::Gzip::new()),
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

    /// Returns whether resuming at a later place needs what was read at the input's start.
    pub fn needs_start(&self) -> bool {
        match self {
            Unpacker::Plain | Unpacker::Gzip(_) | Unpacker::Table(_) => false,
            Unpacker::Zstd(zstd) => zstd.has_dictionary(),
        }
    }

    /// Appends decompressed bytes to `out`, within its capacity, of which some must be free.
    pub fn step(&mut self, raw: &mut PeekReader, out: &mut Vec<u8>) -> Result<Step, Fault> {
        debug_assert!(out.len() < out.capacity());
        match self {
            Unpacker::Plain => Ok(match raw.read_into(out)? {
                0 => Step::Finished,
                _ => Step::Data,
            }),
            Unpacker::Gzip(gzip) => gzip.step(raw, out),
            Unpacker::Zstd(zstd) => zstd.step(raw, out),
            Unpacker::Table(text) => text.step(out),
        }
    }
}
