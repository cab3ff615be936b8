//! Pages that count: `--scope`.
//!
//! A rule that no page can match would silently leave everything out. So hosts are accepted in any form (`EXAMPLE.org`,
//! `münchen.de`), patterns are compared in the form of canonical URLs, and other tools' notations are rejected with advice.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::url::{host, host_and_path, name_of, without_www};
use crate::{Error, Result, words};

/// Rules that decide which pages count. Records of other pages are left out, and so are links to them. If any rules
/// name pages, a page must match one of them; a page that matches a rule beginning with `!` does not count. Without
/// rules all pages count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Scope(Vec<Rule>);

words! {
    /// Kind of a rule.
    RuleKind {
        /// Pages on this host.
        Host = "host",
        /// Pages on this host, with or without a leading `www.`.
        BareHost = "barehost",
        /// Pages on this host or a subdomain of it.
        Domain = "domain",
        /// Pages on a host, in these folders of it.
        Prefix = "prefix",
        /// Pages whose URL matches a pattern with `*` for anything. A name that is not a URL is matched as typed.
        Url = "url",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    excludes: bool,
    kind: RuleKind,
    /// Host, host with folders, or pattern as typed.
    text: String,
    /// Pattern in the form of canonical URLs, if that differs.
    canonical: Option<String>,
}

/// Returns whether a text begins as a rule that names pages.
pub fn is_rule(text: &[u8]) -> bool {
    RuleKind::ALL.iter().any(|kind| {
        let name = text.strip_prefix(kind.name().as_bytes());
        name.is_some_and(|name| name.starts_with(b":"))
    })
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
        // The order of rules does not matter.
        self.0.sort_unstable();
    }

    /// Returns whether the page with this canonical URL counts.
    pub fn has(&self, url: &[u8]) -> bool {
        let mut rules = self.0.iter().filter(|rule| !rule.excludes).peekable();
        let named = rules.peek().is_none() || rules.any(|rule| rule.has(url));
        named && !self.0.iter().any(|rule| rule.excludes && rule.has(url))
    }
}

impl Rule {
    fn has(&self, url: &[u8]) -> bool {
        let name = self.text.as_bytes();
        match self.kind {
            RuleKind::Host => host(url) == name,
            RuleKind::BareHost => without_www(host(url)) == name,
            RuleKind::Domain => {
                let above = host(url).strip_suffix(name);
                above.is_some_and(|above| above.is_empty() || above.ends_with(b"."))
            }
            RuleKind::Prefix => {
                let (of, folders) = self.text.split_once('/').unwrap_or((&self.text, ""));
                let (host, path) = host_and_path(url);
                let path = path.strip_prefix(b"/").unwrap_or_default();
                let below = path.strip_prefix(folders.as_bytes());
                // A folder ends at a `/`, not within a query.
                host == of.as_bytes()
                    && below.is_some_and(|below| folders.is_empty() || below.starts_with(b"/"))
            }
            RuleKind::Url => {
                let mut patterns = self.canonical.iter().chain([&self.text]);
                patterns.any(|pattern| fits(pattern.as_bytes(), url))
            }
        }
    }
}

/// Returns whether `text` matches `pattern`, where `*` stands for any bytes; each part is searched from the left.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
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

