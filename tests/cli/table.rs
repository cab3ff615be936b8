//! Parquet tables as inputs.

use serde_json::Value;

use crate::crawl::crawl;
use crate::support::Lab;
use crate::table::{Column, Layout, layouts, write};

const URL: &str = "OPTIONAL BYTE_ARRAY url (STRING);";
const LINKS: &str =
    "OPTIONAL GROUP links (LIST) { REPEATED GROUP list { OPTIONAL BYTE_ARRAY element (STRING); } }";

/// Converts records that are lines of JSON to columns.
fn columns(lines: &[String]) -> Vec<(&'static str, Column)> {
    let records: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let text = |name: &str| {
        let text = |record: &Value| record[name].as_str().map(String::from);
        Column::Text(records.iter().map(text).collect())
    };
    let list = |record: &Value| {
        let links = record["links"].as_array()?.iter();
        Some(links.map(|link| link.as_str().map(String::from)).collect())
    };
    let time = |record: &Value| Some(record["fetched_at"].as_i64()? * 1000 + 999);
    let status = |record: &Value| Some(record["status"].as_i64()? as i32);
    vec![
        (URL, text("url")),
        (
            "OPTIONAL INT64 fetched_at (TIMESTAMP(MILLIS, true));",
            Column::Long(records.iter().map(time).collect()),
        ),
        (LINKS, Column::Lists(records.iter().map(list).collect())),
        (
            "OPTIONAL INT32 status;",
            Column::Int(records.iter().map(status).collect()),
        ),
        ("OPTIONAL BYTE_ARRAY redirect (STRING);", text("redirect")),
        (
            "OPTIONAL BYTE_ARRAY body;",
            Column::Text(records.iter().map(|_| Some("<p>".repeat(100))).collect()),
        ),
    ]
}

fn texts(rows: &[&str]) -> Column {
    Column::Text(rows.iter().map(|row| Some((*row).into())).collect())
}

fn longs(rows: &[i64]) -> Column {
    Column::Long(rows.iter().copied().map(Some).collect())
}

/// A table's rows equal the records that are lines of JSON, whatever the layout of the file.
#[test]
fn a_table_of_records_is_what_its_rows_are_as_lines() {
    let lab = Lab::new();
    let lines = crawl(17, 300);
    lab.file("lines", lines.concat());
    lab.run("ingest lines --store s").exits(0);
    let expected = lab.export("s");
    let counts = |store: &str| {
        let stat = lab.stat(store);
        let names = [
            "records",
            "gone",
            "unchanged",
            "failed",
            "skipped",
            "links",
            "visits",
            "last_fetch",
        ];
        names.map(|name| stat[name].clone())
    };
    assert!(counts("s").iter().all(|count| *count != Value::Null));
    for (at, layout) in layouts().into_iter().enumerate() {
        write(&lab.path("t.parquet"), &columns(&lines), layout);
        lab.run(&format!("ingest t.parquet --store t{at}"))
            .exits(0)
            .says(&["Parquet table"]);
        assert_eq!(lab.export(&format!("t{at}")), expected, "layout {at}");
        assert_eq!(counts(&format!("t{at}")), counts("s"), "layout {at}");
    }
    let found = lab.run("inspect t.parquet --json").exits(0).json();
    assert_eq!(found["records"], 300);
    // By another reader of the file, in memory.
    let one = lab.run("compute --until 1e-12 t.parquet").exits(0).out;
    assert_eq!(one, lab.run("compute --until 1e-12 lines").exits(0).out);
    // It converts to the same file as the lines.
    lab.run("convert t.parquet -o t.jsonl").exits(0);
    lab.run("convert lines -o l.jsonl").exits(0);
    assert_eq!(
        std::fs::read(lab.path("t.jsonl")).unwrap(),
        std::fs::read(lab.path("l.jsonl")).unwrap()
    );
}

