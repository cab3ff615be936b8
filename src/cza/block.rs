//! A block: some records of a crawl with the names that are new in them, packed and unpacked.
//!
//! On both sides stands a [`Batch`]. Its names are numbered through the whole archive, in order of
//! first appearance, so what a record adds is a count. A block has two parts that are unpacked each by
//! itself: a reader that knows the pages of the names (in a second pass) never looks at the first.

use super::column::{Column, Streams};
use super::lists::{Foreseen, Lists, UNTOLD, self_last};
use super::names::{self, Names};
use super::section::BlockHead;
use super::{Fault, KINDS};
use crate::batch::{Batch, Entry, Fingerprints, LinkCounts, What};
use crate::decode::Reason;
use crate::engine::SelfLinks;
use crate::rules::LinkClass;
use crate::store::{unzigzag, zigzag};

/// How the first known target of a list is told, by the number in the block's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// By itself.
    Zero = 0,
    /// By its distance from the page.
    Page = 1,
    /// By its distance from the newest name, targets descending.
    Newest = 2,
}

impl From {
    pub const ALL: [From; 3] = [From::Zero, From::Page, From::Newest];
}

/// A kind of record as it is stored: its place in the table of kinds.
fn kind(what: What) -> u64 {
    match what {
        What::Visit => 0,
        What::Gone => 1,
        What::Unchanged => 2,
        What::Failed => 3,
        What::Other | What::OutOfScope => 4,
        What::Skipped(reason) => 5 + reason as u64,
    }
}

fn what(kind: u64) -> Result<What, Fault> {
    Ok(match kind {
        0 => What::Visit,
        1 => What::Gone,
        2 => What::Unchanged,
        3 => What::Failed,
        4 => What::Other,
        5..KINDS => What::Skipped(Reason::ALL[kind as usize - 5]),
        _ => return Err(Fault::new("a record of an unknown kind")),
    })
}

/// The columns of the records part, in the order in which they are stored.
#[derive(Default)]
pub(super) struct Columns {
    kinds: Column,
    sources: Column,
    times: Column,
    lists: Column,
    run_counts: Column,
    runs: Column,
    rest_counts: Column,
    rests: Column,
    new: Column,
    counts: [Column; 5],
    /// In blocks with classes only.
    classes: Column,
}

impl Columns {
    /// All but the classes.
    fn all(&mut self) -> [&mut Column; 14] {
        let [own, repeated, scheme, invalid, too_long] = &mut self.counts;
        [
            &mut self.kinds,
            &mut self.sources,
            &mut self.times,
            &mut self.lists,
            &mut self.run_counts,
            &mut self.runs,
            &mut self.rest_counts,
            &mut self.rests,
            &mut self.new,
            own,
            repeated,
            scheme,
            invalid,
            too_long,
        ]
    }
}

/// The counts that are stored, in the columns' order.
fn counts_of(counts: &LinkCounts) -> [u32; 5] {
    [
        counts.own,
        counts.repeated,
        counts.scheme,
        counts.invalid,
        counts.too_long,
    ]
}

/// Level from which on PPMd packs the text of names. Below it, archives are read faster in the first pass.
pub(super) const PPMD_LEVEL: i32 = 10;

/// Packs blocks. Keeps its memory from one to the next.
pub(super) struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    /// Whether PPMd packs the text of names.
    ppmd: bool,
    columns: Columns,
    rests: [Column; 2],
    lists: Lists,
    /// The counts of each list's record.
    counts: Vec<[u32; 5]>,
    known: Vec<u32>,
    /// The targets of a list and their classes, by target.
    classes: Vec<(u32, LinkClass)>,
}

/// The two parts of a packed block, and what its head says of them.
pub(super) struct Packed {
    pub names: Vec<u8>,
    pub records: Vec<u8>,
    pub head: BlockHead,
}

impl Packer {
    pub fn new(level: i32) -> Result<Packer, Fault> {
        Ok(Packer {
            zstd: zstd::bulk::Compressor::new(level).map_err(Fault::other)?,
            ppmd: level >= PPMD_LEVEL,
            columns: Columns::default(),
            rests: Default::default(),
            lists: Lists::default(),
            counts: Vec::new(),
            known: Vec::new(),
            classes: Vec::new(),
        })
    }

