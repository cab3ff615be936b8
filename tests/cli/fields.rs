//! `--field`: JSON lines with other field names.

use crate::support::{Lab, data, sample};

const SCRAPY: &str = "--field fetched_at=fetch_time,redirect=location";

/// A Scrapy crawl of a manual. Counts are those of an independent reader (the data's README); the page that
/// redirects, and when it was fetched, are read off the file.
#[test]
fn a_scrapy_crawl_with_its_own_names() {
    let Some(path) = data("scrapy-httpd/httpd-manual.jsonl.zst") else {
        return;
    };
    let lab = Lab::new();
    let path = path.display();
    lab.run(&format!("ingest {path} --store s {SCRAPY}"))
        .exits(0);
    let stat = lab.stat("s");
    assert_eq!(stat["records"], 2_828);
    assert_eq!(stat["gone"], 165);
    assert_eq!(stat["links"], 279_195);
    let page = "http://127.0.0.1:8802/manual/es/howto";
    let rank = lab.run(&format!("rank {page} --store s --json"));
    assert_eq!(rank.exits(0).json()["last_fetch"], "2026-11-20T18:13:38Z");
}

/// The same crawl under other names has the same ranking, to the byte; a store remembers the names.
#[test]
fn other_names_change_nothing_and_a_store_keeps_them() {
    let usual = "{\"url\":\"http://a/\",\"links\":[\"b\",{\"url\":\"c\"}],\"fetched_at\":5,\"status\":200}\n\
                 {\"url\":\"http://a/b\",\"redirect\":\"/\",\"status\":301}\n";
    let other = usual
        .replace("{\"url\":\"c\"}", "{\"href\":\"c\"}")
        .replace("\"url\"", "\"response.url\"")
        .replace("\"links\"", "\"targets\"")
        .replace("fetched_at", "when")
        .replace("status", "code")
        .replace("redirect", "location");
    let lab = Lab::new();
    lab.file("usual.jsonl", usual);
    lab.file("other.jsonl", other);
    lab.run("ingest usual.jsonl --store s").exits(0);
    let names = "--field url=response.url,links=targets,fetched_at=when --field status=code \
                 --field redirect=location --field link.url=href";
    lab.run(&format!("ingest other.jsonl --store t {names}"))
        .exits(0);
    let export = |store: &str| {
        lab.run(&format!("export --store {store} --to tsv"))
            .exits(0)
            .out
    };
    assert_eq!(export("s"), export("t"));
    // Once more, without the names: they are the store's.
    lab.run("ingest other.jsonl --store t --repeat 2").exits(0);
    assert_eq!(lab.stat("t")["records"], 4);
    lab.run("ingest other.jsonl --store t --repeat 2 --field url=u")
        .exits(2);
}

#[test]
fn names_that_fit_nothing_are_refused_or_explained() {
    let lab = Lab::new();
    lab.file("r.jsonl", "{\"response_url\":\"http://a/\"}\n");
    lab.run("ingest r.jsonl --store s --field uri=response_url")
        .exits(2)
        .says(&[
            "no field",
            "url, links, fetched_at, status, redirect, digest, requested_url, final_url, base, method, links_nofollow, links_rel, links_weight, revisit, link.url, \
             link.rel",
        ]);
    lab.run("ingest r.jsonl --store s --field url=a --field url=b")
        .exits(2)
        .says(&["the field url has two names"]);
    lab.run("ingest r.jsonl --store s")
        .exits(3)
        .says(&["--field url=NAME", "--field url=response_url"]);
    lab.run("ingest r.jsonl --store t --field url=response_url")
        .exits(0);
}