/// Facts about each link in a table, as a list of booleans with nulls or as text, and links with nulls: a row equals
/// the line of JSON that has its columns as fields, in which the third link is `nofollow`.
#[test]
fn columns_tell_of_each_link() {
    let lab = Lab::new();
    let list = "OPTIONAL GROUP links_nofollow (LIST) { REPEATED GROUP list { OPTIONAL BOOLEAN element; } }";
    let links = || {
        let links = ["http://a/b", "", "http://a/c", "http://a/d"];
        let links = links.map(|link| Some(link.to_owned()).filter(|link| !link.is_empty()));
        Column::Lists(vec![Some(links.to_vec())])
    };
    let marks = vec![Some(false), Some(true), Some(true), None];
    for (at, (declared, column)) in [
        (list, Column::Truths(vec![Some(marks)])),
        (
            "OPTIONAL BYTE_ARRAY links_nofollow (STRING);",
            texts(&["False@@True@@True@@"]),
        ),
        (
            "OPTIONAL BYTE_ARRAY links_rel (STRING);",
            texts(&["[None, 'nofollow', 'ugc nofollow', '']"]),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let table = [
            (URL, texts(&["http://a/"])),
            (LINKS, links()),
            (declared, column),
        ];
        write(&lab.path("t.parquet"), &table, layouts()[0]);
        lab.run(&format!(
            "ingest t.parquet --store s{at} --follow nofollow=0"
        ))
        .exits(0);
        let kept = lab
            .run(&format!("export --links --to tsv --store s{at}"))
            .exits(0)
            .out;
        assert_eq!(
            kept, "http://a/\thttp://a/b\t1\nhttp://a/\thttp://a/d\t1\n",
            "{declared}"
        );
    }
}

/// The text of a row is made piece by piece, even inside a list.
#[test]
fn lists_longer_than_a_piece_of_text_are_whole() {
    let lab = Lab::new();
    let record = |page: usize, links: usize| {
        let links: Vec<String> = (0..links)
            .map(|to| format!("\"http://h{page}.example/a-page-with-a-name/{to}\""))
            .collect();
        format!(
            "{{\"url\":\"http://h{page}.example/\",\"fetched_at\":{},\"links\":[{}],\"status\":200}}\n",
            1_700_000_000 + page,
            links.join(",")
        )
    };
    let lines = [
        record(1, 5_000),
        record(2, 0),
        record(3, 1_900),
        record(4, 1),
    ];
    lab.file("lines", lines.concat());
    lab.run("ingest lines --store s").exits(0);
    let expected = lab.export("s");
    assert_eq!(lab.stat("s")["rows"]["links"], 6_901);
    for (at, layout) in layouts().into_iter().enumerate() {
        let (name, store) = (format!("{at}.parquet"), format!("s{at}"));
        write(&lab.path(&name), &columns(&lines), layout);
        lab.run(&format!("ingest {name} --store {store}")).exits(0);
        assert!(lab.export(&store) == expected, "{at}");
    }
}

/// Stopped after some records, and killed at checkpoints, it continues inside the table.
#[test]
fn an_ingest_continues_inside_a_table() {
    let lab = Lab::on_disk();
    let lines = crawl(18, 500);
    write(&lab.path("t.parquet"), &columns(&lines), layouts()[1]);
    lab.run("ingest t.parquet --store whole").exits(0);
    for pages in [20, 60, 61, 150] {
        let line = format!("ingest t.parquet --store s --limit-pages {pages}");
        lab.run(&line).exits(2).says(&["more than"]);
    }
    let run = lab.start("ingest t.parquet --store s --checkpoint-every 1");
    run.kill();
    lab.run("ingest t.parquet --store s").exits(0);
    assert_eq!(lab.export("s"), lab.export("whole"));
    // The same file again is not new; another one under its name is refused.
    lab.run("ingest t.parquet --store s").exits(0);
    assert_eq!(lab.export("s"), lab.export("whole"));
    write(
        &lab.path("t.parquet"),
        &columns(&crawl(99, 500)),
        layouts()[1],
    );
    lab.run("ingest t.parquet --store s")
        .exits(2)
        .says(&["t.parquet", "not those that were read before"]);
    assert_eq!(lab.export("s"), lab.export("whole"));
}

/// Rows of links between URLs, other names, or numbers equal the lines of an edge list.
#[test]
fn a_table_of_links_is_an_edge_list() {
    let lab = Lab::new();
    let urls = [
        "http://a.example/",
        "http://b.example/",
        "http://c.example/x y",
    ];
    let names = ["a", "b\tb", "c c"];
    let pairs = [(0, 1), (0, 2), (2, 0), (1, 2), (1, 0)];
    let column = |names: &[&str], of: fn(&(usize, usize)) -> usize| {
        texts(&pairs.iter().map(|pair| names[of(pair)]).collect::<Vec<_>>())
    };
    let layout = layouts()[2];
    let from = "REQUIRED BYTE_ARRAY from (STRING);".replace("REQUIRED", "OPTIONAL");
    let to = from.replace("from", "to");
    let both = |names: &[&str]| {
        [
            (&*from, column(names, |pair| pair.0)),
            (&*to, column(names, |pair| pair.1)),
        ]
    };
    write(&lab.path("u.parquet"), &both(&urls), layout);
    lab.run("ingest u.parquet --store u")
        .exits(0)
        .says(&["\"from\" to \"to\""]);
    assert_eq!(
        lab.run("export --links --to tsv --store u").exits(0).out,
        "http://a.example/\thttp://b.example/\nhttp://a.example/\thttp://c.example/x%20y\n\
         http://b.example/\thttp://a.example/\nhttp://b.example/\thttp://c.example/x%20y\n\
         http://c.example/x%20y\thttp://a.example/\n"
    );
    // A name that no line can hold is skipped with its links, and counted.
    write(&lab.path("n.parquet"), &both(&names), layout);
    lab.run("ingest n.parquet --store n").exits(3);
    assert_eq!(lab.stat("n")["skipped"], 3);
    assert_eq!(
        lab.run("export --links --to tsv --store n").exits(0).out,
        "a\tc c\nc c\ta\n"
    );
    let numbers = [
        ("OPTIONAL INT64 u;", longs(&[7, 7, 8])),
        ("OPTIONAL INT64 v;", longs(&[8, 9, 7])),
    ];
    write(&lab.path("i.parquet"), &numbers, layout);
    lab.run("ingest i.parquet --store i").exits(0);
    assert_eq!(
        lab.run("export --links --to tsv --store i").exits(0).out,
        "7\t8\n7\t9\n8\t7\n"
    );
}

/// Columns with other names are mapped by `--field`.
#[test]
fn fields_name_columns() {
    let lab = Lab::new();
    let table = [
        (
            "OPTIONAL BYTE_ARRAY response_url (STRING);",
            texts(&["http://a.example/"]),
        ),
        (
            "OPTIONAL BYTE_ARRAY links_url (STRING);",
            texts(&["http://b.example/@@http://c.example/"]),
        ),
    ];
    write(&lab.path("t.parquet"), &table, layouts()[0]);
    // Two other columns: a link.
    lab.run("ingest t.parquet --store s --field url=response_url")
        .exits(0);
    assert_eq!(
        lab.run("export --links --to tsv --store s").exits(0).out,
        "http://a.example/\thttp://b.example/\nhttp://a.example/\thttp://c.example/\n"
    );
    lab.run("compute --until 1e-12 t.parquet --field url=response_url")
        .exits(0);
}

/// A column with the name of an option was shown as that option.
#[test]
fn columns_are_not_shown_as_options() {
    let lab = Lab::new();
    let link = Column::Lists(vec![Some(vec![Some("http://b.example/".into())])]);
    let columns = [
        (URL, texts(&["http://a.example/"])),
        (&*LINKS.replace("links", "outlinks"), link),
    ];
    write(&lab.path("t.parquet"), &columns, layouts()[0]);
    lab.run("ingest t.parquet --store s")
        .exits(0)
        .says(&["a Parquet table with the columns \"url\", \"outlinks\""]);
}

#[test]
fn what_is_no_table_of_a_crawl_is_refused_and_leaves_no_store() {
    let lab = Lab::new();
    let one = || texts(&["http://a.example/"]);
    let list = || Column::Lists(vec![Some(vec![Some("http://b.example/".into())])]);
    let number = || longs(&[1]);
    let two = ("OPTIONAL BYTE_ARRAY to (STRING);", one());
    for (columns, says) in [
        (vec![(URL, one())], "without a column of links"),
        (
            vec![(URL, one()), ("OPTIONAL INT64 links;", number())],
            "\"links\" holds something else",
        ),
        (
            vec![("OPTIONAL INT64 url;", number()), (LINKS, list())],
            "\"url\" holds something else",
        ),
        (
            vec![(&*LINKS.replace("links", "url"), list()), (LINKS, list())],
            "\"url\" holds something else than a string",
        ),
        (vec![("OPTIONAL INT64 a;", number())], "the columns \"a\":"),
        (
            vec![("OPTIONAL INT64 from;", number()), two],
            "one holds strings and one numbers",
        ),
        (
            vec![
                ("OPTIONAL INT64 source;", number()),
                ("OPTIONAL INT64 target;", number()),
                ("OPTIONAL BYTE_ARRAY weight (STRING);", one()),
            ],
            "\"weight\" holds something else than whole numbers",
        ),
        (
            vec![("OPTIONAL INT64 a;", number()), (LINKS, list())],
            "\"links\" holds something else",
        ),
        // Regression: a single part was taken for the whole.
        (
            vec![
                (
                    "REQUIRED GROUP url { OPTIONAL BYTE_ARRAY href (STRING); }",
                    one(),
                ),
                (LINKS, list()),
            ],
            "\"url\" holds something else than a string",
        ),
        (
            vec![
                (URL, one()),
                (
                    "OPTIONAL GROUP links (LIST) { REPEATED GROUP list { OPTIONAL GROUP element { \
                     REQUIRED BYTE_ARRAY href (STRING); } } }",
                    list(),
                ),
            ],
            "\"links\" holds something else than",
        ),
        (
            vec![(URL, one()), (URL, one()), (LINKS, list())],
            "2 columns are named \"url\"",
        ),
        (
            vec![
                (URL, one()),
                ("OPTIONAL INT32 links (UNKNOWN);", Column::Int(vec![None])),
            ],
            "without a column of links",
        ),
    ] {
        write(&lab.path("t.parquet"), &columns, layouts()[0]);
        lab.run("ingest t.parquet --store s")
            .exits(2)
            .says(&["t.parquet: ", says]);
        assert_eq!(lab.names(), ["t.parquet"], "{says}");
    }
    write(
        &lab.path("t.parquet"),
        &[(URL, one()), (LINKS, list())],
        layouts()[0],
    );
    lab.run("ingest t.parquet --store s --format edges")
        .exits(2)
        .says(&["--format records"]);
    let bytes = std::fs::read(lab.path("t.parquet")).unwrap();
    let done = lab.feed("ingest - --store s", &bytes);
    done.exits(2).says(&["name it as a file"]);
}

/// Programs write a column without any value as one of type null, and lists that are all empty as lists of type null.
#[test]
fn a_column_of_type_null_is_no_column() {
    let lab = Lab::new();
    let nulls = LINKS.replace("BYTE_ARRAY element (STRING)", "INT32 element (UNKNOWN)");
    let empty = Column::EmptyLists(vec![true, false]);
    let table = [
        (URL, texts(&["http://a.example/", "http://b.example/"])),
        (&*nulls, empty),
        (
            "OPTIONAL INT32 redirect (UNKNOWN);",
            Column::Int(vec![None, None]),
        ),
        (
            "OPTIONAL INT32 fetched_at (UNKNOWN);",
            Column::Int(vec![None, None]),
        ),
    ];
    write(&lab.path("t.parquet"), &table, layouts()[0]);
    lab.file(
        "lines",
        "{\"url\":\"http://a.example/\",\"links\":[]}\n{\"url\":\"http://b.example/\",\"links\":[]}\n",
    );
    lab.run("ingest t.parquet --store s").exits(0);
    lab.run("ingest lines --store t").exits(0);
    assert_eq!(lab.export("s"), lab.export("t"));
}

/// The codec is in the footer: type, encodings, path, codec (field 4, an integer): 1 is Snappy, 4 Brotli.
#[test]
fn a_codec_that_is_not_read_has_a_remedy() {
    let lab = Lab::new();
    let links = Column::Lists(vec![Some(vec![Some("http://b.example/".into())])]);
    let table = [(URL, texts(&["http://a.example/"])), (LINKS, links)];
    write(&lab.path("t.parquet"), &table, layouts()[0]);
    let mut bytes = std::fs::read(lab.path("t.parquet")).unwrap();
    let codec = b"\x19\x18\x03url\x15\x02";
    let found: Vec<usize> = (0..bytes.len() - codec.len())
        .filter(|&at| bytes[at..].starts_with(codec))
        .collect();
    let [at] = found[..] else {
        panic!("{found:?}");
    };
    bytes[at + codec.len() - 1] = 8;
    lab.file("t.parquet", bytes);
    lab.run("ingest t.parquet --store s").exits(2).says(&[
        "\"url\" is compressed by BROTLI",
        "write the table again with zstd",
    ]);
    assert_eq!(lab.names(), ["t.parquet"]);
}

/// Reads names and scores of an export.
fn scores(table: &str) -> std::collections::HashMap<String, f64> {
    let lines = table.lines().skip(1);
    let fields = lines.map(|line| line.split('\t').collect::<Vec<_>>());
    fields
        .map(|fields| (fields[0].to_owned(), fields[1].parse().unwrap()))
        .collect()
}

/// Regression: the weight of links between sites was taken for a page. PageRank of the file equals that of the sites.
#[test]
fn weights_are_not_read_as_pages() {
    let lab = Lab::new();
    lab.file("lines", crawl(23, 200).concat());
    lab.run("ingest lines --store s --settle 1e-8").exits(0);
    lab.run("compute --level host --measure pagerank --until 1e-9 --store s")
        .exits(0);
    let hosts = "export --to tsv --level host --measure pagerank --store s";
    let of_sites = scores(&lab.run(hosts).exits(0).out);
    for options in ["", " --numbers"] {
        lab.run(&format!(
            "export --links --level host --to tsv -o links{options} --store s --force"
        ))
        .exits(0);
        let ranked = scores(&lab.run("compute --until 1e-12 links -o -").exits(0).out);
        lab.run("ingest links --store t --settle 1e-8").exits(0);
        let settled = scores(&lab.run("export --to tsv --store t").exits(0).out);
        assert!(!of_sites.is_empty());
        for (host, score) in &of_sites {
            if options.is_empty() {
                assert!((ranked[host] - score).abs() < 1e-6, "{host}");
                assert!((settled[host] - score).abs() < 1e-6, "{host}");
            }
        }
        std::fs::remove_dir_all(lab.path("t")).unwrap();
    }
    lab.run("compute --until 1e-12 links --format adjacency")
        .exits(0);
    lab.run("export --links --level host --site-links once --to tsv -o once --store s")
        .exits(0);
    lab.run("compute --until 1e-12 once").exits(0);
}

/// A file without its end, or with foreign bytes, is damaged: the part before is used.
#[test]
fn a_damaged_table_is_used_up_to_the_damage() {
    let lab = Lab::new();
    let lines = crawl(19, 400);
    let layout = Layout {
        group_rows: 100,
        ..layouts()[0]
    };
    write(&lab.path("whole.parquet"), &columns(&lines), layout);
    let bytes = std::fs::read(lab.path("whole.parquet")).unwrap();
    lab.file("t.parquet", &bytes[..bytes.len() - 9]);
    lab.run("ingest t.parquet --store s")
        .exits(4)
        .says(&["t.parquet: ", "nothing of it was used"]);
    lab.run("inspect t.parquet").exits(4);
    // In the fourth group.
    let mut bytes = bytes;
    let at = bytes.len() / 2 + bytes.len() / 8;
    bytes[at..at + 300].fill(0xAA);
    lab.file("t.parquet", &bytes);
    let done = lab.run("ingest t.parquet --store t").exits(4);
    done.says(&["row group ", "from row 300 of the file"]);
    let records = lab.stat("t")["records"].as_u64().unwrap();
    assert_eq!(records, 300);
    lab.file("lines", lines[..records as usize].concat());
    lab.run("ingest lines --store l").exits(0);
    assert_eq!(lab.export("t"), lab.export("l"));
}

/// Reads the pages of an export: URL, and the time of the last fetch.
fn pages(export: &str) -> std::collections::BTreeMap<String, String> {
    let rows = export.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        (fields[0].to_owned(), fields[4].to_owned())
    });
    rows.collect()
}

