//! Files that are read again must hold what they held in pass 1, and that must be known before
//! anything of a later pass is made durable: else the store would be of no further use.
//!
//! Pass 1 leaves the hash of each whole file. A checkpoint inside a file that is read again is made
//! only if the system says that the file was not touched since it was known to hold what pass 1
//! read; or else once all of it was read again and gives the hash of pass 1, its front up to the
//! checkpoint's place the hash of what was applied. Times alone are trusted only when they are older
//! than the coarsest clock that file systems use. At its end every file is checked by its hash.

use std::time::{Duration, SystemTime};

use super::cursor::Cursor;
use super::feed::Feed;
use crate::source::InputName;
use crate::{Error, Result};

/// A change less long ago may be followed by another at the same time of the file system's clock.
const COARSEST: Duration = Duration::from_secs(2);

/// The metadata of a file: it differs after every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// `None`: not a file, or changed so recently that a further change might not show.
    pub fn of(input: &InputName) -> Option<Stamp> {
        use std::os::unix::fs::MetadataExt;
        let InputName::File(path) = input else {
            return None;
        };
        let now = SystemTime::now();
        let found = std::fs::metadata(path).ok().filter(|f| f.is_file())?;
        let changed = Duration::new(
            found.ctime().try_into().ok()?,
            found.ctime_nsec().try_into().ok()?,
        );
        let changed = SystemTime::UNIX_EPOCH.checked_add(changed)?;
        let age = now.duration_since(changed).ok()?;
        (age > COARSEST).then(|| Stamp {
            device: found.dev(),
            inode: found.ino(),
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// Returns whether the file was not touched since.
    pub fn still_holds(&self, input: &InputName) -> bool {
        Stamp::of(input) == Some(*self)
    }
}

impl Feed<'_> {
    /// Returns whether what was applied of the file being read, if it is being read again, is what pass 1
    /// read. `false`: a stop came before that was known.
    ///
    /// # Errors
    ///
    /// The file was changed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_trusted_when_it_is_old_and_tells_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let input = InputName::File(path.clone());
        std::fs::write(&path, "one").unwrap();
        assert_eq!(Stamp::of(&input), None, "just written");
        assert_eq!(Stamp::of(&InputName::Stdin), None);
        assert_eq!(Stamp::of(&InputName::File(dir.path().into())), None);
        std::thread::sleep(COARSEST + Duration::from_millis(100));
        let stamp = Stamp::of(&input).unwrap();
        assert!(stamp.still_holds(&input));
        // As long as before.
        std::fs::write(&path, "two").unwrap();
        assert!(!stamp.still_holds(&input));
    }
}
