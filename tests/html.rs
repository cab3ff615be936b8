//! Links of real pages, compared with those that an independent reader finds.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use cashrank_crawl::decode::{Record, html};
use flate2::read::MultiGzDecoder;

/// Archives, with the links that lxml 6.1.3 (libxml2 2.14.6) finds in the HTML responses that warcio 1.8.1 finds: their
/// number and their length in UTF-8. By `tools/compare_links`; html5lib 1.1 agrees, except for 11 links that it
/// repeats.
const COUNTED: [(&str, usize, usize); 7] = [
    ("blackbook/blackbook.warc.gz", 38_626, 1_605_846),
    (
        "govuk/resources__gov.uk-revisit-warcs__BL-20140325121225068-00000-32090~opera~8443.warc.gz",
        7_094,
        355_286,
    ),
    (
        "govuk/resources__gov.uk-revisit-warcs__BL-20140325122341434-00000-32090~opera~8443.warc.gz",
        338,
        5_912,
    ),
    ("postgresql/pg15-crawl1.warc.gz", 24_971, 631_642),
    ("postgresql/pg15-crawl2.warc.gz", 25_307, 641_230),
    ("boost/boost-crawl-1.74.warc.gz", 118_610, 4_332_224),
    ("boost/boost-crawl-1.81.warc.gz", 121_462, 4_410_981),
];

#[test]
fn links_of_real_pages() {
    for (name, links, bytes) in COUNTED {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../shared/data")
            .join(name);
        let Ok(file) = File::open(&path) else {
            eprintln!("SKIPPED: {} is not here", path.display());
            continue;
        };
        let mut archive = Vec::new();
        MultiGzDecoder::new(file).read_to_end(&mut archive).unwrap();
        let (mut found, mut length) = (0, 0);
        let mut record = Record::default();
        each_page(&archive, |body, charset| {
            record.clear();
            html::read(body, charset, &mut record);
            found += record.links.len();
            length += record
                .links
                .iter()
                .map(|link| shown_length(&link.url))
                .sum::<usize>();
        });
        assert_eq!((found, length), (links, bytes), "{name}");
    }
}

/// Returns the length of a link in which any number of line ends counts as one byte: they are left to the URL parser.
fn shown_length(link: &[u8]) -> usize {
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let ends = link.chunk_by(|one, other| is_end(one) == is_end(other));
    ends.map(|run| if is_end(&run[0]) { 1 } else { run.len() })
        .sum()
}

/// Calls `page` with the HTML responses of a WARC file whose bodies are neither chunked nor compressed.
fn each_page(mut archive: &[u8], mut page: impl FnMut(&[u8], Option<&[u8]>)) {
    while !archive.is_empty() {
        let (header, rest) = split(archive).expect("a WARC header");
        let length = field(header, "content-length").expect("a length");
        let (block, rest) = rest.split_at(std::str::from_utf8(length).unwrap().parse().unwrap());
        archive = rest.strip_prefix(b"\r\n\r\n").expect("two line ends");
        if field(header, "warc-type") != Some(b"response") {
            continue;
        }
        let Some((http, body)) = split(block) else {
            continue;
        };
        assert_eq!(
            field(http, "transfer-encoding").filter(|how| *how != b"identity"),
            None
        );
        let kind = field(http, "content-type")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let is_html = [&b"text/html"[..], b"application/xhtml+xml"];
        if is_html.iter().any(|html| kind.starts_with(html)) {
            assert_eq!(field(http, "content-encoding"), None);
            let at = kind.windows(8).position(|word| word == b"charset=");
            page(body, at.map(|at| &kind[at + 8..]));
        }
    }
}

/// Splits at the first blank line.
fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.windows(4).position(|end| end == b"\r\n\r\n")?;
    Some((&text[..at], &text[at + 4..]))
}

fn field<'h>(header: &'h [u8], name: &str) -> Option<&'h [u8]> {
    header.split(|&byte| byte == b'\n').find_map(|line| {
        let (found, value) = line.split_at(line.iter().position(|&byte| byte == b':')?);
        let is_it = found.eq_ignore_ascii_case(name.as_bytes());
        is_it.then(|| value[1..].trim_ascii())
    })
}
