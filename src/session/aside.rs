//! What of a partition lies on disk, in files without names, while others have their turn in memory: its cash and index, and the
//! records that wait for its turn, with what came of them once they were applied.
//!
//! ```text
//! state     u64 of cash of each page | ages of two pages a byte | slots of the index, segment by segment
//! waiting   records of a piece (see `wire`), piece by piece | what came of each (`New`), likewise
//! ```
//! What is read is checked against the XXH3-64 of what was written.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::Result;
use crate::disk::{Disk, Nameless};
use crate::engine::{Engine, Fingerprint, IndexPlace, PageId};
use crate::rows::PAGES_MAX;
use crate::store::{SNAPSHOTS, Store};

/// Bytes that are written or read at a time.
const BUFFER: usize = 1 << 18;

/// See the head of the file.
pub(super) struct Aside {
    state: Nameless,
    waiting: Nameless,
    /// Where cash and index lie, while they do.
    away: Option<Away>,
    /// Where the next record goes.
    end: u64,
    pieces: Vec<Place>,
    results: Vec<Place>,
    /// Names of the records that wait.
    names: u64,
}

struct Away {
    cash: Place,
    index: Place,
    slots: IndexPlace,
    /// Bytes that the index takes in memory.
    index_bytes: u64,
}

/// Bytes of a file.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    at: u64,
    len: u64,
    sum: u64,
}

