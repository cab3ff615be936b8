//! Tracks which tags are in SVG or MathML, without a tree, by the HTML standard's "parsing tokens in foreign content".
//!
//! One rule is approximated: an end tag of an HTML element ends the surrounding SVG and MathML only if that element was
//! opened outside. HTML elements cannot be inside, so every end tag of one is assumed to end them.

/// Open SVG and MathML elements, and the HTML embedded in them.
#[derive(Debug, Default)]
pub(super) struct Foreign(Vec<ForeignLevel>);

/// Open element that changes the parsing rules of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForeignLevel {
    Svg,
    Math,
    /// Element of SVG or MathML that holds HTML.
    Html(&'static [u8]),
}

fn is_breaking(name: &[u8]) -> bool {
    matches!(
        name,
        b"b" | b"big"
            | b"blockquote"
            | b"body"
            | b"br"
            | b"center"
            | b"code"
            | b"dd"
            | b"div"
            | b"dl"
            | b"dt"
            | b"em"
            | b"embed"
            | b"h1"
            | b"h2"
            | b"h3"
            | b"h4"
            | b"h5"
            | b"h6"
            | b"head"
            | b"hr"
            | b"i"
            | b"img"
            | b"li"
            | b"listing"
            | b"menu"
            | b"meta"
            | b"nobr"
            | b"ol"
            | b"p"
            | b"pre"
            | b"ruby"
            | b"s"
            | b"small"
            | b"span"
            | b"strong"
            | b"strike"
            | b"sub"
            | b"sup"
            | b"table"
            | b"tt"
            | b"u"
            | b"ul"
            | b"var"
    )
}

impl Foreign {
    /// Returns whether the reading position is in SVG or MathML, and not in HTML embedded in them.
    #[inline]
    pub(super) fn is_inside(&self) -> bool {
        matches!(self.0.last(), Some(ForeignLevel::Svg | ForeignLevel::Math))
    }

    /// Takes a start tag; returns whether the element belongs to SVG or MathML.
    #[inline]
    pub(super) fn start(&mut self, name: &[u8], self_closing: bool) -> bool {
        let level = match name {
            b"svg" => Some(ForeignLevel::Svg),
            b"math" => Some(ForeignLevel::Math),
            _ => None,
        };
        if !self.is_inside() {
            self.0.extend(level.filter(|_| !self_closing));
            return level.is_some();
        }
        if is_breaking(name) {
            self.leave();
            return false;
        }
        if !self_closing {
            let level = level.or_else(|| self.holder(name).map(ForeignLevel::Html));
            self.0.extend(level);
        }
        true
    }

    #[inline]
    pub(super) fn end(&mut self, name: &[u8]) {
        if self.0.is_empty() {
            return;
        }
        let ended = |level: &ForeignLevel| match level {
            ForeignLevel::Svg => name == b"svg",
            ForeignLevel::Math => name == b"math",
            ForeignLevel::Html(holder) => name == *holder,
        };
        if let Some(at) = self.0.iter().rposition(ended) {
            self.0.truncate(at);
        } else if is_breaking(name) {
            self.leave();
        }
    }

    /// Closes levels until the reading position is in HTML.
    fn leave(&mut self) {
        while self.is_inside() {
            self.0.pop();
        }
    }

    /// Returns the static name of an element that holds HTML.
    fn holder(&self, name: &[u8]) -> Option<&'static [u8]> {
        let of_svg: [&[u8]; 3] = [b"foreignobject", b"desc", b"title"];
        let of_math: [&[u8]; 5] = [b"mi", b"mo", b"mn", b"ms", b"mtext"];
        let mut holders = match self.0.last() {
            Some(ForeignLevel::Svg) => of_svg.iter(),
            _ => of_math.iter(),
        };
        holders.find(|known| **known == name).copied()
    }
}
