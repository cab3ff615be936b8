//! The output of decoders: one crawl record, borrowed from the chunk it was read from.

use std::borrow::Cow;

use super::{Digest, FetchTotals, LINKS_MAX, Rel};

/// Seconds since 1970-01-01T00:00:00Z.
pub type Time = i64;

/// A time as RFC 3339 in UTC, in whole seconds; `None` outside the years -9999 to 9999. (A `jiff::Timestamp` ends a day before
/// the year 9999 does.)
pub fn utc(time: Time) -> Option<String> {
    let epoch = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
    let at = epoch.checked_add(jiff::SignedDuration::from_secs(time));
    Some(format!("{}Z", at.ok()?))
}

/// One fetch of one page, as read: URLs are raw, links may be relative and may repeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record<'a> {
    /// The page's URL (or, for graphs, its opaque name), as written.
    pub url: Cow<'a, [u8]>,
    /// Base of relative links, itself joined to `url`; `None`: `url`.
    pub base: Option<Cow<'a, [u8]>>,
    /// When the page was fetched, if the record says so.
    pub fetched_at: Option<Time>,
    /// The complaint about a time that cannot be read; the record is used without it.
    pub bad_time: Option<String>,
    /// HTTP status, if the record says so. Negative: the crawler's own code for a failure.
    pub status: Option<i32>,
    /// Digest of the page's content, if the record has one: by it two visits tell whether the page changed.
    pub digest: Digest,
    /// Where a 3xx answer points. It is then the page's only link.
    pub redirect: Option<Cow<'a, [u8]>>,
    /// The links in document order; of more than 3 x 2^20, the first 3 x 2^20 + 1.
    pub links: Vec<Link<'a>>,
    /// The page was found unchanged (`revisit`, or status 304): its links are unknown, not none.
    pub revisit: bool,
    /// Of a page that was found unchanged: another URL with the same content. It is the page's only link until a record has
    /// the page's own links.
    pub same_as: Option<Cow<'a, [u8]>>,
    /// The page's fetches so far, which the record tells in place of one.
    pub totals: Option<FetchTotals>,
}

/// How names are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// URLs: put in canonical form, relative links joined.
    Url,
    /// Opaque node names, taken byte for byte.
    Opaque,
}

/// Links for which a record keeps room.
const LINKS_KEPT: usize = 1 << 15;

impl<'a> Record<'a> {
    /// A page with links, of which nothing else is known.
    ///
    /// ```
    /// use cashrank::{Link, Record, Rel};
    ///
    /// let page = Record::new("http://a.example/", ["/b", "http://c.example/"]);
    /// assert_eq!(page.links[0], Link::to(&b"/b"[..]));
    /// // What else is known has a field.
    /// let mut page = Record {
    ///     fetched_at: Some(1_700_000_000),
    ///     status: Some(200),
    ///     ..page
    /// };
    /// page.links[1].rel = Rel::NOFOLLOW;
    /// ```
    pub fn new(url: &'a str, links: impl IntoIterator<Item = &'a str>) -> Record<'a> {
        let links = links.into_iter().map(|link| Link::to(link.as_bytes()));
        Record {
            url: Cow::Borrowed(url.as_bytes()),
            links: links.collect(),
            ..Record::default()
        }
    }

    /// Makes the record empty, keeping the room for links unless it is large.
    pub fn clear(&mut self) {
        let mut links = std::mem::take(&mut self.links);
        links.clear();
        links.shrink_to(LINKS_KEPT);
        *self = Record {
            links,
            ..Record::default()
        };
    }

    /// The same record, borrowing nothing.
    pub fn into_owned(self) -> Record<'static> {
        let owned = |text: Cow<'a, [u8]>| Cow::Owned(text.into_owned());
        let link = |link: Link<'a>| Link {
            url: Cow::Owned(link.url.into_owned()),
            rel: link.rel,
            weight: link.weight,
        };
        Record {
            url: owned(self.url),
            base: self.base.map(owned),
            fetched_at: self.fetched_at,
            bad_time: self.bad_time,
            status: self.status,
            digest: self.digest,
            redirect: self.redirect.map(owned),
            links: self.links.into_iter().map(link).collect(),
            revisit: self.revisit,
            same_as: self.same_as.map(owned),
            totals: self.totals,
        }
    }
}

