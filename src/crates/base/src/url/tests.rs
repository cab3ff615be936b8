//! Compares the fast paths with the `url` crate and with each other. `tests/url.rs` checks the table of cases in
//! `formats/url.md`.

use ::url::Url;
use proptest::prelude::*;

use super::fuzz::{agree, expected};
use super::*;

const LIMIT: usize = 8192;

fn found(raw: &[u8], base: Option<&LinkBase<'_>>) -> Result<String, Reject> {
    let mut out = b"kept".to_vec();
    let form = canonical(raw, base, LIMIT, &mut out);
    assert_eq!(&out[..4], b"kept");
    assert!(out.len() == 4 || form == Ok(CanonicalForm::Rewritten));
    let text = form?.text(raw, &out[4..]);
    Ok(String::from_utf8(text.to_vec()).expect("canonical text is ASCII"))
}

/// Generates bytes at the boundaries of the rules, whole components and single characters.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&str] = &[
        "http://",
        "https://",
        "HTTP://",
        "http:",
        "https:",
        "ht\ttp://",
        "//",
        "///",
        "ftp://",
        "mailto:",
        "x:",
        "example.org",
        "h",
        "a.b-c_d.e",
        "EXAMPLE",
        "xn--",
        "xn--nxasmq6b",
        "XN--a",
        "bücher.de",
        "1.2.3.4",
        "1.2.3",
        "01.2.3.4",
        "256.1.1.1",
        "0x7f.1",
        "1.2.3.4.",
        "[::1]",
        "[1:0:0:0::2]",
        "user@",
        "u:p@",
        ":80",
        ":443",
        ":8080",
        ":080",
        ":65535",
        ":65536",
        ":0",
        ":",
        "/",
        "/",
        "/",
        "a",
        "b.html",
        ".",
        "..",
        "./",
        "../",
        "/.",
        "/..",
        "%2e",
        "%2E",
        "%2e.",
        "...",
        ".x",
        "%",
        "%4",
        "%41",
        "%c3%a9",
        "?",
        "?q=1",
        "&r=a/b",
        "#",
        "#frag",
        "C:",
        "/C:/",
        "C|",
        "c:x",
        " ",
        "\t",
        "\n",
        "\r",
        "\0",
        "\x0c",
        "\x7f",
        "\"",
        "<",
        ">",
        "`",
        "{",
        "}",
        "|",
        "\\",
        "^",
        "'",
        "[",
        "]",
        "@",
        ";",
        "=",
        ",",
        "~",
        "_",
        "-",
        "+",
        "*",
        "!",
        "$",
        "(",
        ")",
        "é",
        "\u{ad}",
        "。",
        "\u{200d}",
        "\u{feff}",
        "ß",
        "日本",
        "١",
    ];
    prop_oneof![
        12 => prop::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

fn pieces(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(piece(), 0..most).prop_map(|pieces| pieces.concat())
}

/// Generates text that mostly is a URL with a host.
fn absolute() -> impl Strategy<Value = Vec<u8>> {
    let front = prop::sample::select(&["http://", "https://", "http://h/", "https://a.bc:8/"][..]);
    (front, pieces(8)).prop_map(|(front, rest)| [front.as_bytes(), &rest].concat())
}

/// Generates mostly canonical text, which the scan is for.
fn plain() -> impl Strategy<Value = Vec<u8>> {
    "https?://[a-z0-9.-]{1,9}(:[0-9]{1,5})?(/([a-z%.:]{0,3}/){0,3}[a-zA-Z.~%]{0,4})?(\\?[a-z=&'/]{0,5})?(#[a-z é]{0,3})?"
        .prop_map(String::into_bytes)
}

fn base() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        absolute(),
        plain(),
        pieces(4),
        "https?://h/([a-z]{0,2}[:|]?/){0,3}[a-z]{0,2}(\\?[a-z/]{0,3})?"
            .prop_map(String::into_bytes),
    ]
}

fn link() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        pieces(6),
        "(\\.\\./|\\./){0,3}([a-z.:]{0,3}/){0,2}[a-z.:]{0,3}(\\?[a-z]{0,2})?(#[a-z]{0,2})?"
            .prop_map(String::into_bytes),
        "//?[a-z0-9.]{1,4}(:80)?/?[a-z.]{0,3}".prop_map(String::into_bytes),
    ]
}

fn check(raw: &[u8]) -> Result<(), TestCaseError> {
    let (found, expected) = (found(raw, None), expected(raw, None));
    let shown = raw.escape_ascii();
    prop_assert!(
        agree(&found, &expected),
        "{shown}: {found:?}, not {expected:?}"
    );
    if let Ok(text) = found {
        prop_assert!(text.is_ascii());
        let mut out = Vec::new();
        let again = canonical(text.as_bytes(), None, LIMIT, &mut out);
        prop_assert_eq!(again, Ok(CanonicalForm::AsIs), "{} again", &text);
        let url = Url::parse(&text).expect("canonical");
        prop_assert_eq!(
            Some(host(text.as_bytes())),
            url.host_str().map(str::as_bytes)
        );
    }
    Ok(())
}

