//! Inputs of a run, and the state that is kept between inputs and passes.

use std::sync::atomic::Ordering;

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::cursor::Cursor;
use super::opened::{Ahead, InputSigner};
use super::stamp::Stamp;
use crate::batch::Rules;
use crate::decode::Names;
use crate::formats::is_decided;
use crate::ingest::Job;
use crate::ingest::spooling::Spooling;
use crate::pipeline::{InputReader, PATIENCE};
use crate::source::{HEAD_BYTES, InputName, Source};
use crate::threads::spawn;
use crate::{Error, Result};

/// Inputs of a run and what reading them needs.
pub(super) struct Feed<'a> {
    pub job: &'a Job,
    pub inputs: Vec<InputName>,
    pub reader: InputReader,
    /// Next input, if it was prefetched.
    pub ahead: Option<Ahead>,
    /// Number of records at the ends of streams that were cut short; the store does not count them.
    pub torn: u64,
    /// Stamps of the input files when they were known to hold what pass 1 read.
    pub stamps: Vec<Option<Stamp>>,
    pub spooling: Option<Spooling>,
    /// Signer of the current or last stream, if it was read from its first byte.
    pub signer: Option<InputSigner>,
    /// Kind of names in a store that was not written from inputs.
    pub kind: Option<Names>,
}

impl<'a> Feed<'a> {
    pub fn new(
        job: &'a Job,
        inputs: Vec<InputName>,
        spooling: Option<Spooling>,
        rules: Rules,
    ) -> Feed<'a> {
        let mut reader = InputReader::new(rules, &job.source, job.threads);
        reader.delays = job.delays;
        Feed {
            job,
            reader,
            ahead: None,
            torn: 0,
            stamps: vec![None; inputs.len()],
            inputs,
            spooling,
            signer: None,
            kind: None,
        }
    }

    /// Returns true if the spool is for this input.
    pub fn is_spooling(&self, input: u64) -> bool {
        let spooling = self.spooling.as_ref();
        spooling.is_some_and(|spooling| spooling.input == input)
    }

    /// Checks the concurrent spool for errors.
    pub fn check_beside(&self) -> Result<()> {
        self.spooling.as_ref().map_or(Ok(()), Spooling::check)
    }

    pub fn stop_asked(&self) -> bool {
        self.job.stop.load(Ordering::Relaxed)
    }

    /// Returns a function that waits for an input's first bytes if its format has to be guessed.
    pub(super) fn to_head(
        &self,
        cursor: &Cursor,
    ) -> impl FnOnce(Source) -> Result<Source> + Send + use<> {
        let known = self.job.format.is_some()
            || cursor.input().is_some() && cursor.progress.place.offset > HEAD_BYTES as u64;
        move |mut source| {
            if !known {
                source.head_until(is_decided)?;
            }
            Ok(source)
        }
    }

    /// Runs work that may wait for an input on another thread, so that a stop is noticed meanwhile. Returns `None` if
    /// stopped from outside.
    pub fn patiently<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        let (give, take) = bounded(1);
        spawn("open", move || drop(give.send(work())))?;
        loop {
            match take.recv_timeout(PATIENCE) {
                Ok(done) => return done.map(Some),
                Err(RecvTimeoutError::Timeout) if self.stop_asked() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => self.check_beside()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("a reading thread failed"));
                }
            }
        }
    }
}
