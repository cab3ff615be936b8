//! Records read from Arrow tables, row by row, without copying their text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeListArray,
    LargeStringArray, ListArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::{ArrowError, DataType, TimeUnit};
use cashrank::{Digest, Error, Link, Record, Rel, Result, Time};
use cashrank_crawl::decode::{time_of, time_of_seconds};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::record::NOT_SECONDS;
use crate::writer::Shared;

/// Number of rows between two checks for a stop request.
const ROWS: usize = 1 << 10;

/// Names of the columns to read. `None`: the default name, if the table has such a column.
pub struct Columns {
    pub url: String,
    pub links: String,
    pub status: Option<String>,
    pub fetched_at: Option<String>,
    pub redirect: Option<String>,
    pub digest: Option<String>,
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Pushes all rows of a table; returns their number.
///
/// # Errors
/// If the object is no table, or columns are missing or of a wrong type; and the errors of the writer.
pub fn add_all(
    py: Python<'_>,
    writer: &Arc<Shared>,
    table: &Bound<'_, PyAny>,
    columns: Columns,
) -> PyResult<u64> {
    let batches: Batches = if table.hasattr(intern!(py, "__arrow_c_stream__"))? {
        Box::new(RecordBatchStreamReader::from_pyarrow_bound(table)?)
    } else if table.hasattr(intern!(py, "__arrow_c_array__"))? {
        Box::new(std::iter::once(Ok(RecordBatch::from_pyarrow_bound(table)?)))
    } else {
        let class = table.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a table has __arrow_c_stream__ or __arrow_c_array__, as those of pyarrow, Polars and pandas have; {class} has not"
        )));
    };
    writer.take(py)?.long(py, move |writer, stop| {
        let mut pushed = 0;
        for batch in batches {
            let batch = batch.map_err(|error| Error::Usage(error.to_string()))?;
            let table = Rows::new(&batch, &columns)?;
            for row in 0..batch.num_rows() {
                if row % ROWS == 0 && stop.is_set() {
                    return Ok(pushed);
                }
                let record = table.record(row).map_err(|what| {
                    Error::Usage(format!(
                        "row {pushed}: {what}; the rows before it were taken"
                    ))
                })?;
                writer.push(&record)?;
                pushed += 1;
            }
        }
        Ok(pushed)
    })
}

/// Columns of a batch.
struct Rows<'a> {
    url: Texts<'a>,
    links: Lists<'a>,
    status: Option<Numbers<'a>>,
    fetched_at: Option<Times<'a>>,
    redirect: Option<Texts<'a>>,
    digest: Option<Texts<'a>>,
}

impl<'a> Rows<'a> {
    fn new(batch: &'a RecordBatch, columns: &Columns) -> Result<Rows<'a>> {
        let column = |name: &str| {
            batch.column_by_name(name).ok_or_else(|| {
                let schema = batch.schema();
                let names = schema.fields().iter().map(|field| field.name().as_str());
                let names: Vec<&str> = names.collect();
                Error::Usage(format!(
                    "no column {name:?}: there are {}",
                    names.join(", ")
                ))
            })
        };
        let optional = |name: &Option<String>, usual: &str| match name {
            Some(name) => column(name).map(|found| Some((found, name.clone()))),
            None => Ok(batch
                .column_by_name(usual)
                .map(|found| (found, usual.to_owned()))),
        };
        let texts = |of: Option<(&'a ArrayRef, String)>| {
            of.map(|(found, name)| Texts::new(found, &name)).transpose()
        };
        let status = optional(&columns.status, "status")?;
        let fetched_at = optional(&columns.fetched_at, "fetched_at")?;
        Ok(Rows {
            url: Texts::new(column(&columns.url)?, &columns.url)?,
            links: Lists::new(column(&columns.links)?, &columns.links)?,
            status: status
                .map(|(found, name)| Numbers::new(found, &name))
                .transpose()?,
            fetched_at: fetched_at
                .map(|(found, name)| Times::new(found, &name))
                .transpose()?,
            redirect: texts(optional(&columns.redirect, "redirect")?)?,
            digest: texts(optional(&columns.digest, "digest")?)?,
        })
    }

    fn record(&self, row: usize) -> Result<Record<'a>, String> {
        let status = self.status.as_ref().and_then(|column| (column.0)(row));
        let status = status.map(|status| {
            i32::try_from(status).map_err(|_| format!("status {status} is no status"))
        });
        let fetched_at = match &self.fetched_at {
            Some(times) => times.get(row)?,
            None => None,
        };
        let text = |of: &Option<Texts<'a>>| of.as_ref().and_then(|column| column.get(row));
        let digest = text(&self.digest).map(String::from_utf8_lossy);
        Ok(Record {
            // A row without a URL counts as skipped.
            url: Cow::Borrowed(self.url.get(row).unwrap_or_default()),
            fetched_at,
            status: status.transpose()?,
            digest: digest
                .map(|text| Digest::of_text(&text))
                .unwrap_or_default(),
            redirect: text(&self.redirect).map(Cow::Borrowed),
            links: self.links.get(row).collect(),
            ..Record::default()
        })
    }
}