/// A graph that was exported becomes a store with the same pages, links and ranking.
#[test]
fn an_exported_graph_makes_an_equal_store() {
    let lab = Lab::new();
    lab.file("a", crawl(23, 600).concat());
    lab.run("ingest a --store s").exits(0);
    lab.run("settle --store s --until 1e-9").exits(0);
    let links = lab.run("export --links --to tsv --store s").exits(0).out;
    let expected = lab.export("s");
    let unfetched = expected
        .lines()
        .filter(|line| line.contains("\tnot crawled\t"))
        .count();
    assert!(unfetched > 10, "{unfetched}");
    lab.run("export --links --to common-crawl -o c --store s")
        .exits(0);
    for threads in [1, 3] {
        let store = format!("c{threads}");
        lab.run(&format!(
            "ingest c --store {store} --threads {threads} --settle 1e-9"
        ))
        .exits(0)
        .says(&["it is a folder with"]);
        let found = lab
            .run(&format!("compare {store} s --json"))
            .exits(0)
            .json();
        assert!(found["l1"].as_f64().unwrap() < 2e-9, "{found}");
        assert!(
            pages(&lab.export(&store))
                .keys()
                .eq(pages(&expected).keys())
        );
        let mut found: Vec<String> = lab
            .run(&format!("export --links --to tsv --store {store}"))
            .exits(0)
            .out
            .lines()
            .map(String::from)
            .collect();
        found.sort();
        let mut expected: Vec<&str> = links.lines().collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
    // In steps, and in memory.
    for records in [10, 30, 100] {
        let line = format!("ingest c --store steps --limit-pages {records}");
        lab.run(&line).exits(2);
    }
    lab.run("ingest c --store steps --settle 1e-9").exits(0);
    assert_eq!(lab.export("steps"), lab.export("c1"));
    lab.run("ingest c --store c1 --settle 1e-9").exits(0);
    lab.run("compute --until 1e-12 c -o c.tsv").exits(0);
    let found = lab.run("compare c.tsv s --json").exits(0).json();
    assert!(found["l1"].as_f64().unwrap() < 1e-6, "{found}");
}

/// A graph of hosts as Common Crawl publishes it, in several files, is the graph of its names.
#[test]
fn a_graph_of_hosts_keeps_its_names() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("g")).unwrap();
    lab.file(
        "g/x-vertices-0.txt.gz",
        crate::pack::gzip(b"0\tcom.a\t3\n1\tcom.b\t1\n"),
    );
    lab.file("g/x-vertices-1.txt", "2\torg.c\t1\n3\torg.d\t1\n");
    lab.file("g/x-edges-0.txt.gz", crate::pack::gzip(b"0\t1\n0\t2\n1\t2"));
    lab.file("g/x-edges-1.txt", "2\t0\n");
    lab.file("g/README.md", "about it");
    lab.file(
        "list",
        "com.a\tcom.b\torg.c\ncom.b\torg.c\norg.c\tcom.a\norg.d\n",
    );
    let expected = lab
        .run("compute --until 1e-12 list --format adjacency")
        .exits(0)
        .out;
    assert_eq!(lab.run("compute --until 1e-12 g").exits(0).out, expected);
    assert!(expected.contains("org.d\t"), "{expected}");
    // Byte order marks are not part of a number.
    lab.file("g/x-vertices-1.txt", "\u{feff}2\torg.c\t1\n3\torg.d\t1\n");
    lab.file("g/x-edges-1.txt", "\u{feff}2\t0\n");
    assert_eq!(lab.run("compute --until 1e-12 g").exits(0).out, expected);
}

