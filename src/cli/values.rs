//! Parsers of option values: formats, sizes, times, bounds.

use std::time::Duration;

use cashrank_crawl::decode::Time;
use cashrank_crawl::formats::Format;
use cashrank_graph::engine::{Span, WindowPolicy};
use cashrank_ingest::ingest::Every;
use cashrank_steer::schedule::Taker;

use super::common::{Forms, built, one_of, parsed, some_bytes, word};

#[derive(Clone, Copy)]
pub(super) struct FormatArg(pub(super) Option<Format>);

/// Parses the formats by name, for clap.
pub(super) fn formats() -> impl clap::builder::TypedValueParser<Value = FormatArg> {
    let auto = word("auto", "recognised from the content");
    let formats = Format::ALL.map(|format| word(format.name(), format.about()));
    one_of([auto].into_iter().chain(formats), format)
}

/// Parses the formats of lists of pages by name, for clap.
pub(super) fn takers() -> impl clap::builder::TypedValueParser<Value = Taker> {
    let takers = Taker::ALL.map(|taker| word(taker.name(), taker.about()));
    one_of(takers, built::<Taker>)
}

/// Parses windows in their forms, for clap.
pub(super) fn windows() -> Forms<WindowPolicy> {
    Forms::new(WindowPolicy::FORMS, parsed::<WindowPolicy>)
}

fn format(text: &str) -> Result<FormatArg, String> {
    if text == "auto" {
        return Ok(FormatArg(None));
    }
    parsed::<Format>(text).map(|format| FormatArg(Some(format)))
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    match every(text) {
        Ok(Every::Time(time)) => Ok(time),
        _ => Err(format!("{text:?}: a time like 1s, 5m or 1h")),
    }
}

/// Parses a number of bytes; `none` is 0.
pub(super) fn size_or_none(text: &str) -> Result<u64, String> {
    match text {
        "none" => Ok(0),
        _ => some_bytes(text).map_err(|what| format!("{what}; or none")),
    }
}

/// Parses a bound on the L1 error: above 0, and below 2, since no distance is larger.
pub(super) fn bound(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bound) if bound > 0.0 && bound < 2.0 => Ok(bound),
        _ => Err(format!(
            "{text:?}: a number above 0 and below 2, like 0.01 or 1e-6"
        )),
    }
}

/// Requested bound to settle to; `None`: do not settle.
#[derive(Clone, Copy)]
pub(super) struct Bound(pub(super) Option<f64>);

pub(super) fn eps_or_none(text: &str) -> Result<Bound, String> {
    match text {
        "none" => Ok(Bound(None)),
        _ => bound(text)
            .map(|bound| Bound(Some(bound)))
            .map_err(|what| format!("{what}; or none")),
    }
}

/// Age from which pages expire; `None`: never.
#[derive(Clone, Copy)]
pub(super) struct Age(pub(super) Option<Time>);

pub(super) fn age_or_none(text: &str) -> Result<Age, String> {
    match (text, text.parse()) {
        ("none", _) => Ok(Age(None)),
        (_, Ok(Span::Seconds(seconds))) => Ok(Age(Some(seconds))),
        _ => Err(format!(
            "{text:?}: an age like 90d (s, m, h, d or w, at most 1000 years); or none"
        )),
    }
}

pub(super) fn every(text: &str) -> Result<Every, String> {
    let wrong =
        || format!("{text:?}: a number of records like 50000, or a time like 500ms, 60s, 5m or 1h");
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let timed = units
        .iter()
        .find_map(|&(unit, ms)| Some((text.strip_suffix(unit)?, ms)));
    let number: u64 = timed
        .map_or(text, |(number, _)| number)
        .parse()
        .map_err(|_| wrong())?;
    match (number, timed) {
        (0, _) => Err(wrong()),
        (number, None) => Ok(Every::Records(number)),
        (number, Some((_, ms))) => Ok(Every::Time(Duration::from_millis(
            number.saturating_mul(ms),
        ))),
    }
}