fn wrong(name: &str, array: &dyn Array, expected: &str) -> Error {
    Error::Usage(format!(
        "column {name:?} is of type {}: {expected}",
        array.data_type()
    ))
}

/// Column of texts.
enum Texts<'a> {
    /// Column without a type: all values are null.
    Null,
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
}

impl<'a> Texts<'a> {
    fn new(array: &'a ArrayRef, name: &str) -> Result<Texts<'a>> {
        Ok(match array.data_type() {
            DataType::Null => Texts::Null,
            DataType::Utf8 => Texts::Utf8(array.as_string()),
            DataType::LargeUtf8 => Texts::LargeUtf8(array.as_string()),
            DataType::Utf8View => Texts::Utf8View(array.as_string_view()),
            DataType::Binary => Texts::Binary(array.as_binary()),
            DataType::LargeBinary => Texts::LargeBinary(array.as_binary()),
            DataType::BinaryView => Texts::BinaryView(array.as_binary_view()),
            _ => return Err(wrong(name, array, "it must be of strings")),
        })
    }

    fn get(&self, row: usize) -> Option<&'a [u8]> {
        fn some<'a>(
            array: &'a dyn Array,
            row: usize,
            value: impl FnOnce() -> &'a [u8],
        ) -> Option<&'a [u8]> {
            array.is_valid(row).then(value)
        }
        match *self {
            Texts::Null => None,
            Texts::Utf8(array) => some(array, row, || array.value(row).as_bytes()),
            Texts::LargeUtf8(array) => some(array, row, || array.value(row).as_bytes()),
            Texts::Utf8View(array) => some(array, row, || array.value(row).as_bytes()),
            Texts::Binary(array) => some(array, row, || array.value(row)),
            Texts::LargeBinary(array) => some(array, row, || array.value(row)),
            Texts::BinaryView(array) => some(array, row, || array.value(row)),
        }
    }
}

/// Column of lists of links.
struct Lists<'a> {
    places: Places<'a>,
    urls: Texts<'a>,
    rels: Option<Texts<'a>>,
    weights: Option<Numbers<'a>>,
}

enum Places<'a> {
    List(&'a ListArray),
    LargeList(&'a LargeListArray),
    Null,
}

impl<'a> Lists<'a> {
    fn new(array: &'a ArrayRef, name: &str) -> Result<Lists<'a>> {
        let (places, items) = match array.data_type() {
            DataType::Null => (Places::Null, array),
            DataType::List(_) => {
                let lists: &ListArray = array.as_list();
                (Places::List(lists), lists.values())
            }
            DataType::LargeList(_) => {
                let lists: &LargeListArray = array.as_list();
                (Places::LargeList(lists), lists.values())
            }
            _ => return Err(wrong(name, array, "it must be of lists of strings")),
        };
        if !matches!(items.data_type(), DataType::Struct(_)) {
            let urls = Texts::new(items, name)?;
            return Ok(Lists {
                places,
                urls,
                rels: None,
                weights: None,
            });
        }
        let links = items.as_struct();
        let urls = links.column_by_name("url");
        let urls = urls.ok_or_else(|| wrong(name, array, "its structs must have a field url"))?;
        let rels = links.column_by_name("rel");
        let weights = links.column_by_name("weight");
        let weights = weights
            .map(|weights| Numbers::new(weights, name))
            .transpose()?;
        let is_weight = |weight: i64| u32::try_from(weight).is_ok();
        if let Some(weights) = &weights
            && !(0..links.len()).all(|at| (weights.0)(at).is_none_or(is_weight))
        {
            return Err(wrong(
                name,
                array,
                "weights must be whole numbers from 0 to 4294967295",
            ));
        }
        Ok(Lists {
            places,
            urls: Texts::new(urls, name)?,
            rels: rels.map(|rels| Texts::new(rels, name)).transpose()?,
            weights,
        })
    }

    fn range(&self, row: usize) -> Range<usize> {
        match self.places {
            Places::List(lists) if lists.is_valid(row) => {
                let ends = lists.value_offsets();
                ends[row] as usize..ends[row + 1] as usize
            }
            Places::LargeList(lists) if lists.is_valid(row) => {
                let ends = lists.value_offsets();
                ends[row] as usize..ends[row + 1] as usize
            }
            _ => 0..0,
        }
    }

    /// Returns the links of a row; a null row has none, and null items are left out.
    fn get(&self, row: usize) -> impl Iterator<Item = Link<'a>> {
        self.range(row).filter_map(move |at| {
            let rel = self.rels.as_ref().and_then(|rels| rels.get(at));
            let weight = self.weights.as_ref().and_then(|weights| (weights.0)(at));
            Some(Link {
                url: Cow::Borrowed(self.urls.get(at)?),
                rel: rel.map(Rel::of).unwrap_or_default(),
                weight: weight
                    .and_then(|weight| weight.try_into().ok())
                    .unwrap_or(1),
            })
        })
    }
}

/// Column of whole numbers.
struct Numbers<'a>(Box<dyn Fn(usize) -> Option<i64> + 'a>);

