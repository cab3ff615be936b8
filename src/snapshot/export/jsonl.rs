//! JSON lines: one object a page, keys in the order of the columns, `last_fetch` a string or null.

use serde::Serialize;

use super::{
    Columns, Content, ExportSpec, Exporter, Lines, Page, importance, last_fetch, put_json,
};
use crate::Result;
use crate::model::Change;

pub(super) const FORMAT: ExportSpec = ExportSpec {
    name: "jsonl",
    about: "JSON lines, one object per page",
    is_text: true,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Jsonl(Lines::new(out), setup.columns))),
};

#[derive(Serialize)]
struct Row<'a> {
    url: &'a str,
    importance: f64,
    rank: u64,
    visits: u64,
    last_fetch: Option<String>,
    /// Absent where it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<Option<f64>>,
    /// Of sites only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<u64>,
    /// Since an older ranking only.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<&'static str>,
}

struct Jsonl<'w>(Lines<'w>, Columns);

impl Exporter for Jsonl<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        let row = Row {
            url: &page.url,
            importance: importance(page)?,
            rank: page.rank,
            visits: page.visits,
            last_fetch: last_fetch(page)?,
            distance: self.1.distance.then_some(page.distance),
            pages: page
                .site
                .as_ref()
                .filter(|_| self.1.pages)
                .map(|site| site.pages),
            change: page.change.filter(|_| self.1.change).map(Change::name),
        };
        put_json(&mut self.0.buffer, &self.0.out.path, &row)?;
        self.0.buffer.push(b'\n');
        self.0.line_done()
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.0.finish().map(|()| 0)
    }
}
