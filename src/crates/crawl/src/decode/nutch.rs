//! Text written by Nutch's `readseg -dump`: several lines per URL, in sections. Specified in `formats/nutch.md`.
//!
//! A record begins where a line `URL:: U` follows a line `Recno:: N`. Nothing else separates records.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Lines;

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    Bad, Decoder, FormatSpec, Link, Names, ReadResult, Reason, Record, RecordTime, Sink, Skipped,
    Skipper, parsed, put_time, shown, skips_links, time, utf8,
};
use crate::model::{Digest, is_redirect, keep};
use crate::rules::Shard;

pub const FORMAT: FormatSpec = FormatSpec {
    name: "nutch",
    about: "the text of Nutch's `readseg -dump`",
    by: |rules, _| std::sync::Arc::new(Nutch { shard: rules.shard }),
};

pub struct Nutch {
    shard: Option<Shard>,
}

const RECNO: &[u8] = b"Recno:: ";
const URL: &[u8] = b"URL:: ";
/// Maximum number of digits of a record number.
const DIGITS_MAX: usize = 20;
/// Byte order mark, which may precede any record: files get concatenated.
const MARK: &[u8] = b"\xEF\xBB\xBF";
const START_MAX: usize = 1 + MARK.len() + RECNO.len() + DIGITS_MAX + 2 + URL.len();

pub fn starts(buf: &[u8]) -> bool {
    let buf = buf.strip_prefix(MARK).unwrap_or(buf);
    let Some(rest) = buf.strip_prefix(RECNO) else {
        return false;
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &rest[digits..];
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    (1..=DIGITS_MAX).contains(&digits)
        && rest
            .strip_prefix(b"\n")
            .is_some_and(|rest| rest.starts_with(URL))
}

/// Yields the offsets after 0 at which records start, in order.
fn next_starts(buf: &[u8]) -> impl Iterator<Item = usize> {
    memmem::find_iter(buf, RECNO).filter_map(|recno| start_at(buf, recno))
}

/// Returns the offset of the record that starts with this `Recno::`; `None` if none does, or if the offset is 0.
fn start_at(buf: &[u8], recno: usize) -> Option<usize> {
    let before = &buf[..recno];
    let before = before.strip_suffix(MARK).unwrap_or(before);
    let start = before.len();
    (before.ends_with(b"\n") && starts(&buf[start..])).then_some(start)
}

impl Decoder for Nutch {
    /// Stops before the last record, which may continue.
    fn whole(&self, buf: &[u8]) -> usize {
        let mut found = memmem::rfind_iter(buf, RECNO);
        found.find_map(|recno| start_at(buf, recno)).unwrap_or(0)
    }

    fn skipper(&self) -> Skipper {
        Box::new(|buf, at_end| match next_starts(buf).next() {
            Some(start) => Skipped::Ended(start),
            None if at_end => Skipped::Ended(buf.len()),
            None => Skipped::Inside(buf.len().saturating_sub(START_MAX)),
        })
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut record = Record::default();
        let mut start = 0;
        let mut ends = next_starts(chunk).chain([chunk.len()]);
        while start < chunk.len() {
            let end = ends.next().unwrap_or(chunk.len());
            let read = self.read(&chunk[start..end], &mut record);
            if !sink(end, parsed(read, &record)) {
                return;
            }
            start = end;
        }
    }
}

impl Nutch {
    fn read<'a>(&self, text: &'a [u8], record: &mut Record<'a>) -> ReadResult {
        if text.trim_ascii().is_empty() {
            return Ok(Some("blank line"));
        }
        if !starts(text) {
            return Err(Bad::malformed("no `Recno:: N` and `URL:: U` at the start"));
        }
        let text = utf8(text).map_err(Bad::utf8)?;
        // The last line may end with a CR alone, where the input was cut.
        let text = text.strip_suffix('\r').unwrap_or(text);
        let mut lines = text.lines().peekable();
        let url = lines.nth(1).and_then(|line| line.strip_prefix("URL:: "));
        record.clear();
        record.url = match url.map(str::trim_end) {
            Some("") | None => return Err(Bad::new(Reason::BadUrl, "`URL::` is empty")),
            Some(url) => Cow::Borrowed(url.as_bytes()),
        };
        if skips_links(self.shard, &record.url, Names::Url) {
            return Ok(None);
        }
        let (mut fetch, mut parse) = (None, None);
        while let Some(line) = lines.next() {
            match line {
                "CrawlDatum::" if fetch.is_none() => fetch = read_datum(&mut lines)?,
                "ParseData::" if parse.is_none() => parse = read_parse(&mut lines, record)?,
                _ => {}
            }
        }
        match fetch {
            None if parse.is_none() => return Ok(Some("not fetched")),
            None => {}
            Some((at, status, redirect)) => {
                put_time(record, at);
                record.status = Some(status);
                if is_redirect(status) {
                    record.redirect = redirect.map(|url| Cow::Borrowed(url.as_bytes()));
                }
            }
        }
        // A page that could not be parsed, or whose parse was not dumped, may have links.
        let there = record.status.is_none_or(|status| status == 200);
        record.revisit = there && parse != Some(true);
        Ok(None)
    }
}

