//! Pages that are gone: every reader reports them, and can leave them out.
//!
//! Four pages: `x` was crawled and later answered 410, `y` was crawled, `/z` is known from links only, and fetches of
//! `/f` failed. Most links lead to `x`, so it stays the most important page.

use serde_json::Value;

use crate::support::Lab;
use crate::takers::must_run;

fn crawled() -> Lab {
    let lab = Lab::new();
    let first = r#"{"url":"http://a.test/x","status":200,"links":["/y"]}
{"url":"http://a.test/y","status":200,"links":["/x","/x","/z","/f"]}
{"url":"http://a.test/f","status":503}
"#;
    lab.feed("ingest - --format records --store s", first.as_bytes())
        .exits(0);
    let gone = r#"{"url":"http://a.test/x","status":410}"#;
    lab.feed("ingest - --format records --store s", gone.as_bytes())
        .exits(0);
    lab
}

/// Pages in the order of their first appearance, with their states.
const STATES: [(&str, &str); 4] = [
    ("x", "gone"),
    ("y", "crawled"),
    ("z", "not crawled"),
    ("f", "failed"),
];

fn states(rows: &[Value]) -> Vec<(String, String)> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let mut states: Vec<_> = (rows.iter())
        .map(|row| {
            (
                text(row, "url").replace("http://a.test/", ""),
                text(row, "state"),
            )
        })
        .collect();
    states.sort();
    states
}

