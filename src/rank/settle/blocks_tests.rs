//! Settling in blocks against a dense solution and against one block, on random graphs and random splits of their pages.

use super::tests::{DAMPINGS, Held, Kept, dense, hold_to, numbers};
use super::*;
use crate::rows::{Bits, Ghost};

/// Pages dealt out to blocks, each with numbers of its own.
pub(super) struct Split {
    blocks: Vec<(Kept, Vec<Ghost>)>,
    /// Block and number there of every page.
    places: Vec<(u32, u32)>,
}

impl Split {
    /// By the block of each page. Numbers in a block are by first appearance in the rows, ghosts between the others.
    pub(super) fn of(kept: &Kept, owners: &[u32], blocks: u32) -> Split {
        let mut split = Split {
            blocks: (0..blocks).map(|_| Default::default()).collect(),
            places: vec![(u32::MAX, 0); kept.pages as usize],
        };
        let mut ghosts = std::collections::HashMap::new();
        for (page, targets, weights) in &kept.rows {
            let home = owners[*page as usize];
            let mut local = Vec::new();
            for &name in std::iter::once(page).chain(targets) {
                split.admit(name, owners[name as usize]);
                let (owner, at) = split.places[name as usize];
                let (rows, known) = &mut split.blocks[home as usize];
                local.push(if owner == home {
                    at
                } else {
                    *ghosts.entry((home, name)).or_insert_with(|| {
                        let page = rows.pages as u32;
                        rows.pages += 1;
                        known.push(Ghost { page, owner, at });
                        page
                    })
                });
            }
            split.blocks[home as usize].0.rows.push((
                local[0],
                local[1..].to_vec(),
                weights.clone(),
            ));
        }
        (0..kept.pages as u32).for_each(|page| split.admit(page, owners[page as usize]));
        split
    }

    fn admit(&mut self, page: u32, owner: u32) {
        let place = &mut self.places[page as usize];
        if place.0 == u32::MAX {
            let rows = &mut self.blocks[owner as usize].0;
            *place = (owner, rows.pages as u32);
            rows.pages += 1;
        }
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Block and number there of each page, block by block in ascending numbers.
    pub(super) fn owned(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut places = self.places.clone();
        places.sort_unstable();
        let places = places.into_iter();
        places.map(|(block, at)| (block as usize, at as usize))
    }

    pub(super) fn parts(&self) -> Vec<Part<'_>> {
        let blocks = self.blocks.iter();
        blocks
            .map(|(rows, ghosts)| Part {
                ghosts,
                ..Part::whole(rows, &Teleport::default())
            })
            .collect()
    }

    /// What was settled, in the order of pages.
    pub(super) fn estimates(&self, settled: &Settled, gathered: &Gathered) -> Vec<(f64, f64)> {
        let mut pages: Vec<usize> = (0..self.places.len()).collect();
        pages.sort_unstable_by_key(|&page| self.places[page]);
        let places: Vec<(u32, u32)> = pages.iter().map(|&page| self.places[page]).collect();
        let mut before = vec![0; self.blocks()];
        // A few at a time.
        let read = places.chunks(7).flat_map(|places| {
            let read = settled.estimates_in(gathered, places, &mut before);
            read.unwrap()
        });
        let mut found: Vec<(usize, (f64, f64))> = pages.iter().copied().zip(read).collect();
        found.sort_unstable_by_key(|(page, _)| *page);
        found.into_iter().map(|(_, estimate)| estimate).collect()
    }

    /// The same as bits.
    pub(super) fn bits(&self, settled: &Settled, gathered: &Gathered) -> Vec<(u64, u64)> {
        let estimates = self.estimates(settled, gathered).into_iter();
        estimates.map(|(y, x)| (y.to_bits(), x.to_bits())).collect()
    }
}

/// Rows of a random graph in which pages of the same block link to each other more often, some without links, some
/// without rows.
pub(super) fn a_graph(pick: &mut impl FnMut(u64) -> u64, owners: &[u32]) -> Kept {
    let pages = owners.len() as u64;
    let mut kept = Kept {
        pages,
        rows: Vec::new(),
    };
    let weighted = pick(3) == 0;
    for _ in 0..pick(2 * pages + 1) {
        let page = pick(pages) as u32;
        let mut targets = Vec::new();
        for _ in 0..pick(6) * (1 + pick(3)) {
            let target = pick(pages) as u32;
            let near = owners[target as usize] == owners[page as usize] || pick(3) == 0;
            if near && !targets.contains(&target) && target != page {
                targets.push(target);
            }
        }
        let weights: Vec<u64> = if weighted {
            let weights = targets.iter();
            weights.map(|_| pick(3) * (1 + pick(1 << 40))).collect()
        } else {
            Vec::new()
        };
        kept.visit(page, &targets, &weights);
    }
    kept
}

