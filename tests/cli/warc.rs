//! WARC and ARC from the command line: real archives are ranked, broken ones are named.

use std::fs;
use std::io::Read;

use crate::support::{Lab, data, gzip, in_pieces};

const GOVUK: [&str; 2] = [
    "govuk/resources__gov.uk-revisit-warcs__BL-20140325121225068-00000-32090~opera~8443.warc.gz",
    "govuk/resources__gov.uk-revisit-warcs__BL-20140325122341434-00000-32090~opera~8443.warc.gz",
];

/// One crawl in two formats gives one ranking. Counts by warcio: 261 HTTP responses, 40 of them 404.
#[test]
fn a_crawl_as_warc_and_as_arc() {
    let (Some(warc), Some(arc)) = (
        data("blackbook/blackbook.warc.gz"),
        data("blackbook/blackbook.arc.gz"),
    ) else {
        return;
    };
    let lab = Lab::new();
    for (path, store, other) in [(warc, "warc", 561), (arc, "arc", 39)] {
        let path = path.display();
        lab.run(&format!("ingest {path} --store {store}"))
            .exits(0)
            .says(&[&format!("read as {store}")]);
        let stat = lab.stat(store);
        assert_eq!((&stat["records"], &stat["gone"]), (&261.into(), &40.into()));
        assert_eq!(
            (&stat["other"], &stat["skipped"]),
            (&other.into(), &0.into())
        );
    }
    assert_eq!(lab.export("warc"), lab.export("arc"));
}

/// Links that the extractor of blackbook's WAT left out, all of one page: by `diff` of the `href`s in the WARC's HTML
/// with the WAT's.
const NOT_EXTRACTED: [&str; 9] = [
    "http://recall.archive.org/",
    "http://ia00406.archive.org/about.html",
    "http://tsunami.archive.org/",
    "http://websearch.archive.org/katrina/",
    "http://www.nationalarchives.gov.uk/preservation/archivedwebsites.htm",
    "http://www.loc.gov/minerva/collect/elec2002",
    "http://lcweb2.loc.gov/cocoon/minerva/html/sept11/sept11-about.html",
    "http://web.archive.org/collections/e2k.html",
    "http://web.archive.org/collections/pioneers.html",
];

/// Regression: the home page ranked 1 in the WARC and 29 in the WAT of one crawl. It is reached by a refresh, which
/// WATs list among the head's `Metas`, and which was read from HTML only; and links with `&amp;` led to separate pages.
/// Now both are read, and the rankings agree.
#[test]
fn a_crawl_as_warc_and_as_wat() {
    let (Some(warc), Some(wat)) = (
        data("blackbook/blackbook.warc.gz"),
        data("blackbook/blackbook.wat.gz"),
    ) else {
        return;
    };
    let lab = Lab::new();
    let scope = NOT_EXTRACTED.map(|url| format!("--scope !url:{url}"));
    for (path, store) in [(warc, "warc"), (wat, "wat")] {
        let (path, scope) = (path.display(), scope.join(" "));
        lab.run(&format!("ingest {path} --store {store} {scope}"))
            .exits(0)
            .says(&[&format!("read as {store}")]);
    }
    // The extractor moved one link within its page, so the pages are not numbered alike.
    let sorted = |store: &str| {
        // All columns except the page's number, which comes last.
        let row = |line: &str| line.rsplit_once('\t').unwrap().0.to_owned();
        let mut lines: Vec<String> = lab.export(store).lines().map(row).collect();
        lines.sort();
        lines
    };
    assert!(sorted("warc") == sorted("wat"));
}

/// A second crawl of the same pages, most of them unchanged: `revisit` records without a body. Heritrix lists their
/// outlinks, so 54 of the 55 are visits with these links; the other is a redirect. Without the outlinks, 54 pages would
/// be unchanged.
#[test]
fn revisits_with_outlinks_are_visits() {
    let (Some(first), Some(second)) = (data(GOVUK[0]), data(GOVUK[1])) else {
        return;
    };
    let lab = Lab::new();
    // All but the 403 are visits; finding a page gone is one, too.
    let both = format!("{} {}", first.display(), second.display());
    let first = first.display().to_string();
    for (inputs, records, visits) in [(first, 62, 61), (both, 124, 122)] {
        lab.run(&format!("ingest {inputs} --store s")).exits(0);
        let stat = lab.stat("s");
        assert_eq!(stat["records"], records);
        assert_eq!(stat["unchanged"], 0);
        // 404 and 403: 3 and 1 per crawl.
        assert_eq!(
            (&stat["gone"], &stat["failed"]),
            (&(records / 62 * 3).into(), &(records / 62).into())
        );
        assert_eq!(stat["visits"], visits);
    }
}

