//! Standard input with a spool: what a run may do with an existing spool, and the threads that write it.
//!
//! Acknowledged bytes are a promise: a run that would not read them is refused, unless it states that another stream
//! begins (`--new-stream`).

use std::io::{self, Read};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use super::plan::Plan;
use super::{IngestJob, Stream};
use crate::source::{Compression, HEAD_BYTES, InputName, Restart};
use crate::store::{
    Disk, InputProgress, Spool, SpoolReader, SpoolState, Spooled, remove_spool, spool_state,
};
use crate::threads::spawn;
use crate::{Error, Result};

fn refused<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::Conflict(what.into()))
}

/// Returns the state of the store's spool. For a job that begins a new stream a damaged one counts as none.
pub(super) fn found(disk: &dyn Disk, job: &IngestJob) -> Result<Option<SpoolState>> {
    match spool_state(disk, &job.store) {
        Err(Error::Damaged { .. }) if job.stream == Stream::New => Ok(None),
        found => found,
    }
}

/// Spool of a running ingest.
pub(super) struct Spooling {
    spool: Arc<Spool>,
    /// Number of the stream among the inputs.
    pub input: u64,
    /// Thread that syncs the spool by time; it ends when the sender is dropped.
    clock: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Spooling {
    /// Opens the spool that `plan` needs, if any, or returns why that is impossible. `committed` is the progress of the
    /// last checkpoint, `found` the state of the spool.
    pub fn open(
        job: &IngestJob,
        disk: &Arc<dyn Disk>,
        plan: &Plan,
        committed: &InputProgress,
        found: Option<SpoolState>,
    ) -> Result<Option<Spooling>> {
        let stream = plan.inputs.iter().rposition(|i| *i == InputName::Stdin);
        let stream = stream.map(|at| at as u64);
        let stream = stream.filter(|&at| !plan.finished && is_read(&plan.progress, at));
        check_promise(job, stream, committed, found)?;
        let Some((at, options)) = stream.zip(job.spool.as_ref()) else {
            return Spooling::without(job, &**disk, stream, committed, found);
        };
        let begun = committed.inputs.get(at as usize);
        let taken_up = match (begun.map(|input| input.spooled), found) {
            (None, Some(found)) if found.input == at && job.stream != Stream::New => {
                Some((found, 0))
            }
            (None, _) => None,
            (Some(None), _) => {
                return refused(
                    "-: this stream was begun without `spool`: leave `spool` out, or use `new_stream` if it is \
                    another",
                );
            }
            (Some(Some(_)), _) if job.stream == Stream::New => {
                return refused(
                    "`new_stream`: a stream among files cannot be replaced by another; pipe the new one by itself \
                     (`ingest -`)",
                );
            }
            (Some(Some(spooled)), Some(found)) if found.input == at => {
                // First byte that the spool must hold.
                Some((found, spooled.restart.raw))
            }
            (Some(Some(_)), _) => {
                return Err(Error::Damaged {
                    path: job.store.join("spool").join("acked"),
                    what:
                        "it is missing, or belongs to another stream; put it back, or abandon the stream with \
                           `new_stream`"
                            .into(),
                });
            }
        };
        let (disk, options) = (disk.clone(), options.clone());
        let spool = match taken_up {
            Some((found, from)) => Spool::resume(disk, &job.store, found, from, options)?,
            None => Spool::start(disk, &job.store, at, options)?,
        };
        spool.notify()?;
        Spooling::run(Arc::new(spool), at).map(Some)
    }

    /// Handles a run without a spool: removes a spool that nothing can return to.
    fn without(
        job: &IngestJob,
        disk: &dyn Disk,
        stream: Option<u64>,
        committed: &InputProgress,
        found: Option<SpoolState>,
    ) -> Result<Option<Spooling>> {
        let begun = stream.and_then(|at| committed.inputs.get(at as usize));
        if begun.is_some_and(|input| input.spooled.is_some()) {
            return refused(
                "-: this stream is spooled: give `spool` again, or use `new_stream` if it is another",
            );
        }
        let last = (committed.inputs.len() as u64).checked_sub(1);
        let stale = found.is_some_and(|found| Some(found.input) != last);
        let over = stream.is_some() || committed.is_past_first();
        if job.stream == Stream::New || stale || over {
            remove_spool(disk, &job.store)?;
        }
        Ok(None)
    }

    fn run(spool: Arc<Spool>, input: u64) -> Result<Spooling> {
        let clock = match spool.options().sync_every {
            None => None,
            Some(every) => {
                let (stop, stopped) = bounded::<()>(0);
                let spool = spool.clone();
                let thread = spawn("spool", move || {
                    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(every) {
                        // The spool records the failure, and the run checks for it.
                        if spool.sync().is_err() {
                            return;
                        }
                    }
                })?;
                Some((stop, thread))
            }
        };
        Ok(Spooling {
            spool,
            input,
            clock,
        })
    }

    /// Returns a reader of the stream: the contents of the spool, then `stdin`; and the position in the stream where
    /// that begins. `begun` describes the stream if a checkpoint covers it.
    pub fn reader(
        &self,
        job: &IngestJob,
        begun: Option<Spooled>,
    ) -> Result<(Box<dyn Read + Send>, Option<Restart>)> {
        let from = begun.map(|spooled| spooled.restart);
        let spooled = self.spool.reader(from.map_or(0, |from| from.raw))?;
        let reader = Tee {
            spooled: Some(spooled),
            stream: job.stdin.open(),
            spool: self.spool.clone(),
        };
        Ok((Box::new(reader), from))
    }

    /// Returns the number of bytes since the stream's start that are durable.
    pub fn acked(&self) -> u64 {
        self.spool.acked()
    }

    /// Returns the number of bytes since the stream's start that were read.
    pub fn taken(&self) -> u64 {
        self.spool.end()
    }

    /// Returns the error, if a write or a sync has failed.
    pub fn check(&self) -> Result<()> {
        self.spool.check()
    }

    /// Must be called before a checkpoint, whose position must not exceed what is durable.
    pub fn before_checkpoint(&self) -> Result<()> {
        self.spool.sync()
    }

    /// Must be called after a checkpoint with `progress`: removes what is covered, and everything if no stream is read
    /// any more (`over`).
    pub fn after_checkpoint(&self, progress: &InputProgress, over: bool) -> Result<()> {
        if over {
            return self.spool.clear();
        }
        let input = progress.inputs.get(self.input as usize);
        match input.and_then(|input| input.spooled) {
            Some(spooled) => self.spool.release(spooled.restart.raw),
            None => Ok(()),
        }
    }

    /// Stops its threads, as dropping does. Returns what is durable then.
    pub fn end(mut self) -> u64 {
        self.stop();
        self.acked()
    }

    fn stop(&mut self) {
        if let Some((stop, thread)) = self.clock.take() {
            drop(stop);
            let _ = thread.join();
        }
        self.spool.close();
    }
}

impl Drop for Spooling {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the position from which a plain stream is read again to continue at `place`: after the bytes by which its
/// format is guessed, so that it can be guessed again with more of them; and before a byte that shows whether a line
/// ends.
pub(super) fn plain(place: u64) -> Restart {
    let from = match place {
        offset if offset > HEAD_BYTES as u64 => offset - 1,
        _ => 0,
    };
    Restart {
        raw: from,
        offset: from,
        compression: Compression::Plain,
    }
}

/// Returns true if the input with this index is still to be read.
fn is_read(progress: &InputProgress, at: u64) -> bool {
    !progress.finished && progress.pass == 1 && at >= progress.input
}

/// Refuses a job that would not read acknowledged bytes.
fn check_promise(
    job: &IngestJob,
    stream: Option<u64>,
    committed: &InputProgress,
    found: Option<SpoolState>,
) -> Result<()> {
    let Some(found) = found.filter(|found| found.acked > 0) else {
        return Ok(());
    };
    let owed = match committed.inputs.get(found.input as usize) {
        None => true,
        Some(input) => match (input.end, input.spooled) {
            (None, _) => true,
            (Some(_), Some(spooled)) => {
                is_read(committed, found.input)
                    || spooled.total.is_some_and(|total| total < found.acked)
            }
            (Some(_), None) => false,
        },
    };
    let continues = job.spool.is_some() && stream == Some(found.input);
    if !owed || continues || job.stream == Stream::New {
        return Ok(());
    }
    refused(format!(
        "{}: its spool holds {} bytes of a stream that was not read to its end: finish it first (the same command with \
         `spool`), or discard it with `new_stream`",
        job.store.display(),
        found.acked
    ))
}

/// Reader of the spool, then of the stream, which is appended to the spool as it is read.
struct Tee {
    spooled: Option<SpoolReader>,
    stream: Box<dyn Read + Send>,
    spool: Arc<Spool>,
}

impl Read for Tee {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(spooled) = &mut self.spooled {
            let read = spooled.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            self.spooled = None;
        }
        let read = self.stream.read(out)?;
        self.spool.append(&out[..read]).map_err(io::Error::other)?;
        Ok(read)
    }
}
