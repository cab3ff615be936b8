//! WARC and ARC in archives of other programs: every record of them, by kind and status.
//!
//! Counts are those of a reader in Python that steps by `Content-Length` (ARC: by the last field of the line) and does
//! nothing else; where warcio 1.7 reads a file to its end, it finds the same. Numbers of outlinks are by a regular
//! expression over `metadata` blocks.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use cashrank::Limits;
use cashrank_base::rules::{InputRules, Outlinks};
use cashrank_crawl::decode::{Decoder, Parsed, Record};
use cashrank_crawl::formats::Format;

/// Reads a file of the data, decompressed up to its end or to bytes that are not gzip; `None`, with a printed note, if
/// it is absent.
fn data(name: &str) -> Option<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data")
        .join(name);
    let mut raw = Vec::new();
    match File::open(&path) {
        Ok(mut file) => drop(file.read_to_end(&mut raw).unwrap()),
        Err(_) => {
            eprintln!("SKIPPED: no {}", path.display());
            return None;
        }
    }
    if !raw.starts_with(&[0x1f, 0x8b]) {
        return Some(raw);
    }
    let mut data = Vec::new();
    // Some are damaged after their last record.
    let _ = flate2::read::MultiGzDecoder::new(&raw[..]).read_to_end(&mut data);
    Some(data)
}

fn by(outlinks: Outlinks) -> std::sync::Arc<dyn Decoder> {
    let rules = InputRules {
        outlinks,
        ..InputRules::default()
    };
    Format::Warc.decoder_by(&rules, &Limits::default())
}

/// Counts the output of a decoder by `status`, `revisit status`, `bad: reason` or the kind of a non-record.
fn told(decoder: &dyn Decoder, data: &[u8]) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    decoder.decode(data, &mut |_, parsed| {
        let name = match parsed {
            Parsed::Record(record) => {
                let status = record.status.map_or("none".to_owned(), |s| s.to_string());
                if record.revisit {
                    format!("revisit {status}")
                } else {
                    status
                }
            }
            Parsed::Bad { reason, .. } => format!("bad: {}", reason.name()),
            Parsed::Other { kind } => kind.to_owned(),
            Parsed::Large => return true,
        };
        *told.entry(name).or_insert(0) += 1;
        true
    });
    told
}

/// Checks a file against `name count, name count`, and that its format is recognised.
fn check(format: Format, file: &str, expected: &str) {
    let Some(data) = data(file) else {
        return;
    };
    let (guessed, _) = cashrank_crawl::formats::guess(&data[..data.len().min(1 << 16)]).unwrap();
    assert_eq!(guessed, format, "{file}");
    let expected: BTreeMap<_, _> = expected
        .split(", ")
        .map(|pair| pair.rsplit_once(' ').unwrap())
        .map(|(name, count)| (name.to_owned(), count.parse().unwrap()))
        .collect();
    assert_eq!(told(format.decoder(), &data), expected, "{file}");
    check_pieces(format.decoder(), &data, file);
}

/// Checks that cutting by `whole` gives the same.
fn check_pieces(decoder: &dyn Decoder, data: &[u8], file: &str) {
    let mut parts = BTreeMap::new();
    let (mut start, mut read) = (0, 0);
    while start < data.len() {
        read = (read + (1 << 17)).min(data.len());
        let whole = if read == data.len() {
            read - start
        } else {
            decoder.whole(&data[start..read])
        };
        for (name, count) in told(decoder, &data[start..start + whole]) {
            *parts.entry(name).or_insert(0) += count;
        }
        start += whole;
    }
    assert_eq!(parts, told(decoder, data), "{file}, in pieces");
}

