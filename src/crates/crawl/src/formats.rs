//! Formats by name, and format detection from an input's first bytes.

mod foreign;

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use memchr::memrchr;
use serde::de::IgnoredAny;

use crate::decode::csv_links::CsvLinks;
use crate::decode::groups::{lines_of, whole_number};
use crate::decode::{
    Decoder, FormatSpec, Names, adjacency, arc, crawl_log, csv_links, edges, frame, lines, nutch,
    records, warc, wat,
};
use crate::model::{Error, Limits, Result, registry};
use crate::rules::InputRules;
use crate::source::PARQUET;
use crate::url;

/// Checks that a file may be a list (for example of URLs). The error describes the file.
#[doc(hidden)]
pub fn check_list(head: &[u8]) -> Result<()> {
    let found = if head.starts_with(PARQUET) {
        Some("it is a Parquet file".to_owned())
    } else {
        foreign::binary(head)
            .or_else(|| foreign::text(head))
            .or_else(|| zeros(head))
            .or_else(|| records_of(head))
    };
    found.map_or(Ok(()), |what| {
        Err(Error::Unsupported(format!(
            "no list: {what}; a list is text, with a URL on each line"
        )))
    })
}

fn zeros(head: &[u8]) -> Option<String> {
    let at = memchr::memchr(0, head)?;
    Some(if head.iter().all(|byte| *byte == 0) {
        "it begins with zeros only, as a crash may leave a file".to_owned()
    } else {
        format!("it has a NUL at byte {at}, so it is no text")
    })
}

fn records_of(head: &[u8]) -> Option<String> {
    use Format::{Arc, NodeRecords, Nutch, Records, Warc, Wat};
    let start = lines::trim(head).trim_ascii_start();
    // A line of a list may begin with a bracket, too, but only in JSON a quote or another bracket follows.
    if let [b'{' | b'[', rest @ ..] = start
        && !matches!(rest.trim_ascii_start(), [b'"' | b'{', ..])
    {
        return None;
    }
    match guess(head) {
        Ok((Records | NodeRecords | Warc | Wat | Arc | Nutch, why)) => Some(why),
        _ => other_layout(start),
    }
}

const WARC: &[u8] = b"WARC/";
const ARC: &[u8] = b"filedesc://";

registry! {
    /// Format of crawl records; each has its specification in `formats/`.
    Format of FormatSpec, called "format";
    /// JSON lines, one object per crawl record.
    Records is records::FORMAT;
    /// JSON lines of a graph, one object per node.
    NodeRecords is records::OF_NODES;
    /// WARC files of crawlers.
    Warc is warc::FORMAT;
    /// ARC files, the predecessor of WARC.
    Arc is arc::FORMAT;
    /// Common Crawl WAT: metadata of pages, with their links.
    Wat is wat::FORMAT;
    /// Adjacency list with opaque names: `node TAB successor TAB ...`.
    Adjacency is adjacency::FORMAT;
    /// Edge list with opaque names: `from TAB to`, grouped by source.
    Edges is edges::FORMAT;
    /// Adjacency list of URLs: `node TAB successor TAB ...`.
    UrlAdjacency is adjacency::OF_URLS;
    /// Edge list of URLs: `from TAB to`, grouped by source.
    UrlEdges is edges::OF_URLS;
    /// Heritrix `crawl.log`: the tree of discovery only.
    CrawlLog is crawl_log::FORMAT;
    /// Text written by Nutch's `readseg -dump`.
    Nutch is nutch::FORMAT;
    /// Link table: `date,src,dest,anchor` as CSV, grouped by date and source.
    CsvLinks is csv_links::FORMAT;
}

impl Format {
    pub fn decoder_by(self, rules: &InputRules, limits: &Limits) -> Arc<dyn Decoder> {
        (self.spec().by)(rules, limits)
    }

