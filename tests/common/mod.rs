//! Helpers that the engine's tests share: one small graph, and records made from numbers.
//!
//! **The graph.** A clique of three with a tail; the tail's end is dangling.
//!
//! ```text
//!   a <-> b      a -> b, c       n = 5
//!    \   /       b -> a, c
//!      c         c -> a, b, s
//!      |         s -> t
//!      s -> t    t has no links
//! ```
#![allow(dead_code)] // Each test binary uses its part.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use cashrank_crawl::decode::{Link, Record};

/// Pages and links of the graph, in the order in which the pages become known.
pub const CLIQUE_WITH_TAIL: [(&str, &[&str]); 5] = [
    ("a", &["b", "c"]),
    ("b", &["a", "c"]),
    ("c", &["a", "b", "s"]),
    ("s", &["t"]),
    ("t", &[]),
];

/// PageRank of the graph at damping d, page by page.
///
/// Let z = (1 - d)/n + d t/n be what every page gets from everywhere. Then, a = b by symmetry,
///
/// ```text
/// c = z + d (a/2 + b/2)   = z + d a
/// a = z + d (b/2 + c/3)   = z + d a/2 + d/3 (z + d a)
///   so a (1 - d/2 - d^2/3) = z (1 + d/3)
/// s = z + d c/3,   t = z + d s
/// ```
/// All are multiples of z, which the sum 1 fixes.
pub fn clique_with_tail(d: f64) -> Vec<f64> {
    let a = (1.0 + d / 3.0) / (1.0 - d / 2.0 - d * d / 3.0);
    let c = 1.0 + d * a;
    let s = 1.0 + d * c / 3.0;
    let t = 1.0 + d * s;
    let sum = a + a + c + s + t;
    [a, a, c, s, t].iter().map(|x| x / sum).collect()
}

/// Returns a record of a page with these links.
pub fn record<'a>(url: &'a str, links: impl IntoIterator<Item = &'a str>) -> Record<'a> {
    Record {
        url: Cow::Borrowed(url.as_bytes()),
        links: links.into_iter().map(link).collect(),
        ..Record::default()
    }
}

fn link(url: &str) -> Link<'_> {
    Link::to(url.as_bytes())
}

/// Returns the sum of |x - y|.
pub fn l1(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len());
    x.iter().zip(y).map(|(x, y)| (x - y).abs()).sum()
}

/// Reads names and bytes of all snapshots of a store, in order.
pub fn snapshots(store: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(store.join("snapshots")).unwrap();
    let mut found: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name() != "latest.json")
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    found.sort();
    found
}
