//! Planning of a job for a store that has read something before.
//!
//! The same command resumes an unfinished plan and does nothing on a finished one. Files that are read once are
//! recognised by the hash of what was read ([`known`](super::known)): files read before are skipped, others are read,
//! in any list. If inputs are read several times (`--repeat`, `--complete`) or a stream is among them, the list is
//! fixed: a longer list or a higher `--repeat` continues, and the inputs read before must come first. After standard
//! input ended, the next one is a new stream. A spool reveals streams that no checkpoint covers yet.

use super::known::plan_files;
use super::{IngestJob, Observer, Stream};
use crate::model::InputPosition;
use crate::model::InputSignature;
use crate::pipeline::checked_format_of;
use crate::source::{InputName, is_graph};
use crate::store::rows::KeepRows;
use crate::store::{InputProgress, SpoolState};
use crate::{Error, Result};

pub(super) struct Plan {
    /// Position at which it begins; `finished` if everything was read before.
    pub progress: InputProgress,
    /// One for each input of a pass; those before `progress.input` are done and are not opened again.
    pub inputs: Vec<InputName>,
    /// Error unless standard input is empty or a stream that was read before: nothing else may be read.
    pub unless_read_before: Option<String>,
}

impl Plan {
    /// Returns a plan that reads these inputs, whatever was read before.
    pub fn of(progress: InputProgress, inputs: Vec<InputName>) -> Plan {
        Plan {
            progress,
            inputs,
            unless_read_before: None,
        }
    }
}

fn usage<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::Usage(what.into()))
}

pub(super) fn refused<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::Conflict(what.into()))
}

/// Matches a checked job with what the store has read and what its spool holds.
pub(super) fn plan(
    job: &IngestJob,
    progress: InputProgress,
    spool: Option<SpoolState>,
    observer: &mut dyn Observer,
) -> Result<Plan> {
    // Passes and end of empty streams are irrelevant.
    if progress.inputs.is_empty() {
        let progress = InputProgress {
            repeat: job.repeat,
            complete: job.complete,
            stream: progress.stream,
            ..InputProgress::default()
        };
        return Ok(Plan::of(progress, job.inputs.clone()));
    }
    if job.inputs == [InputName::Stdin] {
        return stream(job, progress, spool);
    }
    let once = job.repeat == 1 && progress.repeat == 1 && !job.complete && !progress.complete;
    if once && !job.inputs.contains(&InputName::Stdin) {
        return plan_files(job, progress, observer);
    }
    files(job, progress, observer)
}

/// Checks what can be checked without opening the store, so that none is created for a bad job.
pub(super) fn check_job(job: &IngestJob) -> Result<()> {
    job.limits.check()?;
    if job.inputs.is_empty() {
        return usage("no input: name files, or `-` for standard input");
    }
    if job.repeat == 0 {
        return usage("`repeat` 0: at least one pass");
    }
    let settles = job.settle.is_some() && job.settings.config.is_settled();
    if job.expire.is_some() && (!settles || job.keep_links == KeepRows::None) {
        return usage(
            "`expire` leaves out links when importance is settled, which `settle` none, `keep_links` none, `window` and \
             `max_age` prevent",
        );
    }
    let streams = job.inputs.contains(&InputName::Stdin);
    if !streams && job.spool.is_some() {
        return usage("`spool` keeps standard input: name `-` among the inputs");
    }
    if streams && job.repeat > 1 && job.keep_links == KeepRows::None {
        return usage(
            "`repeat` needs files, or `keep_links`: standard input cannot be read again, and no links are kept",
        );
    }
    for input in &job.inputs {
        if let InputName::File(path) = input {
            let found = std::fs::metadata(path).map_err(Error::io(path, "open"))?;
            if found.is_dir() && !is_graph(path) {
                return usage(format!(
                    "{}: is a directory; name the files in it, in the order they are to be read (a folder is read as \
                     a whole if it has files of vertices and edges)",
                    path.display()
                ));
            }
        }
    }
    Ok(())
}

/// Checks that the first file is a crawl, so that no store is created otherwise. Pipes are checked when they are read.
pub(super) fn check_first(job: &IngestJob) -> Result<()> {
    let Some(input @ InputName::File(_)) = job.inputs.first() else {
        return Ok(());
    };
    // Other failures are reported when the input is read.
    let mut source = match job.open(input) {
        Err(error) if error.is_refusal() => return Err(error),
        Err(_) => return Ok(()),
        Ok(source) => source,
    };
    match checked_format_of(&mut source, job.format, None) {
        Err(error) if error.is_refusal() => Err(error),
        _ => Ok(()),
    }
}

