//! Errors of the library. Each names where (file, record, byte), what was expected and found, and what to do. Settings
//! are written as [`super::name_settings`] describes.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use super::{Damage, human, remedy};

/// Errors of the library. The binary maps each kind to an exit code (see `formats/guide/reliability.md`).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation of the system failed.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        path: PathBuf,
        action: &'static str,
        source: std::io::Error,
    },
    /// A compressed input is truncated, fails its checksum, or is not what its first bytes promise.
    #[error("{input}: {damage}{}", after(*.record))]
    Corrupt {
        input: String,
        /// Number of records handed out before the damage; `None`: not counted.
        record: Option<u64>,
        damage: Box<Damage>,
    },
    /// With `--strict`: a record that would have been skipped.
    #[error("{input}: record {record} at byte {offset}: {reason}: {detail}")]
    BadRecord {
        input: String,
        /// Number of the record in the input, from 1.
        record: u64,
        /// Offset of its first byte in the decompressed input.
        offset: u64,
        reason: &'static str,
        detail: String,
    },
    /// A file of the store is damaged. The text ends with what to do.
    #[error("{path}: damaged: {what}; {}", remedy(path), path = path.display())]
    Damaged { path: PathBuf, what: String },
    /// Another process has the store open for writing.
    #[error("{path}: in use by another process; wait for it to end, or name another store", path = path.display())]
    Busy { path: PathBuf },
    /// The next record would make more pages known than `--limit-pages` or kept rows permit; it was not applied.
    #[error("more than {limit} pages: {}", too_many(*keeps_links))]
    TooManyPages {
        limit: u64,
        /// True if the limit is that of a store that keeps the links of pages.
        keeps_links: bool,
    },
    /// The next record, or opening the store, would need more memory than the budget. Nothing of it was applied.
    #[error(
        "memory: with {pages} pages known, continuing needs {}, and the budget is {}: raise `memory` if the machine \
         has more, or continue on one that has; `limit_pages` ends a run earlier",
        human(*.need),
        human(*.budget)
    )]
    OverBudget { pages: u64, need: u64, budget: u64 },
    /// A command that holds something for each page would need more memory than it may take. Nothing was written.
    #[error(
        "memory: {work} needs {}, and the budget is {}: raise `memory` if the machine has more, or {instead}",
        human(*.need),
        human(*.budget)
    )]
    TooLarge {
        work: String,
        need: u64,
        budget: u64,
        /// Alternative if the machine has no more memory.
        instead: &'static str,
    },
    /// The system refused address space.
    #[error(
        "memory: {} of address space cannot be had: lower `limit_pages`, or raise the limit on address space (ulimit -v)",
        human(*.need)
    )]
    AddressSpace { need: u64 },
    /// An invariant of this program does not hold. Nothing was written of what went before it.
    #[error(
        "{what}: this is a bug in cashrank, not in the input; nothing of it was written. The same command continues \
         from the last checkpoint. Please report it, with this line, the command and the version of cashrank, and keep \
         the inputs and a copy of the store as it is now"
    )]
    Internal { what: String },
    /// The request is inconsistent or out of range. The text says what to do, as in the kinds below.
    #[error("{0}")]
    Usage(String),
    /// The request conflicts with what the store holds: its settings, its inputs, or their progress.
    #[error("{0}")]
    Conflict(String),
    /// Something that is needed does not exist: a store, a snapshot, kept links.
    #[error("{0}")]
    Missing(String),
    /// Something that this version does not read, or that a format or a method cannot represent.
    #[error("{0}")]
    Unsupported(String),
    /// An input differs from what was read of it before.
    #[error("{0}")]
    InputChanged(String),
}

/// `Result` with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

fn after(record: Option<u64>) -> String {
    record.map_or(String::new(), |record| format!(" (after record {record})"))
}

