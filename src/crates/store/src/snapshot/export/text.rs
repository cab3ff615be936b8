//! Formats of lines: tables, and documents with a name and a score.
//!
//! In TSV a name with a tab or a line end is refused, as there is no common convention for quoting it. CSV is that of
//! RFC 4180. Solr splits lines at their last `=`, so a name may hold others; sorted by key they load far faster, and
//! scores are read as 32-bit numbers. `formats/guide/search.md` shows the documents of the other search engines.
//!
//! Numbers have the shortest digits that read back to the same. An `_id` has 1 to 512 bytes: Elasticsearch rejects
//! others, so pages with other names are left out, and counted. Its `rank_feature` accepts only positive normal 32-bit
//! numbers, to which scores are rounded. Updates change existing documents and create none. A page that was found gone
//! since an older ranking is deleted in `elasticsearch-index`, whose documents belong to the ranking; `elasticsearch`
//! and `vespa` delete none.

use std::io::{self, Write};

use super::columns::{ColumnValue, ExportColumn, domain_column, host_column, rank_column};
use super::columns::{score_column, url_column};
use super::{Content, ExportFormatSpec, ExportOutput, RowSource, Setup, name_without};
use crate::model::{Change, utc};
use crate::{Error, Result};

/// Defines a format that is text by its name, its help, its content and the function that makes its form.
macro_rules! text_format {
    ($constant:ident, $name:literal, $about:literal, $content:ident, $form:expr) => {
        pub(super) const $constant: ExportFormatSpec = ExportFormatSpec {
            name: $name,
            about: $about,
            is_text: true,
            content: Content::$content,
            write: |out, setup, rows| {
                let form: fn(&Setup) -> Result<FileForm> = $form;
                form(setup)?.write(out, rows)
            },
        };
    };
}

text_format!(
    TSV,
    "tsv",
    "tab-separated values with a header line",
    Table,
    |setup| {
        let refused = (&b"\t\n\r"[..], "TSV");
        Ok(FileForm::table(setup, "\t", "\n", put_plain).refusing(refused))
    }
);
text_format!(
    CSV,
    "csv",
    "comma-separated values with a header line (RFC 4180)",
    Table,
    |setup| Ok(FileForm::table(setup, ",", "\r\n", put_quoted))
);
text_format!(
    JSONL,
    "jsonl",
    "JSON lines, one object per page",
    Table,
    |setup| {
        let parts = setup.all_columns().into_iter().enumerate();
        let parts = parts.map(|(at, column)| {
            let before = if at == 0 { '{' } else { ',' };
            (format!("{before}\"{}\":", column.name), column)
        });
        Ok(FileForm::of(parts, "}\n", put_json))
    }
);
text_format!(
    SCORES,
    "scores",
    "a URL, a tab and a score per line",
    Score,
    |setup| {
        let parts = [("", url_column()), ("\t", score_column(setup))];
        let form = FileForm::of(parts, "\n", put_plain);
        Ok(form.refusing((b"\t\r\n", "a file of scores")))
    }
);
text_format!(
    SOLR,
    "solr",
    "url=score, for Solr's ExternalFileField",
    Score,
    |setup| {
        let parts = [("", url_column()), ("=", score_column(setup))];
        let form = FileForm::of(parts, "\n", put_short);
        Ok(form.refusing((b"\r\n", "a file for Solr")))
    }
);
text_format!(
    ELASTICSEARCH,
    "elasticsearch",
    "bulk updates of one field, for Elasticsearch and OpenSearch",
    Field,
    |setup| {
        let field = json(field(setup));
        let parts = [
            (bulk("update", setup), url_column()),
            (format!("}}}}\n{{\"doc\":{{{field}:"), score_column(setup)),
        ];
        Ok(FileForm {
            has_ids: true,
            ..FileForm::of(parts, "}}\n", put_document)
        })
    }
);
text_format!(
    ELASTICSEARCH_INDEX,
    "elasticsearch-index",
    "bulk documents of their own: url, host, domain, score, rank",
    Field,
    |setup| {
        let field = field(setup);
        if ["url", "host", "domain", "rank"].contains(&field) {
            return Err(Error::Usage(format!(
                "field {field:?}: it holds something else; choose another for the score"
            )));
        }
        let parts = [
            (bulk("index", setup), url_column()),
            ("}}\n{\"url\":".to_owned(), url_column()),
            (",\"host\":".to_owned(), host_column(setup)),
            (",\"domain\":".to_owned(), domain_column()),
            (",\"rank\":".to_owned(), rank_column()),
            (format!(",{}:", json(field)), score_column(setup)),
        ];
        let deletion = vec![(bulk("delete", setup), url_column())];
        Ok(FileForm {
            gone: Some((deletion, "}}\n")),
            has_ids: true,
            ..FileForm::of(parts, "}\n", put_document)
        })
    }
);
text_format!(
    VESPA,
    "vespa",
    "partial updates of one field, for Vespa",
    Field,
    |setup| {
        let kind = document_type(setup.into.as_deref())?;
        let kind = json(&format!("id:{kind}::"));
        let begin = kind.trim_end_matches('"');
        let field = json(field(setup));
        let assign = format!(",\"fields\":{{{field}:{{\"assign\":");
        let parts = [
            (format!("{{\"update\":{begin}"), url_column()),
            (assign, score_column(setup)),
        ];
        Ok(FileForm::of(parts, "}}}\n", |line, value| {
            let at = line.len();
            put_document(line, value)?;
            // The text began before the URL.
            if line[at] == b'"' {
                line.remove(at);
            }
            Ok(())
        }))
    }
);

