//! Tab-separated values: a header line, no quoting, lines end with a line feed. Importance below 1e-5 is in scientific
//! notation (`1.5e-6`).
//!
//! A name with a tab, a line feed or a carriage return is refused, as there is no common convention for quoting it;
//! canonical URLs never contain any.

use super::columns::{ExportColumn, put_names, put_values};
use super::{Content, ExportFormatSpec, ExportOutput, Exporter, LineWriter, Page, without};
use crate::Result;

pub(super) const FORMAT: ExportFormatSpec = ExportFormatSpec {
    name: "tsv",
    about: "tab-separated values with a header line",
    is_text: true,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Tsv::new(out, setup.all_columns()))),
};

struct Tsv<'w>(LineWriter<'w>, Vec<ExportColumn>);

impl<'w> Tsv<'w> {
    fn new(out: ExportOutput<'w>, columns: Vec<ExportColumn>) -> Tsv<'w> {
        let mut lines = LineWriter::new(out);
        put_names(&mut lines.buffer, "\t", &columns);
        lines.buffer.push(b'\n');
        Tsv(lines, columns)
    }
}

impl Exporter for Tsv<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        without(page, b"\t\n\r", "TSV")?;
        let put = |line: &mut Vec<u8>, text: &str| line.extend_from_slice(text.as_bytes());
        put_values(&mut self.0.buffer, b'\t', &self.1, page, put)?;
        self.0.buffer.push(b'\n');
        self.0.line_done()
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.0.finish().map(|()| 0)
    }
}
