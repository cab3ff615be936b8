//! Recognition of files that a store has already read, by contents, never by name, size or time. So a store can take
//! each day's file by the same short command, and the command can be repeated.
//!
//! A file was read before if its contents equal, to the byte and to the end, what was read of an input. Each input
//! accounts for one of the files named: a file named twice is read twice. A file that continues after the end of a
//! finished input has grown, and is refused, as its first part would count twice.
//!
//! To recognise a file it is decompressed and hashed up to the longest input that was read; a plain file that is
//! shorter or longer than all of them is new without reading.

use super::plan::{Plan, check_read};
use super::{IngestEvent, IngestJob, Observer};
use crate::model::InputPosition;
use crate::source::InputName;
use crate::store::InputProgress;
use crate::{Error, Result};

/// Relation of a file to what the store has read.
enum FileMatch {
    /// Equals what was read of this input.
    Read(usize),
    /// Continues where reading stopped.
    Unfinished,
    New,
    /// Empty: not an input yet, but it may be filled later.
    Empty,
}

/// Matches a list of files, in one pass, with what the store has read.
pub(super) fn plan_files(
    job: &IngestJob,
    mut progress: InputProgress,
    observer: &mut dyn Observer,
) -> Result<Plan> {
    drop_unread(&mut progress);
    let begun = progress.inputs.len();
    let mut left: Vec<bool> = progress.inputs.iter().map(|i| i.end.is_some()).collect();
    let mut unfinished = None;
    let mut new = Vec::new();
    for input in &job.inputs {
        let waits = unfinished.is_none();
        match look(job, input, &progress, &left, waits, observer)? {
            FileMatch::Read(at) => {
                left[at] = false;
                observer.note(IngestEvent::Known { input });
            }
            FileMatch::Unfinished => unfinished = Some(input.clone()),
            FileMatch::New => new.push(input.clone()),
            FileMatch::Empty => observer.note(IngestEvent::Empty { input }),
        }
    }
    end_unfinished(job, &mut progress, unfinished.is_some())?;
    // Finished inputs are not opened again: only their number matters.
    let mut inputs: Vec<InputName> = progress.inputs.iter().map(named).collect();
    if let Some((last, input)) = inputs.last_mut().zip(unfinished) {
        *last = input;
    }
    if progress.finished && !new.is_empty() {
        progress.finished = false;
        progress.pass = 1;
        progress.input = begun as u64;
        progress.place = InputPosition::start();
    }
    inputs.extend(new);
    Ok(Plan {
        finished: progress.finished,
        progress,
        inputs,
        unless_read_before: None,
    })
}

fn named(input: &crate::store::Input) -> InputName {
    InputName::parse(std::ffi::OsStr::new(&input.name))
}

/// Drops a file that was begun but of which nothing was read: another may replace it.
fn drop_unread(progress: &mut InputProgress) {
    let unread = |input: &crate::store::Input| input.end.is_none() && input.name != "-";
    if progress.place == InputPosition::start() && progress.inputs.last().is_some_and(unread) {
        progress.inputs.pop();
        progress.input = progress.inputs.len() as u64;
    }
}

/// Ends an input that was not read to its end and is not named, if the command allows this.
fn end_unfinished(job: &IngestJob, progress: &mut InputProgress, is_named: bool) -> Result<()> {
    let place = progress.place;
    let Some(last) = progress.inputs.last_mut().filter(|last| last.end.is_none()) else {
        return Ok(());
    };
    if is_named {
        return Ok(());
    }
    if !job.leave_unfinished && last.name == "-" {
        return refuse(
            "standard input was not read to its end: send it again (`... | cashrank ingest -`) to continue where it \
            stopped, or leave out its rest with `leave_unfinished`"
                .into(),
        );
    }
    if !job.leave_unfinished {
        return Err(Error::Conflict(format!(
            "{} was not read to its end (to record {}, byte {}): name it too, unchanged, to continue there, or leave \
            out its rest with `leave_unfinished`",
            last.name, place.records, place.offset
        )));
    }
    last.end = Some(place);
    progress.input = progress.inputs.len() as u64;
    progress.place = InputPosition::start();
    Ok(())
}

