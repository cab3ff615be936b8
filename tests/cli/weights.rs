//! Weights of links, from records, tables and rules for URLs: PageRank is that of the closed form, whatever the source
//! of the weights.

use crate::support::Lab;

/// Solves the example: a links to b with 3 and to c with 1, both link back. With n = 3: a = (1 - d)/n + d (1 - a), and
/// b has (1 - d)/n + 3/4 d a.
fn expected() -> [(&'static str, f64); 3] {
    let (d, n) = (0.85, 3.0);
    let a = ((1.0 - d) / n + d) / (1.0 + d);
    [
        ("http://a.example/", a),
        ("http://b.example/", (1.0 - d) / n + 0.75 * d * a),
        ("http://c.example/", (1.0 - d) / n + 0.25 * d * a),
    ]
}

const BACK: &str = "{\"url\":\"http://b.example/\",\"links\":[\"http://a.example/\"]}\n\
                    {\"url\":\"http://c.example/\",\"links\":[\"http://a.example/\"]}\n";

/// Returns a record of a with these links.
fn records(links: &str) -> String {
    format!("{{\"url\":\"http://a.example/\",\"links\":[{links}]}}\n{BACK}")
}

fn assert_ranked(table: &str, what: &str) {
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    for (url, score) in expected() {
        let line = lines.iter().find(|line| line[0] == url);
        let found: f64 = line.unwrap_or_else(|| panic!("{what}: {table}"))[1]
            .parse()
            .unwrap();
        assert!(
            (found - score).abs() < 1e-6,
            "{what}: {url} {found} {score}"
        );
    }
}

/// Weights of a: 3 to b and 1 to c, expressed in every way.
#[test]
fn every_way_to_weigh_links_gives_the_closed_form() {
    let lab = Lab::new();
    let b = "{\"url\":\"http://b.example/\",\"weight\":3}";
    let c = "\"http://c.example/\"";
    let none = "{\"url\":\"http://d.example/\",\"weight\":0}";
    for (name, text, options) in [
        ("object", records(&format!("{b},{c}")), ""),
        // A repeated target counts once, with its largest weight; only proportions matter.
        (
            "repeated",
            records(&format!("\"http://b.example/\",{b},{b},{c},{c}")),
            "",
        ),
        (
            "scaled",
            records(
                "{\"url\":\"http://b.example/\",\"weight\":3000000000},{\"url\":\"http://c.example/\",\"weight\":1000000000.0}",
            ),
            "",
        ),
        ("chosen", records(&format!("{b},{c}").replace("weight", "n")), "--field link.weight=n"),
        // Weights of kinds, of URLs and of links multiply.
        (
            "kinds",
            records("{\"url\":\"http://b.example/\",\"rel\":\"ugc\",\"weight\":5},{\"url\":\"http://c.example/\",\"weight\":10}"),
            "--follow ugc=6",
        ),
        (
            "urls",
            records("\"http://b.example/\",\"http://c.example/\""),
            "--follow url:*//b.*=3",
        ),
        (
            "rules",
            records(&format!("{b},{{\"url\":\"http://c.example/\",\"weight\":4}}")),
            "--follow url:*b.example*=8,host:c.example=2",
        ),
        (
            "edges",
            "http://a.example/\thttp://b.example/\t3\nhttp://a.example/ http://c.example/\nhttp://b.example/\thttp://a.example/\t7\nhttp://c.example/\thttp://a.example/\n".to_owned(),
            "--format url-edges",
        ),
        (
            "decimals",
            "http://a.example/\thttp://b.example/\t3.0\nhttp://a.example/\thttp://c.example/\t1.00\nhttp://b.example/\thttp://a.example/\t7\nhttp://c.example/\thttp://a.example/\t1.0\n".to_owned(),
            "--format url-edges",
        ),
    ] {
        lab.file(name, text);
        lab.run(&format!("ingest {name} --store s {options} --settle 1e-7"))
            .exits(0);
        let table = lab.run("export --to tsv --store s").exits(0).out;
        assert_ranked(&table, name);
        // The kept links, as a table of weights, mean the same.
        lab.run("export --links --to tsv -o links --force --store s").exits(0);
        lab.run("ingest links --format url-edges --store t --settle 1e-7").exits(0);
        assert_ranked(&lab.run("export --to tsv --store t").exits(0).out, name);
        lab.run("compute --measure pagerank --until 1e-7 --store s").exits(0);
        let computed = lab.run("export --to tsv --measure pagerank --store s").exits(0).out;
        assert_ranked(&computed, name);
        let ranked = lab.run(&format!("compute --until 1e-12 {name} {options} -o -")).exits(0).out;
        assert_ranked(&ranked, name);
        // By the cash of passes over the kept links, and without keeping links.
        for keeping in ["", "--keep-links none"] {
            lab.run(&format!(
                "ingest {name} --store w {options} {keeping} --settle none --repeat 120"
            ))
            .exits(0);
            assert_ranked(&lab.run("export --to tsv --store w").exits(0).out, name);
            std::fs::remove_dir_all(lab.path("w")).unwrap();
        }
        for store in ["s", "t"] {
            std::fs::remove_dir_all(lab.path(store)).unwrap();
        }
    }
    // A target of weight 0 is a page, but no link.
    lab.file("none", records(&format!("{b},{none},{c}")));
    lab.run("ingest none --store s").exits(0);
    let links = lab.run("export --links --to tsv --store s").exits(0).out;
    let of_a: Vec<&str> = links
        .lines()
        .filter(|line| line.starts_with("http://a."))
        .collect();
    assert_eq!(
        of_a,
        [
            "http://a.example/\thttp://b.example/\t3",
            "http://a.example/\thttp://c.example/\t1"
        ]
    );
    lab.run("rank http://d.example/ --store s").exits(0);
}

/// A store without weights has the same bytes as before weights existed, and exports two columns.
#[test]
fn without_weights_nothing_changes() {
    let lab = Lab::new();
    let plain = records("\"http://b.example/\",\"http://c.example/\"");
    lab.file("plain", &plain);
    lab.file(
        "ones",
        records("{\"url\":\"http://b.example/\",\"weight\":1},{\"url\":\"http://c.example/\",\"weight\":null}"),
    );
    for name in ["plain", "ones"] {
        lab.run(&format!("ingest {name} --store s-{name}")).exits(0);
    }
    let rows = |store: &str| std::fs::read(lab.path(&format!("s-{store}/rows/1"))).unwrap();
    assert_eq!(rows("plain"), rows("ones"));
    let links = lab
        .run("export --links --to tsv --store s-ones")
        .exits(0)
        .out;
    assert!(
        links.lines().all(|line| line.split('\t').count() == 2),
        "{links}"
    );
}

#[test]
fn weights_that_cannot_be_are_counted() {
    let lab = Lab::new();
    for weight in ["-1", "0.5", "4294967296", "\"3\"", "true", "[1]"] {
        lab.file(
            "a",
            records(&format!(
                "{{\"url\":\"http://b.example/\",\"weight\":{weight}}}"
            )),
        );
        lab.run("ingest a --store s")
            .exits(3)
            .says(&["malformed", "weight"]);
        std::fs::remove_dir_all(lab.path("s")).unwrap();
    }
    // More than 2^63 together: 3000 x 4294967295 x 10^6.
    let much = (0..3_000)
        .map(|page| format!("{{\"url\":\"http://b.example/{page}\",\"weight\":4294967295}}"))
        .collect::<Vec<_>>();
    lab.file("much", records(&much.join(",")));
    lab.run("ingest much --store s --follow external=1000,url:*=1000")
        .exits(3)
        .says(&["weigh 2^63 or more"]);
    lab.file(
        "edges",
        "a\tb\t-3\na\tb\t0.5\na\tb\t3.\na\tb\t3\t4\nb\ta\t2\n",
    );
    lab.run("ingest edges --format edges --store e")
        .exits(3)
        .says(&["is not a weight", "more than three fields"]);
    lab.file("b", records("{\"url\":\"http://b.example/\",\"weight\":2}"));
    lab.run("ingest b --store s2 --follow url:*=1001")
        .exits(2)
        .says(&["0 to 1000"]);
    lab.run("ingest b --store s2 --follow tag=0")
        .exits(2)
        .says(&["url:*/tag/*"]);
}