/// A record with `visits` 0 only makes its page known.
#[test]
fn pages_that_are_only_known_are_counted_as_such() {
    let lab = Lab::new();
    lab.file(
        "g",
        "{\"url\":\"http://a.example/\",\"links\":[\"http://b.example/\"]}\n\
         {\"url\":\"http://b.example/\",\"links\":[]}\n{\"url\":\"http://c.example/\",\"visits\":0}\n",
    );
    lab.run("ingest g --store s")
        .exits(0)
        .says(&["3 pages, 2 crawled"]);
    assert_eq!(lab.stat("s")["pages"], 3);
    let shown = lab.run("inspect g").exits(0).out;
    assert!(shown.contains("3: 2 crawled, 1 known only"), "{shown}");
    let json = lab.run("inspect g --json").exits(0).json();
    assert_eq!(
        (&json["unchanged"], &json["known_only"]),
        (&0.into(), &1.into())
    );
}

/// Regression: pages whose names are one URL in several spellings were read as two records of one page, and the second
/// one's links counted. Now the page has the links of both, and the later fetch.
#[test]
fn pages_of_one_url_are_one_page_with_the_links_of_both() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("g")).unwrap();
    let names = [
        "http://a.example",
        "http://b.example/",
        "HTTP://A.example/#top",
        "http://c.example/",
    ];
    let vertices = names
        .iter()
        .enumerate()
        .map(|(at, name)| format!("{at}\t{name}\n"));
    lab.file("g/vertices.txt", vertices.collect::<String>());
    lab.file("g/edges.txt", "0\t1\n1\t2\n2\t0\n2\t3\n");
    lab.run("ingest g --store s").exits(0);
    let stat = lab.stat("s");
    assert_eq!((&stat["pages"], &stat["visited"]), (&3.into(), &3.into()));
    let links = lab.run("export --links --to tsv --store s").exits(0).out;
    let mut links: Vec<&str> = links.lines().collect();
    links.sort_unstable();
    assert_eq!(
        links,
        [
            "http://a.example/\thttp://b.example/",
            "http://a.example/\thttp://c.example/",
            "http://b.example/\thttp://a.example/"
        ]
    );
}

