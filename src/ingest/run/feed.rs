//! The inputs of a run, and the state that is kept from input to input and pass to pass.

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

/// See the head of the file.
pub(super) struct Feed<'a> {
    pub job: &'a Job,
    pub inputs: Vec<InputName>,
    pub reader: InputReader,
    /// The next input, if it was begun.
    pub ahead: Option<Ahead>,
    /// Records at the ends of streams that were cut short. The store does not count them.
    pub torn: u64,
    /// Of each input: the file as it was when it was known to hold what pass 1 read.
    pub stamps: Vec<Option<Stamp>>,
    pub spooling: Option<Spooling>,
    /// Of the stream that is read or was read last, if it was from its first byte.
    pub signer: Option<InputSigner>,
    /// The kind of names of a store that was not made from inputs.
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

    /// Returns whether the input is the one that the spool is for.
    pub fn is_spooling(&self, input: u64) -> bool {
        let spooling = self.spooling.as_ref();
        spooling.is_some_and(|spooling| spooling.input == input)
    }

    /// Checks what runs beside the reading: the spool.
    pub fn check_beside(&self) -> Result<()> {
        self.spooling.as_ref().map_or(Ok(()), Spooling::check)
    }

    pub fn stop_asked(&self) -> bool {
        self.job.stop.load(Ordering::Relaxed)
    }

    /// Waits for an input's first bytes if its format is to be guessed.
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

    /// Does what may wait for an input on a thread of its own, so that a stop is heard meanwhile.
    /// `None`: stopped from outside.
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
