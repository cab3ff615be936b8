//! Parses rules of a scope as people write them: brings them to canonical form, or rejects them with advice.
//!
//! A rule that no page can match would silently leave everything out. So hosts are accepted in any form (`EXAMPLE.org`,
//! `münchen.de`), patterns are compared in the form of canonical URLs, and other tools' notations for a list of hosts,
//! or for a host and its subdomains, are rejected with advice.

use std::fmt::Write as _;

use super::scope::{PagePattern, Rule, fits};
use crate::url::{host, name_of, path_and_query, without_www};
use crate::{Error, Result};

/// Parses a rule as typed.
pub(super) fn rule(text: &str) -> Result<Rule> {
    let (mark, rule) = match text.strip_prefix('!') {
        Some(rule) => ("!", rule),
        None => ("", text),
    };
    let read = || -> Read<PagePattern> {
        let (kind, name) = rule.split_once(':').ok_or(None)?;
        let advise = |advice: String| Some(advice);
        Ok(match kind {
            "host" => PagePattern::Host(host_name(mark, kind, name)?),
            "barehost" => {
                let name = host_name(mark, kind, name)?;
                let bare = without_www(name.as_bytes());
                if bare != name.as_bytes() {
                    let bare = String::from_utf8_lossy(bare);
                    return Err(advise(format!(
                        "with and without www. is {mark}barehost:{bare}"
                    )));
                }
                PagePattern::BareHost(name)
            }
            "domain" => PagePattern::Domain(host_name(mark, kind, name)?),
            "prefix" => PagePattern::Prefix(prefix(mark, name)?),
            "url" if !name.is_empty() => PagePattern::url(name, pattern(name).map_err(advise)?),
            _ => return Err(None),
        })
    };
    let pages = read().map_err(|advice| {
        Error::Usage(match advice {
            Some(advice) => format!("{text:?}: {advice}"),
            None => format!(
                "{text:?}: host:NAME, barehost:NAME, domain:NAME, prefix:HOST/FOLDERS or url:PATTERN with * for anything, \
                 optionally with ! in front"
            ),
        })
    })?;
    Ok(Rule {
        excludes: !mark.is_empty(),
        pages,
    })
}

/// Returns whether a text that is not a rule looks like one of an unknown kind: a word, a colon, and a host, folders of
/// one, or a pattern.
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
type Read<T> = std::result::Result<T, Option<String>>;

/// Returns the canonical form of a URL.
fn canonical_of(url: &str) -> Option<String> {
    String::from_utf8(name_of(url.as_bytes(), None, usize::MAX).ok()?).ok()
}

/// Parses a host's name in any form.
fn host_name(mark: &str, kind: &str, name: &str) -> Read<String> {
    let name = name.trim();
    let advise = |advice: String| Err(Some(advice));
    if let Some((_, rest)) = name.split_once("://") {
        let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
        return advise(format!(
            "a host is written without a scheme, as in {mark}{kind}:{host}"
        ));
    }
    if name.contains(',') {
        let each = name
            .split(',')
            .map(|name| format!("{mark}{kind}:{}", name.trim()));
        let each = each.collect::<Vec<_>>().join(" and ");
        return advise(format!(
            "one rule names one host; give several rules: {each}"
        ));
    }
    if let Some(above) = name.strip_prefix("*.").or(name.strip_prefix('.'))
        && !above.contains('*')
    {
        return advise(format!(
            "{mark}domain:{above} is that host and all below it"
        ));
    }
    if name.contains('*') {
        return advise(format!(
            "no host has a * in its name; in a URL it stands for anything, as in {mark}url:*://{name}/*"
        ));
    }
    if name.contains(['/', '?', '#']) {
        let prefix = name.split(['?', '#']).next().unwrap_or_default();
        return advise(format!(
            "{kind} takes a host; folders of one are {mark}prefix:{prefix}"
        ));
    }
    if let Some((_, host)) = name.rsplit_once('@') {
        return advise(format!(
            "a host is written without a user, as in {mark}{kind}:{host}"
        ));
    }
    if let Some((host, port)) = name.rsplit_once(':')
        && !port.ends_with(']')
    {
        return advise(format!(
            "a host is written without a port, as in {mark}{kind}:{host}; of one port, {mark}url:*://{host}:{port}/*"
        ));
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
    if name.contains(['?', '#']) {
        return Err(Some(format!(
            "what stands behind folders is for a pattern, as in {mark}url:*://{}*",
            name.split('#').next().unwrap_or_default()
        )));
    }
    let (of, folders) = name.split_once('/').unwrap_or((name, ""));
    let of = host_name(mark, "prefix", of)?;
    if folders.contains('*') {
        return Err(Some(format!(
            "folders are names without *; for a pattern, {mark}url:*://{of}/{folders}"
        )));
    }
    let url = canonical_of(&format!("http://{of}/{folders}")).ok_or(None)?;
    let path = String::from_utf8_lossy(path_and_query(url.as_bytes())).into_owned();
    Ok(match path.trim_matches('/') {
        "" => of,
        path => format!("{of}/{path}"),
    })
}

/// Converts a pattern to the form of canonical URLs: scheme and host in lower case and ASCII, all else percent-encoded.
/// Anything that is not part of a URL is left unchanged, for names that are not URLs. If no canonical URL can match it,
/// the error says what to write instead.
pub(super) fn pattern(text: &str) -> std::result::Result<String, String> {
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
    // A URL has a path.
    let slash = if name.is_empty() || path.starts_with(['/', '*']) {
        ""
    } else {
        "/"
    };
    without_fragment(text, format!("{scheme}://{host}{slash}{}", encoded(path)))
}

fn without_fragment(text: &str, pattern: String) -> std::result::Result<String, String> {
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
