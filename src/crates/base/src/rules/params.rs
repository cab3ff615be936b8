//! Parameters that do not identify a page: `--drop-params`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::url::is_dots;
use crate::{Error, Result};

/// Names of parameters that are removed from URLs, ignoring case; a name that ends with `*` matches all that begin so.
/// They are removed from the query, `?a=1&b=2`, and from after semicolons in the last part of the path,
/// `/page;jsessionid=1`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DropParams(Vec<String>);

/// Parameters set by advertisers and mailers to track visitors.
const TRACKING: [&str; 19] = [
    "utm_*", "fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "yclid",
    "twclid", "ttclid", "igshid", "mc_cid", "mc_eid", "_hsenc", "_hsmi", "mkt_tok", "_ga", "_gl",
];

/// Parameters set by servers to distinguish visitors.
const SESSION: [&str; 8] = [
    "jsessionid",
    "phpsessid",
    "aspsessionid*",
    "sessionid",
    "session_id",
    "cfid",
    "cftoken",
    "oscsid",
];

impl DropParams {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, other: DropParams) {
        self.0.extend(other.0);
        self.0.sort_unstable();
        self.0.dedup();
    }

    /// Appends `url` without these parameters to `out`. If it has none of them, returns false and appends nothing.
    pub fn strip(&self, url: &[u8], out: &mut Vec<u8>) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let start = out.len();
        let (path, query) = match memchr::memchr(b'?', url) {
            Some(at) => (&url[..at], Some(&url[at + 1..])),
            None => (url, None),
        };
        let last = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
        let mut parts = path[last..].split(|&byte| byte == b';');
        let name = parts.next().unwrap_or_default();
        out.extend_from_slice(&path[..last + name.len()]);
        // Without the parameters after it, such a name would mean a folder.
        let keeps_all = is_dots(name);
        for part in parts.filter(|part| keeps_all || !self.drops(part)) {
            out.push(b';');
            out.extend_from_slice(part);
        }
        let mut mark = b'?';
        let parts = query
            .into_iter()
            .flat_map(|query| query.split(|&byte| byte == b'&'));
        for part in parts.filter(|part| !self.drops(part)) {
            out.push(mark);
            out.extend_from_slice(part);
            mark = b'&';
        }
        let is_changed = out.len() - start < url.len();
        if !is_changed {
            out.truncate(start);
        }
        is_changed
    }

    fn drops(&self, part: &[u8]) -> bool {
        let name = memchr::memchr(b'=', part).map_or(part, |at| &part[..at]);
        self.0
            .iter()
            .any(|dropped| match dropped.strip_suffix('*') {
                Some(front) => name
                    .get(..front.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(front.as_bytes())),
                None => name.eq_ignore_ascii_case(dropped.as_bytes()),
            })
    }
}

impl FromStr for DropParams {
    type Err = Error;

    /// Parses names separated by commas; `tracking` and `session` stand for lists.
    fn from_str(text: &str) -> Result<DropParams> {
        let mut all = DropParams::default();
        for name in text.split(',').map(str::trim) {
            let named: &[&str] = match name {
                "tracking" => &TRACKING,
                "session" => &SESSION,
                _ => &[name],
            };
            let front = name.strip_suffix('*').unwrap_or(name);
            let sound = |byte: u8| byte.is_ascii_graphic() && !b"*&=?#;/,\"'<>".contains(&byte);
            if front.is_empty() || !front.bytes().all(sound) {
                return Err(Error::Usage(format!(
                    "{name:?}: the name of a parameter as in URLs, optionally with * at its end, or tracking or \
                    session"
                )));
            }
            let named = named.iter().map(|name| name.to_ascii_lowercase());
            all.add(DropParams(named.collect()));
        }
        Ok(all)
    }
}

impl fmt::Display for DropParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(rules: &str, url: &str) -> Option<String> {
        let rules: DropParams = rules.parse().unwrap();
        let mut out = Vec::new();
        let changed = rules.strip(url.as_bytes(), &mut out);
        assert_eq!(changed, !out.is_empty());
        let text = String::from_utf8(out).unwrap();
        let mut again = Vec::new();
        assert!(
            !changed || !rules.strip(text.as_bytes(), &mut again),
            "{text}"
        );
        changed.then_some(text)
    }

    #[test]
    fn parameters_go_and_all_else_stays() {
        for (rules, url, expected) in [
            ("a", "http://h/p?a=1", Some("http://h/p")),
            ("a", "http://h/p?a", Some("http://h/p")),
            ("a", "http://h/p?a=1&b=2&A=3", Some("http://h/p?b=2")),
            ("a", "http://h/p?b=2&a=1&&c", Some("http://h/p?b=2&&c")),
            ("a", "http://h/p?ab=1", None),
            ("a", "http://h/p?", None),
            ("a", "http://h/a=1", None),
            ("a*", "http://h/p?ab=1&b=a", Some("http://h/p?b=a")),
            (
                "tracking",
                "http://h/?utm_source=x&UTM_x&id=1",
                Some("http://h/?id=1"),
            ),
            ("session", "http://h/p;jsessionid=1F", Some("http://h/p")),
            (
                "session",
                "http://h/p;v=1;JSESSIONID=1?q",
                Some("http://h/p;v=1?q"),
            ),
            ("session", "http://h/p;jsessionid=1/q", None),
            ("session", "http://h/2;jsessionid=1", Some("http://h/2")),
            ("session", "http://h/q/..;jsessionid=1", None),
            ("session", "http://h/q/%2E.;jsessionid=1", None),
            (
                "session,a",
                "http://h/p;a=1?phpsessid=2&a=3",
                Some("http://h/p"),
            ),
        ] {
            let found = stripped(rules, url);
            assert_eq!(found.as_deref(), expected, "{rules} {url}");
        }
    }

    #[test]
    fn what_is_no_name() {
        for text in ["", "*", "a*b", "a=1", "a b", "a,,b", "ä"] {
            assert!(text.parse::<DropParams>().is_err(), "{text:?}");
        }
        let both: DropParams = "session,tracking,a".parse().unwrap();
        assert_eq!(both.to_string().parse::<DropParams>().unwrap(), both);
    }
}