fn check_join(page: &[u8], href: Option<&[u8]>, link: &[u8]) -> Result<(), TestCaseError> {
    let Ok(page_url) = expected(page, None) else {
        // Without a page there is no record: checks only that nothing panics or is invented.
        let base = LinkBase::new(page, href);
        let _ = found(link, Some(&base));
        return Ok(());
    };
    let page_url = Url::parse(&page_url).expect("canonical");
    let url = match href.map(|href| expected(href, Some(&page_url))) {
        None | Some(Err(Reject::Invalid)) => page_url,
        Some(Ok(url)) => Url::parse(&url).expect("canonical"),
        Some(Err(_)) => return Ok(()), // Another scheme: `a_base_of_another_scheme`.
    };
    let base = LinkBase::new(page, href);
    let (found, expected) = (found(link, Some(&base)), expected(link, Some(&url)));
    prop_assert!(
        agree(&found, &expected),
        "{} on {}: {found:?}, not {expected:?}",
        link.escape_ascii(),
        url
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn as_the_parser_says(raw in prop_oneof![absolute(), plain(), pieces(10)]) {
        check(&raw)?;
    }

    #[test]
    fn joined_as_the_parser_says(page in base(), link in link()) {
        check_join(&page, None, &link)?;
    }

    #[test]
    fn joined_to_a_base_element(page in plain(), href in base(), link in link()) {
        check_join(&page, Some(&href), &link)?;
    }

    #[test]
    fn any_bytes(raw in prop::collection::vec(any::<u8>(), 0..40), page in base()) {
        check(&raw)?;
        check_join(&page, Some(&raw), &raw)?;
        host(&raw);
        is_canonical(&raw);
    }

    #[test]
    fn limits_hold(raw in absolute(), page in plain(), link in link(), limit in 0..60usize) {
        let base = LinkBase::new(&page, None);
        for (raw, base) in [(&raw, None), (&link, Some(&base))] {
            let mut out = Vec::new();
            match canonical(raw, base, limit, &mut out) {
                Ok(form) => {
                    prop_assert!(form.text(raw, &out).len() <= limit);
                    prop_assert!(trim(raw).len() <= limit);
                }
                Err(_) => prop_assert!(out.is_empty()),
            }
        }
    }
}

/// Tests the class table exhaustively: each byte at each position of a URL.
#[test]
fn every_byte_everywhere() {
    for byte in 0..=255u8 {
        for place in [
            "http://h^/",
            "http://^h/",
            "http://h/^",
            "http://h/a^b",
            "http://h/?^",
            "http://h/?a^b",
            "http://h:1^/",
            "http://h.^/",
            "http://h/a/^/b",
            "^http://h/",
        ] {
            let (front, rest) = place.split_once('^').expect("a place");
            let raw = [front.as_bytes(), &[byte], rest.as_bytes()].concat();
            check(&raw).expect("as the parser says");
        }
        for page in ["http://h/a/b?c", "https://h/"] {
            for place in [
                "^", "a^b", "^a", "/^", "?^", "../^", ".^", "..^", "//^", "//h^/",
            ] {
                let (front, rest) = place.split_once('^').expect("a place");
                let link = [front.as_bytes(), &[byte], rest.as_bytes()].concat();
                check_join(page.as_bytes(), None, &link).expect("as the parser says");
            }
        }
    }
}

/// Ports around the limits of 16 bits and around the defaults.
#[test]
fn every_port() {
    for port in (0..=66_000).chain([99_999, 100_000, 655_360]) {
        for scheme in ["http", "https"] {
            let raw = format!("{scheme}://h:{port}/");
            check(raw.as_bytes()).expect("as the parser says");
            let default = if scheme == "http" { 80 } else { 443 };
            let canonical = port != default && port <= 65_535;
            assert_eq!(is_canonical(raw.as_bytes()), canonical, "{raw}");
        }
    }
}

/// URLs that must not need the parser: otherwise the scan could prove nothing and all tests would pass.
#[test]
fn ordinary_urls_are_proved_by_the_scan() {
    for raw in [
        "http://example.org/",
        "https://www.example.org/a/b.html",
        "https://example.org:8443/a?b=c&d=%20e#f",
        "http://127.0.0.1:8802/manual/en/",
        "https://3com.example/.well-known/x...y/..z",
        "https://example.org/~user/a_(b),c;d=e@f!$&*+[g]|h'i",
        "https://example.org/wiki/%C3%A9t%c3%a9?u=http://x/%2e%2e/y^`{|}\\",
        "https://example.org//a//b/",
        "https://sub_domain.example-site.org/",
        "https://example.org/a.b/c#\u{e9} <>",
        "https://example.org/a \t\n",
    ] {
        let len = scan::front(raw.as_bytes());
        let end = raw.find(['#', ' ']).unwrap_or(raw.len());
        assert_eq!(len, Some(end), "{raw}");
        check(raw.as_bytes()).expect("as the parser says");
    }
}

/// A bare host gets its slash without the parser, and nothing else does.
#[test]
fn bare_hosts() {
    for (raw, expected) in [
        ("http://example.org", true),
        (" https://127.0.0.1:81 ", true),
        (" http://h/", true),
        ("http://h/a/..", false),
        ("http://h/.", false),
        ("http://h:80", false),
        ("http://h?", false),
        ("http://1.2", false),
    ] {
        let mut out = Vec::new();
        let link = trim(raw.as_bytes());
        assert_eq!(append_plain(link, &mut out), expected, "{raw}");
        assert_eq!(out.is_empty(), !expected, "{raw}");
        check(raw.as_bytes()).expect("as the parser says");
    }
}

/// Links that are joined without ever making a `Url` of the base.
#[test]
fn ordinary_links_are_joined_by_copying() {
    let page = b"https://example.org/docs/a/b.html?c";
    let base = LinkBase::new(page, None);
    for (link, expected) in [
        ("", "https://example.org/docs/a/b.html?c"),
        ("#top", "https://example.org/docs/a/b.html?c"),
        ("?d", "https://example.org/docs/a/b.html?d"),
        ("c.html", "https://example.org/docs/a/c.html"),
        ("c/d.html#e", "https://example.org/docs/a/c/d.html"),
        ("./c", "https://example.org/docs/a/c"),
        (".", "https://example.org/docs/a/"),
        ("..", "https://example.org/docs/"),
        ("../", "https://example.org/docs/"),
        ("../x?y", "https://example.org/docs/x?y"),
        ("../../../../x", "https://example.org/x"),
        ("..?y", "https://example.org/docs/?y"),
        (".hidden", "https://example.org/docs/a/.hidden"),
        ("..//x", "https://example.org/docs//x"),
        ("1:2", "https://example.org/docs/a/1:2"),
        ("/", "https://example.org/"),
        ("/x/y", "https://example.org/x/y"),
        ("//other.example/x#y", "https://other.example/x"),
    ] {
        assert_eq!(found(link.as_bytes(), Some(&base)).as_deref(), Ok(expected));
        check_join(page, None, link.as_bytes()).expect("as the parser says");
    }
    assert!(!base.is_parsed(), "the parser was asked");
    found(b"a b", Some(&base)).expect("a link");
    assert!(base.is_parsed(), "the parser was not asked");
}

/// HTML ignores a `<base href>` that is not a URL or cannot be a base; any other applies to the links.
#[test]
fn a_base_of_another_scheme() {
    let page = b"http://h/a";
    for (href, expected) in [
        ("data:text/html,x", Ok("http://h/b")),
        ("java\nscript:void(0)", Ok("http://h/b")),
        ("ftp://", Ok("http://h/b")),
        ("http://:80/", Ok("http://h/b")),
        ("ftp://h/", Err(Reject::Scheme)),
        ("mailto:x", Err(Reject::Scheme)),
    ] {
        let base = LinkBase::new(page, Some(href.as_bytes()));
        let found = found(b"b", Some(&base));
        assert_eq!(found, expected.map(str::to_string), "{href}");
    }
    let base = LinkBase::new(page, Some(b"ftp://h/"));
    for link in ["http:x", "http:/x", "http://x"] {
        assert_eq!(
            found(link.as_bytes(), Some(&base)).as_deref(),
            Ok("http://x/"),
            "{link}"
        );
    }
}

/// A base over the limit is rejected, not copied for each link.
#[test]
fn a_base_over_the_limit() {
    let href = format!("/{}", "a".repeat(LIMIT));
    let base = LinkBase::new(b"http://h/", Some(href.as_bytes()));
    assert_eq!(found(b"b", Some(&base)), Err(Reject::TooLong));
    assert_eq!(found(b"/b", Some(&base)), Err(Reject::TooLong));
    assert_eq!(found(b"http:b", Some(&base)), Err(Reject::TooLong));
    assert_eq!(
        found(b"http://h/b", Some(&base)).as_deref(),
        Ok("http://h/b")
    );
}

/// Follows the list's algorithm (publicsuffix.org/list), with suffixes that are unlikely to be removed from it.
#[test]
fn registered_domains() {
    for (name, expected) in [
        ("example.org", "example.org"),
        ("www.example.org", "example.org"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("www.somebody.github.io", "somebody.github.io"),
        ("www.city.kawasaki.jp", "city.kawasaki.jp"),
        ("a.b.c.kawasaki.jp", "b.c.kawasaki.jp"),
        ("a.b.example", "b.example"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("192.0.2.1", "192.0.2.1"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("", ""),
    ] {
        let found = domain(name.as_bytes());
        assert_eq!(found, expected.as_bytes(), "{name}");
    }
}
