//! Adapter of the store's disk to redb, and conversion of redb's errors.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use redb::StorageBackend;

use crate::Error;
use crate::disk::DiskFile;

#[derive(Debug)]
pub(super) struct Backend(pub(super) Box<dyn DiskFile>);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len).map_err(of_writing)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync().map_err(of_writing)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(data, offset).map_err(of_writing)
    }
}

/// Changes the kind of a write error if that kind would stand for damage, which only a read can find.
fn of_writing(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput => {
            io::Error::other(error)
        }
        _ => error,
    }
}

/// Returns a function that converts errors of redb to damage of `path`, or to a failed `action` on it.
pub(super) fn failed<E: Into<redb::Error>>(
    path: &Path,
    action: &'static str,
) -> impl FnOnce(E) -> Error {
    let path: PathBuf = path.into();
    move |error| match error.into() {
        redb::Error::Io(source) if source.kind() == ErrorKind::UnexpectedEof => {
            Error::damaged(path, "it refers to data past its end")
        }
        // Errors of redb about a foreign file, and of the system about an absurd offset.
        redb::Error::Io(source)
            if matches!(
                source.kind(),
                ErrorKind::InvalidData | ErrorKind::InvalidInput
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
            source: io::Error::other("an earlier operation on it failed"),
        },
        other => Error::Damaged {
            path,
            what: format!("cannot {action}: {other}"),
        },
    }
}
