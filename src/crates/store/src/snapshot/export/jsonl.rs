//! JSON lines: one object per page, keys in the order of the columns, `last_fetch` a string or null.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::columns::{ColumnValue, ExportColumn};
use super::{Content, ExportFormatSpec, Exporter, LineWriter, Page, put_json};
use crate::Result;
use crate::model::utc;

pub(super) const FORMAT: ExportFormatSpec = ExportFormatSpec {
    name: "jsonl",
    about: "JSON lines, one object per page",
    is_text: true,
    content: Content::Table,
    start: |out, setup| Ok(Box::new(Jsonl(LineWriter::new(out), setup.all_columns()))),
};

/// Values of a row with their names.
struct JsonRow<'r>(Vec<(&'r str, Option<ColumnValue<'r>>)>);

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            match *value {
                None => map.serialize_entry(name, &None::<u64>)?,
                Some(ColumnValue::Text(text)) => map.serialize_entry(name, text)?,
                Some(ColumnValue::Real(number)) => map.serialize_entry(name, &number)?,
                Some(ColumnValue::Integer(number)) => map.serialize_entry(name, &number)?,
                Some(ColumnValue::Bool(is)) => map.serialize_entry(name, &is)?,
                Some(ColumnValue::Time(seconds)) => map.serialize_entry(name, &utc(seconds))?,
            }
        }
        map.end()
    }
}

struct Jsonl<'w>(LineWriter<'w>, Vec<ExportColumn>);

impl Exporter for Jsonl<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        let values = self.1.iter();
        let values = values.map(|column| Ok((&*column.name, column.of(page)?)));
        let row = JsonRow(values.collect::<Result<_>>()?);
        put_json(&mut self.0.buffer, &self.0.out.path, &row)?;
        self.0.buffer.push(b'\n');
        self.0.line_done()
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.0.finish().map(|()| 0)
    }
}
