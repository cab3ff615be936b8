//! Parameters of `next()` as Python keywords, by the names in the library's table.

use std::ffi::CString;

use cashrank::NextOptions;
use cashrank_steer::answers::SkippedLines;
use pyo3::exceptions::PyUserWarning;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PySet, PyString, PyTuple};

use crate::errors::Raise;

/// Parses keywords: `per_host=10` is the parameter `per-host`. Keywords with `None` or `False` are ignored; a list, or
/// a dictionary of names and shares, repeats a parameter.
pub fn options(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<NextOptions> {
    let mut given = Vec::new();
    for (name, value) in keywords.into_iter().flatten() {
        let name = name.extract::<String>()?.replace('_', "-");
        for text in values(&name, &value)? {
            given.push((name.clone(), text));
        }
    }
    NextOptions::of(&given).raise()
}

fn values(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if value.is_none() {
        return Ok(Vec::new());
    }
    if let Ok(given) = value.cast::<PyBool>() {
        return Ok(if given.is_true() {
            vec![String::new()]
        } else {
            Vec::new()
        });
    }
    if let Ok(shares) = value.cast::<PyDict>() {
        let shares = shares.iter();
        return shares
            .map(|(pages, share)| Ok(format!("{pages}={share}")))
            .collect();
    }
    if value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PySet>()
    {
        return value.try_iter()?.map(|value| one(name, &value?)).collect();
    }
    Ok(vec![one(name, value)?])
}

fn one(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = value.py();
    if value.is_instance_of::<PyString>() {
        return value.extract();
    }
    if value.hasattr(intern!(py, "total_seconds"))? {
        let seconds: f64 = value
            .call_method0(intern!(py, "total_seconds"))?
            .extract()?;
        return Ok(format!("{seconds:.0}s"));
    }
    if value.hasattr(intern!(py, "isoformat"))? {
        return value.call_method0(intern!(py, "isoformat"))?.extract();
    }
    let text = value.str()?.extract()?;
    Ok(match name {
        "budget" => format!("discovery={text}"),
        _ => text,
    })
}

/// Warns of lines of a list that are not pages.
pub fn warn(py: Python<'_>, list: &str, skipped: SkippedLines) -> PyResult<()> {
    if skipped.is_none() {
        return Ok(());
    }
    warning(py, &format!("{list}: {skipped}"))
}

/// Emits a `UserWarning` at the line that called the Python function.
pub fn warning(py: Python<'_>, text: &str) -> PyResult<()> {
    let text = CString::new(text)?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)
}

/// Extracts URLs from one or more texts, or objects with an attribute `url`: pages and candidates.
pub fn urls(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(given) = given else {
        return Ok(Vec::new());
    };
    if given.is_instance_of::<PyString>() {
        return Ok(vec![given.extract()?]);
    }
    let url = |of: PyResult<Bound<'_, PyAny>>| {
        let of = of?;
        if of.is_instance_of::<PyString>() {
            of.extract()
        } else {
            of.getattr(intern!(of.py(), "url"))?.extract()
        }
    };
    given.try_iter()?.map(url).collect()
}
