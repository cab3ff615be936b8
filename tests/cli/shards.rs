//! Stores that share a crawl by host: `--shard`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use crate::crawl::crawl;
use crate::support::Lab;
use crate::table::{Column, layouts, write};

const N: u64 = 4;

/// Returns the shard of a page by the specification (`formats/store.md`): XXH3-64 of its host's name, or of an opaque
/// name.
fn shard_of(name: &str) -> u64 {
    let rest = name.strip_prefix("http://").unwrap_or(name);
    let host = rest.split('/').next().unwrap();
    xxh3_64(host.as_bytes()) % N
}

fn lines(lab: &Lab, command: &str) -> BTreeSet<String> {
    let out = lab.run(command).exits(0).out;
    out.lines().map(str::to_owned).collect()
}

/// Returns a crawl of seven hosts, a0.example to a6.example, spread over all four shards.
fn crawl_of_all(seed: u64, records: u64) -> Vec<String> {
    let lines = crawl(seed, records).into_iter();
    lines
        .map(|line| line.replace("http://h", "http://a"))
        .collect()
}

/// Returns those columns of an export that do not depend on the ranking: visits, last fetch and state.
fn pages(lab: &Lab, store: &str) -> BTreeMap<String, String> {
    let export = lab.export(store);
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        (fields[0].to_owned(), fields[3..6].join("\t"))
    };
    export.lines().skip(1).map(row).collect()
}

/// Returns the pages that a store knows, remote ones included: the vertices of its graph.
fn known(lab: &Lab, store: &str) -> BTreeSet<String> {
    let folder = format!("{store}.graph");
    let export = format!("export --links --to common-crawl -o {folder} --store {store}");
    lab.run(&export).exits(0);
    let packed = std::fs::read(lab.path(&folder).join("vertices.txt.gz")).unwrap();
    let text = std::io::read_to_string(flate2::read::MultiGzDecoder::new(&*packed)).unwrap();
    let name = |line: &str| line.split_once('\t').unwrap().1.to_owned();
    text.lines().map(name).collect()
}

/// Reads `input` into one store and into four shards, and compares them.
fn divide(lab: &Lab, input: &str, format: &str) {
    let ingest = |store: &str, shard: &str| {
        let line = format!("ingest {input} --format {format} --store {store} --json {shard}");
        lab.run(&line).exits(0).json()
    };
    let one = ingest("one", "");
    let whole = pages(lab, "one");
    assert!(one["records"].as_u64() > Some(20), "{format}: {one}");
    let (mut links, mut all, mut fetched) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    let mut records = 0;
    for number in 0..N {
        let store = format!("{number}");
        let done = ingest(&store, &format!("--shard {number}/{N}"));
        let [own, others] = ["records", "other_shards"].map(|name| done[name].as_u64().unwrap());
        assert!(own > 0 && others > 0, "{format}: {done}");
        assert_eq!(own + others, one["records"].as_u64().unwrap(), "{format}");
        records += own;
        let stat = lab.stat(&store);
        assert_eq!(stat["shard"]["number"], number);
        assert_eq!(stat["shard"]["other_records"], others);
        let listed = pages(lab, &store);
        let known = known(lab, &store);
        let remote = known.iter().filter(|page| shard_of(page) != number).count() as u64;
        assert_eq!(stat["shard"]["remote_pages"], remote, "{format}");
        assert_eq!(stat["pages"], listed.len() as u64 + remote, "{format}");
        assert!(
            listed.keys().all(|page| shard_of(page) == number),
            "{format}"
        );
        all.extend(known);
        links.extend(lines(
            lab,
            &format!("export --links --to tsv --store {store}"),
        ));
        // `next` lists no page of another shard.
        let next = lines(lab, &format!("next -n 100000 --quiet --store {store}"));
        assert!(next.iter().all(|page| shard_of(page) == number), "{format}");
        for page in &next {
            assert!(whole.contains_key(page) && listed.contains_key(page));
        }
        let was_asked = |row: &String| !row.ends_with("not crawled");
        fetched.extend(listed.into_iter().filter(|(_, row)| was_asked(row)));
        let top = lab.run(&format!("top -n 100000 --json --store {store}"));
        let top = top.exits(0).json();
        let top = top["top"].as_array().unwrap();
        assert!(
            top.iter()
                .all(|page| shard_of(page["url"].as_str().unwrap()) == number)
        );
        assert!(top.is_sorted_by_key(|page| page["rank"].as_u64()));
        lab.run(&format!("verify --deep --store {store}")).exits(0);
    }
    assert_eq!(records, one["records"].as_u64().unwrap(), "{format}");
    assert_eq!(
        links,
        lines(lab, "export --links --to tsv --store one"),
        "{format}"
    );
    assert!(all.iter().eq(whole.keys()), "{format}");
    let whole = whole
        .into_iter()
        .filter(|(_, row)| !row.ends_with("not crawled"));
    assert!(fetched == whole.collect(), "{format}");
}

