//! Fuzz targets: one function for each parser and each reader of a store's files.
//!
//! A target takes any bytes and panics if a promise is broken: not only that nothing panics, but
//! what the module's documentation says of its results. The functions stand beside what they
//! test, in a `fuzz.rs` of each module; here is the list. `tools/fuzz` runs them under libFuzzer;
//! `cargo test` replays the inputs of `tools/fuzz/corpus`.
//!
//! A target has no state: its input alone decides what it does. Choices that a format has no room
//! for (where to cut, how large the pieces are) come from [`Dice`], a hash of the input.

#[cfg(test)]
mod corpus;
mod memory;

pub(crate) use memory::Memory;

use std::panic::{set_hook, take_hook};
use std::sync::Once;

use xxhash_rust::xxh3::xxh3_64;

use crate::store::{Fenced, fenced};

/// A fuzz target.
pub struct Target {
    /// Its name, and that of its folder in `tools/fuzz/corpus`.
    pub name: &'static str,
    /// Runs it on one input.
    pub run: fn(&[u8]),
}

/// Keeps the panic hook, which may end the process at any panic, from those that the store catches.
pub fn pass_over_fenced() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| match fenced(panic) {
            Fenced::Caught => {}
            Fenced::Outside | Fenced::Final => usual(panic),
        }));
    });
}

/// All targets.
pub const TARGETS: &[Target] = &[
    target("adjacency", crate::decode::fuzz::adjacency),
    target("edges", crate::decode::fuzz::edges),
    target("crawl_log", crate::decode::fuzz::crawl_log),
    target("nutch", crate::decode::fuzz::nutch),
    target("csv_links", crate::decode::fuzz::csv_links),
    target("records", crate::decode::fuzz::records),
    target("wat", crate::decode::fuzz::wat),
    target("warc", crate::decode::fuzz::warc),
    target("arc", crate::decode::fuzz::arc),
    target("guess", crate::decode::fuzz::guess),
    target("html", crate::decode::html::fuzz::html),
    target("cdxj", crate::order::cdxj::fuzz),
    target("cza_block", crate::cza::fuzz::block),
    target("cza_text", crate::cza::fuzz::text),
    target("time", crate::decode::fuzz::time),
    target("url", crate::url::fuzz::url),
    target("scores", crate::metrics::fuzz::scores),
    target("plain", crate::source::fuzz::input),
    target("gzip", crate::source::fuzz::input),
    target("zstd", crate::source::fuzz::input),
    target("torn", crate::source::fuzz::torn),
    target("graph", crate::sim::fuzz::graph),
    target("varint", crate::store::fuzz::varint),
    target("rows", crate::store::fuzz::rows),
    target("admissions", crate::store::fuzz::admissions),
    target("manifest", crate::store::fuzz::manifest),
    target("identity", crate::store::fuzz::identity),
    target("row_block", crate::store::fuzz::row_block),
    target("log", crate::store::fuzz::log),
    target("log_written", crate::store::fuzz::log_written),
    target("name_block", crate::store::fuzz::name_block),
    target("names_written", crate::store::fuzz::names_written),
    target("cash", crate::store::fuzz::cash),
    target("marks", crate::store::fuzz::marks),
    target("store", crate::store::fuzz::store),
    target("column", crate::snapshot::fuzz::column),
    target("latest", crate::snapshot::fuzz::latest),
    target("snapshot", crate::snapshot::fuzz::snapshot),
];

/// The target of this name. It can be called at compile time: a program of one target then holds
/// nothing of the others, whose counters libFuzzer would read after every input.
pub const fn named(name: &str) -> Option<fn(&[u8])> {
    let mut at = 0;
    while at < TARGETS.len() {
        if same(TARGETS[at].name.as_bytes(), name.as_bytes()) {
            return Some(TARGETS[at].run);
        }
        at += 1;
    }
    None
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// Choices that follow from the input.
pub(crate) struct Dice(u64);

impl Dice {
    pub fn of(data: &[u8]) -> Dice {
        Dice(xxh3_64(data))
    }

    /// A number below `n`, or 0.
    pub fn below(&mut self, n: usize) -> usize {
        // SplitMix64's step is enough: the first state is a hash.
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        ((self.0 >> 33) as usize).checked_rem(n).unwrap_or(0)
    }

    pub fn one_of<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[self.below(N)]
    }
}

/// Takes numbers off the front of an input; zeros where it has ended.
pub(crate) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let part = self.take(N);
        array[..part.len()].copy_from_slice(part);
        array
    }

    pub fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// The next `n` bytes, or what is left.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (part, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        part
    }
}
