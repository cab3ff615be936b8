//! The errors of the library. Each names where (file, record, byte), what was expected and
//! found, and what to do. Settings stand in them as [`super::name_settings`] says.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cashrank_fence::Unusable;

use super::{Damage, human, remedy};

/// All that can go wrong. The binary maps each kind to an exit code (see `formats/guide/reliability.md`).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation of the system failed.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The action that failed, as a verb.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// A compressed input is truncated, fails its checksum, or is not what its first bytes
    /// promise.
    #[error("{input}: {damage}{}", after(*.record))]
    Corrupt {
        /// The input, as it was named.
        input: String,
        /// Records handed out before the damage; `None`: not counted.
        record: Option<u64>,
        /// What is wrong, where, and what was done about it.
        damage: Box<Damage>,
    },
    /// `--strict`: a record that would have been skipped.
    #[error("{input}: record {record} at byte {offset}: {reason}: {detail}")]
    BadRecord {
        /// The input, as it was named.
        input: String,
        /// The record's number in it, from 1.
        record: u64,
        /// Offset of its first byte in the decompressed input.
        offset: u64,
        /// The name of the reason.
        reason: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// A file of the store is damaged. The text ends with what to do.
    #[error("{path}: damaged: {what}; {}", remedy(path), path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Another process has the store open for writing.
    #[error("{path}: in use by another process; wait for it to end, or name another store", path = path.display())]
    Busy {
        /// The store's directory.
        path: PathBuf,
    },
    /// The next record would make more pages known than `--limit-pages` allows, or than there are numbers for in kept rows.
    /// Nothing of it was applied.
    #[error("more than {limit} pages: {}", too_many(*keeps_links))]
    TooManyPages {
        /// The limit.
        limit: u64,
        /// It is that of a store that keeps the links of pages.
        keeps_links: bool,
    },
    /// The next record, or opening the store, would need more memory than the budget. Nothing of it was
    /// applied.
    #[error(
        "memory: with {pages} pages known, continuing needs {}, and the budget is {}: raise `memory` if the machine \
         has more, or continue on one that has; `limit_pages` ends a run earlier",
        human(*.need),
        human(*.budget)
    )]
    OverBudget {
        /// Pages known.
        pages: u64,
        /// Bytes needed to go on.
        need: u64,
        /// Bytes of the budget.
        budget: u64,
    },
    /// A command that holds something of each page would need more memory than it may take. Nothing of its
    /// result was written.
    #[error(
        "memory: {work} needs {}, and the budget is {}: raise `memory` if the machine has more, or {instead}",
        human(*.need),
        human(*.budget)
    )]
    TooLarge {
        /// What needs the memory.
        work: String,
        /// Bytes needed to go on.
        need: u64,
        /// Bytes of the budget.
        budget: u64,
        /// What to do if the machine has no more.
        instead: &'static str,
    },
    /// The system refused address space, or leaves too little of it to begin.
    #[error("memory: {} of address space cannot be had: {remedy}", human(*.need))]
    AddressSpace {
        /// Bytes that were asked for.
        need: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// A fault of this program: something that must hold does not. Nothing was written of what went before it.
    #[error(
        "{what}: this is a bug in cashrank, not in the input; nothing of it was written. The same command continues \
         from the last checkpoint. Please report it, with this line, the command and the version of cashrank, and keep \
         the inputs and a copy of the store as it is now"
    )]
    Internal {
        /// The invariant that does not hold.
        what: String,
    },
    /// What is asked for does not hold together, or is outside its range. The text says what to do, as in the kinds below.
    #[error("{0}")]
    Usage(String),
    /// What is asked for does not agree with what the store holds: its settings, its inputs, how far it is.
    #[error("{0}")]
    Conflict(String),
    /// What is needed is not there: a store, a snapshot, kept links.
    #[error("{0}")]
    Missing(String),
    /// What this version does not read, or what a format or a method cannot hold.
    #[error("{0}")]
    Unsupported(String),
    /// An input is not what was read of it before.
    #[error("{0}")]
    InputChanged(String),
}

