//! Fuzz targets: guarantees of the decoders, of format detection and of time parsing for any bytes, and of the batches
//! built from what decoders yield.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{Decoder, Names, Parsed, Record, Skipped, time as times};
use crate::batch::{Batch, BatchEntry, Builder, HashKey, Rules, What};
use crate::formats::{Format, guess as guessed, is_decided};
use crate::fuzz::dice::{Bytes, Dice};
use crate::model::Limits;
use crate::model::SelfLinks;
use crate::rules::{InputRules, Outlinks};
use crate::url;

pub fn adjacency(data: &[u8]) {
    check(Format::Adjacency, data);
}

pub fn edges(data: &[u8]) {
    check(Format::Edges, data);
}

pub fn crawl_log(data: &[u8]) {
    check(Format::CrawlLog, data);
}

pub fn nutch(data: &[u8]) {
    check(Format::Nutch, data);
}

pub fn csv_links(data: &[u8]) {
    check(Format::CsvLinks, data);
}

pub fn records(data: &[u8]) {
    check(Format::Records, data);
    check(Format::NodeRecords, data);
}

pub fn wat(data: &[u8]) {
    check(Format::Wat, data);
}

pub fn arc(data: &[u8]) {
    check(Format::Arc, data);
}

/// WARC, with links from the HTML or from `metadata` records.
pub fn warc(data: &[u8]) {
    let rules = InputRules {
        outlinks: Dice::of(data).one_of([Outlinks::Html, Outlinks::Metadata]),
        ..InputRules::default()
    };
    check_by(Format::Warc, &rules, data);
}

/// Results of a decoder: for each, the offset where it ended and a hash of its content.
type Said = Vec<(usize, u64)>;

fn check(format: Format, data: &[u8]) {
    check_by(format, &InputRules::default(), data);
}

fn check_by(format: Format, rules: &InputRules, data: &[u8]) {
    let mut dice = Dice::of(data);
    let limits = Limits {
        line_bytes: dice.one_of([200, 64 << 20]),
        ..Limits::default()
    };
    let decoder = &*format.decoder_by(rules, &limits);
    let at_once = decode(decoder, data);
    let mut before = 0;
    for &(end, _) in &at_once {
        assert!(
            (before..=data.len()).contains(&end),
            "ends at {end}, after {before}"
        );
        before = end;
    }
    let cut = dice.below(data.len() + 1);
    let whole = decoder.whole(&data[..cut]);
    assert!(whole <= cut, "more is whole than there is");
    // Runs one check per input: faster inputs find more.
    match dice.below(3) {
        0 => assert!(joined(decoder, data, whole) == at_once, "cut at {whole}"),
        1 => continued(format, &limits, decoder, data, &at_once, &mut dice),
        _ => batches(decoder, data, whole, &at_once, &mut dice),
    }
}

fn decode(decoder: &dyn Decoder, chunk: &[u8]) -> Said {
    let mut message = Vec::new();
    let mut text = Vec::new();
    decoder.decode(chunk, &mut |end, parsed| {
        text.clear();
        write(&parsed, &mut text);
        message.push((end, xxh3_64(&text)));
        true
    });
    message
}

/// Serializes everything that was parsed.
fn write(parsed: &Parsed<'_, '_>, out: &mut Vec<u8>) {
    let put = |text: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(&text.len().to_le_bytes());
        out.extend_from_slice(text);
    };
    match parsed {
        Parsed::Bad { reason, detail } => {
            let one_line = !detail.is_empty() && detail.len() < 400 && !detail.contains('\n');
            assert!(one_line, "{detail:?}");
            put(reason.name().as_bytes(), out);
            put(detail.as_bytes(), out);
        }
        Parsed::Other { kind } => put(kind.as_bytes(), out),
        Parsed::Large => put(b"large", out),
        Parsed::Record(record) => {
            let Record {
                url,
                base,
                fetched_at,
                bad_time,
                status,
                digest,
                redirect,
                links,
                revisit,
                same_as,
                totals,
            } = record;
            put(url, out);
            put(bad_time.as_deref().unwrap_or_default().as_bytes(), out);
            assert!(bad_time.as_ref().is_none_or(|detail| {
                !detail.is_empty() && detail.len() < 400 && !detail.contains('\n')
            }));
            for text in [base, redirect, same_as] {
                out.push(u8::from(text.is_some()));
                put(text.as_deref().unwrap_or_default(), out);
            }
            for number in [fetched_at.as_ref().copied(), status.map(i64::from)] {
                out.push(u8::from(number.is_some()));
                out.extend_from_slice(&number.unwrap_or(0).to_le_bytes());
            }
            out.extend_from_slice(&digest.bits().to_le_bytes());
            out.push(u8::from(*revisit));
            out.extend_from_slice(format!("{totals:?}").as_bytes());
            for link in links {
                put(&link.url, out);
                out.push(link.rel.bits());
            }
        }
    }
}

