//! Pages that count: `--scope`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::scope_form::rule;
use crate::url::{host, path_and_query, without_www};
use crate::{Error, Result};

/// Rules that decide which pages count. Records of other pages are left out, and so are links to them. If any rules
/// name pages, a page must match one of them; a page that matches a rule beginning with `!` does not count. Without
/// rules all pages count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Scope(Vec<Rule>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rule {
    pub(super) excludes: bool,
    pub(super) pages: PagePattern,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PagePattern {
    /// Pages on this host.
    Host(String),
    /// Pages on this host, with or without a leading `www.`.
    BareHost(String),
    /// Pages on this host or a subdomain of it.
    Domain(String),
    /// Pages on a host, in these folders of it.
    Prefix(String),
    /// Pages whose URL matches a pattern with `*` for anything: as typed, and, if it differs, in the form of canonical
    /// URLs. A name that is not a URL is matched as typed.
    Url(String, Option<String>),
}

/// Returns whether a text begins as a rule that names pages.
pub fn is_rule(text: &[u8]) -> bool {
    let kinds = ["host:", "barehost:", "domain:", "prefix:", "url:"];
    kinds.iter().any(|kind| text.starts_with(kind.as_bytes()))
}

impl Scope {
    /// Returns whether all pages count.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the rules of `other`.
    pub fn add(&mut self, other: Scope) {
        for rule in other.0 {
            if !self.0.contains(&rule) {
                self.0.push(rule);
            }
        }
        // Their order does not matter.
        self.0.sort_unstable();
    }

    /// Returns whether the page with this canonical URL counts.
    pub fn has(&self, url: &[u8]) -> bool {
        let mut rules = self.0.iter().filter(|rule| !rule.excludes).peekable();
        let named = rules.peek().is_none() || rules.any(|rule| rule.pages.has(url));
        named
            && !self
                .0
                .iter()
                .any(|rule| rule.excludes && rule.pages.has(url))
    }
}

impl PagePattern {
    /// Returns a pattern, with its canonical form if it differs.
    pub(super) fn url(typed: &str, canonical: String) -> PagePattern {
        let canonical = Some(canonical).filter(|canonical| canonical != typed);
        PagePattern::Url(typed.into(), canonical)
    }

    fn has(&self, url: &[u8]) -> bool {
        match self {
            PagePattern::Host(name) => host(url) == name.as_bytes(),
            PagePattern::BareHost(name) => without_www(host(url)) == name.as_bytes(),
            PagePattern::Domain(name) => {
                let above = host(url).strip_suffix(name.as_bytes());
                above.is_some_and(|above| above.is_empty() || above.ends_with(b"."))
            }
            PagePattern::Prefix(name) => {
                let (of, folders) = name.split_once('/').unwrap_or((name, ""));
                let path = path_and_query(url).strip_prefix(b"/").unwrap_or_default();
                let below = path.strip_prefix(folders.as_bytes());
                // A folder ends at a `/`, not within a query.
                host(url) == of.as_bytes()
                    && below.is_some_and(|below| folders.is_empty() || below.starts_with(b"/"))
            }
            PagePattern::Url(typed, canonical) => {
                let mut patterns = canonical.iter().chain([typed]);
                patterns.any(|pattern| fits(pattern.as_bytes(), url))
            }
        }
    }
}

