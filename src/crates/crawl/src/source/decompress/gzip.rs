//! Decompressor of gzip (RFC 1952): consecutive members, whose bounds the caller gets to know, and zero padding after the
//! last. The library checks each member's header and checksums.

use flate2::{Decompress, FlushDecompress, Status};

use super::{Fault, GZIP_MAGIC, Step, damage};
use crate::model::DamageKind::{ChecksumFailed, InvalidData, Trailing, Truncated};
use crate::source::input::PeekReader;

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

pub struct Gzip {
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
