//! Recognition of files that a store has already read, by contents, never by name, size or time. So a store can take
//! each day's file by the same short command, and the command can be repeated.
//!
//! A file was read before if its contents equal, to the byte and to the end, what was read of an input. Each input
//! accounts for one of the files named: a file named twice is read twice. A file that continues after the end of a
//! finished input has grown, and is refused, as its first part would count twice.
//!
//! To recognise a file, it is decompressed and hashed up to the longest input that was read. A plain file that is
//! shorter or longer than all of them is new without reading.

use super::plan::{Plan, check_read, refused};
use super::{IngestEvent, IngestJob, Observer};
use crate::model::InputPosition;
use crate::source::{Compression, InputName};
use crate::store::{Input, InputProgress};
use crate::{Error, Result};

/// Input that was read and that no file accounts for yet: how far it was read, and its number.
type Unmatched = (InputPosition, usize);

/// Matches a list of files, in one pass, with what the store has read.
pub(super) fn plan_files(
    job: &IngestJob,
    mut progress: InputProgress,
    observer: &mut dyn Observer,
) -> Result<Plan> {
    drop_unread(&mut progress);
    let begun = progress.inputs.len();
    let mut unmatched = unmatched(&progress);
    let mut unfinished = None;
    let mut new = Vec::new();
    for input in &job.inputs {
        if !unmatched.is_empty() {
            observer.say(format!("{input}: checking whether it was read before"));
        }
        let prior = compare(job, input, &unmatched)?;
        let is_unfinished = |at: usize| progress.inputs[at].end.is_none();
        // What continues after no record is not counted twice.
        let with = prior
            .with
            .filter(|(end, at)| prior.is_whole || end.records > 0 || is_unfinished(*at));
        let Some((end, at)) = with else {
            check_name(job, input, &progress, &unmatched)?;
            if prior.is_empty {
                observer.note(IngestEvent::Empty { input });
            } else {
                new.push(input.clone());
            }
            continue;
        };
        if is_unfinished(at) {
            unfinished = Some(input.clone());
        } else if prior.is_whole {
            observer.say(format!("{input}: was read before; skipped"));
        } else {
            return Err(has_grown(input, &progress.inputs[at].name, end));
        }
        unmatched.retain(|(_, other)| *other != at);
    }
    end_unfinished(job, &mut progress, unfinished.is_some())?;
    // Finished inputs are not opened again: only their number matters.
    let named = |input: &Input| InputName::parse(input.name.as_ref());
    let mut inputs: Vec<InputName> = progress.inputs.iter().map(named).collect();
    if let Some((last, input)) = inputs.last_mut().zip(unfinished) {
        *last = input;
    }
    if progress.finished && !new.is_empty() {
        progress.finished = false;
        progress.pass = 1;
        progress.go_to(begun as u64);
    }
    inputs.extend(new);
    Ok(Plan::of(progress, inputs))
}

/// Returns the inputs by which a file can be recognised, sorted by length: their hash is known, and they are not empty.
fn unmatched(progress: &InputProgress) -> Vec<Unmatched> {
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

/// Ends an input that was not read to its end and is not named, if the command allows this.
fn end_unfinished(job: &IngestJob, progress: &mut InputProgress, is_named: bool) -> Result<()> {
    let place = progress.place;
    let Some(last) = progress.inputs.last_mut().filter(|last| last.end.is_none()) else {
        return Ok(());
    };
    if is_named {
        return Ok(());
    }
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

fn has_grown(input: &InputName, read: &str, end: InputPosition) -> Error {
    let what = if read == input.to_string() {
        "has grown".into()
    } else {
        format!("begins with all that was read of {read}, which has grown")
    };
    Error::InputChanged(format!(
        "{input}: {what} since it was read to its end; put only the new part (after byte {} of the decompressed file) \
         into a file of its own, or pipe it",
        end.offset
    ))
}

/// Refuses a new file if one of its name was read: then it was changed, and the intention is unclear.
fn check_name(
    job: &IngestJob,
    input: &InputName,
    progress: &InputProgress,
    unmatched: &[Unmatched],
) -> Result<()> {
    let name = input.to_string();
    let of_name = unmatched
        .iter()
        .filter(|(_, at)| progress.inputs[*at].name == name);
    // The unfinished one counts first.
    let read = of_name.min_by_key(|(_, at)| (progress.inputs[*at].end.is_some(), *at));
    let Some((place, _)) = read else {
        return Ok(());
    };
    check_read(job, input, *place).map_err(|error| match error {
        Error::InputChanged(what) => Error::InputChanged(format!(
            "{what}. Another file was read under this name: give this one another name, or pipe it: \
             `... | cashrank ingest -`"
        )),
        other => other,
    })
}

#[derive(Default)]
struct PriorReading {
    /// Longest input with which the file begins, and how far that was read.
    with: Option<Unmatched>,
    /// True if that is the whole file.
    is_whole: bool,
    is_empty: bool,
}

/// Compares a file with the inputs that were read to these positions, which are sorted by length.
fn compare(job: &IngestJob, input: &InputName, ends: &[Unmatched]) -> Result<PriorReading> {
    let mut prior = PriorReading::default();
    // Damage is reported when the file is read.
    let opened = job.open(input).and_then(|mut source| {
        prior.is_empty = source.head()?.is_empty();
        Ok(source)
    });
    let mut source = match opened {
        Err(Error::Corrupt { .. }) => return Ok(prior),
        opened => opened?,
    };
    if prior.is_empty {
        return Ok(prior);
    }
    for same_length in ends.chunk_by(|a, b| a.0.offset == b.0.offset) {
        let offset = same_length[0].0.offset;
        let is_plain = source.compression() == Compression::Plain;
        if is_plain && source.compressed_len.is_some_and(|len| len < offset) {
            break;
        }
        match source.pass_to(offset, None) {
            Err(Error::InputChanged(_) | Error::Corrupt { .. }) => break,
            passed => passed?,
        }
        let prefix = source.prefix();
        let same = same_length.iter().find(|(end, _)| end.prefix == prefix);
        if same.is_none() {
            continue;
        }
        prior.with = same.copied();
        prior.is_whole = match source.head() {
            Err(Error::Corrupt { .. }) => false,
            head => head?.is_empty(),
        };
        if prior.is_whole {
            break;
        }
    }
    Ok(prior)
}