/// Plans `ingest -` on a store that has read something.
fn stream(job: &IngestJob, mut progress: InputProgress, spool: Option<SpoolState>) -> Result<Plan> {
    let begun = progress.inputs.len();
    let last_is_stream = progress.inputs[begun - 1].name == "-";
    if job.complete != progress.complete {
        return refused("`complete` must be given as it was when the store was made");
    }
    if progress.pass > 2 || progress.repeat > 1 || job.repeat > 1 {
        return repeated_stream(job, progress);
    }
    if progress.complete && progress.finished {
        let what = "this store was completed (`complete`): a stream cannot follow";
        return unless_read_before(job, progress, what);
    }
    if progress.completing.is_some() {
        if job.stream == Stream::New {
            return refused("this store is being completed (`complete`): a stream cannot follow");
        }
        return Ok(Plan::of(progress, vec![InputName::Stdin; begun]));
    }
    let unfinished = !progress.finished && progress.inputs[begun - 1].end.is_none();
    if unfinished && !last_is_stream {
        if !job.leave_unfinished {
            return refused(format!(
                "{} was not read to its end; run its command again first, or leave out its rest with \
                `leave_unfinished`",
                progress.inputs[begun - 1].name
            ));
        }
        progress.inputs[begun - 1].end = Some(progress.place);
    }
    // Files that an earlier command named and that were not begun may follow later.
    progress.finished |= !last_is_stream;
    // A spool may hold a stream begun after the last checkpoint, or more of one that had ended and was resumed.
    let newer = spool.is_some_and(|spool| {
        spool.input == begun as u64 && (spool.acked > 0 || job.spool.is_some())
    });
    let grown = spool.is_some_and(|spool| {
        let total = progress.inputs[begun - 1]
            .spooled
            .and_then(|(_, total)| total);
        spool.input + 1 == begun as u64 && total.is_some_and(|total| spool.acked > total)
    });
    let again = match job.stream {
        Stream::Auto => !newer && (!progress.finished || grown),
        Stream::New => false,
        Stream::Again if !last_is_stream && !newer => {
            return refused("`resume`: the last input was no stream");
        }
        // The newest one is meant.
        Stream::Again => !newer,
    };
    let last = &mut progress.inputs[begun - 1];
    if again {
        if let Some(end) = last.end.take() {
            progress.place = end;
        }
        progress.input = begun as u64 - 1;
    } else {
        // An abandoned stream counts as ended where it stopped.
        last.end.get_or_insert(progress.place);
        progress.go_to(begun as u64);
    }
    progress.pass = 1;
    progress.finished = false;
    // Earlier inputs are done: only their number matters.
    let inputs = vec![InputName::Stdin; progress.input as usize + 1];
    Ok(Plan::of(progress, inputs))
}

/// Plans `ingest -` on a store that has read something, with several passes: only the same plan may continue.
fn repeated_stream(job: &IngestJob, mut progress: InputProgress) -> Result<Plan> {
    let of_stream = progress.inputs.len() == 1 && progress.inputs[0].name == "-";
    if job.stream == Stream::Again
        && progress.finished
        && of_stream
        && job.repeat >= progress.repeat
    {
        // Further passes need no stream, but a stream that continues is not skipped if all of the last one is known.
        progress.finished = job.repeat == progress.repeat;
        progress.repeat = job.repeat;
        let whole = |stream: &InputSignature| stream.signature.whole.is_some();
        let known = progress.stream.as_ref().is_some_and(whole);
        return Ok(Plan {
            progress,
            inputs: job.inputs.clone(),
            unless_read_before: known.then(|| {
                "standard input is not what was read: `resume` it without `repeat` first, and add passes then"
                    .into()
            }),
        });
    }
    if progress.finished || !of_stream {
        let what = "a store of several passes (`repeat`) reads no stream after its first inputs; use another store";
        if of_stream && job.repeat == progress.repeat {
            return unless_read_before(job, progress, what);
        }
        return refused(what);
    }
    if job.stream == Stream::New {
        return refused("`new_stream`: a stream of several passes (`repeat`) needs another store");
    }
    set_repeat(job, &mut progress)?;
    Ok(Plan::of(progress, job.inputs.clone()))
}

