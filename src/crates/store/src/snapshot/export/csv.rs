//! Comma-separated values by RFC 4180: a header line, lines end with CR LF, and a field that holds a comma, a quote or
//! a line end is quoted, with its quotes doubled. Any name can be written. Numbers are as in TSV.

use super::columns::{ExportColumn, put_names, put_values};
use super::{Content, ExportFormatSpec, ExportOutput, Exporter, LineWriter, Page};
use crate::Result;

pub(super) const FORMAT: ExportFormatSpec = ExportFormatSpec {
    name: "csv",
    about: "comma-separated values with a header line (RFC 4180)",
    is_text: true,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Csv::new(out, setup.all_columns()))),
};

struct Csv<'w>(LineWriter<'w>, Vec<ExportColumn>);

impl<'w> Csv<'w> {
    fn new(out: ExportOutput<'w>, columns: Vec<ExportColumn>) -> Csv<'w> {
        let mut lines = LineWriter::new(out);
        put_names(&mut lines.buffer, ",", &columns);
        lines.buffer.extend_from_slice(b"\r\n");
        Csv(lines, columns)
    }
}

impl Exporter for Csv<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        put_values(&mut self.0.buffer, b',', &self.1, page, put_field)?;
        self.0.buffer.extend_from_slice(b"\r\n");
        self.0.line_done()
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.0.finish().map(|()| 0)
    }
}

/// Appends a field. The empty name is quoted, so that readers do not take it for a missing value.
fn put_field(line: &mut Vec<u8>, field: &str) {
    let quoted = field.is_empty() || field.bytes().any(|byte| b",\"\r\n".contains(&byte));
    if !quoted {
        return line.extend_from_slice(field.as_bytes());
    }
    line.push(b'"');
    for byte in field.bytes() {
        if byte == b'"' {
            line.push(byte);
        }
        line.push(byte);
    }
    line.push(b'"');
}