pub(super) fn owners(pick: &mut impl FnMut(u64) -> u64, blocks: u32) -> Vec<u32> {
    let pages = 1 + pick(40);
    (0..pages).map(|_| pick(blocks.into()) as u32).collect()
}

/// A random graph, and it in so many blocks.
pub(super) fn a_split_graph(pick: &mut impl FnMut(u64) -> u64, blocks: u32) -> (Kept, Split) {
    let owners = owners(pick, blocks);
    let kept = a_graph(pick, &owners);
    let split = Split::of(&kept, &owners, blocks);
    (kept, split)
}

/// What was settled is what its bound says, its books balance, and D is the function of X that it should be.
fn hold(split: &Split, settled: &Settled, exact: &[f64], damping: f64, what: &str) {
    hold_to(
        settled,
        &split.parts(),
        split.estimates(settled, &Gathered::default()),
        exact,
        damping,
        what,
    );
}

/// At one of the first `dampings`.
fn a_split(seed: u64, dampings: u64) {
    let mut pick = numbers(seed);
    let blocks = 1 + pick(9) as u32;
    let (kept, split) = a_split_graph(&mut pick, blocks);
    let damping = DAMPINGS[pick(dampings) as usize];
    let until = 10f64.powi(-(pick(13) as i32));
    let options = Options::until((damping * 2f64.powi(32)) as u64, until);
    let exact = dense(&kept, options.damping());
    let what = format!("seed {seed}, {blocks} blocks, damping {damping}, until {until}");
    let on = |threads| {
        let settled = settle_parts(
            &split.parts(),
            &options,
            &Workers::threads(threads),
            &mut (),
        );
        settled.unwrap().unwrap()
    };
    let settled = on(1);
    hold(&split, &settled, &exact, options.damping(), &what);
    let possible = until >= 1e-11 / (1.0 - damping);
    assert!(
        settled.reached || !possible,
        "{what}: {:?}",
        settled.progress
    );
    let bits = |settled: &Settled| split.bits(settled, &Gathered::default());
    // Threads are begun for every sweep: not where there are many of these.
    let threads = [2, 4].into_iter().filter(|_| seed.is_multiple_of(8));
    for threads in threads {
        let other = on(threads);
        assert_eq!(bits(&settled), bits(&other), "{what}, {threads} threads");
        assert_eq!(settled.certificate, other.certificate, "{what}");
        assert_eq!(settled.progress, other.progress, "{what}");
    }
}

#[test]
fn no_bound_is_violated_in_blocks_whatever_the_threads() {
    (0..1_000).for_each(|seed| a_split(seed, 4));
}

/// `cargo test --release blocks -- --ignored`.
#[test]
#[ignore = "takes a minute"]
fn no_bound_is_violated_in_20_000_splits() {
    (0..20_000).for_each(|seed| a_split(seed, 5));
}

/// All in one block, with the numbers that pages have, is as without blocks, to the bit; empty blocks beside it change
/// nothing.
#[test]
fn one_block_is_as_none() {
    for seed in 0..200 {
        let mut pick = numbers(seed);
        let mut all = owners(&mut pick, 1);
        let kept = a_graph(&mut pick, &all);
        let options = Options::until((0.85 * 2f64.powi(32)) as u64, 1e-6);
        let plain = settle(&kept, &options, &mut ()).unwrap().unwrap();
        all.fill(1);
        let empty = Kept::default();
        let whole = |rows| Part::whole(rows, &Teleport::default());
        for parts in [
            vec![whole(&kept)],
            vec![whole(&empty), whole(&kept), whole(&empty)],
        ] {
            let at = parts.len() / 2;
            let settled = settle_parts(&parts, &options, &Workers::threads(2), &mut ())
                .unwrap()
                .unwrap();
            let all: Vec<(u32, u32)> = (0..kept.pages as u32)
                .map(|page| (at as u32, page))
                .collect();
            let of = settled.estimates_in(&Gathered::default(), &all, &mut vec![0; parts.len()]);
            assert!(
                of.unwrap()
                    .into_iter()
                    .eq(plain.estimates(0, kept.pages as usize)),
                "seed {seed}"
            );
            assert_eq!(settled.certificate, plain.certificate);
            assert_eq!(settled.progress, plain.progress);
        }
    }
}

