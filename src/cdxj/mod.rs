//! The records of archives in the order in which they were fetched, by an index of them (CDXJ).
//!
//! Archives made by many crawlers at a time, or sorted by URL, are no stream of fetches. An index says
//! of each capture when it was, and in which file, from which byte on, it lies. Members of gzip, frames of
//! zstd and plain WARC records can be put one behind the other: so the result is an archive again, to be
//! kept or piped on. Nothing is unpacked.
//!
//! Memory: 40 bytes a line of the index, within the budget.

pub(crate) mod lines;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::decode::Time;
use crate::memory::{LOOK_EVERY, check_room};
use crate::model::Limits;
use crate::source::{Compression, sniff};
use crate::{Error, Result};

/// Files held open at a time.
const OPEN_MAX: usize = 64;
/// Magic number of the skippable frame that holds the dictionary of a `.warc.zst`.
const DICTIONARY: [u8; 4] = 0x184D_2A5Du32.to_le_bytes();

/// Where a capture lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Capture {
    time: Time,
    /// Its line in the index, from 1: what decides between captures of the same second.
    line: u64,
    /// Number of the file.
    file: u32,
    offset: u64,
    len: u64,
}

/// The captures of an index, in the order of their fetches.
#[derive(Debug)]
pub struct Captures {
    index: PathBuf,
    files: Vec<PathBuf>,
    captures: Vec<Capture>,
}

/// How much was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Captures.
    pub captures: u64,
    /// Bytes, as compressed as they were.
    pub bytes: u64,
}

impl Captures {
    /// Reads the index at `index`, plain, gzip or zstd, which speaks of `files` by their names without
    /// folders.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`]; [`Error::BadRecord`] for a line that is no entry;
    /// [`Error::Usage`] if two files have one name, or the index names one that was not given;
    /// [`Error::TooLarge`] if the captures take more than `limits.memory`.
    pub fn read(index: &Path, files: Vec<PathBuf>, limits: &Limits) -> Result<Captures> {
        let mut names = HashMap::new();
        for (number, path) in (0u32..).zip(&files) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if names.insert(name.clone().into_owned(), number).is_some() {
                return Err(Error::Usage(format!(
                    "two files are called {name}: the index could mean either"
                )));
            }
        }
        let mut captures = Vec::new();
        let mut missing: Vec<String> = Vec::new();
        lines::read(index, limits, |entry| {
            let known = captures.len() as u64;
            if known.is_multiple_of(LOOK_EVERY) {
                let need = (known + LOOK_EVERY) * size_of::<Capture>() as u64;
                let work = || format!("the order of more than {known} captures");
                check_room(limits.memory, need, work, "order parts of the index")?;
            }
            let name = entry.file.rsplit('/').next().unwrap_or_default();
            match names.get(name) {
                Some(&file) => captures.push(Capture {
                    time: entry.time,
                    line: entry.line,
                    file,
                    offset: entry.offset,
                    len: entry.len,
                }),
                None if missing.iter().any(|known| known == name) => {}
                None if missing.len() < 5 => missing.push(name.into()),
                None => {}
            }
            Ok(())
        })?;
        if !missing.is_empty() {
            return Err(Error::Missing(format!(
                "{}: it names files that were not given: {}",
                index.display(),
                missing.join(", ")
            )));
        }
        captures.sort_unstable_by_key(|capture| (capture.time, capture.line));
        Ok(Captures {
            index: index.into(),
            files,
            captures,
        })
    }

    /// Writes all captures to `out`, one behind the other, the oldest first.
    ///
    /// # Errors
    /// [`Error::Io`], as `path` for `out`; [`Error::InputChanged`] if the index does not fit the files, or the files
    /// cannot be put together.
    pub fn write(&self, out: &mut dyn Write, path: &Path) -> Result<Amount> {
        let mut files = Files::default();
        let mut done = Amount::default();
        let mut put = |bytes: &mut dyn Read, from: &Path| copy(bytes, from, out, path);
        if let Some(mut dictionary) = self.dictionary()? {
            done.bytes += put(&mut dictionary, &self.files[0])?;
        }
        let mut compression = None;
        for capture in &self.captures {
            let from = &self.files[capture.file as usize];
            let misfit = |what: &str| {
                Err(Error::InputChanged(format!(
                    "{}: line {}: {what} at byte {} of {}: the index belongs to other files, or they have changed",
                    self.index.display(),
                    capture.line,
                    capture.offset,
                    from.display()
                )))
            };
            let file = files.get(capture.file, from)?;
            file.seek(SeekFrom::Start(capture.offset))
                .map_err(Error::io(from, "read"))?;
            let mut front = Vec::new();
            let known = Read::by_ref(file)
                .take(capture.len.min(5))
                .read_to_end(&mut front);
            known.map_err(Error::io(from, "read"))?;
            let found = sniff(&front);
            if found == Compression::Plain && front != b"WARC/" {
                return misfit("no record begins");
            }
            if *compression.get_or_insert(found) != found {
                return misfit("not compressed as the records before it are");
            }
            let mut rest = Read::by_ref(file).take(capture.len - front.len() as u64);
            let copied = put(&mut front.as_slice().chain(&mut rest), from)?;
            if copied < capture.len {
                return misfit("the file ends inside the record");
            }
            done.captures += 1;
            done.bytes += copied;
        }
        out.flush().map_err(Error::io(path, "write"))?;
        Ok(done)
    }

    /// The frame with the dictionary of the only file; `None`: there is none.
    fn dictionary(&self) -> Result<Option<impl Read + use<>>> {
        let mut found = None;
        for path in &self.files {
            let mut file = File::open(path).map_err(Error::io(path, "open"))?;
            let mut head = Vec::new();
            let read = Read::by_ref(&mut file).take(8).read_to_end(&mut head);
            read.map_err(Error::io(path, "read"))?;
            let Some((_, len)) = head
                .split_first_chunk::<4>()
                .filter(|(magic, _)| **magic == DICTIONARY)
            else {
                continue;
            };
            if self.files.len() > 1 {
                return Err(Error::Unsupported(format!(
                    "{}: its records need the dictionary at its start, so they cannot be joined with those of another \
                     file: order each file by itself, or decompress them first",
                    path.display()
                )));
            }
            let len = len.first_chunk().map_or(0, |len| u32::from_le_bytes(*len));
            found = Some(io::Cursor::new(head).chain(file.take(u64::from(len))));
        }
        Ok(found)
    }
}

/// The files held open, by number.
#[derive(Default)]
struct Files(HashMap<u32, File>);

impl Files {
    fn get(&mut self, number: u32, path: &Path) -> Result<&mut File> {
        if self.0.len() >= OPEN_MAX && !self.0.contains_key(&number) {
            self.0.clear();
        }
        match self.0.entry(number) {
            std::collections::hash_map::Entry::Occupied(known) => Ok(known.into_mut()),
            std::collections::hash_map::Entry::Vacant(place) => {
                let file = File::open(path).map_err(Error::io(path, "open"))?;
                Ok(place.insert(file))
            }
        }
    }
}

/// Copies all of `bytes`, and says whose fault a failure is.
fn copy(bytes: &mut dyn Read, from: &Path, out: &mut dyn Write, to: &Path) -> Result<u64> {
    let mut buffer = vec![0; 64 << 10];
    let mut copied = 0;
    loop {
        let read = match bytes.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io(from, "read")(error)),
        };
        out.write_all(&buffer[..read])
            .map_err(Error::io(to, "write"))?;
        copied += read as u64;
    }
}
