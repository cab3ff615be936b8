//! Fuzz targets: one function for each parser and each reader of a store's files.
//!
//! A target takes any bytes and panics if a promise is broken: not only that nothing panics, but what the module's
//! documentation says about its results. The functions are in the `fuzz.rs` of the module they test; this is the list.
//! `tools/fuzz` runs them under libFuzzer; `cargo test` replays the inputs of `tools/fuzz/corpus`.
//!
//! A target has no state: its input alone determines what it does. Choices that a format has no place for (where to
//! cut, how large the pieces are) come from [`dice::Dice`], a hash of the input.

#[cfg(test)]
mod corpus;
pub(crate) mod dice;
pub(crate) mod memory;

use std::panic::{set_hook, take_hook};
use std::sync::Once;

use crate::store::{PanicFate, fenced};

pub struct Target {
    /// Name of the target, and of its file in `tools/fuzz/corpus`.
    pub name: &'static str,
    /// Runs the target on one input.
    pub run: fn(&[u8]),
}

/// Passes on to the panic hook, which may end the process, only panics that the store does not catch.
pub fn pass_over_fenced() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| match fenced(panic) {
            PanicFate::Caught => {}
            PanicFate::Outside | PanicFate::Final => usual(panic),
        }));
    });
}

pub const TARGETS: &[Target] = &[
    target("adjacency", crate::decode::fuzz::adjacency),
    target("edges", crate::decode::fuzz::edges),
    target("crawl_log", crate::decode::fuzz::crawl_log),
    target("nutch", crate::decode::fuzz::nutch),
    target("csv_links", crate::decode::fuzz::csv_links),
    target("records", crate::decode::fuzz::records),
    target("json", crate::decode::fuzz::json),
    target("wat", crate::decode::fuzz::wat),
    target("warc", crate::decode::fuzz::warc),
    target("arc", crate::decode::fuzz::arc),
    target("guess", crate::decode::fuzz::guess),
    target("html", crate::decode::html::fuzz::html),
    target("time", crate::decode::fuzz::time),
    target("url", crate::url::fuzz::url),
    target("scores", crate::metrics::fuzz::scores),
    target("plain", crate::source::fuzz::input),
    target("gzip", crate::source::fuzz::input),
    target("zstd", crate::source::fuzz::input),
    target("torn", crate::source::fuzz::torn),
    target("parquet", crate::source::fuzz::table),
    target("graph", crate::load::fuzz::graph),
    target("varint", crate::store::fuzz::varint),
    target("rows", crate::store::fuzz::rows),
    target("admissions", crate::store::fuzz::admissions),
    target("manifest", crate::store::fuzz::manifest),
    target("identity", crate::store::fuzz::identity),
    target("row_block", crate::store::fuzz::row_block),
    target("places", crate::store::fuzz::places),
    target("index", crate::store::fuzz::index),
    target("log", crate::store::fuzz::log),
    target("log_written", crate::store::fuzz::log_written),
    target("name_block", crate::store::fuzz::name_block),
    target("names_written", crate::store::fuzz::names_written),
    target("cash", crate::store::fuzz::cash),
    target("marks", crate::store::fuzz::marks),
    target("warm", crate::store::fuzz::warm),
    target("store", crate::store::fuzz::store),
    target("remote", crate::shards::fuzz::remote),
    target("column", crate::snapshot::fuzz::column),
    target("latest", crate::snapshot::fuzz::latest),
    target("snapshot", crate::snapshot::fuzz::snapshot),
    target("ranking", crate::snapshot::ranking_fuzz),
];

/// Returns the target of this name. Can be called at compile time: a program of one target then holds nothing of the
/// others, whose counters libFuzzer would read after every input.
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