    /// Packs `batch`, whose names and links are numbered from the archive's first name on, as
    /// [`SelfLinks::Drop`] makes them. `head` says what comes before; the rest of it is filled in.
    pub fn pack(&mut self, batch: &Batch, mut head: BlockHead) -> Result<Packed, Fault> {
        let names = names::pack(batch, &mut self.zstd, self.ppmd)?;
        let (records, from, targets, links) = self.records(batch, head.first_name)?;
        head.from = from;
        head.classes = has_classes(batch);
        head.words = true;
        head.ppmd = self.ppmd;
        head.names = batch.text_ends.len() as u32;
        head.text = batch.text.len() as u64;
        head.records = batch.entries.len() as u32;
        head.targets = targets;
        head.links = links;
        Ok(Packed {
            names,
            records,
            head,
        })
    }

    /// The records part; which `From` it uses, its targets and its links as read.
    fn records(
        &mut self,
        batch: &Batch,
        first_name: u32,
    ) -> Result<(Vec<u8>, From, u64, u64), Fault> {
        self.columns.all().into_iter().for_each(Column::clear);
        self.columns.classes.clear();
        self.rests.iter_mut().for_each(Column::clear);
        self.lists.clear();
        self.counts.clear();
        let classes = has_classes(batch);
        let mut names = first_name;
        let (mut source, mut time) = (0i64, 0i64);
        let mut links = 0;
        for entry in &batch.entries {
            self.columns.kinds.put(kind(entry.what));
            if !entry.what.is_of_page() {
                continue;
            }
            let is_new = entry.source == names;
            let page = i64::from(entry.source);
            let told = if is_new { 0 } else { 1 + zigzag(page - source) };
            self.columns.sources.put(told);
            source = page;
            let told = entry.fetched_at.map(|at| zigzag(at.wrapping_sub(time)));
            let told = told.map_or(Some(0), |told| told.checked_add(1));
            let far = || Fault::new("two times are 2^63 seconds apart");
            self.columns.times.put(told.ok_or_else(far)?);
            time = entry.fetched_at.unwrap_or(time);
            if entry.what == What::Visit {
                self.list(batch, entry, names + u32::from(is_new));
                if classes {
                    self.classes(batch, entry);
                }
            }
            names = entry.names_end;
            links += u64::from(entry.counts.read);
        }
        let from = self.best_from();
        let mut part = Vec::new();
        for column in self.columns.all() {
            column.put_into(&mut part, &mut self.zstd)?;
        }
        if classes {
            self.columns.classes.put_into(&mut part, &mut self.zstd)?;
        }
        Ok((part, from, self.lists.targets(), links))
    }

    /// One visit's list and counts. `names`: known before its links.
    fn list(&mut self, batch: &Batch, entry: &Entry, names: u32) {
        let targets = batch.targets(entry);
        self.known.clear();
        let known = targets.iter().filter(|&&target| target < names);
        self.known.extend(known);
        self.known.sort_unstable();
        // Names that the index took for one would come twice.
        self.known.dedup();
        let new = names..entry.names_end;
        let doubled = targets.len() - self.known.len() - new.len();
        let number = self.lists.len();
        let own = entry.counts.own > 0;
        let copied = self.lists.add(entry.source, &self.known, new.clone(), own);
        let columns = &mut self.columns;
        columns.lists.put((number - copied.list) as u64);
        let mut before = [0; 5];
        if copied.list < number {
            before = self.counts[copied.list];
            columns.run_counts.put(copied.runs.len() as u64);
            let runs = copied.runs.iter();
            runs.for_each(|&run| columns.runs.put(u64::from(run)));
        }
        columns.rest_counts.put(copied.rest.len() as u64);
        let [by_page, by_newest] = &mut self.rests;
        put_rest(
            &mut columns.rests,
            From::Zero,
            &copied.rest,
            entry.source,
            names,
        );
        put_rest(by_page, From::Page, &copied.rest, entry.source, names);
        put_rest(by_newest, From::Newest, &copied.rest, entry.source, names);
        columns.new.put(new.len() as u64);
        let mut counts = counts_of(&entry.counts);
        counts[1] += doubled as u32;
        for (at, (&now, before)) in counts.iter().zip(before).enumerate() {
            columns.counts[at].put(zigzag(i64::from(now) - i64::from(before)));
        }
        self.counts.push(counts);
    }

