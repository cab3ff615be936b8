//! Metadata of a file, which show whether it was changed. Times alone are trusted only if they are older than the
//! coarsest clock of file systems.

use std::time::{Duration, SystemTime};

use crate::source::InputName;

/// Resolution of the coarsest clock: after a more recent change, another one may have the same time.
const COARSEST: Duration = Duration::from_secs(2);

/// Metadata of a file that differ after every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of a file; `None` if it is not a file, or changed so recently that a further change might not
    /// show.
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

    /// Returns true if the file was not changed since.
    pub fn still_holds(&self, input: &InputName) -> bool {
        Stamp::of(input) == Some(*self)
    }
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
