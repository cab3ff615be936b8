//! Namespaces of a page in XML, as far as elements need them
//! ([Namespaces in XML 1.0](https://www.w3.org/TR/xml-names/)).

/// What an element is, by its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Html,
    /// SVG or MathML.
    Foreign,
    Other,
}

impl Kind {
    fn of(namespace: &[u8]) -> Kind {
        match namespace {
            b"http://www.w3.org/1999/xhtml" => Kind::Html,
            b"http://www.w3.org/2000/svg" | b"http://www.w3.org/1998/Math/MathML" => Kind::Foreign,
            _ => Kind::Other,
        }
    }
}

/// The namespaces that are declared where reading has come to.
#[derive(Debug)]
pub(super) struct Namespaces<'t> {
    /// What an element without a namespace is.
    without: Kind,
    /// The root is not looked at yet, and must be `html`.
    at_root: bool,
    /// Open elements.
    depth: usize,
    declared: Vec<Declared<'t>>,
}

/// A prefix (empty: none) and what it stands for, in the element of this depth.
#[derive(Debug)]
struct Declared<'t> {
    depth: usize,
    prefix: &'t [u8],
    kind: Kind,
}

impl<'t> Namespaces<'t> {
    /// Begins a document. If it is served as XHTML, elements without a namespace are XHTML, too; else the root must be `html`
    /// of XHTML.
    pub fn new(served_as_xhtml: bool) -> Namespaces<'t> {
        Namespaces {
            without: if served_as_xhtml {
                Kind::Html
            } else {
                Kind::Other
            },
            at_root: !served_as_xhtml,
            depth: 0,
            declared: Vec::new(),
        }
    }

    /// Takes a start tag with its declarations, and gives the element's kind and its name without the prefix. `None`: the
    /// document is no page.
    pub fn start(
        &mut self,
        name: &'t [u8],
        declared: &[(&'t [u8], &'t [u8])],
        is_empty: bool,
    ) -> Option<(Kind, &'t [u8])> {
        let depth = self.depth + 1;
        self.declared
            .extend(declared.iter().map(|&(prefix, namespace)| Declared {
                depth,
                prefix,
                kind: Kind::of(namespace),
            }));
        let colon = name.iter().position(|&byte| byte == b':');
        let (prefix, name) = colon.map_or((&name[..0], name), |at| (&name[..at], &name[at + 1..]));
        let of_prefix = |declared: &&Declared<'_>| declared.prefix == prefix;
        let kind = match self.declared.iter().rev().find(of_prefix) {
            Some(declared) => declared.kind,
            None if prefix.is_empty() => self.without,
            None => Kind::Other,
        };
        if std::mem::take(&mut self.at_root) && (kind, name) != (Kind::Html, b"html") {
            return None;
        }
        self.depth = depth;
        if is_empty {
            self.end();
        }
        Some((kind, name))
    }

    /// Takes an end tag. Those of the root stay: in a broken page more may be closed than was opened.
    pub fn end(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        let depth = self.depth.max(1);
        while self.declared.last().is_some_and(|last| last.depth > depth) {
            self.declared.pop();
        }
    }
}