/// A graph in blocks of which some rows changed.
pub(super) struct ChangedSplit {
    pub before: Split,
    pub after: Split,
    /// The rows then, of all blocks.
    later: Kept,
    pub options: Options,
}

/// A random one.
pub(super) fn a_change(seed: u64) -> ChangedSplit {
    let mut pick = numbers(seed);
    let blocks = 1 + pick(5) as u32;
    let owners = owners(&mut pick, blocks);
    let kept = a_graph(&mut pick, &owners);
    // The numbers of pages are those of the graph after the change: only rows are new.
    let mut later = kept.clone();
    for _ in 0..1 + pick(3) {
        let page = pick(kept.pages) as u32;
        let targets: Vec<u32> = (0..kept.pages as u32)
            .filter(|&target| target != page && pick(4) == 0)
            .collect();
        later.visit(page, &targets, &[]);
    }
    let mut both = later.clone();
    both.rows.extend(kept.rows.iter().cloned());
    let all = Split::of(&both, &owners, blocks);
    let only = |rows: &Kept| {
        let mut split = Split::of(&both, &owners, blocks);
        let has = |page: u32, targets: &[u32], weights: &[u64]| {
            rows.rows
                .iter()
                .any(|row| row.0 == page && row.1 == targets && row.2 == weights)
        };
        let names: Vec<Vec<u32>> = (0..blocks as usize)
            .map(|block| {
                let (rows, ghosts) = &split.blocks[block];
                let mut names = vec![0; rows.pages as usize];
                for (name, place) in (0..).zip(&split.places) {
                    if place.0 as usize == block {
                        names[place.1 as usize] = name;
                    }
                }
                for ghost in ghosts {
                    let owned = |place: &(u32, u32)| *place == (ghost.owner, ghost.at);
                    let name = split.places.iter().position(owned);
                    names[ghost.page as usize] = name.unwrap() as u32;
                }
                names
            })
            .collect();
        for ((local, _), names) in split.blocks.iter_mut().zip(&names) {
            let mut seen = std::collections::HashSet::new();
            local.rows.retain(|(page, targets, weights)| {
                let named: Vec<u32> = targets.iter().map(|&at| names[at as usize]).collect();
                has(names[*page as usize], &named, weights) && seen.insert(*page)
            });
        }
        split
    };
    let (before, after) = (only(&kept), only(&later));
    let options = Options::until((0.85 * 2f64.powi(32)) as u64, 10f64.powi(-(pick(9) as i32)));
    assert_eq!(all.places, after.places);
    ChangedSplit {
        before,
        after,
        later,
        options,
    }
}

impl ChangedSplit {
    /// What was settled before as a base for each block, if it can be one.
    pub(super) fn held<'r>(&'r self, first: &Settled) -> Option<Vec<Held<'r>>> {
        let both = self.before.blocks.iter().zip(&self.after.blocks);
        let held = |(at, (before, after)): (usize, (&(Kept, _), &'r (Kept, _)))| {
            Held::of_block(first, at, &before.0, &after.0)
        };
        both.enumerate().map(held).collect()
    }
}

/// Rows that changed since, in a base for each block.
#[test]
fn bases_of_blocks_are_a_start() {
    let mut used = 0;
    for seed in 0..300 {
        let changed = a_change(seed);
        let (options, workers) = (&changed.options, &Workers::threads(2));
        let first = settle_parts(&changed.before.parts(), options, workers, &mut ());
        let Some(held) = changed.held(&first.unwrap().unwrap()) else {
            continue;
        };
        let bases: Vec<&dyn Base> = held.iter().map(|held| held as &dyn Base).collect();
        let parts = changed.after.parts();
        let (settled, came) = settle_from(&parts, options, Some(&bases), workers, &mut ()).unwrap();
        assert!(
            !matches!(came, BaseUse::Unusable(_)),
            "seed {seed}: {came:?}"
        );
        used += u32::from(matches!(came, BaseUse::Used));
        let exact = dense(&changed.later, options.damping());
        hold(
            &changed.after,
            &settled.unwrap(),
            &exact,
            options.damping(),
            &format!("seed {seed}"),
        );
    }
    assert!(used > 150, "{used}");
}