#[test]
fn crawls() {
    let heritrix = "200 214, 301 2, 302 5, 404 40, no HTTP response 38";
    let warc = "warcinfo 1, request 261, metadata 111, metadata with outlinks 150";
    check(
        Format::Arc,
        "blackbook/blackbook.arc.gz",
        &format!("{heritrix}, filedesc 1"),
    );
    check(
        Format::Warc,
        "blackbook/blackbook.warc.gz",
        &format!("{heritrix}, {warc}"),
    );
    // All revisits have outlinks listed: 54 are visits with these links, and one is a redirect.
    for (crawl, statuses) in [
        ("25068", "200 57, 302 1, 403 1, 404 3"),
        ("41434", "200 57, 302 1, 403 1, 404 3"),
    ] {
        let crawl = if crawl == "25068" {
            "20140325121225068"
        } else {
            "20140325122341434"
        };
        let file = format!(
            "govuk/resources__gov.uk-revisit-warcs__BL-{crawl}-00000-32090~opera~8443.warc.gz"
        );
        let rest = "warcinfo 1, no HTTP response 3, request 62, metadata with outlinks 62";
        check(Format::Warc, &file, &format!("{statuses}, {rest}"));
    }
    for (file, expected) in [
        (
            "postgresql/pg15-crawl1",
            "warcinfo 1, request 1175, 200 1172, 404 1",
        ),
        (
            "postgresql/pg15-crawl2",
            "warcinfo 1, request 1175, 200 1169, revisit 200 5, revisit 404 1",
        ),
        (
            "boost/boost-crawl-1.74",
            "warcinfo 1, request 9309, 200 8108, 404 1197",
        ),
        (
            "boost/boost-crawl-1.81",
            "warcinfo 1, request 9591, 200 8381, 404 1208",
        ),
    ] {
        check(Format::Warc, &format!("{file}.warc.gz"), expected);
    }
}

#[test]
fn odd_warcs() {
    for (file, expected) in [
        (
            "gowarc/testdata__warcs__corrupted-mid-record.warc.gz.open",
            "200 12",
        ),
        (
            "gowarc/testdata__warcs__corrupted-trailing-bytes.warc.gz.open",
            "200 30",
        ),
        ("gowarc/testdata__warcs__good.warc.gz.open", "200 50"),
        (
            "gowarc/testdata__warcs__single-record.warc.gz.open",
            "200 1",
        ),
        ("gowarc/testdata__warcs__skip-non-open.warc.gz", "200 10"),
        (
            "gowarc/testdata__warcs__test.warc.gz",
            "warcinfo 1, request 1, 200 1",
        ),
        (
            "ia-web-commons/format__gzip__IAH-urls-wget.warc.gz",
            "warcinfo 1, request 16, resource 3, 200 7, 301 2, 302 7",
        ),
        (
            "ia-web-commons/format__warc__IAH-urls-wget.warc",
            "warcinfo 1, request 16, resource 3, 200 7, 301 2, 302 7",
        ),
        (
            "ia-web-commons/format__warc__mutliple-headers.warc",
            "200 1",
        ),
        (
            "ia-web-commons/resource__html__html-lang-attribute.warc",
            "200 5",
        ),
        (
            "ia-web-commons/resource__html__link-extraction-test.warc",
            "warcinfo 1, 200 9",
        ),
        ("ia-web-commons/resource__html__meta-itemprop.warc", "200 1"),
        (
            "ia-web-commons/resource__html__text-extraction-test.warc",
            "warcinfo 1, metadata 1, 200 2",
        ),
        (
            "ia-web-commons/resource__html__title-extraction-embedded-SVG.warc",
            "200 1",
        ),
        (
            "pywb/sample_archive__warcs__dupes.warc.gz",
            "warcinfo 1, request 12, 200 2, 302 1, revisit 200 9",
        ),
        // The revisits have no block, so they have no status.
        (
            "pywb/sample_archive__warcs__example-extra.warc",
            "request 2, 200 1, answer to another method 1, revisit none 2",
        ),
        (
            "pywb/sample_archive__warcs__example-url-agnostic-orig.warc.gz",
            "warcinfo 1, 200 1",
        ),
        (
            "pywb/sample_archive__warcs__example-url-agnostic-revisit.warc.gz",
            "warcinfo 1, revisit 200 1",
        ),
        (
            "pywb/sample_archive__warcs__example-wget-1-14.warc.gz",
            "warcinfo 1, request 1, resource 3, 200 1",
        ),
        (
            "pywb/sample_archive__warcs__example-wpull.warc.gz",
            "warcinfo 1, request 1, resource 1, 200 1",
        ),
        // Three bytes after a block.
        (
            "pywb/sample_archive__warcs__example.warc",
            "warcinfo 1, request 2, 200 1, 302 1, revisit 200 1, bad: malformed 1",
        ),
        (
            "pywb/sample_archive__warcs__example.warc.gz",
            "warcinfo 1, request 2, 200 1, 302 1, revisit 200 1",
        ),
        (
            "pywb/sample_archive__warcs__example2.warc.gz",
            "warcinfo 1, request 1, 200 1",
        ),
        (
            "pywb/sample_archive__warcs__httpbin-resource.warc.gz",
            "resource 1",
        ),
        // Lines end with CR CR LF.
        (
            "pywb/sample_archive__warcs__missing-status-text.warc",
            "302 1",
        ),
        (
            "pywb/sample_archive__warcs__post-test.warc.gz",
            "request 3, answer to POST 3",
        ),
        // All records in one gzip member.
        (
            "warcio/test__data__example-bad-non-chunked.warc.gz",
            "warcinfo 2, request 2, 200 1, revisit 200 1",
        ),
        ("warcio/test__data__example-digest.warc", "request 4"),
        (
            "warcio/test__data__example-iana.org-chunked.warc",
            "warcinfo 1, request 1, 200 1",
        ),
        (
            "warcio/test__data__example-resource.warc.gz",
            "warcinfo 2, resource 1",
        ),
        (
            "warcio/test__data__example-space-in-target-uri.warc.gz",
            "warcinfo 1, resource 1",
        ),
        // A length that is four bytes too small.
        (
            "warcio/test__data__example-trunc.warc",
            "warcinfo 2, request 1, 200 1, bad: malformed 1",
        ),
        (
            "warcio/test__data__example-wget-bad-target-uri.warc.gz",
            "warcinfo 1, request 1, metadata 1, resource 2, 200 1",
        ),
        // A record split between gzip members.
        (
            "warcio/test__data__example-wrong-chunks.warc.gz",
            "request 1, 200 1",
        ),
        (
            "warcio/test__data__example.warc",
            "warcinfo 2, request 2, 200 1, revisit 200 1",
        ),
        (
            "warcio/test__data__example.warc.gz",
            "warcinfo 2, request 2, 200 1, revisit 200 1",
        ),
        (
            "warcio/test__data__post-test.warc.gz",
            "request 3, answer to POST 3",
        ),
    ] {
        check(Format::Warc, &format!("odd/{file}"), expected);
    }
}

