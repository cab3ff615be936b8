//! Host of a page, and its registered domain.

use std::borrow::Cow;

use crate::url;

/// Returns both for a canonical URL, neither for an opaque name. A host without a registered domain counts as its own
/// domain.
pub(super) fn host_and_domain(name: &str) -> (Option<&str>, Option<&str>) {
    let host = url::host(name.as_bytes());
    if host.is_empty() {
        return (None, None);
    }
    // Both are substrings delimited by ASCII characters.
    let domain = std::str::from_utf8(url::domain(host)).ok();
    (std::str::from_utf8(host).ok(), domain)
}

/// Reverses the labels of a host: `org.example.www`. Addresses are unchanged.
pub(in crate::snapshot) fn reversed(host: &str) -> Cow<'_, str> {
    if is_address(host) {
        return host.into();
    }
    let labels: Vec<&str> = host.rsplit('.').collect();
    labels.join(".").into()
}

/// Returns true if a host of a canonical URL is an IP address: only an IPv4 address ends in a number.
fn is_address(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    host.starts_with('[') || last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_domains() {
        for (name, host, domain, turned) in [
            (
                "https://a.b.example.co.uk/x",
                "a.b.example.co.uk",
                "example.co.uk",
                "uk.co.example.b.a",
            ),
            (
                "http://me@example.org:8080/",
                "example.org",
                "example.org",
                "org.example",
            ),
            ("http://co.uk/", "co.uk", "co.uk", "uk.co"),
            ("http://localhost/", "localhost", "localhost", "localhost"),
            ("http://192.0.2.7/a", "192.0.2.7", "192.0.2.7", "192.0.2.7"),
            (
                "http://[2001:db8::1]:81/a",
                "[2001:db8::1]",
                "[2001:db8::1]",
                "[2001:db8::1]",
            ),
        ] {
            assert_eq!(host_and_domain(name), (Some(host), Some(domain)), "{name}");
            assert_eq!(reversed(host), turned);
        }
        for opaque in ["", "17", "ftp://example.org/"] {
            assert_eq!(host_and_domain(opaque), (None, None), "{opaque}");
        }
    }
}
