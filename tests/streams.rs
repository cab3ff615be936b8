//! Streams in several files: whatever changes from one to the next, and however often intermediate rankings are made,
//! each ranking is within its bound of PageRank computed here, and has the same bytes as in an undisturbed run.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::rank::Goal;
use cashrank_ingest::ingest::{Every, IngestEvent, IngestJob, Observer, ProgressReport, ingest};
use cashrank_store::check::{Depth, check};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;
use cashrank_store::store::rows::KeepRows;

use crate::crawl::{Dice, crawl};
use crate::disk::Meddled;
use crate::folder::in_memory;
use crate::pack::zstandard;
use crate::rows::{Failing, expected};

struct Silent;

impl Observer for Silent {
    fn note(&mut self, _: IngestEvent<'_>) {}
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

fn host(url: &str) -> Option<&str> {
    url.split('/').nth(2)
}

/// Settings for all runs of a stream.
struct Asked {
    damping: f64,
    /// Weight of links within a host.
    internal: u32,
    settle: Goal,
    places: Option<u64>,
}

impl Asked {
    fn roll(dice: &mut Dice) -> Asked {
        let goals = [Goal::default(), 0.01.into(), 1e-6.into()];
        Asked {
            damping: [0.85, 0.85, 0.5, 0.95][dice.roll(4) as usize],
            internal: [1, 1, 3][dice.roll(3) as usize],
            settle: goals[dice.roll(3) as usize],
            places: dice.coin().then(|| 5 + dice.roll(60)),
        }
    }

    fn job(&self, store: &std::path::Path, file: &std::path::Path) -> IngestJob {
        let mut job = IngestJob::new(store, vec![InputName::File(file.into())]);
        job.format = Some(Format::Records);
        job.keep_links = KeepRows::AtMost(1 << 20);
        job.settings.config.set_damping(self.damping).unwrap();
        job.settings.config.follow.internal = self.internal;
        job.settle = Some(self.settle);
        job.checkpoint_every = Every::Never;
        job.snapshot_every = self.places.map_or(Every::Never, Every::Records);
        job
    }

    /// Computes PageRank by powers of the matrix, of pages by name.
    fn pagerank(&self, names: &[String], records: &[String]) -> Vec<f64> {
        let number: HashMap<&str, usize> = names.iter().map(|name| &name[..]).zip(0..).collect();
        let mut links: Vec<Vec<(usize, f64)>> = vec![Vec::new(); names.len()];
        for (url, _, targets) in expected(records) {
            let weight = |target: &String| {
                if host(target) == host(&url) {
                    f64::from(self.internal)
                } else {
                    1.0
                }
            };
            let all: f64 = targets.iter().map(weight).sum();
            let part = |target: &String| (number[&target[..]], weight(target) / all);
            links[number[&url[..]]] = targets.iter().map(part).collect();
        }
        let n = names.len() as f64;
        let mut x = vec![1.0 / n; names.len()];
        loop {
            let dangling: f64 = x
                .iter()
                .zip(&links)
                .filter(|(_, l)| l.is_empty())
                .map(|(x, _)| x)
                .sum();
            let each = (1.0 - self.damping + self.damping * dangling) / n;
            let mut next = vec![each; x.len()];
            for (x, links) in x.iter().zip(&links) {
                for (target, part) in links {
                    next[*target] += self.damping * x * part;
                }
            }
            let moved: f64 = x.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum();
            x = next;
            if moved < 1e-13 {
                return x;
            }
        }
    }
}

/// Tests the stream of this seed.
fn stream(seed: u64) {
    let lab = in_memory();
    let path = |name: &str| lab.path().join(name);
    let mut dice = Dice(seed);
    let asked = Asked::roll(&mut dice);
    let mut all = Vec::new();
    let mut is_killed = false;
    for step in 0..1 + dice.roll(5) {
        let records = crawl(dice.roll(1 << 40), 1 + dice.roll(120));
        let file = path(&format!("{step}.jsonl"));
        // A compressed file is not verified before its end.
        let text = records.concat().into_bytes();
        let bytes = if dice.coin() { zstandard(&text) } else { text };
        fs::write(&file, bytes).unwrap();
        all.extend(records);
        ingest(
            &asked.job(&path("plain"), &file),
            Arc::new(RealDisk),
            &mut Silent,
        )
        .unwrap();
        let mut disturbed = asked.job(&path("disturbed"), &file);
        disturbed.checkpoint_every = Every::Records(1 + dice.roll(40));
        if asked.places.is_none() {
            disturbed.snapshot_every = Every::Time(Duration::from_micros(dice.roll(2_000)));
        }
        if dice.coin() {
            is_killed = true;
            let failing = Failing::after(dice.roll(400));
            let _ = ingest(
                &disturbed,
                Arc::new(Meddled(Arc::new(failing))),
                &mut Silent,
            );
        }
        ingest(&disturbed, Arc::new(RealDisk), &mut Silent).unwrap();
        let [plain, looked_at] =
            ["plain", "disturbed"].map(|store| Snapshot::latest(&RealDisk, &path(store)).unwrap());
        let bytes = |snapshot: &Snapshot| fs::read(snapshot.path()).unwrap();
        assert!(
            is_killed || bytes(&plain) == bytes(&looked_at),
            "seed {seed}, step {step}: the bytes differ"
        );
        let names: Vec<String> = plain.names().map(|name| name.unwrap()).collect();
        let exact = asked.pagerank(&names, &all);
        for snapshot in [&plain, &looked_at] {
            let found = snapshot.pages().map(|page| page.unwrap().importance);
            let off: f64 = found.zip(&exact).map(|(a, b)| (a - b).abs()).sum();
            let bound = snapshot.info().bound_l1().unwrap();
            assert!(
                off <= bound + 1e-11,
                "seed {seed}, step {step}: {off} is not within {bound}"
            );
        }
    }
    for store in ["plain", "disturbed"] {
        let damage = check(&RealDisk, &path(store), Depth::Deep, None)
            .unwrap()
            .damage;
        assert!(damage.is_empty(), "seed {seed}: {damage:?}");
    }
}

/// `CASHRANK_STREAMS` sets the number of streams; `CASHRANK_SEED` is the seed of the first.
#[test]
fn rankings_of_streams_are_within_their_bounds_however_they_are_made() {
    let number =
        |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (streams, seed) = (number("CASHRANK_STREAMS", 20), number("CASHRANK_SEED", 1));
    for at in 0..streams {
        stream(Dice::numbered(seed, at).0);
    }
}
