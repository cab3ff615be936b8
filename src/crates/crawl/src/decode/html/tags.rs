//! Tokenizer for the tags and attributes that carry links, equivalent to the HTML standard's
//! ([13.2.5](https://html.spec.whatwg.org/multipage/parsing.html#tokenization)). Its states are positions in this code;
//! tests compare it with an independent tokenizer. Irrelevant text and tags, most of a page, are skipped without being
//! stored.
//!
//! The standard's tokenizer asks its tree builder two things: which elements hold only text, which follows from their
//! names, and whether a tag is in SVG or MathML, where no element holds only text and where CDATA is text. There is no
//! tree here; [`Foreign`] tracks the surrounding elements instead.
//!
//! In a page in XML the same tags are found by XML's syntax: names are case-sensitive and have a namespace, any element
//! may be empty, none holds only text, and CDATA and processing instructions may be anywhere. Errors of syntax are
//! ignored.

use std::borrow::Cow;

use htmlize::{Context, unescape_bytes_in};
use memchr::{memchr, memchr2, memmem};

use super::foreign::Foreign;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    A,
    Area,
    Base,
    Meta,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribute {
    Href,
    Rel,
    HttpEquiv,
    Content,
    Name,
    Charset,
}

pub(super) const ATTRIBUTES: [(&[u8], Attribute); 6] = [
    (b"href", Attribute::Href),
    (b"rel", Attribute::Rel),
    (b"http-equiv", Attribute::HttpEquiv),
    (b"content", Attribute::Content),
    (b"name", Attribute::Name),
    (b"charset", Attribute::Charset),
];

/// Attributes of one tag. If an attribute occurs twice, the first one counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attributes<'t>([Option<&'t [u8]>; ATTRIBUTES.len()]);

impl<'t> Attributes<'t> {
    /// Returns the value with character references decoded; empty if the attribute has only a name.
    pub(super) fn get(&self, attribute: Attribute) -> Option<Cow<'t, [u8]>> {
        self.0[attribute as usize].map(decoded)
    }

    fn add(&mut self, name: &[u8], value: &'t [u8]) {
        let known = ATTRIBUTES
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known));
        if let Some(&(_, attribute)) = known {
            self.0[attribute as usize].get_or_insert(value);
        }
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

pub(super) fn each<'t>(text: &'t [u8], seen: impl FnMut(Tag, &Attributes<'t>)) {
    let _ = Tokenizer::new(text, None, seen).run();
}

/// Calls `seen` for each relevant tag of a page in XML, in order. `text` must be UTF-8.
pub(super) fn each_xml<'t>(
    text: &'t [u8],
    namespaces: Namespaces<'t>,
    seen: impl FnMut(Tag, &Attributes<'t>),
) {
    let _ = Tokenizer::new(text, Some(namespaces), seen).run_xml();
}

/// Tokenizer of one page. Its methods return `None` once the text has ended.
struct Tokenizer<'t, F> {
    text: &'t [u8],
    at: usize,
    foreign: Foreign,
    xml: Option<Namespaces<'t>>,
    seen: F,
}