/// Returns whether `text` matches `pattern`, `*` standing for any bytes. Each part is searched from the left, the last
/// at the end: the time is at most proportional to the product of the lengths.
pub(super) fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let mut parts = pattern.split(|&byte| byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match memchr::memmem::find(rest, part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Parses a rule of a store. Those of earlier versions may be such that no page matches, or in another form than
/// [`rule`] gives them; they are kept as they are.
fn stored_rule(text: &str) -> Result<Rule> {
    let (excludes, plain) = match text.strip_prefix('!') {
        Some(plain) => (true, plain),
        None => (false, text),
    };
    let read = rule(text);
    if read.as_ref().is_ok_and(|rule| rule.to_string() == text) {
        return read;
    }
    let pages = match plain.split_once(':') {
        Some((_, "")) | None => return read,
        Some(("host", name)) => PagePattern::Host(name.into()),
        Some(("barehost", name)) => PagePattern::BareHost(name.into()),
        Some(("domain", name)) => PagePattern::Domain(name.into()),
        Some(("prefix", name)) => PagePattern::Prefix(name.into()),
        Some(("url", name)) => PagePattern::Url(name.into(), None),
        Some(_) => return read,
    };
    Ok(Rule { excludes, pages })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match &self.pages {
            PagePattern::Host(name) => ("host", name),
            PagePattern::BareHost(name) => ("barehost", name),
            PagePattern::Domain(name) => ("domain", name),
            PagePattern::Prefix(name) => ("prefix", name),
            PagePattern::Url(pattern, _) => ("url", pattern),
        };
        let mark = if self.excludes { "!" } else { "" };
        write!(f, "{mark}{kind}:{name}")
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self.0.iter().map(Rule::to_string).collect();
        f.write_str(&rules.join(" "))
    }
}

impl FromStr for Scope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Scope> {
        Ok(Scope(vec![rule(text)?]))
    }
}

impl TryFrom<Vec<String>> for Scope {
    type Error = Error;

    fn try_from(rules: Vec<String>) -> Result<Scope> {
        let rules: Result<_> = rules.iter().map(|rule| stored_rule(rule)).collect();
        Ok(Scope(rules?))
    }
}

