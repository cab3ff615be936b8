//! File of lines as a plain reader, whatever its compression.

use std::io::{self, Read};
use std::path::Path;

use super::{InputName, Source, SourceOptions};
use crate::formats::Format;
use crate::model::Limits;
use crate::{Error, Result};

/// Reader returned by [`open_plain`].
pub struct Plain {
    source: Source,
    chunk: Vec<u8>,
    at: usize,
}

/// Opens a file of lines (plain, gzip or zstd), or standard input for `-`, for reading its decompressed bytes. Errors
/// while reading are an [`enum@Error`] wrapped in an [`io::Error`]; a line over `--limit-line` is one of them.
pub fn open_plain(path: &Path, limits: &Limits) -> Result<Plain> {
    let name = InputName::parse(path.as_os_str());
    Ok(Plain {
        source: Source::open_bytes(&name, limits, &SourceOptions::default())?,
        chunk: Vec::new(),
        at: 0,
    })
}

impl Read for Plain {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() {
            // Any decoder of lines cuts where lines end.
            let buffer = std::mem::take(&mut self.chunk);
            self.at = 0;
            match self.source.next_chunk(Format::Adjacency.decoder(), buffer) {
                Ok(None) => return Ok(0),
                Ok(Some(chunk)) if chunk.oversize > 0 => {
                    let what = format!("a line of {} bytes is over the limit", chunk.oversize);
                    return Err(io::Error::other(Error::Unsupported(what)));
                }
                Ok(Some(chunk)) => self.chunk = chunk.bytes,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        let len = out.len().min(self.chunk.len() - self.at);
        out[..len].copy_from_slice(&self.chunk[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}