/// The shards together know everything that one store would know, with each record in one of them.
#[test]
fn shards_divide_a_crawl() {
    let lab = Lab::new();
    lab.file("in", crawl_of_all(7, 400).concat());
    divide(&lab, "in", "records");
}

#[test]
fn shards_divide_a_warc() {
    let lab = Lab::new();
    let record = |at: u64| {
        let page = |at: u64| format!("http://a{}.example/p{at}", at % 9);
        let links =
            [at * 7 % 50, at * 11 % 83, at + 1].map(|to| format!("<a href='{}'></a>", page(to)));
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{}",
            links.concat()
        );
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n\
             Content-Length: {}\r\n\r\n{answer}\r\n\r\n",
            page(at),
            answer.len()
        )
    };
    lab.file("in", (0..60).map(record).collect::<String>());
    divide(&lab, "in", "warc");
}

/// Rows of a table lose their links before they become records, wherever the column of pages is.
#[test]
fn shards_divide_a_table() {
    let lab = Lab::new();
    let page = |at: u64| format!("http://a{}.example/p{at}", at % 9);
    let links = |at: u64| {
        let to = [at * 7 % 50, at * 11 % 83, at + 1].map(|to| Some(page(to)));
        Some(to[..at as usize % 4].to_vec())
    };
    let columns = [
        (
            "OPTIONAL GROUP links (LIST) { REPEATED GROUP list { OPTIONAL BYTE_ARRAY element (STRING); } }",
            Column::Lists((0..150).map(links).collect()),
        ),
        (
            "OPTIONAL BYTE_ARRAY url (STRING);",
            Column::Text((0..150).map(|at| Some(page(at))).collect()),
        ),
    ];
    write(&lab.path("in"), &columns, layouts()[2]);
    divide(&lab, "in", "records");
}

/// Names that are not URLs have no host, and are hashed as a whole.
#[test]
fn shards_divide_a_graph_of_opaque_names() {
    let lab = Lab::new();
    let edge = |at: u64| format!("n{}\tn{}\n", at / 3, at * 7919 % 100);
    lab.file("in", (0..240).map(edge).collect::<String>());
    divide(&lab, "in", "edges");
}

/// Creates a small crawl. By the reference implementation, a.example and b.example are in shard 0 of 4, example.org in
/// shard 1 and www.example.org in shard 2.
fn small(lab: &Lab) {
    let records = [
        json!({"url": "http://a.example/", "links": ["/1", "http://example.org/", "http://www.example.org/x"]}),
        json!({"url": "http://example.org/", "links": ["http://a.example/"]}),
        json!({"url": "http://b.example/", "links": ["http://example.org/"]}),
    ];
    lab.file("in", records.map(|record| format!("{record}\n")).concat());
}