/// Regression: links under an unknown name counted as absent: exit code 0, all pages rank 1, "certified". Now the
/// unread fields are reported with the option to use; with it the links are found.
#[test]
fn links_under_an_unknown_name_are_missed_aloud() {
    let lab = Lab::new();
    let line = |n: u32| {
        let (a, b) = ((n + 1) % 20, (n * 7) % 20);
        format!(
            "{{\"url\":\"http://s.test/{n}\",\"links_to\":[\"/{a}\",\"/{b}\"],\"httpCode\":200,\"n\":{n}}}\n"
        )
    };
    let lines: String = (0..20).map(line).collect();
    lab.file("crawl.jsonl", lines);
    lab.run("ingest crawl.jsonl --store blind --quiet")
        .exits(3)
        .says(&[
            "--field links=links_to",
            "--field status=httpCode",
            "\"n\" (20)",
            "all pages rank the same",
        ]);
    let told = lab.run("ingest crawl.jsonl --store json --json").json();
    let missing = &told["remarks"]["missing"][0];
    assert_eq!(missing["fields"]["links"], "links_to");
    assert_eq!(missing["unread"]["httpCode"], 20);
    let shown = lab.run("inspect crawl.jsonl --json").json();
    assert_eq!(shown["missing"]["fields"]["links"], "links_to");
    lab.run("ingest crawl.jsonl --store seeing --field links=links_to,status=httpCode")
        .exits(0);
    assert_eq!(lab.stat("seeing")["links"], 40);
    // Failed and unchanged records need no links, nor does a page whose fields are all known.
    for (at, record) in [
        r#"{"url":"http://s.test/0","status":404,"n":0}"#,
        r#"{"url":"http://s.test/0","status":304,"n":0}"#,
        r#"{"url":"http://s.test/0","status":200}"#,
    ]
    .into_iter()
    .enumerate()
    {
        lab.file("one", format!("{record}\n"));
        lab.run(&format!("ingest one --store one-{at} --format records"))
            .exits(0);
    }
}

/// Regression: a crawler that follows redirects by itself reports where they end, so `next` listed the first URL
/// forever. The record names the requested URL, which now counts as fetched.
#[test]
fn requested_urls_count_as_fetched() {
    let lab = Lab::new();
    let home = r#"{"url":"http://s.test/","links":["/old"]}"#;
    let blind = r#"{"url":"http://s.test/new","links":["/"]}"#;
    let told = r#"{"url":"http://s.test/new","requested_url":"http://s.test/old","links":["/"]}"#;
    lab.file("blind.jsonl", format!("{home}\n{blind}\n"));
    lab.file("told.jsonl", format!("{home}\n{told}\n"));
    for (name, next) in [("blind", "http://s.test/old\n"), ("told", "")] {
        lab.run(&format!("ingest {name}.jsonl --store {name}"))
            .exits(0);
        assert_eq!(lab.run(&format!("next --store {name}")).out, next, "{name}");
    }
}

/// Redirects are applied together with their target page or not at all, wherever a run ends: otherwise continuing would
/// count them twice.
#[test]
fn redirects_come_with_their_page() {
    let lab = Lab::new();
    let line = |n: u32| {
        format!(
            "{{\"url\":\"http://s.test/{n}\",\"links\":[\"/l{n}\"],\"redirect_urls\":[\"http://s.test/a{n}\",\"http://s.test/b{n}\"]}}\n"
        )
    };
    let lines: String = (0..20).map(line).collect();
    lab.file("a", lines);
    lab.run("ingest a --store whole").exits(0);
    assert_eq!(lab.stat("whole")["records"], 60);
    for limit in 20..30 {
        lab.run(&format!("ingest a --store cut --limit-pages {limit}"))
            .exits(2);
        assert_eq!(lab.stat("cut")["pages"], limit / 4 * 4);
    }
    lab.run("ingest a --store cut").exits(0);
    assert!(lab.snapshot("cut") == lab.snapshot("whole"));
}