/// Regression: of two records of one page the second one's links are kept, so links of a page with two numbers were
/// lost.
#[test]
fn two_pages_of_one_name_are_refused() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("g")).unwrap();
    lab.file("g/vertices.txt", "0\ta\n1\tb\n2\ta\n");
    lab.file("g/edges.txt", "0\t1\n2\t0\n");
    lab.run("ingest g --store s")
        .exits(4)
        .says(&["pages 0 and 2 are both `a`"]);
}

/// Regression: the links of a graph without pages were not looked at.
#[test]
fn links_between_no_pages_are_refused() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("g")).unwrap();
    lab.file("g/vertices.txt", "# none\n");
    lab.file("g/edges.txt", "0\t0\n");
    lab.run("ingest g --store s")
        .exits(4)
        .says(&["edges.txt: line 1: a link of page 0, and there are 0 pages"]);
}

#[test]
fn what_is_no_graph_in_a_folder_is_refused() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("g")).unwrap();
    lab.run("ingest g --store s")
        .exits(2)
        .says(&["is a directory"]);
    lab.file("g/vertices.txt", "0\ta\n1\tb\n");
    lab.run("ingest g --store s")
        .exits(2)
        .says(&["none of edges"]);
    assert!(!lab.path("s").exists());
    for (store, edges, says) in [
        (
            "a",
            "1\t0\n0\t1\n",
            "edges.txt: line 2: a link of page 0 after those of page 1",
        ),
        (
            "b",
            "0\t1\n1\t2\n",
            "a link of page 2, and there are 2 pages",
        ),
        ("c", "0\t-1\n", "line 1: two numbers are expected"),
        ("d", "0\t1\t2\n", "two numbers with a tab between them"),
    ] {
        lab.file("g/edges.txt", edges);
        lab.run(&format!("ingest g --store {store}"))
            .exits(4)
            .says(&[says]);
    }
    lab.file("g/edges.txt", "0\t1\n");
    lab.run("compute --until 1e-12 g --memory 10")
        .exits(8)
        .says(&["join links and names"]);
    lab.file("g/vertices.txt", "1\ta\n0\tb\n");
    lab.run("ingest g --store s")
        .exits(4)
        .says(&["vertex 1 where 0 is expected"]);
}