impl<'t, F: FnMut(Tag, &Attributes<'t>)> Tokenizer<'t, F> {
    fn new(text: &'t [u8], xml: Option<Namespaces<'t>>, seen: F) -> Tokenizer<'t, F> {
        Tokenizer {
            text,
            at: 0,
            foreign: Foreign::default(),
            xml,
            seen,
        }
    }

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
                b'?' => self.skip_past(b">")?,
                _ => {}
            }
        }
    }

    /// Reads a page in XML. Returns `None` at the end of the text, or if the document is not a page.
    fn run_xml(&mut self) -> Option<()> {
        loop {
            self.at += memchr(b'<', self.rest())? + 1;
            match self.rest() {
                [b'/', ..] => {
                    self.skip_past(b">")?;
                    self.xml.as_mut()?.end();
                }
                [b'?', ..] => self.skip_past(b"?>")?,
                [b'!', b'-', b'-', ..] => self.skip_past(b"-->")?,
                [b'!', rest @ ..] if rest.starts_with(b"[CDATA[") => self.skip_past(b"]]>")?,
                [b'!', ..] => self.document_type()?,
                [byte, ..] if is_xml_name_start(*byte) => self.start_xml()?,
                _ => {}
            }
        }
    }

    /// Skips a `<!DOCTYPE`, which may hold declarations; starts after the `<`.
    fn document_type(&mut self) -> Option<()> {
        let mut open = 1;
        while open > 0 {
            let rest = self.rest();
            if rest.starts_with(b"<!--") {
                self.skip_past(b"-->")?;
                continue;
            }
            if rest.starts_with(b"<?") {
                self.skip_past(b"?>")?;
                continue;
            }
            self.at += 1;
            match rest.first()? {
                b'<' => open += 1,
                b'>' => open -= 1,
                // An unpaired quote is ignored.
                quote @ (b'"' | b'\'') => {
                    self.at += memchr(*quote, self.rest()).map_or(0, |len| len + 1);
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Reads a start tag in XML; starts after the `<`.
    fn start_xml(&mut self) -> Option<()> {
        let name = self.name();
        let mut attributes = Attributes::default();
        let mut declared = Vec::new();
        let is_empty = self.attributes(|name, value| match name {
            b"xmlns" => declared.push((&name[name.len()..], value)),
            _ => match name.strip_prefix(b"xmlns:") {
                Some(prefix) => declared.push((prefix, value)),
                None if name.iter().any(u8::is_ascii_uppercase) => {}
                None => attributes.add(name, value),
            },
        })?;
        let (kind, name) = self.xml.as_mut()?.start(name, &declared, is_empty)?;
        let tag = match (kind, name) {
            (ElementKind::Html | ElementKind::Foreign, b"a") => Tag::A,
            (ElementKind::Html, b"area") => Tag::Area,
            (ElementKind::Html, b"base") => Tag::Base,
            (ElementKind::Html, b"meta") => Tag::Meta,
            _ => return Some(()),
        };
        (self.seen)(tag, &attributes);
        Some(())
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

    /// Skips a comment, CDATA, a DOCTYPE or a bogus comment; starts after the `<!`.
    fn declaration(&mut self) -> Option<()> {
        let rest = &self.rest()[1..];
        if rest.starts_with(b"--") {
            self.at += 3;
            self.comment()
        } else if rest.starts_with(b"[CDATA[") && self.foreign.is_inside() {
            self.skip_past(b"]]>")
        } else {
            self.skip_past(b">")
        }
    }

    /// Skips a comment; starts after the `<!--`.
    fn comment(&mut self) -> Option<()> {
        for short in [&b">"[..], b"->"] {
            if self.rest().starts_with(short) {
                self.at += short.len();
                return Some(());
            }
        }
        loop {
            self.skip_past(b"--")?;
            for end in [&b">"[..], b"!>"] {
                if self.rest().starts_with(end) {
                    self.at += end.len();
                    return Some(());
                }
            }
            self.at -= 1; // The second dash may be the first of the `--` that ends the comment.
        }
    }

    fn name(&mut self) -> &'t [u8] {
        let rest = self.rest();
        let end = rest
            .iter()
            .position(|byte| is_blank(*byte) || matches!(byte, b'/' | b'>'));
        let name = &rest[..end.unwrap_or(rest.len())];
        self.at += name.len();
        name
    }

    /// Starts after the `<`, at a letter.
    fn start_tag(&mut self) -> Option<()> {
        let mut lower = [0; LONGEST];
        let name = lower_case(self.name(), &mut lower);
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
        let foreign = self.foreign.start(name, self_closing);
        if let Some(tag) = tag.filter(|&tag| !foreign || tag == Tag::A) {
            (self.seen)(tag, &attributes);
        }
        if foreign {
            Some(())
        } else {
            self.content(name)
        }
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
        let ended = rest
            .first()
            .is_some_and(|byte| is_blank(*byte) || matches!(byte, b'/' | b'>'));
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
        let is_end = |byte: &u8| is_blank(*byte) || matches!(byte, b'/' | b'>' | b'=');
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
                .position(|byte| is_blank(*byte) || *byte == b'>')?;
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
        let blanks = self.rest().iter().take_while(|byte| is_blank(**byte));
        self.at += blanks.count();
    }
}

const LONGEST: usize = 13;

/// Returns the name in lower case; empty if it is too long to be relevant.
fn lower_case<'n>(name: &[u8], lower: &'n mut [u8; LONGEST]) -> &'n [u8] {
    let Some(lower) = lower.get_mut(..name.len()) else {
        return &[];
    };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    lower
}

/// Returns whether a name in XML may begin with this byte; most characters beyond ASCII may.
fn is_xml_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || !byte.is_ascii()
}

