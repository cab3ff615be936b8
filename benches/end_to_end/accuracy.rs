//! Part `accuracy`: from a list of edges to scores within an L1 distance of [`CLOSE`] of exact PageRank, compared with
//! WebGraph's tools (crate webgraph-cli 0.5: `cargo install webgraph-cli`).
//!
//! Both read the same file of `from TAB to`, without self-links and repeats. Ours runs with default settings: one pass,
//! settled until the certified bound is [`CLOSE`], so that the distance itself is smaller. Theirs does no unnecessary
//! work: the smallest sufficient number of iterations is found before the clock starts. All distances are measured from
//! `cashrank compute`, run to its end.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bench::{Bench, median, size};
use crate::input;
use crate::measure::{Measured, measure};

/// Requested distance.
const CLOSE: f64 = 0.01;
/// Maximum number of iterations tried.
const TRIES: u32 = 60;

/// List of edges.
struct List {
    path: PathBuf,
    pages: usize,
    links: u64,
}

pub fn run(bench: &mut Bench) {
    bench.report.title("accuracy");
    let path = bench.folder.join("bench.edges");
    if let Some(cnr) = input::real("cnr-2000/adjacency.tsv.zst") {
        let from = zstd::Decoder::new(File::open(cnr).expect("was found")).expect("is zstd");
        let list = List::write(from, &path);
        one(bench, "cnr-2000", &list);
    }
    let generated = input::adjacency(bench);
    let from = zstd::Decoder::new(File::open(generated).expect("was made")).expect("is zstd");
    let list = List::write(from, &path);
    one(bench, "generated", &list);
    let _ = std::fs::remove_file(&path);
}

impl List {
    /// Writes the edges of adjacency lists, each once, without self-links.
    fn write(adjacency: impl Read, path: &Path) -> List {
        let mut out = BufWriter::new(File::create(path).expect("the folder can be written"));
        let (mut pages, mut links) = (HashSet::new(), 0);
        let mut seen = HashSet::new();
        for line in BufReader::new(adjacency).lines() {
            let line = line.expect("can be read");
            let names = line.split('\t').filter(|name| !name.is_empty());
            let mut names = names.map(|name| name.parse::<u32>().expect("a number"));
            let Some(from) = names.next() else { continue };
            seen.clear();
            for to in names.filter(|&to| to != from) {
                if seen.insert(to) {
                    writeln!(out, "{from}\t{to}").expect("can be written");
                    pages.extend([from, to]);
                    links += 1;
                }
            }
        }
        out.flush().expect("can be written");
        List {
            path: path.to_owned(),
            pages: pages.len(),
            links,
        }
    }
}

fn one(bench: &mut Bench, name: &str, list: &List) {
    bench.report.line(&format!(
        "input     {name}: {} pages, {} links, {} bytes of edges",
        list.pages,
        list.links,
        size(&list.path)
    ));
    let exact = bench.folder.join("exact.tsv");
    let mut command = bench.cashrank(&["compute", "--until", "1e-12", "--format", "edges", "-o"]);
    let made = measure(command.arg(&exact).arg(&list.path));
    bench.check(made.success, &format!("compute: {}", made.stderr));
    let run = ours(bench, list);
    let bound = run.json()["bound_l1"].as_f64().unwrap_or(2.0);
    let found = distance(bench, &bench.store(), &exact);
    bench.check(found <= bound && bound <= CLOSE, "ours is not close enough");
    bench.report.line(&format!(
        "ours      one read, L1 {found:.5}, certified {bound:.5}"
    ));
    let peer = Peer::find(bench);
    let iterations = peer
        .as_ref()
        .and_then(|peer| peer.iterations(bench, list, &exact));
    match (&peer, iterations) {
        (None, _) => bench
            .report
            .line("SKIPPED: no webgraph and webgraph-rank on the PATH"),
        (_, None) => bench.check(false, "the peer does not come close enough"),
        (_, Some((iterations, distance))) => {
            let text = format!("WebGraph  {iterations} iterations, L1 {distance:.5}");
            bench.report.line(&text);
        }
    }
    bench
        .report
        .line("  ours s  cpu s  peak MiB  WebGraph s  cpu s  peak MiB   ratio");
    let mut ratios = Vec::new();
    for _ in 0..bench.options.runs {
        let ours = ours(bench, list);
        let theirs = peer
            .as_ref()
            .zip(iterations)
            .map(|(peer, (n, _))| peer.chain(list, n));
        let text = theirs.map_or("         -      -         -       -".to_owned(), |theirs| {
            ratios.push(theirs.wall_s / ours.wall_s);
            format!(
                "{:>10.2} {:>6.2} {:>9.0} {:>7.2}",
                theirs.wall_s,
                theirs.cpu_s,
                theirs.peak_mib(),
                theirs.wall_s / ours.wall_s
            )
        });
        bench.report.line(&format!(
            "{:>8.2} {:>6.2} {:>9.0}  {text}",
            ours.wall_s,
            ours.cpu_s,
            ours.peak_mib()
        ));
    }
    if !ratios.is_empty() {
        let text = format!(
            "median    WebGraph takes {:.2} times our time",
            median(ratios)
        );
        bench.report.line(&text);
    }
    let _ = std::fs::remove_file(exact);
}