    pub fn decoder(self) -> &'static dyn Decoder {
        static USUAL: LazyLock<[Arc<dyn Decoder>; Format::ALL.len()]> = LazyLock::new(|| {
            Format::ALL.map(|format| format.decoder_by(&InputRules::default(), &Limits::default()))
        });
        &*USUAL[self as usize]
    }

    /// Returns whether a record is a run of lines with one link each.
    pub fn is_grouped(self) -> bool {
        use Format::{CrawlLog, CsvLinks, Edges, UrlEdges};
        matches!(self, CrawlLog | CsvLinks | Edges | UrlEdges)
    }

    /// Returns whether only a line end shows that the last line is complete.
    pub fn ends_lines(self) -> bool {
        use Format::{Adjacency, CrawlLog, CsvLinks, Edges, Nutch, UrlAdjacency, UrlEdges};
        matches!(
            self,
            Adjacency | CrawlLog | CsvLinks | Edges | Nutch | UrlAdjacency | UrlEdges
        )
    }

    /// Returns a one-line warning for a graph whose names are compared byte for byte, in case they look like URLs.
    pub fn with_urls(self) -> Option<&'static str> {
        const EDGES: &str = "its names look like URLs, and are compared byte for byte: http://A.example and \
                             http://a.example/ are two pages. To read them as URLs: `format` url-edges";
        const ADJACENCY: &str = "its names look like URLs, and are compared byte for byte: http://A.example and \
                                 http://a.example/ are two pages. To read them as URLs: `format` url-adjacency";
        match self {
            Format::Edges => Some(EDGES),
            Format::Adjacency => Some(ADJACENCY),
            _ => None,
        }
    }

    pub fn is_json(self) -> bool {
        matches!(self, Format::Records | Format::NodeRecords)
    }

    /// Returns a one-line caveat about every ranking made from the format.
    pub fn caveat(self) -> Option<&'static str> {
        (self == Format::CrawlLog).then_some(crawl_log::CAVEAT)
    }
}

/// Guesses the format from the first bytes of the decompressed input (64 KiB suffice). Returns the format and, for
/// messages, the evidence. Fails with [`Error::Unsupported`] if the bytes match no format, or more than one.
pub fn guess(head: &[u8]) -> Result<(Format, String)> {
    let start = lines::trim(head).trim_ascii_start();
    let refused = foreign::binary(head)
        .or_else(|| foreign::text(start))
        .or_else(|| other_layout(start));
    let is = |format, why: &str| Ok((format, why.to_owned()));
    let none = |why: &str| Err(why.to_owned());
    let guessed = match start {
        _ if head.starts_with(PARQUET) => none(
            "it is a Parquet file, which is read from its end: name it as a file, not compressed and not through a pipe",
        ),
        _ if refused.is_some() => Err(refused.unwrap_or_default()),
        [b'{', ..] if records::is_of_node(start) => is(
            Format::NodeRecords,
            "it begins with a JSON object of a `node`",
        ),
        [b'{', ..] => is(Format::Records, "it begins with a JSON object"),
        [] => none("it is empty or blank"),
        [b'[', rest @ ..] => match rest.trim_ascii_start() {
            object if records::is_of_node(object) => is(
                Format::NodeRecords,
                "it begins with a JSON array of an object of a `node`",
            ),
            [] | [b'{' | b']', ..] => is(Format::Records, "it begins with a JSON array"),
            _ => none("it is a JSON array of something other than objects"),
        },
        _ if start.starts_with(WARC) => guess_by_record(start)
            .unwrap_or_else(|| is(Format::Warc, "it begins as a WARC file does")),
        _ if start.starts_with(ARC) => is(Format::Arc, "it begins as an ARC file does"),
        _ if is_index(start) => none(
            "it is an index of archives (CDX), which has no links: read the archives themselves; `cashrank convert` sorts \
             their records by time",
        ),
        _ if nutch::starts(start) => is(Format::Nutch, "it begins with `Recno::`"),
        _ => match (guess_lines(head), no_text(head)) {
            (Some(found), _) => Ok(found),
            (None, Some(message)) => Err(message),
            (None, None) => guess_graph(head),
        },
    };
    guessed.map_err(|message| {
        Error::Unsupported(format!(
            "no known format: {message}; if it is one of {} after all, name it with `format`",
            Format::ALL.map(Format::name).join(", ")
        ))
    })
}