    /// The classes of the list put last.
    fn classes(&mut self, batch: &Batch, entry: &Entry) {
        let all = &mut self.classes;
        all.clear();
        let targets = batch.targets(entry).iter().copied();
        all.extend(targets.zip(batch.classes(entry).iter().copied()));
        if entry.counts.own > 0 {
            all.push((entry.source, entry.counts.own_class));
        }
        all.sort_unstable_by_key(|&(target, _)| target);
        // Names that the index took for one come twice.
        all.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.1 = first.1.and(next.1);
            }
            same
        });
        let class = |target| match all.binary_search_by_key(&target, |&(known, _)| known) {
            Ok(at) => all[at].1.number(),
            Err(_) => 0,
        };
        let column = &mut self.columns.classes;
        self.lists.tell_classes(class, |told| column.put(told));
    }

    /// Leaves the cheapest way to tell the rests in their column.
    fn best_from(&mut self) -> From {
        let costs = [
            self.columns.rests.cost(),
            self.rests[0].cost(),
            self.rests[1].cost(),
        ];
        let best = (0..3).min_by_key(|&at| costs[at]).unwrap_or(0);
        if best > 0 {
            std::mem::swap(&mut self.columns.rests, &mut self.rests[best - 1]);
        }
        From::ALL[best]
    }
}

/// Whether any link is of another class than most.
fn has_classes(batch: &Batch) -> bool {
    let is_other = |class: &LinkClass| *class != LinkClass::default();
    let mut own = batch.entries.iter().map(|entry| entry.counts.own_class);
    batch.classes.iter().any(is_other) || own.any(|class| is_other(&class))
}

/// Tells ascending targets by gaps.
fn put_rest(column: &mut Column, from: From, rest: &[u32], page: u32, names: u32) {
    let first = |first: u32| match from {
        From::Page => zigzag(i64::from(first) - i64::from(page)),
        From::Zero | From::Newest => u64::from(first),
    };
    let mut last = None;
    let mut put = |target: u32| {
        column.put(match last {
            None => first(target),
            Some(last) => u64::from(target - last - 1),
        });
        last = Some(target);
    };
    match from {
        From::Newest => rest
            .iter()
            .rev()
            .for_each(|&target| put(names - 1 - target)),
        _ => rest.iter().for_each(|&target| put(target)),
    }
}

/// How links are to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    pub self_links: SelfLinks,
    /// Whether their classes are asked for.
    pub classes: bool,
}

/// Unpacks blocks. Keeps its memory from one to the next.
pub(super) struct Unpacker {
    zstd: zstd::bulk::Decompressor<'static>,
    columns: Columns,
    names: Names,
    counts: Vec<[u32; 5]>,
    /// The class of each of the batch's links so far, if they are taken.
    classes: Vec<u16>,
    takes_classes: bool,
    foreseen: Foreseen,
    /// Where each list ends in the batch's links; a first 0.
    ends: Vec<u32>,
}

impl Unpacker {
    pub fn new() -> Result<Unpacker, Fault> {
        Ok(Unpacker {
            zstd: zstd::bulk::Decompressor::new().map_err(Fault::other)?,
            columns: Columns::default(),
            names: Names::default(),
            counts: Vec::new(),
            classes: Vec::new(),
            takes_classes: false,
            foreseen: Foreseen::default(),
            ends: Vec::new(),
        })
    }

    /// Reads the names part into `batch`, which has none yet.
    pub fn names(
        &mut self,
        part: &[u8],
        head: &BlockHead,
        url_bytes: u64,
        fingerprints: &Fingerprints,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        let (names, zstd) = (&mut self.names, &mut self.zstd);
        names.unpack(part, zstd, head, url_bytes, fingerprints, batch)
    }

    /// Reads the records part into `batch`. `end`: what the entries say as theirs.
    pub fn records(
        &mut self,
        part: &[u8],
        head: &BlockHead,
        policy: Policy,
        end: u64,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        let mut streams = Streams::new(part, &mut self.zstd, head.columns());
        for column in self.columns.all() {
            streams.column(column)?;
        }
        self.classes.clear();
        self.foreseen.clear();
        self.takes_classes = head.classes && policy.classes;
        match head.classes {
            true if policy.classes => streams.column(&mut self.columns.classes)?,
            true => streams.skip_column()?,
            false => {}
        }
        streams.end()?;
        if self.columns.kinds.len() != head.records as usize {
            return Err(Fault::new("its number of records is wrong"));
        }
        self.counts.clear();
        self.ends.clear();
        self.ends.push(0);
        batch.links.reserve(head.targets as usize);
        batch.entries.reserve(head.records as usize);
        let mut state = State {
            names: head.first_name,
            names_max: head.names_end()?,
            source: 0,
            time: 0,
            links: 0,
        };
        for _ in 0..head.records {
            let entry = self.record(head, policy.self_links, &mut state, &mut batch.links)?;
            batch.entries.push(Entry { end, ..entry });
        }
        for column in self.columns.all() {
            column.end()?;
        }
        if self.takes_classes {
            self.columns.classes.end()?;
        }
        if policy.classes {
            self.classes.resize(batch.links.len(), 0);
            let classes = self.classes.iter().map(|&number| class(number));
            batch.classes = classes.collect::<Result<_, _>>()?;
        }
        let whole = (state.names, batch.links.len() as u64, state.links);
        if whole != (state.names_max, head.targets, head.links) {
            return Err(Fault::new("its counts are not those of its records"));
        }
        Ok(())
    }

