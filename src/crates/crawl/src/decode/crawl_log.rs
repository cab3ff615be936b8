//! Heritrix `crawl.log`: one fetch per line, with the page where the URL was found. See `formats/crawl-log.md`.
//!
//! A line states two facts: its URL was fetched (its links are unknown), and the page on which the URL was found links
//! to it. The links are grouped by that page: see [`groups`](super::groups).

use std::borrow::Cow;

use super::groups::{Edge, GroupFormat, GroupLine, Groups};
use super::warc::is_web;
use super::{Bad, FormatSpec, Names, Record, RecordTime, parted, shown, time, utf8};

pub const CAVEAT: &str = "a crawl log names one page for each URL, that on which it was found: this ranks the tree of \
     discovery, not the links, which are in the crawl's WARC files. Sort it by its sixth field first (sort \
     -s -k6,6)";

pub const FORMAT: FormatSpec = FormatSpec {
    name: "crawl-log",
    about: "Heritrix `crawl.log`: the tree of discovery only",
    by: |rules, _| std::sync::Arc::new(Groups::<CrawlLog>::by(rules, Names::Url)),
};

pub struct CrawlLog;

/// Last letter of the path of a submitted form: a submission is not a fetch of the form's page.
const SUBMIT: char = 'S';
/// Number of fields in the oldest layout; newer ones add a source tag.
const FIELDS_MIN: usize = 11;

impl GroupFormat for CrawlLog {
    const TELLS: bool = true;

    fn read(line: &[u8]) -> Result<GroupLine<'_>, Bad> {
        Ok(match LogEntry::of(line)? {
            Ok(entry) if entry.hop == Some(SUBMIT) => GroupLine::Other("answer to POST"),
            Ok(entry) => entry.edge().map_or(GroupLine::Fetch, GroupLine::Edge),
            Err(kind) => GroupLine::Other(kind),
        })
    }

    fn fetch(line: &[u8]) -> Option<Record<'_>> {
        let entry = LogEntry::of(line).ok()?.ok()?;
        Some(Record {
            url: Cow::Borrowed(entry.url.as_bytes()),
            fetched_at: entry.fetched_at,
            bad_time: entry.bad_time,
            status: entry.status,
            // Links of a page that was there are unknown; links of other responses do not matter.
            revisit: matches!(entry.status, None | Some(200..=399)),
            ..Record::default()
        })
    }
}

pub fn is_entry(line: &[u8]) -> bool {
    LogEntry::of(line).is_ok_and(|entry| {
        let first = std::str::from_utf8(line).unwrap_or_default();
        let mut fields = first.split_ascii_whitespace();
        entry.is_ok() || fields.next().is_some_and(|time| log_time(time).is_ok())
    })
}

struct LogEntry<'a> {
    fetched_at: Option<super::Time>,
    bad_time: Option<String>,
    status: Option<i32>,
    url: &'a str,
    /// Last letter of the discovery path: how the URL was found.
    hop: Option<char>,
    via: &'a str,
}

impl<'a> LogEntry<'a> {
    /// Parses a line. `Err` inside says what it is if it is blank, or its fetch is not of a web page.
    fn of(line: &'a [u8]) -> Result<Result<LogEntry<'a>, &'static str>, Bad> {
        let text = utf8(line).map_err(Bad::utf8)?;
        let mut fields = [""; FIELDS_MIN];
        let mut count = 0;
        for field in text.split_ascii_whitespace().take(FIELDS_MIN) {
            fields[count] = field;
            count += 1;
        }
        if count == 0 {
            return Ok(Err("blank line"));
        }
        let [logged, status, _, url, path, via, _, _, began, ..] = fields;
        // Other lines, a stack trace for example, do not begin with a time.
        if !is_like_a_time(logged) {
            return Err(Bad::malformed("no time at the line's start"));
        }
        if count < FIELDS_MIN {
            let message = format!("{count} fields, expected {FIELDS_MIN} at least");
            return Err(Bad::malformed(message));
        }
        let status = match status {
            "-" => None,
            digits => Some(digits.parse().map_err(|_| {
                Bad::malformed(format!("{:?} is not a status", shown(digits.as_bytes())))
            })?),
        };
        if !is_web(url.as_bytes()) {
            let is_name = url.starts_with("dns:");
            return Ok(Err(if is_name {
                "dns look-up"
            } else {
                "no web page"
            }));
        }
        let (began, wrong) = parted(began_at(began));
        let (logged, wrong_too) = match began {
            Some(_) => (None, None),
            None => parted(log_time(logged)),
        };
        Ok(Ok(LogEntry {
            fetched_at: began.or(logged),
            bad_time: wrong.or(wrong_too),
            status,
            url,
            hop: path.chars().next_back(),
            via,
        }))
    }

    fn edge(&self) -> Option<Edge<'a>> {
        let is_link = matches!(self.hop, Some('L' | 'R')) && is_web(self.via.as_bytes());
        is_link.then_some(Edge {
            key: self.via.as_bytes(),
            from: Cow::Borrowed(self.via.as_bytes()),
            weight: 1,
            to: Cow::Borrowed(self.url.as_bytes()),
            time: Ok(None),
        })
    }
}

fn is_like_a_time(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_part = |byte: u8| byte.is_ascii_digit() || b"-:.,+TtZz".contains(&byte);
    digits >= 8
        && text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(is_part)
}

fn log_time(text: &str) -> RecordTime {
    time::read_archive(text.as_bytes(), "a time, like 2015-05-22T15:01:09.465Z")
}

/// Parses the start time of `20150522150108890+70` (start, `+`, duration in ms). `-`: nothing was fetched.
fn began_at(text: &str) -> RecordTime {
    if text == "-" {
        return Ok(None);
    }
    let (began, _) = text.split_once('+').unwrap_or((text, ""));
    time::from_digits(began).map(Some).ok_or_else(|| {
        let shown = shown(text.as_bytes());
        format!("{shown:?} is not the time of a fetch, like 20150522150108890+70")
    })
}
