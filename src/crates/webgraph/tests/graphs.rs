//! BV graphs, exported and imported. The bits of the small graph are written by hand, from the paper's codes; cnr-2000
//! is LAW's own.

mod support;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use cashrank::{Options, Record, Writer};
use support::{arcs_of, folder_of, import, refused, run, small, text_of};
use tempfile::tempdir;

/// 0 -> 1, 2; 1 -> 2; 2 -> 0. Degree in gamma, reference in unary (0), intervals in gamma (0), the first residual as its
/// difference from the node and the others as gaps, in zeta 3:
///
/// ```text
/// 011 1 1 1011 100    010 1 1 1011    010 1 1 1100
/// ```
const SMALL: [u8; 4] = [0b0111_1101, 0b1100_0101, 0b1101_1010, 0b1111_0000];
const ARCS: [(&str, &str); 4] = [
    ("http://a.example/", "http://a.example/1"),
    ("http://a.example/", "http://b.example/2"),
    ("http://a.example/1", "http://b.example/2"),
    ("http://b.example/2", "http://a.example/"),
];
const URLS: &str = "http://a.example/\nhttp://a.example/1\nhttp://b.example/2\n";

#[test]
fn a_store_becomes_the_bits_of_the_paper_and_its_urls() {
    let dir = tempdir().unwrap();
    let store = dir.path().join("store");
    let mut writer = Writer::open(&store, &Options::default()).unwrap();
    for from in [
        "http://a.example/",
        "http://a.example/1",
        "http://b.example/2",
    ] {
        let links: Vec<&str> = ARCS
            .iter()
            .filter(|arc| arc.0 == from)
            .map(|arc| arc.1)
            .collect();
        writer.push(&Record::new(from, links)).unwrap();
    }
    writer.publish().unwrap();
    drop(writer);
    // A base name with a dot, which does not start an extension.
    let out = dir.path().join("crawl.1");
    let out = out.to_str().unwrap();
    let output = run(&["export", store.to_str().unwrap(), out]);
    assert!(output.contains("3 nodes, 4 arcs"), "{output}");
    assert_eq!(fs::read(format!("{out}.graph")).unwrap()[..4], SMALL);
    assert_eq!(fs::read_to_string(format!("{out}.urls")).unwrap(), URLS);
    let properties = fs::read_to_string(format!("{out}.properties")).unwrap();
    for line in [
        "nodes=3",
        "arcs=4",
        "version=0",
        "graphclass=it.unimi.dsi.webgraph.BVGraph",
    ] {
        assert!(
            properties.lines().any(|found| found == line),
            "{properties}"
        );
    }
    // Gaps of offsets in gamma: 0, 12, 9, 9 bits: 1 0001101 0001010 0001010.
    assert_eq!(
        fs::read(format!("{out}.offsets")).unwrap()[..3],
        [0b1000_1101, 0b0001_0100, 0b0010_1000]
    );
    // Random access needs .ef, which is checked against the number of nodes.
    let graph = webgraph::graphs::bvgraph::BvGraph::with_basename(dir.path().join("copy"));
    for file in ["graph", "properties", "ef"] {
        fs::copy(
            format!("{out}.{file}"),
            dir.path().join(format!("copy.{file}")),
        )
        .unwrap();
    }
    use webgraph::traits::RandomAccessGraph;
    let graph = graph.load().unwrap();
    let lists = [0, 1, 2].map(|node| graph.successors(node).collect::<Vec<_>>());
    assert_eq!(lists, [vec![1, 2], vec![2], vec![0]]);
    refused(&["export", store.to_str().unwrap(), out], 2, "--force");
    run(&["export", store.to_str().unwrap(), out, "--force"]);
    // Sites, without their internal links.
    let sites = dir.path().join("hosts");
    let sites = sites.to_str().unwrap();
    let output = run(&["export", store.to_str().unwrap(), sites, "--level", "host"]);
    assert!(output.contains("2 nodes, 2 arcs"), "{output}");
    assert_eq!(
        fs::read_to_string(format!("{sites}.urls")).unwrap(),
        "a.example\nb.example\n"
    );
    let left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().contains("unfinished")),
        "{left:?}"
    );
}

#[test]
fn a_graph_by_hand_becomes_a_folder() {
    let dir = tempdir().unwrap();
    let base = small(dir.path(), &SMALL, "nodes=3\narcs=4\n", URLS);
    let out = dir.path().join("folder");
    let output = run(&import(
        &base,
        &format!("{base}.urls"),
        out.to_str().unwrap(),
    ));
    assert!(output.contains("3 nodes, 4 arcs"), "{output}");
    let (names, edges) = folder_of(&out);
    assert_eq!(
        names,
        "0\thttp://a.example/\n1\thttp://a.example/1\n2\thttp://b.example/2\n"
    );
    assert_eq!(edges, "0\t1\n0\t2\n1\t2\n2\t0\n");
    refused(
        &import(&base, &format!("{base}.urls"), out.to_str().unwrap()),
        2,
        "exists already",
    );
}

