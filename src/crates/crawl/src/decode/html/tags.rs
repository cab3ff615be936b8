//! Tokenizer for the tags and attributes that carry links, equivalent to the HTML standard's
//! ([13.2.5](https://html.spec.whatwg.org/multipage/parsing.html#tokenization)). Its states are positions in this code;
//! tests compare it with an independent tokenizer.
//!
//! The standard's tokenizer asks its tree builder two things: which elements hold only text, which follows from their
//! names, and whether a tag is in SVG or MathML, where elements may be empty (`<style/>`) and CDATA is text. There is no
//! tree here; [`Foreign`] counts open `svg` and `math` elements instead. Unlike in the standard, `style`, `script` and
//! `title` hold only text there, too: an `<svg>` that is never closed then does no harm.
//!
//! A page in XML is read by the same rules, as if all of it were in SVG.

use std::borrow::Cow;

use htmlize::{Context, unescape_bytes_in};
use memchr::{memchr, memchr2, memmem};

use super::Markup;
use crate::decode::lower_case;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    A,
    Area,
    Base,
    Meta,
}

/// Raw values of the attributes that are read, each the first of its name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attributes<'t> {
    pub href: Option<&'t [u8]>,
    pub rel: Option<&'t [u8]>,
    pub http_equiv: Option<&'t [u8]>,
    pub content: Option<&'t [u8]>,
    pub name: Option<&'t [u8]>,
    pub charset: Option<&'t [u8]>,
}

impl<'t> Attributes<'t> {
    fn add(&mut self, name: &[u8], value: &'t [u8]) {
        let attribute = match lower_case(name, &mut [0; 10]) {
            b"href" => &mut self.href,
            b"rel" => &mut self.rel,
            b"http-equiv" => &mut self.http_equiv,
            b"content" => &mut self.content,
            b"name" => &mut self.name,
            b"charset" => &mut self.charset,
            _ => return,
        };
        attribute.get_or_insert(value);
    }
}

/// Decodes an attribute's value as the tokenizer does, except for line ends, which no reader distinguishes.
pub fn decoded(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr2(b'&', 0, raw).is_none() {
        return Cow::Borrowed(raw);
    }
    let references = unescape_bytes_in(raw, Context::Attribute);
    if memchr(0, raw).is_none() {
        return references;
    }
    let mut whole = Vec::with_capacity(raw.len() + 16);
    for (at, part) in raw.split(|&byte| byte == 0).enumerate() {
        if at > 0 {
            whole.extend_from_slice("\u{FFFD}".as_bytes());
        }
        whole.extend_from_slice(&unescape_bytes_in(part, Context::Attribute));
    }
    Cow::Owned(whole)
}

/// Calls `seen` for each relevant tag of a page, in order; for none if the root must be XHTML's `html` and is not.
pub(super) fn each<'t>(markup: Markup, text: &'t [u8], seen: impl FnMut(Tag, &Attributes<'t>)) {
    let mut tokenizer = Tokenizer {
        text,
        at: 0,
        foreign: Foreign::default(),
        is_xml: markup != Markup::Html,
        needs_xhtml: markup == Markup::Xml,
        seen,
    };
    let _ = tokenizer.run();
}

#[derive(Debug, Default)]
pub(super) struct Foreign(usize);

impl Foreign {
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.0 > 0
    }

    /// Takes a start tag; returns whether the element is empty, because it is in SVG or MathML and its tag ends in `/>`.
    #[inline]
    pub fn start(&mut self, name: &[u8], self_closing: bool) -> bool {
        if is_foreign(name) {
            self.0 += usize::from(!self_closing);
            return self_closing;
        }
        self_closing && self.is_inside()
    }

    #[inline]
    pub fn end(&mut self, name: &[u8]) {
        if is_foreign(name) {
            self.0 = self.0.saturating_sub(1);
        }
    }
}

#[inline]
fn ends_name(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>')
}