#[test]
fn odd_arcs() {
    for (file, expected) in [
        (
            "ia-web-commons/format__arc__IAH-20080430204825-00000-blackbook-truncated.arc",
            "filedesc 1, no HTTP response 1, 200 7",
        ),
        // Of four records three have no length (-1 and abc), and one has an empty block.
        (
            "pywb/sample_archive__warcs__bad.arc",
            "bad: malformed 3, no HTTP response 1",
        ),
        (
            "pywb/sample_archive__warcs__example.arc",
            "filedesc 1, 200 1",
        ),
        (
            "pywb/sample_archive__warcs__example.arc.gz",
            "filedesc 1, 200 1",
        ),
        (
            "warcio/test__data__bad.arc",
            "bad: malformed 3, no HTTP response 1",
        ),
        // Its line ends were changed, its lengths were not.
        (
            "warcio/test__data__example-space-in-url.arc",
            "filedesc 1, bad: cut-short 1",
        ),
        ("warcio/test__data__example.arc", "filedesc 1, 200 1"),
        ("warcio/test__data__example.arc.gz", "filedesc 1, 200 1"),
    ] {
        check(Format::Arc, &format!("odd/{file}"), expected);
    }
}

/// The URL with spaces of an ARC whose block is cut, and one of a WARC whose target is in brackets.
#[test]
fn targets_as_written() {
    let Some(data) = data("odd/warcio/test__data__example-space-in-url.arc") else {
        return;
    };
    // Completed: its block is 50 bytes shorter than its length (a byte for each line end).
    let whole = [&data[..], &[b' '; 100]].concat();
    let mut urls = Vec::new();
    Format::Arc.decoder().decode(&whole, &mut |_, parsed| {
        if let Parsed::Record(record) = parsed {
            urls.push(String::from_utf8(record.url.to_vec()).unwrap());
        }
        true
    });
    let expected = "http://example.com/index.cfm?FuseAction=Email&EmailTitle=Examples From The Live Web&IsPopUp=False";
    assert_eq!(urls, [expected]);
}

