//! Lists of targets: how one is written as a copy of another and what is new in it.
//!
//! Pages of a site share their navigation, and a page fetched again has mostly the links it had. So a
//! list may name an earlier list of its block, and the runs of it that are copied and left out in
//! turn. What remains is known targets, as ascending gaps, and names that are new with the record,
//! which are a count only: they follow the names before.
//!
//! A page that links to itself stands last in its own list, so that pages of one site, each with
//! itself among the navigation, have lists that differ in order only where they must.

use std::collections::HashMap;
use std::ops::Range;

/// Lists just before that are tried as what to copy from.
const WINDOW: usize = 4;
/// Bits that a copy costs, roughly, and a run of it, and a number beside its own: for choosing only.
const COPY_COST: usize = 5;
const RUN_COST: usize = 4;
const NUMBER_COST: usize = 2;

/// Bits that a number costs, roughly.
fn number_cost(number: u32) -> usize {
    match number.checked_ilog2() {
        None => 1,
        Some(high) => NUMBER_COST + high as usize + 1,
    }
}

/// Bits that ascending targets cost, roughly: the first one, and the gaps.
fn cost(targets: &[u32]) -> usize {
    let mut next = 0;
    let costs = targets.iter().map(|&target| {
        let cost = number_cost(target - next);
        next = target + 1;
        cost
    });
    costs.sum()
}

/// The part that a list copies from an earlier one.
#[derive(Default)]
pub(super) struct Copy {
    /// Number of the earlier list; the own number: none.
    pub list: usize,
    /// Lengths of runs that are copied and left out, in turn, the first copied. After the last one
    /// the rest is copied if the last was left out, and left out if it was copied. Empty: all is
    /// copied.
    pub runs: Vec<u32>,
    /// The known targets that are not copied.
    pub rest: Vec<u32>,
}

/// The lists of a block while it is written, and what finds a good one to copy from.
#[derive(Default)]
pub(super) struct Lists {
    targets: Vec<u32>,
    /// The class of each, by number.
    classes: Vec<u16>,
    foreseen: Foreseen,
    ends: Vec<u32>,
    /// Of a page: its last list.
    by_page: HashMap<u32, u32>,
    /// Of a whole list, by hash, and of two samples of it: the last list like it.
    by_content: [HashMap<u32, u32>; 3],
    set: Set,
    best: Copy,
    trial: Copy,
}

fn mix(value: u32, seed: u64) -> u64 {
    let mut z = (u64::from(value) ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    z ^ (z >> 29)
}

/// The signature of a list: a hash of all of it, and the least hashes of its targets.
fn marks<'t>(targets: impl Iterator<Item = &'t u32>) -> [u32; 3] {
    let mut sum = 0u64;
    let mut least = [u64::MAX; 2];
    for &target in targets {
        let hash = mix(target, 0);
        sum = sum.wrapping_add(hash);
        least[0] = least[0].min(hash);
        least[1] = least[1].min(hash.rotate_left(31).wrapping_mul(0x9fb2_1c65_1e98_df25));
    }
    [
        (sum >> 16) as u32,
        (least[0] >> 16) as u32,
        (least[1] >> 16) as u32,
    ]
}

