//! Standard input, or a pipe, device or socket that is named as an input: signed while it is read, recognised if it was
//! read before ([`stream_match`](super::stream_match)), and kept in a spool if asked.
//!
//! Acknowledged bytes of a spool are a promise: a run that would not read them is refused, unless it states that
//! another stream begins (`--new-stream`).

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use super::plan::{Plan, refused};
use super::run::IngestRun;
use super::stream_match::{SignedStream, StreamMatch};
use super::{IngestJob, InjectedFault, Stream};
use crate::model::{InputSignature, Signature, thousands};
use crate::source::{Compression, HEAD_BYTES, InputName, Restart, Source};
use crate::store::{
    Disk, InputProgress, Spool, SpoolReader, SpoolState, remove_spool, spool_state,
};
use crate::threads::{lock, spawn};
use crate::{Error, Result};

/// Returns the job with its stream, if it has one, as standard input; [`Error::Usage`] if there are several.
pub(super) fn with_stream(job: &IngestJob) -> Result<Cow<'_, IngestJob>> {
    let mut streams = job.inputs.iter().enumerate().filter(|(_, i)| i.is_stream());
    let Some((at, first)) = streams.next() else {
        return Ok(Cow::Borrowed(job));
    };
    if let Some((_, second)) = streams.next() {
        return Err(Error::Usage(format!(
            "{first} and {second} are streams, and a run reads one: join them (`cat A B | cashrank ingest -`), or run \
            the command for each"
        )));
    }
    let InputName::File(path) = first.clone() else {
        return Ok(Cow::Borrowed(job));
    };
    let mut job = job.clone();
    job.inputs[at] = InputName::Stdin;
    job.stdin = Arc::new(move || Box::new(LateFile(path.clone(), None)));
    Ok(Cow::Owned(job))
}

/// Input that is opened when it is first read: a FIFO waits for its writer.
struct LateFile(PathBuf, Option<File>);

impl Read for LateFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.1 {
            Some(file) => file.read(out),
            none => none.insert(File::open(&self.0)?).read(out),
        }
    }
}

impl IngestRun<'_> {
    /// Opens standard input at the current position. `None` if it was stopped, or if the stream was read before.
    pub(super) fn open_stream(&mut self) -> Result<Option<(Source, bool)>> {
        let (stream, from) = match &self.spooling {
            None => ((self.job.stdin)(), None),
            Some(spooling) => {
                let begun = self.current().and_then(|begun| begun.spooled);
                let from = begun.map(|(restart, _)| restart);
                (spooling.reader(self.job, from)?, from)
            }
        };
        let to_head = self.to_head();
        let reader = self.reader.clone();
        let live = move |stream| reader.live(stream, from).and_then(to_head);
        if from.is_some_and(|from| from.raw > 0) {
            self.signer = None;
            let source = self.patiently(move || live(stream))?;
            return Ok(source.map(|source| (source, false)));
        }
        let mut signed = SignedStream::new(stream);
        let signer = signed.signer();
        let known = self.signature_before();
        let opened = self.patiently(move || {
            let found = known.map_or(Ok(StreamMatch::Different), |known| signed.compare(&known))?;
            let source = match found {
                StreamMatch::Same => None,
                _ => Some(live(Box::new(signed))?),
            };
            Ok((source, found))
        })?;
        let Some((source, found)) = opened else {
            return Ok(None);
        };
        let bytes = lock(&signer).signature.whole.map_or(0, |(len, _)| len);
        let input = self.progress.input;
        self.signer = Some((input, signer));
        let is_longer = found == StreamMatch::Extends;
        if is_longer {
            self.observer.say(
                "-: begins with all of the last stream: only what follows is counted (`new_stream` counts all of it as a \
                 new stream)",
            );
        }
        if source.is_none() {
            self.observer.say(format!(
                "-: these {} bytes are the last stream again: nothing is counted twice (`new_stream` counts them as a new \
                 stream)",
                thousands(bytes)
            ));
            self.was_read_before = true;
        }
        Ok(source.map(|source| (source, is_longer)))
    }

    /// Returns the signature of the stream that was read last, if the one to be read may equal it.
    fn signature_before(&self) -> Option<Signature> {
        let progress = &self.progress;
        let stream = progress.stream.as_ref()?;
        // Later files and empty streams make no difference.
        let before = progress.inputs.get(stream.input as usize)?;
        let follows = progress.inputs.len() as u64 == progress.input && before.end.is_some();
        // With another format the records differ, and a stream without pages did no harm.
        let format = self.job.format.map(|format| format.name());
        let alike = format.is_none_or(|format| before.format == format);
        let asked = self.job.stream == Stream::Auto
            && self.job.fault != Some(InjectedFault::StreamForgotten);
        (asked && follows && alike && self.writer.pages() > 0 && before.name == "-")
            .then(|| stream.signature.clone())
    }

    /// Records what is known of the current stream, unless it is empty: the one before it may still be sent again.
    pub(super) fn note_signature(&mut self) {
        let progress = &mut self.progress;
        if let Some((input, signer)) = &self.signer
            && *input < progress.inputs.len() as u64
        {
            let signature = lock(signer).signature.clone();
            if !signature.head.is_empty() || progress.stream.is_none() {
                let input = *input;
                progress.stream = Some(InputSignature { input, signature });
            }
        }
    }

    /// Records the end of a stream of `taken` bytes. If another run read its start, only that number is known.
    pub(super) fn end_signature(&mut self, taken: Option<u64>) {
        if self.signer.is_none()
            && let Some(stream) = &mut self.progress.stream
            && stream.signature.whole.map(|(len, _)| len) != taken
        {
            stream.signature.whole = None;
        }
    }

    pub(super) fn is_spooling(&self) -> bool {
        let spooling = self.spooling.as_ref();
        spooling.is_some_and(|spooling| spooling.input == self.progress.input)
    }

    pub(super) fn check_spool(&self) -> Result<()> {
        self.spooling
            .as_ref()
            .map_or(Ok(()), |spooling| spooling.spool.check())
    }

    pub(super) fn end_spooling(&mut self) -> Option<u64> {
        let to = self.spooling.take()?.end();
        self.observer.say(format!("spool: durable to byte {to}"));
        Some(to)
    }
}