/// Decodes the data in two parts and joins the results.
fn joined(decoder: &dyn Decoder, data: &[u8], whole: usize) -> Said {
    let mut message = decode(decoder, &data[..whole]);
    let rest = decode(decoder, &data[whole..]);
    message.extend(rest.into_iter().map(|(end, what)| (whole + end, what)));
    message
}

/// Checks that reading can resume after any record at which the offset grew, and that a skipper ends where the record
/// does; of an exchange of several records, which is never over the limit, it may skip only the first.
fn continued(
    format: Format,
    limits: &Limits,
    decoder: &dyn Decoder,
    data: &[u8],
    at_once: &Said,
    dice: &mut Dice,
) {
    let at = dice.below(at_once.len());
    let Some(&(end, _)) = at_once.get(at) else {
        return;
    };
    let done = at.checked_sub(1).map_or(0, |before| at_once[before].0);
    if end == done {
        return;
    }
    let mut rest = decode(decoder, &data[end..]);
    rest.iter_mut().for_each(|(rest_end, _)| *rest_end += end);
    assert!(rest == at_once[at + 1..], "continued from {end}");
    let skipped = skip(decoder, &data[done..], dice.one_of([5, 61, 1 << 20]));
    if format.is_grouped() {
        // The skipper may count the lines around a group as part of it.
        let ends = |&(known, _): &(usize, u64)| known == done + skipped;
        assert!(done + skipped == data.len() || at_once.iter().any(ends));
    } else if matches!(format, Format::Warc | Format::Wat)
        && (end - done) as u64 <= limits.line_bytes
    {
        assert!((1..=end - done).contains(&skipped), "skipped from {done}");
    } else {
        assert_eq!(skipped, end - done, "skipped from {done}");
    }
}

/// Returns where a skipper finds the end of the record at the start of `data`.
fn skip(decoder: &dyn Decoder, data: &[u8], piece: usize) -> usize {
    let mut skipper = decoder.skipper();
    let (mut start, mut read) = (0, 0);
    loop {
        read = (read + piece).min(data.len());
        match skipper(&data[start..read], read == data.len()) {
            Skipped::Ended(n) => return start + n,
            Skipped::Inside(n) => {
                assert!(read < data.len(), "at the end, a record ends");
                start += n;
            }
        }
    }
}

/// Rules that drop something from most inputs.
const INPUT_RULES: [fn() -> InputRules; 3] = [
    InputRules::default,
    || InputRules {
        drop_params: "a*,b,session".parse().expect("names"),
        ..InputRules::default()
    },
    || InputRules {
        scope: "!url:*b*".parse().expect("a rule"),
        ..InputRules::default()
    },
];

/// Checks that batches keep to the limits and do not depend on where chunks were cut.
fn batches(decoder: &dyn Decoder, data: &[u8], whole: usize, message: &Said, dice: &mut Dice) {
    let rules = Rules {
        limits: Limits {
            line_bytes: dice.one_of([200, 1 << 20]),
            url_bytes: dice.one_of([30, 8192]),
            links: dice.one_of([3, 1000]),
            ..Limits::default()
        },
        self_links: dice.one_of([SelfLinks::Drop, SelfLinks::Keep]),
        key: HashKey([1, 2]),
        input: dice.one_of(INPUT_RULES)(),
        follow: dice
            .one_of(["", "external=2", "url:*a*=3,nofollow=0"])
            .parse()
            .unwrap_or_default(),
    };
    let mut builder = Builder::new(rules.clone(), decoder.names());
    let mut told = |chunk: &[u8]| {
        let mut told = Vec::new();
        builder.run(decoder, chunk, |batch, last| {
            check_batch(&batch, &rules, decoder.names(), &mut told);
            (!last).then_some(batch)
        });
        told
    };
    let at_once = told(data);
    assert_eq!(at_once.len(), message.len(), "an entry for each record");
    for (entry, message) in at_once.iter().zip(message) {
        assert_eq!(entry.0, message.0 as u64);
    }
    let mut parts = told(&data[..whole]);
    let rest = told(&data[whole..]);
    parts.extend(rest.iter().map(|(end, what)| (whole as u64 + end, *what)));
    assert!(parts == at_once, "batches cut at {whole}");
}

