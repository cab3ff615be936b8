//! Crawl records as JSON, one object per line. Specified in `formats/records.md`.

pub mod names;
mod plain;
pub mod unread;
mod values;
pub mod write;

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use self::names::{FieldNameMap, NameBits, NamedField};
use self::values::{LinksVisitor, TOTALS, Text, some};
use super::json::{self, Any, Value, value_to};
use super::lines;
use super::{
    Bad, Decoder, FormatSpec, Link, Names, Parsed, ReadResult, Reason, Record, Sink, http,
    put_time, skips_links, utf8,
};
use crate::model::{Digest, is_redirect, keep};
use crate::rules::{FieldName, InputRules, Rel, Shard};
use crate::url::{self, LinkBase, Reject};

pub const FORMAT: FormatSpec = FormatSpec {
    name: "records",
    about: "JSON lines, one object per crawl record",
    by: |rules, _| std::sync::Arc::new(JsonRecords::by(rules, Names::Url)),
};

pub const OF_NODES: FormatSpec = FormatSpec {
    name: "node-records",
    about: "records of a graph: `node`, an opaque name, in place of `url`",
    by: |rules, _| std::sync::Arc::new(JsonRecords::by(rules, Names::Opaque)),
};

pub fn is_of_node(start: &[u8]) -> bool {
    let inside = start.strip_prefix(b"{").unwrap_or_default();
    let name = inside.trim_ascii_start().strip_prefix(b"\"");
    name.is_some_and(|name| name.starts_with(b"node\""))
}

pub struct JsonRecords {
    names: FieldNameMap,
    naming: Names,
    shard: Option<Shard>,
}

impl JsonRecords {
    fn by(rules: &InputRules, naming: Names) -> JsonRecords {
        JsonRecords {
            names: FieldNameMap::by(&rules.fields, naming),
            naming,
            shard: rules.shard,
        }
    }
}

impl Decoder for JsonRecords {
    fn names(&self) -> Names {
        self.naming
    }

    /// Tests for a blank line and a bracket apart, because an object shows its own end, these only their line end.
    fn is_cut(&self, rest: &[u8]) -> bool {
        let mut is_cut = false;
        self.decode(rest, &mut |_, parsed| {
            is_cut = matches!(
                parsed,
                Parsed::Bad {
                    reason: Reason::CutShort,
                    ..
                }
            );
            true
        });
        is_cut || matches!(array_item(lines::trim(rest)).trim_ascii(), b"" | b"[")
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut fetch = Fetch::default();
        let mut done = 0;
        for line in lines::lines(chunk) {
            let reader = RecordReader {
                by: self,
                shard: self.shard,
                terminated: line.terminated,
            };
            let text = array_item(line.text);
            let parsed = match text.trim_ascii() {
                b"" => Parsed::Other { kind: "blank line" },
                b"[" | b"]" => Parsed::Other {
                    kind: "array bracket",
                },
                [b'[', inside @ .., b']'] if inside.trim_ascii().is_empty() => Parsed::Other {
                    kind: "array bracket",
                },
                _ => match reader.read(text, &mut fetch) {
                    Ok(Some(kind)) => Parsed::Other { kind },
                    Ok(None) => {
                        let mut hand_out = |hop: &Record<'_>| sink(done, Parsed::Record(hop));
                        if !each_redirect(&fetch, &mut hand_out) {
                            return;
                        }
                        Parsed::Record(&fetch.record)
                    }
                    Err(bad) => bad.into(),
                },
            };
            done = line.end;
            if !sink(done, parsed) {
                return;
            }
        }
    }
}

/// Removes the comma after an item of an array that has each object on its line.
fn array_item(line: &[u8]) -> &[u8] {
    line.trim_ascii_end().strip_suffix(b",").unwrap_or(line)
}

/// Record as read, and the URLs requested before its own.
#[derive(Debug, Default, PartialEq)]
struct Fetch<'a> {
    record: Record<'a>,
    asked: Vec<Text<'a>>,
}

#[derive(Clone, Copy)]
struct RecordReader<'n> {
    by: &'n JsonRecords,
    /// Shard whose records are read with their links; `None`: all records are.
    shard: Option<Shard>,
    /// False if the input may end inside the text.
    terminated: bool,
}