/// wget lists no outlinks: 6 of its records are revisits, which say nothing except that one page is gone, by its status
/// 404.
#[test]
fn revisits_without_outlinks_are_no_visits() {
    let Some(path) = data("postgresql/pg15-crawl2.warc.gz") else {
        return;
    };
    let lab = Lab::new();
    lab.run(&format!("ingest {} --store s", path.display()))
        .exits(0);
    let stat = lab.stat("s");
    assert_eq!(
        (&stat["records"], &stat["unchanged"]),
        (&1_175.into(), &5.into())
    );
    assert_eq!((&stat["gone"], &stat["visits"]), (&1.into(), &1_170.into()));
}

/// In every compression: plain, in one gzip member or many, in zstd with and without a dictionary at the start, from a
/// file and from a pipe.
#[test]
fn one_warc_in_all_wrappings() {
    let Some(path) = data("blackbook/blackbook.warc.gz") else {
        return;
    };
    let mut text = Vec::new();
    let file = fs::File::open(&path).unwrap();
    flate2::read::MultiGzDecoder::new(file)
        .read_to_end(&mut text)
        .unwrap();
    let samples: Vec<&[u8]> = text.chunks(10_000).collect();
    let dictionary = zstd::dict::from_samples(&samples, 100_000).unwrap();
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
    compressor.include_checksum(true).unwrap();
    let length = (dictionary.len() as u32).to_le_bytes();
    let mut with_dictionary = [&[0x5d, 0x2a, 0x4d, 0x18], &length[..], &dictionary].concat();
    for piece in text.chunks(30_000) {
        with_dictionary.extend(compressor.compress(piece).unwrap());
    }
    let lab = Lab::new();
    lab.run(&format!("ingest {} --store original", path.display()))
        .exits(0);
    let expected = lab.export("original");
    for (n, packed) in [
        gzip(&text),
        in_pieces(&text, 7_777, gzip),
        zstd::encode_all(&text[..], 3).unwrap(),
        with_dictionary,
        text,
    ]
    .iter()
    .enumerate()
    {
        lab.file("packed", packed);
        lab.run(&format!("ingest packed --store file{n}")).exits(0);
        lab.feed(&format!("ingest - --store pipe{n}"), packed)
            .exits(0);
        assert!(lab.export(&format!("file{n}")) == expected, "wrapping {n}");
        assert!(
            lab.export(&format!("pipe{n}")) == expected,
            "wrapping {n}, by pipe"
        );
    }
}

/// Links from HTML and from Heritrix's metadata differ, so a store keeps the choice between them.
#[test]
fn where_links_come_from_is_a_choice() {
    let Some(path) = data("blackbook/blackbook.warc.gz") else {
        return;
    };
    let (lab, path) = (Lab::new(), path.display());
    lab.run(&format!("ingest {path} --store html")).exits(0);
    lab.run(&format!(
        "ingest {path} --store metadata --outlinks metadata"
    ))
    .exits(0);
    assert!(lab.export("html") != lab.export("metadata"));
    lab.run(&format!("ingest {path} --store metadata --outlinks html"))
        .exits(2);
}

/// Archives that their makers broke: exactly the records before the damage, the reason, and the exit code. Records and
/// positions by a reader in Python (gzip members by zlib).
#[test]
fn broken_archives() {
    for (file, code, records, words) in [
        (
            "gowarc/testdata__warcs__corrupted-mid-record.warc.gz.open",
            4,
            // The twelfth is a response; its request may have been in the lost part after it.
            11,
            &[
                "what follows at compressed byte 1219 is not a gzip member",
                "after record 11",
            ][..],
        ),
        (
            "gowarc/testdata__warcs__corrupted-trailing-bytes.warc.gz.open",
            4,
            29,
            &[
                "what follows at compressed byte 2362 is not a gzip member",
                "after record 29",
            ],
        ),
        (
            "gowarc/testdata__warcs__empty.warc.gz.open",
            3,
            0,
            &["is empty"],
        ),
        (
            "pywb/sample_archive__warcs__example.warc",
            3,
            3,
            &["record 6 at byte 4764 skipped: malformed: no WARC record begins here"],
        ),
        (
            "warcio/test__data__example-trunc.warc",
            3,
            1,
            &["record 4 at byte 2560 skipped: malformed: no WARC record begins here"],
        ),
        (
            "pywb/sample_archive__warcs__bad.arc",
            3,
            0,
            &[
                "record 1 at byte 0 skipped: malformed: the length in an ARC header is not a number",
                "3 malformed",
            ],
        ),
        (
            "warcio/test__data__example-space-in-url.arc",
            3,
            0,
            &["cut-short: the input ends inside an ARC block"],
        ),
    ] {
        let Some(path) = data(&format!("odd/{file}")) else {
            continue;
        };
        let lab = Lab::new();
        let done = lab.run(&format!("ingest {} --store s", path.display()));
        done.exits(code).says(words);
        assert_eq!(lab.stat("s")["records"], records, "{file}");
    }
}