/// Ghosts that lie: each is an error, not a ranking.
#[test]
fn foreign_ghosts_are_refused() {
    let rows = Kept {
        pages: 2,
        rows: vec![(0, vec![1], vec![])],
    };
    let options = Options::until(1 << 31, 1e-3);
    let refused = |ghosts: [Ghost; 2], what: &str| {
        let ghosts = ghosts.map(|ghost| vec![ghost]);
        let parts = ghosts.each_ref().map(|ghosts| Part {
            ghosts,
            ..Part::whole(&rows, &Teleport::default())
        });
        let error = settle_parts(&parts, &options, &Workers::threads(1), &mut ())
            .err()
            .unwrap();
        assert!(error.to_string().contains(what), "{error}");
    };
    let ghost = |page, owner, at| Ghost { page, owner, at };
    refused(
        [ghost(1, 1, 0), ghost(1, 0, 1)],
        "should be page 1 of partition 0",
    );
    refused(
        [ghost(1, 1, 0), ghost(1, 1, 0)],
        "should be page 0 of partition 1",
    );
    refused(
        [ghost(1, 1, 0), ghost(1, 0, 7)],
        "should be page 7 of partition 0",
    );
    refused([ghost(1, 2, 0), ghost(1, 0, 0)], "partition 2");
    refused([ghost(2, 1, 0), ghost(1, 0, 0)], "names page 2");
    refused(
        [ghost(1, 1, 1), ghost(0, 0, 0)],
        "another partition's, and has a row",
    );
}

/// cnr-2000, a real graph, in the order of a breadth-first read from ten pages; the pages have no names, but are
/// numbered by URL, so that 500 with numbers next to each other stand for a host.
fn cnr_2000() -> Option<Kept> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../shared/data/cnr-2000/adjacency.tsv.zst"
    );
    let Ok(file) = std::fs::File::open(path) else {
        eprintln!("SKIPPED: no {path}");
        return None;
    };
    let text = zstd::decode_all(file).unwrap();
    let lines = std::str::from_utf8(&text).unwrap().lines();
    let rows: Vec<Vec<u32>> = lines
        .map(|line| {
            let mut names = line
                .split_terminator('\t')
                .map(|name| name.parse().unwrap());
            let page: u32 = names.next().unwrap();
            names.filter(|&target| target != page).collect()
        })
        .collect();
    let mut pick = numbers(0);
    let mut queue: std::collections::VecDeque<u32> =
        (0..10).map(|_| pick(rows.len() as u64) as u32).collect();
    let mut seen = Bits::new(rows.len() as u64);
    let mut read = Vec::new();
    for page in 0..rows.len() as u32 {
        while let Some(page) = queue.pop_front() {
            if seen.set(page.into()) {
                let targets = rows[page as usize].clone();
                queue.extend(&targets);
                read.push((page, targets, Vec::new()));
            }
        }
        queue.push_back(page);
    }
    read.extend(
        queue
            .into_iter()
            .filter(|&page| seen.set(page.into()))
            .map(|page| (page, rows[page as usize].clone(), Vec::new())),
    );
    Some(Kept {
        pages: rows.len() as u64,
        rows: read,
    })
}

/// Blocks by host take hardly more links than one block.
#[test]
fn a_real_graph_in_64_blocks_by_host() {
    let Some(kept) = cnr_2000() else { return };
    let owner = |page: u64| (xxhash_rust::xxh3::xxh3_64(&page.to_le_bytes()) % 64) as u32;
    let by_host: Vec<u32> = (0..kept.pages).map(|page| owner(page / 500)).collect();
    let split = Split::of(&kept, &by_host, 64);
    for (until, most) in [(0.01, 3.9), (1e-4, 6.5), (1e-9, 14.5)] {
        let options = Options::until((0.85 * 2f64.powi(32)) as u64, until);
        let settled = settle_parts(&split.parts(), &options, &Workers::threads(2), &mut ());
        let settled = settled.unwrap().unwrap();
        let progress = settled.progress;
        let sweeps = progress.links_touched as f64 / progress.links as f64;
        assert!(settled.reached && sweeps <= most, "until {until}: {sweeps}");
    }
}