/// Returns the namespace and type of Vespa's documents, which have no default.
fn document_type(into: Option<&str>) -> Result<&str> {
    let is_type = |into: &&str| {
        let parts = into.split_once(':');
        parts.is_some_and(|(space, kind)| {
            !space.is_empty() && !kind.is_empty() && !kind.contains(':')
        })
    };
    into.filter(is_type).ok_or_else(|| {
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

fn field(setup: &Setup) -> &str {
    setup.field.as_deref().unwrap_or("importance")
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

type PutValue = fn(&mut Vec<u8>, Option<ColumnValue<'_>>) -> io::Result<()>;

/// Appends a value as it is, with numbers in Rust's shortest form.
fn put_plain(line: &mut Vec<u8>, value: Option<ColumnValue<'_>>) -> io::Result<()> {
    match value {
        None => Ok(()),
        Some(ColumnValue::Text(text)) => line.write_all(text.as_bytes()),
        Some(ColumnValue::Real(number)) => write!(line, "{number:?}"),
        Some(ColumnValue::Integer(number)) => write!(line, "{number}"),
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

/// Appends a value with the score as a 32-bit number.
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
/// Size in bytes at which lines are written.
const PIECE: usize = 1 << 16;
/// Lengths of Elasticsearch's `_id`, in bytes.
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
    fn of<T: Into<String>>(
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
            ..FileForm::of(before.zip(columns), end, put)
        }
    }

    fn refusing(self, refused: RefusedBytes) -> FileForm {
        FileForm { refused, ..self }
    }

    fn write(self, mut out: ExportOutput<'_>, rows: &mut RowSource<'_>) -> Result<u64> {
        let mut lines = self.header.into_bytes();
        lines.reserve(2 * PIECE);
        let mut left_out = 0;
        rows(&mut |page| {
            let ((bytes, format), instead) = (self.refused, "csv, jsonl or parquet");
            name_without(&page.url, page.page.0, bytes, format, instead)?;
            if self.has_ids && !ID_BYTES.contains(&page.url.len()) {
                left_out += 1;
                return Ok(());
            }
            let gone = self.gone.as_ref();
            let gone = gone.filter(|_| page.change == Some(Change::Gone));
            let (parts, end) = gone.unwrap_or(&self.row);
            for (text, column) in parts {
                lines.extend_from_slice(text.as_bytes());
                let put = (self.put)(&mut lines, column.of(page)?);
                put.map_err(|error| out.error(error))?;
            }
            lines.extend_from_slice(end.as_bytes());
            if lines.len() >= PIECE {
                let written = out.write_all(&lines);
                lines.clear();
                written.map_err(|error| out.error(error))?;
            }
            Ok(())
        })?;
        let written = out.write_all(&lines).and_then(|()| out.flush());
        written.map_err(|error| out.error(error))?;
        Ok(left_out)
    }
}