/// Checks a batch, and appends for each entry the offset where it ended and a hash of its content.
fn check_batch(batch: &Batch, rules: &Rules, names: Names, told: &mut Vec<(u64, u64)>) {
    let count = batch.fingerprints.len();
    let fingerprints = rules.key.fingerprints();
    for name in 0..count {
        let text = batch.name(name as u32);
        assert!(!text.is_empty() && text.len() as u64 <= rules.limits.url_bytes);
        assert_eq!(batch.fingerprints[name], fingerprints.of(text));
        if names == Names::Url {
            let form = url::canonical(text, None, usize::MAX, &mut Vec::new());
            assert_eq!(
                form,
                Ok(url::CanonicalForm::AsIs),
                "{}",
                text.escape_ascii()
            );
        }
    }
    let mut prints = batch.fingerprints.clone();
    prints.sort_unstable();
    assert!(
        prints.windows(2).all(|pair| pair[0] < pair[1]),
        "a name twice"
    );
    let has_kind = |entry: &BatchEntry| entry.kind.is_some() == (entry.what == What::Other);
    assert!(batch.entries.iter().all(has_kind));
    let (mut names_end, mut links_end) = (0, 0);
    for entry in &batch.entries {
        assert!((names_end..=count as u32).contains(&entry.names_end));
        assert_eq!(entry.links_start, links_end);
        (names_end, links_end) = (entry.names_end, entry.links_end);
        told.push((entry.end, check_entry(batch, entry, rules)));
    }
    assert_eq!(
        (names_end as usize, links_end as usize),
        (count, batch.links.len())
    );
}

fn check_entry(batch: &Batch, entry: &BatchEntry, rules: &Rules) -> u64 {
    let mut hash = Xxh3::new();
    let targets = batch.targets(entry);
    hash.update(format!("{:?}{:?}", entry.what, entry.fetched_at).as_bytes());
    if !entry.what.is_of_page() {
        assert!(targets.is_empty());
        return hash.digest();
    }
    assert!(entry.source < entry.names_end);
    hash.update(batch.name(entry.source));
    let counts = &entry.counts;
    let lost = counts.scheme
        + counts.invalid
        + counts.too_long
        + counts.own
        + counts.repeated
        + counts.out_of_scope;
    assert_eq!(
        counts.read,
        targets.len() as u32 + lost,
        "each link is counted once"
    );
    assert!(u64::from(counts.read) <= rules.limits.links);
    hash.update(&lost.to_le_bytes());
    for (at, &target) in targets.iter().enumerate() {
        assert!(target < entry.names_end && !targets[..at].contains(&target));
        assert!(target != entry.source || rules.self_links == SelfLinks::Keep);
        hash.update(batch.name(target));
        hash.update(b"\n");
    }
    hash.digest()
}

/// Checks format detection: once the first bytes are decisive, more bytes change nothing.
pub fn guess(data: &[u8]) {
    let first = &data[..Dice::of(data).below(data.len() + 1)];
    let all = guessed(data).map_err(|error| error.to_string());
    if is_decided(first) {
        let then = guessed(first).map_err(|error| error.to_string());
        assert_eq!(then, all);
    }
    let message = match &all {
        Ok((_, why)) => why,
        Err(error) => error,
    };
    assert!(
        message.len() < 400 && !message.contains('\n'),
        "{message:?}"
    );
}

/// Checks time parsing against `jiff` as the reference for RFC 3339.
pub fn time(data: &[u8]) {
    let mut bytes = Bytes(data);
    let bits = bytes.u64();
    let range = times::EARLIEST..=times::LATEST;
    if let Some(time) = times::from_fraction(f64::from_bits(bits)) {
        assert!(range.contains(&time));
        let rest = f64::from_bits(bits) - time as f64;
        assert!((0.0..=1.0).contains(&rest), "rounded down"); // -1e-300 + 1 is 1.
    }
    assert_eq!(
        times::from_seconds(bits as i64).is_some(),
        range.contains(&(bits as i64))
    );
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for time in [times::from_digits(text), times::from_java(text)] {
        assert!(time.is_none_or(|time| range.contains(&time)));
    }
    let archive = times::from_archive(text);
    assert!(archive.is_none_or(|time| range.contains(&time)));
    if let Some(time) = times::from_text(text) {
        assert_eq!(archive, Some(time));
        if let Ok(judged) = text.parse::<jiff::Timestamp>() {
            // For times before 1970 with a fraction, this code rounds whole seconds down.
            assert_eq!(
                judged.as_second() - i64::from(judged.subsec_nanosecond() < 0),
                time
            );
        }
    }
}
