//! Check of a `.graph` file before it is read by the library `webgraph`, which trusts its input: on a damaged file it
//! would panic, or exhaust the memory.
//!
//! A list is, in the order of its parts (Boldi & Vigna 2004, section 4; `webgraph::graphs::bvgraph`):
//!
//! | part | must hold |
//! |---|---|
//! | degree d | at most the number of nodes; 0 ends the list |
//! | reference r | only with a window; at most the window, and the node's number. 0: nothing is copied |
//! | blocks of the list r before | end within it; what they copy is at most d |
//! | intervals | only with a least length, and if the copied are fewer than d; end below the number of nodes; with what was copied at most d |
//! | residuals | the rest of d, each below the number of nodes |
//!
//! Bits are read once, and only the degrees in the window are kept. Repeated targets are detected when lists are read.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use cashrank::{Error, Result};
use cashrank_store::memory::check_room;
use dsi_bitstream::codes::ToInt;
use dsi_bitstream::traits::{BE, BitRead};

use crate::codes::{Reader, bits_of};
use crate::files::{Properties, damaged};

/// Maximum number of bytes between the end of a graph's bits and the end of the file: writers fill up a word.
const FILLED: u64 = 8;
/// Memory of a target, in bytes; a list may have capacity for twice its length.
const TARGET: u64 = 8;
const SPARE: u64 = 2;

/// Checks a `.graph`, and that its lists can be read within the budget.
///
/// # Errors
/// [`Error::Corrupt`], with the node; [`Error::Io`]; [`Error::TooLarge`].
pub fn check(path: &Path, properties: &Properties, budget: Option<u64>) -> Result<()> {
    let file = File::open(path).map_err(Error::io(path, "open"))?;
    let bytes = file.metadata().map_err(Error::io(path, "read"))?.len();
    let mut lists = Lists::new(bits_of(file), properties);
    for node in 0..properties.nodes {
        lists.next(node).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => damaged(
                path,
                format!("it ends in the list of node {node} of {}", properties.nodes),
            ),
            ErrorKind::InvalidData => damaged(path, format!("the list of node {node}: {error}")),
            _ => Error::io(path, "read")(error),
        })?;
    }
    let used = lists.codes.read().div_ceil(8);
    if lists.arcs != properties.arcs || bytes > used + FILLED {
        return Err(damaged(
            path,
            format!(
                "{} lists have {} arcs in {used} bytes of {bytes}, and its properties say {} arcs: they are of another graph",
                properties.nodes, lists.arcs, properties.arcs
            ),
        ));
    }
    let held = properties.flags.compression_window as u64 + 1;
    let need = held
        .saturating_mul(lists.largest)
        .saturating_mul(TARGET * SPARE);
    let work = || {
        format!(
            "reading a BV graph with {} arcs of a node, and {held} lists at a time,",
            lists.largest
        )
    };
    check_room(
        budget,
        need,
        work,
        "compress it again with a smaller window",
    )
}

/// Reader of the lengths of lists, one after another.
struct Lists<'p, R> {
    codes: Reader<R>,
    properties: &'p Properties,
    /// Degrees of the last nodes, the last first: as many as the window has.
    degrees: VecDeque<u64>,
    arcs: u64,
    largest: u64,
}

impl<'p, R: BitRead<BE, Error = io::Error>> Lists<'p, R> {
    fn new(bits: R, properties: &'p Properties) -> Lists<'p, R> {
        Lists {
            codes: Reader::new(bits),
            properties,
            degrees: VecDeque::new(),
            arcs: 0,
            largest: 0,
        }
    }

    fn next(&mut self, node: u64) -> io::Result<()> {
        let degree = self.codes.number(self.properties.flags.outdegrees)?;
        ensure(degree <= self.properties.nodes, || {
            format!("it has {degree} targets, of fewer nodes")
        })?;
        if degree > 0 {
            let copied = self.copied()?;
            let left = degree.checked_sub(copied);
            let left =
                left.ok_or_else(|| wrong(format!("{copied} targets are copied, of {degree}")))?;
            let left = self.intervals(node, left)?;
            self.residuals(node, left)?;
        }
        self.arcs = self.arcs.saturating_add(degree);
        self.largest = self.largest.max(degree);
        if self.degrees.len() == self.properties.flags.compression_window {
            self.degrees.pop_back();
        }
        if self.properties.flags.compression_window > 0 {
            self.degrees.push_front(degree);
        }
        Ok(())
    }

    /// Returns the number of targets that are copied from an earlier list.
    fn copied(&mut self) -> io::Result<u64> {
        let flags = &self.properties.flags;
        if flags.compression_window == 0 {
            return Ok(0);
        }
        let back = self.codes.number(flags.references)?;
        let Some(at) = back.checked_sub(1) else {
            return Ok(0);
        };
        let before = usize::try_from(at).ok().and_then(|at| self.degrees.get(at));
        let &length = before.ok_or_else(|| wrong(format!("it refers to {back} lists before")))?;
        let blocks = self.codes.number(flags.blocks)?;
        let (mut end, mut copied) = (0, 0);
        for block in 0..blocks {
            let len = self.codes.number(flags.blocks)? + u64::from(block > 0);
            end += len;
            ensure(end <= length, || {
                format!("it copies {end} targets of a list of {length}")
            })?;
            // The first block is copied, the next one is not, and so on.
            if block % 2 == 0 {
                copied += len;
            }
        }
        if blocks % 2 == 0 {
            copied += length - end;
        }
        Ok(copied)
    }

    /// Reads targets in intervals; returns how many are left.
    fn intervals(&mut self, node: u64, mut left: u64) -> io::Result<u64> {
        let flags = &self.properties.flags;
        let least = flags.min_interval_length as u64;
        if left == 0 || least == 0 {
            return Ok(left);
        }
        let intervals = self.codes.number(flags.intervals)?;
        let mut end = None;
        for _ in 0..intervals {
            let code = self.codes.number(flags.intervals)?;
            let start = self.target(node, end, code)?;
            let len = self.codes.number(flags.intervals)?.saturating_add(least);
            let rest = left.checked_sub(len);
            left = rest.ok_or_else(|| {
                wrong(format!(
                    "an interval of {len} targets, where {left} are left"
                ))
            })?;
            let next = start.saturating_add(len);
            self.must_be_node(next - 1)?;
            // At least one target that is in neither lies between two intervals.
            end = Some(next.saturating_add(1));
        }
        Ok(left)
    }

    fn residuals(&mut self, node: u64, left: u64) -> io::Result<()> {
        let mut end = None;
        for _ in 0..left {
            let code = self.codes.number(self.properties.flags.residuals)?;
            end = Some(self.target(node, end, code)? + 1);
        }
        Ok(())
    }

    /// Decodes a target relative to the end of the previous ones; the first one is relative to the node, with a sign.
    fn target(&self, node: u64, end: Option<u64>, code: u64) -> io::Result<u64> {
        let target = match end {
            Some(end) => Some(end.saturating_add(code)),
            None => node.checked_add_signed(code.to_int()),
        };
        let target = target.ok_or_else(|| wrong("a target below 0".into()))?;
        self.must_be_node(target)?;
        Ok(target)
    }

    fn must_be_node(&self, target: u64) -> io::Result<()> {
        let nodes = self.properties.nodes;
        ensure(target < nodes, || {
            format!("its target {target} is none of {nodes} nodes")
        })
    }
}

fn wrong(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> io::Result<()> {
    if holds { Ok(()) } else { Err(wrong(what())) }
}
