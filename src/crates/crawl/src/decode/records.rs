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

use self::link::{LinkWeights, LinksSeed, Marks};
use self::names::{Field, FieldNameMap, NameBits, NamedField};
use self::unread::Unread;
use self::values::{
    ContentDigest, Count, MethodField, RawTime, RawTotals, RequestedUrls, StatusField,
};
use super::json::{self, JsonText};
use super::lines::{self, LineSkipper, TextLine};
pub use documents::{JsonLayout, layout};

use super::{
    Bad, Decoder, FormatSpec, Link, Parsed, Reason, Record, Sink, Skipper, put_time, skips_links,
    utf8,
};
use crate::model::{is_redirect, keep};
use crate::rules::{InputRules, Shard};

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

    fn whole(&self, buf: &[u8], at_end: bool) -> usize {
        if self.are_lines {
            lines::whole(buf, at_end)
        } else {
            documents::whole(buf, at_end)
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
type Hops<'a> = Vec<Cow<'a, [u8]>>;

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
        let found = raw.found.peek().filter(|JsonText(found)| !found.is_empty());
        let page = found.or(raw.url.as_ref());
        page.is_some_and(|JsonText(page)| skips_links(self.shard, page, self.naming))
    }

    /// Returns whether a page of the shard redirected to the record's page.
    fn has_own_redirect(self, raw: &RawRecord<'_>) -> bool {
        let found = raw.found.peek().filter(|JsonText(found)| !found.is_empty());
        let hops = raw
            .asked
            .peek()
            .into_iter()
            .flat_map(|RequestedUrls(hops)| hops);
        let first = raw.url.iter().filter(|_| found.is_some());
        let mut hops = hops.chain(first.map(|JsonText(url)| url));
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
    url: Option<JsonText<'a>>,
    time: FirstNamed<RawTime<'a>>,
    status: FirstNamed<StatusField>,
    redirect: Option<JsonText<'a>>,
    digest: ContentDigest,
    asked: FirstNamed<RequestedUrls<'a>>,
    found: FirstNamed<JsonText<'a>>,
    base: Option<JsonText<'a>>,
    method: FirstNamed<MethodField>,
    nofollow: Option<Marks>,
    rel: Option<Marks>,
    weight: Option<LinkWeights>,
    revisit: Option<JsonText<'a>>,
    totals: RawTotals<'a>,
    /// Positions in the list of links that are null or empty.
    nulls: Vec<usize>,
    /// True if links were skipped, as the record belongs to another shard.
    lacks_links: bool,
}

impl<'a> RawRecord<'a> {
    /// Fills the record. `Some(kind)`: it is valid, but not a crawl record.
    fn put(
        self,
        names: &FieldNameMap,
        record: &mut Record<'a>,
        asked: &mut Hops<'a>,
    ) -> Result<Option<&'static str>, Bad> {
        if let Some(MethodField(Some(kind))) = self.method.get() {
            return Ok(Some(kind));
        }
        for (marks, field) in [
            (&self.nofollow, Field::LinksNofollow),
            (&self.rel, Field::LinksRel),
        ] {
            let put = marks
                .as_ref()
                .filter(|_| !self.lacks_links)
                .map_or(Ok(()), |marks| marks.put(&mut record.links, &self.nulls));
            put.map_err(|wrong| Bad::malformed(format!("{:?} has {wrong}", names.name(field))))?;
        }
        if let Some(LinkWeights(weights)) = self.weight.as_ref().filter(|_| !self.lacks_links) {
            let put = link::put_each(&mut record.links, &self.nulls, weights, |link, weight| {
                link.weight = *weight;
            });
            put.map_err(|wrong| {
                Bad::malformed(format!("{:?} has {wrong}", names.name(Field::LinksWeight)))
            })?;
        }
        let same_as = self.revisit.map(|JsonText(url)| url);
        record.same_as = same_as.filter(|url| !url.is_empty());
        record.revisit = record.same_as.is_some();
        record.totals = self.totals.read()?;
        let base = self.base.map(|JsonText(base)| base);
        record.base = base.filter(|base| !base.is_empty());
        record.url = match self.url {
            Some(JsonText(url)) if !url.is_empty() => url,
            url => return Err(no_url(url.is_some(), names)),
        };
        let RequestedUrls(hops) = self.asked.get().unwrap_or(RequestedUrls(Vec::new()));
        *asked = hops;
        if let Some(JsonText(found)) = self.found.get().filter(|JsonText(found)| !found.is_empty())
        {
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
        put_time(record, self.time.get().map_or(Ok(None), RawTime::read));
        record.status = self.status.get().map(|StatusField(status)| status);
        record.digest = self.digest.0;
        if record.status.is_none_or(is_redirect) {
            let redirect = self.redirect.map(|JsonText(redirect)| redirect);
            record.redirect = redirect.filter(|redirect| !redirect.is_empty());
        }
        Ok(None)
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

/// Name of a field of an object.
struct FieldKey<'n, F>(&'n FieldNameMap, fn(&FieldNameMap, &str) -> Option<F>);

impl<'de, F> DeserializeSeed<'de> for FieldKey<'_, F> {
    type Value = Option<F>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<F>, D::Error> {
        json.deserialize_identifier(self)
    }
}

impl<F> Visitor<'_> for FieldKey<'_, F> {
    type Value = Option<F>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Option<F>, E> {
        let FieldKey(names, find) = self;
        Ok(find(names, name))
    }
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
        while let Some(known) = map.next_key_seed(FieldKey(names, FieldNameMap::field))? {
            let Some(NamedField { field, order }) = known else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.again(order) {
                let name = names.name(field);
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            match field {
                Field::Url => raw.url = map.next_value()?,
                Field::FetchedAt => raw.time.put(order, map.next_value()?),
                Field::FetchedAtUtc => {
                    let time: Option<RawTime<'_>> = map.next_value()?;
                    raw.time.put(order, time.map(RawTime::in_utc));
                }
                Field::Status => raw.status.put(order, map.next_value()?),
                Field::Redirect => raw.redirect = map.next_value()?,
                Field::Digest => raw.digest = map.next_value()?,
                Field::RequestedUrl => raw.asked.put(order, map.next_value()?),
                Field::FinalUrl => raw.found.put(order, map.next_value()?),
                Field::Base => raw.base = map.next_value()?,
                Field::Method => raw.method.put(order, map.next_value()?),
                Field::LinksNofollow => raw.nofollow = Marks::nofollow(map.next_value()?),
                Field::LinksRel => raw.rel = Marks::rel(map.next_value()?),
                Field::LinksWeight => raw.weight = map.next_value()?,
                Field::Revisit => raw.revisit = map.next_value()?,
                Field::Visits => raw.totals.visits = map.next_value()?,
                Field::Failed => raw.totals.failed = map.next_value()?,
                Field::LastFailed => raw.totals.last_failed = map.next_value()?,
                Field::Compared => raw.totals.compared = map.next_value()?,
                Field::Changed => raw.totals.changed = map.next_value()?,
                Field::Watched => raw.totals.watched_s = map.next_value()?,
                Field::Links if order > links_by => drop(map.next_value::<IgnoredAny>()?),
                Field::Links if reader.skips_links(&raw) => {
                    map.next_value::<IgnoredAny>()?;
                    raw.lacks_links = true;
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
            }
        }
        Ok(raw)
    }
}

#[cfg(test)]
mod tests;