/// Returns the L1 distance of a ranking, a store or a file, from the exact one.
fn distance(bench: &Bench, ranking: &Path, exact: &Path) -> f64 {
    let mut command = bench.cashrank(&["compare", "--json"]);
    let compared = measure(command.arg(ranking).arg(exact)).json();
    compared["l1"].as_f64().expect("is a number")
}

/// Reads the list once and settles.
fn ours(bench: &mut Bench, list: &List) -> Measured {
    let run = bench.ingest(&list.path, &["--format", "edges"]);
    bench.check(run.success, &format!("ingest: {}", run.stderr));
    bench.check(
        run.json()["pages"] == list.pages,
        "pages are not those of the list",
    );
    run
}

/// Adds up two programs that run one after the other.
fn both(first: Measured, second: Measured) -> Measured {
    Measured {
        wall_s: first.wall_s + second.wall_s,
        cpu_s: first.cpu_s + second.cpu_s,
        peak_bytes: first.peak_bytes.max(second.peak_bytes),
        ..second
    }
}

/// WebGraph's tools, working in a folder of their own.
struct Peer {
    folder: PathBuf,
}

impl Peer {
    fn find(bench: &Bench) -> Option<Peer> {
        let runs = |program: &str| {
            let mut command = Command::new(program);
            let command = command
                .arg("--help")
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let folder = bench.folder.join("webgraph");
        (runs("webgraph") && runs("webgraph-rank")).then_some(Peer { folder })
    }

    fn step(&self, program: &str, arguments: &str, input: Stdio) -> Measured {
        let mut command = Command::new(program);
        command
            .args(arguments.split(' '))
            .current_dir(&self.folder)
            .stdin(input);
        let run = measure(&mut command);
        assert!(run.success, "{program} {arguments}: {}", run.stderr);
        run
    }

    /// Converts arcs to the transpose, ready for random access.
    fn load(&self, list: &List) -> Measured {
        let _ = std::fs::remove_dir_all(&self.folder);
        std::fs::create_dir_all(&self.folder).expect("the folder can be made");
        let arcs = File::open(&list.path).expect("was made");
        let from = format!("from arcs --labels --num-nodes {} graph", list.pages);
        let mut all = self.step("webgraph", &from, arcs.into());
        for step in [
            "build ef graph",
            "transform transpose graph back",
            "build ef back",
        ] {
            all = both(all, self.step("webgraph", step, Stdio::null()));
        }
        all
    }

    fn pagerank(&self, iterations: u32) -> Measured {
        let arguments = format!("pagerank back -o ranks --threshold 1e-15 --max-iter {iterations}");
        self.step("webgraph-rank", &arguments, Stdio::null())
    }

    fn chain(&self, list: &List, iterations: u32) -> Measured {
        let all = both(self.load(list), self.pagerank(iterations));
        let _ = std::fs::remove_dir_all(&self.folder);
        all
    }

    /// Returns the smallest sufficient number of iterations, and the distance reached.
    fn iterations(&self, bench: &Bench, list: &List, exact: &Path) -> Option<(u32, f64)> {
        self.load(list);
        let found = (1..=TRIES).find_map(|iterations| {
            self.pagerank(iterations);
            let distance = distance(bench, &self.named(), exact);
            (distance <= CLOSE).then_some((iterations, distance))
        });
        let _ = std::fs::remove_dir_all(&self.folder);
        found
    }

    /// Writes the ranks with the names of their nodes.
    fn named(&self) -> PathBuf {
        let open = |name: &str| {
            let file = File::open(self.folder.join(name)).expect("was written");
            BufReader::new(file)
                .lines()
                .map(|line| line.expect("can be read"))
        };
        let path = self.folder.join("named.tsv");
        let mut out = BufWriter::new(File::create(&path).expect("can be written"));
        for (name, rank) in open("graph.nodes").zip(open("ranks")) {
            writeln!(out, "{name}\t{rank}").expect("can be written");
        }
        out.flush().expect("can be written");
        path
    }
}
