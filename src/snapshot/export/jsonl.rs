//! JSON lines: one object per page, keys in the order of the columns, `last_fetch` a string or null.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::columns::{Column, Value};
use super::{Content, ExportSpec, Exporter, Lines, Page, importance, last_fetch, put_json};
use crate::Result;

pub(super) const FORMAT: ExportSpec = ExportSpec {
    name: "jsonl",
    about: "JSON lines, one object per page",
    is_text: true,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Jsonl(Lines::new(out), setup.columns.all()))),
};

#[derive(Serialize)]
struct Row<'a> {
    url: &'a str,
    importance: f64,
    rank: u64,
    visits: u64,
    last_fetch: Option<String>,
    #[serde(flatten)]
    more: More,
}

/// Optional columns with their values.
struct More(Vec<(&'static str, Option<Value>)>);

impl Serialize for More {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            match *value {
                None => map.serialize_entry(name, &None::<u64>)?,
                Some(Value::Text(text)) => map.serialize_entry(name, text)?,
                Some(Value::Real(number)) => map.serialize_entry(name, &number)?,
                Some(Value::Integer(number)) => map.serialize_entry(name, &number)?,
            }
        }
        map.end()
    }
}

struct Jsonl<'w>(Lines<'w>, Vec<Column>);

impl Exporter for Jsonl<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        let more = self.1.iter();
        let more = more.map(|column| Ok((column.name, column.of(page)?)));
        let row = Row {
            url: &page.url,
            importance: importance(page)?,
            rank: page.rank,
            visits: page.visits,
            last_fetch: last_fetch(page)?,
            more: More(more.collect::<Result<_>>()?),
        };
        put_json(&mut self.0.buffer, &self.0.out.path, &row)?;
        self.0.buffer.push(b'\n');
        self.0.line_done()
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.0.finish().map(|()| 0)
    }
}