impl Aside {
    /// That of a partition, of which nothing lies there yet.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of(store: &Store) -> Result<Aside> {
        let file = |name: &str| {
            let disk: &dyn Disk = &**store.disk();
            Nameless::create(disk, &store.dir().join(SNAPSHOTS).join(name))
        };
        Ok(Aside {
            state: file("state.tmp")?,
            waiting: file("waiting.tmp")?,
            away: None,
            end: 0,
            pieces: Vec::new(),
            results: Vec::new(),
            names: 0,
        })
    }

    /// Returns whether cash and index lie there.
    pub fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// Bytes that the index that lies there takes in memory.
    pub fn index_bytes(&self) -> Option<u64> {
        self.away.as_ref().map(|away| away.index_bytes)
    }

    /// Takes cash and index of an engine.
    ///
    /// # Errors
    /// [`Error::Io`]; then the engine must not be used further.
    pub fn take(&mut self, engine: &mut Engine<Store>) -> Result<()> {
        let pages = engine.ledger().totals().pages;
        let index_bytes = engine.index_bytes_at(pages);
        let mut writing = Writing::from(&self.state, 0);
        engine.give_cash(&mut |bytes| writing.put(bytes))?;
        let cash = writing.end()?;
        let mut writing = Writing::from(&self.state, cash.len);
        let slots = engine.give_index(&mut |bytes| writing.put(bytes))?;
        self.away = Some(Away {
            cash,
            index: writing.end()?,
            slots,
            index_bytes,
        });
        Ok(())
    }

    /// Gives the engine its cash back, and leaves it lie there, too. Nothing if it has it.
    ///
    /// # Errors
    /// Those of reading.
    pub fn lend_cash(&self, engine: &mut Engine<Store>) -> Result<()> {
        let Some(away) = &self.away else {
            return Ok(());
        };
        let pages = engine.ledger().totals().pages;
        let mut reading = Reading::of(&self.state, away.cash);
        let room = (pages + self.names).min(PAGES_MAX);
        engine.take_cash(room, &mut |bytes| reading.get(bytes))?;
        reading.end()
    }

    /// Takes the cash again that was lent, and may have changed.
    ///
    /// # Errors
    /// [`Error::Io`]; then the engine must not be used further.
    pub fn take_cash(&mut self, engine: &mut Engine<Store>) -> Result<()> {
        let Some(away) = &mut self.away else {
            return Ok(());
        };
        let mut writing = Writing::from(&self.state, away.cash.at);
        engine.give_cash(&mut |bytes| writing.put(bytes))?;
        let cash = writing.end()?;
        debug_assert_eq!(cash.len, away.cash.len, "the index lies behind it");
        away.cash = cash;
        Ok(())
    }

    /// Gives the engine its index back, and leaves it lie there, too. Nothing if it has it.
    ///
    /// # Errors
    /// Those of reading.
    pub fn lend_index(&self, engine: &mut Engine<Store>) -> Result<()> {
        let Some(away) = &self.away else {
            return Ok(());
        };
        let mut reading = Reading::of(&self.state, away.index);
        let is_whole = engine.take_index(&away.slots, &mut |bytes| reading.get(bytes))?;
        reading.end()?;
        if is_whole {
            Ok(())
        } else {
            Err(self.state.damaged())
        }
    }

    /// Gives the engine cash and index back.
    ///
    /// # Errors
    /// Those of reading.
    pub fn give_back(&mut self, engine: &mut Engine<Store>) -> Result<()> {
        self.lend_cash(engine)?;
        self.lend_index(engine)?;
        self.away = None;
        self.state.clear()
    }

    /// Forgets cash and index.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn forget(&mut self) -> Result<()> {
        self.away = None;
        self.state.clear()
    }

    /// The page with a fingerprint, by the index that lies there; `None`: none does.
    ///
    /// # Errors
    /// Those of reading.
    pub fn find(&self, print: Fingerprint) -> Option<Result<Option<PageId>>> {
        let away = self.away.as_ref()?;
        let read = |slots: &mut [u8], at| self.state.read(slots, away.index.at + at);
        Some(away.slots.find(print, read))
    }

    /// Puts records of a piece there, which have so many names. None: there are none of this partition.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn put(&mut self, records: Option<&[u8]>, names: usize) -> Result<()> {
        let place = self.write(records.unwrap_or_default())?;
        self.pieces.push(place);
        self.names += names as u64;
        Ok(())
    }

    /// The records of a piece.
    ///
    /// # Errors
    /// Those of reading.
    pub fn records(&self, piece: usize) -> Result<Option<Vec<u8>>> {
        self.read(&self.pieces, piece)
    }

    /// Returns whether there are records that wait.
    pub fn has_records(&self) -> bool {
        self.pieces.iter().any(|piece| piece.len > 0)
    }

    /// Puts there what came of the records of the next piece.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn put_result(&mut self, new: &[u8]) -> Result<()> {
        let place = self.write(new)?;
        self.results.push(place);
        Ok(())
    }

    /// What came of the records of a piece.
    ///
    /// # Errors
    /// Those of reading.
    pub fn result(&self, piece: usize) -> Result<Option<Vec<u8>>> {
        self.read(&self.results, piece)
    }

    /// No records wait any more.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn clear(&mut self) -> Result<()> {
        self.pieces.clear();
        self.results.clear();
        self.names = 0;
        if std::mem::take(&mut self.end) == 0 {
            return Ok(());
        }
        self.waiting.clear()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Place> {
        let place = Place {
            at: self.end,
            len: bytes.len() as u64,
            sum: xxh3_64(bytes),
        };
        if !bytes.is_empty() {
            self.waiting.write(bytes, place.at)?;
        }
        self.end += place.len;
        Ok(place)
    }

    fn read(&self, places: &[Place], piece: usize) -> Result<Option<Vec<u8>>> {
        let Some(place) = places.get(piece).filter(|place| place.len > 0) else {
            return Ok(None);
        };
        let mut bytes = vec![0; place.len as usize];
        self.waiting.read(&mut bytes, place.at)?;
        if xxh3_64(&bytes) == place.sum {
            Ok(Some(bytes))
        } else {
            Err(self.waiting.damaged())
        }
    }
}

/// Bytes on their way to a file.
struct Writing<'f> {
    file: &'f Nameless,
    place: Place,
    sum: Xxh3,
    waiting: Vec<u8>,
}