/// Checks that an input that begins with `head` may be of `format`: a graph as text must not have a control byte in its
/// first line or a NUL anywhere, nor begin like another format, as each line would become a page's name.
pub fn check_text(format: Format, head: &[u8]) -> Result<()> {
    use Format::{Adjacency, Arc, Edges, NodeRecords, Nutch};
    use Format::{Records, UrlAdjacency, UrlEdges, Warc, Wat};
    if head.starts_with(PARQUET) || foreign::binary(head).is_some() {
        return guess(head).map(drop);
    }
    let start = lines::trim(head).trim_ascii_start();
    let is_graph = matches!(format, Adjacency | Edges | UrlAdjacency | UrlEdges);
    if (is_graph || format.is_json())
        && let Some(what) = other_layout(start)
    {
        return Err(Error::Unsupported(what));
    }
    if !is_graph {
        return Ok(());
    }
    if let Some(at) = lines::control(first_line(head)).or_else(|| memchr::memchr(0, head)) {
        return Err(Error::Unsupported(format!(
            "line {}, byte {at} of the input, is a control byte (0x{:02x}): this is not text, so not a graph in the \
             format {}; `cashrank inspect` shows what it may be",
            1 + memchr::memchr_iter(b'\n', &head[..at]).count(),
            head[at],
            format.name()
        )));
    }
    match guess(head) {
        Ok((found @ (Records | NodeRecords | Warc | Wat | Arc | Nutch), why)) => {
            Err(Error::Unsupported(format!(
                "{why}: this is not a graph in the format {}; leave `format` out, or use `format` {}",
                format.name(),
                found.name()
            )))
        }
        _ => Ok(()),
    }
}

fn first_line(text: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', text).map_or(text, |lf| &text[..lf])
}

/// Returns whether the first bytes alone determine the result of [`guess`]: more bytes change nothing.
pub fn is_decided(head: &[u8]) -> bool {
    let start = lines::trim(head).trim_ascii_start();
    // UTF-16 and UTF-32 show in eight bytes.
    let is_text = head.len() >= 8 || !head.contains(&0);
    let json = start.first() == Some(&b'{') && is_text && layout(start).1;
    json || start.starts_with(ARC) || (start.starts_with(WARC) && guess_by_record(start).is_some())
}

/// Describes JSON that is not one object a line, with advice; `None` for other text.
fn other_layout(start: &[u8]) -> Option<String> {
    let why = match start {
        [b'{', ..] => layout(start).0,
        [b'[', rest @ ..] => {
            let object = rest.trim_ascii_start();
            let of_lines = first_line(rest).trim_ascii().is_empty() && layout(object).0.is_none();
            (object.starts_with(b"{") && !of_lines).then_some("it begins with a JSON array")
        }
        _ => None,
    }?;
    Some(format!(
        "{why}, and records are read one object a line; make lines of it with `jq -c .` (of an array: `jq -c '.[]'`)"
    ))
}

/// Returns what shows that a text is not one object a line, and whether more bytes cannot change the answer.
fn layout(start: &[u8]) -> (Option<&'static str>, bool) {
    let line = first_line(start);
    let mut objects = serde_json::Deserializer::from_slice(line).into_iter::<IgnoredAny>();
    match objects.next() {
        Some(Ok(_)) => {
            let rest = line[objects.byte_offset()..].trim_ascii();
            let has_others = matches!(rest, [b'{', ..] | [b',', _, ..]);
            let why = "it begins with a JSON object that others follow on its line";
            let is_whole = line.len() < start.len();
            (has_others.then_some(why), has_others || is_whole)
        }
        Some(Err(error)) if error.is_eof() => {
            // A record that was cut short is the only one before which another begins.
            let next = start[line.len()..].trim_ascii_start().first();
            let is_inside = next.is_some_and(|byte| *byte != b'{');
            let why = "it begins with a JSON object over several lines";
            (is_inside.then_some(why), next.is_some())
        }
        _ => (None, true),
    }
}

/// Returns whether the first line is that of a CDX or CDXJ: a key, a time of 14 digits, and more; or a header.
fn is_index(start: &[u8]) -> bool {
    let mut fields = first_line(start).split(|&byte| byte == b' ');
    let (key, time, more) = (fields.next(), fields.next(), fields.next());
    let is_time = |time: &[u8]| time.len() == 14 && time.iter().all(u8::is_ascii_digit);
    more.is_some() && (key == Some(b"CDX") || time.is_some_and(is_time))
}

