//! Crawl records as JSON: one object per line, or in any other layout. Specified in `formats/records.md`.
//!
//! Only known fields are read, borrowed from the chunk; all others are skipped.

mod documents;
mod link;
mod listed;
pub mod names;
mod plain;
mod redirects;
pub mod unread;
mod values;
pub mod write;

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use self::link::LinksSeed;
use self::names::{Field, FieldNameMap, NameBits, NamedField};
use self::unread::Unread;
use self::values::{RawTotals, Text, some};
use super::json::{self, KeySeed, Value, ValueSeed, ValueSink};
use super::lines::{self, LineSkipper, TextLine};
pub use documents::{JsonLayout, layout};

use super::{
    Bad, Decoder, FormatSpec, Link, Parsed, Reason, Record, Sink, Skipper, http, put_time,
    skips_links, utf8,
};
use crate::model::{Digest, is_redirect, keep};
use crate::rules::{InputRules, Rel, Shard};

/// Records whose pages are URLs.
pub const FORMAT: FormatSpec = FormatSpec {
    name: "records",
    about: "JSON lines, one object per crawl record",
    is_grouped: false,
    caveat: None,
    usual: &JsonRecords::USUAL,
    by: |rules, _| std::sync::Arc::new(JsonRecords::by(rules, super::Names::Url)),
};

/// Records of a graph, whose pages have opaque names.
pub const OF_NODES: FormatSpec = FormatSpec {
    name: "node-records",
    about: "records of a graph: `node`, an opaque name, in place of `url`",
    is_grouped: false,
    caveat: None,
    usual: &JsonRecords {
        names: FieldNameMap::UsualOfNodes,
        naming: super::Names::Opaque,
        ..JsonRecords::USUAL
    },
    by: |rules, _| std::sync::Arc::new(JsonRecords::by(rules, super::Names::Opaque)),
};

/// Records in a layout other than one per line.
pub const DOCUMENTS: FormatSpec = FormatSpec {
    name: "json",
    about: "the same as objects over several lines, or in arrays",
    is_grouped: false,
    caveat: None,
    usual: &JsonRecords {
        are_lines: false,
        ..JsonRecords::USUAL
    },
    by: |rules, _| {
        std::sync::Arc::new(JsonRecords {
            are_lines: false,
            ..JsonRecords::by(rules, super::Names::Url)
        })
    },
};

/// Returns whether a text begins with a record whose first field is an opaque page name.
pub fn is_of_node(start: &[u8]) -> bool {
    let inside = start.strip_prefix(b"{").unwrap_or_default();
    let name = inside.trim_ascii_start().strip_prefix(b"\"");
    name.is_some_and(|name| name.starts_with(b"node\""))
}

/// Kind of a record's field, as far as readers of table columns need it.
#[cfg(feature = "parquet")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Name of the page.
    Page,
    /// The page's links: a list, or one text.
    Links,
    /// URLs, one or several, that were requested and redirected to the page.
    RequestedUrl,
    /// URL of the page at the end of redirects.
    FinalUrl,
    /// List with one value for each link, or one text of them.
    Marks,
    /// Text, number or time.
    Other,
}

/// Returns the kind of the field of this name; `None` if it is not read.
#[cfg(feature = "parquet")]
pub fn field_kind(
    fields: &crate::rules::FieldNames,
    naming: super::Names,
    name: &str,
) -> Option<FieldKind> {
    let known = FieldNameMap::by(fields, naming).field(name)?;
    Some(match known.field {
        Field::Url => FieldKind::Page,
        Field::Links => FieldKind::Links,
        Field::RequestedUrl => FieldKind::RequestedUrl,
        Field::FinalUrl => FieldKind::FinalUrl,
        Field::LinksNofollow | Field::LinksRel | Field::LinksWeight => FieldKind::Marks,
        _ => FieldKind::Other,
    })
}

/// Decoder of crawl records in JSON.
pub struct JsonRecords {
    names: FieldNameMap,
    naming: super::Names,
    shard: Option<Shard>,
    are_lines: bool,
}

impl JsonRecords {
    /// Decoder by the usual field names, for URLs, one record per line.
    pub const USUAL: JsonRecords = JsonRecords {
        names: FieldNameMap::Usual,
        naming: super::Names::Url,
        shard: None,
        are_lines: true,
    };

    /// Returns a decoder for names of this kind, by the rules for inputs.
    pub fn by(rules: &InputRules, naming: super::Names) -> JsonRecords {
        JsonRecords {
            names: FieldNameMap::by(&rules.fields, naming),
            naming,
            shard: rules.shard,
            are_lines: true,
        }
    }
}