/// Inspects a file. `left` marks inputs that no earlier file matched; `waits` is true if the unfinished one is among
/// them.
fn look(
    job: &IngestJob,
    input: &InputName,
    progress: &InputProgress,
    left: &[bool],
    waits: bool,
    observer: &mut dyn Observer,
) -> Result<FileMatch> {
    let name = input.to_string();
    let last = progress.inputs.last();
    let last = last.filter(|last| last.end.is_none() && last.name != "-");
    let continues = waits && last.is_some_and(|last| last.name == name);
    let mut places: Vec<(InputPosition, usize)> = Vec::new();
    for (at, read) in progress.inputs.iter().enumerate() {
        let end = read.end.filter(|end| left[at] && holds_something(end));
        places.extend(end.map(|end| (end, at)));
    }
    let unfinished = last.filter(|_| waits).map(|_| progress.place);
    places.extend(unfinished.map(|place| (place, progress.inputs.len() - 1)));
    places.sort_unstable_by_key(|(place, at)| (place.offset, *at));
    if !places.is_empty() {
        observer.note(IngestEvent::Looking { input });
    }
    match compare(job, input, &places)? {
        Comparison::Whole(at) if progress.inputs[at].end.is_some() => Ok(FileMatch::Read(at)),
        Comparison::Whole(at) | Comparison::Begins(at) if progress.inputs[at].end.is_none() => {
            Ok(FileMatch::Unfinished)
        }
        Comparison::Begins(at) if end_of(&places, at).records > 0 => {
            let read = &progress.inputs[at].name;
            let what = if *read == name {
                "has grown".into()
            } else {
                format!("begins with all that was read of {read}, which has grown")
            };
            Err(Error::InputChanged(format!(
                "{input}: {what} since it was read to its end; put only the new part (after byte {} of the \
                 decompressed file) into a file of its own, or pipe it",
                end_of(&places, at).offset
            )))
        }
        Comparison::Empty => match same_name(job, input, progress, left, continues)? {
            FileMatch::New => Ok(FileMatch::Empty),
            found => Ok(found),
        },
        _ => same_name(job, input, progress, left, continues),
    }
}

/// Returns true if a file can be recognised by this position: its hash is known, and it is not empty.
fn holds_something(place: &InputPosition) -> bool {
    place.prefix != 0 && place.offset > 0
}

/// Returns the end of the input with this number, or the start if it is not among them.
fn end_of(places: &[(InputPosition, usize)], at: usize) -> InputPosition {
    let of = |(place, which): &(InputPosition, usize)| (*which == at).then_some(*place);
    places.iter().find_map(of).unwrap_or_default()
}

fn refuse<T>(what: String) -> Result<T> {
    Err(Error::Conflict(what))
}

/// Returns that a file is new, or an error if one of its name was read: then it was changed, and the intention is
/// unclear.
fn same_name(
    job: &IngestJob,
    input: &InputName,
    progress: &InputProgress,
    left: &[bool],
    continues: bool,
) -> Result<FileMatch> {
    let name = input.to_string();
    let read = progress.inputs.iter().zip(left);
    let mut read = read.filter(|(read, left)| **left && read.name == name);
    let place = if continues {
        Some(progress.place)
    } else {
        read.next().and_then(|(read, _)| read.end)
    };
    let Some(place) = place.filter(holds_something) else {
        return Ok(FileMatch::New);
    };
    match check_read(job, input, place) {
        Err(Error::InputChanged(what)) => Err(Error::InputChanged(format!(
            "{what}. Another file was read under this name: give this one another name, or pipe it: \
             `... | cashrank ingest -`"
        ))),
        Err(error) => Err(error),
        Ok(()) => Ok(FileMatch::New),
    }
}

/// Part of a file that was read before.
enum Comparison {
    /// The whole file equals this input.
    Whole(usize),
    /// Longest input with which the file begins.
    Begins(usize),
    Nothing,
    Empty,
}

/// Compares a file with the inputs in `places`, which are sorted by length.
fn compare(
    job: &IngestJob,
    input: &InputName,
    places: &[(InputPosition, usize)],
) -> Result<Comparison> {
    let mut found = Comparison::Nothing;
    let mut source = match job.open(input) {
        Err(Error::Corrupt { .. }) => return Ok(found),
        source => source?,
    };
    match source.head() {
        // The error is reported when the file is read.
        Err(Error::Corrupt { .. }) => return Ok(found),
        head => {
            if head?.is_empty() {
                return Ok(Comparison::Empty);
            }
        }
    }
    for same_length in places.chunk_by(|a, b| a.0.offset == b.0.offset) {
        let offset = same_length[0].0.offset;
        if source.is_shorter_than(offset) {
            break;
        }
        match source.pass_to(offset) {
            Err(Error::InputChanged(_) | Error::Corrupt { .. }) => break,
            passed => passed?,
        }
        let prefix = source.prefix();
        let same = same_length.iter().find(|(place, _)| place.prefix == prefix);
        let Some((_, at)) = same else {
            continue;
        };
        let ended = match source.head() {
            Err(Error::Corrupt { .. }) => false,
            head => head?.is_empty(),
        };
        if ended {
            return Ok(Comparison::Whole(*at));
        }
        found = Comparison::Begins(*at);
    }
    Ok(found)
}