/// `Result` with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

fn after(record: Option<u64>) -> String {
    record.map_or(String::new(), |record| format!(" (after record {record})"))
}

impl Unusable for Error {
    fn unusable(path: &Path, what: &'static str) -> Error {
        Error::damaged(path, what)
    }
}

impl Error {
    /// Returns whether the request was refused as it is: asked otherwise, or of something else, it may be met. Nothing
    /// is broken.
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

    /// Whether a disk has no room.
    pub(crate) fn is_full(&self) -> bool {
        let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
        matches!(self, Error::Io { source, .. } if full.contains(&source.kind()))
    }

    /// The same error once more, where several are to hear of it.
    pub(crate) fn again(&self) -> Error {
        match self {
            Error::Io {
                path,
                action,
                source,
            } => Error::io(path, action)(std::io::Error::new(source.kind(), source.to_string())),
            Error::Corrupt {
                input,
                record,
                damage,
            } => Error::Corrupt {
                input: input.clone(),
                record: *record,
                damage: damage.clone(),
            },
            Error::BadRecord {
                input,
                record,
                offset,
                reason,
                detail,
            } => Error::BadRecord {
                input: input.clone(),
                record: *record,
                offset: *offset,
                reason,
                detail: detail.clone(),
            },
            Error::Damaged { path, what } => Error::damaged(path, what),
            Error::Busy { path } => Error::Busy { path: path.clone() },
            &Error::TooManyPages { limit, keeps_links } => {
                Error::TooManyPages { limit, keeps_links }
            }
            &Error::OverBudget {
                pages,
                need,
                budget,
            } => Error::OverBudget {
                pages,
                need,
                budget,
            },
            Error::TooLarge {
                work,
                need,
                budget,
                instead,
            } => Error::TooLarge {
                work: work.clone(),
                need: *need,
                budget: *budget,
                instead,
            },
            &Error::AddressSpace { need, remedy } => Error::AddressSpace { need, remedy },
            Error::Internal { what } => Error::internal(what),
            Error::Usage(text) => Error::Usage(text.clone()),
            Error::Conflict(text) => Error::Conflict(text.clone()),
            Error::Missing(text) => Error::Missing(text.clone()),
            Error::Unsupported(text) => Error::Unsupported(text.clone()),
            Error::InputChanged(text) => Error::InputChanged(text.clone()),
        }
    }

    /// Adds to [`Error::Corrupt`] how many records were read before the damage: the source that
    /// reports the damage does not count them.
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

    /// Makes an error of a file operation, for `map_err`. One of this crate's that a reader passed on is that itself.
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

    /// For `map_err` on reads of store files: one that ends too early is damaged.
    pub(crate) fn reading(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| match source.kind() {
            ErrorKind::UnexpectedEof => Error::damaged(path, "it ends too early"),
            ErrorKind::FileTooLarge => Error::damaged(path, "it is far too long"),
            _ => Error::io(path, "read")(source),
        }
    }

    /// For `map_err` on opening files that a store must have: a missing one is damage.
    pub(crate) fn opening(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| match source.kind() {
            ErrorKind::NotFound => Error::damaged(path, "it is missing"),
            ErrorKind::IsADirectory => Error::damaged(path, "it is a directory"),
            _ => Error::io(path, "open")(source),
        }
    }

    /// A fault of this program.
    pub(crate) fn internal(what: impl Into<String>) -> Error {
        Error::Internal { what: what.into() }
    }

    /// A damaged store file.
    pub(crate) fn damaged(path: impl Into<PathBuf>, what: impl Into<String>) -> Error {
        Error::Damaged {
            path: path.into(),
            what: what.into(),
        }
    }
}
/// What to do where there are too many pages.
fn too_many(keeps_links: bool) -> String {
    if keeps_links {
        "kept links have page numbers of 32 bits; `keep_rows` none drops the links and goes on, or ingest the other inputs \
         into another store"
            .to_owned()
    } else {
        format!("raise `limit_pages` (at most {})", super::PageId::LIMIT)
    }
}