/// An array with an object on each line, as Scrapy writes it, gives the ranking of its lines. Regression: a
/// pretty-printed file gave one complaint per line.
#[test]
fn arrays_of_lines_are_read_and_other_layouts_are_named() {
    let lab = Lab::new();
    let lines = sample(300);
    let objects: Vec<serde_json::Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let pretty = |value: &serde_json::Value| serde_json::to_string_pretty(value).unwrap();
    let each: Vec<String> = objects.iter().map(pretty).collect();
    let items = lines.concat();
    lab.file("lines", &items);
    lab.file(
        "items",
        format!("[\n{}\n]", items.trim_end().replace('\n', ",\n")),
    );
    lab.file("pretty", each.join("\n"));
    lab.file("joined", items.replace('\n', ""));
    lab.file("array", serde_json::to_string(&objects).unwrap());
    lab.file("pretty-array", pretty(&objects.into()));
    lab.run("ingest lines --store store-lines").exits(0);
    lab.run("ingest items --store store-items")
        .exits(0)
        .says(&["read as records"]);
    assert!(lab.export("store-lines") == lab.export("store-items"));
    for layout in ["pretty", "joined", "array", "pretty-array"] {
        for format in ["", "--format records"] {
            lab.run(&format!("ingest {layout} --store refused {format}"))
                .exits(2)
                .says(&["jq -c ."]);
        }
    }
}

/// Regression: `edges` silently took URLs for opaque names: `http://A.test` and `http://a.test/` were two pages.
#[test]
fn edges_of_urls_can_be_read_as_urls() {
    let lab = Lab::new();
    lab.file(
        "links.tsv",
        "http://A.test\thttp://b.test/\nhttp://b.test/\thttp://a.test/\n",
    );
    for (format, pages) in [
        ("edges", 3),
        ("url-edges", 2),
        ("adjacency", 3),
        ("url-adjacency", 2),
    ] {
        let done = lab.run(&format!(
            "ingest links.tsv --store {format} --format {format}"
        ));
        let done = done.exits(0);
        assert_eq!(
            done.err.contains("--format url-"),
            pages == 3,
            "{}",
            done.err
        );
        assert_eq!(lab.stat(format)["pages"], pages, "{format}");
        let exact = lab.run(&format!(
            "compute --until 1e-12 links.tsv --format {format}"
        ));
        let exact = exact.exits(0);
        assert_eq!(exact.err.contains("--format url-"), pages == 3, "{exact:?}");
    }
}

/// A target that is no absolute URL was joined to its source: of a table of URLs and scores, each score was a page.
#[test]
fn relative_targets_of_graphs_of_urls_are_invalid() {
    let lab = Lab::new();
    lab.file(
        "scores",
        "http://a.example/\t0.5\nhttp://a.example/b\t//c.example/\nhttp://c.example/\thttp://a.example/\n",
    );
    let links = "http://c.example/\thttp://a.example/\n";
    for format in ["url-edges", "url-adjacency"] {
        lab.run(&format!("ingest scores --store {format} --format {format}"))
            .exits(0)
            .says(&["2 invalid"]);
        let found = |store: &str| {
            let export = format!("export --links --to tsv --store {store}");
            assert_eq!(lab.run(&export).exits(0).out, links, "{store}");
            assert_eq!(lab.stat(store)["pages"], 3, "{store}");
        };
        found(format);
        // Records of them mean the same.
        lab.run(&format!(
            "convert scores -o {format}.jsonl --format {format}"
        ))
        .exits(0)
        .says(&["2 invalid"]);
        let records = format!("records-{format}");
        lab.run(&format!("ingest {format}.jsonl --store {records}"))
            .exits(0);
        found(&records);
    }
}

/// Records whose links have another field name make a graph without links: commands that load graphs report it as
/// `ingest` does, and following the advice corrects it.
#[test]
fn graphs_are_warned_of_links_under_another_name() {
    let lab = Lab::new();
    let named = |links: &str| {
        let record = |page: u32| {
            format!("{{\"url\":\"http://a.test/{page}\",\"{links}\":[\"http://a.test/0\"]}}\n")
        };
        (0..200).map(record).collect::<String>()
    };
    lab.file("known", named("links"));
    lab.file("other", named("outs"));
    for command in ["compute"] {
        let done = lab
            .run(&format!("{command} other -o ranks --force"))
            .exits(0);
        done.says(&[
            "warning: other:",
            "no `links`",
            "\"outs\" (200)",
            "--field links=NAME",
        ]);
        for line in ["known", "other --field links=outs"] {
            let done = lab
                .run(&format!("{command} {line} -o ranks --force"))
                .exits(0);
            assert!(!done.err.contains("warning"), "{}", done.err);
            done.says(&["200 pages, 199 links"]);
        }
    }
}