#[test]
fn lists_are_of_a_shards_own_pages() {
    let lab = Lab::new();
    small(&lab);
    lab.run("ingest in --store s --shard 0/4").exits(0).says(&[
        "2 records, 4 links",
        "1 record of other shards, passed over",
    ]);
    let stat = lab.stat("s");
    assert_eq!(
        stat["shard"],
        json!({"number": 0, "count": 4, "other_records": 1, "remote_pages": 2})
    );
    let text = lab.run("stat --store s").exits(0).out;
    assert!(text.contains("0/4: 2 pages of other shards"), "{text}");

    let urls = |command: &str| -> Vec<String> {
        let json = lab
            .run(&format!("{command} --store s --json"))
            .exits(0)
            .json();
        let rows = json["top"].as_array().unwrap().iter();
        let mut urls: Vec<String> = rows
            .map(|row| row["url"].as_str().unwrap().into())
            .collect();
        urls.sort_unstable();
        urls
    };
    let own = [
        "http://a.example/",
        "http://a.example/1",
        "http://b.example/",
    ];
    assert_eq!(urls("top"), own);
    assert_eq!(urls("top --scope url:*"), own);
    assert_eq!(urls("top --level host"), ["a.example", "b.example"]);
    assert_eq!(urls("top --level domain"), ["a.example", "b.example"]);
    assert_eq!(pages(&lab, "s").into_keys().collect::<Vec<_>>(), own);
    let scores = lab.run("export --to solr --store s").exits(0).out;
    assert_eq!(scores.lines().count(), 3, "{scores}");
    let hosts = lab
        .run("export --to tsv --level host --store s")
        .exits(0)
        .out;
    assert_eq!(hosts.lines().count(), 3, "{hosts}");

    // By a measure that was computed over all known links.
    lab.run("compute --measure harmonic --level host --store s")
        .exits(0);
    lab.run("compute --measure harmonic --store s").exits(0);
    assert_eq!(
        urls("top --measure harmonic --level host"),
        ["a.example", "b.example"]
    );
    assert_eq!(urls("top --measure harmonic"), own);

    // Lookups by name, and links, cover all known pages.
    let remote = lab.run("rank http://example.org/ --store s").exits(0).out;
    assert!(remote.contains("http://example.org/"), "{remote}");
    let links = lab
        .run("links http://example.org/ --in --store s --json")
        .exits(0)
        .out;
    for source in ["http://a.example/", "http://b.example/"] {
        assert!(links.contains(source), "{links}");
    }
    lab.run("links http://example.org/ --store s")
        .exits(0)
        .says(&["0 links: a page of another shard"]);
    let links = lab.run("export --links --to tsv --store s").exits(0).out;
    assert_eq!(links.lines().count(), 4, "{links}");
    let links = lab.run("export --links --to tsv --level host --store s");
    assert_eq!(links.exits(0).out.lines().count(), 3);

    assert_eq!(
        lab.run("next --store s").exits(0).out,
        "http://a.example/1\n"
    );
    lab.file(
        "seeds",
        "http://example.org/new\nhttp://a.example/2\nhttp://www.example.org/x\n",
    );
    let next = lab.run("next --store s --seeds seeds").exits(0);
    let next = next.says(&["2 lines skipped: of other shards (2)"]);
    assert_eq!(next.out, "http://a.example/2\nhttp://a.example/1\n");
    let covered = lab
        .run("coverage --by-host --json --store s")
        .exits(0)
        .json();
    assert_eq!(
        (&covered["pages"], &covered["read"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(covered["hosts"].as_array().unwrap().len(), 2);
}

/// A line that one store skips is also skipped by the shard of a page that redirected to it: no part of it is used.
#[test]
fn a_malformed_record_is_in_no_shard() {
    let lab = Lab::new();
    let line = |n: u64| {
        let record = json!({
            "url": format!("http://h{n}.example/"),
            "requested_url": format!("http://r{n}.example/"),
            "links": ["/x"],
            "links_nofollow": [true, false],
        });
        format!("{record}\n")
    };
    lab.file("bad", (0..9).map(line).collect::<String>());
    for shard in 0..3 {
        lab.run(&format!("ingest bad --store {shard} --shard {shard}/3"));
        let stat = lab.run(&format!("stat --json --store {shard}")).exits(0);
        assert_eq!(stat.json()["pages"], 0, "{shard}");
    }
}

/// Records of other shards are not an error, even if there are no others.
#[test]
fn a_shard_may_have_no_part_in_an_input() {
    let lab = Lab::new();
    small(&lab);
    let done = lab.run("ingest in --store s --shard 3/4 --json").exits(0);
    let json = done.json();
    assert_eq!(
        (&json["records"], &json["other_shards"]),
        (&json!(0), &json!(3))
    );
    assert_eq!(json["pages"], 0);
    lab.run("ingest in --store t --shard 3/4")
        .exits(0)
        .says(&["3 records of other shards, passed over"]);
    // Its first record may come later.
    let own = (0..).map(|n| format!("http://h{n}.example/"));
    let own = own.into_iter().find(|page| shard_of(page) == 3).unwrap();
    lab.file(
        "more",
        format!("{}\n", json!({"url": own, "links": ["http://a.example/"]})),
    );
    let done = lab.run("ingest in more --store s --json").exits(0);
    assert_eq!(
        (&done.json()["records"], &done.json()["pages"]),
        (&json!(1), &json!(2))
    );
    // If no record is about a page, it is an error.
    lab.file("bad", "{\"uri\":\"http://a.example/\"}\n");
    lab.run("ingest bad --store u --shard 0/4")
        .exits(3)
        .says(&["nothing was read"]);
}

/// The shard belongs to the store, as other settings do.
#[test]
fn a_store_keeps_its_shard() {
    let lab = Lab::new();
    small(&lab);
    for (wrong, right) in [("4/4", "0/4 to 3/4"), ("1", "K/N"), ("0/0", "K/N")] {
        lab.run(&format!("ingest in --store s --shard {wrong}"))
            .exits(2)
            .says(&[right]);
    }
    assert!(!lab.path("s").exists());
    lab.run("ingest in --store s --shard 0/4").exits(0);
    for (store, other, said) in [
        ("s", "1/4", "--shard 0/4, not 1/4"),
        ("s", "0/8", "--shard 0/4, not 0/8"),
    ] {
        lab.run(&format!("ingest in --store {store} --shard {other}"))
            .exits(2)
            .says(&["this store was made with", said]);
    }
    lab.run("ingest in --store s")
        .exits(0)
        .says(&["nothing to do"]);
    lab.run("ingest in --store all").exits(0);
    lab.run("ingest in --store all --shard 0/4")
        .exits(2)
        .says(&["no --shard, not 0/4"]);
    let record = lab.run("stat --record --store s").exits(0).json();
    let again: Vec<&str> = record["again"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|word| word.as_str())
        .collect();
    assert!(
        again.windows(2).any(|pair| pair == ["--shard", "0/4"]),
        "{again:?}"
    );
}

/// The records of a store, ingested into shards, are distributed like those of the crawl.
#[test]
fn a_store_is_dealt_out_to_shards() {
    let lab = Lab::new();
    lab.file("in", crawl_of_all(13, 300).concat());
    lab.run("ingest in --store crawl").exits(0);
    lab.run("export --records -o dump.jsonl --store crawl")
        .exits(0);
    divide(&lab, "dump.jsonl", "records");
    assert_eq!(lab.stat("one")["visited"], lab.stat("crawl")["visited"]);
}

/// A shard does not depend on how its records arrive; acknowledged positions include the records that it skipped.
#[test]
fn a_shard_is_the_same_however_it_is_read() {
    let lab = Lab::new();
    let lines = crawl_of_all(11, 300);
    let input = lines.concat();
    lab.file("in", &input);
    lab.run("ingest in --store file --shard 2/4").exits(0);
    let expected = lab.snapshot("file");
    let counts = |store: &str| lab.stat(store)["shard"].clone();
    lab.run("ingest in --store threads --shard 2/4 --threads 4 --checkpoint-every 10")
        .exits(0);
    assert!(lab.snapshot("threads") == expected);
    // A stream that is cut, and sent again.
    let half = lines[..150].concat();
    lab.feed("ingest - --store pipe --shard 2/4", half.as_bytes())
        .exits(0);
    lab.feed("ingest - --store pipe --resume", input.as_bytes())
        .exits(0);
    assert!(lab.snapshot("pipe") == expected);
    for store in ["threads", "pipe"] {
        assert_eq!(counts(store), counts("file"));
    }
}