/// Parses a rule of a store. Rules of earlier versions that cannot be typed any more are kept as they are.
fn stored_rule(text: &str) -> Result<Rule> {
    let read = rule(text);
    if read.as_ref().is_ok_and(|rule| rule.to_string() == text) {
        return read;
    }
    let excluded = text.strip_prefix('!');
    let named = excluded.unwrap_or(text).split_once(':');
    match named.and_then(|(kind, name)| Some((RuleKind::named(kind)?, name))) {
        Some((kind, name)) if !name.is_empty() => Ok(Rule {
            excludes: excluded.is_some(),
            kind,
            text: name.into(),
            canonical: None,
        }),
        _ => read,
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.excludes { "!" } else { "" };
        write!(f, "{mark}{}:{}", self.kind, self.text)
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

fn rule(text: &str) -> Result<Rule> {
    let (mark, rule) = match text.strip_prefix('!') {
        Some(rule) => ("!", rule),
        None => ("", text),
    };
    let read = || -> Read<Rule> {
        let (kind, name) = rule.split_once(':').ok_or(None)?;
        let kind = RuleKind::named(kind).ok_or(None)?;
        let mut canonical = None;
        let text = match kind {
            RuleKind::Host | RuleKind::Domain => host_name(mark, kind, name)?,
            RuleKind::BareHost => {
                let name = host_name(mark, kind, name)?;
                let bare = without_www(name.as_bytes());
                if bare != name.as_bytes() {
                    let bare = String::from_utf8_lossy(bare);
                    let advice = format!("with and without www. is {mark}barehost:{bare}");
                    return Err(Some(advice));
                }
                name
            }
            RuleKind::Prefix => prefix(mark, name)?,
            RuleKind::Url if name.is_empty() => return Err(None),
            RuleKind::Url => {
                canonical = Some(pattern(name).map_err(Some)?).filter(|form| form != name);
                name.to_owned()
            }
        };
        Ok(Rule {
            excludes: !mark.is_empty(),
            kind,
            text,
            canonical,
        })
    };
    read().map_err(|advice| {
        Error::Usage(match advice {
            Some(advice) => format!("{text:?}: {advice}"),
            None => format!(
                "{text:?}: host:NAME, barehost:NAME, domain:NAME, prefix:HOST/FOLDERS or url:PATTERN with * for anything, \
                 optionally with ! in front"
            ),
        })
    })
}

/// Returns whether a text looks like a rule of an unknown kind: a word, a colon, and a host or pattern.
pub fn looks_like_rule(text: &str) -> bool {
    let (kind, name) = text.split_once(':').unwrap_or_default();
    let word = kind.strip_prefix('!').unwrap_or(kind);
    let is_word = word
        .bytes()
        .all(|byte| byte.is_ascii_alphabetic() || b"-_ ".contains(&byte));
    let is_host = || name.contains('.') && prefix("", name.trim()).is_ok();
    is_word && !word.is_empty() && !name.starts_with("//") && (name.contains('*') || is_host())
}

/// Parsed value, or advice about what to write instead, if known.
type Read<T> = Result<T, Option<String>>;

fn canonical_of(url: &str) -> Option<String> {
    String::from_utf8(name_of(url.as_bytes(), None, usize::MAX).ok()?).ok()
}

/// Parses a host's name in any form.
fn host_name(mark: &str, kind: RuleKind, name: &str) -> Read<String> {
    let name = name.trim();
    if let Some((_, rest)) = name.split_once("://") {
        let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
        return Err(Some(format!(
            "a host is written without a scheme, as in {mark}{kind}:{host}"
        )));
    }
    if name.contains(',') {
        let each = name
            .split(',')
            .map(|name| format!("{mark}{kind}:{}", name.trim()));
        let each = each.collect::<Vec<_>>().join(" and ");
        return Err(Some(format!(
            "one rule names one host; give several rules: {each}"
        )));
    }
    if let Some(above) = name.strip_prefix("*.").or(name.strip_prefix('.'))
        && !above.contains('*')
    {
        return Err(Some(format!(
            "{mark}domain:{above} is that host and all below it"
        )));
    }
    let has_port = name.contains(':') && !name.ends_with(']');
    if has_port || name.contains(['*', '/', '?', '#', '@']) {
        return Err(Some(format!(
            "a host is a name alone, without *, user, port or path; folders are {mark}prefix:HOST/FOLDERS, and all else is \
             a pattern like {mark}url:*://{name}/*"
        )));
    }
    let url = canonical_of(&format!("http://{name}/")).ok_or(None)?;
    match host(url.as_bytes()) {
        b"" => Err(None),
        host => Ok(String::from_utf8_lossy(host).into_owned()),
    }
}

/// Parses a host and folders of it, in any form.
fn prefix(mark: &str, name: &str) -> Read<String> {
    if let Some((_, rest)) = name.split_once("://") {
        return Err(Some(format!(
            "it is written without a scheme, as in {mark}prefix:{rest}"
        )));
    }
    let (of, folders) = name.split_once('/').unwrap_or((name, ""));
    if folders.contains(['?', '#', '*']) {
        return Err(Some(format!(
            "folders are names, without * and what comes after them; for a pattern, {mark}url:*://{of}/{folders}"
        )));
    }
    let of = host_name(mark, RuleKind::Prefix, of)?;
    let url = canonical_of(&format!("http://{of}/{folders}")).ok_or(None)?;
    let path = String::from_utf8_lossy(host_and_path(url.as_bytes()).1).into_owned();
    Ok(match path.trim_matches('/') {
        "" => of,
        path => format!("{of}/{path}"),
    })
}

/// Converts a pattern to the form of canonical URLs. If none can match it, the error says what to write instead.
fn pattern(text: &str) -> Result<String, String> {
    let scheme_of = |at: &usize| {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"*+-.".contains(&byte);
        text[..*at].bytes().all(is_name)
    };
    let Some(at) = text.find("://").filter(scheme_of) else {
        let head = text.split('*').next().unwrap_or_default();
        if let Some((host, _)) = head.split_once('/')
            && host.contains('.')
        {
            return Err(format!(
                "a URL begins with its scheme, as in url:*://{text}"
            ));
        }
        return without_fragment(text, encoded(text));
    };
    let scheme = text[..at].to_ascii_lowercase();
    let can_be = |scheme: &str| {
        ["http", "https"]
            .iter()
            .any(|of| fits(scheme.as_bytes(), of.as_bytes()))
    };
    if !scheme.contains('*') && !can_be(&scheme) {
        return Err("pages have URLs of http and https; `*://` stands for both".into());
    }
    let rest = &text[at + 3..];
    let end = rest.find(['/', '?', '#', '*']).unwrap_or(rest.len());
    let (name, path) = rest.split_at(end);
    let host = if name.is_empty() {
        String::new()
    } else if path.starts_with('*') {
        if !name.is_ascii() {
            return Err(
                "a part of a host is written in ASCII (Punycode); a whole host ends before a /"
                    .into(),
            );
        }
        name.to_ascii_lowercase()
    } else {
        let of = if scheme == "http" { "http" } else { "https" };
        let url = canonical_of(&format!("{of}://{name}/"));
        let url = url.ok_or_else(|| format!("{name} is no host"))?;
        let start = of.len() + 3;
        url[start..url.len() - 1].to_owned()
    };
    // Every URL has a path.
    let slash = if name.is_empty() || path.starts_with(['/', '*']) {
        ""
    } else {
        "/"
    };
    without_fragment(text, format!("{scheme}://{host}{slash}{}", encoded(path)))
}

fn without_fragment(text: &str, pattern: String) -> Result<String, String> {
    match text.split_once('#') {
        Some((before, _)) if before.contains('/') => Err(format!(
            "pages are known without the fragment of their URLs: leave it out, as in url:{before}"
        )),
        _ => Ok(pattern),
    }
}

/// Encodes text as the path or query of a canonical URL.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'!' | b'#'..=b';' | b'=' | b'?'..=b'~' => out.push(byte.into()),
            // Writing to a String never fails.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
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
            ("host:a.org/x", "prefix:HOST/FOLDERS"),
            ("host:me@a.org", "without *, user"),
            ("prefix:https://a.org/x", "prefix:a.org/x"),
            ("prefix:a.org/x?y", "url:*://a.org/x?y"),
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
