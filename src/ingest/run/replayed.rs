//! Keeping what a pass reads of a file, and applying that again in the passes after it instead of reading
//! the file.

use super::begin::Begun;
use super::{Reading, Run};
use crate::batch::Entry;
use crate::formats::Format;
use crate::ingest::{Every, Note};
use crate::pipeline::Hashes;
use crate::pipeline::{Piece, Pipeline};
use crate::source::{InputName, Summary};
use crate::store::Place;
use crate::{Error, Result};

impl Run<'_> {
    /// Begins to keep an input that is about to be read, if a later pass can make use of it.
    pub(super) fn begin_keeping(&mut self, name: &InputName, length: Option<u64>) {
        let progress = &self.progress;
        let again = progress.pass < progress.repeat && progress.place == Place::start();
        let is_file = |name: &InputName| matches!(name, InputName::File(path) if path.is_file());
        if again
            && is_file(name)
            && let Err(error) = self.feed.replay.begin(length)
        {
            self.not_replayed(name, &error.to_string());
        }
    }

    /// Whether the hash at the end of each entry is to be kept: where a run may stop inside a piece. All of an
    /// archive's piece is under one.
    pub(super) fn keeps_each(&self, format: Format) -> bool {
        let job = self.job;
        let by_records = |every| matches!(every, Every::Records(_));
        let stops = by_records(job.checkpoint_every) || by_records(job.snapshot_every);
        stops && format != Format::Cza && self.feed.replay.is_keeping()
    }

    /// Notes the hash at the end of an entry, if those are kept. Runs stop behind entries of pages only.
    pub(super) fn note_hash(
        &mut self,
        reading: &mut Reading<'_>,
        piece: &Piece,
        entry: &Entry,
    ) -> Result<()> {
        if reading.each.is_some() && entry.what.is_of_page() {
            self.note_place(reading, piece)?;
        }
        if let Some(each) = &mut reading.each {
            each.push(self.progress.place.prefix);
        }
        Ok(())
    }

    /// Keeps a piece that was applied, if its input is being kept.
    pub(super) fn keep(&mut self, reading: &mut Reading<'_>, piece: &Piece) {
        if !self.feed.replay.is_keeping() {
            reading.each = None;
            return;
        }
        let hashes = Hashes {
            before: piece.prefix(),
            each: reading
                .each
                .as_mut()
                .map(std::mem::take)
                .unwrap_or_default(),
            after: self.progress.place.prefix,
            end: self.progress.place.offset,
        };
        let page_of = |name| self.engine.page_of(&piece.batch, name);
        match self.feed.replay.keep(piece, page_of, &hashes) {
            Ok(true) => {}
            Ok(false) => {
                let why = "what is kept for later passes has no room (`replay_disk`)";
                self.not_replayed(reading.input, why);
            }
            Err(error) => self.not_replayed(reading.input, &error.to_string()),
        }
    }

    /// The input was read to its end.
    pub(super) fn end_keeping(&mut self, reading: &Reading<'_>, summary: &Summary) {
        let (input, compression) = (self.progress.input as usize, reading.compression);
        let length = reading.compressed_len;
        if let Err(error) = self.feed.replay.end(input, summary, compression, length) {
            self.not_replayed(reading.input, &error.to_string());
        }
    }

    fn not_replayed(&mut self, input: &InputName, why: &str) {
        self.observer.note(Note::NotReplayed { input, why });
    }

    /// Begins an input at its start, if it was kept.
    pub(super) fn begin_replay(&self, input: u64) -> Result<Option<Begun>> {
        let at = input as usize;
        let Some((kept, reader)) = self.feed.replay.reader(at) else {
            return Ok(None);
        };
        Ok(Some(Begun {
            stamp: None,
            format: self.progress.inputs[at].format.parse()?,
            compression: kept.compression,
            compressed_len: kept.compressed_len,
            replayed: true,
            pipeline: Pipeline::replay(
                reader,
                kept.summary.clone(),
                &self.feed.pool,
                self.delays(),
            )?,
        }))
    }

    /// What was kept of an input cannot be read back: the input is read instead.
    pub(super) fn end_replay(&mut self, name: &InputName, error: &Error) {
        self.feed.replay.forget(self.progress.input as usize);
        self.not_replayed(name, &error.to_string());
    }

    /// The place's hash, in an input that is replayed.
    pub(super) fn note_replayed_place(&mut self, piece: &Piece, hashes: &Hashes) -> Result<()> {
        let place = &mut self.progress.place;
        if place.offset == hashes.end {
            place.prefix = hashes.after;
            return Ok(());
        }
        let mut each = piece.batch.entries.iter().zip(&hashes.each);
        let at = each.find(|(entry, _)| piece.chunk.offset + entry.end == place.offset);
        let (_, &hash) =
            at.ok_or_else(|| Error::internal("a replay was stopped where it cannot be"))?;
        place.prefix = hash;
        Ok(())
    }
}
