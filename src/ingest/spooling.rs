//! Standard input with a spool: what a run may do with the spool it finds, and the threads that
//! write it.
//!
//! What was acknowledged is promised: a run that would not read it is refused, unless it says that
//! another stream begins (`--new-stream`).

use std::io::{self, Read};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use super::planned::Plan;
use super::{Job, Stream};
use crate::source::{Compression, InputName, Restart};
use crate::store::{
    Disk, Place, Progress, Spool, SpoolReader, SpoolStanding, Spooled, remove_spool, spool_standing,
};
use crate::threads::spawn;
use crate::{Error, Result};

fn refused<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::Conflict(what.into()))
}

/// What the store's spool holds. For a job that begins a new stream a damaged one is none.
pub(super) fn found(disk: &dyn Disk, job: &Job) -> Result<Option<SpoolStanding>> {
    match spool_standing(disk, &job.store) {
        Err(Error::Damaged { .. }) if job.stream == Stream::New => Ok(None),
        found => found,
    }
}

/// The spool of a running ingest.
pub(super) struct Spooling {
    spool: Arc<Spool>,
    /// The stream's number among the inputs.
    pub input: u64,
    /// The thread that makes it durable by time; it ends when the sender is dropped.
    clock: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Spooling {
    /// Opens the spool that `plan` needs, if it needs one, or says why not. `committed` is what the
    /// last checkpoint knows, `found` what the spool holds.
    pub fn open(
        job: &Job,
        disk: &Arc<dyn Disk>,
        plan: &Plan,
        committed: &Progress,
        found: Option<SpoolStanding>,
    ) -> Result<Option<Spooling>> {
        let stream = plan.inputs.iter().rposition(|i| *i == InputName::Stdin);
        let stream = stream.map(|at| at as u64);
        let stream = stream.filter(|&at| !plan.finished && is_read(&plan.progress, at));
        check_promise(job, stream, committed, found)?;
        let Some((at, options)) = stream.zip(job.spool.as_ref()) else {
            return Spooling::without(job, &**disk, plan, stream, committed, found);
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
                    "`new_stream`: a stream among files cannot be given up for another; pipe the new \
                     one by itself (`ingest -`)",
                );
            }
            (Some(Some(spooled)), Some(found)) if found.input == at => {
                Some((found, needed_from(plan, committed, spooled)?))
            }
            (Some(Some(_)), _) => {
                return Err(Error::Damaged {
                    path: job.store.join("spool").join("acked"),
                    what:
                        "it is missing, or of another stream; put it back, or give the stream up \
                           with `new_stream`"
                            .into(),
                });
            }
        };
        let (disk, options) = (disk.clone(), options.clone());
        let spool = match taken_up {
            Some((found, from)) => Spool::resume(disk, &job.store, found, from, options)?,
            None => Spool::start(disk, &job.store, at, options)?,
        };
        spool.tell()?;
        Spooling::run(Arc::new(spool), at).map(Some)
    }

    /// Nothing is spooled: removes a spool that nothing can come back to.
    fn without(
        job: &Job,
        disk: &dyn Disk,
        plan: &Plan,
        stream: Option<u64>,
        committed: &Progress,
        found: Option<SpoolStanding>,
    ) -> Result<Option<Spooling>> {
        let begun = stream.and_then(|at| committed.inputs.get(at as usize));
        if begun.is_some_and(|input| input.spooled.is_some()) {
            return refused(
                "-: this stream is spooled: give `spool` again, or use `new_stream` if it is another",
            );
        }
        let last = (committed.inputs.len() as u64).checked_sub(1);
        let stale = found.is_some_and(|found| Some(found.input) != last);
        let over = stream.is_some() || (plan.finished && committed.repeat > 1);
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
                        // The spool notes a failure, and the run asks for it.
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

    /// The stream at `place` (of which `begun` tells, if a checkpoint knows it): what the spool holds, and then, in
    /// the first pass, `stdin`; and where in the stream that begins.
    pub fn reader(
        &self,
        job: &Job,
        first_pass: bool,
        place: Place,
        begun: Option<Spooled>,
    ) -> Result<(Box<dyn Read + Send>, Option<Restart>)> {
        if !first_pass {
            // The reader ends where what is durable does, and that must be the stream's end.
            self.spool.sync()?;
        }
        let from = begun.map(|spooled| match spooled.restart {
            restart if first_pass => restart,
            Restart {
                compression: Compression::Plain,
                ..
            } => plain(place),
            restart => Restart {
                raw: 0,
                offset: 0,
                ..restart
            },
        });
        let spooled = self.spool.reader(from.map_or(0, |from| from.raw))?;
        let reader: Box<dyn Read + Send> = match first_pass {
            false => Box::new(spooled),
            true => Box::new(Tee {
                spooled: Some(spooled),
                stream: job.stdin.open(),
                spool: self.spool.clone(),
            }),
        };
        Ok((reader, from))
    }

    /// Bytes since the stream's start that are durable.
    pub fn acked(&self) -> u64 {
        self.spool.acked()
    }

    /// Bytes since the stream's start that were taken.
    pub fn taken(&self) -> u64 {
        self.spool.end()
    }

    /// The error, if a write or a sync has failed.
    pub fn check(&self) -> Result<()> {
        self.spool.check()
    }

    /// To be called before a checkpoint: its place must not lie beyond what is durable.
    pub fn before_checkpoint(&self) -> Result<()> {
        self.spool.sync()
    }

    /// To be called after a checkpoint with `progress`: what is covered goes.
    pub fn after_checkpoint(&self, progress: &Progress) -> Result<()> {
        if progress.repeat > 1 {
            return match progress.finished {
                true => self.spool.clear(),
                false => Ok(()),
            };
        }
        let input = progress.inputs.get(self.input as usize);
        match input.and_then(|input| input.spooled) {
            Some(spooled) => self.spool.release(spooled.restart.raw),
            None => Ok(()),
        }
    }

    /// Stops its threads; what is durable then is final. Dropping does the same.
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

/// A plain stream can be read again from anywhere.
pub(super) fn plain(place: Place) -> Restart {
    Restart {
        raw: place.offset,
        offset: place.offset,
        compression: Compression::Plain,
    }
}

/// Whether the input with this index is still to be read.
fn is_read(progress: &Progress, at: u64) -> bool {
    let in_pass = progress.pass == progress.repeat && at >= progress.input;
    !progress.finished && (progress.pass < progress.repeat || in_pass)
}

/// Refuses a job that would not read what was promised to be kept.
fn check_promise(
    job: &Job,
    stream: Option<u64>,
    committed: &Progress,
    found: Option<SpoolStanding>,
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
    let goes_on = job.spool.is_some() && stream == Some(found.input);
    if !owed || goes_on || job.stream == Stream::New {
        return Ok(());
    }
    refused(format!(
        "{}: its spool holds {} bytes of a stream that was not read to its end: go on with it first \
         (the same command with `spool`), or drop it with `new_stream`",
        job.store.display(),
        found.acked
    ))
}

/// The first byte that the spool of a stream taken up again must hold.
fn needed_from(plan: &Plan, committed: &Progress, spooled: Spooled) -> Result<u64> {
    if committed.repeat > 1 {
        // All of it, even if this plan reads it only once: no checkpoint says so yet, and the next
        // plan may be the old one again.
        return Ok(0);
    }
    if plan.progress.repeat > 1 && spooled.restart.raw > 0 {
        return refused(
            "`repeat`: the start of this stream is no longer in the spool; `repeat` must be given when \
             a stream is begun",
        );
    }
    Ok(spooled.restart.raw)
}

/// What the spool holds, then the stream, which is appended to the spool as it is read.
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
