//! Errors of the library as Python exceptions; `python/cashrank/_errors.py` defines their hierarchy.

use cashrank::Error;
use pyo3::prelude::*;

/// The package's exception types, in a module because `Error` is also the library's.
mod imported {
    pyo3::import_exception!(cashrank._errors, Closed);
    pyo3::import_exception!(cashrank._errors, Conflict);
    pyo3::import_exception!(cashrank._errors, Damaged);
    pyo3::import_exception!(cashrank._errors, DiskError);
    pyo3::import_exception!(cashrank._errors, Error);
    pyo3::import_exception!(cashrank._errors, InUse);
    pyo3::import_exception!(cashrank._errors, InternalError);
    pyo3::import_exception!(cashrank._errors, InvalidInput);
    pyo3::import_exception!(cashrank._errors, NotFound);
    pyo3::import_exception!(cashrank._errors, OutOfRoom);
    pyo3::import_exception!(cashrank._errors, Unsupported);
}

/// Conversion of the library's results to Python's.
pub trait Raise<T> {
    /// Returns the value, or the error as a Python exception.
    fn raise(self) -> PyResult<T>;
}

impl<T> Raise<T> for cashrank::Result<T> {
    fn raise(self) -> PyResult<T> {
        self.map_err(raised)
    }
}

fn raised(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Io {
            path,
            action,
            source,
        } => match source.raw_os_error() {
            Some(number) => {
                imported::DiskError::new_err((number, format!("cannot {action}: {source}"), path))
            }
            None => imported::DiskError::new_err(text),
        },
        Error::Busy { .. } => imported::InUse::new_err(text),
        Error::Damaged { .. } | Error::Corrupt { .. } => imported::Damaged::new_err(text),
        Error::Missing(_) => imported::NotFound::new_err(text),
        Error::Usage(_) | Error::BadRecord { .. } => imported::InvalidInput::new_err(text),
        Error::Conflict(_) | Error::InputChanged(_) => imported::Conflict::new_err(text),
        Error::TooManyPages { .. } | Error::OverBudget { .. } | Error::TooLarge { .. } => {
            imported::OutOfRoom::new_err(text)
        }
        Error::Unsupported(_) => imported::Unsupported::new_err(text),
        Error::Internal { .. } => imported::InternalError::new_err(text),
        _ => imported::Error::new_err(text),
    }
}

/// Returns `InvalidInput`: an argument is invalid.
pub fn invalid(text: impl Into<String>) -> PyErr {
    imported::InvalidInput::new_err(text.into())
}

/// Returns `Closed`: the store is closed.
pub fn closed(text: impl Into<String>) -> PyErr {
    imported::Closed::new_err(text.into())
}

/// Returns `InternalError`: a bug in this package.
pub fn internal(text: impl Into<String>) -> PyErr {
    imported::InternalError::new_err(text.into())
}