/// Regression: editors on Windows begin a list with a byte order mark, which became part of the first name.
#[test]
fn a_mark_before_the_first_name_is_no_part_of_it() {
    let dir = tempdir().unwrap();
    let urls = format!("\u{feff}{URLS}");
    let base = small(dir.path(), &SMALL, "nodes=3\narcs=4\n", &urls);
    let out = dir.path().join("folder");
    run(&import(
        &base,
        &format!("{base}.urls"),
        out.to_str().unwrap(),
    ));
    let (names, _) = folder_of(&out);
    assert_eq!(
        names,
        "0\thttp://a.example/\n1\thttp://a.example/1\n2\thttp://b.example/2\n"
    );
}

#[test]
fn what_is_no_graph_is_refused() {
    let dir = tempdir().unwrap();
    let out = dir.path().join("out");
    let plain = "nodes=3\narcs=4\n";
    let cases: [(&[u8], &str, &str, u8, &str); 14] = [
        (&SMALL, plain, "http://a/\nhttp://b/\n", 2, "2 names, and"),
        (&SMALL, plain, "a\nb\nc\nd\n", 2, "4 names, and"),
        (&SMALL, plain, "a\n\nc\n", 4, "line 2: it is empty"),
        (
            &SMALL,
            plain,
            "a\nb\tb\nc\n",
            4,
            "line 2: a name has no tabs",
        ),
        (&SMALL[..3], plain, URLS, 4, "ends in the list of node 2"),
        (&[], plain, URLS, 4, "ends in the list of node 0"),
        (&SMALL, "nodes=3\narcs=5\n", URLS, 4, "4 arcs"),
        (&[0xff; 64], plain, URLS, 4, "of another graph"),
        (&SMALL, "nodes=3\narcs=4\nversion=1\n", URLS, 2, "version=1"),
        (
            &SMALL,
            "nodes=3\narcs=4\nendianness=little\n",
            URLS,
            2,
            "endianness=little",
        ),
        (
            &SMALL,
            "nodes=3\narcs=4\ncompressionflags=RESIDUALS_PI2\n",
            URLS,
            2,
            "coded in Pi",
        ),
        (
            &SMALL,
            "nodes=3\narcs=4\ncompressionflags=RESIDUALS_NIBBLE\n",
            URLS,
            2,
            "NIBBLE",
        ),
        (&SMALL, "nodes=3\n", URLS, 4, "no `arcs`"),
        (
            &SMALL,
            "nodes=99999999999999999\narcs=4\n",
            URLS,
            2,
            "at most",
        ),
    ];
    for (graph, properties, urls, code, what) in cases {
        let base = small(dir.path(), graph, properties, urls);
        refused(
            &import(&base, &format!("{base}.urls"), out.to_str().unwrap()),
            code,
            what,
        );
        assert!(!out.exists());
    }
    let base = small(dir.path(), &SMALL, plain, URLS);
    let urls = format!("{base}.urls");
    fs::write(
        format!("{base}.properties"),
        "graphclass=it.unimi.dsi.webgraph.EFGraph\nnodes=3\narcs=4\n",
    )
    .unwrap();
    refused(
        &import(&base, &urls, out.to_str().unwrap()),
        2,
        "no BVGraph",
    );
    small(dir.path(), &SMALL, plain, URLS);
    fs::write(&urls, b"a\nb\xe9\nc\n").unwrap();
    refused(&import(&base, &urls, out.to_str().unwrap()), 4, "UTF-8");
    for file in ["graph", "urls", "properties"] {
        small(dir.path(), &SMALL, plain, URLS);
        fs::remove_file(format!("{base}.{file}")).unwrap();
        refused(&import(&base, &urls, out.to_str().unwrap()), 7, file);
    }
    // Three lists of three targets take more than 40 bytes.
    small(dir.path(), &SMALL, plain, URLS);
    refused(
        &[
            &import(&base, &urls, out.to_str().unwrap())[..],
            &["--memory", "40"],
        ]
        .concat(),
        8,
        "--memory",
    );
    refused(
        &[
            "export",
            dir.path().join("none").to_str().unwrap(),
            &base,
            "--force",
        ],
        2,
        "none",
    );
    assert!(!out.exists());
}