/// Returns a function from row to value, `None` for null.
fn values<'a, T: ArrowPrimitiveType>(
    array: &'a ArrayRef,
) -> impl Fn(usize) -> Option<T::Native> + 'a {
    let array = array.as_primitive::<T>();
    move |row| array.is_valid(row).then(|| array.value(row))
}

impl<'a> Numbers<'a> {
    fn new(array: &'a ArrayRef, name: &str) -> Result<Numbers<'a>> {
        fn of<'a, T: ArrowPrimitiveType>(array: &'a ArrayRef) -> Numbers<'a>
        where
            T::Native: TryInto<i64>,
        {
            let get = values::<T>(array);
            // A number beyond the range of i64 is neither a valid status nor a valid time.
            Numbers(Box::new(move |row| {
                Some(get(row)?.try_into().unwrap_or(i64::MAX))
            }))
        }
        Ok(match array.data_type() {
            DataType::Null => Numbers(Box::new(|_| None)),
            DataType::Int8 => of::<Int8Type>(array),
            DataType::Int16 => of::<Int16Type>(array),
            DataType::Int32 => of::<Int32Type>(array),
            DataType::Int64 => of::<Int64Type>(array),
            DataType::UInt8 => of::<UInt8Type>(array),
            DataType::UInt16 => of::<UInt16Type>(array),
            DataType::UInt32 => of::<UInt32Type>(array),
            DataType::UInt64 => of::<UInt64Type>(array),
            _ => return Err(wrong(name, array, "it must be of whole numbers")),
        })
    }
}

/// Column of times.
enum Times<'a> {
    /// Whole numbers of a fraction of a second: 1 / the second field.
    Whole(Numbers<'a>, i64),
    Fraction(Box<dyn Fn(usize) -> Option<f64> + 'a>),
    Text(Texts<'a>),
}

impl<'a> Times<'a> {
    fn new(array: &'a ArrayRef, name: &str) -> Result<Times<'a>> {
        fn of<'a, T: ArrowPrimitiveType<Native = i64>>(
            array: &'a ArrayRef,
            parts: i64,
        ) -> Times<'a> {
            Times::Whole(Numbers(Box::new(values::<T>(array))), parts)
        }
        Ok(match array.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => of::<TimestampSecondType>(array, 1),
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                of::<TimestampMillisecondType>(array, 1_000)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                of::<TimestampMicrosecondType>(array, 1_000_000)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                of::<TimestampNanosecondType>(array, 1_000_000_000)
            }
            DataType::Float64 => Times::Fraction(Box::new(values::<Float64Type>(array))),
            kind if kind.is_integer() => Times::Whole(Numbers::new(array, name)?, 1),
            _ => Times::Text(Texts::new(array, name)?),
        })
    }

    fn get(&self, row: usize) -> Result<Option<Time>, String> {
        let seconds = |number: f64| {
            let time = time_of_seconds(number);
            time.map(Some)
                .ok_or_else(|| format!("{number}: {NOT_SECONDS}"))
        };
        match self {
            Times::Whole(numbers, parts) => match (numbers.0)(row) {
                Some(number) => seconds(number.div_euclid(*parts) as f64),
                None => Ok(None),
            },
            Times::Fraction(get) => get(row).map_or(Ok(None), seconds),
            Times::Text(texts) => {
                match texts.get(row) {
                    Some(text) => {
                        let text = String::from_utf8_lossy(text);
                        let time = time_of(&text);
                        time.map(Some).ok_or_else(|| {
                        format!("{text:?}: a time like 2026-11-24T12:00:00Z, with its offset from UTC")
                    })
                    }
                    None => Ok(None),
                }
            }
        }
    }
}