impl RecordReader<'_> {
    fn read<'a>(self, line: &'a [u8], fetch: &mut Fetch<'a>) -> ReadResult {
        let text = utf8(line).map_err(|error| {
            let cut = error.error_len().is_none() && !self.terminated;
            if cut {
                Bad::new(Reason::CutShort, "the input ends inside a character")
            } else {
                Bad::utf8(error)
            }
        })?;
        let error = match self.parse(text, fetch) {
            Ok(kind) => return Ok(kind),
            Err(error) => error,
        };
        if let Some(text) = json::repair_surrogates(text) {
            let mut repaired = Fetch::default();
            let kind = self.parse(&text, &mut repaired)?;
            let owned = |hop: Text<'_>| Cow::Owned(hop.into_owned());
            fetch.asked = repaired.asked.into_iter().map(owned).collect();
            fetch.record = repaired.record.into_owned();
            return Ok(kind);
        }
        Err(error)
    }

    fn parse<'a>(self, text: &'a str, fetch: &mut Fetch<'a>) -> ReadResult {
        fetch.record.clear();
        match plain::read(text, self, &mut fetch.record.links) {
            Some(raw) => self.finish(text, raw, fetch),
            None => self.parse_any(text, fetch),
        }
    }

    fn parse_any<'a>(self, text: &'a str, fetch: &mut Fetch<'a>) -> ReadResult {
        fetch.record.clear();
        let mut json = serde_json::Deserializer::from_str(text);
        let object = RecordVisitor {
            reader: self,
            links: &mut fetch.record.links,
        };
        let raw = json.deserialize_map(object);
        let raw = raw.and_then(|raw| json.end().map(|()| raw));
        let raw = raw.map_err(|error| {
            let is_cut = error.is_eof() && !self.terminated;
            let reason = if is_cut {
                Reason::CutShort
            } else {
                Reason::Malformed
            };
            Bad::new(reason, json::detail(&error))
        })?;
        self.finish(text, raw, fetch)
    }

    /// Fills the record. If its links were skipped but it belongs to the shard, the whole text is read again.
    fn finish<'a>(self, text: &'a str, raw: RawRecord<'a>, fetch: &mut Fetch<'a>) -> ReadResult {
        if raw.lacks_links && (!self.skips_links(&raw) || self.has_own_redirect(&raw)) {
            let all = RecordReader {
                shard: None,
                ..self
            };
            return all.parse(text, fetch);
        }
        raw.put(&self.by.names, fetch)
    }

    /// Returns whether the record's page belongs to another shard, judging by the fields read so far.
    fn skips_links(self, raw: &RawRecord<'_>) -> bool {
        let found = raw.found.peek().filter(|found| !found.is_empty());
        let page = found.or(raw.url.as_ref());
        page.is_some_and(|page| skips_links(self.shard, page, self.by.naming))
    }

    fn has_own_redirect(self, raw: &RawRecord<'_>) -> bool {
        let found = raw.found.peek().filter(|found| !found.is_empty());
        let first = raw.url.iter().filter(|_| found.is_some());
        let mut hops = raw.asked.peek().into_iter().flatten().chain(first);
        hops.any(|hop| !skips_links(self.shard, hop, self.by.naming))
    }
}

/// Value of a field that has several names: the first name with a non-null value counts.
#[derive(Default)]
struct FirstNamed<T>(Option<(u8, T)>);

impl<T> FirstNamed<T> {
    fn put(&mut self, order: u8, value: Option<T>) {
        if let Some(value) = value
            && self.0.as_ref().is_none_or(|(first, _)| order < *first)
        {
            self.0 = Some((order, value));
        }
    }

    fn get(self) -> Option<T> {
        self.0.map(|(_, value)| value)
    }

    fn peek(&self) -> Option<&T> {
        self.0.as_ref().map(|(_, value)| value)
    }
}

