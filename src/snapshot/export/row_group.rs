//! A row group of a Parquet file that is encoded while rows come: what is held of each is what the file will have of it.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer, get_typed_column_writer_mut};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::properties::DEFAULT_WRITE_BATCH_SIZE;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};

/// Rows to give to a column at once. Pages end between so many rows, however many come at once.
pub(crate) const BATCH_ROWS: usize = DEFAULT_WRITE_BATCH_SIZE;

/// The columns of a row group.
pub(crate) struct RowGroup {
    columns: Vec<Column>,
    /// The one whose turn it is.
    next: usize,
}

struct Column {
    writer: ColumnWriter<'static>,
    pages: Pages,
}

impl RowGroup {
    /// Without rows, for a file.
    pub fn new<W: Write + Send>(file: &SerializedFileWriter<W>) -> RowGroup {
        let columns = file.schema_descr().columns().iter().map(|column| {
            let pages = Pages::default();
            let into = Box::new(pages.clone());
            let writer = get_column_writer(column.clone(), file.properties().clone(), into);
            Column { writer, pages }
        });
        RowGroup {
            columns: columns.collect(),
            next: 0,
        }
    }

    /// Writes rows of the column whose turn it is: of the first, the second and so on, and of the first again. `known` holds 1
    /// for a value and 0 for a null; of lists the levels of definition, and `repeated` those of repetition.
    pub fn write<T: DataType>(
        &mut self,
        values: &[T::T],
        known: Option<&[i16]>,
        repeated: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let turn = self.next;
        self.next = (turn + 1) % self.columns.len();
        let writer = get_typed_column_writer_mut::<T>(&mut self.columns[turn].writer);
        writer.write_batch(values, known, repeated)?;
        Ok(())
    }

    /// Ends it, and writes it to the file.
    pub fn end<W: Write + Send>(
        self,
        file: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        for column in self.columns {
            let closed = column.writer.close()?;
            let pages = std::mem::take(&mut *column.pages.bytes());
            group.append_column(&Bytes::from(pages), closed)?;
        }
        group.close()?;
        Ok(())
    }
}

/// The encoded pages of a column, one behind the other.
#[derive(Clone, Default)]
struct Pages(Arc<Mutex<Vec<u8>>>);

impl Pages {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        let mut bytes = self.bytes();
        let start = bytes.len() as u64;
        let mut out = TrackedWrite::new(&mut *bytes);
        let mut written = SerializedPageWriter::new(&mut out).write_page(page)?;
        out.flush()?;
        written.offset += start;
        Ok(written)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        Ok(())
    }
}