impl Writing<'_> {
    fn from(file: &Nameless, at: u64) -> Writing<'_> {
        Writing {
            file,
            place: Place { at, len: 0, sum: 0 },
            sum: Xxh3::new(),
            waiting: Vec::with_capacity(BUFFER),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        for bytes in bytes.chunks(BUFFER) {
            if self.waiting.len() + bytes.len() > BUFFER {
                self.flush()?;
            }
            self.waiting.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.sum.update(&self.waiting);
        let Place { at, len, .. } = &mut self.place;
        self.file.write(&self.waiting, *at + *len)?;
        *len += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    fn end(mut self) -> Result<Place> {
        self.flush()?;
        Ok(Place {
            sum: self.sum.digest(),
            ..self.place
        })
    }
}

/// Bytes on their way from a file.
struct Reading<'f> {
    file: &'f Nameless,
    /// Those that are still to come.
    left: Place,
    sum: Xxh3,
    read: Vec<u8>,
    /// Where the next are among those that were read.
    next: usize,
}

impl Reading<'_> {
    fn of(file: &Nameless, place: Place) -> Reading<'_> {
        Reading {
            file,
            left: place,
            sum: Xxh3::new(),
            read: Vec::new(),
            next: 0,
        }
    }

    fn get(&mut self, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.next == self.read.len() {
                self.fill()?;
            }
            let some = bytes.len().min(self.read.len() - self.next);
            let (head, rest) = bytes.split_at_mut(some);
            head.copy_from_slice(&self.read[self.next..][..some]);
            self.next += some;
            bytes = rest;
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<()> {
        let some = self.left.len.min(BUFFER as u64);
        if some == 0 {
            return Err(self.file.damaged());
        }
        self.read.resize(some as usize, 0);
        self.file.read(&mut self.read, self.left.at)?;
        self.sum.update(&self.read);
        self.left.at += some;
        self.left.len -= some;
        self.next = 0;
        Ok(())
    }

    /// Checks that all was read, and is what was written.
    fn end(self) -> Result<()> {
        let is_all = self.left.len == 0 && self.next == self.read.len();
        if is_all && self.sum.digest() == self.left.sum {
            Ok(())
        } else {
            Err(self.file.damaged())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::fuzz::memory::Memory;

    /// In pieces of other sizes than it was written in.
    #[test]
    fn what_is_written_is_read() {
        let file = Nameless::create(&Memory::default(), Path::new("state.tmp")).unwrap();
        let bytes: Vec<u8> = (0..3 * BUFFER + 5)
            .map(|at| (at * at % 251) as u8)
            .collect();
        for (at, write, read) in [(0, 7, BUFFER), (3, BUFFER - 1, 10), (0, bytes.len(), 4_099)] {
            let mut writing = Writing::from(&file, at);
            bytes
                .chunks(write)
                .try_for_each(|some| writing.put(some))
                .unwrap();
            let place = writing.end().unwrap();
            assert_eq!((place.at, place.len), (at, bytes.len() as u64));
            let mut reading = Reading::of(&file, place);
            let mut found = vec![0; bytes.len()];
            found
                .chunks_mut(read)
                .try_for_each(|some| reading.get(some))
                .unwrap();
            reading.end().unwrap();
            assert!(found == bytes);
            let mut reading = Reading::of(&file, place);
            reading.get(&mut found[1..]).unwrap();
            assert!(reading.end().is_err(), "a byte was not read");
            let mut reading = Reading::of(&file, place);
            reading.get(&mut found).unwrap();
            assert!(reading.get(&mut [0]).is_err(), "there is no more");
            file.write(&[bytes[9] ^ 1], at + 9).unwrap();
            let mut reading = Reading::of(&file, place);
            reading.get(&mut found).unwrap();
            assert!(matches!(reading.end(), Err(crate::Error::Damaged { .. })));
        }
    }
}
