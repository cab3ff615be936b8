//! Levels at which pages are grouped into sites.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::url::{domain, host, host_and_path, without_www};
use crate::{Error, Result};

/// Unit of a ranking: pages, or sites of some kind.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub enum Level {
    #[default]
    Page,
    /// Hosts, whatever the scheme and port.
    Host,
    /// Hosts without a leading `www.`, as in Common Crawl's graphs.
    BareHost,
    /// Registered domains, by the public suffix list; a host without one is a site of its own.
    Domain,
    /// Hosts with the first `n` folders of the path, 1 to 255, or as many as there are.
    Prefix(u8),
}

impl Level {
    pub const FORMS: [(&'static str, &'static str); 5] = [
        ("page", "pages"),
        ("host", "hosts"),
        (
            "barehost",
            "hosts without a leading www., as in Common Crawl's graphs",
        ),
        ("domain", "registered domains, by the public suffix list"),
        ("prefix:N", "hosts with the first N folders of the path"),
    ];

    /// Returns the site of the page with this canonical URL; `None` without a host, or at `Level::Page`.
    pub fn site(self, name: &[u8]) -> Option<Cow<'_, [u8]>> {
        let host = Some(host(name)).filter(|host| !host.is_empty())?;
        match self {
            Level::Page => None,
            Level::Host => Some(host.into()),
            Level::BareHost => Some(without_www(host).into()),
            Level::Domain => Some(domain(host).into()),
            Level::Prefix(folders) => Some(
                [host, folders_of(host_and_path(name).1, folders)]
                    .concat()
                    .into(),
            ),
        }
    }

    pub fn plural(self) -> &'static str {
        match self {
            Level::Page => "pages",
            Level::Host => "hosts",
            Level::BareHost => "barehosts",
            Level::Domain => "domains",
            Level::Prefix(_) => "sites",
        }
    }

    pub fn singular(self) -> &'static str {
        let plural = self.plural();
        plural.strip_suffix('s').unwrap_or(plural)
    }

    pub fn is_page(self) -> bool {
        self == Level::Page
    }
}

/// Returns the first folders of a path, without the `/` after them. The part after the last `/`, and a query, are no
/// folders.
fn folders_of(path: &[u8], folders: u8) -> &[u8] {
    let query = memchr::memchr2(b'?', b'#', path).unwrap_or(path.len());
    let path = &path[..query];
    let slashes = memchr::memchr_iter(b'/', path).skip(1);
    let end = slashes.take(folders.into()).last();
    &path[..end.unwrap_or(0)]
}

impl FromStr for Level {
    type Err = Error;

    fn from_str(text: &str) -> Result<Level> {
        let prefix = || {
            let folders = text.strip_prefix("prefix:")?.parse().ok();
            folders.filter(|&folders| folders > 0).map(Level::Prefix)
        };
        let mut named = [Level::Page, Level::Host, Level::BareHost, Level::Domain].into_iter();
        let level = named.find(|level| level.singular() == text);
        level.or_else(prefix).ok_or_else(|| {
            Error::Usage(format!(
                "no level {text:?}; there are: page, host, barehost, domain, and prefix:N with N from 1 to 255"
            ))
        })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Prefix(folders) => write!(f, "prefix:{folders}"),
            level => f.write_str(level.singular()),
        }
    }
}

cashrank_base::stored_as_text!(Level);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_belongs_to_one_site_of_each_level() {
        for (url, host, domain, one, two) in [
            (
                "http://a.b.co.uk/",
                "a.b.co.uk",
                "b.co.uk",
                "a.b.co.uk",
                "a.b.co.uk",
            ),
            ("http://x.org/a", "x.org", "x.org", "x.org", "x.org"),
            ("http://x.org/a/", "x.org", "x.org", "x.org/a", "x.org/a"),
            (
                "http://x.org/a/b/c?d/e",
                "x.org",
                "x.org",
                "x.org/a",
                "x.org/a/b",
            ),
            ("http://x.org/?a/b/", "x.org", "x.org", "x.org", "x.org"),
            (
                "https://me:p@x.org:81/a/b",
                "x.org",
                "x.org",
                "x.org/a",
                "x.org/a",
            ),
            (
                "http://10.0.0.1/a/b/",
                "10.0.0.1",
                "10.0.0.1",
                "10.0.0.1/a",
                "10.0.0.1/a/b",
            ),
            ("http://[::1]:8/a/b", "[::1]", "[::1]", "[::1]/a", "[::1]/a"),
            (
                "http://localhost/a/",
                "localhost",
                "localhost",
                "localhost/a",
                "localhost/a",
            ),
            ("http://co.uk/a/", "co.uk", "co.uk", "co.uk/a", "co.uk/a"),
        ] {
            let levels = [
                Level::Host,
                Level::Domain,
                Level::Prefix(1),
                Level::Prefix(2),
            ];
            for (level, site) in levels.into_iter().zip([host, domain, one, two]) {
                let found = level.site(url.as_bytes()).unwrap();
                assert_eq!(String::from_utf8_lossy(&found), site, "{url} {level}");
            }
        }
        let barehost = Level::BareHost.site(b"https://www.example.org:8080/a/b/c.html");
        assert_eq!(&*barehost.unwrap(), b"example.org");
        for name in ["17", "opaque", "ftp://x.org/", ""] {
            assert_eq!(Level::Host.site(name.as_bytes()), None);
            assert_eq!(Level::Prefix(1).site(name.as_bytes()), None);
        }
        assert_eq!(Level::Page.site(b"http://x.org/"), None);
    }

    #[test]
    fn levels_are_read_as_they_are_written() {
        for level in [
            Level::Page,
            Level::Host,
            Level::Domain,
            Level::Prefix(1),
            Level::Prefix(255),
        ] {
            assert_eq!(level.to_string().parse::<Level>().unwrap(), level);
        }
        for wrong in [
            "",
            "hosts",
            "prefix",
            "prefix:",
            "prefix:0",
            "prefix:256",
            "prefix:-1",
            "host:1",
        ] {
            let why = wrong.parse::<Level>().unwrap_err().to_string();
            assert!(why.contains("prefix:N"), "{why}");
        }
    }
}