/// Guesses the format of a WARC file by its first record other than `warcinfo`; `None` if `head` has none.
fn guess_by_record(head: &[u8]) -> Option<Result<(Format, String), String>> {
    let is = |format, why: String| Some(Ok((format, why)));
    let mut at = 0;
    loop {
        at += frame::line_ends(&head[at..]);
        let Ok(header) = frame::header(&head[at..]) else {
            return is(Format::Warc, "it begins as a WARC file does".into());
        };
        let header = header?;
        if wat::is_wat(&header) {
            let why = "it is a WARC file with metadata records in JSON";
            return is(Format::Wat, why.into());
        }
        let kind = String::from_utf8_lossy(header.kind);
        let kind: String = kind.chars().filter(|c| !c.is_control()).take(40).collect();
        if kind.eq_ignore_ascii_case("conversion") {
            let message = "it is a WET, the text of pages without their links";
            return Some(Err(message.into()));
        }
        if !kind.eq_ignore_ascii_case("warcinfo") {
            return is(
                Format::Warc,
                format!("it is a WARC file with a `{kind}` record"),
            );
        }
        let block = usize::try_from(header.length).unwrap_or(usize::MAX);
        at = at
            .saturating_add(header.len)
            .saturating_add(block)
            .min(head.len());
    }
}

fn no_text(head: &[u8]) -> Option<String> {
    let is_control = |byte: &u8| byte.is_ascii_control() && !b"\t\n\r\x0c".contains(byte);
    if let Some(at) = head.iter().position(is_control) {
        let byte = head[at];
        return Some(format!(
            "it has the control byte 0x{byte:02x} at byte {at}, so it is no text"
        ));
    }
    if let Err(error) = std::str::from_utf8(head)
        // The last character may be cut.
        && error.error_len().is_some()
    {
        let at = error.valid_up_to();
        return Some(format!("it is not UTF-8 at byte {at}"));
    }
    let lower = head[..head.len().min(LOOKED_AT)].to_ascii_lowercase();
    let has = |tag: &[u8]| memchr::memmem::find(&lower, tag).is_some();
    if has(b"<html") || has(b"<!doctype") || has(b"<head") || has(b"<body") {
        return Some("it looks like HTML or XML".to_owned());
    }
    if head.starts_with(b"HTTP/") {
        return Some("it looks like an HTTP answer without an archive around it".to_owned());
    }
    arc::is_header(first_line(head.trim_ascii_start())).then(|| {
        "it looks like a record of an ARC file whose head (`filedesc://`) is missing".to_owned()
    })
}

/// Number of first bytes that are searched for signs of another kind of text.
const LOOKED_AT: usize = 4096;

/// Number of lines that decide whether a file has entries of one kind.
const TELLING: usize = 16;

fn guess_lines(head: &[u8]) -> Option<(Format, String)> {
    // The last line may be cut, if it is not the only one.
    let whole = memrchr(b'\n', head).map_or(head, |lf| &head[..=lf]);
    let lines = lines_of::<CsvLinks>(whole).map(|line| line.text);
    let lines = lines.filter(|line| !line.trim_ascii().is_empty());
    let lines: Vec<&[u8]> = lines.take(TELLING).collect();
    let first = lines.first()?;
    if csv_links::is_link(first) {
        let message = "its first line has the fields date,src,dest";
        return Some((Format::CsvLinks, message.to_owned()));
    }
    let entries = lines
        .iter()
        .filter(|line| crawl_log::is_entry(line))
        .count();
    let message = if crawl_log::is_entry(first) {
        "its first line has the fields of a crawl log"
    } else {
        "most of its first lines have the fields of a crawl log"
    };
    (entries > 0 && 2 * entries >= lines.len()).then(|| (Format::CrawlLog, message.to_owned()))
}

