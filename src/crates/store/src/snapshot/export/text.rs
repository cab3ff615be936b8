//! Formats of lines: tables, and documents with a name and a score.
//!
//! In TSV a name with a tab or a line end is refused, as there is no common convention for quoting it. CSV is that of
//! RFC 4180. Solr splits lines at their last `=`, so a name may hold others; sorted by key they load far faster, and
//! scores are read as 32-bit numbers. `formats/guide/search.md` shows the documents of the other search engines.
//!
//! Numbers have the shortest digits that read back to the same. An `_id` has 1 to 512 bytes: Elasticsearch rejects
//! others, so pages with other names are left out, and counted. Its `rank_feature` accepts only positive normal 32-bit
//! numbers. Only `elasticsearch-index`, whose documents belong to the ranking, deletes pages that were found gone.

use std::io::{self, Write};
use std::path::Path;

use super::columns::{ColumnValue, ExportColumn, domain_column, host_column, rank_column};
use super::columns::{score_column, url_column};
use super::{ExportOutput, Format, Page, Setup, name_without};
use crate::model::{Change, utc};
use crate::{Error, Result};

fn form_of(format: Format, setup: &Setup) -> Result<FileForm> {
    let (url, score) = (url_column(), score_column(setup));
    let field = setup.field.as_deref().unwrap_or("importance");
    let key = json(field);
    Ok(match format {
        Format::Tsv => FileForm {
            refused: (b"\t\n\r", "TSV"),
            ..FileForm::table(setup, "\t", "\n", put_plain)
        },
        Format::Csv => FileForm::table(setup, ",", "\r\n", put_quoted),
        Format::Scores => FileForm {
            refused: (b"\t\r\n", "a file of scores"),
            ..FileForm::new([("", url), ("\t", score)], "\n", put_plain)
        },
        Format::Solr => FileForm {
            refused: (b"\r\n", "a file for Solr"),
            ..FileForm::new([("", url), ("=", score)], "\n", put_short)
        },
        Format::Elasticsearch => {
            let doc = format!("}}}}\n{{\"doc\":{{{key}:");
            let parts = [(bulk("update", setup), url), (doc, score)];
            FileForm {
                has_ids: true,
                ..FileForm::new(parts, "}}\n", put_document)
            }
        }
        Format::ElasticsearchIndex => {
            if ["url", "host", "domain", "rank"].contains(&field) {
                return Err(Error::Usage(format!(
                    "field {field:?}: it holds something else; choose another for the score"
                )));
            }
            let parts = [
                (bulk("index", setup), url),
                ("}}\n{\"url\":".to_owned(), url_column()),
                (",\"host\":".to_owned(), host_column(setup)),
                (",\"domain\":".to_owned(), domain_column()),
                (",\"rank\":".to_owned(), rank_column()),
                (format!(",{key}:"), score),
            ];
            let deletion = vec![(bulk("delete", setup), url_column())];
            FileForm {
                gone: Some((deletion, "}}\n")),
                has_ids: true,
                ..FileForm::new(parts, "}\n", put_document)
            }
        }
        Format::Vespa => {
            let kind = json(&format!("id:{}::", document_type(setup)?));
            let begin = kind.trim_end_matches('"');
            let parts = [
                (format!("{{\"update\":{begin}"), url),
                (format!(",\"fields\":{{{key}:{{\"assign\":"), score),
            ];
            FileForm::new(parts, "}}}\n", |line, value| {
                let at = line.len();
                put_document(line, value)?;
                // The text began before the URL.
                if line[at] == b'"' {
                    line.remove(at);
                }
                Ok(())
            })
        }
        _ => {
            let parts = setup.all_columns().into_iter().enumerate();
            let parts = parts.map(|(at, column)| {
                let before = if at == 0 { '{' } else { ',' };
                (format!("{before}\"{}\":", column.name), column)
            });
            FileForm::new(parts, "}\n", put_json)
        }
    })
}