impl Error {
    /// Returns whether the request was refused as such: in another form it may succeed. Nothing is broken.
    pub fn is_refusal(&self) -> bool {
        use Error::{Conflict, InputChanged, Missing, TooManyPages, Unsupported, Usage};
        matches!(
            self,
            Usage(_)
                | Conflict(_)
                | Missing(_)
                | Unsupported(_)
                | InputChanged(_)
                | TooManyPages { .. }
        )
    }

    /// Returns whether a disk is full.
    pub fn is_full(&self) -> bool {
        let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
        matches!(self, Error::Io { source, .. } if full.contains(&source.kind()))
    }

    /// Clones an error of a store's file for several receivers; of a system error only the kind and the message.
    pub fn again(&self) -> Error {
        match self {
            Error::Io {
                path,
                action,
                source,
            } => Error::io(path, action)(std::io::Error::new(source.kind(), source.to_string())),
            Error::Damaged { path, what } => Error::damaged(path, what),
            Error::Missing(text) => Error::Missing(text.clone()),
            Error::Unsupported(text) => Error::Unsupported(text.clone()),
            Error::Conflict(text) => Error::Conflict(text.clone()),
            Error::Internal { what } => Error::internal(what),
            other => Error::internal(other.to_string()),
        }
    }

    /// Adds to [`Error::Corrupt`] the number of records read before the damage.
    pub fn after_record(self, records: u64) -> Error {
        match self {
            Error::Corrupt { input, damage, .. } => Error::Corrupt {
                input,
                record: Some(records),
                damage,
            },
            other => other,
        }
    }

    /// Returns a closure for `map_err` on file operations. An error of this crate that a reader passed on is unwrapped.
    #[doc(hidden)]
    pub fn io(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| match source.downcast::<Error>() {
            Ok(own) => own,
            Err(source) => Error::Io {
                path,
                action,
                source,
            },
        }
    }

    /// Returns a closure for `map_err` on reads of store files: a premature end is damage.
    pub fn reading(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| match source.kind() {
            ErrorKind::UnexpectedEof => Error::damaged(path, "it ends too early"),
            ErrorKind::FileTooLarge => Error::damaged(path, "it is far too long"),
            _ => Error::io(path, "read")(source),
        }
    }

    /// Returns a closure for `map_err` on opening files that a store must have: a missing one is damage.
    pub fn opening(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| match source.kind() {
            ErrorKind::NotFound => Error::damaged(path, "it is missing"),
            ErrorKind::IsADirectory => Error::damaged(path, "it is a directory"),
            _ => Error::io(path, "open")(source),
        }
    }

    pub fn internal(what: impl Into<String>) -> Error {
        Error::Internal { what: what.into() }
    }

    pub fn damaged(path: impl Into<PathBuf>, what: impl Into<String>) -> Error {
        Error::Damaged {
            path: path.into(),
            what: what.into(),
        }
    }
}

fn too_many(keeps_links: bool) -> String {
    if keeps_links {
        "kept links have page numbers of 32 bits; `keep_links` none drops the links and goes on, or ingest the other inputs \
         into another store"
            .to_owned()
    } else {
        format!("raise `limit_pages` (at most {})", super::PageId::LIMIT)
    }
}

/// Exit code of a process; see `formats/guide/reliability.md`.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Done = 0,
    Unknown = 1,
    Refused = 2,
    Skipped = 3,
    Corrupt = 4,
    Damaged = 5,
    Busy = 6,
    Io = 7,
    Memory = 8,
    Fault = 9,
    Stopped = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

impl From<&Error> for Exit {
    fn from(error: &Error) -> Exit {
        match error {
            Error::Corrupt { .. } | Error::BadRecord { .. } => Exit::Corrupt,
            Error::Damaged { .. } => Exit::Damaged,
            Error::Busy { .. } => Exit::Busy,
            Error::Io { .. } => Exit::Io,
            Error::Internal { .. } => Exit::Fault,
            Error::OverBudget { .. } | Error::TooLarge { .. } | Error::AddressSpace { .. } => {
                Exit::Memory
            }
            _ => Exit::Refused,
        }
    }
}
