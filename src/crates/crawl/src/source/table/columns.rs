//! Columns of a Parquet file, some rows at a time.
//!
//! Memory holds one page per column, and the values of the rows read together. Pages or batches of rows with more than
//! [`VALUES_MAX`] values are refused: a kilobyte of run lengths may expand to billions.
//!
//! The parquet crate is not trusted: its panics are reported as damage of the file.

use std::fs::File;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cashrank_fence::contained;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, TimeUnit, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::{self as schema, ColumnDescriptor};

use super::super::decompress::Fault;
use crate::model::DamageKind;
use crate::{Error, Result};

const VALUES_MAX: u64 = 1 << 24;

pub(super) enum Cell {
    Text(ByteArray),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    Text,
    Int,
    Unsigned,
    /// Time, with this many units per second.
    Time(i64),
    Days,
    Float,
    Bool,
    Null,
}

pub(super) const WHOLE_NUMBERS: [ValueType; 2] = [ValueType::Int, ValueType::Unsigned];

#[derive(Debug, Clone)]
pub(super) struct ColumnField {
    pub name: String,
    /// Index among the leaf columns; `None` if the column has parts, or is nested deeper than a list.
    leaf: Option<usize>,
    /// Type of the values; `None` if it is not read.
    pub kind: Option<ValueType>,
    pub is_list: bool,
}

impl ColumnField {
    pub fn holds(&self, kinds: &[ValueType]) -> bool {
        !self.is_list && self.kind.is_some_and(|kind| kinds.contains(&kind))
    }
}

/// Column that is read, with the values of its rows read last.
struct ColumnCursor {
    name: String,
    leaf: usize,
    kind: ValueType,
    column: Arc<ColumnDescriptor>,
    reader: Option<ColumnReader>,
    cells: Vec<Cell>,
    /// For each row, where its values begin, followed by the end of the last row's values.
    bounds: Vec<usize>,
}

/// Parquet file, of which some columns are read.
pub(super) struct ParquetTable {
    file: Box<dyn FileReader>,
    columns: Vec<ColumnCursor>,
    group: usize,
    /// Number of rows of the row group before it that are not read yet.
    left: u64,
    rows: usize,
    filled: usize,
    used: usize,
    before: u64,
    values: Arc<AtomicU64>,
}

impl ParquetTable {
    /// Reads the file's footer. `rows` are read at once.
    pub fn open(file: File, rows: usize) -> Result<ParquetTable, Fault> {
        let opened = contained(|| SerializedFileReader::new(file));
        Ok(ParquetTable {
            file: Box::new(checked(opened, String::new)?),
            columns: Vec::new(),
            group: 0,
            left: 0,
            rows,
            filled: 0,
            used: 0,
            before: 0,
            values: Arc::default(),
        })
    }

