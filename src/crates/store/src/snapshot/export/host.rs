//! Host of a page or site, and its registered domain.

use std::borrow::Cow;

use super::Page;
use crate::url;

/// Returns the host of a page's URL, or in the name of a site; `None` if the name is opaque.
pub(super) fn host_of<'p>(page: &'p Page<'_>) -> Option<&'p str> {
    if page.site.is_some() {
        // Behind a host stand the folders of a prefix.
        return page.url.split('/').next();
    }
    let host = url::host(page.url.as_bytes());
    // A part of a string between letters of ASCII.
    std::str::from_utf8(host)
        .ok()
        .filter(|host| !host.is_empty())
}

/// Returns the registered domain of that host. A host without a registered domain counts as its own domain.
pub(super) fn domain_of<'p>(page: &'p Page<'_>) -> Option<&'p str> {
    std::str::from_utf8(url::domain(host_of(page)?.as_bytes())).ok()
}

/// Reverses the labels of a host: `org.example.www`. Addresses are unchanged.
pub fn reversed(host: &str) -> Cow<'_, str> {
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
    use crate::model::SiteFacts;

    fn host_and_domain(name: &str, is_site: bool) -> (Option<String>, Option<String>) {
        let page = Page {
            url: name.into(),
            site: is_site.then(SiteFacts::default),
            ..Page::default()
        };
        let owned = |part: Option<&str>| part.map(str::to_owned);
        (owned(host_of(&page)), owned(domain_of(&page)))
    }

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
            assert_eq!(
                host_and_domain(name, false),
                (Some(host.into()), Some(domain.into())),
                "{name}"
            );
            assert_eq!(reversed(host), turned);
            for site in [host.to_owned(), format!("{host}/folder")] {
                let found = host_and_domain(&site, true);
                assert_eq!(found, (Some(host.into()), Some(domain.into())), "{site}");
            }
        }
        for opaque in ["", "17", "ftp://example.org/"] {
            assert_eq!(host_and_domain(opaque, false), (None, None), "{opaque}");
        }
    }
}
