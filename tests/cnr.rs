//! A real web graph, replayed, against WebGraph's exact PageRank of it.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use cashrank::decode::{Link, Names, Record};
use cashrank::engine::{Config, Engine};

fn data(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data")
        .join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} is not here", path.display());
    None
}

/// ALGORITHMS: L1 at most 0.0005 after 20 passes in archive order; never above the bound.
#[test]
fn cnr_2000_converges_and_its_bounds_hold() {
    let Some(path) = data("cnr-2000/adjacency.tsv.zst") else {
        return;
    };
    let mut text = String::new();
    zstd::Decoder::new(std::fs::File::open(path).unwrap())
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let exact: Vec<f64> = BufReader::new(flate2::read::MultiGzDecoder::new(
        std::fs::File::open(data("cnr-2000/pagerank-0.85.txt.gz").unwrap()).unwrap(),
    ))
    .lines()
    .map(|line| line.unwrap().parse().unwrap())
    .collect();
    let mut engine = Engine::new(Config::default()).unwrap();
    let mut reader = engine.reader(Names::Opaque).unwrap();
    for pass in 1..=20 {
        engine.begin_pass().unwrap();
        for line in text.lines() {
            let mut fields = line.split('\t');
            let record = Record {
                url: Cow::Borrowed(fields.next().unwrap().as_bytes()),
                links: fields
                    .map(|f| Link {
                        url: Cow::Borrowed(f.as_bytes()),
                    })
                    .collect(),
                ..Record::default()
            };
            reader.apply(&mut engine, &record).unwrap();
        }
        engine.ledger().check_law().unwrap();
        if [1, 2, 5, 10, 20].contains(&pass) {
            let ranking = engine.ranking().unwrap();
            let l1: f64 = ranking
                .pages
                .iter()
                .map(|p| (p.importance - exact[p.url.parse::<usize>().unwrap()]).abs())
                .sum();
            let certificate = ranking.window.certificate.unwrap();
            eprintln!("{pass} {l1} {:?} {:?}", certificate, ranking.window);
            assert!(l1 <= certificate.received_l1.unwrap_or(2.0));
            if pass == 20 {
                assert!(l1 <= 0.0005, "{l1}");
            }
        }
    }
}