impl Decoder for JsonRecords {
    fn names(&self) -> super::Names {
        self.naming
    }

    fn whole(&self, buf: &[u8]) -> usize {
        if self.are_lines {
            lines::whole(buf)
        } else {
            super::whole_by(buf, |rest| documents::Cut::default().run(rest))
        }
    }

    /// An object shows its own end, a blank line only its line end.
    fn is_cut(&self, rest: &[u8]) -> bool {
        let is_blank = lines::trim(rest).trim_ascii().is_empty();
        let why = || super::last_bad(|sink| self.decode(rest, sink));
        self.are_lines && is_blank || why() == Some(Reason::CutShort)
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        if self.are_lines {
            Box::new(LineSkipper)
        } else {
            Box::new(documents::Cut::default())
        }
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        if self.are_lines {
            self.each(lines::lines(chunk), sink);
        } else {
            self.each(documents::documents(chunk), sink);
        }
    }

    fn unread(&self) -> Option<Box<Unread>> {
        Some(Box::new(Unread::by(self.names.clone())))
    }
}

impl JsonRecords {
    /// Emits each record, preceded by the redirects that led to it.
    fn each<'a>(&self, texts: impl Iterator<Item = TextLine<'a>>, sink: &mut Sink<'_>) {
        let reader = RecordReader {
            names: &self.names,
            naming: self.naming,
            shard: self.shard,
        };
        let mut record = Record::default();
        let mut asked = Vec::new();
        let mut done = 0;
        for text in texts {
            let parsed = if text.text.trim_ascii().is_empty() {
                Parsed::Other { kind: "blank line" }
            } else {
                match reader.read(&text, &mut record, &mut asked) {
                    Ok(Some(kind)) => Parsed::Other { kind },
                    Ok(None) => {
                        let mut hand_out = |hop: &Record<'_>| sink(done, Parsed::Record(hop));
                        if !redirects::each(&asked, &record, &mut hand_out) {
                            return;
                        }
                        Parsed::Record(&record)
                    }
                    Err(bad) => bad.into(),
                }
            };
            done = text.end;
            if !sink(done, parsed) {
                return;
            }
        }
    }
}

/// URLs requested before the record's own.
type Hops<'a> = Vec<Text<'a>>;

/// Reads the text of one record at a time.
#[derive(Clone, Copy)]
struct RecordReader<'n> {
    names: &'n FieldNameMap,
    naming: super::Names,
    /// Shard whose records are read with their links; `None`: all.
    shard: Option<Shard>,
}

impl RecordReader<'_> {
    /// Reads one record's text into `record`, and the URLs requested before it into `asked`. `Some(kind)`: it is a
    /// valid object that is not a crawl record.
    fn read<'a>(
        self,
        line: &TextLine<'a>,
        record: &mut Record<'a>,
        asked: &mut Hops<'a>,
    ) -> Result<Option<&'static str>, Bad> {
        let text = utf8(line.text).map_err(|error| {
            let cut = error.error_len().is_none() && !line.terminated;
            if cut {
                Bad::new(Reason::CutShort, "the input ends inside a character")
            } else {
                Bad::utf8(error)
            }
        })?;
        let error = match self.parse(text, record, asked) {
            Ok(kind) => return Ok(kind),
            Err(error) => error,
        };
        if let Some(text) = json::repair_surrogates(text) {
            let (mut repaired, mut hops) = (Record::default(), Vec::new());
            let kind = self
                .parse(&text, &mut repaired, &mut hops)
                .map_err(|failed| failed.bad(line.terminated))?;
            *record = repaired.into_owned();
            *asked = hops
                .into_iter()
                .map(|hop| Cow::Owned(hop.into_owned()))
                .collect();
            return Ok(kind);
        }
        Err(error.bad(line.terminated))
    }

    fn parse<'a>(
        self,
        text: &'a str,
        record: &mut Record<'a>,
        asked: &mut Hops<'a>,
    ) -> Result<Option<&'static str>, Failed> {
        record.clear();
        match plain::read(text, self, &mut record.links) {
            Some(raw) => self.finish(text, raw, record, asked),
            None => self.parse_any(text, record, asked),
        }
    }

    /// Reads any JSON, by serde.
    fn parse_any<'a>(
        self,
        text: &'a str,
        record: &mut Record<'a>,
        asked: &mut Hops<'a>,
    ) -> Result<Option<&'static str>, Failed> {
        record.clear();
        let mut json = serde_json::Deserializer::from_str(text);
        let object = RecordSeed {
            reader: self,
            links: &mut record.links,
        };
        let raw = object.deserialize(&mut json).map_err(Failed::Json)?;
        json.end().map_err(Failed::Json)?;
        self.finish(text, raw, record, asked)
    }

    /// Fills the record. If its links were skipped, but a later field shows that the record or a page redirecting to it
    /// belongs to the shard, the whole text is read again, so that no error in it is missed.
    fn finish<'a>(
        self,
        text: &'a str,
        raw: RawRecord<'a>,
        record: &mut Record<'a>,
        asked: &mut Hops<'a>,
    ) -> Result<Option<&'static str>, Failed> {
        if raw.lacks_links && (!self.skips_links(&raw) || self.has_own_redirect(&raw)) {
            let all = RecordReader {
                shard: None,
                ..self
            };
            return all.parse(text, record, asked);
        }
        raw.put(self.names, record, asked).map_err(Failed::Said)
    }

    /// Returns whether the record's page belongs to another shard, judging by the fields read so far.
    fn skips_links(self, raw: &RawRecord<'_>) -> bool {
        let found = raw.found.peek().filter(|found| !found.is_empty());
        let page = found.or(raw.url.as_ref());
        page.is_some_and(|page| skips_links(self.shard, page, self.naming))
    }

    /// Returns whether a page of the shard redirected to the record's page.
    fn has_own_redirect(self, raw: &RawRecord<'_>) -> bool {
        let found = raw.found.peek().filter(|found| !found.is_empty());
        let first = raw.url.iter().filter(|_| found.is_some());
        let mut hops = raw.asked.peek().into_iter().flatten().chain(first);
        hops.any(|hop| !skips_links(self.shard, hop, self.naming))
    }
}