    #[inline]
    fn record(
        &mut self,
        head: &BlockHead,
        self_links: SelfLinks,
        state: &mut State,
        links: &mut Vec<u32>,
    ) -> Result<Entry, Fault> {
        let columns = &mut self.columns;
        let what = what(columns.kinds.take())?;
        let links_start = links.len() as u32;
        let mut entry = Entry {
            end: 0,
            what,
            source: 0,
            names_end: state.names,
            links_start,
            links_end: links_start,
            fetched_at: None,
            counts: LinkCounts::default(),
        };
        if !what.is_of_page() {
            return Ok(entry);
        }
        entry.source = match columns.sources.take() {
            0 => state.new_names(1)?,
            told => {
                let page = i64::from(state.source).wrapping_add(unzigzag(told - 1));
                let known = u32::try_from(page).ok().filter(|&page| page < state.names);
                known.ok_or_else(|| Fault::new("a record of a page that is not known"))?
            }
        };
        state.source = entry.source;
        entry.fetched_at = match columns.times.take() {
            0 => None,
            told => {
                state.time = state.time.wrapping_add(unzigzag(told - 1));
                Some(state.time)
            }
        };
        if what == What::Visit {
            let page = entry.source;
            let own = self.list(head, page, state, links, &mut entry.counts)?;
            entry.links_end = links.len() as u32 - own;
            state.links += u64::from(entry.counts.read);
            if own == 1 && self_links == SelfLinks::Keep {
                // The same links, counted as that policy does.
                entry.links_end += 1;
                entry.counts.repeated += entry.counts.own - 1;
                entry.counts.own = 0;
            }
        }
        entry.names_end = state.names;
        Ok(entry)
    }

    /// Appends a visit's targets to `links`; 1 if the page itself is among them, as the last.
    #[inline]
    fn list(
        &mut self,
        head: &BlockHead,
        page: u32,
        state: &mut State,
        links: &mut Vec<u32>,
        into: &mut LinkCounts,
    ) -> Result<u32, Fault> {
        let (columns, classes) = (&mut self.columns, &mut self.classes);
        let takes_classes = self.takes_classes;
        let start = links.len();
        let room = head.targets;
        let number = self.counts.len();
        let back = columns.lists.take();
        let mut before = [0; 5];
        if back > 0 {
            let back = usize::try_from(back).ok();
            let from = back.and_then(|back| number.checked_sub(back));
            let from = from.ok_or_else(|| Fault::new("a copy of a list that is not there"))?;
            before = self.counts[from];
            let whole = self.ends[from] as usize..self.ends[from + 1] as usize;
            // Not longer than the list, and so not than all of the block.
            let mut copy = |range: std::ops::Range<usize>| {
                if takes_classes {
                    classes.extend_from_within(range.clone());
                }
                links.extend_from_within(range);
            };
            match columns.run_counts.take() {
                0 => copy(whole),
                runs => {
                    let runs = usize::try_from(runs).unwrap_or(usize::MAX);
                    copy_runs(whole, runs, &mut columns.runs, copy)?;
                }
            }
        }
        let rest = columns.rest_counts.take();
        let new = columns.new.take();
        let full = || Fault::new("it has more links than it says");
        let all = (links.len() as u64).checked_add(rest);
        let all = all.and_then(|all| all.checked_add(new)).ok_or_else(full)?;
        if all > room {
            return Err(full());
        }
        let rest = rest as usize;
        take_rest(
            &mut columns.rests,
            head.from,
            rest,
            page,
            state.names,
            links,
        )?;
        let first = state.new_names(new)?;
        links.extend(first..state.names);
        let mut counts = [0u32; 5];
        for (at, count) in counts.iter_mut().enumerate() {
            let told = unzigzag(columns.counts[at].take());
            let now = i64::from(before[at]).checked_add(told);
            *count = now
                .and_then(|now| u32::try_from(now).ok())
                .ok_or_else(|| Fault::new("a count of links is wrong"))?;
        }
        let [own, repeated, scheme, invalid, too_long] = counts;
        if takes_classes {
            classes.resize(links.len(), UNTOLD);
        }
        if own > 0 {
            let classes = takes_classes.then_some(&mut *classes);
            self_last(links, classes, start, page);
            if links.len() as u64 > room {
                return Err(full());
            }
        }
        if takes_classes {
            let told = |_, foreseen| {
                // A number that is no class is found where the block ends.
                foreseen ^ u16::try_from(columns.classes.take()).unwrap_or(UNTOLD)
            };
            self.foreseen
                .each(&links[start..], &mut classes[start..], told);
        }
        let others = (links.len() - start) as u32 - u32::from(own > 0);
        let read = [others, own, repeated, scheme, invalid, too_long];
        let read = read.iter().try_fold(0u32, |sum, &n| sum.checked_add(n));
        *into = LinkCounts {
            read: read.ok_or_else(|| Fault::new("a count of links is wrong"))?,
            scheme,
            invalid,
            too_long,
            own,
            repeated,
            out_of_scope: 0,
            own_class: match (own, classes.last()) {
                (1.., Some(&number)) if takes_classes => class(number)?,
                _ => LinkClass::default(),
            },
        };
        self.counts.push(counts);
        self.ends.push(links.len() as u32);
        Ok(u32::from(own > 0))
    }
}

