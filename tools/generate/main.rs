//! Writes a synthetic crawl of any size to stdout, for tests and benchmarks.
//!
//! ```text
//! cargo run --release --example generate -- --pages 1000000 --links 20000000 --seed 1 \
//!     | zstd -3 --check > crawl.jsonl.zst
//! ```
//!
//! Every page is fetched once a pass, so a pass has exactly `--pages` records and `--links` links.
//! The model is described in `crawl.rs`. Memory doesn't depend on the size, and the same arguments
//! give the same bytes on every machine.
//!
//! `--format records` writes crawl records (formats/records.md), 100 of them a second from
//! 2024-01-01T00:00:00Z; `adjacency` writes `page<TAB>target<TAB>...` with pages as numbers.

mod crawl;
mod mix;
mod names;
#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind, Write};
use std::ops::RangeInclusive;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use crawl::{Config, Crawl};

/// Write a synthetic crawl to stdout.
#[derive(Parser)]
struct Options {
    /// Pages, and records a pass.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..1 << 34))]
    pages: u64,
    /// Links a pass: at most 900 a page.
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
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Crawl records, JSON lines.
    Records,
    /// Page numbers, a line a page.
    Adjacency,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.links / 900 > options.pages || options.links > 900 * options.pages {
        eprintln!("generate: --links is more than 900 a page");
        return ExitCode::from(2);
    }
    match write(&options, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has had enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("generate: cannot write to stdout: {error}");
            ExitCode::FAILURE
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

fn write(options: &Options, out: &mut impl Write) -> io::Result<()> {
    let crawl = Crawl::new(Config {
        pages: options.pages,
        links: options.links,
        seed: options.seed,
        change: options.change,
    });
    let mut buffer = Vec::new();
    let mut clock = Clock::default();
    for pass in 0..=options.recrawl {
        let order = crawl.order(pass);
        for visit in 0..options.pages {
            let page = order.apply(visit);
            match options.format {
                Format::Records => {
                    let time = clock.at(pass * options.pages + visit);
                    push_record(&mut buffer, &crawl, pass, page, time);
                }
                Format::Adjacency => push_adjacency(&mut buffer, &crawl, pass, page),
            }
            if buffer.len() >= 1 << 18 {
                out.write_all(&buffer)?;
                buffer.clear();
            }
        }
    }
    out.write_all(&buffer)?;
    out.flush()
}

/// The text of the time of a record, made anew only when the second changes.
#[derive(Default)]
struct Clock {
    second: Option<u64>,
    text: String,
}

impl Clock {
    /// 2024-01-01T00:00:00Z.
    const START: i64 = 1_704_067_200;
    const RECORDS_PER_SECOND: u64 = 100;

    fn at(&mut self, record: u64) -> &str {
        let second = record / Self::RECORDS_PER_SECOND;
        if self.second != Some(second) {
            self.second = Some(second);
            let time = jiff::Timestamp::from_second(Self::START.saturating_add_unsigned(second));
            self.text = time.unwrap_or(jiff::Timestamp::MAX).to_string();
        }
        &self.text
    }
}

/// Appends a crawl record. Nothing in a generated URL needs an escape.
fn push_record(out: &mut Vec<u8>, crawl: &Crawl, pass: u64, page: u64, time: &str) {
    out.extend_from_slice(b"{\"url\":\"");
    names::push_url(out, crawl, crawl.host(page), page);
    out.extend_from_slice(b"\",\"fetched_at\":\"");
    out.extend_from_slice(time.as_bytes());
    out.extend_from_slice(b"\",\"status\":200,\"links\":[");
    let mut separator: &[u8] = b"\"";
    crawl.links(page, pass, |host, target| {
        out.extend_from_slice(separator);
        separator = b",\"";
        names::push_url(out, crawl, host, target);
        out.push(b'"');
    });
    out.extend_from_slice(b"]}\n");
}

fn push_adjacency(out: &mut Vec<u8>, crawl: &Crawl, pass: u64, page: u64) {
    push_decimal(out, page);
    crawl.links(page, pass, |_, target| {
        out.push(b'\t');
        push_decimal(out, target);
    });
    out.push(b'\n');
}

fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
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
    out.extend_from_slice(&digits[at..]);
}
