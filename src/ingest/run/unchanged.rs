//! Verification that files read again are unchanged since pass 1, before anything of a later pass is made durable:
//! otherwise the store would become useless.
//!
//! Pass 1 leaves the hash of each whole file. A checkpoint inside a file that is read again is made only if its
//! metadata show that it was not changed since it was known to hold what pass 1 read ([`Stamp`]), or after all of it
//! was read again and gives the hash of pass 1, and its front up to the position gives the hash of what was applied. At
//! its end every file is checked by its hash.

use super::cursor::Cursor;
use super::feed::Feed;
use super::stamp::Stamp;
use crate::source::InputName;
use crate::{Error, Result};

impl Feed<'_> {
    /// Returns true if what was applied of the current file, if it is read again, equals what pass 1 read; false if a
    /// stop came before that was known.
    ///
    /// # Errors
    /// Fails if the file was changed.
    pub(super) fn is_as_in_pass_1(&mut self, cursor: &Cursor) -> Result<bool> {
        let place = cursor.progress.place;
        if !cursor.is_repeating() || place.offset == 0 {
            return Ok(true);
        }
        let at = cursor.progress.input as usize;
        let end = cursor.input().and_then(|input| input.end);
        let (Some(input), Some(end)) = (self.inputs.get(at).cloned(), end) else {
            return Ok(true);
        };
        if input == InputName::Stdin {
            return Ok(true);
        }
        if self.stamps[at].is_some_and(|stamp| stamp.still_holds(&input)) {
            return Ok(true);
        }
        let stamp = Stamp::of(&input);
        let (name, reader) = (input.clone(), self.reader.clone());
        let checked = self.patiently(move || {
            let mut source = reader.open(&name)?;
            source.skip_to(place.offset, place.prefix)?;
            source.skip_to(end.offset, end.prefix)?;
            Ok(source.head()?.is_empty())
        });
        match checked {
            Ok(None) => return Ok(false),
            Ok(Some(true)) => {}
            Ok(Some(false)) | Err(Error::InputChanged(_) | Error::Corrupt { .. }) => {
                return Err(changed(&input));
            }
            Err(error) => return Err(error),
        }
        self.stamps[at] = stamp;
        Ok(true)
    }
}

fn changed(input: &InputName) -> Error {
    Error::InputChanged(format!(
        "{input}: has changed since pass 1, and nothing of the change was kept; put the old file back and run the same \
         command again, or use another store"
    ))
}