#[derive(Default)]
struct RawRecord<'a> {
    url: Option<Text<'a>>,
    time: FirstNamed<Value<'a>>,
    status: FirstNamed<i32>,
    redirect: Option<Text<'a>>,
    digest: Digest,
    asked: FirstNamed<Vec<Text<'a>>>,
    found: FirstNamed<Text<'a>>,
    base: Option<Text<'a>>,
    /// Report name of the response, if the method is not GET.
    method: FirstNamed<Option<&'static str>>,
    nofollow: Option<Vec<Rel>>,
    rel: Option<Vec<Rel>>,
    weight: Option<Vec<u32>>,
    revisit: Option<Text<'a>>,
    /// Totals over all fetches of the page, from [`FieldName::Visits`] on.
    totals: [Option<Value<'a>>; TOTALS],
    /// Positions in the list of links that are null or empty.
    nulls: Vec<usize>,
    /// True if links were skipped because the record belongs to another shard.
    lacks_links: bool,
}

impl<'a> RawRecord<'a> {
    fn set(
        &mut self,
        NamedField { field, order }: NamedField,
        value: Value<'a>,
    ) -> serde_json::Result<()> {
        match field {
            FieldName::Url => self.url = values::text(value)?,
            FieldName::FetchedAt => self.time.put(order, some(value)),
            FieldName::FetchedAtUtc => self.time.put(order, some(value).map(values::in_utc)),
            FieldName::Status => self.status.put(order, values::status(value)?),
            FieldName::Redirect => self.redirect = values::text(value)?,
            FieldName::Digest => self.digest = Digest::of_text(value.text()),
            FieldName::RequestedUrl => self.asked.put(order, values::urls(value)?),
            FieldName::FinalUrl => self.found.put(order, values::text(value)?),
            FieldName::Base => self.base = values::text(value)?,
            FieldName::Method => {
                let method = |value: Value<'_>| http::not_get(value.text().as_bytes());
                self.method.put(order, some(value).map(method));
            }
            FieldName::LinksNofollow => self.nofollow = values::nofollows(value),
            FieldName::LinksRel => self.rel = values::rels(value),
            FieldName::LinksWeight => self.weight = values::weights(value)?,
            FieldName::Revisit => self.revisit = values::text(value)?,
            FieldName::Visits
            | FieldName::Failed
            | FieldName::LastFailed
            | FieldName::Compared
            | FieldName::Changed
            | FieldName::Watched => {
                self.totals[field as usize - FieldName::Visits as usize] = some(value);
            }
            _ => {}
        }
        Ok(())
    }

    fn put(self, names: &FieldNameMap, fetch: &mut Fetch<'a>) -> ReadResult {
        let Fetch { record, asked } = fetch;
        if let Some(Some(kind)) = self.method.get() {
            return Ok(Some(kind));
        }
        let (links, nulls) = (&mut record.links, &self.nulls);
        let wrong = |field| {
            move |wrong| Bad::malformed(format!("{:?} has {wrong}", names.record.name(field)))
        };
        for (field, rels) in [
            (FieldName::LinksNofollow, self.nofollow),
            (FieldName::LinksRel, self.rel),
        ] {
            let add_rel = |link: &mut Link<'a>, rel| link.rel = link.rel.with(rel);
            values::put_each(links, nulls, rels, add_rel).map_err(wrong(field))?;
        }
        let put_weight = |link: &mut Link<'a>, weight| link.weight = weight;
        values::put_each(links, nulls, self.weight, put_weight)
            .map_err(wrong(FieldName::LinksWeight))?;
        let not_empty = |text: Option<Text<'a>>| text.filter(|text| !text.is_empty());
        record.same_as = not_empty(self.revisit);
        record.revisit = record.same_as.is_some();
        record.totals = values::totals(&self.totals)?;
        record.base = not_empty(self.base);
        record.url = match self.url {
            Some(url) if !url.is_empty() => url,
            url => return Err(no_url(url.is_some(), names)),
        };
        *asked = self.asked.get().unwrap_or_default();
        if let Some(found) = not_empty(self.found.get()) {
            let found = absolute(found, &record.url);
            asked.push(std::mem::replace(&mut record.url, found));
        }
        if asked.len() > REDIRECTS_MAX {
            let message = format!(
                "redirected {} times, more than {}",
                asked.len(),
                REDIRECTS_MAX
            );
            return Err(Bad::malformed(message));
        }
        put_time(record, self.time.peek().map_or(Ok(None), values::read_time));
        record.status = self.status.get();
        record.digest = self.digest;
        if record.status.is_none_or(is_redirect) {
            record.redirect = not_empty(self.redirect);
        }
        Ok(None)
    }
}

