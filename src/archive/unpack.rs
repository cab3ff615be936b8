//! Unpacking: the two parts of a block to a batch.

use std::ops::Range;

use super::Fault;
use super::block::{Columns, From, Shape, Targets, first_host, what};
use super::column::{Column, Streams};
use super::lists::{Foreseen, UNKNOWN, self_last};
use super::names::Names;
use super::section::BlockHead;
use crate::batch::{Batch, Entry, Fingerprints, LinkCounts, What};
use crate::codec::varint::unzigzag;
use crate::engine::SelfLinks;
use crate::model::Digest;
use crate::rules::LinkClass;

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
    counts: Vec<[u32; 6]>,
    /// The class of each of the batch's links so far, if they are taken.
    classes: Vec<u16>,
    takes_classes: bool,
    foreseen: Foreseen,
    /// Where each list ends in the batch's links; a first 0.
    ends: Vec<u32>,
    shapes: Vec<Shape>,
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
            shapes: Vec::new(),
        })
    }

    /// Reads the names part into `batch`, which has its records already, and no names yet.
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
        for column in self.columns.all(head.features.scoped) {
            streams.column(column)?;
        }
        self.classes.clear();
        self.foreseen.clear();
        self.takes_classes = head.features.classes && policy.classes;
        if self.takes_classes {
            streams.column(&mut self.columns.classes)?;
        } else if head.features.classes {
            streams.skip_column()?;
        }
        streams.end()?;
        if self.columns.kinds.len() != head.records as usize {
            return Err(Fault::new("its number of records is wrong"));
        }
        self.counts.clear();
        self.ends.clear();
        self.ends.push(0);
        self.shapes.clear();
        batch.links.reserve(head.targets as usize);
        batch.entries.reserve(head.records as usize);
        let mut state = State {
            names: head.first_name,
            names_max: head.names_end()?,
            source: 0,
            hosts: 0,
            time: 0,
            links: 0,
        };
        for _ in 0..head.records {
            let entry = self.record(head, policy.self_links, &mut state, batch)?;
            batch.entries.push(Entry { end, ..entry });
        }
        self.host(head.first_name, state.hosts)?;
        for column in self.columns.all(head.features.scoped) {
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
        batch: &mut Batch,
    ) -> Result<Entry, Fault> {
        let what = what(self.columns.kinds.take(), head.features.scoped)?;
        let links_start = batch.links.len() as u32;
        let mut entry = Entry {
            end: 0,
            what,
            source: 0,
            names_end: state.names,
            links_start,
            links_end: links_start,
            fetched_at: None,
            digest: Digest::NONE,
            counts: LinkCounts::default(),
        };
        if !what.is_of_page() {
            return Ok(entry);
        }
        entry.source = self.page(state)?;
        entry.fetched_at = match self.columns.times.take() {
            0 => None,
            encoded => {
                state.time = state.time.wrapping_add(unzigzag(encoded - 1));
                Some(state.time)
            }
        };
        if what == What::Visit {
            let page = entry.source;
            let own = self.list(head, page, state, batch, &mut entry.counts)?;
            entry.links_end = batch.links.len() as u32 - own;
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

    /// The page of a record.
    #[inline]
    fn page(&mut self, state: &mut State) -> Result<u32, Fault> {
        state.hosts += 1;
        let stored = self.columns.sources.take();
        let Some(distance) = stored.checked_sub(1).map(unzigzag) else {
            return state.new_names(1);
        };
        let page = i64::from(state.source).checked_add(distance);
        let page = page.and_then(|page| u32::try_from(page).ok());
        let page = page.filter(|&page| page < state.names);
        state.source = page.ok_or_else(|| Fault::new("a record of an unknown page"))?;
        Ok(state.source)
    }

    /// All of the block's `count` pages and new names must be on the only host, which had all names before.
    fn host(&mut self, first_name: u32, count: usize) -> Result<(), Fault> {
        let Some(others) = count.checked_sub(1) else {
            return Ok(());
        };
        let columns = &mut self.columns;
        let mut is_one = columns.hosts.of_names.take() == first_host(first_name);
        columns.hosts.of_names.each(others, |host| {
            is_one &= host == 0;
            is_one
        });
        if first_name > 0 {
            is_one &= columns.hosts.names_before.take() == u64::from(first_name);
        }
        if is_one {
            Ok(())
        } else {
            Err(Fault::new("its names are not on one host"))
        }
    }

    /// The numbers of the next list: its known targets that are not copied, its new ones, and its counts.
    #[inline]
    fn shape(&mut self, scoped: bool) -> Result<[u64; 8], Fault> {
        let columns = &mut self.columns;
        let known = columns.shapes.take();
        if known == 0 {
            let mut shape = Shape::default();
            for (number, column) in shape.iter_mut().zip(columns.of_shape(scoped)) {
                *number = column.take();
            }
            self.shapes.push(shape);
        }
        let at = match known.checked_sub(1) {
            None => self.shapes.len().checked_sub(1),
            Some(at) => usize::try_from(at).ok(),
        };
        match at.and_then(|at| self.shapes.get(at)) {
            Some(&[0, rest @ ..]) => Ok(rest),
            Some(_) => Err(Fault::new("a link to another host than the only one")),
            None => Err(Fault::new("a shape that does not exist")),
        }
    }

    /// Appends a visit's targets to the links; 1 if the page itself is among them, as the last.
    #[inline]
    fn list(
        &mut self,
        head: &BlockHead,
        page: u32,
        state: &mut State,
        batch: &mut Batch,
        into: &mut LinkCounts,
    ) -> Result<u32, Fault> {
        let links = &mut batch.links;
        let start = links.len();
        let before = self.copy(links)?;
        let [known, new, more @ ..] = self.shape(head.features.scoped)?;
        let full = || Fault::new("it has more links than it declares");
        let mut all = [known, new].into_iter();
        let all = all.try_fold(links.len() as u64, u64::checked_add);
        if all.ok_or_else(full)? > head.targets {
            return Err(full());
        }
        let targets = &mut self.columns.known;
        take_targets(targets, head.from, known as usize, page, state.names, links)?;
        let first = state.new_names(new)?;
        state.hosts += new as usize;
        links.extend(first..state.names);
        let wrong = || Fault::new("a count of links is wrong");
        let mut counts = [0u32; 6];
        for ((count, before), more) in counts.iter_mut().zip(before).zip(more) {
            let now = i64::from(before).checked_add(unzigzag(more));
            let now = now.and_then(|now| u32::try_from(now).ok());
            *count = now.ok_or_else(wrong)?;
        }
        let [own, repeated, scheme, invalid, too_long, out_of_scope] = counts;
        let own_class = self.end_list(links, start, (own > 0).then_some(page))?;
        if links.len() as u64 > head.targets {
            return Err(full());
        }
        let others = (links.len() - start) as u32 - u32::from(own > 0);
        let read = [
            others,
            own,
            repeated,
            scheme,
            invalid,
            too_long,
            out_of_scope,
        ];
        let read = read.iter().try_fold(0u32, |sum, &n| sum.checked_add(n));
        *into = LinkCounts {
            read: read.ok_or_else(wrong)?,
            scheme,
            invalid,
            too_long,
            own,
            repeated,
            out_of_scope,
            own_class,
        };
        self.counts.push(counts);
        Ok(u32::from(own > 0))
    }

    /// Appends what a list copies from an earlier one, and gives the counts of that; else zeros.
    #[inline]
    fn copy(&mut self, links: &mut Vec<u32>) -> Result<[u32; 6], Fault> {
        let (columns, classes) = (&mut self.columns, &mut self.classes);
        let back = columns.copies.lists.take();
        if back == 0 {
            return Ok([0; 6]);
        }
        let back = usize::try_from(back).ok();
        let from = back.and_then(|back| self.counts.len().checked_sub(back));
        let from = from.ok_or_else(|| Fault::new("a copy of a list that does not exist"))?;
        let whole = self.ends[from] as usize..self.ends[from + 1] as usize;
        let takes_classes = self.takes_classes;
        // Not longer than the list, and so not than all of the block.
        let mut copy = |range: Range<usize>| {
            if takes_classes {
                classes.extend_from_within(range.clone());
            }
            links.extend_from_within(range);
        };
        match columns.copies.run_counts.take() {
            0 => copy(whole),
            runs => {
                let runs = usize::try_from(runs).unwrap_or(usize::MAX);
                copy_runs(whole, runs, &mut columns.copies.runs, copy)?;
            }
        }
        Ok(self.counts[from])
    }

    /// Ends the list from `start` on, which has all targets but its page, if it links to itself: that is moved to the
    /// end. Takes their classes, and gives that of the page.
    #[inline]
    fn end_list(
        &mut self,
        links: &mut Vec<u32>,
        start: usize,
        own: Option<u32>,
    ) -> Result<LinkClass, Fault> {
        let takes_classes = self.takes_classes;
        let (column, classes) = (&mut self.columns.classes, &mut self.classes);
        if takes_classes {
            classes.resize(links.len(), UNKNOWN);
        }
        if let Some(page) = own {
            self_last(links, takes_classes.then_some(&mut *classes), start, page);
        }
        self.ends.push(links.len() as u32);
        if !takes_classes {
            return Ok(LinkClass::default());
        }
        let stored = |_, foreseen| {
            // A number that is no class is found where the block ends.
            foreseen ^ u16::try_from(column.take()).unwrap_or(UNKNOWN)
        };
        self.foreseen
            .each(&links[start..], &mut classes[start..], stored);
        match (own, classes.last()) {
            (Some(_), Some(&number)) => class(number),
            _ => Ok(LinkClass::default()),
        }
    }
}

/// State that is carried through the records of a block.
struct State {
    names: u32,
    names_max: u32,
    /// The last page that was known before its record; at first 0.
    source: u32,
    /// Pages and new names whose host was stored.
    hosts: usize,
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
    whole: Range<usize>,
    count: usize,
    runs: &mut Column,
    mut copy: impl FnMut(Range<usize>),
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

/// The inverse of [`Targets::put`], for a list of `page`: targets among the first `names`.
/// Not inlined: its loop needs the registers.
#[inline(never)]
fn take_targets(
    targets: &mut Targets,
    from: From,
    count: usize,
    page: u32,
    names: u32,
    links: &mut Vec<u32>,
) -> Result<(), Fault> {
    if count == 0 {
        return Ok(());
    }
    let wrong = || Fault::new("a link to an unknown name");
    let first = targets.firsts.take();
    let first = match from {
        From::Page => i64::from(page).checked_add(unzigzag(first)),
        From::Zero | From::Newest => i64::try_from(first).ok(),
    };
    let first = first.and_then(|at| u32::try_from(at).ok());
    let first = first.filter(|&at| at < names).ok_or_else(wrong)?;
    let (mut at, end) = (u64::from(first), u64::from(names));
    let start = links.len();
    links.resize(start + count, first);
    let mut rest = links[start + 1..].iter_mut();
    targets.gaps.each(count - 1, |gap| {
        at = at.saturating_add(gap).saturating_add(1);
        if let Some(target) = rest.next() {
            *target = at as u32;
        }
        at < end
    });
    if at >= end {
        return Err(wrong());
    }
    // From the newest on they descend, and are stored as if from the other end. A list does not depend on that.
    if from == From::Newest {
        links[start..].reverse();
        let descending = links[start..].iter_mut();
        descending.for_each(|target| *target = names - 1 - *target);
    }
    Ok(())
}
