//! Finished crawls, kept until all are finished, so that an interrupted set of figures can be continued.
//!
//! The file has a line of JSON for each crawl: a string that identifies it, and its rows.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use cashrank::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::experiment::Sample;

#[derive(Serialize, Deserialize)]
struct Line {
    crawl: String,
    samples: Vec<Sample>,
}

pub(super) struct Unfinished {
    path: PathBuf,
    file: File,
    done: HashMap<String, Vec<Sample>>,
}

impl Unfinished {
    /// Opens the file, which is created if necessary. A line that was cut off is ignored: its crawl is repeated.
    pub fn open(path: &Path) -> Result<Unfinished> {
        let text = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.map_err(Error::io(path, "read"))?,
        };
        let lines = text.split(|&byte| byte == b'\n');
        let done = lines
            .filter_map(|line| serde_json::from_slice::<Line>(line).ok())
            .map(|line| (line.crawl, line.samples))
            .collect();
        let mut options = File::options();
        let file = options.append(true).create(true).open(path);
        let mut file = file.map_err(Error::io(path, "open"))?;
        if text.last().is_some_and(|&last| last != b'\n') {
            file.write_all(b"\n").map_err(Error::io(path, "write"))?;
        }
        Ok(Unfinished {
            path: path.to_owned(),
            file,
            done,
        })
    }

    /// Takes the rows of a crawl that was finished before.
    pub fn take(&mut self, crawl: &str) -> Option<Vec<Sample>> {
        self.done.remove(crawl)
    }

    /// Keeps the rows of a finished crawl.
    pub fn keep(&mut self, crawl: String, samples: &[Sample]) -> Result<()> {
        let samples = samples.to_vec();
        let line = serde_json::to_string(&Line { crawl, samples });
        let line = line.map_err(std::io::Error::from);
        let written = line.and_then(|line| self.file.write_all(format!("{line}\n").as_bytes()));
        written.map_err(Error::io(&self.path, "write"))
    }

    /// Removes the file after all crawls.
    pub fn remove(self) -> Result<()> {
        std::fs::remove_file(&self.path).map_err(Error::io(&self.path, "remove"))
    }
}