/// A capture whose end is lost is not read: a record after it might have named its method or its links.
#[test]
fn damage_after_a_revisit() {
    let record = |kind: &str, page: u32, block: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a/{page}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let outlinks = "outlink: http://b/ L a/@href\r\n";
    let page = record("response", 1, "HTTP/1.1 200 OK\r\n\r\n");
    let request = record("request", 1, "GET /1 HTTP/1.1\r\n\r\n");
    let revisit = record("revisit", 2, "HTTP/1.1 200 OK\r\n\r\n");
    let tail = record("metadata", 2, outlinks);
    for (before, records) in [
        (vec![&page], 0),
        (vec![&request, &page], 1),
        (vec![&page, &revisit], 1),
        (vec![&page, &revisit, &tail], 1),
        (vec![&page, &revisit, &tail, &page], 2),
    ] {
        let mut packed: Vec<u8> = before
            .iter()
            .flat_map(|text| gzip(text.as_bytes()))
            .collect();
        packed.extend(b"not a gzip member");
        let lab = Lab::new();
        lab.file("in", packed);
        lab.run("ingest in --format warc --store s").exits(4);
        assert_eq!(lab.stat("s")["records"], records);
    }
}

/// WETs and files of other kinds are recognised, and named in the error.
#[test]
fn archives_without_links() {
    let lab = Lab::new();
    lab.file(
        "wet",
        "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
    );
    lab.run("ingest wet --store s")
        .exits(2)
        .says(&["it is a WET, the text of pages"]);
}

/// Of several responses to a page, that to its GET counts, whatever came later: it keeps its link. A page that is first
/// seen with the content of another links to that, until its own response comes.
#[test]
fn answers_that_are_no_visits() {
    let record = |kind: &str, url: &str, more: &str, block: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a/{url}\r\n{more}Content-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let html = |status: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\n\r\n{body}")
    };
    let request = |method: &str, url: &str| {
        record("request", url, "", &format!("{method} / HTTP/1.1\r\n\r\n"))
    };
    let page = record("response", "p", "", &html("200 OK", "<a href=x>x</a>"));
    let same = "WARC-Refers-To-Target-URI: http://a/p\r\n";
    let copy = record("revisit", "q", same, &html("200 OK", ""));
    for (at, (later, links)) in [
        (
            request("HEAD", "p") + &record("response", "p", "", &html("200 OK", "")),
            "http://a/p\thttp://a/x\n",
        ),
        (
            record("response", "p", "", &html("404 x", "")) + &request("POST", "p"),
            "http://a/p\thttp://a/x\n",
        ),
        (
            record("response", "p", "", &html("206 x", "<a href=y>")),
            "http://a/p\thttp://a/x\n",
        ),
        (
            record("response", "p", "", &html("204 x", "")),
            "http://a/p\thttp://a/x\n",
        ),
        (
            copy.clone(),
            "http://a/p\thttp://a/x\nhttp://a/q\thttp://a/p\n",
        ),
        (
            copy.clone() + &record("response", "q", "", &html("200 OK", "<a href=y>")),
            "http://a/p\thttp://a/x\nhttp://a/q\thttp://a/y\n",
        ),
        (
            record("response", "q", "", &html("200 OK", "<a href=y>")) + &copy,
            "http://a/p\thttp://a/x\nhttp://a/q\thttp://a/y\n",
        ),
        (
            record("revisit", "q", same, &html("304 x", "")),
            "http://a/p\thttp://a/x\n",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let lab = Lab::new();
        lab.file("in.warc", page.clone() + &request("GET", "p") + &later);
        lab.run("ingest in.warc --store s").exits(0);
        let found = lab.run("export --links --to tsv --store s").exits(0).out;
        let mut found: Vec<&str> = found.split_inclusive('\n').collect();
        found.sort_unstable();
        assert_eq!(found.concat(), links, "{at}");
        assert_eq!(lab.stat("s")["gone"], 0, "{at}");
    }
}

/// In every format, a response without content, with a part of it, or an interim one is a failed fetch, and changes no
/// link.
#[test]
fn statuses_without_the_page() {
    let lab = Lab::new();
    let line = |status: u32| {
        format!("{{\"url\":\"http://a/\",\"status\":{status},\"links\":[\"http://a/{status}\"]}}\n")
    };
    lab.file(
        "in.jsonl",
        [200, 100, 103, 204, 205, 206].map(line).concat(),
    );
    lab.run("ingest in.jsonl --store s").exits(0);
    let stat = lab.stat("s");
    assert_eq!((&stat["visits"], &stat["failed"]), (&1.into(), &5.into()));
    let links = lab.run("export --links --to tsv --store s").exits(0).out;
    assert_eq!(links, "http://a/\thttp://a/200\n");
}
