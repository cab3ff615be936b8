//! Namespaces of a page in XML, as far as its elements need them ([Namespaces in XML
//! 1.0](https://www.w3.org/TR/xml-names/)).

/// Kind of an element, by its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    Html,
    /// SVG or MathML.
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

/// Namespace declarations in scope at the reading position.
#[derive(Debug)]
pub(super) struct Namespaces<'t> {
    /// Kind of elements without a prefix.
    without: ElementKind,
    /// True until the root element, which must be `html`, has been checked.
    at_root: bool,
    /// Number of open elements.
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

    /// Takes a start tag with its declarations; returns the element's kind and its local name. `None`: the document is
    /// not a page.
    pub fn start(
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
    pub fn end(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        let depth = self.depth.max(1);
        while self.declared.last().is_some_and(|last| last.depth > depth) {
            self.declared.pop();
        }
    }
}
