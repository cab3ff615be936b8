//! Which tags stand in SVG or MathML, by the HTML standard's "rules for parsing tokens in foreign content", as far
//! as they can be followed without a tree.
//!
//! Where they cannot: an end tag of an HTML element ends SVG and MathML around it only if that element was opened
//! outside. Such elements cannot stand inside, so each such end tag is taken to do so.

/// The SVG and MathML elements around, and the HTML in them.
#[derive(Debug, Default)]
pub(super) struct Foreign(Vec<Level>);

/// An element whose content has other rules than what is around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// `<svg>`: foreign.
    Svg,
    /// `<math>`: foreign.
    Math,
    /// An element of those, by its place in [`HOLDERS`], that holds HTML.
    Html(u8),
}

/// The elements of SVG and MathML (the first [`OF_SVG`], the others) that hold HTML.
const HOLDERS: [&[u8]; 8] = [
    b"foreignobject",
    b"desc",
    b"title",
    b"mi",
    b"mo",
    b"mn",
    b"ms",
    b"mtext",
];
const OF_SVG: u8 = 3;

/// HTML elements that cannot stand in SVG and MathML: there, their start tags end those.
const BREAKING: [&[u8]; 44] = [
    b"b",
    b"big",
    b"blockquote",
    b"body",
    b"br",
    b"center",
    b"code",
    b"dd",
    b"div",
    b"dl",
    b"dt",
    b"em",
    b"embed",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"head",
    b"hr",
    b"i",
    b"img",
    b"li",
    b"listing",
    b"menu",
    b"meta",
    b"nobr",
    b"ol",
    b"p",
    b"pre",
    b"ruby",
    b"s",
    b"small",
    b"span",
    b"strong",
    b"strike",
    b"sub",
    b"sup",
    b"table",
    b"tt",
    b"u",
    b"ul",
    b"var",
];

impl Foreign {
    /// Returns whether what comes next stands in SVG or MathML, not in HTML held by them.
    #[inline]
    pub(super) fn is_inside(&self) -> bool {
        matches!(self.0.last(), Some(Level::Svg | Level::Math))
    }

    /// Takes a start tag; whether the element is one of SVG or MathML.
    #[inline]
    pub(super) fn start(&mut self, name: &[u8], self_closing: bool) -> bool {
        let level = match name {
            b"svg" => Some(Level::Svg),
            b"math" => Some(Level::Math),
            _ => None,
        };
        if !self.is_inside() {
            self.0.extend(level.filter(|_| !self_closing));
            return level.is_some();
        }
        if BREAKING.contains(&name) {
            self.leave();
            return false;
        }
        if !self_closing {
            let level = level.or_else(|| self.holder(name).map(Level::Html));
            self.0.extend(level);
        }
        true
    }

    /// Takes an end tag.
    #[inline]
    pub(super) fn end(&mut self, name: &[u8]) {
        if self.0.is_empty() {
            return;
        }
        let ended = |level: &Level| match level {
            Level::Svg => name == b"svg",
            Level::Math => name == b"math",
            Level::Html(holder) => HOLDERS.get(usize::from(*holder)) == Some(&name),
        };
        if let Some(at) = self.0.iter().rposition(ended) {
            self.0.truncate(at);
        } else if BREAKING.contains(&name) {
            self.leave();
        }
    }

    /// Back to HTML.
    fn leave(&mut self) {
        while self.is_inside() {
            self.0.pop();
        }
    }

    fn holder(&self, name: &[u8]) -> Option<u8> {
        let of_svg = self.0.last() == Some(&Level::Svg);
        let holders = (0..).zip(HOLDERS);
        let found = holders.filter(|(at, _)| (*at < OF_SVG) == of_svg);
        found
            .filter(|(_, known)| *known == name)
            .map(|(at, _)| at)
            .next()
    }
}
