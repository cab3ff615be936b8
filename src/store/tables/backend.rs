//! The store's disk as redb sees it, and redb's errors as the store's.

use std::path::{Path, PathBuf};

use redb::StorageBackend;

use crate::Error;
use crate::disk::DiskFile;

/// redb's storage, on the store's disk.
#[derive(Debug)]
pub(super) struct Backend(pub(super) Box<dyn DiskFile>);

impl StorageBackend for Backend {
    fn len(&self) -> std::io::Result<u64> {
        self.0.size()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read_at(out, offset)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.0.write_at(data, offset)
    }
}

/// Turns redb's errors into ours.
pub(super) fn failed<E: Into<redb::Error>>(
    path: &Path,
    action: &'static str,
) -> impl FnOnce(E) -> Error {
    let path: PathBuf = path.into();
    move |error| match error.into() {
        redb::Error::Io(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
            Error::damaged(path, "it refers to data past its end")
        }
        // What redb says of a file that is none of its own, and the system of an absurd offset.
        redb::Error::Io(source)
            if matches!(
                source.kind(),
                std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput
            ) =>
        {
            Error::damaged(path, source.to_string())
        }
        redb::Error::Io(source) => Error::Io {
            path,
            action,
            source,
        },
        redb::Error::PreviousIo => Error::Io {
            path,
            action,
            source: std::io::Error::other("an earlier operation on it failed"),
        },
        other => Error::Damaged {
            path,
            what: format!("cannot {action}: {other}"),
        },
    }
}
