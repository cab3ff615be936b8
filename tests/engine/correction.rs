//! The correction ledger: its certificate against the graph as last crawled, its law, and where it ends.

use std::collections::{BTreeMap, BTreeSet};

use cashrank::engine::{Config, Phase};

use super::common::{CLIQUE_WITH_TAIL, clique_with_tail, l1, record};
use super::stream::{Event, Fetch, Run};

/// Rounding of the reference's floating-point sums.
const SLACK: f64 = 1e-11;

/// Numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * u64::from(n)) >> 32) as u32
    }

    /// True once in so many times; 0: never.
    fn once_in(&mut self, n: u32) -> bool {
        n > 0 && self.below(n) == 0
    }
}

/// The graph as last crawled, by names. A page not fetched has no links.
#[derive(Default)]
struct Crawled {
    rows: BTreeMap<u32, BTreeSet<u32>>,
    /// A pass is repeated: rows do not change.
    again: bool,
}

impl Crawled {
    fn see(&mut self, event: &Event) {
        match event {
            Event::BeginPass => self.again = true,
            Event::CompletePass => unreachable!("not drawn"),
            Event::Fetch(fetch) => {
                let row = match fetch.status {
                    Some(404) => BTreeSet::new(),
                    Some(_) => return,
                    None => fetch.links.iter().copied().collect(),
                };
                let row: BTreeSet<u32> = row.into_iter().filter(|&to| to != fetch.page).collect();
                match self.again {
                    true => drop(self.rows.entry(fetch.page).or_insert(row)),
                    false => drop(self.rows.insert(fetch.page, row)),
                }
            }
        }
    }

    /// PageRank of the pages with these names, in their order: power iteration until nothing moves.
    fn pagerank(&self, names: &[u32], damping: f64) -> Vec<f64> {
        let n = names.len() as f64;
        let at: BTreeMap<u32, usize> = names.iter().copied().zip(0..).collect();
        let mut x = vec![1.0 / n; names.len()];
        for _ in 0..20_000 {
            let mut next = vec![0.0; names.len()];
            let mut everywhere = 0.0;
            for (page, name) in names.iter().enumerate() {
                let row = self.rows.get(name).filter(|row| !row.is_empty());
                let handed_on = if row.is_some() {
                    damping * x[page]
                } else {
                    0.0
                };
                for to in row.into_iter().flatten() {
                    next[at[to]] += handed_on / row.map_or(1, BTreeSet::len) as f64;
                }
                everywhere += x[page] - handed_on;
            }
            next.iter_mut().for_each(|y| *y += everywhere / n);
            let moved = l1(&next, &x);
            x = next;
            if moved < 1e-16 {
                break;
            }
        }
        x
    }
}

/// What a stream does.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// Records.
    length: u32,
    pages: u32,
    /// A record in so many finds other links; 0: none does.
    changes: u32,
    /// A record in so many is that of a page gone, unchanged or failed; 0: none is.
    others: u32,
    /// Pages known grow with the stream.
    grows: bool,
    /// Passes over the same records.
    passes: u32,
}

fn kind(random: &mut Random) -> Kind {
    let passes = [1, 1, 6][random.below(3) as usize];
    Kind {
        length: [60, 1_100, 4_000, 9_000][random.below(4) as usize] / passes + random.below(60),
        pages: 1 + random.below(40),
        changes: [0, 0, 3_000, 300, 20][random.below(5) as usize],
        others: [0, 0, 40][random.below(3) as usize],
        grows: random.once_in(2),
        passes,
    }
}

fn stream(kind: Kind, random: &mut Random) -> Vec<Event> {
    let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut events = Vec::new();
    for at in 0..kind.length {
        let known = match kind.grows {
            true => 1 + kind.pages * at / kind.length,
            false => kind.pages,
        };
        let page = random.below(known);
        if random.once_in(kind.changes) || !rows.contains_key(&page) {
            let links = random.below(6);
            rows.insert(page, (0..links).map(|_| random.below(kind.pages)).collect());
        }
        let other = random.once_in(kind.others);
        events.push(Event::Fetch(Fetch {
            page,
            status: other.then(|| [404, 304, 500][random.below(3) as usize]),
            redirect: None,
            links: rows[&page].clone(),
            time: None,
        }));
    }
    let pass = events.clone();
    for _ in 1..kind.passes {
        events.push(Event::BeginPass);
        events.extend(pass.iter().cloned());
    }
    events
}

/// Whether importance was read from the correction ledger, and had a bound.
fn check(run: &mut Run, crawled: &Crawled, what: Kind) -> bool {
    let ranking = run.engine.ranking().unwrap();
    let y: Vec<f64> = ranking.pages.iter().map(|page| page.importance).collect();
    assert!((y.iter().sum::<f64>() - 1.0).abs() <= SLACK, "{what:?}");
    assert!(y.iter().all(|y| *y >= 0.0), "{what:?}");
    let bound = ranking.window.bound_l1();
    if !ranking.window.correction {
        return false;
    }
    let names: Vec<u32> = ranking
        .pages
        .iter()
        .map(|page| page.url[1..].parse().unwrap())
        .collect();
    let exact = crawled.pagerank(&names, run.engine.config().damping());
    let off = l1(&y, &exact);
    assert!(
        off <= bound.unwrap_or(2.0) + SLACK,
        "{what:?}: {off} > {bound:?}"
    );
    bound.is_some()
}

