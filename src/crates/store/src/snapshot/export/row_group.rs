//! Row group of a Parquet file that is encoded as rows arrive, so that only encoded data is buffered.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer, get_typed_column_writer_mut};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::properties::DEFAULT_WRITE_BATCH_SIZE;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};

/// Number of rows to write to a column at a time. Pages end at multiples of it.
pub const BATCH_ROWS: usize = DEFAULT_WRITE_BATCH_SIZE;

pub struct RowGroup {
    columns: Vec<RowGroupColumn>,
    /// Index of the column to be written next.
    next: usize,
}

struct RowGroupColumn {
    writer: ColumnWriter<'static>,
    pages: EncodedPages,
}

impl RowGroup {
    /// Creates an empty row group of a file.
    pub fn new<W: Write + Send>(file: &SerializedFileWriter<W>) -> RowGroup {
        let columns = file.schema_descr().columns().iter().map(|column| {
            let pages = EncodedPages::default();
            let into = Box::new(pages.clone());
            let writer = get_column_writer(column.clone(), file.properties().clone(), into);
            RowGroupColumn { writer, pages }
        });
        RowGroup {
            columns: columns.collect(),
            next: 0,
        }
    }

    /// Writes rows of the next column, in round-robin order. `known` holds 1 for a value and 0 for a null; for lists
    /// the definition levels, and `repeated` the repetition levels.
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

    /// Ends the row group and writes it to the file.
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

/// Encoded pages of a column, concatenated.
#[derive(Clone, Default)]
struct EncodedPages(Arc<Mutex<Vec<u8>>>);

impl EncodedPages {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PageWriter for EncodedPages {
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