/// Keeps a link, unless there are more than any limit allows already.
pub(crate) fn keep<'a>(links: &mut Vec<Link<'a>>, link: impl Into<Link<'a>>) {
    if links.len() <= LINKS_MAX {
        links.push(link.into());
    }
}

/// Returns whether a `Location` given with this status is where the page points. 304 says "unchanged".
pub(crate) fn is_redirect(status: i32) -> bool {
    (300..400).contains(&status) && status != 304
}

/// Returns whether an answer of this status holds the page, or sends its reader on: 204 and 205 have no content, 206 a part
/// of it.
pub(crate) fn has_page(status: i32) -> bool {
    matches!(status, 200..=203 | 207..=303 | 305..=399)
}

/// One link as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<'a> {
    /// The target as written: absolute or relative, perhaps with a fragment.
    pub url: Cow<'a, [u8]>,
    /// The values of `rel` that the page gives it.
    pub rel: Rel,
    /// Its weight among the links of its page, 1 unless its record gives one; 0: the target is a page, but no link.
    pub weight: u32,
}

impl<'a> Link<'a> {
    /// A link of which the page says nothing.
    pub fn to(url: impl Into<Cow<'a, [u8]>>) -> Link<'a> {
        Link {
            url: url.into(),
            rel: Rel::default(),
            weight: 1,
        }
    }
}

impl<'a> From<Cow<'a, [u8]>> for Link<'a> {
    fn from(url: Cow<'a, [u8]>) -> Link<'a> {
        Link::to(url)
    }
}

/// Why a record was not applied. Each is counted apart and named in the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// Not what the format asks for: broken JSON, a missing field, a wrong type.
    Malformed,
    /// The bytes are not UTF-8 where the format asks for it.
    InvalidUtf8,
    /// The record has no usable URL of its own.
    BadUrl,
    /// The time cannot be read. Such records are used without a time, and reported; only archives made before
    /// that was so have them as skipped.
    BadTime,
    /// Longer than `--limit-line`.
    TooLong,
    /// Its own URL is longer than `--limit-url`.
    UrlTooLong,
    /// More links than `--limit-links`.
    TooManyLinks,
    /// The input ended inside the record.
    CutShort,
}

impl Reason {
    /// All reasons, in the order they are reported.
    pub const ALL: [Reason; 8] = [
        Reason::Malformed,
        Reason::InvalidUtf8,
        Reason::BadUrl,
        Reason::BadTime,
        Reason::TooLong,
        Reason::UrlTooLong,
        Reason::TooManyLinks,
        Reason::CutShort,
    ];

    /// The name used in `--json` output and in the summary.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Malformed => "malformed",
            Reason::InvalidUtf8 => "invalid-utf8",
            Reason::BadUrl => "bad-url",
            Reason::BadTime => "bad-time",
            Reason::TooLong => "too-long",
            Reason::UrlTooLong => "url-too-long",
            Reason::TooManyLinks => "too-many-links",
            Reason::CutShort => "cut-short",
        }
    }
}

/// The result of decoding one record's bytes.
#[derive(Debug)]
pub enum Parsed<'r, 'a> {
    /// A crawl record.
    Record(&'r Record<'a>),
    /// A record that cannot be read; `detail` is for people, one line, without position.
    Bad {
        /// By which it is counted.
        reason: Reason,
        /// What is wrong.
        detail: String,
    },
    /// Rightly no crawl record: a comment, a blank line, a WARC `request`. `kind` names it.
    Other {
        /// What it is.
        kind: &'static str,
    },
    /// No record, and not the end of one: the next takes far more memory to read than its bytes. Who
    /// decodes on many threads does well to wait here until those before are done.
    Large,
}