    pub fn fields(&self) -> Vec<ColumnField> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let leaves = 0..schema.num_columns();
        let roots: Vec<usize> = leaves
            .map(|leaf| schema.get_column_root_idx(leaf))
            .collect();
        let mut leaf = 0;
        let mut fields: Vec<ColumnField> = Vec::new();
        for parts in roots.chunk_by(|a, b| a == b) {
            let (column, whole) = (schema.column(leaf), schema.get_column_root(leaf));
            fields.push(ColumnField {
                name: whole.name().to_owned(),
                leaf: (parts.len() == 1 && is_plain(whole)).then_some(leaf),
                kind: kind_of(&column),
                is_list: column.max_rep_level() > 0,
            });
            leaf += parts.len();
        }
        fields.retain(|field| field.is_list || field.kind != Some(ValueType::Null));
        fields
    }

    /// Reads this column from the next row on. Fails with [`Error::Unsupported`] unless it `fits` and can be read.
    pub fn choose(&mut self, field: &ColumnField, fits: bool, expected: &str) -> Result<()> {
        let name = &field.name;
        let (true, Some(leaf), Some(kind)) = (fits, field.leaf, field.kind) else {
            let what = format!("column {name:?} holds something else than {expected}");
            return Err(Error::Unsupported(what));
        };
        let file = self.file.metadata();
        let schema = file.file_metadata().schema_descr();
        let all = schema.root_schema().get_fields();
        let count = all.iter().filter(|of| of.name() == name).count();
        if count > 1 {
            let what = format!("{count} columns are named {name:?}: name one of them otherwise");
            return Err(Error::Unsupported(what));
        }
        let groups = file.row_groups().iter();
        let mut chunks = groups.filter_map(|group| group.columns().get(leaf));
        if let Some(chunk) = chunks.find(|chunk| !is_read(chunk.compression())) {
            let codec = chunk.compression().to_string();
            let codec = codec.split('(').next().unwrap_or_default();
            return Err(Error::Unsupported(format!(
                "column {name:?} is compressed by {codec}, which is not read: write the table again with zstd or Snappy"
            )));
        }
        self.columns.push(ColumnCursor {
            name: name.clone(),
            leaf,
            kind,
            column: schema.column(leaf),
            reader: None,
            cells: Vec::new(),
            bounds: Vec::new(),
        });
        Ok(())
    }

    pub fn next_row(&mut self) -> Result<bool, Fault> {
        if self.used == self.filled {
            self.before += self.filled as u64;
            (self.filled, self.used) = (0, 0);
            let filled = contained(|| self.try_fill());
            self.filled = checked(filled, || {
                let (group, row) = (self.group.saturating_sub(1), self.before);
                format!("row group {group}, from row {row} of the file on (counted from 0): ")
            })?;
        }
        let has_row = self.filled > 0;
        self.used += usize::from(has_row);
        Ok(has_row)
    }

    pub fn read_row<T>(
        &mut self,
        parse: impl FnOnce(&ParquetTable) -> T,
    ) -> Option<Result<T, Fault>> {
        match self.next_row() {
            Ok(true) => Some(Ok(parse(self))),
            Ok(false) => None,
            Err(fault) => Some(Err(fault)),
        }
    }

    /// Reads further rows, all of one row group. Returns their number; 0 after the last.
    fn try_fill(&mut self) -> Result<usize, ParquetError> {
        while self.left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(0);
            }
            self.begin_group()?;
        }
        let rows = usize::try_from(self.left)
            .unwrap_or(self.rows)
            .min(self.rows);
        for column in &mut self.columns {
            self.values.store(0, Ordering::Relaxed);
            let read = column.fill(rows)?;
            if read != rows {
                let what = format!("column {:?} has too few rows", column.name);
                return Err(ParquetError::EOF(what));
            }
        }
        self.left -= rows as u64;
        Ok(rows)
    }

    fn begin_group(&mut self) -> Result<(), ParquetError> {
        let group = self.file.get_row_group(self.group)?;
        self.group += 1;
        let rows = u64::try_from(group.metadata().num_rows());
        self.left = rows.map_err(|_| general("a row group of fewer than no rows"))?;
        for column in &mut self.columns {
            if column.leaf >= group.num_columns() {
                return Err(general("a row group has fewer columns than the file"));
            }
            let pages = CountedPages {
                pages: group.get_column_page_reader(column.leaf)?,
                values: self.values.clone(),
            };
            column.reader = Some(get_column_reader(column.column.clone(), Box::new(pages)));
        }
        Ok(())
    }

    /// Returns a column's values in the current row: at most one, or any number for a list.
    pub fn row(&self, column: usize) -> &[Cell] {
        let ColumnCursor { cells, bounds, .. } = &self.columns[column];
        match bounds.get(self.used.saturating_sub(1)..=self.used) {
            Some(&[start, end]) => cells.get(start..end).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Returns a column's number in the current row; `None` if it is no whole number, or too large.
    pub fn whole(&self, column: usize) -> Option<i64> {
        match self.row(column).first()? {
            Cell::Int(number) => Some(*number),
            Cell::Unsigned(number) => i64::try_from(*number).ok(),
            _ => None,
        }
    }
}

impl ColumnCursor {
    fn fill(&mut self, rows: usize) -> Result<usize, ParquetError> {
        self.cells.clear();
        self.bounds.clear();
        self.bounds.push(0);
        let Some(mut reader) = self.reader.take() else {
            return Ok(0);
        };
        let kind = self.kind;
        let int = |value: i64| match kind {
            ValueType::Time(per) => Cell::Int(value.div_euclid(per)),
            ValueType::Days => Cell::Int(value.saturating_mul(86_400)),
            ValueType::Unsigned => Cell::Unsigned(value as u64),
            _ => Cell::Int(value),
        };
        let int32 = |value: i32| match kind {
            ValueType::Unsigned => Cell::Unsigned(u64::from(value as u32)),
            _ => int(i64::from(value)),
        };
        use ColumnReader as Of;
        let read = match &mut reader {
            Of::ByteArrayColumnReader(reader) => self.take(reader, rows, Cell::Text),
            Of::Int32ColumnReader(reader) => self.take(reader, rows, int32),
            Of::Int64ColumnReader(reader) => self.take(reader, rows, int),
            Of::Int96ColumnReader(reader) => {
                self.take(reader, rows, |time| Cell::Int(time.to_seconds()))
            }
            Of::FloatColumnReader(reader) => {
                self.take(reader, rows, |number| Cell::Float(f64::from(number)))
            }
            Of::DoubleColumnReader(reader) => self.take(reader, rows, Cell::Float),
            Of::BoolColumnReader(reader) => self.take(reader, rows, Cell::Bool),
            Of::FixedLenByteArrayColumnReader(_) => Err(general("a type that is not read")),
        };
        self.reader = Some(reader);
        read
    }

    fn take<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        rows: usize,
        cell: impl Fn(T::T) -> Cell,
    ) -> Result<usize, ParquetError> {
        let mut values: Vec<T::T> = Vec::new();
        let (mut defined, mut repeated) = (Vec::new(), Vec::new());
        let levels = (Some(&mut defined), Some(&mut repeated));
        let (read, ..) = reader.read_records(rows, levels.0, levels.1, &mut values)?;
        let mut cells = values.into_iter().map(cell);
        let (most, repeats) = (self.column.max_def_level(), self.column.max_rep_level());
        if most == 0 && repeats == 0 {
            self.cells.extend(cells);
            self.bounds.extend(1..=self.cells.len());
            return Ok(read);
        }
        let null = null_level(&self.column);
        for (at, level) in defined.into_iter().enumerate() {
            if at > 0 && repeated.get(at).is_none_or(|&level| level == 0) {
                self.bounds.push(self.cells.len());
            }
            if level == most {
                self.cells.extend(cells.next());
            } else if Some(level) == null {
                self.cells.push(Cell::Null);
            }
        }
        self.bounds.push(self.cells.len());
        Ok(read)
    }
}

