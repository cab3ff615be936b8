//! The links of an HTML page, by the HTML standard, as a crawler without scripting sees them. Specified in
//! `formats/html.md`.
//!
//! Tags are found where the standard's tokenizer finds them (`tags`); no tree is built. Text is
//! decoded first (`charset`), so that links are UTF-8 whatever the page is written in.

mod charset;
mod foreign;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(test)]
mod oracle;
mod prescan;
mod query;
mod refresh;
mod tags;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use encoding_rs::Encoding;

use super::Record;
use crate::model::{Link, keep};
use crate::rules::Rel;
use tags::{Attribute, Attributes, Tag};

/// Reads a page: its links, in document order, go behind `record.links`, its `<base href>` into `record.base`. All are
/// UTF-8 and borrow nothing. Never fails, whatever the bytes.
///
/// `body` is the page's text, not compressed; `charset` is what the HTTP header `Content-Type` names,
/// if anything. Takes time in proportion to the body and, for pages not in UTF-8, memory of at most
/// three times the body.
///
/// ```
/// use cashrank::decode::{Record, html};
///
/// let mut record = Record::default();
/// html::read(b"<base href=/docs/><a rel=nofollow href='a?b=1&amp;c'>", None, &mut record);
/// assert_eq!(record.base.as_deref(), Some(&b"/docs/"[..]));
/// assert_eq!(*record.links[0].url, *b"a?b=1&c");
/// ```
pub fn read(body: &[u8], charset: Option<&[u8]>, record: &mut Record<'_>) {
    let (encoding, text) = charset::decode(body, charset);
    let first = record.links.len();
    record.base = None;
    let mut nofollow = false;
    tags::each(&text, |tag, attributes| match tag {
        Tag::A | Tag::Area => record_link(attributes, encoding, record),
        Tag::Base => {
            let href = || {
                attributes
                    .get(Attribute::Href)
                    .map(|href| Cow::Owned(href.into_owned()))
            };
            record.base = record.base.take().or_else(href);
        }
        Tag::Meta => {
            record_refresh(attributes, encoding, record);
            nofollow |= is_nofollow(attributes);
        }
    });
    if nofollow {
        for link in &mut record.links[first..] {
            link.rel = link.rel.with(Rel::NOFOLLOW);
        }
    }
}

fn record_link(attributes: &Attributes<'_>, encoding: &'static Encoding, record: &mut Record<'_>) {
    if let Some(href) = attributes.get(Attribute::Href) {
        let rel = attributes.get(Attribute::Rel);
        let url = Cow::Owned(query::encoded(href.into_owned(), encoding));
        let rel = rel.map(|rel| Rel::of(&rel)).unwrap_or_default();
        keep(&mut record.links, Link { url, rel });
    }
}

fn record_refresh(
    attributes: &Attributes<'_>,
    encoding: &'static Encoding,
    record: &mut Record<'_>,
) {
    let Some(content) = attributes.get(Attribute::Content) else {
        return;
    };
    if is(attributes, Attribute::HttpEquiv, b"refresh")
        && let Some(url) = refresh::url(&content)
    {
        let url = query::encoded(url.to_vec(), encoding);
        keep(&mut record.links, Link::to(url));
    }
}

/// Whether it is a `<meta name=robots>` that vouches for no link of the page.
fn is_nofollow(attributes: &Attributes<'_>) -> bool {
    let says = |content: Cow<'_, [u8]>| {
        let mut words = content.split(|byte| *byte == b',' || byte.is_ascii_whitespace());
        words.any(|word| {
            word.eq_ignore_ascii_case(b"nofollow") || word.eq_ignore_ascii_case(b"none")
        })
    };
    is(attributes, Attribute::Name, b"robots")
        && attributes.get(Attribute::Content).is_some_and(says)
}

/// Whether an attribute has this value, in any case.
fn is(attributes: &Attributes<'_>, attribute: Attribute, value: &[u8]) -> bool {
    let found = attributes.get(attribute);
    found.is_some_and(|found| found.eq_ignore_ascii_case(value))
}
