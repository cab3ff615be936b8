//! What one pass applied of its files, with every link resolved to its page, kept on disk for the
//! passes after it: those need not decompress, decode or look up anything.
//!
//! It is a convenience of one process: written beside a pass over a file from its start, never
//! synced, and removed at the end. A process that goes on inside a pass reads the rest of that from
//! the files. Whatever is wrong with it (no room, an I/O error, a checksum), the files are read
//! instead. It has the files' own places and hashes, so results and checkpoints do not show what was
//! read. That the files still hold what they held in pass 1 is checked (`ingest::run::unchanged`).
//!
//! Only regular files are kept.

mod piece;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::piece::{Hashes, Piece};
use crate::batch::Batch;
use crate::disk::{Disk, DiskFile};
use crate::model::PageId;
use crate::source::{Compression, Summary};
use crate::{Error, Result};

/// The file's name in the store.
pub(crate) const REPLAY: &str = "replay";
/// Bytes written or read at a time, if no piece takes more.
const STRETCH: usize = 1 << 20;
/// Before each piece: its length as 4 bytes, and its XXH3-64 as 8, both little-endian.
const HEADER: usize = 12;

/// What is known of a file that was kept whole.
#[derive(Clone)]
pub(crate) struct Kept {
    /// Where its pieces are.
    from: u64,
    to: u64,
    /// Length of the longest.
    longest: u32,
    /// What reading it to its end gave.
    pub summary: Summary,
    pub compression: Compression,
    pub compressed_len: Option<u64>,
}

/// The file `replay` of a store, and what it holds.
pub(crate) struct Replay {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// Bytes that it may take.
    most: u64,
    /// Absent until something is kept, and once that failed.
    file: Option<Arc<dyn DiskFile>>,
    /// By input.
    kept: Vec<Option<Kept>>,
    /// Where the pieces of the running input begin, if it is being kept.
    from: Option<u64>,
    /// Its length, compressed; 0: not known.
    length: u64,
    /// Length of its longest piece.
    longest: u32,
    /// Bytes of the file in use.
    written: u64,
    /// What is to be written behind them.
    buffer: Vec<u8>,
}

impl Replay {
    /// Removes what an earlier process left. `most`: bytes that the file may take; 0: nothing is kept.
    pub fn new(disk: Arc<dyn Disk>, store: &Path, most: u64) -> Replay {
        let path = store.join(REPLAY);
        let _ = disk.remove(&path);
        Replay {
            disk,
            path,
            most,
            file: None,
            kept: Vec::new(),
            from: None,
            length: 0,
            longest: 0,
            written: 0,
            buffer: Vec::new(),
        }
    }

    /// Begins to keep an input that is read from its start and of so many compressed bytes, unless no more is
    /// kept.
    ///
    /// # Errors
    ///
    /// The file cannot be made.
    pub fn begin(&mut self, length: Option<u64>) -> Result<()> {
        if self.most == 0 {
            return Ok(());
        }
        if self.file.is_none() {
            let made = self.disk.open(&self.path, true);
            let file = made.map_err(|error| {
                self.most = 0;
                self.failed("create", error)
            })?;
            self.file = Some(file.into());
        }
        self.from = Some(self.written);
        self.length = length.unwrap_or(0);
        self.longest = 0;
        Ok(())
    }

    /// Whether the running input is being kept.
    pub fn is_keeping(&self) -> bool {
        self.from.is_some()
    }

