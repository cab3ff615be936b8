//! Inputs read into memory, with names numbered in order of first appearance: a graph, or a crawl.

mod crawled;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod graph;

pub use crawled::{Crawled, Each, FetchOutcome};
pub use graph::{LoadedGraph, NodeFacts, load};

use std::ops::Range;

use crate::Result;
use crate::batch::{Batch, Rules};
use crate::decode::Names;
use crate::engine::{Admit, Index, PageId};
use crate::formats::Format;
use crate::graph::GraphBuilder;
use crate::pipeline::{InputReader, PipelineItem, ReadStart, Remark, checked_format_of};
use crate::source::{InputName, Source, SourceOptions};

/// Opens an input, and guesses its format unless it is given; `None`: it is empty.
fn open(
    input: &InputName,
    format: Option<Format>,
    rules: &Rules,
    options: SourceOptions,
    before: Option<Names>,
) -> Result<Option<(Source, Format)>> {
    let options = options.with_rules(&rules.input);
    let mut source = Source::open(input, &rules.limits, &options)?;
    let found = checked_format_of(&mut source, format, before)?;
    Ok(found.map(|(format, _)| (source, format)))
}

/// Reads an input to its end, or until `take` returns false. Returns the remarks about its first records.
fn batches(
    source: Source,
    format: Format,
    rules: &Rules,
    threads: usize,
    take: &mut dyn FnMut(&Batch) -> Result<bool>,
) -> Result<Vec<Remark>> {
    let reader = InputReader::new(rules.clone(), &SourceOptions::default(), threads);
    let mut records = reader.read(source, format, ReadStart::default())?;
    loop {
        match records.next_piece()? {
            PipelineItem::Idle => {}
            PipelineItem::End(_) => return Ok(records.remarks()),
            PipelineItem::Piece(piece) => {
                if !take(&piece.batch)? {
                    return Ok(records.remarks());
                }
                records.recycle(piece);
            }
        }
    }
}

/// Names in memory, and the facts about each, by number.
struct NameTable<T> {
    index: Index,
    all: Vec<T>,
    /// Length of all names in bytes.
    text: u64,
}

impl<T> NameTable<T> {
    fn new() -> Result<NameTable<T>> {
        Ok(NameTable {
            index: Index::new()?,
            all: Vec::new(),
            text: 0,
        })
    }

    /// Returns the memory of names and index, in bytes.
    fn bytes(&self) -> u64 {
        self.text + self.index.bytes()
    }
}

impl<T: From<String>> Admit for NameTable<T> {
    fn admit(
        &mut self,
        batch: &Batch,
        names: Range<usize>,
        mut put: impl FnMut(PageId),
    ) -> Result<()> {
        let NameTable { index, all, text } = self;
        index.admit_all(&batch.fingerprints, names, |at, page, is_new| {
            GraphBuilder::node(page.0)?;
            if is_new {
                let name = batch.name(at as u32);
                *text += name.len() as u64;
                all.push(String::from_utf8_lossy(name).into_owned().into());
            }
            put(page);
            Ok(())
        })
    }
}
