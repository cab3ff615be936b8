//! Tables as inputs: they are read row by row and converted to lines of JSON. Positions, hashes, checkpoints,
//! limits and damage therefore work as for a file of that text. It is in the format `records` if names are URLs, else in
//! `node-records`.

#[cfg(feature = "parquet")]
mod columns;
mod graph;
#[cfg(feature = "parquet")]
pub(super) mod parquet;

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use super::SourceOptions;
use super::decompress::Fault;
use super::open_file;
use crate::decode::put_string;
use crate::decode::records::names::page_field;
use crate::disk::ExternalSorter;
use crate::formats::Format;
use crate::model::{Damage, Limits};
use crate::url::{self, CanonicalForm};
use crate::{Error, Result};

pub use graph::is_graph;

pub const PARQUET: &[u8; 4] = b"PAR1";
const SNIFF_NAMES: usize = 16;

pub(super) struct TableInput {
    pub rows: Rows,
    pub known: (Format, String),
}

pub(super) fn open(
    path: &Path,
    options: &SourceOptions,
    limits: &Limits,
) -> Result<Option<TableInput>> {
    let opened = if path.is_dir() {
        graph::open(path, limits)
    } else if path.is_file() {
        let (file, _) = open_file(path)?;
        let mut head = [0; PARQUET.len()];
        if (&file).read_exact(&mut head).is_err() || head != *PARQUET {
            return Ok(None);
        }
        parquet::open(file, path, options, limits).map(Some)
    } else {
        // A named pipe is not a table, and must be opened only once: its writer would not wait for another reader.
        Ok(None)
    };
    opened.map_err(|error| match error {
        Error::Unsupported(what) => Error::Unsupported(format!("{}: {what}", path.display())),
        other => other,
    })
}

#[cfg(not(feature = "parquet"))]
pub(super) mod parquet {
    use super::{Limits, Path, Result, SourceOptions, TableInput};

    pub fn open(_: std::fs::File, _: &Path, _: &SourceOptions, _: &Limits) -> Result<TableInput> {
        Err(crate::model::lacks_feature("a Parquet file", "parquet"))
    }
}

fn failed(path: &Path, fault: Fault) -> Error {
    match fault {
        Fault::Io(error) => Error::io(path, "read")(error),
        Fault::Damage(kind, what) => Error::Corrupt {
            input: path.display().to_string(),
            record: None,
            damage: Box::new(Damage {
                kind,
                what,
                member: None,
                unverified_from: 0,
                handed_out_to: 0,
            }),
        },
    }
}

/// Appends the text of a table's next row, a part of it, or nothing; returns `false` after the last, which ends it.
pub(super) type Rows = Box<dyn FnMut(&mut Vec<u8>) -> Result<bool, Fault> + Send>;

fn lazily(begin: impl FnOnce() -> Result<Rows, Fault> + Send + 'static) -> Rows {
    let (mut begin, mut rows) = (Some(begin), None::<Rows>);
    Box::new(move |out| {
        if let Some(begin) = begin.take() {
            rows = Some(begin()?);
        }
        rows.as_mut().map_or(Ok(false), |rows| rows(out))
    })
}

type GraphRows<T> = Box<dyn Iterator<Item = Result<T, Fault>> + Send>;
type KeyedRow = (Vec<u8>, Vec<u8>);

/// Sorts rows stably by the bytes of a key, in `memory` bytes and temporary files.
fn sorted<T: 'static>(
    rows: impl Iterator<Item = Result<T, Fault>>,
    memory: u64,
    split: impl Fn(T) -> KeyedRow,
    join: fn(KeyedRow) -> Option<T>,
) -> Result<GraphRows<T>, Fault> {
    let memory = usize::try_from(memory).unwrap_or(usize::MAX);
    let mut sorter = ExternalSorter::new(memory, &std::env::temp_dir());
    for row in rows {
        let (key, value) = split(row?);
        sorter.push(&key, &value)?;
    }
    Ok(Box::new(sorter.sorted()?.map(move |record| {
        let other = || Error::internal("a sorted row of a graph is not what it was");
        Ok(join(record?).ok_or_else(other)?)
    })))
}

/// Chooses the format of a graph that begins with these names: records of URLs if most are URLs.
fn format_of(names: &[Vec<u8>]) -> Format {
    let urls = names.iter().filter(|name| url::is_web(name)).count();
    if 2 * urls > names.len() {
        Format::Records
    } else {
        Format::NodeRecords
    }
}

/// Returns a page's name as the store has it: the canonical form of a URL.
fn page_name(format: Format, name: &[u8], longest: u64) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    let canonical = || url::canonical(name, None, longest as usize, &mut out);
    match (format == Format::Records).then(canonical) {
        Some(Ok(CanonicalForm::Rewritten)) => Cow::Owned(out),
        Some(Ok(form)) => Cow::Borrowed(form.text(name, &[])),
        _ => Cow::Borrowed(name),
    }
}

struct PageWriter {
    pub format: Format,
    pub is_open: bool,
    has_links: bool,
}

impl PageWriter {
    pub fn new(format: Format) -> PageWriter {
        PageWriter {
            format,
            is_open: false,
            has_links: false,
        }
    }

    pub fn begin(&mut self, name: &[u8], out: &mut Vec<u8>) {
        put_name(self.format, name, out);
        out.extend_from_slice(b",\"links\":[");
        (self.is_open, self.has_links) = (true, false);
    }

    pub fn link(&mut self, to: &[u8], weight: u32, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_links, true) {
            out.push(b',');
        }
        if weight == 1 {
            return put_string(to, out);
        }
        out.extend_from_slice(br#"{"url":"#);
        put_string(to, out);
        out.extend_from_slice(format!(r#","weight":{weight}}}"#).as_bytes());
    }

    pub fn end(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_open) {
            out.extend_from_slice(b"]}\n");
        }
    }
}

fn put_name(format: Format, name: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(page_field(format.decoder().names()).as_bytes());
    out.extend_from_slice(b"\":");
    put_string(name, out);
}
