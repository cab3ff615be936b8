//! The plain engine of the benchmarks gives the program's own ranking, so both do the same work when their speeds are
//! compared.

use serde_json::json;

use crate::support::{Dice, Lab, zstandard};

#[path = "../../benches/end_to_end/plain.rs"]
mod engine;

/// Returns fetches of 2,000 pages, most of them of a few pages, some of none for many rounds. Names are canonical, as
/// the plain engine needs them.
fn crawl(records: u64) -> String {
    let mut dice = Dice(1);
    let url = |page: u64| format!("https://site{}.example/page/{page}.html", page % 50);
    let line = |at: u64| {
        let most = dice.roll(2_000) + 1;
        let page = dice.roll(most);
        let links: Vec<String> = (0..dice.roll(9)).map(|_| url(dice.roll(2_000))).collect();
        let (hours, minutes, seconds) = (at / 3600, at / 60 % 60, at % 60);
        let time = format!("2024-01-01T{hours:02}:{minutes:02}:{seconds:02}Z");
        let record = json!({"url": url(page), "fetched_at": time, "status": 200, "links": links});
        format!("{record}\n")
    };
    (0..records).map(line).collect()
}

#[test]
fn the_plain_engine_makes_the_same_ranking() {
    let lab = Lab::new();
    let input = lab.file("crawl.jsonl.zst", zstandard(crawl(20_000).as_bytes()));
    for passes in ["1", "3"] {
        let plain = lab.path("plain.tsv");
        let arguments = [&input, &passes.into(), &plain].map(|path| path.display().to_string());
        engine::main(&arguments);
        lab.run(&format!(
            "ingest crawl.jsonl.zst --store {passes} --repeat {passes} --settle none"
        ))
        .exits(0);
        let ours = lab
            .run(&format!("export --to tsv --store {passes}"))
            .exits(0);
        let plain = std::fs::read_to_string(plain).unwrap();
        assert!(ours.out.lines().count() > 1_900);
        let same = ours.out.lines().zip(plain.lines());
        for (ours, plain) in same {
            let ours: Vec<&str> = ours.split('\t').take(5).collect();
            assert_eq!(ours.join("\t"), plain, "{passes} passes");
        }
        assert_eq!(ours.out.lines().count(), plain.lines().count());
    }
}
