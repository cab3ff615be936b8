//! Exit codes of the programs, and the map from errors to them.

use std::process::ExitCode;

use crate::Error;

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