enum Failed {
    Json(serde_json::Error),
    Said(Bad),
}

impl Failed {
    fn bad(self, terminated: bool) -> Bad {
        match self {
            Failed::Said(bad) => bad,
            Failed::Json(error) if error.is_eof() && !terminated => {
                Bad::new(Reason::CutShort, json::detail(&error))
            }
            Failed::Json(error) => Bad::malformed(json::detail(&error)),
        }
    }
}

/// Value of a field that has several names: the first name with a non-null value counts.
struct FirstNamed<T>(Option<(u8, T)>);

impl<T> Default for FirstNamed<T> {
    fn default() -> FirstNamed<T> {
        FirstNamed(None)
    }
}

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

/// Fields other than links, as found.
#[derive(Default)]
struct RawRecord<'a> {
    url: Option<Text<'a>>,
    time: FirstNamed<Value<'a>>,
    status: FirstNamed<i32>,
    redirect: Option<Text<'a>>,
    digest: Digest,
    asked: FirstNamed<Hops<'a>>,
    found: FirstNamed<Text<'a>>,
    base: Option<Text<'a>>,
    /// Report name of the response, if the method is not GET.
    method: FirstNamed<Option<&'static str>>,
    nofollow: Option<Vec<Rel>>,
    rel: Option<Vec<Rel>>,
    weight: Option<Vec<u32>>,
    revisit: Option<Text<'a>>,
    totals: RawTotals<'a>,
    /// Positions in the list of links that are null or empty.
    nulls: Vec<usize>,
    /// True if links were skipped, as the record belongs to another shard.
    lacks_links: bool,
}

impl<'a> RawRecord<'a> {
    /// Stores the value of a field other than links.
    fn set<E: Error>(
        &mut self,
        NamedField { field, order }: NamedField<Field>,
        value: Value<'a>,
    ) -> Result<(), E> {
        match field {
            Field::Url => self.url = values::text(value)?,
            Field::FetchedAt => self.time.put(order, some(value)),
            Field::FetchedAtUtc => self.time.put(order, some(value).map(values::in_utc)),
            Field::Status => self.status.put(order, values::status(value)?),
            Field::Redirect => self.redirect = values::text(value)?,
            Field::Digest => self.digest = Digest::of_text(value.text()),
            Field::RequestedUrl => self.asked.put(order, values::urls(value)?),
            Field::FinalUrl => self.found.put(order, values::text(value)?),
            Field::Base => self.base = values::text(value)?,
            Field::Method => {
                let method = |value: Value<'_>| http::not_get(value.text().as_bytes());
                self.method.put(order, some(value).map(method));
            }
            Field::LinksNofollow => self.nofollow = link::nofollows(value),
            Field::LinksRel => self.rel = link::rels(value),
            Field::LinksWeight => self.weight = link::weights(value)?,
            Field::Revisit => self.revisit = values::text(value)?,
            Field::Visits => self.totals.visits = some(value),
            Field::Failed => self.totals.failed = some(value),
            Field::LastFailed => self.totals.last_failed = some(value),
            Field::Compared => self.totals.compared = some(value),
            Field::Changed => self.totals.changed = some(value),
            Field::Watched => self.totals.watched_s = some(value),
            Field::Links => {}
        }
        Ok(())
    }