/// Growing graphs, links that change, pages gone, never visited and dangling, repeated passes with
/// several records of a page: no estimate is further from PageRank than its bound.
#[test]
fn bounds_hold_for_the_graph_as_last_crawled() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut bounded = BTreeMap::new();
    for _ in 0..1_000 {
        let kind = kind(&mut random);
        let mut config = Config::default();
        config.correction = true;
        config.marks = random.below(3) as u8;
        config
            .set_damping([0.85, 0.0, 0.5, 0.97][random.below(4) as usize])
            .unwrap();
        let mut run = Run::new(&config);
        let mut crawled = Crawled::default();
        let events = stream(kind, &mut random);
        let looks = [
            random.below(events.len() as u32),
            random.below(events.len() as u32),
        ];
        for (event, at) in events.iter().zip(0..) {
            run.apply(event);
            crawled.see(event);
            if looks.contains(&at) || at + 1 == events.len() as u32 {
                let class = (kind.changes > 0, kind.grows, kind.passes > 1);
                let (found, of) = bounded.entry(class).or_insert((0, 0));
                *found += u32::from(check(&mut run, &crawled, kind));
                *of += 1;
            }
        }
    }
    eprintln!("(links change, graph grows, passes): (bounds, looks): {bounded:?}");
    assert_eq!(bounded.len(), 8);
    for (class, (found, of)) in bounded {
        assert!(found * 20 > of, "{class:?}: {found} bounds of {of} looks");
    }
}

/// Twelve passes over a graph known in closed form: as near as units are small.
#[test]
fn passes_end_at_pagerank() {
    for damping in [0.85, 0.5, 0.0] {
        let mut config = Config::default();
        config.correction = true;
        config.set_damping(damping).unwrap();
        let mut run = Run::new(&config);
        for _ in 0..40 {
            for (page, links) in CLIQUE_WITH_TAIL {
                run.record(&record(page, links.iter().copied()));
            }
            run.engine.begin_pass().unwrap();
        }
        let ranking = run.engine.ranking().unwrap();
        let y: Vec<f64> = ranking.pages.iter().map(|page| page.importance).collect();
        let off = l1(&y, &clique_with_tail(config.damping()));
        let bound = ranking.window.bound_l1().unwrap();
        assert!(
            ranking.window.correction && off <= bound && bound < 1e-9,
            "{off}, {bound}"
        );
    }
}

/// What other links leave in the wrong places is counted.
#[test]
fn other_links_are_counted() {
    let mut config = Config::default();
    config.correction = true;
    config.marks = 0;
    let mut run = Run::new(&config);
    let names: Vec<String> = (0..100).map(|page| format!("p{page}")).collect();
    let ring = |page: usize, step: usize| [&*names[(page + step) % 100]];
    for pass in 0..60 {
        for (page, name) in names.iter().enumerate() {
            run.record(&record(name, ring(page, 1)));
        }
        assert_eq!(run.engine.state().correction.unwrap().stale, 0, "{pass}");
    }
    // A ring's pages have a hundredth each.
    run.record(&record(&names[7], ring(7, 5)));
    let state = run.engine.state().correction.unwrap();
    let stale = state.stale as f64 / state.sum as f64;
    assert!((stale - 2.0 * 0.85 / 100.0).abs() < 1e-9, "{stale}");
}

/// And the bound has it: here little else is left.
#[test]
fn the_bound_has_what_other_links_leave() {
    let mut config = Config::default();
    config.correction = true;
    config.marks = 0;
    let mut run = Run::new(&config);
    let names: Vec<String> = (0..100).map(|page| format!("p{page}")).collect();
    for _ in 0..12 {
        for (page, name) in names.iter().enumerate() {
            let next = &*names[(page + 1) % 100];
            run.record(&record(name, [next, &*names[page * page % 90]]));
        }
    }
    run.record(&record(&names[95], [&*names[3]]));
    let state = run.engine.state().correction.unwrap();
    let least = state.stale as f64 / state.sum as f64 / (1.0 - config.damping());
    let window = run.engine.ranking().unwrap().window;
    let bound = window.bound_l1().unwrap();
    assert!(window.correction && least > 0.01, "{least}");
    assert!(least <= bound && bound < 1.3 * least, "{least}, {bound}");
}

/// A page that had no links, when it is fetched again with some, takes nothing with it: no links are
/// stale, and the certificate stays.
#[test]
fn first_links_are_no_change() {
    let mut config = Config::default();
    config.correction = true;
    let mut run = Run::new(&config);
    let visit = |run: &mut Run, late: bool| {
        run.record(&record("a", ["b", "c"]));
        run.record(&record("b", ["a"]));
        match late {
            true => run.record(&record("c", ["a"])),
            false => run.record(&record("c", [])),
        }
    };
    for _ in 0..400 {
        visit(&mut run, false);
    }
    assert_eq!(run.engine.state().correction.unwrap().stale, 0);
    for _ in 0..1_000 {
        visit(&mut run, true);
    }
    let state = run.engine.state().correction.unwrap();
    assert_eq!(state.stale, 0);
    // a = b + c but for teleports: z = (1 - d)/3, a = z + d (b + c), b = c = z + d a/2.
    let d = config.damping();
    let z = (1.0 - d) / 3.0;
    let a = (z + 2.0 * d * z) / (1.0 - d * d);
    let exact = [a, z + d * a / 2.0, z + d * a / 2.0];
    let ranking = run.engine.ranking().unwrap();
    let y: Vec<f64> = ranking.pages.iter().map(|page| page.importance).collect();
    let off = l1(&y, &exact);
    assert!(
        ranking.window.correction && off < 1e-12,
        "{:?}: {off}",
        ranking.window
    );
    // Other links of b are a change of all that b handed on: too much to go on with.
    assert!(2.0 * d * exact[1] > 1.0 - d);
    run.record(&record("b", ["c"]));
    let state = run.engine.state().correction.unwrap();
    assert_eq!((state.phase, state.stale), (Phase::Gathering, 0));
}