/// If any bit changes, or the file ends anywhere, the graph is a different one or is refused; the command does not fail
/// in any other way.
#[test]
fn damage_is_found_or_is_another_graph() {
    let dir = tempdir().unwrap();
    let store = dir.path().join("store");
    let mut writer = Writer::open(&store, &Options::default()).unwrap();
    let page = |page: u64| format!("http://a.example/{page}");
    for from in 0..40 {
        // Runs, copies of the list before, and gaps.
        let near = (0..6).map(|step| from / 4 * 4 + step);
        let links: Vec<String> = near
            .chain([from * 7 % 40, from * 11 % 40])
            .map(page)
            .collect();
        writer
            .push(&Record::new(&page(from), links.iter().map(String::as_str)))
            .unwrap();
    }
    writer.publish().unwrap();
    drop(writer);
    let base = dir.path().join("graph");
    let base = base.to_str().unwrap();
    run(&["export", store.to_str().unwrap(), base]);
    let sound = fs::read(format!("{base}.graph")).unwrap();
    let (mut refused, mut taken) = (0, 0);
    let cuts = (0..sound.len()).map(|end| sound[..end].to_vec());
    let flips = (0..sound.len() * 8).map(|bit| {
        let mut flipped = sound.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        flipped
    });
    // A long run of zeros is the longest code there is.
    let holes = (0..sound.len()).map(|at| {
        let mut holed = sound.clone();
        holed.splice(at..at, [0; 24]);
        holed
    });
    for damaged in cuts.chain(flips).chain(holes) {
        fs::write(format!("{base}.graph"), damaged).unwrap();
        let out = dir.path().join("out");
        let urls = format!("{base}.urls");
        let (code, output) = support::ended(&import(base, &urls, out.to_str().unwrap()));
        assert!(code == 0 || code == 4, "{code}: {output}");
        assert_eq!(out.exists(), code == 0, "{output}");
        if code == 0 {
            // Accepted graphs equal what webgraph itself reads.
            let lists = arcs_of(base).into_iter().enumerate();
            let arcs = lists.flat_map(|(from, to)| to.into_iter().map(move |to| (from, to)));
            let edges: String = arcs.map(|(from, to)| format!("{from}\t{to}\n")).collect();
            assert_eq!(folder_of(&out).1, edges);
            fs::remove_dir_all(out).unwrap();
        }
        *(if code == 0 { &mut taken } else { &mut refused }) += 1;
    }
    assert!(refused > 3 * taken, "{refused} refused, {taken} taken");
}

#[test]
fn cnr_2000_goes_in_and_out() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data/cnr-2000");
    if !data.is_dir() {
        eprintln!("SKIPPED: {} is absent", data.display());
        return;
    }
    let Some(cashrank) = support::cashrank() else {
        return;
    };
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    // Line i is node i: `node TAB successor...`.
    let law = text_of(&data.join("adjacency.tsv.zst"));
    let law: Vec<Vec<u32>> = law
        .lines()
        .map(|line| {
            line.split_terminator('\t')
                .skip(1)
                .map(|target| target.parse().unwrap())
                .collect()
        })
        .collect();
    let url = |node: usize| format!("http://cnr.example/{node}");
    let urls: String = (0..law.len()).map(|node| url(node) + "\n").collect();
    fs::write(path("urls"), urls).unwrap();
    let output = run(&import(
        data.join("cnr-2000").to_str().unwrap(),
        &path("urls"),
        &path("folder"),
    ));
    assert!(output.contains("325557 nodes, 3216152 arcs"), "{output}");
    let (_, edges) = folder_of(Path::new(&path("folder")));
    let arcs = law
        .iter()
        .enumerate()
        .flat_map(|(from, targets)| targets.iter().map(move |to| (from, *to)));
    let mut edges = edges.lines();
    for (from, to) in arcs {
        assert_eq!(edges.next(), Some(&*format!("{from}\t{to}")));
    }
    assert_eq!(edges.next(), None);
    drop(edges);
    support::must(
        &cashrank,
        &[
            "ingest",
            &path("folder"),
            "--store",
            &path("store"),
            "--self-links",
            "keep",
        ],
    );
    let output = run(&["export", &path("store"), &path("out")]);
    assert!(output.contains("325557 nodes, 3216152 arcs"), "{output}");
    let names = fs::read_to_string(path("out.urls")).unwrap();
    let nodes: Vec<usize> = names
        .lines()
        .map(|name| name.rsplit('/').next().unwrap().parse().unwrap())
        .collect();
    let lists: HashMap<usize, Vec<u32>> = arcs_of(&path("out"))
        .into_iter()
        .enumerate()
        .map(|(node, targets)| {
            let mut targets: Vec<u32> =
                targets.iter().map(|&target| nodes[target] as u32).collect();
            targets.sort_unstable();
            (nodes[node], targets)
        })
        .collect();
    for (node, targets) in law.iter().enumerate() {
        assert_eq!(&lists[&node], targets, "node {node}");
    }
    assert_eq!(lists.len(), law.len());
}