impl From<Scope> for Vec<String> {
    fn from(scope: Scope) -> Vec<String> {
        scope.0.iter().map(Rule::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(rules: &[&str]) -> Scope {
        let rules: Vec<String> = rules.iter().map(|rule| rule.to_string()).collect();
        Scope::try_from(rules).unwrap()
    }

    #[test]
    fn who_is_in() {
        let inside = |rules: &[&str], url: &str| scope(rules).has(url.as_bytes());
        assert!(inside(&[], "http://a.org/"));
        assert!(inside(&["host:a.org"], "https://u@a.org:8080/x"));
        assert!(!inside(&["host:a.org"], "http://www.a.org/"));
        assert!(inside(&["domain:a.org"], "http://www.a.org/"));
        for (url, is_in) in [
            ("http://a.org/", true),
            ("http://www.a.org:81/x", true),
            ("http://b.a.org/", false),
            ("http://www.b.a.org/", false),
            ("http://wwwa.org/", false),
        ] {
            assert_eq!(inside(&["barehost:a.org"], url), is_in, "{url}");
        }
        assert!(!inside(&["domain:a.org"], "http://aa.org/"));
        assert!(inside(&["host:b.org", "host:a.org"], "http://a.org/"));
        assert!(!inside(
            &["host:a.org", "!url:*/cal/*"],
            "http://a.org/cal/1"
        ));
        assert!(inside(&["!url:*/cal/*"], "http://b.org/"));
        assert!(inside(
            &["url:http://a.org/*.html"],
            "http://a.org/x/y.html"
        ));
        assert!(!inside(
            &["url:http://a.org/*.html"],
            "http://a.org/x.html?q"
        ));
        assert!(inside(&["url:*a*a*"], "http://a.org/a"));
        assert!(!inside(&["url:http://a.org/a*a"], "http://a.org/a"));
        assert!(inside(&["url:http://a.org/"], "http://a.org/"));
        assert!(!inside(&["host:a.org"], "opaque"));
        for (url, is_in) in [
            ("https://a.org:8080/x/y/", true),
            ("http://a.org/x/y/z.html?q", true),
            ("http://a.org/x/y", false),
            ("http://a.org/x/yy/", false),
            ("http://a.org/x?/y/", false),
            ("http://www.a.org/x/y/", false),
            ("opaque", false),
        ] {
            assert_eq!(inside(&["prefix:a.org/x/y"], url), is_in, "{url}");
        }
        assert!(inside(&["prefix:a.org"], "http://a.org/x"));
    }

    /// Regression: `host:*.org` was accepted, though no page matches it.
    #[test]
    fn a_star_in_a_host_is_refused_with_what_to_write() {
        for (rule, message) in [
            ("host:*.a.org", "domain:a.org is"),
            ("!domain:*.a.org", "!domain:a.org is"),
            ("host:www.*", "url:*://www.*/*"),
            ("host:*.a.*", "url:*://*.a.*/*"),
            ("prefix:*.a.org/x", "domain:a.org is"),
            // In the notations of cookies, Scrapy's allowed_domains, wget's --domains and address bars.
            ("domain:.a.org", "domain:a.org is"),
            ("host:a.org,b.org", "host:a.org and host:b.org"),
            ("barehost:www.a.org", "barehost:a.org"),
            ("host:http://a.org/x", "host:a.org"),
            ("host:a.org:8080", "url:*://a.org:8080/*"),
            ("host:a.org/x", "prefix:a.org/x"),
            ("host:me@a.org", "host:a.org"),
            ("prefix:https://a.org/x", "prefix:a.org/x"),
            ("prefix:a.org/x?y", "url:*://a.org/x?y*"),
            ("prefix:a.org/*/x", "url:*://a.org/*/x"),
            ("url:a.org/x*", "url:*://a.org/x*"),
            ("url:ftp://a.org/*", "http and https"),
            ("url:http://a.org/x#y", "url:http://a.org/x"),
            ("url:*://m\u{fc}n*/", "Punycode"),
            ("url:http://a b/*", "no host"),
        ] {
            let error = rule.parse::<Scope>().unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        // A store may have them.
        assert_eq!(
            Vec::<String>::from(scope(&["domain:.a.org", "url:ftp://a.org/*"])),
            ["domain:.a.org", "url:ftp://a.org/*"]
        );
        assert_eq!(
            Vec::<String>::from(scope(&["host:*.a.org"])),
            ["host:*.a.org"]
        );
        // Typed, it would be `prefix:a.org/x`.
        let doubled = scope(&["prefix:a.org//x"]);
        assert!(doubled.has(b"http://a.org//x/y") && !doubled.has(b"http://a.org/x/y"));
    }

    /// Hosts and URLs in any form are canonicalised (the URL standard's parser, Punycode of RFC 3492).
    #[test]
    fn rules_fit_in_any_form() {
        for (rule, url) in [
            ("host:EXAMPLE.org", "http://example.org/"),
            ("domain:M\u{dc}NCHEN.de", "https://www.xn--mnchen-3ya.de/x"),
            ("barehost:A.org", "http://www.a.org/"),
            ("prefix:A.org/caf\u{e9}/", "http://a.org/caf%C3%A9/1"),
            ("prefix:a.org/x/../y", "http://a.org/y/"),
            ("url:*/caf\u{e9}/*", "http://a.org/caf%C3%A9/1"),
            ("url:*caf\u{e9}*", "caf\u{e9} au lait"),
            ("url:HTTP://A.org/*", "http://a.org/B"),
            ("url:*://M\u{fc}nchen.de/*", "http://xn--mnchen-3ya.de/"),
            ("url:https*://A.*", "https://a.org/"),
            ("url:http://a.org:80/*", "http://a.org/x"),
            ("url:http://a.org:81/*", "http://a.org:81/x"),
            ("url:http://a.org", "http://a.org/"),
            ("url:http://a.org?q=*", "http://a.org/?q=1"),
            ("url:*/a b*", "http://a.org/a%20b"),
            ("url:*?u=ftp://*", "http://a.org/?u=ftp://b"),
            ("url:*/A.org/*", "http://b.org/A.org/x"),
        ] {
            let scope: Scope = rule.parse().unwrap();
            assert!(scope.has(url.as_bytes()), "{rule} {url}");
            // In a store's notation.
            let kept = Scope::try_from(Vec::<String>::from(scope.clone())).unwrap();
            assert_eq!(kept, scope, "{rule}");
        }
    }

    #[test]
    fn rules_come_back_and_wrong_ones_do_not() {
        let rules = [
            "barehost:b.org",
            "domain:a.org",
            "prefix:a.org/x%20y/z",
            "!url:*/x?y=*",
            "host:xn--mnchen-3ya.de",
        ];
        assert_eq!(Vec::<String>::from(scope(&rules)), rules);
        for wrong in [
            "a.org",
            "host:",
            "host: ",
            "host:a b",
            "site:a",
            "barehost:",
            "prefix:",
            "prefix:/x",
            "url:",
            "!",
        ] {
            assert!(wrong.parse::<Scope>().is_err(), "{wrong}");
        }
    }
}