/// What runs through the records of a block.
struct State {
    names: u32,
    names_max: u32,
    source: u32,
    time: i64,
    links: u64,
}

impl State {
    /// Takes the next `count` names; the first of them.
    fn new_names(&mut self, count: u64) -> Result<u32, Fault> {
        let first = self.names;
        if count > u64::from(self.names_max - first) {
            return Err(Fault::new("its records use more names than it has"));
        }
        self.names += count as u32;
        Ok(first)
    }
}

/// The class of this number.
fn class(number: u16) -> Result<LinkClass, Fault> {
    let class = LinkClass::from_number(u64::from(number));
    class.ok_or_else(|| Fault::new("a link of an unknown class"))
}

/// Hands out the ranges of a copy in runs.
fn copy_runs(
    whole: std::ops::Range<usize>,
    count: usize,
    runs: &mut Column,
    mut copy: impl FnMut(std::ops::Range<usize>),
) -> Result<(), Fault> {
    let mut at = whole.start;
    let mut copying = true;
    runs.each(count, |run| {
        let run = usize::try_from(run).unwrap_or(usize::MAX);
        let end = at.saturating_add(run);
        if end <= whole.end && copying {
            copy(at..end);
        }
        at = end;
        copying = !copying;
        end <= whole.end
    });
    if at > whole.end {
        return Err(Fault::new("a copy of more than the list has"));
    }
    if copying {
        copy(at..whole.end);
    }
    Ok(())
}

/// The inverse of [`put_rest`]. `names` are known. Not inlined: its loop needs the registers.
#[inline(never)]
fn take_rest(
    column: &mut Column,
    from: From,
    count: usize,
    page: u32,
    names: u32,
    links: &mut Vec<u32>,
) -> Result<(), Fault> {
    if count == 0 {
        return Ok(());
    }
    let wrong = || Fault::new("a link to a name that is not known");
    let first = column.take();
    let first = match from {
        From::Page => i64::from(page).checked_add(unzigzag(first)),
        From::Zero | From::Newest => i64::try_from(first).ok(),
    };
    let first = first.and_then(|at| u32::try_from(at).ok());
    let mut at = u64::from(first.filter(|&at| at < names).ok_or_else(wrong)?);
    let start = links.len();
    links.resize(start + count, at as u32);
    let mut rest = links[start + 1..].iter_mut();
    column.each(count - 1, |gap| {
        at = at.saturating_add(gap).saturating_add(1);
        if let Some(target) = rest.next() {
            *target = at as u32;
        }
        at < u64::from(names)
    });
    if at >= u64::from(names) {
        return Err(wrong());
    }
    // A list does not depend on how it was told.
    if from == From::Newest {
        links[start..].reverse();
        let told = links[start..].iter_mut();
        told.for_each(|target| *target = names - 1 - *target);
    }
    Ok(())
}