type DumpLines<'a> = Peekable<Lines<'a>>;

/// Takes the next line if it begins with `front`.
fn after<'a>(lines: &mut DumpLines<'a>, front: &str) -> Option<&'a str> {
    let line = lines.next_if(|line| line.starts_with(front))?;
    line.strip_prefix(front)
}

/// Takes the lines of a section's beginning, up to its status; `None` if they are text of a page.
fn section_status<'a>(lines: &mut DumpLines<'a>) -> Option<&'a str> {
    after(lines, "Version: ")?;
    after(lines, "Status: ")
}

/// Time of a fetch, its status, and the target of a redirect.
type CrawlDatum<'a> = (RecordTime, i32, Option<&'a str>);

/// Reads the lines of a `CrawlDatum`; `None` if it is not a fetch, but a planned one, or a link to the page.
fn read_datum<'a>(lines: &mut DumpLines<'a>) -> Result<Option<CrawlDatum<'a>>, Bad> {
    let status = section_status(lines).and_then(|status| status.split_once('('));
    let Some(mut status) = status.and_then(|(_, name)| fetch_status(name.trim_end_matches(')')))
    else {
        return Ok(None);
    };
    let text = after(lines, "Fetch time: ");
    let text = text.ok_or_else(|| Bad::malformed("no `Fetch time:` after a fetch's status"))?;
    let at = time::from_java(text).map(Some);
    let at = at.ok_or_else(|| bad_time(text));
    let mut redirect = None;
    // The section ends with a blank line, or at the name of the next; lines of its metadata are indented.
    let is_inside =
        |line: &&str| line.starts_with(['\t', ' ']) || !(line.is_empty() || line.ends_with("::"));
    while let Some(line) = lines.next_if(is_inside) {
        if let Some((exact, target)) = protocol_status(line) {
            (status, redirect) = (exact.unwrap_or(status), target);
        }
    }
    Ok(Some((at, status, redirect)))
}

fn fetch_status(name: &str) -> Option<i32> {
    Some(match name {
        "fetch_success" => 200,
        "fetch_redir_perm" => 301,
        "fetch_redir_temp" => 302,
        "fetch_notmodified" => 304,
        "fetch_gone" => 410,
        "fetch_retry" => -1,
        _ => return None,
    })
}

/// Parses `_pst_=moved(12), lastModified=0: URL`, or `Metadata: _pst_: moved(12), ...` of old versions.
fn protocol_status(line: &str) -> Option<(Option<i32>, Option<&str>)> {
    let (_, message) = line
        .split_once("_pst_=")
        .or_else(|| line.split_once("_pst_: "))?;
    let (name, message) = message.split_once('(')?;
    let status = match name {
        "gone" => Some(410),
        "notfound" => Some(404),
        "access_denied" => Some(403),
        // No request was sent.
        "robots_denied" => Some(-18),
        _ => None,
    };
    let moved = matches!(name, "moved" | "temp_moved");
    let target = message
        .split_once(", lastModified=")
        .and_then(|(_, message)| message.split_once(": "));
    let target = target
        .map(|(_, url)| url.trim_end())
        .filter(|url| moved && !url.is_empty());
    Some((status, target))
}

fn bad_time(text: &str) -> String {
    let shown = shown(text.as_bytes());
    let names = time::ZONES.map(|(name, _)| name).join(", ");
    format!("{shown:?} is not a time in a known zone (GMT+hh:mm, {names}); dump it with TZ=UTC")
}

/// Returns the page's digest from the metadata after the links, all on one line in versions up to 1.16.
fn content_digest(lines: &mut DumpLines<'_>) -> Digest {
    const KEY: &str = "nutch.content.digest";
    let value = |text: &str| match text.split_ascii_whitespace().next() {
        Some(digest) => Digest::of_content(xxh3_64(digest.as_bytes())),
        None => Digest::NONE,
    };
    let Some(first) = after(lines, "Content Metadata:") else {
        return Digest::NONE;
    };
    let mut old = first.split(' ').filter_map(|word| word.strip_prefix(KEY));
    if let Some(digest) = old.find_map(|rest| rest.strip_prefix('=')) {
        return value(digest);
    }
    while let Some(line) = after(lines, "  ") {
        let rest = line.strip_prefix(KEY);
        if let Some(digest) = rest.and_then(|rest| rest.strip_prefix(" = ")) {
            return value(digest);
        }
    }
    Digest::NONE
}

/// Returns the target of a page's refresh: `success(1,100), args[0]=URL, args[1]=SECONDS`.
fn refresh_target(status: &str) -> Option<&str> {
    let url = status.strip_prefix("success(1,100), args[0]=")?;
    let url = url.rsplit_once(", args[1]=").map_or(url, |(url, _)| url);
    Some(url.trim()).filter(|url| !url.is_empty())
}