impl Lists {
    pub fn clear(&mut self) {
        self.targets.clear();
        self.classes.clear();
        self.foreseen.clear();
        self.ends.clear();
        self.by_page.clear();
        self.by_content.iter_mut().for_each(HashMap::clear);
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// All targets of all lists.
    pub fn targets(&self) -> u64 {
        self.targets.len() as u64
    }

    fn range(&self, list: usize) -> Range<usize> {
        let start = list.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[list] as usize
    }

    /// Takes the next list: `known` targets of `page`, and `new` ones, without itself; `own`: it links to itself. Says
    /// what it copies.
    pub fn add(&mut self, page: u32, known: &[u32], new: Range<u32>, own: bool) -> &Copy {
        let itself = own.then_some(page);
        self.set.fill(known, itself);
        let number = self.len();
        self.choose(page, number, known, marks(known.iter().chain(&itself)));
        let (from, runs) = (self.best.list, &self.best.runs);
        if from < number {
            let whole = self.range(from);
            copy(&mut self.targets, whole.clone(), runs);
            copy(&mut self.classes, whole, runs);
        }
        self.targets.extend_from_slice(&self.best.rest);
        self.targets.extend(new);
        self.classes.resize(self.targets.len(), UNKNOWN);
        let start = self.ends.last().map_or(0, |&end| end as usize);
        if own {
            self_last(&mut self.targets, Some(&mut self.classes), start, page);
        }
        self.ends.push(self.targets.len() as u32);
        if self.targets.len() > start {
            let marks = marks(self.targets[start..].iter());
            let number = number as u32;
            self.by_page.insert(page, number);
            for (by, mark) in self.by_content.iter_mut().zip(marks) {
                by.insert(mark, number);
            }
        }
        &self.best
    }

    /// Gives the classes of the list added last, as `class` has them of its targets, and hands each to `put`
    /// as it is encoded.
    pub fn encode_classes(&mut self, class: impl Fn(u32) -> u16, mut put: impl FnMut(u64)) {
        let last = self.len() - 1;
        let range = self.range(last);
        let targets = &self.targets[range.clone()];
        let encode = |target, foreseen| {
            let class = class(target);
            put(u64::from(class ^ foreseen));
            class
        };
        self.foreseen
            .each(targets, &mut self.classes[range], encode);
    }

    /// Leaves the best copy in `best`.
    fn choose(&mut self, page: u32, number: usize, known: &[u32], marks: [u32; 3]) {
        self.best.list = number;
        self.best.runs.clear();
        self.best.rest.clear();
        self.best.rest.extend_from_slice(known);
        let mut least = cost(known);
        let like = self.by_content.iter().zip(marks);
        let like = like.filter_map(|(by, mark)| by.get(&mark));
        let candidates = like.chain(self.by_page.get(&page)).map(|&at| at as usize);
        let recent = (number.saturating_sub(WINDOW)..number).rev();
        let candidates: Vec<usize> = candidates.chain(recent).collect();
        for (at, &from) in candidates.iter().enumerate() {
            let len = self.range(from).len();
            if candidates[..at].contains(&from) || len > 8 * known.len() + 32 || least <= COPY_COST
            {
                continue;
            }
            let mut trial = std::mem::take(&mut self.trial);
            let cost = self.try_copy(from, known, &mut trial);
            if cost < least {
                least = cost;
                std::mem::swap(&mut self.best, &mut trial);
            }
            self.trial = trial;
        }
    }

    /// The cost of copying from a list.
    fn try_copy(&mut self, from: usize, known: &[u32], into: &mut Copy) -> usize {
        into.list = from;
        into.runs.clear();
        into.rest.clear();
        self.set.begin();
        let (mut copying, mut run) = (true, 0);
        for &target in &self.targets[self.range(from)] {
            if self.set.take(target) != copying {
                into.runs.push(run);
                copying = !copying;
                run = 0;
            }
            run += 1;
        }
        let rest = known.iter().filter(|&&target| !self.set.is_taken(target));
        into.rest.extend(rest);
        let copy = COPY_COST + number_cost((self.len() - from) as u32);
        copy + into.runs.len() * RUN_COST + cost(&into.rest)
    }
}

/// The class of a target that is not copied, before it is encoded.
pub(super) const UNKNOWN: u16 = u16::MAX;
/// The bit of a class that says that the target is on the page's host.
const ON_HOST: u16 = 1;
/// The class of a page to itself, if nothing else is known.
const OWN: u16 = ON_HOST;

/// What classes are encoded by the difference to. For a target that is copied: the class it is copied with. For
/// others: the one that it had in the last list of the block where it was not copied, or else that of the
/// target before it, taken to be on the page's host.
#[derive(Default)]
pub(super) struct Foreseen(HashMap<u32, u16>);

impl Foreseen {
    /// Before a block.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Gives each target of a list the class that `class` says, given what is foreseen.
    pub fn each(
        &mut self,
        targets: &[u32],
        classes: &mut [u16],
        mut class: impl FnMut(u32, u16) -> u16,
    ) {
        let mut before = 0;
        for (&target, known) in targets.iter().zip(classes) {
            if *known == UNKNOWN {
                let last = self.0.entry(target).or_insert(before | ON_HOST);
                *last = class(target, *last);
                *known = *last;
            } else {
                *known = class(target, *known);
            }
            before = *known;
        }
    }
}

/// Appends what a copy of `targets[whole]` keeps.
fn copy<T: Clone>(targets: &mut Vec<T>, whole: Range<usize>, runs: &[u32]) {
    let mut at = whole.start;
    let mut copying = true;
    for &run in runs {
        let end = at + run as usize;
        if copying {
            targets.extend_from_within(at..end);
        }
        at = end;
        copying = !copying;
    }
    if copying {
        targets.extend_from_within(at..whole.end);
    }
}

/// Moves `page` to the end of the list that begins at `start`, or appends it; and its class, if there are
/// classes.
pub(super) fn self_last(
    targets: &mut Vec<u32>,
    classes: Option<&mut Vec<u16>>,
    start: usize,
    page: u32,
) {
    let known = targets[start..].iter().position(|&target| target == page);
    match known {
        Some(at) => targets[start + at..].rotate_left(1),
        None => targets.push(page),
    }
    match (known, classes) {
        (Some(at), Some(classes)) => classes[start + at..].rotate_left(1),
        (None, Some(classes)) => classes.push(OWN),
        (_, None) => {}
    }
}

/// The targets of one list: which are in it, and which were seen in this round.
#[derive(Default)]
struct Set {
    /// A power of two long; target + 1, 0 is free.
    slots: Vec<u64>,
    seen: Vec<u32>,
    round: u32,
}

impl Set {
    fn fill(&mut self, targets: &[u32], more: Option<u32>) {
        let len = ((targets.len() + 1) * 2).next_power_of_two();
        self.slots.clear();
        self.slots.resize(len, 0);
        self.seen.clear();
        self.seen.resize(len, 0);
        self.round = 0;
        for &target in targets.iter().chain(&more) {
            let at = self.find(target);
            self.slots[at] = u64::from(target) + 1;
        }
    }

    fn find(&self, target: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = mix(target, 1) as usize & mask;
        while self.slots[at] != 0 && self.slots[at] != u64::from(target) + 1 {
            at = (at + 1) & mask;
        }
        at
    }

    fn begin(&mut self) {
        self.round += 1;
    }

    /// Notes a target as seen; whether it is in the list.
    fn take(&mut self, target: u32) -> bool {
        let at = self.find(target);
        let has = self.slots[at] != 0;
        if has {
            self.seen[at] = self.round;
        }
        has
    }

    fn is_taken(&self, target: u32) -> bool {
        self.seen[self.find(target)] == self.round
    }
}
