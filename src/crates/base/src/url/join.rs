//! Joins relative links to the page they stand on, or to its `<base href>`.
//!
//! The front of the base and the link are copied if a scan shows that the parser would keep the link's bytes; all other
//! links go to the parser.

use std::cell::OnceCell;

use ::url::Url;

use super::{Reject, append_parsed, is_foreign_base, name_of, names_host, scan};

/// Base of relative links, which is resolved at the first one.
#[derive(Debug)]
pub struct LinkBase<'a> {
    page: &'a [u8],
    href: Option<&'a [u8]>,
    joint: OnceCell<Result<Joint, Reject>>,
}

/// Base in canonical form, with the offsets at which links are joined.
#[derive(Debug)]
struct Joint {
    text: Vec<u8>,
    /// Offset of the path.
    root: usize,
    /// Offset after the path's last `/`.
    dir: usize,
    /// Offset of the path's end.
    query: usize,
    /// Parsed form, if it was needed.
    url: OnceCell<Option<Url>>,
}

impl<'a> LinkBase<'a> {
    /// Returns a base: `page` is the page's own URL, `href` its `<base href>`, itself relative to `page`. As in HTML,
    /// an `href` that is not a URL, or a `data:` or `javascript:` one, counts as absent. If the base is over the limit
    /// or of another scheme, or `page` is not a URL, each relative link is rejected for that reason. The target of a
    /// redirect is relative to the page, whatever its `<base href>`.
    pub fn new(page: &'a [u8], href: Option<&'a [u8]>) -> LinkBase<'a> {
        LinkBase {
            page,
            href,
            joint: OnceCell::new(),
        }
    }

    /// Joins the trimmed `link`, which has no scheme, and appends the canonical form to `out`.
    pub(super) fn join(&self, link: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Reject> {
        let joint = self.joint(limit)?;
        match joint.join_plain(link, out) {
            Some(()) => Ok(()),
            None => joint.join_parsed(link, out),
        }
    }

    /// Joins a link of [`Scheme::Bare`](super::Scheme::Bare) and appends the canonical form to `out`.
    pub(super) fn join_bare(
        &self,
        link: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Reject> {
        match self.joint(limit) {
            Ok(joint) => joint.join_parsed(link, out),
            // Only a base of the link's own scheme makes it relative.
            Err(Reject::Scheme) => append_parsed(link, None, out),
            Err(reject) => Err(reject),
        }
    }

    /// Returns whether a link was left to the parser.
    #[cfg(test)]
    pub(super) fn is_parsed(&self) -> bool {
        matches!(self.joint.get(), Some(Ok(joint)) if joint.url.get().is_some())
    }

    fn joint(&self, limit: usize) -> Result<&Joint, Reject> {
        self.joint
            .get_or_init(|| Joint::new(resolve(self.page, self.href, limit)?))
            .as_ref()
            .map_err(|&reject| reject)
    }
}

/// Returns the canonical form of the base.
fn resolve(page: &[u8], href: Option<&[u8]>, limit: usize) -> Result<Vec<u8>, Reject> {
    if let Some(href) = href {
        let page = LinkBase::new(page, None);
        match name_of(href, Some(&page), limit) {
            Ok(name) => return Ok(name),
            Err(Reject::Invalid) => {}
            Err(Reject::Scheme) if !is_foreign_base(href) => {}
            Err(reject) => return Err(reject),
        }
    }
    name_of(page, None, limit)
}

impl Joint {
    fn new(text: Vec<u8>) -> Result<Joint, Reject> {
        let host = if text.starts_with(b"https:") { 8 } else { 7 };
        let after = text.get(host..).ok_or(Reject::Invalid)?;
        let root = host + memchr::memchr(b'/', after).ok_or(Reject::Invalid)?;
        let query = memchr::memchr(b'?', &text).unwrap_or(text.len());
        let dir = 1 + memchr::memrchr(b'/', &text[..query]).ok_or(Reject::Invalid)?;
        Ok(Joint {
            text,
            root,
            dir,
            query,
            url: OnceCell::new(),
        })
    }

    /// Joins `link` by the parser. On error `out` is unchanged.
    fn join_parsed(&self, link: &[u8], out: &mut Vec<u8>) -> Result<(), Reject> {
        if names_host(link) {
            // Not joined: the parser would find no host after three slashes.
            return append_parsed(&[self.scheme(), link].concat(), None, out);
        }
        let url = self
            .url
            .get_or_init(|| std::str::from_utf8(&self.text).ok()?.parse().ok());
        append_parsed(link, Some(url.as_ref().ok_or(Reject::Invalid)?), out)
    }

    fn scheme(&self) -> &'static [u8] {
        if self.text.starts_with(b"https:") {
            b"https:"
        } else {
            b"http:"
        }
    }

    /// Joins `link`, which has no scheme, if its bytes can be copied; otherwise `out` is unchanged.
    fn join_plain(&self, link: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (front, tail) = match link {
            [] | [b'#', ..] => (self.text.len(), &[][..]),
            [b'?', ..] => (self.query, &link[..scan::query(link, 1)?]),
            [b'/', b'/', ..] => return self.join_host(link, out),
            [b'/', ..] => (self.root, &link[..scan::path(link, 1)?]),
            _ => self.join_path(link)?,
        };
        out.extend_from_slice(&self.text[..front]);
        out.extend_from_slice(tail);
        Some(())
    }

    /// Joins `//host/path`, which takes only the scheme of the base.
    fn join_host(&self, link: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        out.extend_from_slice(self.scheme());
        out.extend_from_slice(link);
        let len = scan::front(&out[start..]);
        out.truncate(start + len.unwrap_or(0));
        len.map(|_| ())
    }

    /// Skips leading `./` and `../`; returns the length of the base to keep and the rest of the link.
    fn join_path<'l>(&self, link: &'l [u8]) -> Option<(usize, &'l [u8])> {
        let (mut dir, mut at) = (self.dir, 0);
        loop {
            let (dots, end) = match &link[at..] {
                [b'.', b'.', rest @ ..] => (2, rest.first()),
                [b'.', rest @ ..] => (1, rest.first()),
                _ => break,
            };
            if !matches!(end, None | Some(b'/' | b'?' | b'#')) {
                break;
            }
            if dots == 2 {
                dir = self.parent(dir)?;
            }
            at += dots;
            if end != Some(&b'/') {
                break;
            }
            at += 1;
        }
        let end = scan::path(link, at)?;
        Some((dir, &link[at..end]))
    }

    /// Returns the end of the parent of the folder that ends at `dir`; the root is its own parent.
    fn parent(&self, dir: usize) -> Option<usize> {
        if dir == self.root + 1 {
            return Some(dir);
        }
        let above = 1 + self.root + memchr::memrchr(b'/', &self.text[self.root..dir - 1])?;
        // The parser never steps out of what looks like a Windows drive, `C:`.
        match self.text[above..dir - 1] {
            [letter, b':' | b'|'] if letter.is_ascii_alphabetic() => None,
            _ => Some(above),
        }
    }
}
