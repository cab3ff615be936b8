//! Real crawls, and the ranks that other programs computed for them.

use std::fs::File;
use std::io::Read;

use crate::support::{Lab, data};

/// A project site's history, read once through a pipe: re-fetches, deletions, and 93 % of the
/// known pages never fetched. Counts are those of an independent reader.
#[test]
fn a_site_history_through_a_pipe() {
    let Some(path) = data("flink-history/flink.jsonl.zst") else {
        return;
    };
    let mut decoder = zstd::Decoder::new(File::open(path).unwrap()).unwrap();
    decoder.window_log_max(27).unwrap();
    let lab = Lab::on_disk();
    let mut running = lab.start("ingest - --store s");
    let mut buffer = vec![0; 1 << 20];
    loop {
        let len = decoder.read(&mut buffer).unwrap();
        if len == 0 {
            break;
        }
        running.write(&buffer[..len]);
    }
    running.end().exits(0);
    let stat = lab.stat("s");
    assert_eq!(stat["records"], 54_932);
    assert_eq!(stat["gone"], 669);
    assert_eq!(stat["visited"], 889);
    assert_eq!(stat["links"], 4_353_525);
    assert!(stat["rounds"].as_u64().unwrap() >= 4, "{stat}");
    assert!(stat["bound_l1"].as_f64().unwrap() <= 0.5, "{stat}");
    let verified = lab.run("verify --json --store s").exits(0).json();
    assert_eq!(verified["checkpoint"], true);
    assert_eq!(verified["pages"], stat["pages"]);
}

/// WebGraph's exact PageRank of a crawl of cnr.it, self-links dropped.
#[test]
fn cnr_2000_converges_and_its_bounds_hold() {
    let (Some(graph), Some(exact)) = (
        data("cnr-2000/adjacency.tsv.zst"),
        data("cnr-2000/pagerank-0.85.txt.gz"),
    ) else {
        return;
    };
    let lab = Lab::new();
    let (graph, exact) = (graph.display(), exact.display());
    for passes in [1, 2, 5, 10, 20] {
        lab.run(&format!("ingest {graph} --store s --repeat {passes}"))
            .exits(0);
        let found = lab
            .run(&format!("compare s {exact} --json"))
            .exits(0)
            .json();
        assert_eq!(found["common_pages"], 325_557);
        let l1 = found["l1"].as_f64().unwrap();
        // No bound is published before rounds have ended; no distance exceeds 2.
        let bound = lab.stat("s")["bound_l1"].as_f64().unwrap_or(2.0);
        eprintln!("{passes} passes: L1 {l1:.3e}, bound {bound:.3e}");
        assert!(l1 <= bound, "{l1} > {bound} after {passes} passes");
        if passes == 20 {
            assert!(bound < 2.0 && l1 <= 0.0005, "{l1}, bound {bound}");
        }
    }
}

/// A site's pages with all their captures over years: the last links of a page count, and the ranking settled over them
/// is within its bound of their exact PageRank (a window's graph has all captures).
#[test]
fn a_site_with_many_captures_of_a_page_ends_at_its_last_links() {
    let Some(path) = data("flink-history/flink.jsonl.zst") else {
        return;
    };
    let (lab, path) = (Lab::new(), path.display());
    lab.run(&format!("compute --until 1e-12 {path} -o exact"))
        .exits(0);
    lab.run(&format!("ingest {path} --store s")).exits(0);
    for least in [1e-2, 1e-9] {
        lab.run(&format!("settle --store s --until {least}"))
            .exits(0);
        let found = lab.run("compare s exact --json").exits(0).json();
        assert_eq!(found["left_pages"], found["common_pages"]);
        assert_eq!(found["right_pages"], found["common_pages"]);
        let l1 = found["l1"].as_f64().unwrap();
        let stat = lab.stat("s");
        let bound = stat["bound_l1"].as_f64().unwrap();
        eprintln!("settled to {least:e}: L1 {l1:.3e}, bound {bound:.3e}");
        assert_eq!(stat["settled"]["reached"], bound <= least);
        // The bound is on the distance to PageRank at 0.85, and 0.6 x 2^-32 below it is used.
        let rounding = 2.0 * 0.6 / 2f64.powi(32) / 0.15;
        assert!(
            l1 <= bound && bound <= least + 1.01 * rounding,
            "{l1}, {bound}"
        );
    }
}

/// The guide's join of a graph and its URLs; pages and links as counted by the graph's makers.
#[test]
fn a_graph_gets_its_urls_by_a_join() {
    let (Some(links), Some(urls)) = (data("hollins/hollins.dat"), data("hollins/links.dat")) else {
        return;
    };
    let guide = include_str!("../../formats/guide/replay.md");
    let recipe = guide.lines().find(|line| line.starts_with("awk ")).unwrap();
    let recipe = recipe.trim_end_matches(" |");
    let lab = Lab::new();
    for (name, path) in [("links.txt", links), ("urls.txt", urls)] {
        let text = std::fs::read_to_string(path).unwrap();
        lab.file(name, text.split_once('\n').unwrap().1);
    }
    let mut shell = std::process::Command::new("sh");
    let joined = shell
        .args(["-c", recipe])
        .current_dir(lab.path("."))
        .output();
    lab.file("joined.tsv", joined.unwrap().stdout);
    let found = lab.run("inspect joined.tsv --json").exits(0).json();
    assert_eq!(found["pages"]["count"], 6_012);
    assert_eq!(found["links"]["followed"], 23_875);
    assert_eq!(found["records_again"], 0);
    let top = lab.run("ingest joined.tsv --store s --top 1").exits(0);
    assert!(top.out.contains("http://www.hollins.edu/"), "{}", top.out);
}
