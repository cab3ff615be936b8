//! Planning of a job for a store that has read something before.
//!
//! The same command resumes an unfinished plan and does nothing on a finished one. Files that were read before are
//! skipped, others are read. If inputs are read several times (`--repeat`) or a stream is among them, all those read
//! before must be named, and after several passes none can be added. After standard input ended, the next one is a new
//! stream. A spool reveals streams that no checkpoint covers yet.
//!
//! A file was read before if its contents equal, to the byte and to the end, what was read of an input, whatever its
//! name, size or time. It is decompressed and hashed up to the longest input that was read. Each input accounts for one
//! of the files named: a file named twice is read twice. A file that continues after the end of a finished input has
//! grown, and is refused, as its first part would count twice.

use super::{IngestEvent, IngestJob, Observer, Stream};
use crate::model::{InputPosition, counted};
use crate::pipeline::checked_format_of;
use crate::source::{Compression, InputName, is_graph};
use crate::store::rows::KeepRows;
use crate::store::{Input, InputProgress, SpoolState};
use crate::{Error, Result};

pub(super) struct Plan {
    /// Position at which it begins; `finished` if everything was read before.
    pub progress: InputProgress,
    /// One for each input of a pass; those before `progress.input` are done and are not opened again.
    pub inputs: Vec<InputName>,
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
            stream: progress.stream,
            ..InputProgress::default()
        };
        return Ok(Plan {
            progress,
            inputs: job.inputs.clone(),
        });
    }
    let is_complete = progress.complete;
    let plan = if job.inputs == [InputName::Stdin] {
        stream(job, progress, spool)?
    } else {
        files(job, progress, observer)?
    };
    if is_complete && !plan.progress.finished {
        return refused(
            "an earlier version visited pages without a record in this store, and nothing can be added: use another store",
        );
    }
    Ok(plan)
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
    if streams && job.repeat > 1 {
        return usage(
            "`repeat` needs files: standard input can be read only once; put the stream into a file",
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

fn stream(job: &IngestJob, mut progress: InputProgress, spool: Option<SpoolState>) -> Result<Plan> {
    let begun = progress.inputs.len();
    let last_is_stream = progress.inputs[begun - 1].name == "-";
    if progress.pass > 2 || progress.repeat > 1 {
        return refused(
            "a store of several passes (`repeat`) reads no stream after its inputs; use another store",
        );
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
    Ok(Plan { progress, inputs })
}

/// Plans files, perhaps with a stream among them, on a store that has read something.
fn files(
    job: &IngestJob,
    mut progress: InputProgress,
    observer: &mut dyn Observer,
) -> Result<Plan> {
    drop_unread(&mut progress);
    let begun = progress.inputs.len();
    let is_fixed = progress.repeat > 1 || job.repeat > 1 || job.inputs.contains(&InputName::Stdin);
    let mut unmatched = unmatched(&progress);
    let named = |input: &Input| InputName::parse(input.name.as_ref());
    let mut inputs: Vec<InputName> = progress.inputs.iter().map(named).collect();
    let mut is_named = vec![false; begun];
    let mut new = Vec::new();
    let mut is_stream_over = false;
    for input in &job.inputs {
        let at = if *input == InputName::Stdin {
            let at = inputs.iter().position(|read| read == input);
            // What was not begun of an unfinished command comes after its stream.
            is_stream_over |= at.is_some_and(|at| progress.inputs[at].end.is_some())
                && (progress.finished || !new.is_empty());
            at
        } else {
            let (at, is_empty) = find(job, input, &progress, &unmatched, observer)?;
            if is_empty {
                if !is_fixed {
                    observer.note(IngestEvent::Empty { input });
                }
                continue;
            }
            at
        };
        let Some(at) = at else {
            new.push(input.clone());
            continue;
        };
        if !is_fixed && progress.inputs[at].end.is_some() {
            observer.say(format!("{input}: was read before; skipped"));
        }
        unmatched.retain(|(_, other)| *other != at);
        is_named[at] = true;
        inputs[at] = input.clone();
    }
    if progress.repeat > 1 && progress.pass > 1 && !new.is_empty() {
        return refused("use another store: after several passes (`repeat`) nothing can be added");
    }
    if is_stream_over && !new.is_empty() {
        return refused(
            "-: a stream was read to its end before, and whether this is the same one is not known if other inputs are \
             new: name those without it, and pipe a new stream by itself: `... | cashrank ingest -`",
        );
    }
    let read = progress.inputs.iter().zip(&is_named);
    let mut missing = read.filter(|(input, is_named)| !**is_named && !input.is_empty());
    if is_fixed && let Some((first, _)) = missing.next() {
        let mut missing = missing.map(|(input, _)| input).chain([first]);
        if job.repeat > 1 && missing.any(|input| input.name == "-") {
            return refused(
                "use another store: this one has read standard input, which `repeat` cannot read again",
            );
        }
        let pipe = match progress.repeat {
            1 => ", or pipe new ones: `... | cashrank ingest -`",
            _ => "",
        };
        return refused(format!(
            "this store has read {}, and the command names {}: name those read before too ({}){pipe}",
            counted(begun as u64, "input", "inputs"),
            job.inputs.len(),
            names(&progress)
        ));
    }
    if !is_named.last().is_some_and(|is_named| *is_named) {
        end_unfinished(job, &mut progress)?;
    }
    let is_done = progress.finished;
    if is_done && !new.is_empty() {
        progress.pass = 1;
        progress.go_to(begun as u64);
    }
    let pass = progress.pass;
    progress.repeat = match is_done {
        true => progress.repeat.max(job.repeat),
        false if job.repeat >= pass => job.repeat,
        false => {
            return refused(format!(
                "pass {pass} is under way: give `repeat` {pass} or more"
            ));
        }
    };
    progress.finished = progress.pass > progress.repeat;
    inputs.extend(new);
    Ok(Plan { progress, inputs })
}

fn names(progress: &InputProgress) -> String {
    let names: Vec<&str> = progress.inputs.iter().map(|i| i.name.as_str()).collect();
    match names.len() {
        0..=4 => names.join(" "),
        more => format!("{} ... {}", names[0], names[more - 1]),
    }
}

/// Input that was read and that no file accounts for yet: how far it was read, and its number.
type UnmatchedInput = (InputPosition, usize);

/// Returns the inputs by which a file can be recognised, sorted by length: their hash is known, and they are not empty.
fn unmatched(progress: &InputProgress) -> Vec<UnmatchedInput> {
    let place = |input: &Input| match input.end {
        None if input.name != "-" => Some(progress.place),
        end => end,
    };
    let places = progress.inputs.iter().zip(0..);
    let places = places.filter_map(|(input, at)| Some((place(input)?, at)));
    let mut unmatched: Vec<_> = places
        .filter(|(place, _)| place.prefix != 0 && place.offset > 0)
        .collect();
    unmatched.sort_unstable_by_key(|(place, at)| (place.offset, *at));
    unmatched
}

/// Drops a file that was begun but of which nothing was read: another may replace it.
fn drop_unread(progress: &mut InputProgress) {
    let unread = |input: &Input| input.end.is_none() && input.name != "-";
    if progress.place == InputPosition::start() && progress.inputs.last().is_some_and(unread) {
        progress.inputs.pop();
        progress.input = progress.inputs.len() as u64;
    }
}

/// Ends an input that is not named, if it was not read to its end and the command allows this.
fn end_unfinished(job: &IngestJob, progress: &mut InputProgress) -> Result<()> {
    let place = progress.place;
    let Some(last) = progress.inputs.last_mut().filter(|last| last.end.is_none()) else {
        return Ok(());
    };
    match &*last.name {
        _ if job.leave_unfinished => {}
        "-" => {
            return refused(
                "standard input was not read to its end: send it again (`... | cashrank ingest -`) to continue where it \
                stopped, or leave out its rest with `leave_unfinished`",
            );
        }
        name => {
            return refused(format!(
                "{name} was not read to its end (to record {}, byte {}): name it too, unchanged, to continue there, or \
                leave out its rest with `leave_unfinished`",
                place.records, place.offset
            ));
        }
    }
    last.end = Some(place);
    progress.go_to(progress.inputs.len() as u64);
    Ok(())
}

/// Finds the input that a file is or continues, and whether it is empty. Fails if it has grown, or is another.
fn find(
    job: &IngestJob,
    input: &InputName,
    progress: &InputProgress,
    unmatched: &[UnmatchedInput],
    observer: &mut dyn Observer,
) -> Result<(Option<usize>, bool)> {
    if !unmatched.is_empty() {
        observer.say(format!("{input}: checking whether it was read before"));
    }
    let mut prior = PriorReading::default();
    match compare(job, input, unmatched, &mut prior) {
        // Damage is reported when the file is read.
        Ok(()) | Err(Error::InputChanged(_) | Error::Corrupt { .. }) => {}
        Err(error) => return Err(error),
    }
    let name = input.to_string();
    if let Some((end, at)) = prior.with {
        let read = &progress.inputs[at];
        if prior.is_whole || read.end.is_none() {
            return Ok((Some(at), false));
        }
        // What continues after no record is not counted twice.
        if end.records > 0 {
            let what = if read.name == name {
                "has grown".into()
            } else {
                format!(
                    "begins with all that was read of {}, which has grown",
                    read.name
                )
            };
            return Err(Error::InputChanged(format!(
                "{name}: {what} since it was read to its end; put only the new part (after byte {} of the decompressed \
                 file) into a file of its own, or pipe it",
                end.offset
            )));
        }
    }
    // A new file of a name that was read is a changed one, and the intention is unclear. The unfinished one counts first.
    let of_name = unmatched
        .iter()
        .filter(|(_, at)| progress.inputs[*at].name == name);
    let read = of_name.min_by_key(|(_, at)| (progress.inputs[*at].end.is_some(), *at));
    if let Some((place, _)) = read {
        let same = job.open(input)?.pass_to(place.offset, Some(place.prefix));
        same.map_err(|error| match error {
            Error::InputChanged(what) => Error::InputChanged(format!(
                "{what}. Another file was read under this name: give this one another name, or pipe it: \
                 `... | cashrank ingest -`"
            )),
            other => other,
        })?;
    }
    Ok((None, prior.is_empty))
}

#[derive(Default)]
struct PriorReading {
    /// Longest input with which the file begins, and how far that was read.
    with: Option<UnmatchedInput>,
    /// True if that is the whole file.
    is_whole: bool,
    is_empty: bool,
}

/// Compares a file with the inputs that were read to these positions, sorted by length. Fails at the file's end or damage.
fn compare(
    job: &IngestJob,
    input: &InputName,
    ends: &[UnmatchedInput],
    prior: &mut PriorReading,
) -> Result<()> {
    let mut source = job.open(input)?;
    prior.is_empty = source.head()?.is_empty();
    let is_plain = source.compression() == Compression::Plain;
    let len = source.compressed_len.filter(|_| is_plain);
    for same_length in ends.chunk_by(|a, b| a.0.offset == b.0.offset) {
        let offset = same_length[0].0.offset;
        if len.is_some_and(|len| len < offset) {
            break;
        }
        source.pass_to(offset, None)?;
        let prefix = source.prefix();
        if let Some(same) = same_length.iter().find(|(end, _)| end.prefix == prefix) {
            prior.with = Some(*same);
            prior.is_whole = source.head()?.is_empty();
        }
    }
    Ok(())
}