    /// Keeps a piece that was applied. `page_of`: that of a name of its batch. False: there is no room for it, or
    /// will not be for the rest of its input, and no more is kept.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; no more is kept.
    pub fn keep(
        &mut self,
        piece: &Piece,
        page_of: impl Fn(u32) -> PageId,
        hashes: &Hashes,
    ) -> Result<bool> {
        let Some(from) = self.from else {
            return Ok(true);
        };
        let start = self.buffer.len();
        self.buffer.resize(start + HEADER, 0);
        let fits = piece::put(&mut self.buffer, piece, page_of, hashes);
        let length = self.buffer.len() - start - HEADER;
        let all = self.written + self.buffer.len() as u64;
        // Twice, as it is a guess, and none at the start.
        let read = piece.chunk.compressed;
        let guess = match read >= self.length / 16 && self.length > 0 {
            true => u128::from(all - from) * u128::from(self.length) / u128::from(read.max(1)) / 2,
            false => 0,
        };
        let has_room = all <= self.most && u128::from(from) + guess <= self.most.into();
        let length = u32::try_from(length).ok().filter(|_| fits && has_room);
        let Some(length) = length else {
            self.stop();
            return Ok(false);
        };
        self.longest = self.longest.max(length);
        let hash = xxh3_64(&self.buffer[start + HEADER..]);
        self.buffer[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.buffer[start + 4..start + HEADER].copy_from_slice(&hash.to_le_bytes());
        match self.buffer.len() < STRETCH {
            true => Ok(true),
            false => self.write().map(|()| true),
        }
    }

    fn write(&mut self) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let written = file.write_at(&self.buffer, self.written);
        if let Err(error) = written {
            self.stop();
            return Err(self.failed("write", error));
        }
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Gives up the running input, and keeps no further one. What it took is given back.
    fn stop(&mut self) {
        self.buffer = Vec::new();
        self.most = 0;
        if let (Some(from), Some(file)) = (self.from.take(), &self.file) {
            let _ = file.set_len(from);
            self.written = from;
        }
    }

    fn failed(&self, what: &'static str, error: io::Error) -> Error {
        Error::io(&self.path, what)(error)
    }

    /// The running input has ended, and was kept whole.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; it is not kept.
    pub fn end(
        &mut self,
        input: usize,
        summary: &Summary,
        compression: Compression,
        compressed_len: Option<u64>,
    ) -> Result<()> {
        if self.from.is_none() {
            return Ok(());
        }
        self.write()?;
        self.buffer = Vec::new();
        let Some(from) = self.from.take() else {
            return Ok(());
        };
        if self.kept.len() <= input {
            self.kept.resize(input + 1, None);
        }
        self.kept[input] = Some(Kept {
            from,
            to: self.written,
            longest: self.longest,
            summary: summary.clone(),
            compression,
            compressed_len,
        });
        Ok(())
    }

    /// What is known of an input, if it was kept.
    pub fn kept(&self, input: usize) -> Option<&Kept> {
        self.kept.get(input)?.as_ref()
    }

    /// Reads an input that was kept.
    pub fn reader(&self, input: usize) -> Option<(&Kept, Reader)> {
        let kept = self.kept(input)?;
        let reader = Reader {
            file: self.file.clone()?,
            path: self.path.clone(),
            at: kept.from,
            to: kept.to,
            longest: kept.longest,
            buffer: Vec::new(),
            used: 0,
        };
        Some((kept, reader))
    }

    /// Forgets all, and gives the disk back what it took.
    pub fn remove(&mut self) {
        self.stop();
        self.kept = Vec::new();
        if self.file.take().is_some() {
            let _ = self.disk.remove(&self.path);
        }
    }

    /// Forgets an input that cannot be read back, and keeps no more.
    pub fn forget(&mut self, input: usize) {
        self.most = 0;
        if let Some(kept) = self.kept.get_mut(input) {
            *kept = None;
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Reads the pieces of one input, in order.
pub(crate) struct Reader {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    /// Where the file is read on, and where the input ends.
    at: u64,
    to: u64,
    /// Length of the longest piece.
    longest: u32,
    /// What was read; of that, `used` bytes were taken.
    buffer: Vec<u8>,
    used: usize,
}

impl Reader {
    /// The next piece, its batch put into `batch`; `None` after the last. `admit` is told before how much memory it
    /// takes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], also where it does not hold what was written.
    pub fn next(&mut self, batch: Batch, admit: impl FnOnce(u64)) -> Result<Option<Piece>> {
        if self.used == self.buffer.len() && self.at == self.to {
            return Ok(None);
        }
        let header = self.take(HEADER)?;
        let header = (header.first_chunk::<4>(), header.last_chunk::<8>());
        let (Some(length), Some(hash)) = header else {
            return Err(self.damaged());
        };
        let (length, hash) = (u32::from_le_bytes(*length), u64::from_le_bytes(*hash));
        if length > self.longest {
            return Err(self.damaged());
        }
        let bytes = self.take(length as usize)?;
        if xxh3_64(bytes) != hash {
            return Err(self.damaged());
        }
        admit(piece::memory(bytes));
        let piece = piece::take(bytes, batch);
        piece.map(Some).ok_or_else(|| self.damaged())
    }

    fn take(&mut self, len: usize) -> Result<&[u8]> {
        if self.buffer.len() - self.used < len {
            self.buffer.drain(..self.used);
            self.used = 0;
            let have = self.buffer.len();
            let left = self.to - self.at;
            let want = (len.max(STRETCH) - have) as u64;
            let more = want.min(left) as usize;
            if have + more < len {
                return Err(self.damaged());
            }
            self.buffer.resize(have + more, 0);
            self.file
                .read_at(&mut self.buffer[have..], self.at)
                .map_err(Error::io(&self.path, "read"))?;
            self.at += more as u64;
        }
        let from = self.used;
        self.used += len;
        Ok(&self.buffer[from..self.used])
    }

    fn damaged(&self) -> Error {
        let what = "it does not hold what was written";
        Error::io(&self.path, "read")(io::Error::new(io::ErrorKind::InvalidData, what))
    }
}
