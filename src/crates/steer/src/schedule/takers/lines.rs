//! Lists with one line per page.

use std::io::{self, Write};

use super::{TakerSpec, failed};
use crate::Result;
use crate::schedule::Candidate;
use crate::url::host;

pub(super) const PLAIN: TakerSpec = TakerSpec {
    name: "plain",
    about: "one URL per line",
    write: |pages, out| lines(pages, out, |page, _, out| writeln!(out, "{}", page.url)),
};

pub(super) const NUTCH_INJECT: TakerSpec = TakerSpec {
    name: "nutch-inject",
    about: "seeds for Nutch's injector, each with a score",
    write: |pages, out| {
        lines(pages, out, |page, place, out| {
            let score = place.left() as f64 / place.of as f64;
            writeln!(out, "{}\tnutch.score={score}", page.url)
        })
    },
};

pub(super) const HERITRIX_PRECEDENCE: TakerSpec = TakerSpec {
    name: "heritrix-precedence",
    about: "a URI and its precedence for Heritrix, 1 to 127",
    write: |pages, out| {
        lines(pages, out, |page, place, out| {
            writeln!(out, "{} {}", page.url, 1 + place.at * 127 / place.of)
        })
    },
};

pub(super) const HERITRIX_SCHEDULE: TakerSpec = TakerSpec {
    name: "heritrix-schedule",
    about: "a schedule for Heritrix's action directory",
    write: |pages, out| lines(pages, out, |page, _, out| writeln!(out, "F+ {}", page.url)),
};

pub(super) const URLFRONTIER: TakerSpec = TakerSpec {
    name: "urlfrontier",
    about: "items of URLFrontier as JSON lines",
    write: |pages, out| {
        lines(pages, out, |page, place, out| {
            writeln!(out, "{}", frontier_item(page, place.at as u64 + 1))
        })
    },
};

pub(super) const SCRAPY: TakerSpec = TakerSpec {
    name: "scrapy",
    about: "requests for Scrapy as JSON lines",
    write: |pages, out| {
        lines(pages, out, |page, place, out| {
            let request = serde_json::json!({ "url": page.url, "priority": place.left() });
            writeln!(out, "{request}")
        })
    },
};

/// Position of a page in a list, from 0, and the list's length.
struct ListPosition {
    at: usize,
    of: usize,
}

impl ListPosition {
    /// Returns how many pages are left, including this one.
    fn left(&self) -> usize {
        self.of - self.at
    }
}

fn lines(
    pages: &[Candidate],
    out: &mut (dyn Write + Send),
    line: impl Fn(&Candidate, ListPosition, &mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<()> {
    let of = pages.len();
    let mut places = pages.iter().enumerate();
    places.try_for_each(|(at, page)| line(page, ListPosition { at, of }, out).map_err(failed))
}

/// Returns a page as an item of the frontier's protocol in JSON. Its queues are hosts.
fn frontier_item(page: &Candidate, date: u64) -> serde_json::Value {
    let key = String::from_utf8_lossy(host(page.url.as_bytes())).into_owned();
    serde_json::json!({ "known": {
        "info": { "url": page.url, "key": key, "metadata": {} },
        "refetchable_from_date": date,
    }})
}