/// Pages of a column. Fails once they hold more values than may be read together.
struct CountedPages {
    pages: Box<dyn PageReader>,
    values: Arc<AtomicU64>,
}

impl Iterator for CountedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CountedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            let values = u64::from(page.num_values());
            let before = self.values.fetch_add(values, Ordering::Relaxed);
            if before + values > VALUES_MAX {
                return Err(general(format!(
                    "a page or a few rows with more than {VALUES_MAX} values: write the table with smaller pages"
                )));
            }
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.pages.at_record_boundary()
    }
}

/// Returns the definition level of a null in a list; `None` if there is no list, or its elements cannot be null.
fn null_level(column: &ColumnDescriptor) -> Option<i16> {
    let info = column.self_type().get_basic_info();
    let is_optional = info.has_repetition() && info.repetition() == Repetition::OPTIONAL;
    (is_optional && column.max_rep_level() > 0).then(|| column.max_def_level() - 1)
}

/// Returns whether a column holds values or lists without named parts: a single part would be taken for the whole.
fn is_plain(column: &schema::Type) -> bool {
    if column.is_primitive() {
        return true;
    }
    let info = column.get_basic_info();
    let is_list = info.logical_type_ref() == Some(&LogicalType::List)
        || info.converted_type() == ConvertedType::LIST;
    let (true, [repeated]) = (is_list, column.get_fields()) else {
        return false;
    };
    if repeated.is_primitive() {
        return true;
    }
    // By the rules for older files, a group with one of these names is itself the element.
    let is_element =
        repeated.name() == "array" || repeated.name() == format!("{}_tuple", column.name());
    !is_element && matches!(repeated.get_fields(), [element] if element.is_primitive())
}

