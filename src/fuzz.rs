//! Fuzz targets: one function for each parser and each reader of a store's files.
//!
//! A target takes any bytes and panics if a promise is broken: not only that nothing panics, but what the module's
//! documentation says about its results. The functions are in the `fuzz.rs` of the module they test; this is the list.
//! `tools/fuzz` runs them under libFuzzer; `cargo test` replays the inputs of `tools/fuzz/corpus`.
//!
//! A target has no state: its input alone determines what it does. Choices that a format has no place for (where to
//! cut, how large the pieces are) come from [`Dice`](cashrank_base::fuzz::dice::Dice), a hash of the
//! input.

#[cfg(test)]
mod corpus;

use std::panic::{set_hook, take_hook};
use std::sync::Once;

use cashrank_store::store::{PanicFate, fenced};

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
    target("adjacency", cashrank_crawl::decode::fuzz::adjacency),
    target("edges", cashrank_crawl::decode::fuzz::edges),
    target("crawl_log", cashrank_crawl::decode::fuzz::crawl_log),
    target("nutch", cashrank_crawl::decode::fuzz::nutch),
    target("csv_links", cashrank_crawl::decode::fuzz::csv_links),
    target("records", cashrank_crawl::decode::fuzz::records),
    target("wat", cashrank_crawl::decode::fuzz::wat),
    target("warc", cashrank_crawl::decode::fuzz::warc),
    target("arc", cashrank_crawl::decode::fuzz::arc),
    target("guess", cashrank_crawl::decode::fuzz::guess),
    target("html", cashrank_crawl::decode::html::fuzz::html),
    target("time", cashrank_crawl::decode::fuzz::time),
    target("url", cashrank_base::url::fuzz::url),
    target("scores", cashrank_graph::metrics::fuzz::scores),
    target("plain", cashrank_crawl::source::fuzz::input),
    target("gzip", cashrank_crawl::source::fuzz::input),
    target("zstd", cashrank_crawl::source::fuzz::input),
    target("torn", cashrank_crawl::source::fuzz::torn),
    target("parquet", cashrank_crawl::source::fuzz::table),
    target("graph", cashrank_ingest::load::fuzz::graph),
    target("varint", cashrank_store::store::fuzz::varint),
    target("rows", cashrank_store::store::fuzz::rows),
    target("admissions", cashrank_store::store::fuzz::admissions),
    target("manifest", cashrank_store::store::fuzz::manifest),
    target("identity", cashrank_store::store::fuzz::identity),
    target("row_block", cashrank_store::store::fuzz::row_block),
    target("index", cashrank_store::store::fuzz::index),
    target("log", cashrank_store::store::fuzz::log),
    target("log_written", cashrank_store::store::fuzz::log_written),
    target("name_block", cashrank_store::store::fuzz::name_block),
    target("names_written", cashrank_store::store::fuzz::names_written),
    target("cash", cashrank_store::store::fuzz::cash),
    target("marks", cashrank_store::store::fuzz::marks),
    target("warm", cashrank_store::store::fuzz::warm),
    target("store", cashrank_store::store::fuzz::store),
    target("remote", cashrank_store::shards::fuzz::remote),
    target("column", cashrank_store::snapshot::fuzz::column),
    target("latest", cashrank_store::snapshot::fuzz::latest),
    target("snapshot", cashrank_store::snapshot::fuzz::snapshot),
    target("ranking", cashrank_store::snapshot::ranking_fuzz),
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
