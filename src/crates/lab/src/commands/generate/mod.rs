//! `cashrank-lab generate`: a synthetic crawl of any size, for tests and benchmarks.
//!
//! ```text
//! cargo run --release -p cashrank-lab -- generate --pages 1000000 --links 20000000 --seed 1 \
//!     | zstd -3 --check > crawl.jsonl.zst
//! ```
//!
//! A pass has exactly `--crawled` records and `--links` links, and makes exactly `--pages` pages
//! known. The model is described in `crawl.rs`. Memory doesn't depend on the size, and the same
//! arguments give the same bytes on every machine, as long as `--version` stays.
//!
//! `--format records` writes crawl records (formats/records.md), 100 of them a second from
//! 2024-01-01T00:00:00Z; `adjacency` writes `page<TAB>target<TAB>...` with pages as numbers, `edges`
//! a line `page<TAB>target` a link.

mod crawl;
mod mix;
mod names;
#[cfg(test)]
mod tests;
mod text;

use std::io::{self, Write};
use std::ops::RangeInclusive;

use cashrank::Error;
use clap::ValueEnum;

use crawl::{Config, Crawl, Host, Row};
use names::Site;
use text::Text;

/// Write a synthetic crawl to stdout.
#[derive(clap::Args)]
#[command(version = VERSION)]
pub struct Args {
    /// Pages, crawled or known as targets only.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..1 << 34))]
    pages: u64,
    /// Pages that are crawled, and records a pass: an eighth of --pages or more [default: all].
    #[arg(long, value_name = "PAGES")]
    crawled: Option<u64>,
    /// Links a pass: one for each page that is not crawled, and at most 900 a crawled page beyond.
    #[arg(long)]
    links: u64,
    /// Another seed, another crawl.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, value_enum, default_value_t = Format::Records)]
    format: Format,
    /// Further passes over all pages, each in another order.
    #[arg(long, value_name = "PASSES", default_value_t = 0)]
    recrawl: u64,
    /// The chance that a page has changed when it is fetched again, 0 to 1.
    #[arg(long, value_name = "RATE", default_value_t = 0.0, value_parser = rate)]
    change: f64,
    /// The share of links beyond navigation that stay on their host, 0 to 1: three quarters and more on the web.
    #[arg(long, value_name = "SHARE", default_value_t = 0.25, value_parser = rate)]
    inside: f64,
}

/// Version of the generator; it changes whenever the bytes for the same arguments do.
const VERSION: &str = "2";

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Crawl records, JSON lines.
    Records,
    /// Page numbers, a line a page.
    Adjacency,
    /// Page numbers, a line a link.
    Edges,
}

impl Args {
    pub fn run(self) -> anyhow::Result<()> {
        self.config().check().map_err(anyhow::Error::msg)?;
        let written = write(&self, &mut io::stdout().lock());
        Ok(written.map_err(Error::io("standard output", "write"))?)
    }

    fn config(&self) -> Config {
        Config {
            pages: self.pages,
            crawled: self.crawled.unwrap_or(self.pages),
            links: self.links,
            seed: self.seed,
            change: self.change,
            inside: self.inside,
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    const RATES: RangeInclusive<f64> = 0.0..=1.0;
    let rate: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if RATES.contains(&rate) {
        Ok(rate)
    } else {
        Err("not between 0 and 1".to_owned())
    }
}

fn write(args: &Args, out: &mut impl Write) -> io::Result<()> {
    let config = args.config();
    let records = config.crawled;
    let crawl = Crawl::new(config);
    let mut text = Text::new();
    let mut clock = Clock::default();
    for pass in 0..=args.recrawl {
        let order = crawl.order(pass);
        for visit in 0..records {
            let row = crawl.row(order.apply(visit));
            match args.format {
                Format::Records => {
                    let time = clock.at(pass * records + visit);
                    push_record(&mut text, &crawl, pass, &row, time);
                }
                Format::Adjacency => push_adjacency(&mut text, &crawl, pass, &row),
                Format::Edges => push_edges(&mut text, &crawl, pass, &row),
            }
            text.flush(out, false)?;
        }
    }
    text.flush(out, true)?;
    out.flush()
}

/// Text of a record's time, formatted again only when the second changes.
#[derive(Default)]
struct Clock {
    second: Option<u64>,
    text: [u8; 20],
}

impl Clock {
    /// 2024-01-01T00:00:00Z.
    const START: i64 = 1_704_067_200;
    /// 9999-12-31T00:00:00Z: later times have longer texts.
    const END: i64 = 253_402_214_400;
    const RECORDS_PER_SECOND: u64 = 100;

    fn at(&mut self, record: u64) -> &[u8; 20] {
        let second = record / Self::RECORDS_PER_SECOND;
        if self.second != Some(second) {
            self.second = Some(second);
            let time = Self::START.saturating_add_unsigned(second).min(Self::END);
            let time = jiff::Timestamp::from_second(time).unwrap_or_default();
            self.text
                .copy_from_slice(&time.to_string().as_bytes()[..20]);
        }
        &self.text
    }
}

/// Appends a crawl record. Nothing in a generated URL needs an escape.
fn push_record(out: &mut Text, crawl: &Crawl, pass: u64, row: &Row, time: &[u8; 20]) {
    let site = Site::new(row.host, out);
    out.reserve(2 * names::ROOM);
    out.push(b"{\"url\":\"");
    site.push_url(out, row.page);
    out.push(b"\",\"fetched_at\":\"");
    out.push(time);
    out.push(b"\",\"status\":200,\"links\":");
    let list = out.len();
    push_links(out, crawl, pass, row, |out, host, page| {
        out.push(b",\"");
        if host.number == site.host.number {
            site.push_url(out, page);
        } else {
            names::push_url(out, host, page);
        }
        out.push(b"\"");
    });
    out.reserve(names::ROOM);
    if out.len() == list {
        out.push(b"[");
    } else {
        // Replaces the first link's comma.
        out.set(list, b'[');
    }
    out.push(b"]}\n");
}

fn push_adjacency(out: &mut Text, crawl: &Crawl, pass: u64, row: &Row) {
    out.reserve(names::ROOM);
    push_decimal(out, row.page);
    push_links(out, crawl, pass, row, |out, _, page| {
        out.push(b"\t");
        push_decimal(out, page);
    });
    out.reserve(names::ROOM);
    out.push(b"\n");
}

fn push_edges(out: &mut Text, crawl: &Crawl, pass: u64, row: &Row) {
    push_links(out, crawl, pass, row, |out, _, page| {
        push_decimal(out, row.page);
        out.push(b"\t");
        push_decimal(out, page);
        out.push(b"\n");
    });
}

/// Appends all links of a row, each by `push`. The footer copies the text of the first ones.
#[inline]
fn push_links(
    out: &mut Text,
    crawl: &Crawl,
    pass: u64,
    row: &Row,
    mut push: impl FnMut(&mut Text, Host, u64),
) {
    let start = out.len();
    let (mut footer_end, mut left) = (start, row.footer);
    crawl.links(row, pass, |host, page| {
        out.reserve(names::ROOM);
        push(out, host, page);
        if left > 0 {
            left -= 1;
            footer_end = out.len();
        }
    });
    out.repeat(start..footer_end);
}

fn push_decimal(out: &mut Text, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    digits.copy_within(at.., 0);
    out.put(&digits, 20 - at);
}
