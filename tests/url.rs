//! URLs: the table in `formats/url.md` against the code, and the URLs of real crawls.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use cashrank_base::url::{CanonicalForm, LinkBase, RULES, Reject, canonical, host, is_canonical};

const LIMIT: usize = 8192;

/// Row of the table of cases.
struct Case {
    read: Vec<u8>,
    base: Option<Vec<u8>>,
    found: Result<Vec<u8>, Reject>,
}

fn spec() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/url.md");
    std::fs::read_to_string(path).expect("the specification")
}

fn cases() -> Vec<Case> {
    let spec = spec();
    let (_, table) = spec.split_once("| read | base |").expect("the table");
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells = cells(row);
        assert_eq!(cells.len(), 4, "{row}");
        Case {
            read: text(&cells[0]).unwrap_or_default(),
            base: text(&cells[1]),
            found: match cells[2].as_str() {
                "_scheme_" => Err(Reject::Scheme),
                "_empty_" => Err(Reject::Empty),
                "_relative_" => Err(Reject::Relative),
                "_invalid_" => Err(Reject::Invalid),
                found => Ok(text(found).expect("a URL")),
            },
        }
    })
    .collect()
}

/// Splits a row into cells; `\|` is not a separator.
fn cells(row: &str) -> Vec<String> {
    let row = row.replace("\\|", "\u{1}");
    let row = row.trim().trim_matches('|');
    let cells = row.split('|');
    cells
        .map(|cell| cell.trim().replace('\u{1}', "|"))
        .collect()
}

/// Returns the bytes that a cell stands for; `_none_` stands for none.
fn text(cell: &str) -> Option<Vec<u8>> {
    if cell == "_none_" {
        return None;
    }
    let code = match cell.strip_prefix("`` ") {
        Some(code) => code.strip_suffix(" ``"),
        None => cell
            .strip_prefix('`')
            .and_then(|code| code.strip_suffix('`')),
    };
    let mut bytes = Vec::new();
    let mut rest = code.unwrap_or_else(|| panic!("no code: {cell}"));
    while let Some(char) = rest.chars().next() {
        let mut len = char.len_utf8();
        if char == '\\' {
            len = 2;
            bytes.push(match rest.as_bytes()[1] {
                b't' => b'\t',
                b'n' => b'\n',
                b'0' => 0,
                b'\\' => b'\\',
                b'x' => {
                    len = 4;
                    u8::from_str_radix(&rest[2..4], 16).expect("two hex digits")
                }
                other => panic!("escape {}: {cell}", other.escape_ascii()),
            });
        } else {
            bytes.extend_from_slice(&rest.as_bytes()[..len]);
        }
        rest = &rest[len..];
    }
    Some(bytes)
}

fn found(raw: &[u8], base: Option<&LinkBase<'_>>) -> Result<Vec<u8>, Reject> {
    let mut out = Vec::new();
    let form = canonical(raw, base, LIMIT, &mut out)?;
    Ok(form.text(raw, &out).to_vec())
}

#[test]
fn the_specified_cases() {
    let cases = cases();
    assert!(cases.len() > 80, "{} cases", cases.len());
    for case in cases {
        let base = case.base.as_deref().map(|page| LinkBase::new(page, None));
        let shown = case.read.escape_ascii();
        let found = found(&case.read, base.as_ref());
        assert_eq!(
            found.map(|url| url.escape_ascii().to_string()),
            case.found.map(|url| url.escape_ascii().to_string()),
            "{shown}"
        );
    }
}

/// The specification has the code's version and the limit's default.
#[test]
fn the_specified_numbers() {
    let spec = spec();
    assert!(spec.contains(&format!("Version {RULES} of the rules")));
    let limit = cashrank::Limits::default().url_bytes;
    assert!(spec.contains(&format!("(`--limit-url`, {limit} bytes)")));
}

#[test]
fn the_limit_counts_as_read_and_in_canonical_form() {
    let mut out = Vec::new();
    let at = |raw: &str, limit, out: &mut Vec<u8>| canonical(raw.as_bytes(), None, limit, out);
    // 10 bytes as read and in canonical form, whatever blanks surround it.
    assert_eq!(at("http://h/a", 10, &mut out), Ok(CanonicalForm::AsIs));
    assert_eq!(
        at("http://h/a \n", 10, &mut out),
        Ok(CanonicalForm::Prefix(10))
    );
    assert_eq!(at("http://h/a", 9, &mut out), Err(Reject::TooLong));
    // The fragment counts as part of the length read.
    assert_eq!(at("http://h/a#", 10, &mut out), Err(Reject::TooLong));
    assert_eq!(
        at("http://h/a#", 11, &mut out),
        Ok(CanonicalForm::Prefix(10))
    );
    // 11 bytes in canonical form, `/%20b`: more than as read.
    assert_eq!(at("http://h/ b", 12, &mut out), Err(Reject::TooLong));
    assert!(out.is_empty());
    assert_eq!(
        at("http://h/ b", 13, &mut out),
        Ok(CanonicalForm::Rewritten)
    );
    assert_eq!(out, b"http://h/%20b");
    // Too long for a page, but not a link to a page in the first place.
    let data = format!("data:,{}", "a".repeat(LIMIT));
    assert_eq!(at(&data, LIMIT, &mut out), Err(Reject::Scheme));
}