fn no_url(is_empty: bool, names: &FieldNameMap) -> Bad {
    let message = match (is_empty, names.record.name(FieldName::Url)) {
        (true, name) => format!("{name:?} is empty"),
        (false, names::NODE) => "no `node`".to_owned(),
        (false, "url") => {
            "no `url`; if the file has another name for it: `field` url=NAME".to_owned()
        }
        // Another field took the name `url`.
        (false, "") => "no `url`: `field` gives its name to another field".to_owned(),
        (false, name) => format!("no {name:?}, which `field` names as the URL"),
    };
    Bad::new(Reason::BadUrl, message)
}

/// Reads one object; appends its links to the vector, whose capacity is reused.
struct RecordVisitor<'r, 'n, 'a> {
    reader: RecordReader<'n>,
    links: &'r mut Vec<Link<'a>>,
}

impl<'de> Visitor<'de> for RecordVisitor<'_, '_, 'de> {
    type Value = RawRecord<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a crawl record, an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawRecord<'de>, A::Error> {
        let mut raw = RawRecord::default();
        let mut seen = NameBits::default();
        // Order of the name whose links count so far.
        let mut links_by = u8::MAX;
        let RecordVisitor { reader, links } = self;
        let names = &reader.by.names;
        let field = |name: Value<'_>| Ok(names.record.field(name.text()));
        while let Some(known) = map.next_key_seed(value_to(field))? {
            let Some(known) = known else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let NamedField { field, order } = known;
            if seen.was_seen(order) {
                let name = names.record.name(field);
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            match field {
                FieldName::Links if order > links_by => drop(map.next_value::<IgnoredAny>()?),
                FieldName::Links if reader.skips_links(&raw) => {
                    map.next_value::<IgnoredAny>()?;
                    raw.lacks_links = true;
                    // Drops the links of another name that was read before the page was known.
                    links.clear();
                    raw.nulls.clear();
                }
                FieldName::Links => {
                    let nulls = &mut raw.nulls;
                    let visitor = LinksVisitor {
                        names,
                        links,
                        nulls,
                    };
                    if map.next_value_seed(Any(visitor))? {
                        links_by = order;
                    }
                }
                _ => map.next_value_seed(value_to(|value| raw.set(known, value)))?,
            }
        }
        Ok(raw)
    }
}

/// Maximum number of redirects in one record. Browsers follow 20.
const REDIRECTS_MAX: usize = 100;

/// Status of redirects that a crawler followed itself: the server's is unknown, and 302 makes no promise.
const REDIRECT_STATUS: i32 = 302;

/// Emits a redirect from each of `asked` to the next, and from the last to the record's URL. Returns `false` to stop.
fn each_redirect<'a>(
    Fetch { record, asked }: &Fetch<'a>,
    hand_out: &mut dyn FnMut(&Record<'_>) -> bool,
) -> bool {
    asked.iter().enumerate().all(|(at, from)| {
        let to = asked.get(at + 1).unwrap_or(&record.url);
        if !are_two(from, to) {
            return true;
        }
        hand_out(&Record {
            url: from.clone(),
            redirect: Some(to.clone()),
            fetched_at: record.fetched_at,
            status: Some(REDIRECT_STATUS),
            ..Record::default()
        })
    })
}

/// Resolves a relative final URL against the requested one.
fn absolute<'a>(found: Cow<'a, [u8]>, asked: &[u8]) -> Cow<'a, [u8]> {
    let canonical = url::canonical(&found, None, usize::MAX, &mut Vec::new());
    if canonical.err() != Some(Reject::Relative) {
        return found;
    }
    let asked = LinkBase::new(asked, None);
    url::name_of(&found, Some(&asked), usize::MAX).map_or(found, Cow::Owned)
}

/// Returns whether both names are URLs, of different pages.
fn are_two(from: &[u8], to: &[u8]) -> bool {
    let canonical = |raw| url::name_of(raw, None, usize::MAX).ok();
    from != to && canonical(from).is_some_and(|from| canonical(to) != Some(from))
}

#[cfg(test)]
mod tests;