    /// Fills the record. `Some(kind)`: it is valid, but not a crawl record.
    fn put(
        self,
        names: &FieldNameMap,
        record: &mut Record<'a>,
        asked: &mut Hops<'a>,
    ) -> Result<Option<&'static str>, Bad> {
        if let Some(Some(kind)) = self.method.get() {
            return Ok(Some(kind));
        }
        let (links, nulls) = (&mut record.links, &self.nulls);
        let add_rel = |link: &mut Link<'a>, rel| link.rel = link.rel.with(rel);
        for (field, put) in [
            (
                Field::LinksNofollow,
                link::put_each(links, nulls, self.nofollow, add_rel),
            ),
            (
                Field::LinksRel,
                link::put_each(links, nulls, self.rel, add_rel),
            ),
            (
                Field::LinksWeight,
                link::put_each(links, nulls, self.weight, |link, weight| {
                    link.weight = weight
                }),
            ),
        ] {
            put.map_err(|wrong| Bad::malformed(format!("{:?} has {wrong}", names.name(field))))?;
        }
        let not_empty = |text: Option<Text<'a>>| text.filter(|text| !text.is_empty());
        record.same_as = not_empty(self.revisit);
        record.revisit = record.same_as.is_some();
        record.totals = self.totals.read()?;
        record.base = not_empty(self.base);
        record.url = match self.url {
            Some(url) if !url.is_empty() => url,
            url => return Err(no_url(url.is_some(), names)),
        };
        *asked = self.asked.get().unwrap_or_default();
        if let Some(found) = not_empty(self.found.get()) {
            let found = redirects::absolute(found, &record.url);
            asked.push(std::mem::replace(&mut record.url, found));
        }
        if asked.len() > redirects::MOST {
            let message = format!(
                "redirected {} times, more than {}",
                asked.len(),
                redirects::MOST
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

/// Receives the value of a field.
struct FieldSink<'r, 'a>(&'r mut RawRecord<'a>, NamedField<Field>);

impl<'a> ValueSink<'a> for FieldSink<'_, 'a> {
    type Output = ();

    fn take<E: Error>(self, value: Value<'a>) -> Result<(), E> {
        self.0.set(self.1, value)
    }
}

/// Returns the error for a record without a URL, with advice in case all lack one.
fn no_url(is_empty: bool, names: &FieldNameMap) -> Bad {
    let message = match (is_empty, names.name(Field::Url)) {
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
struct RecordSeed<'r, 'n, 'a> {
    reader: RecordReader<'n>,
    links: &'r mut Vec<Link<'a>>,
}

impl<'de> DeserializeSeed<'de> for RecordSeed<'_, '_, 'de> {
    type Value = RawRecord<'de>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<RawRecord<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordSeed<'_, '_, 'de> {
    type Value = RawRecord<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a crawl record, an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawRecord<'de>, A::Error> {
        let mut raw = RawRecord::default();
        let mut seen = NameBits::default();
        // Order of the name whose links count so far.
        let mut links_by = u8::MAX;
        let RecordSeed { reader, links } = self;
        let names = reader.names;
        while let Some(known) = map.next_key_seed(KeySeed(|name: &str| names.field(name)))? {
            let Some(known) = known else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let NamedField { field, order } = known;
            if seen.again(order) {
                let name = names.name(field);
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            match field {
                Field::Links if order > links_by => drop(map.next_value::<IgnoredAny>()?),
                Field::Links if reader.skips_links(&raw) => {
                    map.next_value::<IgnoredAny>()?;
                    raw.lacks_links = true;
                    // Nothing is said about links of another field, read before the page was known.
                    links.clear();
                    raw.nulls.clear();
                }
                Field::Links => {
                    let nulls = &mut raw.nulls;
                    if map.next_value_seed(LinksSeed {
                        names,
                        links,
                        nulls,
                    })? {
                        links_by = order;
                    }
                }
                _ => map.next_value_seed(ValueSeed::to(FieldSink(&mut raw, known)))?,
            }
        }
        Ok(raw)
    }
}

#[cfg(test)]
mod tests;
