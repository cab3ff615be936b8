//! Temporary files of [`super::ranks`]: pieces of numbers, concatenated in files that are removed as soon as all of
//! their pieces were released.

use std::path::{Path, PathBuf};

use crate::disk::recreate;
use crate::store::{Disk, DiskFile, number};
use crate::{Error, Result};

#[derive(Clone, Copy)]
pub(super) struct PiecePosition {
    file: usize,
    offset: u64,
}

struct PieceFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// Number of pieces that were not released.
    pieces: u64,
}

pub(super) struct PieceStore<'d> {
    pub disk: &'d dyn Disk,
    /// Prefix of the file names.
    path: PathBuf,
    /// Files in order; `None` for removed ones.
    parts: Vec<Option<PieceFile>>,
    /// Position of the next piece in the last file.
    end: u64,
    /// Length in bytes from which a file gets no more pieces.
    full: u64,
    /// Maximum number of values in a piece.
    pub piece: usize,
}

impl<'d> PieceStore<'d> {
    pub fn new(disk: &'d dyn Disk, path: &Path, piece: usize, full: u64) -> PieceStore<'d> {
        PieceStore {
            disk,
            path: path.into(),
            parts: Vec::new(),
            end: 0,
            full,
            piece,
        }
    }

    /// Returns a path for another set of pieces.
    pub fn deeper(&self) -> PathBuf {
        self.named(".deeper")
    }

    fn named(&self, end: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(end);
        name.into()
    }

    /// Appends a piece: the lowest `width` bytes of each value less `base`.
    pub fn add(&mut self, values: &[u64], width: usize, base: u64) -> Result<PiecePosition> {
        if self.parts.is_empty() || self.end >= self.full {
            let path = self.named(&format!(".{}.tmp", self.parts.len()));
            let file = recreate(self.disk, &path).map_err(Error::io(&path, "create"))?;
            let pieces = 0;
            self.parts.push(Some(PieceFile { path, file, pieces }));
            self.end = 0;
        }
        let place = PiecePosition {
            file: self.parts.len() - 1,
            offset: self.end,
        };
        self.write(place, values, width, base)?;
        self.end += (values.len() * width) as u64;
        if let Some(Some(part)) = self.parts.last_mut() {
            part.pieces += 1;
        }
        Ok(place)
    }

    fn part(&self, place: PiecePosition) -> Result<&PieceFile> {
        let part = self.parts.get(place.file).and_then(Option::as_ref);
        part.ok_or_else(|| Error::internal("a piece was given up before it was read"))
    }

    /// Overwrites a piece by one of the same length.
    pub fn write(
        &self,
        place: PiecePosition,
        values: &[u64],
        width: usize,
        base: u64,
    ) -> Result<()> {
        let mut bytes = Vec::with_capacity(values.len() * width);
        for value in values {
            bytes.extend_from_slice(&(value - base).to_le_bytes()[..width]);
        }
        let PieceFile { path, file, .. } = self.part(place)?;
        let written = file.write_at(&bytes, place.offset);
        written.map_err(Error::io(path, "write"))
    }

    pub fn read(
        &self,
        place: PiecePosition,
        values: &mut [u64],
        width: usize,
        base: u64,
    ) -> Result<()> {
        let mut bytes = vec![0; values.len() * width];
        let PieceFile { path, file, .. } = self.part(place)?;
        let read = file.read_at(&mut bytes, place.offset);
        read.map_err(Error::io(path, "read"))?;
        for (value, bytes) in values.iter_mut().zip(bytes.chunks(width)) {
            *value = base + number(bytes);
        }
        Ok(())
    }

    /// Releases a piece that is not needed any more. Must be called once for each.
    pub fn give_up(&mut self, place: PiecePosition) -> Result<()> {
        let part = &mut self.parts[place.file];
        match part {
            Some(PieceFile { pieces, .. }) if *pieces > 1 => *pieces -= 1,
            _ => {
                if let Some(PieceFile { path, file, .. }) = part.take() {
                    drop(file);
                    let removed = self.disk.remove(&path);
                    removed.map_err(Error::io(&path, "remove"))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the length of all files in bytes, and their number.
    #[cfg(test)]
    pub fn size(&self) -> (u64, usize) {
        let files = self.parts.iter().flatten();
        let bytes = files.clone().map(|part| part.file.size().unwrap()).sum();
        (bytes, files.count())
    }
}