#[inline]
fn is_foreign(name: &[u8]) -> bool {
    matches!(name, b"svg" | b"math")
}

/// Its methods return `None` once the text has ended.
struct Tokenizer<'t, F> {
    text: &'t [u8],
    at: usize,
    foreign: Foreign,
    is_xml: bool,
    /// True until the root element was checked to be XHTML.
    needs_xhtml: bool,
    seen: F,
}

impl<'t, F: FnMut(Tag, &Attributes<'t>)> Tokenizer<'t, F> {
    fn run(&mut self) -> Option<()> {
        loop {
            self.at += memchr(b'<', self.rest())? + 1;
            match self.peek()? {
                byte if byte.is_ascii_alphabetic() => self.start_tag()?,
                b'/' => {
                    self.at += 1;
                    match self.peek()? {
                        byte if byte.is_ascii_alphabetic() => self.end_tag()?,
                        _ => self.skip_past(b">")?,
                    }
                }
                b'!' => self.declaration()?,
                b'?' if self.is_xml => self.skip_past(b"?>")?,
                b'?' => self.skip_past(b">")?,
                _ => {}
            }
        }
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_past(&mut self, end: &[u8]) -> Option<()> {
        self.at += memmem::find(self.rest(), end)? + end.len();
        Some(())
    }

    /// Starts after the `<!`.
    fn declaration(&mut self) -> Option<()> {
        let rest = &self.rest()[1..];
        if rest.starts_with(b"--") {
            self.at += 3;
            self.comment()
        } else if rest.starts_with(b"[CDATA[") && (self.is_xml || self.foreign.is_inside()) {
            self.skip_past(b"]]>")
        } else {
            self.skip_past(b">")
        }
    }

    /// Starts after the `<!--`.
    fn comment(&mut self) -> Option<()> {
        if self.passes(b">") || self.passes(b"->") {
            return Some(());
        }
        loop {
            self.skip_past(b"--")?;
            if self.passes(b">") || self.passes(b"!>") {
                return Some(());
            }
            self.at -= 1; // The second dash may be the first of the `--` that ends the comment.
        }
    }

    /// Skips a text if it comes next; returns whether it does.
    fn passes(&mut self, text: &[u8]) -> bool {
        let is_next = self.rest().starts_with(text);
        self.at += text.len() * usize::from(is_next);
        is_next
    }

    fn name(&mut self) -> &'t [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|byte| ends_name(*byte));
        let name = &rest[..end.unwrap_or(rest.len())];
        self.at += name.len();
        name
    }

    /// Starts after the `<`, at a letter.
    fn start_tag(&mut self) -> Option<()> {
        let mut lower = [0; LONGEST];
        let name = lower_case(self.name(), &mut lower);
        if std::mem::take(&mut self.needs_xhtml) {
            return self.xhtml_root(name);
        }
        let tag = match name {
            b"a" => Some(Tag::A),
            b"area" => Some(Tag::Area),
            b"base" => Some(Tag::Base),
            b"meta" => Some(Tag::Meta),
            _ => None,
        };
        let mut attributes = Attributes::default();
        let self_closing = match tag {
            Some(_) => self.attributes(|name, value| attributes.add(name, value))?,
            None => self.attributes(|_, _| ())?,
        };
        if let Some(tag) = tag {
            (self.seen)(tag, &attributes);
        }
        let is_empty = self.foreign.start(name, self_closing) || (self.is_xml && self_closing);
        if is_empty {
            Some(())
        } else {
            self.content(name)
        }
    }

    /// Reads the attributes of the root element of this name; `None` if it is not `html` in the XHTML namespace.
    fn xhtml_root(&mut self, name: &[u8]) -> Option<()> {
        let mut is_xhtml = false;
        self.attributes(|attribute, value| {
            is_xhtml |= attribute == b"xmlns" && value == b"http://www.w3.org/1999/xhtml";
        })?;
        (is_xhtml && name == b"html").then_some(())
    }

    /// Starts after the `</`, at a letter.
    fn end_tag(&mut self) -> Option<()> {
        let mut lower = [0; LONGEST];
        let name = lower_case(self.name(), &mut lower);
        self.attributes(|_, _| ())?;
        self.foreign.end(name);
        Some(())
    }

    /// Skips to the end of an element of this name if it holds only text.
    fn content(&mut self, name: &[u8]) -> Option<()> {
        match name {
            b"textarea" | b"title" | b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => {
                while !self.is_at(b"</", name) {
                    self.at += 1;
                    self.at += memmem::find(self.rest(), b"</")?;
                }
                Some(())
            }
            b"script" => self.script(),
            b"plaintext" => None,
            _ => Some(()),
        }
    }

    fn is_at(&self, before: &[u8], name: &[u8]) -> bool {
        let Some(rest) = self.rest().strip_prefix(before) else {
            return false;
        };
        let Some((found, rest)) = rest.split_at_checked(name.len()) else {
            return false;
        };
        let ended = rest.first().is_some_and(|byte| ends_name(*byte));
        ended && found.eq_ignore_ascii_case(name)
    }

    /// Skips to the end of a script. Within `<!--`, a `<script>` hides the next `</script>`; `-->` ends both.
    fn script(&mut self) -> Option<()> {
        let (mut comment, mut hidden) = (false, false);
        loop {
            let next = if comment {
                memchr2(b'<', b'-', self.rest())
            } else {
                memchr(b'<', self.rest())
            };
            self.at += next?;
            let ends = self.is_at(b"</", b"script");
            if ends && !hidden {
                return Some(());
            }
            if ends {
                hidden = false;
            } else if !comment && self.rest().starts_with(b"<!--") {
                comment = true;
                self.at += 1; // The dashes of the `<!--` may also be those of a `-->`.
            } else if comment && self.rest().starts_with(b"-->") {
                (comment, hidden) = (false, false);
            } else if comment && self.is_at(b"<", b"script") {
                hidden = true;
            }
            self.at += 1;
        }
    }

    /// Reads from after the tag's name past its `>`; calls `found` for each attribute. Returns whether it ends in `/>`.
    #[inline]
    fn attributes(&mut self, mut found: impl FnMut(&'t [u8], &'t [u8])) -> Option<bool> {
        loop {
            self.skip_blanks();
            match self.peek()? {
                b'>' => {
                    self.at += 1;
                    return Some(false);
                }
                b'/' => {
                    self.at += 1;
                    if self.peek()? == b'>' {
                        self.at += 1;
                        return Some(true);
                    }
                }
                _ => {
                    let name = self.attribute_name();
                    self.skip_blanks();
                    let value = match self.peek()? {
                        b'=' => {
                            self.at += 1;
                            self.value()?
                        }
                        _ => &[],
                    };
                    found(name, value);
                }
            }
        }
    }

    fn attribute_name(&mut self) -> &'t [u8] {
        let rest = self.rest();
        let is_end = |byte: &u8| ends_name(*byte) || *byte == b'=';
        // A leading `=` belongs to the name.
        let more = rest.iter().skip(1).take_while(|byte| !is_end(byte)).count();
        self.at += 1 + more;
        &rest[..1 + more]
    }

    /// Starts after the `=`.
    fn value(&mut self) -> Option<&'t [u8]> {
        self.skip_blanks();
        let quote = self.peek()?;
        if !matches!(quote, b'"' | b'\'') {
            let rest = self.rest();
            let len = rest
                .iter()
                .position(|byte| byte.is_ascii_whitespace() || *byte == b'>')?;
            self.at += len;
            return Some(&rest[..len]);
        }
        self.at += 1;
        let rest = self.rest();
        let len = memchr(quote, rest)?;
        self.at += len + 1;
        Some(&rest[..len])
    }

    fn skip_blanks(&mut self) {
        let blanks = self
            .rest()
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace());
        self.at += blanks.count();
    }
}

const LONGEST: usize = 9;
