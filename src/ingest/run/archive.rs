//! What is special about an input that is a crawl archive: its parts must follow each other, its names
//! go on from part to part, and in a pass after the first they are known.
//!
//! A place in an archive is the end of a block and the number of a record: a block is read whole, and
//! all of it is under the place's hash. A run that goes on inside an archive reads it from its start,
//! but of the records before its place only the names.

use super::{Reading, Run};
use crate::archive::Chain;
use crate::engine::{NameMap, Resolver, Resolving};
use crate::pipeline::Piece;
use crate::source::{InputName, Summary};
use crate::store::Place;
use crate::{Error, Result};

/// How far an archive was followed.
pub(super) struct ArchiveCursor {
    chain: Chain,
    /// Its names whose pages were known before it was begun: all or none.
    known: u64,
    /// Where an earlier run stopped, until that is reached.
    until: Option<Place>,
}

impl ArchiveCursor {
    /// Its names whose pages were known before it was begun: all or none.
    pub fn known(&self) -> u64 {
        self.known
    }
}

impl Run<'_> {
    /// Begins with an archive, or goes on from `place`.
    pub(super) fn follow_archive(&mut self, place: Place) -> (ArchiveCursor, Resolver) {
        let at = self.progress.input as usize;
        let known = self.known_names(at as u64);
        let names = self.feed.names.get_mut(at).map(std::mem::take);
        let cursor = ArchiveCursor {
            chain: Chain::default(),
            known,
            until: (place.records > 0).then_some(place),
        };
        (cursor, Resolver::of_archive(names.unwrap_or_default()))
    }

    /// Names of an input, if it is an archive, whose pages are known from an earlier pass: all or none.
    pub(super) fn known_names(&self, input: u64) -> u64 {
        let names = self.feed.names.get(input as usize);
        names.map_or(0, NameMap::len)
    }

    /// The first of the piece's entries that is to be applied; `None`: all of it was before.
    pub(super) fn follow(
        &mut self,
        reading: &mut Reading<'_>,
        names: &mut Resolving<'_>,
        piece: &Piece,
    ) -> Result<Option<usize>> {
        let Some(archive) = &mut reading.archive else {
            return Ok(Some(0));
        };
        archive
            .chain
            .follow(&piece.chunk, &piece.batch, reading.input)?;
        let (Some(place), Some(part)) = (archive.until, piece.batch.part()) else {
            return Ok(Some(0));
        };
        let end = piece.chunk.offset + part.end as u64;
        let mut done = u64::from(part.records);
        // A spool holds what was read: its places have no hash.
        let trusted = self.is_spooling(self.progress.input);
        if end >= place.offset {
            let mut hash = piece.chunk.prefix.clone();
            hash.update(&piece.chunk.bytes[..part.end]);
            let inside = place.records.checked_sub(part.first_record);
            done = match inside.filter(|&inside| inside <= done) {
                Some(inside)
                    if end == place.offset && (trusted || hash.digest128() == place.prefix) =>
                {
                    inside
                }
                _ => return Err(another(reading.input, place)),
            };
            archive.until = None;
        }
        let last = (done as usize).checked_sub(1);
        let names_end = last.map_or(part.first_name, |last| piece.batch.entries[last].names_end);
        names
            .recall(&self.engine, names_end)
            .map_err(|_| another(reading.input, place))?;
        if end < place.offset {
            // The place's own chunk must begin with a hash of its own.
            if piece.last {
                reading.hash = None;
            }
            return Ok(None);
        }
        Ok(Some(done as usize))
    }

    /// Where an archive's input ends, the archive must have, and not before the place to go on from.
    pub(super) fn end_archive(
        &mut self,
        reading: &Reading<'_>,
        names: NameMap,
        summary: &Summary,
    ) -> Result<()> {
        let Some(archive) = &reading.archive else {
            return Ok(());
        };
        archive.chain.finish(reading.input, summary.bytes)?;
        if let Some(place) = archive.until {
            return Err(another(reading.input, place));
        }
        if self.progress.pass < self.progress.repeat && !self.engine.storage().keeps_rows() {
            let at = self.progress.input as usize;
            self.feed
                .names
                .resize_with(self.feed.names.len().max(at + 1), Default::default);
            self.feed.names[at] = names;
        }
        Ok(())
    }
}

fn another(input: &InputName, place: Place) -> Error {
    Error::InputChanged(format!(
        "{input}: is not what was read before, up to record {} in its first {} bytes; give the same \
         input again",
        place.records, place.offset
    ))
}