/// Checks that a `guessed` format has names of the same kind as the inputs `before`.
pub fn check_names(guessed: Format, why: &str, before: Option<Names>) -> Result<()> {
    let names = guessed.decoder().names();
    if before.is_none_or(|before| before == names) {
        return Ok(());
    }
    let name = guessed.name();
    Err(Error::Unsupported(match names {
        Names::Opaque => format!(
            "it is no crawl: {why}, as in the format {name}, whose names are no URLs, and what was read before has URLs; if \
             its names are URLs, name it with `format` url-{name}, and if they are to be pages beside the URLs, with \
             `format` {name}"
        ),
        Names::Url => format!(
            "{why}, as in the format {name}, whose names are URLs, and what was read before has other names; give it a \
             store of its own, or, if both are to be in one, name it with `format` {name}"
        ),
    }))
}

/// Guesses the format of a graph. Edges have two fields in every line, or three with a weight.
fn guess_graph(head: &[u8]) -> Result<(Format, String), String> {
    // The last line may be cut.
    let whole = memrchr(b'\n', head).map_or(head, |lf| &head[..lf]);
    let (mut data, mut tabs, mut pairs, mut weighed) = (0u64, 0u64, 0u64, 0u64);
    let mut spaced = None;
    // True if a word occurred twice, or is a number or a URL.
    let (mut seen, mut is_graph) = (HashSet::new(), false);
    // True if lines like `1 TAB 2 TAB 3` are no adjacency list: names that are no numbers, a page twice in a row, or
    // weights with a decimal point show it.
    let (mut has_weights, mut last) = (false, &[][..]);
    let is_number = |word: &[u8]| whole_number(word).is_some();
    for (line, number) in lines::lines(whole).zip(1u64..) {
        let text = line.text.trim_ascii();
        if text.is_empty() || text[0] == b'#' {
            continue;
        }
        let words = text.split(|byte| matches!(byte, b' ' | b'\t'));
        let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
        let has_tab = line.text.contains(&b'\t');
        data += 1;
        tabs += u64::from(has_tab);
        pairs += u64::from(words.len() == 2);
        if words.len() > 1 && !has_tab {
            spaced.get_or_insert(number);
        }
        // Names of adjacency lists may have spaces.
        let fields = if text.contains(&b'\t') {
            let fields = text.split(|byte| *byte == b'\t').map(<[u8]>::trim_ascii);
            fields.filter(|field| !field.is_empty()).collect()
        } else {
            words.clone()
        };
        let is_score = |at: usize| {
            let is_known = match (at, fields.len()) {
                (2, 3) => is_number(fields[2]),
                _ => is_decimal(fields[0]),
            };
            is_decimal(fields[at]) && !is_known
        };
        if (1..fields.len()).any(is_score) {
            return Err(format!(
                "line {number} has a decimal number, which may be a score or a weight rather than a page (weights are whole numbers)"
            ));
        }
        if let [from, to, weight] = fields[..]
            && has_tab
            && is_number(weight)
        {
            weighed += 1;
            has_weights |= !is_number(from) || !is_number(to) || from == last;
            has_weights |= is_decimal(weight) && !is_decimal(from);
            last = from;
        }
        is_graph = is_graph
            || words.into_iter().any(|word| {
                let is_number = word.iter().all(u8::is_ascii_digit);
                url::is_web(word) || is_number || !seen.insert(word)
            });
    }
    match (data, tabs) {
        (0, _) => Err("it has comments only".to_owned()),
        (_, 0) if pairs == data && !is_graph => Err(
            "its lines have two words and no tab, and no word comes twice: a message rather than links".to_owned(),
        ),
        _ if pairs == data => Ok((Format::Edges, "every line has two fields".to_owned())),
        (_, 0) => Err("its lines have neither tabs nor two fields".to_owned()),
        _ if spaced.is_some() => Err(format!(
            "some lines are split by tabs, and line {} has words without one",
            spaced.unwrap_or_default()
        )),
        _ if weighed == data && has_weights => Ok((
            Format::Edges,
            "every line has two fields and a weight".to_owned(),
        )),
        _ => {
            let message = "its lines are split by tabs, and not all have two fields";
            Ok((Format::Adjacency, message.to_owned()))
        }
    }
}

/// Returns whether a field is a number that is not digits only: a weight or score, as programs write them.
fn is_decimal(field: &[u8]) -> bool {
    let text = std::str::from_utf8(field).unwrap_or_default();
    let has_sign = text.starts_with(['-', '+']);
    (has_sign || text.contains('.') || text.contains("e-"))
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests;