fn expected(states: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut states: Vec<_> = (states.iter())
        .map(|(page, state)| ((*page).to_owned(), (*state).to_owned()))
        .collect();
    states.sort();
    states
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn lists_and_tables_say_what_fetches_came_to() {
    let lab = crawled();
    let top = lab.run("top --json --store s").exits(0).json();
    assert_eq!(states(top["top"].as_array().unwrap()), expected(&STATES));
    let top = lab.run("top --store s").exits(0).out;
    for (page, crawled) in [("x", "gone"), ("y", "once"), ("z", "not"), ("f", "failed")] {
        let row = top.lines().find(|line| line.ends_with(&format!("/{page}")));
        let words: Vec<&str> = row.unwrap().split_whitespace().collect();
        assert_eq!(words[2], crawled, "{top}");
    }
    let urls = STATES
        .map(|(page, _)| format!("http://a.test/{page}"))
        .join(" ");
    let ranks = lab.run(&format!("rank {urls} --json --store s")).exits(0);
    assert_eq!(states(&lines(&ranks.out)), expected(&STATES));
    let rank = lab.run("rank http://a.test/x --store s").exits(0).out;
    assert!(rank.contains("state       gone"), "{rank}");
    let found = lab.run("export --to jsonl --store s").exits(0);
    assert_eq!(states(&lines(&found.out)), expected(&STATES));
    for (format, first) in [
        (
            "csv",
            "url,importance,rank,visits,last_fetch,state,host,domain,page\r\n",
        ),
        (
            "tsv",
            "url\timportance\trank\tvisits\tlast_fetch\tstate\thost\tdomain\tpage\n",
        ),
    ] {
        let table = lab
            .run(&format!("export --to {format} --store s"))
            .exits(0)
            .out;
        assert!(table.starts_with(first), "{table}");
        let states: Vec<&str> = (table.lines().skip(1))
            .map(|line| line.split([',', '\t']).nth(5).unwrap())
            .collect();
        assert_eq!(states, STATES.map(|(_, state)| state), "{table}");
    }
    // Sites have no state.
    let sites = lab.run("top --level host --json --store s").exits(0).json();
    assert!(sites["top"][0].get("state").is_none());
    let sites = lab
        .run("export --level host --to csv --store s")
        .exits(0)
        .out;
    let first = "url,importance,rank,visits,last_fetch,host,domain,page,pages\r\n";
    assert!(sites.starts_with(first), "{sites}");
}

#[cfg(feature = "sqlite")]
#[test]
fn tables_for_programs_have_a_column_of_states() {
    let lab = crawled();
    for format in ["parquet", "sqlite"] {
        lab.run(&format!(
            "export --to {format} --cash -o r.{format} --store s"
        ))
        .exits(0);
    }
    let states = format!("{:?}", STATES.map(|(_, state)| state));
    must_run(
        &lab,
        "pyarrow",
        &format!(
            "import sqlite3, pyarrow.parquet as pq\n\
             table = pq.read_table('r.parquet')\n\
             assert table['state'].to_pylist() == {states}, table['state']\n\
             assert 0 < sum(table['cash'].to_pylist()) < 1\n\
             rows = sqlite3.connect('r.sqlite').execute('select state from ranking order by page')\n\
             assert [row[0] for row in rows] == {states}"
        ),
    );
}

#[test]
fn gone_pages_are_left_out_on_request() {
    let lab = crawled();
    let top = lab
        .run("top --without-gone --json --store s")
        .exits(0)
        .json();
    assert_eq!(
        states(top["top"].as_array().unwrap()),
        expected(&STATES[1..])
    );
    // Ranks remain those among all pages.
    let all = lab.run("top --json --store s").exits(0).json();
    let all: Vec<Value> = all["top"].as_array().unwrap().to_vec();
    let left = all.into_iter().filter(|row| row["state"] != "gone");
    assert_eq!(top["top"], left.collect::<Value>());
    let scoped = "top --without-gone --scope url:*/x --json --store s";
    assert_eq!(
        lab.run(scoped).exits(0).json()["top"],
        serde_json::json!([])
    );
    for format in ["jsonl", "scores"] {
        let export = format!("export --to {format} --without-gone --store s");
        let found = lab
            .run(&export)
            .exits(0)
            .says(&["left out, because they are gone: 1 page"]);
        assert_eq!(found.out.lines().count(), 3, "{found:?}");
    }
    lab.run("top --level host --without-gone --store s")
        .exits(2)
        .says(&["--without-gone is for pages, and hosts are ranked: leave it or --level out"]);
    for options in [
        "export --to tsv --level host --without-gone",
        "export --to tsv --level host --cash",
        "export --to tsv --links --without-gone",
        "export --to solr --cash",
        "export --to common-crawl --level host --without-gone",
    ] {
        lab.run(&format!("{options} --store s")).exits(2);
    }
}

/// Regression: the best page of a host was one that had answered 410, without a mark. It is the best page that is not
/// gone; if all are, it is marked. JSON has its state.
#[test]
fn the_best_page_of_a_site_is_not_gone() {
    let lab = Lab::new();
    let crawl = [
        r#"{"url":"http://a.example/","links":["/g","/k","http://b.example/"]}"#,
        r#"{"url":"http://a.example/k","links":["/g"]}"#,
        r#"{"url":"http://a.example/g","status":410}"#,
        r#"{"url":"http://b.example/","status":404}"#,
    ];
    lab.file("a", crawl.join("\n") + "\n");
    lab.run("ingest a --store s").exits(0);
    let hosts = lab.run("top --level host --json --store s").exits(0).json();
    let best = |host: &str| {
        let rows = hosts["top"].as_array().unwrap();
        let row = rows.iter().find(|row| row["url"] == host).unwrap();
        (row["best"].clone(), row["best_state"].clone())
    };
    assert_eq!(
        best("a.example"),
        ("http://a.example/k".into(), "crawled".into())
    );
    assert_eq!(
        best("b.example"),
        ("http://b.example/".into(), "gone".into())
    );
    let shown = lab.run("top --level host --store s").exits(0).out;
    assert!(
        shown.contains("a.example  best: http://a.example/k\n"),
        "{shown}"
    );
    assert!(
        shown.contains("b.example  best (gone): http://b.example/\n"),
        "{shown}"
    );
}

/// Search engines get no update for a page that is gone, since they have no document of it.
#[test]
fn search_engines_get_no_gone_pages() {
    let lab = crawled();
    for (format, rows) in [
        ("solr", 3),
        ("elasticsearch", 6),
        ("elasticsearch-index", 6),
        ("vespa --into web:page", 3),
    ] {
        let found = lab.run(&format!("export --to {format} --store s")).exits(0);
        assert_eq!(found.out.lines().count(), rows, "{found:?}");
        assert!(!found.out.contains("a.test/x"), "{found:?}");
    }
    let all = lab.run("export --to scores --store s").exits(0);
    assert_eq!(all.out.lines().count(), 4);
    // A page that was gone before the older ranking has no document to update.
    lab.feed(
        "ingest - --format records --store s",
        br#"{"url":"http://a.test/z","status":200,"links":["/x","/new"]}"#,
    )
    .exits(0);
    let since = "export --to elasticsearch-index --since 4 --least 1e-9 --store s";
    let found = lab.run(since).exits(0).out;
    assert!(
        !found.contains("a.test/x\"") && found.contains("a.test/new"),
        "{found}"
    );
}

/// C and H are shares: the pages and the virtual page hold all cash.
#[test]
fn cash_and_what_was_distributed_are_shown() {
    let lab = crawled();
    let rows = lines(&lab.run("export --to jsonl --cash --store s").exits(0).out);
    let sum = |key: &str| {
        rows.iter()
            .map(|row| row[key].as_f64().unwrap())
            .sum::<f64>()
    };
    assert!(sum("cash") > 0.0 && sum("cash") <= 1.0);
    assert!(sum("distributed") > 0.0 && sum("distributed") <= 1.0 + 1e-12);
    let rank = lab
        .run("rank http://a.test/y --json --store s")
        .exits(0)
        .json();
    let row = rows
        .iter()
        .find(|row| row["url"] == "http://a.test/y")
        .unwrap();
    assert_eq!(
        (&rank["cash"], &rank["distributed"]),
        (&row["cash"], &row["distributed"])
    );
}

/// Comparisons of rankings, lists of links and lists of sites show the state, too.
#[test]
fn comparisons_links_and_sites_say_which_pages_are_gone() {
    let lab = crawled();
    let more = (0..3)
        .map(|at| format!("{{\"url\":\"http://a.test/n{at}\",\"links\":[\"/x\",\"/g\"]}}\n"))
        .chain(["{\"url\":\"http://a.test/g\",\"status\":404}\n".into()])
        .collect::<String>();
    lab.feed("ingest - --format records --store s", more.as_bytes())
        .exits(0);
    let state = |rows: &Value, page: &str| -> Value {
        let url = format!("http://a.test/{page}");
        let mut rows = rows.as_array().unwrap().iter();
        let found = rows.find(|row| row["url"] == url.as_str());
        found.unwrap_or_else(|| panic!("{url}"))["state"].clone()
    };
    let oldest = lab.run("snapshots --json --store s").exits(0).out;
    let oldest = lines(&oldest)[0]["number"].clone();
    let moved = lab
        .run(&format!("compare s --snapshot {oldest} --moved 9 --json"))
        .exits(0)
        .json();
    let both: Vec<Value> = ["rose", "fell"]
        .iter()
        .flat_map(|list| moved[*list].as_array().unwrap().clone())
        .collect();
    assert_eq!(state(&Value::from(both.clone()), "x"), "gone");
    assert_eq!(state(&Value::from(both), "y"), "crawled");
    assert_eq!(state(&moved["new"], "g"), "gone");
    let text = lab
        .run(&format!("compare s --snapshot {oldest} --moved 9"))
        .exits(0)
        .out;
    for (page, is_gone) in [("x", true), ("g", true), ("n1", false)] {
        let name = format!("http://a.test/{page}");
        let line = text.lines().find(|line| line.contains(&name)).unwrap();
        assert_eq!(line.ends_with(", gone"), is_gone, "{line}");
    }
    let links = lab
        .run("links http://a.test/y --json --store s")
        .exits(0)
        .out;
    let links = Value::from(lines(&links));
    assert_eq!(state(&links, "x"), "gone");
    assert_eq!(state(&links, "z"), "not crawled");
}