/// Returns the state of the store's spool. For a job that begins a new stream a damaged one counts as none.
pub(super) fn found(disk: &dyn Disk, job: &IngestJob) -> Result<Option<SpoolState>> {
    match spool_state(disk, &job.store) {
        Err(Error::Damaged { .. }) if job.stream == Stream::New => Ok(None),
        found => found,
    }
}

/// Returns the position from which a plain stream is read again to continue at `place`.
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

pub(super) struct Spooling {
    pub spool: Arc<Spool>,
    /// Number of the stream among the inputs.
    input: u64,
    /// Thread that syncs the spool by time; it ends when the sender is dropped.
    clock: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Spooling {
    /// Opens the spool that `plan` needs, if any, or returns why that is impossible.
    pub fn open(
        job: &IngestJob,
        disk: &Arc<dyn Disk>,
        plan: &Plan,
        committed: &InputProgress,
        found: Option<SpoolState>,
    ) -> Result<Option<Spooling>> {
        let stream = plan.inputs.iter().rposition(|i| *i == InputName::Stdin);
        let stream = stream.map(|at| at as u64);
        let stream = stream.filter(|&at| is_read(&plan.progress, at));
        check_promise(job, stream, committed, found)?;
        let is_new = job.stream == Stream::New;
        let begun = stream.and_then(|at| committed.inputs.get(at as usize));
        let Some((at, options)) = stream.zip(job.spool.clone()) else {
            if begun.is_some_and(|input| input.spooled.is_some()) {
                return refused(
                    "-: this stream is spooled: give `spool` again, or use `new_stream` if it is another",
                );
            }
            // A spool that nothing can return to is removed.
            let last = (committed.inputs.len() as u64).checked_sub(1);
            let stale = found.is_some_and(|found| Some(found.input) != last);
            if is_new || stale || stream.is_some() || committed.is_past_first() {
                remove_spool(&**disk, &job.store)?;
            }
            return Ok(None);
        };
        let found = found.filter(|found| found.input == at);
        // The spool that continues, and the first byte that it must hold.
        let continued = match begun.map(|input| input.spooled) {
            None => found.filter(|_| !is_new).map(|found| (found, 0)),
            Some(None) => {
                return refused(
                    "-: this stream was begun without `spool`: leave `spool` out, or use `new_stream` if it is \
                    another",
                );
            }
            Some(Some(_)) if is_new => {
                return refused(
                    "`new_stream`: a stream among files cannot be replaced by another; pipe the new one by itself \
                     (`ingest -`)",
                );
            }
            Some(Some((restart, _))) => {
                let damaged = || {
                    Error::Damaged {
                    path: job.store.join("spool").join("acked"),
                    what: "it is missing, or belongs to another stream; put it back, or abandon the stream with \
                           `new_stream`"
                        .into(),
                }
                };
                Some((found.ok_or_else(damaged)?, restart.raw))
            }
        };
        let disk = disk.clone();
        let spool = match continued {
            Some((found, from)) => Spool::resume(disk, &job.store, found, from, options)?,
            None => Spool::start(disk, &job.store, at, options)?,
        };
        spool.notify()?;
        Spooling::run(Arc::new(spool), at).map(Some)
    }

    fn run(spool: Arc<Spool>, input: u64) -> Result<Spooling> {
        let clock = match spool.options.sync_every {
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

    /// Returns a reader of the stream: the contents of the spool from `from` on, then standard input.
    fn reader(&self, job: &IngestJob, from: Option<Restart>) -> Result<Box<dyn Read + Send>> {
        let spooled = self.spool.reader(from.map_or(0, |from| from.raw))?;
        Ok(Box::new(Tee {
            spooled: Some(spooled),
            stream: (job.stdin)(),
            spool: self.spool.clone(),
        }))
    }

    pub fn after_checkpoint(&self, progress: &InputProgress) -> Result<()> {
        let input = progress.inputs.get(self.input as usize);
        match input.and_then(|input| input.spooled) {
            Some((restart, _)) => self.spool.release(restart.raw),
            None => Ok(()),
        }
    }

    /// Stops the spool, and returns the number of bytes that are durable then.
    pub fn end(self) -> u64 {
        let spool = self.spool.clone();
        drop(self);
        spool.acked()
    }
}

impl Drop for Spooling {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.clock.take() {
            drop(stop);
            let _ = thread.join();
        }
        self.spool.close();
    }
}

fn is_read(progress: &InputProgress, at: u64) -> bool {
    !progress.finished && progress.pass == 1 && at >= progress.input
}

fn check_promise(
    job: &IngestJob,
    stream: Option<u64>,
    committed: &InputProgress,
    found: Option<SpoolState>,
) -> Result<()> {
    let Some(found) = found.filter(|found| found.acked > 0) else {
        return Ok(());
    };
    let input = committed.inputs.get(found.input as usize);
    let is_due = match input.map(|input| (input.end, input.spooled)) {
        None | Some((None, _)) => true,
        Some((Some(_), spooled)) => spooled.is_some_and(|(_, total)| {
            is_read(committed, found.input) || total.is_some_and(|all| all < found.acked)
        }),
    };
    let continues = job.spool.is_some() && stream == Some(found.input);
    if !is_due || continues || job.stream == Stream::New {
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