/// Returns a plan that is done if standard input is the stream that was read last, and is refused otherwise.
fn unless_read_before(job: &IngestJob, progress: InputProgress, what: &str) -> Result<Plan> {
    let last = progress.inputs.len() as u64 - 1;
    let known = progress.stream.as_ref();
    if job.stream != Stream::Auto || known.is_none_or(|stream| stream.input != last) {
        return refused(what);
    }
    Ok(Plan {
        inputs: job.inputs.clone(),
        progress,
        unless_read_before: Some(what.into()),
    })
}

/// Plans files, perhaps with a stream among them, on a store that has read something.
fn files(
    job: &IngestJob,
    mut progress: InputProgress,
    observer: &mut dyn Observer,
) -> Result<Plan> {
    let begun = progress.inputs.len();
    if job.inputs.len() < begun {
        return refused(format!(
            "this store has read {begun} inputs, and the command names {}: name those read before \
             first ({}), or pipe new ones: `... | cashrank ingest -`",
            job.inputs.len(),
            names(&progress)
        ));
    }
    if job.complete != progress.complete {
        return refused("`complete` must be given as it was when the store was made");
    }
    for (at, input) in job.inputs.iter().take(begun).enumerate() {
        let is_stream = *input == InputName::Stdin;
        if is_stream != (progress.inputs[at].name == "-") {
            return refused(format!(
                "input {} was {}, and the command names {input}; name the inputs read before first \
                 ({})",
                at + 1,
                progress.inputs[at].name,
                names(&progress)
            ));
        }
        if let (false, Some(end)) = (is_stream, progress.inputs[at].end) {
            observer.say(format!(
                "{input}: checking that it has not changed since it was read"
            ));
            check_read(job, input, end).map_err(|error| match error {
                Error::InputChanged(what) => Error::InputChanged(format!(
                    "{what}. This store has read, in this order: {}. Name these first, or {}",
                    names(&progress),
                    if progress.repeat > 1 || progress.complete {
                        "use another store: after several passes nothing can be added"
                    } else {
                        "pipe what is new: `... | cashrank ingest -`"
                    }
                )),
                other => other,
            })?;
        }
    }
    let more = job.inputs.len() > begun;
    if more && progress.completing.is_some() {
        return refused(
            "the inputs were read and the pass is being completed (`complete`), so no inputs can be added; use \
            another store",
        );
    }
    let done = progress.finished;
    if more && done {
        if progress.repeat > 1 || progress.complete {
            return refused(
                "a run with `repeat` or `complete` has finished, so no inputs can be added; use another store",
            );
        }
        progress.pass = 1;
        progress.go_to(begun as u64);
    } else if more && progress.pass > 1 {
        return refused("pass 1 is over, so no inputs can be added; use another store");
    }
    if done {
        progress.repeat = progress.repeat.max(job.repeat);
    } else {
        set_repeat(job, &mut progress)?;
    }
    progress.finished = progress.pass > progress.repeat;
    Ok(Plan::of(progress, job.inputs.clone()))
}

fn set_repeat(job: &IngestJob, progress: &mut InputProgress) -> Result<()> {
    let pass = progress.pass;
    if job.repeat < pass {
        return refused(format!(
            "pass {pass} is under way: give `repeat` {pass} or more"
        ));
    }
    progress.repeat = job.repeat;
    Ok(())
}

/// Checks that a file still holds what was read from it, and nothing more.
pub(super) fn check_read(job: &IngestJob, input: &InputName, end: InputPosition) -> Result<()> {
    let mut source = job.open(input)?;
    source.pass_to(end.offset, Some(end.prefix))?;
    if source.head()?.is_empty() {
        return Ok(());
    }
    Err(Error::InputChanged(format!(
        "{input}: has grown since it was read to its end; put what is new into a file of its own, \
         or pipe it: `... | cashrank ingest -`"
    )))
}

fn names(progress: &InputProgress) -> String {
    let names: Vec<&str> = progress.inputs.iter().map(|i| i.name.as_str()).collect();
    match names.len() {
        0..=4 => names.join(" "),
        more => format!("{} ... {}", names[0], names[more - 1]),
    }
}
