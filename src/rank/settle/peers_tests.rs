//! Settling by several processes against one, on random graphs and random splits; the processes are threads here.

#[path = "../../../tests/common/ends.rs"]
mod ends;

use ends::processes;

use super::blocks_tests::{Split, a_change, a_split_graph};
use super::tests::{DAMPINGS, Held, numbers};
use super::*;
use crate::engine::{SettledPagesMut, SettledTotals};
use crate::rows::{RowVisitor, Stop};

/// What each of `count` processes says that it settled, and what came of it; `over`: the number of the process that wants to
/// stop after as many sweeps; `own`: how many pages each block has, as process 0 thinks.
fn gathered_by(
    split: &Split,
    options: &Options,
    count: usize,
    over: Option<(usize, u64)>,
    own: &[usize],
) -> Vec<(Settled, Result<Gathered>)> {
    std::thread::scope(|scope| {
        let each = processes(count).into_iter().map(|peers| {
            scope.spawn(move || {
                let mut parts = split.parts();
                let mut number = 0..;
                parts.retain(|_| peers.has(number.next().unwrap()));
                let sweeps = over.filter(|(process, _)| *process == peers.process());
                let mut watch = Sweeps {
                    left: sweeps.map(|(_, sweeps)| sweeps),
                };
                let workers = Workers {
                    peers,
                    ..Workers::threads(1)
                };
                let settled = settle_parts(&parts, options, &workers, &mut watch);
                let settled = settled.unwrap().unwrap();
                let gathered = settled.gather(own);
                (settled, gathered)
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

fn settled_by(
    split: &Split,
    options: &Options,
    count: usize,
    over: Option<(usize, u64)>,
) -> Vec<(Settled, Gathered)> {
    let each = gathered_by(split, options, count, over, &split.own());
    let each = each.into_iter();
    each.map(|(settled, gathered)| (settled, gathered.unwrap()))
        .collect()
}

/// Of each of `count` processes, whose blocks take turns as `turns` says.
pub(super) fn settled_by_each(
    split: &Split,
    options: &Options,
    count: usize,
    turns: impl Fn(&Peers) -> Option<Turns> + Sync,
) -> Vec<(Settled, Gathered)> {
    let own = split.own();
    std::thread::scope(|scope| {
        let each = processes(count).into_iter().map(|peers| {
            let (turns, own) = (&turns, &own);
            scope.spawn(move || {
                let mut parts = split.parts();
                let mut number = 0..;
                parts.retain(|_| peers.has(number.next().unwrap()));
                let workers = Workers {
                    turns: turns(&peers),
                    peers,
                    ..Workers::threads(1)
                };
                let settled = settle_parts(&parts, options, &workers, &mut ());
                let settled = settled.unwrap().unwrap();
                let gathered = settled.gather(own).unwrap();
                (settled, gathered)
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

/// Ends after so many sweeps.
struct Sweeps {
    left: Option<u64>,
}

impl Watch for Sweeps {
    fn swept(&mut self, _: &Progress) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }

    fn is_over(&mut self) -> bool {
        self.left == Some(0)
    }
}

impl Split {
    /// How many pages each block has of its own.
    fn own(&self) -> Vec<usize> {
        let mut own = vec![0; self.blocks()];
        self.owned().for_each(|(block, _)| own[block] += 1);
        own
    }
}

/// Of process 0.
fn bits(split: &Split, (settled, gathered): &(Settled, Gathered)) -> Vec<(u64, u64)> {
    split.bits(settled, gathered)
}

#[test]
fn a_block_with_other_pages_is_refused() {
    let mut pick = numbers(5);
    // One round of blocks: nobody waits for process 0 once it refused one.
    let (_, split) = a_split_graph(&mut pick, 2);
    let options = Options::until(1 << 31, 0.1);
    for change in [-1, 1] {
        let mut own = split.own();
        own[1] = own[1].wrapping_add_signed(change);
        let (_, gathered) = gathered_by(&split, &options, 2, None, &own).swap_remove(0);
        let error = gathered.err().unwrap().to_string();
        assert!(error.contains("process 1 sent"), "{error}");
    }
}

#[test]
fn processes_make_no_difference() {
    for seed in 0..150 {
        let mut pick = numbers(seed);
        let blocks = 1 + pick(9) as u32;
        let (_, split) = a_split_graph(&mut pick, blocks);
        let damping = DAMPINGS[pick(5) as usize];
        let until = 10f64.powi(-(pick(11) as i32));
        let options = Options::until((damping * 2f64.powi(32)) as u64, until);
        let over = (seed % 3 == 0).then(|| 1 + pick(3));
        let one = settled_by(&split, &options, 1, over.map(|sweeps| (0, sweeps)));
        for count in 2..=4.min(blocks as usize) {
            let stops = over.map(|sweeps| (pick(count as u64) as usize, sweeps));
            let several = settled_by(&split, &options, count, stops);
            let what = format!("seed {seed}, {blocks} blocks, {count} processes");
            for (settled, _) in &several {
                assert_eq!(settled.progress, one[0].0.progress, "{what}");
                assert_eq!(settled.certificate, one[0].0.certificate, "{what}");
                assert_eq!(settled.reached, one[0].0.reached, "{what}");
            }
            assert_eq!(bits(&split, &several[0]), bits(&split, &one[0]), "{what}");
        }
    }
}

/// A base that cannot be read.
struct Unreadable<'b>(&'b dyn Base);

impl Base for Unreadable<'_> {
    fn totals(&self) -> &SettledTotals {
        self.0.totals()
    }

    fn pages(&self) -> u64 {
        self.0.pages()
    }

    fn own_effort(&self) -> Option<Effort> {
        self.0.own_effort()
    }

    fn changed(&self) -> Changed {
        self.0.changed()
    }

    fn load(&self, _: SettledPagesMut<'_>) -> Result<()> {
        Err(Error::internal("it cannot be read"))
    }

    fn old_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.0.old_rows(visit)
    }

    fn new_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.0.new_rows(visit)
    }
}

/// What each of `count` processes settles from the bases of its blocks, of which one cannot be read if it is `broken`.
fn from_bases(
    split: &Split,
    options: &Options,
    count: usize,
    held: &[Held<'_>],
    broken: Option<usize>,
) -> Vec<((Settled, Gathered), BaseUse)> {
    std::thread::scope(|scope| {
        let each = processes(count).into_iter().map(|peers| {
            scope.spawn(move || {
                let parts: Vec<Part<'_>> = peers.own(&split.parts()).cloned().collect();
                let whole: Vec<&dyn Base> = held.iter().map(|held| held as &dyn Base).collect();
                let bad: Vec<Unreadable<'_>> = whole.iter().map(|base| Unreadable(*base)).collect();
                let bases = whole.iter().zip(&bad).enumerate();
                let bases = bases.map(|(at, (base, bad))| match broken {
                    Some(broken) if broken == at => bad as &dyn Base,
                    _ => *base,
                });
                let bases: Vec<&dyn Base> = bases.collect();
                let bases: Vec<&dyn Base> = peers.own(&bases).copied().collect();
                let workers = Workers {
                    peers,
                    ..Workers::threads(1)
                };
                let settled = settle_from(&parts, options, Some(&bases), &workers, &mut ());
                let (settled, came) = settled.unwrap();
                let settled = settled.unwrap();
                let gathered = settled.gather(&split.own()).unwrap();
                ((settled, gathered), came)
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

/// Bases of earlier rows, one for each block, are a start for any number of processes. Where one cannot be read, all begin with
/// nothing.
#[test]
fn processes_make_no_difference_to_bases() {
    let mut used = 0;
    for seed in 0..150 {
        let changed = a_change(seed);
        let (split, options) = (&changed.after, &changed.options);
        let first = settled_by(&changed.before, options, 1, None).remove(0).0;
        let Some(held) = changed.held(&first) else {
            continue;
        };
        let nothing = settled_by(split, options, 1, None).remove(0);
        let (one, came) = from_bases(split, options, 1, &held, None).remove(0);
        let is_used = matches!(came, BaseUse::Used);
        used += u32::from(is_used);
        for count in 2..=4.min(split.blocks()) {
            let what = format!("seed {seed}, {count} processes");
            let several = from_bases(split, options, count, &held, None);
            for ((settled, _), came) in &several {
                assert_eq!(matches!(came, BaseUse::Used), is_used, "{what}: {came:?}");
                assert_eq!(settled.progress, one.0.progress, "{what}");
                assert_eq!(settled.certificate, one.0.certificate, "{what}");
            }
            assert_eq!(bits(split, &several[0].0), bits(split, &one), "{what}");
            if !is_used {
                continue;
            }
            let broken = Some(seed as usize % split.blocks());
            let several = from_bases(split, options, count, &held, broken);
            for ((settled, _), came) in &several {
                assert!(matches!(came, BaseUse::Unusable(_)), "{what}: {came:?}");
                assert_eq!(settled.progress, nothing.0.progress, "{what}");
            }
            assert_eq!(bits(split, &several[0].0), bits(split, &nothing), "{what}");
        }
    }
    assert!(used > 70, "{used}");
}
