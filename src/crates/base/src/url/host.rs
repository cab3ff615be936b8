//! Hosts: the scan that proves one canonical, the host of a canonical URL, and the registered domain of a host.

use std::net::Ipv4Addr;

use super::scan::{HOST, short_run};

/// Returns the host of a URL in canonical form, without user, password and port; empty for other names.
pub fn host(canonical: &[u8]) -> &[u8] {
    let Some(rest) =
        (canonical.strip_prefix(b"http://")).or_else(|| canonical.strip_prefix(b"https://"))
    else {
        return &[];
    };
    let is_end = |byte| matches!(byte, b'/' | b'?' | b'#');
    let is_more = |byte| matches!(byte, b'@' | b':' | b'[' | b']');
    let plain = upto(rest, |byte| is_end(byte) || is_more(byte));
    // Most have neither user nor port.
    if !rest.get(plain.len()).is_some_and(|&byte| is_more(byte)) {
        return plain;
    }
    let authority = upto(rest, is_end);
    // An `@` in a user or password is escaped.
    let host = match memchr::memrchr(b'@', authority) {
        Some(at) => &authority[at + 1..],
        None => authority,
    };
    match memchr::memchr(b']', host) {
        Some(bracket) => &host[..=bracket],
        None => upto(host, |byte| byte == b':'),
    }
}

/// Returns whether a name begins as a URL in canonical form does.
pub fn is_web(name: &[u8]) -> bool {
    name.starts_with(b"http://") || name.starts_with(b"https://")
}

/// Returns the [`host`] of a URL in canonical form, and its path and query; both are empty for other names.
pub fn host_and_path(canonical: &[u8]) -> (&[u8], &[u8]) {
    let host = host(canonical);
    if host.is_empty() {
        return (host, &[]);
    }
    // `host` is a slice of the URL.
    let after = host.as_ptr() as usize - canonical.as_ptr() as usize + host.len();
    let rest = &canonical[after..];
    (
        host,
        &rest[memchr::memchr(b'/', rest).unwrap_or(rest.len())..],
    )
}

/// Returns the registered domain of a host in canonical form: its public suffix and the label before it, by the public
/// suffix list with the suffixes that companies added (`github.io`); for an unlisted suffix, the last two labels. A
/// host without a registered domain is returned unchanged: an IP address, a public suffix, a single label.
pub fn domain(host: &[u8]) -> &[u8] {
    if is_ipv4(host) {
        return host;
    }
    cashrank_suffix::domain(host).unwrap_or(host)
}

/// Returns a host without a leading `www.`, unless only a single label would be left.
pub fn without_www(host: &[u8]) -> &[u8] {
    let rest = host.strip_prefix(b"www.");
    rest.filter(|rest| rest.contains(&b'.')).unwrap_or(host)
}

/// Returns the bytes before the first that `stops`.
fn upto(bytes: &[u8], stops: impl Fn(u8) -> bool) -> &[u8] {
    let len = bytes.iter().position(|&byte| stops(byte));
    &bytes[..len.unwrap_or(bytes.len())]
}

/// Scans the host and port that begin at `from`; returns the offset of the `/` after them. `None` if they are not
/// certainly canonical.
pub(super) fn authority(raw: &[u8], from: usize, default_port: u16) -> Option<usize> {
    let mut label = from;
    loop {
        let end = short_run(raw, label, HOST);
        let text = &raw[label..end];
        if text.is_empty() || text.starts_with(b"xn--") {
            return None;
        }
        match raw.get(end)? {
            b'.' => label = end + 1,
            b'/' | b':' => {
                // Only a host whose last label begins with a digit can be an IPv4 address.
                if text[0].is_ascii_digit() && !is_ipv4(&raw[from..end]) {
                    return None;
                }
                return port(raw, end, default_port);
            }
            _ => return None,
        }
    }
}

/// Scans the port at `at`, if any; returns the offset of the `/` after it.
fn port(raw: &[u8], at: usize, default_port: u16) -> Option<usize> {
    let Some(rest) = raw[at..].strip_prefix(b":") else {
        return Some(at);
    };
    let digits = upto(rest, |byte| byte == b'/');
    // The parser drops leading zeros and the default port.
    let is_plain = matches!(digits, [b'0'] | [b'1'..=b'9', ..]);
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|port| port.parse::<u16>().ok());
    let canonical = is_plain && number.is_some_and(|port| port != default_port);
    let slash = at + 1 + digits.len();
    (canonical && slash < raw.len()).then_some(slash)
}

/// Returns whether `host` consists of four decimal numbers up to 255.
fn is_ipv4(host: &[u8]) -> bool {
    std::str::from_utf8(host).is_ok_and(|host| host.parse::<Ipv4Addr>().is_ok())
}