/// Regression: a named pipe was inspected before it was read, so its writer lost its reader. It is opened once.
#[test]
fn a_named_pipe_is_opened_once() {
    let lab = Lab::on_disk();
    let made = std::process::Command::new("mkfifo")
        .arg(lab.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let lines = crawl(29, 200).concat();
    lab.file("lines", &lines);
    let mut run = lab.start("convert pipe -o p.jsonl");
    let mut pipe = std::fs::OpenOptions::new()
        .write(true)
        .open(lab.path("pipe"))
        .unwrap();
    std::io::Write::write_all(&mut pipe, lines.as_bytes()).unwrap();
    drop(pipe);
    run.join().exits(0);
    lab.run("convert lines -o l.jsonl").exits(0);
    assert_eq!(
        std::fs::read(lab.path("p.jsonl")).unwrap(),
        std::fs::read(lab.path("l.jsonl")).unwrap()
    );
}

/// One page in three spellings is one source, whatever the order of its rows.
#[test]
fn spellings_of_a_source_are_one_page() {
    let lab = Lab::new();
    let spelled = [
        "http://a.example/p",
        "http://b.example/",
        "http://a.example:80/p#s",
        "http://A.example/p",
    ];
    for order in [[0, 2, 3, 1], [0, 1, 2, 3]] {
        let from = order.map(|at| spelled[at]);
        let to = order.map(|at| format!("http://c.example/{at}"));
        let to = to.each_ref().map(String::as_str);
        write(
            &lab.path("t.parquet"),
            &[
                ("OPTIONAL BYTE_ARRAY source (STRING);", texts(&from)),
                ("OPTIONAL BYTE_ARRAY target (STRING);", texts(&to)),
            ],
            layouts()[2],
        );
        lab.run("ingest t.parquet --store s").exits(0);
        let links = lab.run("export --links --to tsv --store s").exits(0).out;
        let mut links: Vec<&str> = links.lines().collect();
        links.sort_unstable();
        assert_eq!(
            links,
            [
                "http://a.example/p\thttp://c.example/0",
                "http://a.example/p\thttp://c.example/2",
                "http://a.example/p\thttp://c.example/3",
                "http://b.example/\thttp://c.example/1",
            ]
        );
        std::fs::remove_dir_all(lab.path("s")).unwrap();
    }
}

/// A column of weights has the meaning of the third field of an edge list, in any order of rows, for names and for
/// URLs. A null is 1; an invalid weight is skipped and counted.
#[test]
fn a_table_of_links_has_weights() {
    let lab = Lab::new();
    let weights = [Some(3), None, Some(0), Some(-1), Some(2), Some(1 << 32)];
    for (prefix, format, skipped) in [
        ("", "edges", "2 malformed"),
        ("http://h.example/", "url-edges", "2 malformed"),
    ] {
        let named = |names: [&str; 6]| -> Vec<String> {
            names.iter().map(|name| format!("{prefix}{name}")).collect()
        };
        // Sources come back, so that rows are sorted; then in order.
        for from in [
            ["a", "b", "a", "a", "b", "c"],
            ["a", "a", "a", "b", "b", "b"],
        ] {
            let (from, to) = (named(from), named(["b", "c", "d", "d", "d", "a"]));
            let rows = |names: &[String]| Column::Text(names.iter().cloned().map(Some).collect());
            let columns = [
                ("OPTIONAL BYTE_ARRAY source (STRING);", rows(&from)),
                ("OPTIONAL BYTE_ARRAY target (STRING);", rows(&to)),
                ("OPTIONAL INT64 weight;", Column::Long(weights.to_vec())),
            ];
            write(&lab.path("t.parquet"), &columns, layouts()[2]);
            let mut lines: Vec<String> = Vec::new();
            for ((from, to), weight) in from.iter().zip(&to).zip(weights) {
                match weight.unwrap_or(1) {
                    weight @ 0..=0xFFFF_FFFF => lines.push(format!("{from}\t{to}\t{weight}\n")),
                    _ => continue,
                }
            }
            lines.sort();
            lab.file("lines", lines.concat());
            lab.run("ingest t.parquet --store t")
                .exits(3)
                .says(&[skipped, "a whole number from 0 to 4294967295"]);
            lab.run(&format!("ingest lines --store l --format {format}"))
                .exits(0);
            let links = |store: &str| {
                let command = format!("export --links --to tsv --store {store}");
                lab.run(&command).exits(0).out
            };
            assert_eq!(links("t"), links("l"));
            for store in ["t", "l"] {
                std::fs::remove_dir_all(lab.path(store)).unwrap();
            }
        }
    }
}

/// Regression: in a table of links whose sources come back, only the last links of each were kept, silently.
#[test]
fn a_table_of_links_needs_no_order() {
    let lab = Lab::new();
    let rows: Vec<(String, String)> = (0..2_000)
        .map(|row| (format!("n{}", row * 7 % 300), format!("t{row}")))
        .collect();
    let mut grouped = rows.clone();
    grouped.sort_by_key(|row| row.0.clone());
    let lines: String = grouped
        .iter()
        .map(|(from, to)| format!("{from}\t{to}\n"))
        .collect();
    lab.file("lines", lines);
    lab.run("ingest lines --store lines.s").exits(0);
    let links = |store: &str| {
        lab.run(&format!("export --links --to tsv --store {store}"))
            .out
    };
    let column = |of: fn(&(String, String)) -> &String| {
        Column::Text(rows.iter().map(|row| Some(of(row).clone())).collect())
    };
    for (at, layout) in layouts().into_iter().enumerate() {
        let columns = [
            ("OPTIONAL BYTE_ARRAY source (STRING);", column(|row| &row.0)),
            ("OPTIONAL BYTE_ARRAY target (STRING);", column(|row| &row.1)),
        ];
        write(&lab.path("table"), &columns, layout);
        let store = format!("table{at}.s");
        // The smallest permitted memory makes many runs.
        lab.run(&format!("ingest table --store {store} --limit-held 64K"))
            .exits(0);
        assert!(links(&store) == links("lines.s"), "{at}");
        assert!(lab.export(&store) == lab.export("lines.s"), "{at}");
    }
}
