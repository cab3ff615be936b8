//! Reading of the spool: as bytes in order, or to check that all is there.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::SegmentReader;
use crate::disk::Disk;
use crate::source::PIPE_BYTES;
use crate::{Error, Result};

/// Reader of the bytes of a spool between two offsets of the stream. Its errors are this crate's, wrapped in an
/// [`io::Error`].
pub struct SpoolReader {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    input: u64,
    /// First bytes of the segments not opened yet, ascending.
    segments: VecDeque<u64>,
    segment: Option<SegmentReader>,
    at: u64,
    to: u64,
    block: Vec<u8>,
    /// Number of bytes of `block` that were consumed.
    given: usize,
}

impl SpoolReader {
    /// Creates a reader of bytes `from .. to` of the stream, all of which the segments must hold.
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        input: u64,
        segments: &[u64],
        from: u64,
        to: u64,
    ) -> SpoolReader {
        let needed = segments.partition_point(|&first| first <= from);
        SpoolReader {
            disk,
            dir,
            input,
            segments: segments[needed.saturating_sub(1)..]
                .iter()
                .copied()
                .collect(),
            segment: None,
            at: from,
            to,
            block: Vec::new(),
            given: 0,
        }
    }

    /// Reads the block that holds the next byte.
    fn next_block(&mut self) -> Result<()> {
        loop {
            let segment = match &mut self.segment {
                Some(segment) if !segment.is_at_end() => segment,
                _ => {
                    let first = self.segments.pop_front().filter(|&first| first <= self.at);
                    let first = first.ok_or_else(|| missing(&self.dir, self.at))?;
                    let segment = SegmentReader::open(&*self.disk, &self.dir, first, self.input)?;
                    self.segment.insert(segment)
                }
            };
            if segment.is_at_end() {
                continue;
            }
            let head = segment.head()?;
            if head.end() > self.at {
                segment.payload(&head, &mut self.block)?;
                self.given = (self.at - head.offset) as usize;
                segment.pass(&head);
                return Ok(());
            }
            segment.pass(&head);
        }
    }
}

pub(super) fn missing(dir: &Path, offset: u64) -> Error {
    let what =
        format!("no segment holds byte {offset} of the stream (or store.redb is an old one)");
    Error::damaged(dir, what)
}

impl Read for SpoolReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.to - self.at;
        let mut want = usize::try_from(left).unwrap_or(out.len()).min(out.len());
        if want as u64 == left && want >= PIPE_BYTES {
            // The last read must be a short one. It is taken for a pause of the stream, so the spool's contents are
            // processed without waiting for what comes after them.
            want -= 1;
        }
        let mut filled = 0;
        while filled < want {
            if self.given == self.block.len() {
                self.next_block().map_err(io::Error::other)?;
            }
            let part = (want - filled).min(self.block.len() - self.given);
            out[filled..filled + part].copy_from_slice(&self.block[self.given..self.given + part]);
            filled += part;
            self.given += part;
            self.at += part as u64;
        }
        Ok(filled)
    }
}

/// Checks that the segments (their first bytes, ascending) that hold bytes `from .. to` are consecutive, with `deep`
/// their payloads too. Returns the offset at which the last of them ends in its file.
pub(super) fn walk(
    disk: &dyn Disk,
    dir: &Path,
    input: u64,
    segments: &[u64],
    (from, to): (u64, u64),
    deep: bool,
) -> Result<u64> {
    let mut reached = None;
    let mut end = 0;
    let mut payload = Vec::new();
    for (number, &first) in segments.iter().enumerate() {
        if first > reached.unwrap_or(from) {
            return Err(missing(dir, reached.unwrap_or(from)));
        }
        let mut segment = SegmentReader::open(disk, dir, first, input)?;
        if reached.is_some_and(|reached| reached != first) {
            return Err(segment.damaged("the segment before it holds its first bytes too"));
        }
        let last = number + 1 == segments.len();
        while segment.offset < to && (last || !segment.is_at_end()) {
            if segment.is_at_end() {
                return Err(segment.damaged(&format!(
                    "it is missing: {to} bytes of the stream were acknowledged"
                )));
            }
            let head = segment.head()?;
            if head.end() > to {
                return Err(segment.damaged(&format!(
                    "it goes beyond byte {to} of the stream, the last acknowledged"
                )));
            }
            if deep {
                segment.payload(&head, &mut payload)?;
            }
            segment.pass(&head);
        }
        reached = Some(segment.offset);
        end = segment.at;
    }
    match reached {
        Some(reached) if reached >= to => Ok(end),
        None if from == to => Ok(0),
        _ => Err(missing(dir, reached.unwrap_or(from))),
    }
}
