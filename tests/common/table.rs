//! Parquet files for tests, written column by column.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// Layout of a file.
#[derive(Clone, Copy)]
pub struct Layout {
    pub group_rows: usize,
    pub page_rows: usize,
    pub compression: Compression,
    pub version: WriterVersion,
}

/// Layouts that programs in use write.
pub fn layouts() -> [Layout; 4] {
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let [one, two] = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    [
        (1 << 20, 20_000, Compression::SNAPPY, one),
        (64, 20_000, zstd, two),
        (37, 5, Compression::UNCOMPRESSED, two),
        (100, 1, Compression::GZIP(Default::default()), one),
    ]
    .map(|(group_rows, page_rows, compression, version)| Layout {
        group_rows,
        page_rows,
        compression,
        version,
    })
}

/// Values of a column, one for each row.
pub enum Column {
    Text(Vec<Option<String>>),
    Int(Vec<Option<i32>>),
    Long(Vec<Option<i64>>),
    Lists(Vec<Option<Vec<Option<String>>>>),
    Truths(Vec<Option<Vec<Option<bool>>>>),
    /// Lists that are all empty: true if there is a list.
    EmptyLists(Vec<bool>),
}

impl Column {
    fn rows(&self) -> usize {
        match self {
            Column::Text(rows) => rows.len(),
            Column::Int(rows) => rows.len(),
            Column::Long(rows) => rows.len(),
            Column::Lists(rows) => rows.len(),
            Column::Truths(rows) => rows.len(),
            Column::EmptyLists(rows) => rows.len(),
        }
    }
}

/// Writes columns, each with its declaration.
pub fn write(path: &Path, columns: &[(&str, Column)], layout: Layout) {
    let schema: String = columns.iter().map(|(text, _)| format!("{text} ")).collect();
    let schema = parse_message_type(&format!("message table {{ {schema} }}")).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(layout.compression)
        .set_data_page_row_count_limit(layout.page_rows)
        .set_write_batch_size(layout.page_rows.min(1024))
        .set_writer_version(layout.version)
        .build();
    let file = File::create(path).unwrap();
    let mut writer =
        SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).unwrap();
    let rows = columns.first().map_or(0, |(_, column)| column.rows());
    for from in (0..rows).step_by(layout.group_rows) {
        let to = rows.min(from + layout.group_rows);
        let mut group = writer.next_row_group().unwrap();
        for (_, column) in columns {
            match column {
                Column::Text(rows) => put::<ByteArrayType, _>(&mut group, &rows[from..to], bytes),
                Column::Int(rows) => put::<Int32Type, _>(&mut group, &rows[from..to], |&n| n),
                Column::Long(rows) => put::<Int64Type, _>(&mut group, &rows[from..to], |&n| n),
                Column::Lists(rows) => {
                    put_lists::<ByteArrayType, _>(&mut group, &rows[from..to], bytes);
                }
                Column::Truths(rows) => {
                    put_lists::<BoolType, _>(&mut group, &rows[from..to], |&is| is);
                }
                Column::EmptyLists(rows) => put_empty(&mut group, &rows[from..to]),
            }
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

#[allow(clippy::ptr_arg)] // What the rows hold.
fn bytes(text: &String) -> ByteArray {
    ByteArray::from(text.as_str())
}

fn put<T: DataType, V>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    rows: &[Option<V>],
    value: impl Fn(&V) -> T::T,
) {
    let values: Vec<T::T> = rows.iter().flatten().map(value).collect();
    let known: Vec<i16> = rows.iter().map(|row| row.is_some().into()).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<T>()
        .write_batch(&values, Some(&known), None)
        .unwrap();
    column.close().unwrap();
}

/// Writes lists with gaps of values with gaps: no list is level 0, an empty one 1, no value 2, a value 3.
fn put_lists<T: DataType, V>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    rows: &[Option<Vec<Option<V>>>],
    value: impl Fn(&V) -> T::T,
) {
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let empty = match row {
            None => 0,
            Some(list) if list.is_empty() => 1,
            Some(list) => {
                for (at, one) in list.iter().enumerate() {
                    repeated.push(i16::from(at > 0));
                    defined.push(if one.is_some() { 3 } else { 2 });
                    values.extend(one.as_ref().map(&value));
                }
                continue;
            }
        };
        repeated.push(0);
        defined.push(empty);
    }
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<T>()
        .write_batch(&values, Some(&defined), Some(&repeated))
        .unwrap();
    column.close().unwrap();
}

/// Writes lists of numbers that are all empty or absent.
fn put_empty(group: &mut SerializedRowGroupWriter<'_, File>, rows: &[bool]) {
    let defined: Vec<i16> = rows.iter().map(|&is_list| is_list.into()).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<Int32Type>()
        .write_batch(&[], Some(&defined), Some(&vec![0; rows.len()]))
        .unwrap();
    column.close().unwrap();
}
