//! Rankings of pages and sites by measures, through the command line.

use crate::support::Lab;

/// Three hosts of two domains. Of the links between hosts, two lead to www.a.example, and one each to b.example and
/// a.example.
const CRAWL: &str = "\
{\"url\":\"http://www.a.example/\",\"links\":[\"/x\",\"http://b.example/\"]}
{\"url\":\"http://www.a.example/x\",\"links\":[\"/\",\"http://b.example/\"]}
{\"url\":\"http://b.example/\",\"links\":[\"http://www.a.example/\",\"http://a.example/\"]}
{\"url\":\"http://a.example/\",\"links\":[\"http://www.a.example/x\"]}
";

fn lab() -> Lab {
    let lab = Lab::new();
    lab.file("crawl", CRAWL);
    lab.run("ingest crawl --store s").exits(0);
    lab
}

#[test]
fn a_measure_is_computed_and_read_everywhere() {
    let lab = lab();
    lab.run("compute --measure in-degree --level host --store s")
        .exits(0)
        .says(&["3 hosts, 4 links", "host.in-degree.ranking", "exact"]);
    let of = "--measure in-degree --level host --store s";
    let top = lab.run(&format!("top {of} --json")).exits(0).json();
    assert_eq!((&top["count"], &top["level"]), (&3.into(), &"host".into()));
    assert_eq!(top["computed"]["accuracy"], "exact");
    let first = &top["top"][0];
    assert_eq!(first["url"], "www.a.example");
    assert_eq!(
        (first["importance"].as_f64(), first["pages"].as_u64()),
        (Some(2.0), Some(2))
    );
    let shown = lab.run(&format!("top {of}")).exits(0).out;
    assert!(
        shown.contains("www.a.example") && shown.contains("score"),
        "{shown}"
    );
    let rank = lab
        .run(&format!("rank b.example {of} --json"))
        .exits(0)
        .json();
    assert_eq!(
        (rank["rank"].as_u64(), rank["pages"].as_u64()),
        (Some(2), Some(1))
    );
    lab.run(&format!("rank c.example {of}")).exits(1);
    let lines = lab.run(&format!("export --to tsv {of}")).exits(0).out;
    let expected = "url\tin_degree\trank\tvisits\tlast_fetch\thost\tdomain\tpage\tpages\n\
        www.a.example\t2\t1\t2\t\twww.a.example\ta.example\t0\t2\n\
        b.example\t1\t2\t1\t\tb.example\tb.example\t1\t1\n\
        a.example\t1\t2\t1\t\ta.example\ta.example\t2\t1\n";
    assert_eq!(lines, expected);
    let listed = lab.run("snapshots --store s").exits(0).out;
    assert!(listed.contains("host by in-degree"), "{listed}");
    let verified = lab.run("verify --deep --store s --json").exits(0).json();
    assert_eq!(verified["rankings"], 1);
    assert_eq!(verified["strangers"].as_array().unwrap().len(), 0);
}

/// Without a measure, sites have the sum of their pages' importance, and its bound.
#[test]
fn sites_roll_the_ranking_up() {
    let lab = lab();
    let top = lab
        .run("top --level domain --store s --json")
        .exits(0)
        .json();
    let pages = lab.run("top --store s --json").exits(0).json();
    assert_eq!(top["bound_l1"], pages["bound_l1"]);
    let sites = top["top"].as_array().unwrap();
    let sum: f64 = sites
        .iter()
        .map(|site| site["importance"].as_f64().unwrap())
        .sum();
    assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    let of_b: f64 = pages["top"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|page| page["url"] == "http://b.example/")
        .map(|page| page["importance"].as_f64().unwrap())
        .sum();
    let b = sites
        .iter()
        .find(|site| site["url"] == "b.example")
        .unwrap();
    assert_eq!(b["importance"].as_f64(), Some(of_b));
    assert_eq!(b["best"], "http://b.example/");
}

#[test]
fn a_scope_shows_some_pages_with_their_ranks_among_all() {
    let lab = lab();
    let all = lab.run("top --store s --json").exits(0).json();
    let some = lab
        .run("top --scope host:a.example --store s --json")
        .exits(0)
        .json();
    let page = &some["top"][0];
    assert_eq!(some["top"].as_array().unwrap().len(), 1);
    assert!(all["top"].as_array().unwrap().contains(page));
    let lines = lab
        .run("export --to tsv --scope !domain:a.example --store s")
        .exits(0)
        .out;
    let urls: Vec<&str> = lines
        .lines()
        .skip(1)
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    assert_eq!(urls, ["http://b.example/"]);
}

/// Personalised to b alone with a damping of one half: b receives half of everything at each step, the rest comes from
/// links.
#[test]
fn surfers_begin_where_a_list_says() {
    let lab = lab();
    lab.file("topic", "host:b.example\t3\n\nhttp://nowhere.example/\n");
    let done = lab
        .run("compute --measure personalised --teleport topic --damping 0 --store s --json")
        .exits(0)
        .json();
    assert_eq!(done["parameters"]["chosen_pages"], 1);
    let top = lab
        .run("top --measure personalised --store s --json")
        .exits(0)
        .json();
    assert_eq!(top["top"][0]["url"], "http://b.example/");
    assert_eq!(top["top"][0]["importance"].as_f64(), Some(1.0));
}

/// Regression: lines that are not URLs were ignored without a message, and a list took 200 bytes per line whatever
/// `--memory` was. They are counted as in other lists, a misspelt rule is refused, and a name takes 85 bytes: 8.5 MB.
#[test]
fn chosen_pages_are_read_as_other_lists() {
    let lab = lab();
    let list = "http://a.example/\nb.example\nftp://b.example/\nhttp://[b.example/\nhttp://b.example/ # trusted\n";
    lab.file("t", list);
    lab.file(
        "in",
        "http://a.example/\thttp://b.example/\nhttp://b.example/\thttp://c.example/\n",
    );
    for line in [
        "compute --measure personalised --teleport t --store s --json",
        "compute --measure personalised --teleport t in --format url-edges --json -o out.tsv",
        "compute --measure personalised --teleport t --quiet --store s",
    ] {
        let done = lab.run(line).exits(0).says(&[
            "--teleport: 3 lines skipped: no http:// or https:// (1), another scheme (1), no URL (1)",
        ]);
        if line.contains("--json") {
            assert_eq!(done.json()["parameters"]["chosen_pages"], 2);
        }
    }
    lab.file("t", format!("{list}hsot:b.example\n"));
    for line in ["--store s", "in --format url-edges"] {
        lab.run(&format!(
            "compute --measure personalised --teleport t {line}"
        ))
        .exits(2)
        .says(&["--teleport: line 6: \"hsot:b.example\" is neither the name of a page nor a rule"]);
    }
    let many = (0..100_000).map(|page| format!("http://b.example/{page}\n"));
    lab.file("t", many.collect::<String>() + "http://a.example/\n");
    for line in ["--store s", "in --format url-edges"] {
        let line = format!("compute --measure personalised --teleport t {line} --memory");
        lab.run(&format!("{line} 8M")).exits(8).says(&[
            "a list of",
            "raise --memory",
            "use a shorter list",
        ]);
        lab.run(&format!("{line} 10M")).exits(0);
    }
}

/// In a ring of three all pages are equal, by every measure, from a file.
#[test]
fn inputs_are_ranked_without_a_store() {
    let lab = Lab::new();
    lab.file("ring.tsv", "a\tb\nb\tc\nc\ta\n");
    for measure in ["pagerank", "harmonic", "hits-authorities", "out-degree"] {
        let done = lab
            .run(&format!(
                "compute ring.tsv --format edges --measure {measure}"
            ))
            .exits(0);
        let ranks: Vec<&str> = done
            .out
            .lines()
            .skip(1)
            .map(|line| line.split('\t').nth(1).unwrap())
            .collect();
        let scores: Vec<f64> = ranks.iter().map(|score| score.parse().unwrap()).collect();
        assert!(
            scores.iter().all(|score| (score - scores[0]).abs() < 1e-6),
            "{measure}: {scores:?}"
        );
    }
    lab.file("crawl", CRAWL);
    let done = lab
        .run("compute crawl --measure in-degree --level domain")
        .exits(0);
    let expected = "url\tin_degree\trank\tvisits\tlast_fetch\thost\tdomain\tpage\tpages\n\
        a.example\t1\t1\t3\t\t\ta.example\t0\t3\nb.example\t1\t1\t1\t\t\tb.example\t1\t1\n";
    assert_eq!(done.out, expected);
}

/// There is one ranking for each measure and level: other parameters replace it. `stat` shows what is certain.
#[test]
fn other_parameters_replace_a_ranking() {
    let lab = lab();
    lab.file("one", "http://b.example/\n");
    lab.file("two", "http://a.example/\nhttp://b.example/\n");
    for file in ["one", "two"] {
        lab.run(&format!(
            "compute --measure personalised --teleport {file} --store s"
        ))
        .exits(0);
    }
    lab.run("compute --measure pagerank --level host --until 1e-9 --store s")
        .exits(0);
    let stat = lab.stat("s");
    let computed = stat["computed"].as_array().unwrap();
    assert_eq!(computed.len(), 2);
    let pagerank = computed
        .iter()
        .find(|of| of["measure"] == "pagerank")
        .unwrap();
    let top = lab
        .run("top --measure pagerank --level host --store s --json")
        .json();
    assert_eq!(pagerank["certain_top"], top["certain_top"]);
    // 0.397, 0.388 and 0.215, by hand: all gaps are greater than the bound.
    assert_eq!(pagerank["certain_top"], 2);
    let shown = lab.run("stat --store s").exits(0).out;
    assert!(
        shown.contains("hosts by pagerank: total error at most"),
        "{shown}"
    );
}

/// Hosts without www.: a links to x and b, x to b. Harmonic centrality is 0, 1, 2. PageRank is as 1 to 1.425 to
/// 2.63625: b has no links, so it pays all alike.
#[test]
fn ranks_are_written_as_common_crawl_does() {
    let lab = Lab::new();
    lab.file(
        "crawl",
        "{\"url\":\"http://www.a.example/\",\"links\":[\"http://b.example/\"]}\n\
         {\"url\":\"http://x.a.example/\",\"links\":[\"http://b.example/\",\"/y\"]}\n\
         {\"url\":\"http://a.example/\",\"links\":[\"http://x.a.example/\",\"http://www.a.example/\"]}\n",
    );
    lab.run("ingest crawl --store s").exits(0);
    lab.run("export --to common-crawl --level barehost --store s")
        .exits(2)
        .says(&["no ranking of barehosts by harmonic", "--level barehost"]);
    for level in ["barehost", "domain"] {
        for measure in ["harmonic", "pagerank --until 1e-9"] {
            lab.run(&format!(
                "compute --measure {measure} --level {level} --site-links once --store s"
            ))
            .exits(0);
        }
    }
    let sum = 1.0 + 1.425 + 2.63625;
    let expected = [
        (1, 2.0, 1, 2.63625 / sum, "example.b"),
        (2, 1.0, 2, 1.425 / sum, "example.a.x"),
        (3, 0.0, 3, 1.0 / sum, "example.a"),
    ];
    let out = lab
        .run("export --to common-crawl --level barehost --store s")
        .exits(0)
        .out;
    let mut lines = out.lines();
    assert_eq!(
        lines.next(),
        Some("#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev")
    );
    for (line, (place, value, pr_place, pr, name)) in lines.zip(expected) {
        let columns: Vec<&str> = line.split('\t').collect();
        assert_eq!(columns.len(), 5, "{line}");
        assert_eq!(columns[0], place.to_string());
        assert_eq!(columns[1].parse::<f64>().unwrap(), value);
        assert_eq!(columns[2], pr_place.to_string());
        assert!(
            (columns[3].parse::<f64>().unwrap() - pr).abs() < 1e-9,
            "{line}"
        );
        assert_eq!(columns[4], name);
    }
    assert_eq!(out.lines().count(), 4);
    let out = lab
        .run("export --to common-crawl --level domain --store s -o ranks")
        .exits(0);
    out.says(&["ranks: 2 domains"]);
    let ranks = std::fs::read_to_string(lab.path("ranks")).unwrap();
    let lines: Vec<&str> = ranks.lines().collect();
    assert!(lines[0].ends_with("#host_rev\t#n_hosts"));
    assert!(lines[1].ends_with("\texample.b\t1"), "{ranks}");
    assert!(lines[2].ends_with("\texample.a\t2"), "{ranks}");
    for (wrong, says) in [
        ("", "add --level barehost"),
        ("--level prefix:1", "no ranking of sites by harmonic"),
        ("--level domain --measure harmonic", "leave --measure"),
    ] {
        lab.run(&format!("export --to common-crawl {wrong} --store s"))
            .exits(2)
            .says(&[says]);
    }
}

/// Of 4 links between hosts, two lead to www.a.example; one more to b.example makes the shares 2/5, 2/5, 1/5, and 0 for
/// the new host.
#[test]
fn two_rankings_by_a_measure_are_compared() {
    let lab = lab();
    lab.run("compute --measure in-degree --level host --store s")
        .exits(0);
    lab.file(
        "more",
        "{\"url\":\"http://c.example/\",\"links\":[\"http://b.example/\"]}\n",
    );
    lab.run("ingest more --store s").exits(0);
    let of = "--snapshot 4 --measure in-degree --level host";
    lab.run(&format!("compare s {of}"))
        .exits(2)
        .says(&["no ranking of hosts by in-degree beside snapshot 5"]);
    lab.run("compute --measure in-degree --level host --site-links once --store s")
        .exits(0);
    let done = lab.run(&format!("compare s {of} --moved 9 --by change --json"));
    done.exits(0).says(&["different parameters"]);
    let moved = lab
        .run(&format!("compare s {of} --moved 9 --by change --json"))
        .exits(0)
        .json();
    assert!((moved["l1"].as_f64().unwrap() - 0.3).abs() < 1e-12);
    assert_eq!(moved["left"]["measure"], "in-degree");
    assert_eq!(moved["right"]["level"], "host");
    assert_eq!(moved["rose"][0]["url"], "b.example");
    assert_eq!(moved["new"][0]["url"], "c.example");
    assert_eq!(moved["margin"], serde_json::Value::Null);
    let sums = lab
        .run("compare s --snapshot 4 --level domain")
        .exits(0)
        .out;
    assert!(sums.contains("common_pages\t2"), "{sums}");
    lab.file("scores", "a\t1\n");
    lab.run("compare scores s --level host")
        .exits(2)
        .says(&["leave --measure and --level out"]);
}

/// Invalid requests are refused, and nothing is written.
#[test]
fn invalid_requests_are_refused() {
    let lab = lab();
    lab.file("none", "http://nowhere.example/\n");
    lab.file("zero", "host:b.example\t0\n");
    lab.file("wrong", "http://b.example/\nhost:b/x\n");
    lab.file("opaque.tsv", "a\tb\nb\tc\n");
    let before = lab.run("snapshots --store s").exits(0).out;
    for (line, code, says) in [
        (
            "compute --measure fame --store s",
            2,
            "possible values: pagerank",
        ),
        (
            "compute --measure pagerank --level nation --store s",
            2,
            "prefix:N",
        ),
        (
            "compute --measure pagerank --level prefix:0 --store s",
            2,
            "prefix:N",
        ),
        (
            "compute --measure personalised --store s",
            2,
            "needs a list of pages (--teleport)",
        ),
        (
            "compute --measure in-degree --teleport none --store s",
            2,
            "leave --teleport out",
        ),
        (
            "compute --measure personalised --teleport none --store s",
            2,
            "no line of the list",
        ),
        (
            "compute --measure personalised --teleport zero --store s",
            2,
            "0 together",
        ),
        (
            "compute --measure personalised --teleport wrong --store s",
            2,
            "line 2: ",
        ),
        (
            "compute --measure pagerank --damping 1 --store s",
            2,
            "damping",
        ),
        (
            "compute --measure pagerank --store s -o out",
            2,
            "cannot be used with",
        ),
        (
            "compute --measure pagerank --store s --memory 10",
            8,
            "memory",
        ),
        (
            "compute --measure pagerank --store nowhere",
            2,
            "not a cashrank store",
        ),
        (
            "compute opaque.tsv --format edges --measure pagerank --level host",
            2,
            "has a host in its name",
        ),
        (
            "top --measure harmonic --level host --store s",
            2,
            "none was computed beside it",
        ),
        (
            "top --level host --scope host:b.example --store s",
            2,
            "leave it or --level out",
        ),
        (
            "export --to tsv --level host --scope host:b.example --store s",
            2,
            "--scope is for pages",
        ),
    ] {
        lab.run(line).exits(code).says(&[says]);
    }
    assert_eq!(lab.run("snapshots --store s").exits(0).out, before);
    lab.file("b", "{\"url\":\"http://new.example/\"}\n");
    lab.run("ingest crawl --store rowless --keep-links none")
        .exits(0);
    lab.run("compute --measure pagerank --store rowless")
        .exits(2)
        .says(&["keep"]);
}

/// The reported bound includes the rounding of damping: 0.85 is no multiple of 2^-32, so 1e-12 cannot be reached.
#[test]
fn a_missed_bound_is_reported() {
    let lab = lab();
    for (until, damping, reached) in [
        (1e-6, 0.85, true),
        (1e-8, 0.85, true),
        (1e-12, 0.85, false),
        (1e-12, 0.875, true),
    ] {
        let line =
            format!("compute --measure pagerank --store s --until {until:e} --damping {damping}");
        let info = lab.run(&format!("{line} --json")).exits(0).json();
        let bound = info["accuracy"]["bound_l1"].as_f64().unwrap();
        assert_eq!(info["reached"], reached, "{info}");
        assert_eq!(bound <= until, reached, "{info}");
        let shown = lab.run(&line).exits(0).err;
        assert_eq!(shown.contains("was not reached"), !reached, "{shown}");
    }
}

/// A table may have several measures, each in a column of its name.
/// Counted by hand: www.a.example/ is linked from /x and b.example.
#[test]
fn measures_are_columns_of_one_table() {
    let lab = lab();
    let export = |asked: &str| lab.run(&format!("export --to tsv --store s --measure {asked}"));
    export("importance,in-degree")
        .exits(2)
        .says(&["no ranking of pages by in-degree"]);
    for measure in ["in-degree", "out-degree"] {
        lab.run(&format!("compute --measure {measure} --store s"))
            .exits(0);
    }
    let out = export("importance,in-degree,out-degree --score ratio")
        .exits(0)
        .out;
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0][9..], ["ratio", "in_degree", "out_degree"]);
    for (row, degrees) in rows[1..]
        .iter()
        .zip([["2", "2"], ["2", "2"], ["2", "2"], ["1", "1"]])
    {
        assert_eq!(row[10..], degrees, "{row:?}");
        let [importance, ratio] = [row[1], row[9]].map(|number| number.parse::<f64>().unwrap());
        assert!((ratio - 4.0 * importance).abs() < 1e-12, "{row:?}");
    }
    // Ranks and order are by the first measure.
    export("harmonic,importance")
        .exits(2)
        .says(&["no ranking of pages by harmonic"]);
    lab.run("compute --measure harmonic --store s").exits(0);
    export("harmonic --score ratio")
        .exits(2)
        .says(&["--score", "sum to 1"]);
    lab.run("compute --measure hits-authorities --store s")
        .exits(0);
    let ratios = export("hits-authorities --score ratio").exits(0).out;
    let ratios = ratios.lines().skip(1);
    let ratios: Vec<f64> = ratios
        .map(|line| line.rsplit_once('\t').unwrap().1.parse().unwrap())
        .collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!((mean - 1.0).abs() < 1e-9, "{mean}");
    let out = export("harmonic,importance --sort rank").exits(0).out;
    let head = "url\tharmonic\trank\tvisits\tlast_fetch\tstate\thost\tdomain\tpage\timportance\n";
    assert!(out.starts_with(head), "{out}");
    let importance = |out: &str, column: usize| {
        let cells = out.lines().skip(1).map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            (cells[0].to_owned(), cells[column].to_owned())
        });
        cells.collect::<std::collections::BTreeMap<_, _>>()
    };
    let alone = lab.run("export --to tsv --store s").exits(0).out;
    assert_eq!(importance(&out, 9), importance(&alone, 1));
    // For sites, in addition to their roll-up.
    lab.run("compute --measure in-degree --level host --store s")
        .exits(0);
    let out = export("importance,in-degree --level host --sort host")
        .exits(0)
        .out;
    let sites: Vec<(&str, &str)> = (out.lines().skip(1))
        .map(|line| {
            (
                line.split('\t').next().unwrap(),
                line.split('\t').nth(8).unwrap(),
            )
        })
        .collect();
    assert_eq!(
        sites,
        [
            ("a.example", "1"),
            ("www.a.example", "2"),
            ("b.example", "1")
        ]
    );
    export("importance,in-degree,in-degree")
        .exits(2)
        .says(&["in_degree is named twice"]);
    lab.run("top --measure importance,in-degree --store s")
        .exits(2);
}
