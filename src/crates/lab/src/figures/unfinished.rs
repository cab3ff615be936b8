//! Crawls that are done, kept until all are: a set of figures that was interrupted goes on where it was.
//!
//! The file has a line of JSON for each crawl: what tells it from all others, and its rows.

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
    /// Opens the file, made if there is none. A line that was cut off is left: its crawl is made again.
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

    /// The rows of a crawl that was done before.
    pub fn take(&mut self, crawl: &str) -> Option<Vec<Sample>> {
        self.done.remove(crawl)
    }

    /// Keeps the rows of a crawl that is done.
    pub fn keep(&mut self, crawl: String, samples: &[Sample]) -> Result<()> {
        let samples = samples.to_vec();
        let line = serde_json::to_string(&Line { crawl, samples });
        let line = line.map_err(std::io::Error::from);
        let written = line.and_then(|line| self.file.write_all(format!("{line}\n").as_bytes()));
        written.map_err(Error::io(&self.path, "write"))
    }

    /// All is done.
    pub fn remove(self) -> Result<()> {
        std::fs::remove_file(&self.path).map_err(Error::io(&self.path, "remove"))
    }
}
