//! One record, copied out of Python objects so that it can be applied without the interpreter's lock.

use std::borrow::Cow;
use std::ops::Range;

use cashrank::{Digest, Link, Record, Rel, Time};
use cashrank_crawl::decode::{time_of, time_of_seconds};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::errors::invalid;

/// Record that owns its text, in one buffer.
#[derive(Default)]
pub struct OwnedRecord {
    text: Vec<u8>,
    url: Range<usize>,
    base: Option<Range<usize>>,
    redirect: Option<Range<usize>>,
    links: Vec<(Range<usize>, Rel, u32)>,
    pub status: Option<i32>,
    pub fetched_at: Option<Time>,
    pub digest: Digest,
    pub unchanged: bool,
}

impl OwnedRecord {
    /// Copies a page's URL, the base of its links, its redirect and its links.
    pub fn new(
        url: &Bound<'_, PyAny>,
        base: Option<&Bound<'_, PyAny>>,
        redirect: Option<&Bound<'_, PyAny>>,
        links: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<OwnedRecord> {
        let mut taken = OwnedRecord {
            text: Vec::with_capacity(1 << 10),
            ..OwnedRecord::default()
        };
        taken.url = taken.put(url)?;
        taken.base = base.map(|base| taken.put(base)).transpose()?;
        taken.redirect = redirect.map(|to| taken.put(to)).transpose()?;
        if let Some(links) = links {
            taken.put_links(links)?;
        }
        Ok(taken)
    }

    fn put_links(&mut self, links: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(list) = links.cast::<PyList>() {
            self.links.reserve(list.len());
            for link in list {
                self.put_link(&link)?;
            }
            return Ok(());
        }
        if links.is_instance_of::<PyString>() || links.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err(
                "links: a list of URLs, or any iterable of them, not one URL",
            ));
        }
        for link in links.try_iter()? {
            self.put_link(&link?)?;
        }
        Ok(())
    }

    /// Appends a link: a URL, or a tuple of a URL, its `rel` attribute and perhaps the link's weight.
    fn put_link(&mut self, link: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(tuple) = link.cast::<PyTuple>() else {
            let url = self.put(link)?;
            self.links.push((url, Rel::default(), 1));
            return Ok(());
        };
        type Pair<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyString>>);
        let ((url, rel), weight): (Pair<'_>, u32) = if tuple.len() == 3 {
            let (url, rel, weight) = tuple.extract()?;
            ((url, rel), weight)
        } else {
            (tuple.extract()?, 1)
        };
        let url = self.put(&url)?;
        let rel = match &rel {
            Some(rel) => Rel::of(rel.to_string_lossy().as_bytes()),
            None => Rel::default(),
        };
        self.links.push((url, rel, weight));
        Ok(())
    }

    /// Appends a text and returns its range. Each byte of a lone surrogate, which no URL has, becomes U+FFFD.
    fn put(&mut self, text: &Bound<'_, PyAny>) -> PyResult<Range<usize>> {
        let start = self.text.len();
        if let Ok(string) = text.cast::<PyString>() {
            match string.to_str() {
                Ok(string) => self.text.extend_from_slice(string.as_bytes()),
                Err(_) => self
                    .text
                    .extend_from_slice(string.to_string_lossy().as_bytes()),
            }
        } else if let Ok(bytes) = text.cast::<PyBytes>() {
            self.text.extend_from_slice(bytes.as_bytes());
        } else {
            let class = text.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "a URL is str or bytes, not {class}"
            )));
        }
        Ok(start..self.text.len())
    }

    fn at(&self, place: &Range<usize>) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.text.get(place.clone()).unwrap_or_default())
    }

    /// Returns the record as the library takes it.
    pub fn record(&self) -> Record<'_> {
        let links = self.links.iter().map(|(url, rel, weight)| Link {
            url: self.at(url),
            rel: *rel,
            weight: *weight,
        });
        Record {
            url: self.at(&self.url),
            base: self.base.as_ref().map(|base| self.at(base)),
            fetched_at: self.fetched_at,
            bad_time: None,
            status: self.status,
            digest: self.digest,
            redirect: self.redirect.as_ref().map(|to| self.at(to)),
            links: links.collect(),
            revisit: self.unchanged,
            same_as: None,
            totals: None,
        }
    }
}

/// Error for a number that is not a valid time.
pub const NOT_SECONDS: &str = "not in the years 0 to 9999: is it in milliseconds?";

/// Converts a number, a datetime with a time zone or a text in RFC 3339 to seconds since 1970.
pub fn time(value: &Bound<'_, PyAny>) -> PyResult<Time> {
    let py = value.py();
    let wrong = |what: &str| {
        invalid(format!(
            "{}: {what}",
            value
                .repr()
                .map_or("fetched_at".into(), |repr| repr.to_string())
        ))
    };
    let seconds = |number: f64| time_of_seconds(number).ok_or_else(|| wrong(NOT_SECONDS));
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return seconds(value.extract()?);
    }
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_string_lossy();
        return time_of(&text)
            .ok_or_else(|| wrong("a time like 2026-11-24T12:00:00Z, with its offset from UTC"));
    }
    if !value.hasattr(intern!(py, "tzinfo"))? {
        let class = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a time is a number of seconds since 1970, a datetime or a text, not {class}"
        )));
    }
    if value.getattr(intern!(py, "tzinfo"))?.is_none() {
        return Err(wrong(
            "a datetime needs a time zone, like datetime.now(timezone.utc)",
        ));
    }
    seconds(value.call_method0(intern!(py, "timestamp"))?.extract()?)
}
