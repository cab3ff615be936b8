//! What whoever reads an input does first: guess its format; and how it speaks of a record that was dropped
//! unread.

use crate::formats::{Format, check_text, guess, is_decided};
use crate::source::{InputName, Source};
use crate::{Error, Result};

/// Guesses the format; for people, what told. `None`: the input is empty.
pub(crate) fn guess_of(input: &InputName, source: &mut Source) -> Result<Option<(Format, String)>> {
    let head = source.head_until(is_decided)?;
    if head.is_empty() {
        return Ok(None);
    }
    let guessed = guess(head).map_err(|error| Error::Unsupported(format!("{input}: {error}")));
    guessed.map(Some)
}

/// Refuses what is no text for a format that is.
pub(crate) fn check_text_of(input: &InputName, format: Format, source: &mut Source) -> Result<()> {
    let head = source.head_until(is_decided)?;
    check_text(format, head).map_err(|error| Error::Unsupported(format!("{input}: {error}")))
}

/// What is wrong with a record that was dropped unread.
pub(crate) fn over_the_limit(bytes: u64, line_bytes: u64) -> String {
    format!("a record of {bytes} bytes, more than `limit_line` {line_bytes}")
}
