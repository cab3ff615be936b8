//! Lists of targets: how one is told as a copy of another and what is new in it.
//!
//! Pages of a site share their navigation, and a page fetched again has mostly the links it had. So a
//! list may name an earlier list of its block, and the runs of it that are copied and left out in
//! turn. What remains is known targets, as ascending gaps, and names that are new with the record,
//! which are a count only: they follow the names before.
//!
//! A page that links to itself stands last in its own list, so that pages of one site, each with
//! itself among the navigation, have lists that differ in order only where they must.

use std::collections::HashMap;

/// Lists just before that are tried as what to copy from.
const WINDOW: usize = 4;
/// Bits that a known target costs, roughly, and a run of a copy: for choosing only.
const TARGET_COST: usize = 12;
const RUN_COST: usize = 7;

/// What a list copies from an earlier one.
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

/// What a list is known by: a hash of all of it, and the least hashes of its targets.
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

    fn range(&self, list: usize) -> std::ops::Range<usize> {
        let start = list.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[list] as usize
    }

    /// Takes the next list: `known` and `new` targets of `page`, without itself; `own`: it links to
    /// itself. Says what it copies.
    pub fn add(&mut self, page: u32, known: &[u32], new: std::ops::Range<u32>, own: bool) -> &Copy {
        self.set.fill(known, own.then_some(page));
        let number = self.len();
        let itself = own.then_some(page);
        self.choose(page, number, known, marks(known.iter().chain(&itself)));
        let (from, runs) = (self.best.list, &self.best.runs);
        if from < number {
            let whole = self.range(from);
            copy(&mut self.targets, whole, runs);
        }
        self.targets.extend_from_slice(&self.best.rest);
        self.targets.extend(new);
        let start = self.ends.last().map_or(0, |&end| end as usize);
        if own {
            self_last(&mut self.targets, start, page);
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

    /// Leaves the best copy in `best`.
    fn choose(&mut self, page: u32, number: usize, known: &[u32], marks: [u32; 3]) {
        self.best.list = number;
        self.best.runs.clear();
        self.best.rest.clear();
        self.best.rest.extend_from_slice(known);
        let mut least = known.len() * TARGET_COST;
        let like = self.by_content.iter().zip(marks);
        let like = like.filter_map(|(by, mark)| by.get(&mark));
        let candidates = like.chain(self.by_page.get(&page)).map(|&at| at as usize);
        let recent = (number.saturating_sub(WINDOW)..number).rev();
        let candidates: Vec<usize> = candidates.chain(recent).collect();
        for (at, &from) in candidates.iter().enumerate() {
            let len = self.range(from).len();
            if candidates[..at].contains(&from) || len > 8 * known.len() + 32 || least <= RUN_COST {
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

    /// What it would take to copy from a list.
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
        RUN_COST + into.runs.len() * RUN_COST + into.rest.len() * TARGET_COST
    }
}

/// Appends what a copy of `targets[whole]` keeps.
fn copy(targets: &mut Vec<u32>, whole: std::ops::Range<usize>, runs: &[u32]) {
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

/// Moves `page` to the end of the list that begins at `start`, or appends it.
pub(super) fn self_last(targets: &mut Vec<u32>, start: usize, page: u32) {
    match targets[start..].iter().position(|&target| target == page) {
        Some(at) => targets[start + at..].rotate_left(1),
        None => targets.push(page),
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