fn is_read(codec: Compression) -> bool {
    !matches!(codec, Compression::BROTLI(_) | Compression::LZO)
}

fn kind_of(column: &ColumnDescriptor) -> Option<ValueType> {
    let per_second = |unit: &TimeUnit| match unit {
        TimeUnit::MILLIS => 1_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000_000_000,
    };
    // Where a column has a logical type, the crate derives the converted type from it, if there is one.
    let (logical, converted) = (column.logical_type_ref(), column.converted_type());
    match (column.physical_type(), logical, converted) {
        (_, Some(LogicalType::Unknown), _) => Some(ValueType::Null),
        (Type::BYTE_ARRAY | Type::INT32 | Type::INT64, _, ConvertedType::DECIMAL) => None,
        (Type::BYTE_ARRAY, ..) => Some(ValueType::Text),
        (_, Some(LogicalType::Timestamp(time)), _) => Some(ValueType::Time(per_second(&time.unit))),
        (_, _, ConvertedType::TIMESTAMP_MILLIS) => Some(ValueType::Time(1_000)),
        (_, _, ConvertedType::TIMESTAMP_MICROS) => Some(ValueType::Time(1_000_000)),
        (Type::INT32 | Type::INT64, Some(_), ConvertedType::NONE) => None,
        (Type::INT32 | Type::INT64, _, converted) => match converted {
            ConvertedType::DATE => Some(ValueType::Days),
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => Some(ValueType::Unsigned),
            ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS | ConvertedType::INTERVAL => {
                None
            }
            _ => Some(ValueType::Int),
        },
        // INT96 holds nanoseconds of a Julian day, as older programs write times; they are read as seconds.
        (Type::INT96, ..) => Some(ValueType::Time(1)),
        (Type::FLOAT | Type::DOUBLE, ..) => Some(ValueType::Float),
        (Type::BOOLEAN, ..) => Some(ValueType::Bool),
        _ => None,
    }
}

fn general(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

/// Unwraps what the crate returned. Its errors, and its panics (`None`), are damage at this place.
fn checked<T>(
    returned: Option<Result<T, ParquetError>>,
    place: impl FnOnce() -> String,
) -> Result<T, Fault> {
    match returned {
        Some(returned) => returned.map_err(|error| fault(error, &place())),
        None => Err(Fault::Damage(
            DamageKind::InvalidData,
            place() + "the Parquet file is damaged, or written in a way that is not read",
        )),
    }
}

/// Returns whether the system failed to read; if not, a codec failed, or a page's offset is outside the file.
fn is_of_system(error: &std::io::Error) -> bool {
    error.raw_os_error().is_some() && error.kind() != ErrorKind::InvalidInput
}

fn fault(error: ParquetError, place: &str) -> Fault {
    let (kind, what) = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) if is_of_system(&error) => return Fault::Io(*error),
            Ok(error) => (DamageKind::InvalidData, error.to_string()),
            Err(inner) => (DamageKind::InvalidData, inner.to_string()),
        },
        ParquetError::NYI(what) => (DamageKind::Unsupported, what),
        ParquetError::General(what) if what.contains("Disabled feature") => {
            (DamageKind::Unsupported, what)
        }
        ParquetError::EOF(what) => (DamageKind::Truncated, what),
        ParquetError::General(what) => (DamageKind::InvalidData, what),
        other => (DamageKind::InvalidData, other.to_string()),
    };
    Fault::Damage(
        kind,
        format!("{place}the Parquet file cannot be read: {what}"),
    )
}