/// Counts a carriage return as a blank, because it is a line end.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0C' | b'\r' | b' ')
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementKind {
    Html,
    Foreign,
    Other,
}

impl ElementKind {
    fn of(namespace: &[u8]) -> ElementKind {
        match namespace {
            b"http://www.w3.org/1999/xhtml" => ElementKind::Html,
            b"http://www.w3.org/2000/svg" | b"http://www.w3.org/1998/Math/MathML" => {
                ElementKind::Foreign
            }
            _ => ElementKind::Other,
        }
    }
}

/// Namespace declarations in scope at the reading position of a page in XML, as far as its elements need them
/// ([Namespaces in XML 1.0](https://www.w3.org/TR/xml-names/)).
#[derive(Debug)]
pub(super) struct Namespaces<'t> {
    without: ElementKind,
    /// True until the root element, which must be `html`, has been checked.
    at_root: bool,
    depth: usize,
    declared: Vec<Declared<'t>>,
}

/// Declaration of a prefix (empty: the default namespace) by the element at this depth.
#[derive(Debug)]
struct Declared<'t> {
    depth: usize,
    prefix: &'t [u8],
    kind: ElementKind,
}

impl<'t> Namespaces<'t> {
    /// Begins a document. If it is served as XHTML, elements without a namespace count as XHTML; otherwise the root
    /// must be `html` in the XHTML namespace.
    pub fn new(served_as_xhtml: bool) -> Namespaces<'t> {
        Namespaces {
            without: if served_as_xhtml {
                ElementKind::Html
            } else {
                ElementKind::Other
            },
            at_root: !served_as_xhtml,
            depth: 0,
            declared: Vec::new(),
        }
    }

    /// Takes a start tag; returns the element's kind and its local name, or `None` if the document is not a page.
    fn start(
        &mut self,
        name: &'t [u8],
        declared: &[(&'t [u8], &'t [u8])],
        is_empty: bool,
    ) -> Option<(ElementKind, &'t [u8])> {
        let depth = self.depth + 1;
        self.declared
            .extend(declared.iter().map(|&(prefix, namespace)| Declared {
                depth,
                prefix,
                kind: ElementKind::of(namespace),
            }));
        let colon = name.iter().position(|&byte| byte == b':');
        let (prefix, name) = colon.map_or((&name[..0], name), |at| (&name[..at], &name[at + 1..]));
        let of_prefix = |declared: &&Declared<'_>| declared.prefix == prefix;
        let kind = match self.declared.iter().rev().find(of_prefix) {
            Some(declared) => declared.kind,
            None if prefix.is_empty() => self.without,
            None => ElementKind::Other,
        };
        if std::mem::take(&mut self.at_root) && (kind, name) != (ElementKind::Html, b"html") {
            return None;
        }
        self.depth = depth;
        if is_empty {
            self.end();
        }
        Some((kind, name))
    }

    /// Takes an end tag. The root's declarations stay: a malformed page may close more elements than it opened.
    fn end(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        let depth = self.depth.max(1);
        while self.declared.last().is_some_and(|last| last.depth > depth) {
            self.declared.pop();
        }
    }
}
