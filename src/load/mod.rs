//! Inputs read into memory, with names numbered in order of first appearance: a graph, or a crawl.

mod crawled;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod graph;

pub use crawled::{Crawled, Each, Fetch};
pub use graph::{LoadedGraph, Page, load};

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::Result;
use crate::batch::{Batch, Rules};
use crate::engine::Fingerprint;
use crate::formats::Format;
use crate::graph::GraphBuilder;
use crate::model::{Limits, Numbering};
use crate::pipeline::{InputReader, Next, Start, checked_format_of};
use crate::source::{InputName, Source, SourceOptions};

/// Opens an input, and guesses its format unless it is given; `None`: it is empty.
fn open(
    input: &InputName,
    format: Option<Format>,
    limits: &Limits,
    options: &SourceOptions,
) -> Result<Option<(Source, Format)>> {
    let mut source = Source::open(input, limits, options)?;
    let found = checked_format_of(&mut source, format)?;
    Ok(found.map(|(format, _)| (source, format)))
}

/// Reads an input to its end, or until `take` returns false.
///
/// # Errors
/// Those of reading, and of `take`.
fn batches(
    source: Source,
    format: Format,
    rules: &Rules,
    threads: usize,
    take: &mut dyn FnMut(&Batch) -> Result<bool>,
) -> Result<()> {
    let reader = InputReader::new(rules.clone(), &SourceOptions::default(), threads);
    let mut records = reader.read(source, format, Start::default())?;
    loop {
        match records.next()? {
            Next::Idle => {}
            Next::End(_) => return Ok(()),
            Next::Piece(piece) => {
                if !take(&piece.batch)? {
                    return Ok(());
                }
                records.recycle(piece);
            }
        }
    }
}

/// The nodes of names.
#[derive(Default)]
struct Nodes {
    numbers: HashMap<Fingerprint, u32>,
    /// Of the names that a batch counts: an archive's from its first on.
    ids: Vec<u32>,
    /// Bytes of all names.
    text: u64,
}

impl Nodes {
    /// Ends an input: its names are forgotten, not their nodes.
    pub fn end(&mut self) {
        self.ids.clear();
    }

    /// The node of a name of so many bytes, and whether it is new.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported): there are too many nodes.
    pub fn node(&mut self, fingerprint: Fingerprint, bytes: usize) -> Result<(u32, bool)> {
        let next = self.numbers.len() as u64;
        match self.numbers.entry(fingerprint) {
            Entry::Occupied(known) => Ok((*known.get(), false)),
            Entry::Vacant(place) => {
                let node = *place.insert(GraphBuilder::node(next)?);
                self.text += bytes as u64;
                Ok((node, true))
            }
        }
    }

    /// Takes the names that a batch gives; `new` hears of those of new nodes, in order.
    ///
    /// # Errors
    /// As [`Nodes::node`].
    pub fn take(&mut self, batch: &Batch, mut new: impl FnMut(String)) -> Result<()> {
        if batch.numbering == Numbering::Own {
            self.ids.clear();
        }
        for (name, fingerprint) in (0..).zip(&batch.fingerprints) {
            let text = batch.name(name);
            let (node, is_new) = self.node(*fingerprint, text.len())?;
            if is_new {
                new(String::from_utf8_lossy(text).into_owned());
            }
            self.ids.push(node);
        }
        Ok(())
    }

    /// The node of a name of the batch.
    pub fn of(&self, name: u32) -> u32 {
        self.ids[name as usize]
    }

    /// Bytes of all names.
    pub fn text(&self) -> u64 {
        self.text
    }
}