/// Returns the namespace and type of Vespa's documents, which have no default.
fn document_type(setup: &Setup) -> Result<&str> {
    let is_type = |into: &&str| {
        let parts = into.split_once(':');
        parts.is_some_and(|(space, kind)| {
            !space.is_empty() && !kind.is_empty() && !kind.contains(':')
        })
    };
    setup.into.as_deref().filter(is_type).ok_or_else(|| {
        Error::Usage(
            "Vespa's documents are identified by namespace and type: `into` NAMESPACE:TYPE, like web:page".into(),
        )
    })
}

/// Returns the beginning of an action of the bulk interface, up to the document's id.
fn bulk(action: &str, setup: &Setup) -> String {
    let index = setup.into.as_deref();
    let index = index.map_or(String::new(), |index| {
        format!("\"_index\":{},", json(index))
    });
    format!("{{\"{action}\":{{{index}\"_id\":")
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

type PutValue = fn(&mut Vec<u8>, Option<ColumnValue<'_>>) -> io::Result<()>;

/// Returns whether JSON writes a number in Rust's form: neither has an exponent where the other has none. The last
/// digits may differ if two shortest numbers are equally near.
fn is_alike_in_json(number: f64) -> bool {
    let size = number.abs();
    size < 1e-5 || (1e-4..1e16).contains(&size)
}

/// Appends a value as it is, with the shortest digits of numbers, and exponents where Rust has them.
fn put_plain(line: &mut Vec<u8>, value: Option<ColumnValue<'_>>) -> io::Result<()> {
    match value {
        None => Ok(()),
        Some(ColumnValue::Text(text)) => line.write_all(text.as_bytes()),
        Some(ColumnValue::Real(number)) if !is_alike_in_json(number) => write!(line, "{number:?}"),
        // Several times as fast as `write!`.
        Some(ColumnValue::Real(number)) => Ok(serde_json::to_writer(line, &number)?),
        Some(ColumnValue::Integer(number)) => Ok(serde_json::to_writer(line, &number)?),
        Some(ColumnValue::Bool(is)) => write!(line, "{is}"),
        Some(ColumnValue::Time(seconds)) => write!(line, "{}", utc(seconds).unwrap_or_default()),
    }
}

/// Appends a field of CSV. The empty name is quoted, so that readers do not take it for a missing value.
fn put_quoted(line: &mut Vec<u8>, value: Option<ColumnValue<'_>>) -> io::Result<()> {
    match value {
        Some(ColumnValue::Text(field))
            if field.is_empty() || field.bytes().any(|byte| b",\"\r\n".contains(&byte)) =>
        {
            write!(line, "\"{}\"", field.replace('"', "\"\""))
        }
        value => put_plain(line, value),
    }
}

fn put_json(line: &mut Vec<u8>, value: Option<ColumnValue<'_>>) -> io::Result<()> {
    match value {
        None => line.write_all(b"null"),
        Some(ColumnValue::Text(text)) => Ok(serde_json::to_writer(line, text)?),
        Some(ColumnValue::Real(number)) => Ok(serde_json::to_writer(line, &number)?),
        Some(ColumnValue::Time(time)) => Ok(serde_json::to_writer(line, &utc(time))?),
        value => put_plain(line, value),
    }
}

fn put_short(line: &mut Vec<u8>, value: Option<ColumnValue<'_>>) -> io::Result<()> {
    match value {
        Some(ColumnValue::Real(score)) => write!(line, "{:?}", score as f32),
        value => put_plain(line, value),
    }
}

/// Appends a value as JSON with the score as a positive normal 32-bit number: at least 1.17549435e-38.
fn put_document(line: &mut Vec<u8>, value: Option<ColumnValue<'_>>) -> io::Result<()> {
    match value {
        Some(ColumnValue::Real(score)) => {
            let score = (score as f32).max(f32::MIN_POSITIVE);
            Ok(serde_json::to_writer(line, &score)?)
        }
        value => put_json(line, value),
    }
}

/// Values of a row, each with the text before it, and the text after them.
type RowForm = (Vec<(String, ExportColumn)>, &'static str);
/// Bytes that a format's names cannot hold, and what the format is called in the error.
type RefusedBytes = (&'static [u8], &'static str);
const PIECE: usize = 1 << 16;
const ID_BYTES: std::ops::RangeInclusive<usize> = 1..=512;

struct FileForm {
    header: String,
    refused: RefusedBytes,
    row: RowForm,
    /// Form of a row whose page is gone, if it differs.
    gone: Option<RowForm>,
    put: PutValue,
    /// True if rows with names beyond [`ID_BYTES`] are left out.
    has_ids: bool,
}

impl FileForm {
    fn new<T: Into<String>>(
        parts: impl IntoIterator<Item = (T, ExportColumn)>,
        end: &'static str,
        put: PutValue,
    ) -> FileForm {
        let parts = parts.into_iter();
        let parts = parts.map(|(text, column)| (text.into(), column)).collect();
        FileForm {
            header: String::new(),
            refused: (b"", ""),
            row: (parts, end),
            gone: None,
            put,
            has_ids: false,
        }
    }

    fn table(setup: &Setup, separator: &'static str, end: &'static str, put: PutValue) -> FileForm {
        let columns = setup.all_columns();
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let header = names.join(separator) + end;
        let before = std::iter::once("").chain(std::iter::repeat(separator));
        FileForm {
            header,
            ..FileForm::new(before.zip(columns), end, put)
        }
    }
}

/// Writer of a file of lines, to which rows are added one by one. Output is buffered here.
pub struct LineWriter<'w> {
    form: FileForm,
    out: ExportOutput<'w>,
    lines: Vec<u8>,
    left_out: u64,
}

impl<'w> LineWriter<'w> {
    /// Begins a file like [`export`](super::export), in a text format.
    pub fn new(
        format: Format,
        setup: &Setup,
        out: impl Write + Send + 'w,
        path: &'w Path,
    ) -> Result<LineWriter<'w>> {
        let mut form = form_of(format, setup)?;
        Ok(LineWriter {
            lines: std::mem::take(&mut form.header).into_bytes(),
            form,
            out: ExportOutput::new(out, path),
            left_out: 0,
        })
    }

    pub fn push(&mut self, page: &Page<'_>) -> Result<()> {
        let ((bytes, format), instead) = (self.form.refused, "csv, jsonl or parquet");
        name_without(&page.url, page.page.0, bytes, format, instead)?;
        if self.form.has_ids && !ID_BYTES.contains(&page.url.len()) {
            self.left_out += 1;
            return Ok(());
        }
        let gone = self.form.gone.as_ref();
        let gone = gone.filter(|_| page.change == Some(Change::Gone));
        let (parts, end) = gone.unwrap_or(&self.form.row);
        for (text, column) in parts {
            self.lines.extend_from_slice(text.as_bytes());
            let put = (self.form.put)(&mut self.lines, column.of(page)?);
            put.map_err(|error| self.out.error(error))?;
        }
        self.lines.extend_from_slice(end.as_bytes());
        if self.lines.len() >= PIECE {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let written = self.out.write_all(&self.lines);
        self.lines.clear();
        written.map_err(|error| self.out.error(error))
    }

    /// Completes the file. Returns the number of rows left out because of their names.
    pub fn finish(mut self) -> Result<u64> {
        self.write()?;
        self.out.flush().map_err(|error| self.out.error(error))?;
        Ok(self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(number: f64) {
        let mut line = Vec::new();
        put_plain(&mut line, Some(ColumnValue::Real(number))).unwrap();
        let (text, rust) = (String::from_utf8(line).unwrap(), format!("{number:?}"));
        assert_eq!(text.parse::<f64>().unwrap().to_bits(), number.to_bits());
        assert_eq!(
            (text.len(), text.find('e')),
            (rust.len(), rust.find('e')),
            "{text} {rust}"
        );
    }

    #[test]
    fn numbers_between_two_shortest_ones_read_back() {
        check(2f64.powi(-25));
        check(f64::from_bits(4_832_528_421_834_691_593));
    }

    proptest! {
        #[test]
        fn plain_numbers_have_the_form_of_rust(bits: u64, digits in 0u32..10_000, exponent in -12i32..24) {
            for number in [f64::from_bits(bits), f64::from(digits) * 10f64.powi(exponent)] {
                prop_assume!(number.is_finite());
                check(number);
            }
        }
    }
}