#[test]
fn hosts() {
    for (url, expected) in [
        ("http://example.org/", "example.org"),
        ("https://example.org:8443/a@b:c", "example.org"),
        ("http://u:p@example.org/?@x", "example.org"),
        ("http://[2001:db8::1]:81/", "[2001:db8::1]"),
        ("http://127.0.0.1:8802/a", "127.0.0.1"),
        ("http://", ""),
        ("node 17", ""),
    ] {
        assert_eq!(host(url.as_bytes()), expected.as_bytes(), "{url}");
    }
}

/// Reads every URL and link of a crawl from its JSON lines.
fn urls_of_crawl(name: &str) -> Option<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data")
        .join(name);
    let Ok(file) = File::open(&path) else {
        eprintln!("SKIPPED: {} is absent", path.display());
        return None;
    };
    let mut input = zstd::Decoder::new(file).expect("zstd");
    input.window_log_max(27).expect("a window");
    let mut urls = Vec::new();
    for line in BufReader::new(input).lines() {
        let line = line.expect("a line");
        let record: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        urls.push(record["url"].as_str().expect("a URL").to_string());
        for link in record["links"].as_array().into_iter().flatten() {
            let link = link.as_str().or_else(|| link["url"].as_str());
            urls.push(link.expect("a link").to_string());
        }
    }
    Some(urls)
}

/// Checks on real URLs that the scan agrees with the `url` crate, and decides nearly all of them.
fn check_crawl(name: &str, total: usize) {
    let Some(urls) = urls_of_crawl(name) else {
        return;
    };
    assert_eq!(urls.len(), total);
    let mut front = 0;
    for url in &urls {
        let url = &url[..url.find('#').unwrap_or(url.len())];
        front += usize::from(is_canonical(url.as_bytes()));
    }
    let distinct: HashSet<&String> = urls.iter().collect();
    let (mut as_is, mut refused) = (0, 0);
    for raw in &distinct {
        let found = found(raw.as_bytes(), None);
        as_is += usize::from(is_canonical(raw.as_bytes()));
        match url::Url::parse(raw) {
            Ok(mut url) if matches!(url.scheme(), "http" | "https") => {
                url.set_fragment(None);
                assert_eq!(found.as_deref(), Ok(url.as_str().as_bytes()), "{raw}");
            }
            _ => {
                refused += 1;
                assert!(found.is_err(), "{raw}");
            }
        }
    }
    eprintln!(
        "{name}: of {total} URLs, {front} are proved canonical up to the fragment; \
         of {} distinct, {as_is} as they are, {refused} refused",
        distinct.len()
    );
    assert!(front * 100 >= total * 95, "{front} of {total}");
}

#[test]
fn a_project_site() {
    // 54,932 records and 4,353,525 links.
    check_crawl("flink-history/flink.jsonl.zst", 54_932 + 4_353_525);
}

#[test]
fn a_manual() {
    // 2,828 responses and 279,195 links.
    check_crawl("scrapy-httpd/httpd-manual.jsonl.zst", 2_828 + 279_195);
}

/// Pages and their links as written, most of them relative: a manual crawled by wget, as WAT.
#[test]
fn relative_links_of_a_manual() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/postgresql/pg15-crawl1.wat.gz");
    let Ok(file) = File::open(&path) else {
        eprintln!("SKIPPED: {} is absent", path.display());
        return;
    };
    let mut total = 0;
    for line in BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines() {
        let line = line.expect("a line");
        if line.starts_with('{') {
            total += check_wat(&line);
        }
    }
    assert_eq!(total, 24_971);
}

/// Joins the links of a WAT record; returns their number.
fn check_wat(line: &str) -> usize {
    let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let envelope = &record["Envelope"];
    let html = &envelope["Payload-Metadata"]["HTTP-Response-Metadata"]["HTML-Metadata"];
    let links = html["Links"].as_array().into_iter().flatten();
    let links = links.filter(|link| link["path"] == "A@/href");
    let page = envelope["WARC-Header-Metadata"]["WARC-Target-URI"].as_str();
    let page = page.unwrap_or_default().trim_matches(['<', '>']);
    let base = LinkBase::new(page.as_bytes(), None);
    let mut count = 0;
    for link in links {
        let link = link["url"].as_str().expect("a link");
        let url = url::Url::parse(page).expect("a URL").join(link).ok();
        let expected = url
            .filter(|url| url.scheme().starts_with("http"))
            .map(|mut url| {
                url.set_fragment(None);
                String::from(url).into_bytes()
            });
        assert_eq!(
            found(link.as_bytes(), Some(&base)).ok(),
            expected,
            "{link} on {page}"
        );
        count += 1;
    }
    count
}