/// Returns whether the page was parsed; `None` if the lines are text of a page, not a `ParseData`.
fn read_parse<'a>(lines: &mut DumpLines<'a>, record: &mut Record<'a>) -> Result<Option<bool>, Bad> {
    let Some(status) = section_status(lines) else {
        return Ok(None);
    };
    // Titles and anchors may hold line feeds.
    let count = lines
        .by_ref()
        .find_map(|line| line.strip_prefix("Outlinks: "));
    let count = count.and_then(|count| count.parse::<usize>().ok());
    let count =
        count.ok_or_else(|| Bad::malformed("no `Outlinks:` with a number in `ParseData::`"))?;
    let refresh = refresh_target(status).map(|url| Cow::Borrowed(url.as_bytes()));
    record.links.extend(refresh.map(Link::to));
    let mut found = 0;
    while found < count {
        let Some(line) = lines
            .next()
            .filter(|line| !line.starts_with("Content Metadata:"))
        else {
            let message = format!("{found} outlinks, {count} were announced");
            return Err(Bad::malformed(message));
        };
        if let Some(url) = line.strip_prefix("  outlink: toUrl: ") {
            // Splits at the first separator: Nutch's URLs hold no blanks, anchors may hold anything.
            let (url, _) = url.split_once(" anchor: ").unwrap_or((url, ""));
            keep(&mut record.links, Cow::Borrowed(url.as_bytes()));
            found += 1;
        }
    }
    record.digest = content_digest(lines);
    Ok(Some(status.starts_with("success(")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Parsed;

    /// Returns the digest of a record whose content has this metadata.
    fn digest(metadata: &str) -> Digest {
        let text = format!(
            "Recno:: 0\nURL:: http://a.example/\n\nParseData::\nVersion: 5\nStatus: success(1,0)\nTitle: \n\
             Outlinks: 1\n  outlink: toUrl: http://b.example/ anchor: \n{metadata}"
        );
        let mut found = None;
        Nutch { shard: None }.decode(text.as_bytes(), &mut |_, parsed| {
            let Parsed::Record(record) = parsed else {
                panic!("{parsed:?}");
            };
            assert_eq!(record.links.len(), 1);
            found = Some(record.digest);
            true
        });
        found.unwrap()
    }

    #[test]
    fn digests_of_both_layouts_are_read() {
        let of = Digest::of_content(xxh3_64(b"d29ee470e34a742fcd18b9b0431b528b"));
        let new = "Content Metadata:\n  Content-Type = text/html\n  nutch.content.digest = d29ee470e34a742fcd18b9b0431b528b\n";
        let old = "Content Metadata: Server=Apache 2 nutch.content.digest=d29ee470e34a742fcd18b9b0431b528b Date=x\n";
        for metadata in [new, old] {
            assert_eq!(digest(metadata), of, "{metadata}");
            assert_eq!(digest(&metadata.replace('\n', "\r\n")), of, "{metadata}");
        }
        for metadata in [
            "",
            "Content Metadata:\n  nutch.content.digest = \n",
            "Content Metadata: nutch.content.digest=\n",
            "Content Metadata: xnutch.content.digest=00\n",
            "Content Metadata:\n  nutch.content.digests = 00\n",
            // In the metadata of the parse, or in a page's text.
            "Content Metadata:\nParse Metadata:\n  nutch.content.digest = 00\n",
            "\nParseText::\n  nutch.content.digest = 00\n",
        ] {
            assert_eq!(digest(metadata), Digest::NONE, "{metadata}");
        }
    }

    /// Names of sections end in `::`, too.
    #[test]
    fn a_fetch_does_not_end_at_metadata_that_ends_in_colons() {
        let lines = "Version: 7\nStatus: 35 (fetch_redir_perm)\nFetch time: Sat Nov 28 10:00:00 UTC 2026\nMetadata: \n \
                     \t_repr_=http://a.example/x::\n \t_pst_=moved(12), lastModified=0: http://b.example/std::\n\
                     Content::\n \t_pst_=success(1), lastModified=0\n";
        let datum = read_datum(&mut lines.lines().peekable());
        let (_, status, redirect) = datum.ok().flatten().unwrap();
        assert_eq!((status, redirect), (301, Some("http://b.example/std::")));
    }

    /// An input that is cut between CR and LF ends as one without a line end does.
    #[test]
    fn a_carriage_return_at_the_end_is_no_part_of_the_line() {
        let text = "Recno:: 0\r\nURL:: http://a.example/\r\n\r\nParseData::\r\nVersion: 5\r\n\
                    Status: success(1,0)\r\nTitle: \r\nOutlinks: 0\r\n";
        for end in ["\r\n", "\r", ""] {
            let text = text.trim_ascii_end().to_owned() + end;
            let mut records = 0;
            Nutch { shard: None }.decode(text.as_bytes(), &mut |_, parsed| {
                assert!(matches!(parsed, Parsed::Record(_)), "{end:?}: {parsed:?}");
                records += 1;
                true
            });
            assert_eq!(records, 1, "{end:?}");
        }
    }
}
