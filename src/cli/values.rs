//! Parsers of option values: formats, sizes, times, bounds.

use std::time::Duration;

use cashrank_crawl::decode::Time;
use cashrank_crawl::formats::Format;
use cashrank_graph::engine::{Span, WindowPolicy};
use cashrank_ingest::ingest::Every;
use cashrank_steer::schedule::Taker;

use super::common::{Forms, one_of, parsed, some_bytes, words};

/// Value that may be left open: a format that is recognised from the content, or `none`. It is an alias because clap's
/// derive takes a field spelled `Option<Option<_>>` for an option that may lack its value.
pub(super) type OrNone<T> = Option<T>;

fn or_none<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<OrNone<T>, String> {
    match text {
        "none" => Ok(None),
        _ => read(text)
            .map(Some)
            .map_err(|what| format!("{what}; or none")),
    }
}

pub(super) fn formats() -> impl clap::builder::TypedValueParser<Value = OrNone<Format>> {
    let auto = ("auto", "recognised from the content");
    let formats = Format::ALL.map(|format| (format.name(), format.about()));
    one_of([auto].into_iter().chain(formats), |name| match name {
        "auto" => Ok(None),
        name => parsed(name).map(Some),
    })
}

pub(super) fn takers() -> impl clap::builder::TypedValueParser<Value = Taker> {
    words::<Taker>(Taker::ALL.map(|taker| (taker.name(), taker.about())))
}

pub(super) fn windows() -> Forms<WindowPolicy> {
    Forms::new(WindowPolicy::FORMS, parsed::<WindowPolicy>)
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    match every(text) {
        Ok(Every::Time(time)) => Ok(time),
        _ => Err(format!("{text:?}: a time like 1s, 5m or 1h")),
    }
}

pub(super) fn size_or_none(text: &str) -> Result<OrNone<u64>, String> {
    or_none(text, some_bytes)
}

/// Parses a bound on the L1 error: above 0, and below 2, because no distance is larger.
pub(super) fn bound(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bound) if bound > 0.0 && bound < 2.0 => Ok(bound),
        _ => Err(format!(
            "{text:?}: a number above 0 and below 2, like 0.01 or 1e-6"
        )),
    }
}

pub(super) fn eps_or_none(text: &str) -> Result<OrNone<f64>, String> {
    or_none(text, bound)
}

pub(super) fn age_or_none(text: &str) -> Result<OrNone<Time>, String> {
    or_none(text, |text| match text.parse() {
        Ok(Span::Seconds(seconds)) => Ok(seconds),
        _ => Err(format!(
            "{text:?}: an age like 90d (s, m, h, d or w, at most 1000 years)"
        )),
    })
}

pub(super) fn every(text: &str) -> Result<Every, String> {
    let wrong =
        || format!("{text:?}: a number of records like 50000, or a time like 500ms, 60s, 5m or 1h");
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let timed = units
        .iter()
        .find_map(|&(unit, ms)| Some((text.strip_suffix(unit)?, ms)));
    let number = timed.map_or(text, |(number, _)| number).parse::<u64>();
    match (number, timed) {
        (Err(_) | Ok(0), _) => Err(wrong()),
        (Ok(number), None) => Ok(Every::Records(number)),
        (Ok(number), Some((_, ms))) => {
            let time = number.saturating_mul(ms);
            Ok(Every::Time(Duration::from_millis(time)))
        }
    }
}
