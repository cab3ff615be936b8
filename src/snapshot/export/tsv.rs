//! Tab-separated values: a header line, no quoting, lines end with a line feed. Importance below 1e-5 is in scientific
//! notation (`1.5e-6`).
//!
//! A name with a tab, a line feed or a carriage return is refused, as there is no common convention for quoting it;
//! canonical URLs never contain any.

use std::io::Write;

use super::columns::{Column, put_names, put_values};
use super::{
    Columns, Content, ExportSpec, Exporter, Lines, Output, Page, importance, last_fetch, without,
};
use crate::{Error, Result};

pub(super) const FORMAT: ExportSpec = ExportSpec {
    name: "tsv",
    about: "tab-separated values with a header line",
    is_text: true,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Tsv::new(out, setup.columns))),
};

struct Tsv<'w>(Lines<'w>, Vec<Column>);

impl<'w> Tsv<'w> {
    fn new(out: Output<'w>, columns: Columns) -> Tsv<'w> {
        let mut lines = Lines::new(out);
        lines
            .buffer
            .extend_from_slice(b"url\timportance\trank\tvisits\tlast_fetch");
        let columns = columns.all();
        put_names(&mut lines.buffer, '\t', &columns);
        lines.buffer.push(b'\n');
        Tsv(lines, columns)
    }
}

impl Exporter for Tsv<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        without(page, b"\t\n\r", "TSV")?;
        let importance = importance(page)?;
        let fetched = last_fetch(page)?.unwrap_or_default();
        let (url, rank, visits) = (&page.url, page.rank, page.visits);
        write!(
            self.0.buffer,
            "{url}\t{importance:?}\t{rank}\t{visits}\t{fetched}"
        )
        .map_err(|e| Error::io(&self.0.out.path, "write")(e))?;
        put_values(&mut self.0.buffer, '\t', &self.1, page)?;
        self.0.buffer.push(b'\n');
        self.0.line_done()
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.0.finish().map(|()| 0)
    }
}