/// Heritrix's outlinks: for every capture on request, for a revisit always.
#[test]
fn outlinks_of_heritrix() {
    for (file, captures, links) in [
        ("blackbook/blackbook.warc.gz", 143, 32_801),
        (
            "govuk/resources__gov.uk-revisit-warcs__BL-20140325121225068-00000-32090~opera~8443.warc.gz",
            61,
            6_811,
        ),
        (
            "govuk/resources__gov.uk-revisit-warcs__BL-20140325122341434-00000-32090~opera~8443.warc.gz",
            61,
            6_811,
        ),
    ] {
        let Some(data) = data(file) else {
            continue;
        };
        let decoder = by(Outlinks::Metadata);
        let (mut listed, mut found, mut is_listed) = (0, 0, false);
        decoder.decode(&data, &mut |_, parsed| {
            match parsed {
                Parsed::Other { kind } => is_listed |= kind == "metadata with outlinks",
                Parsed::Record(record) if std::mem::take(&mut is_listed) => {
                    listed += usize::from(record.redirect.is_none());
                    found += record.links.len();
                    assert!(!record.revisit);
                }
                _ => is_listed = false,
            }
            true
        });
        assert_eq!((listed, found), (captures, links), "{file}");
        check_pieces(&*decoder, &data, file);
    }
    let second = "govuk/resources__gov.uk-revisit-warcs__BL-20140325122341434-00000-32090~opera~8443.warc.gz";
    if let Some(data) = data(second) {
        let (mut links, mut done, mut in_tail) = (0, 0, false);
        Format::Warc.decoder().decode(&data, &mut |end, parsed| {
            match parsed {
                // Output at the same offset belongs to the capture that follows.
                Parsed::Other { kind } => in_tail = end == done && kind == "metadata with outlinks",
                Parsed::Record(record) if std::mem::take(&mut in_tail) => {
                    links += record.links.len();
                }
                _ => {}
            }
            done = end;
            true
        });
        // Those of the 55 revisits.
        assert_eq!(links, 6_530);
    }
}

/// Returns the digest of each response, by page and time; if there are several, the last.
fn digests(decoder: &dyn Decoder, data: &[u8]) -> BTreeMap<(Vec<u8>, Option<i64>), String> {
    let mut digests = BTreeMap::new();
    decoder.decode(data, &mut |_, parsed| {
        if let Parsed::Record(record) = parsed
            && record.digest != Record::default().digest
        {
            let key = (record.url.to_vec(), record.fetched_at);
            digests.insert(key, format!("{:?}", record.digest));
        }
        true
    });
    digests
}

/// An extractor copies the digests of an archive, or computes them from the same bodies.
#[test]
fn a_wat_has_the_digests_of_its_warc() {
    let pairs = [
        ("blackbook/blackbook.warc.gz", "blackbook/blackbook.wat.gz"),
        (
            "govuk/resources__gov.uk-revisit-warcs__BL-20140325122341434-00000-32090~opera~8443.warc.gz",
            "govuk/BL-20140325122341434-00000-32090~opera~8443.wat.gz",
        ),
        (
            "postgresql/pg15-crawl1.warc.gz",
            "postgresql/pg15-crawl1.wat.gz",
        ),
    ];
    for (warc, wat) in pairs {
        let (Some(of_warc), Some(of_wat)) = (data(warc), data(wat)) else {
            continue;
        };
        let of_warc = digests(Format::Warc.decoder(), &of_warc);
        let of_wat = digests(Format::Wat.decoder(), &of_wat);
        assert!(of_warc.len() > 50, "{warc}: {}", of_warc.len());
        assert_eq!(of_wat, of_warc, "{wat}");
    }
}
