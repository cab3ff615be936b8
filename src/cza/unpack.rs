//! Unpacking: the two parts of a block to a batch.

use std::ops::Range;

use super::Fault;
use super::block::{Columns, From, Shape, Targets, is_on, what};
use super::column::{Column, Streams};
use super::lists::{Foreseen, UNTOLD, self_last};
use super::names::Names;
use super::section::BlockHead;
use super::sites::{Here, LOCAL};
use crate::batch::{Batch, Entry, Fingerprints, LinkCounts, What};
use crate::codec::varint::unzigzag;
use crate::engine::SelfLinks;
use crate::model::{Digest, Sites};
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
    counts: Vec<[u32; 5]>,
    /// The class of each of the batch's links so far, if they are taken.
    classes: Vec<u16>,
    takes_classes: bool,
    foreseen: Foreseen,
    /// Where each list ends in the batch's links; a first 0.
    ends: Vec<u32>,
    here: Here,
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
            here: Here::default(),
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
        for column in self.columns.all(head.hosts, head.counted) {
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
        self.here.begin(head.first_host, head.counted);
        self.shapes.clear();
        batch.sites.first_host = head.first_host;
        batch.sites.counted = head.counted;
        batch.links.reserve(head.targets as usize);
        batch.entries.reserve(head.records as usize);
        let mut state = State {
            names: head.first_name,
            names_max: head.names_end()?,
            source: 0,
            host: None,
            known_here: 0,
            time: 0,
            links: 0,
        };
        for _ in 0..head.records {
            let entry = self.record(head, policy.self_links, &mut state, batch)?;
            batch.entries.push(Entry { end, ..entry });
        }
        for column in self.columns.all(head.hosts, head.counted) {
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
        let what = what(self.columns.kinds.take())?;
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
        entry.source = self.page(head, state, &mut batch.sites)?;
        let columns = &mut self.columns;
        entry.fetched_at = match columns.times.take() {
            0 => None,
            told => {
                state.time = state.time.wrapping_add(unzigzag(told - 1));
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

    /// The page of a record, as it is told.
    #[inline]
    fn page(
        &mut self,
        head: &BlockHead,
        state: &mut State,
        sites: &mut Sites,
    ) -> Result<u32, Fault> {
        let columns = &mut self.columns;
        let known = columns.sources.take().checked_sub(1).map(unzigzag);
        let is_new = known.is_none();
        let unknown = || Fault::new("a record of a page that is not known");
        // Where a known one is, so far from another.
        let near = |last: u32, distance: i64, most: u32| {
            let page = i64::from(last).checked_add(distance);
            let page = page.and_then(|page| u32::try_from(page).ok());
            page.filter(|&page| page < most).ok_or_else(unknown)
        };
        if !head.hosts {
            state.source = match known {
                None => state.new_names(1)?,
                Some(distance) => near(state.source, distance, state.names)?,
            };
            return Ok(state.source);
        }
        let before = &mut sites.before;
        let told = columns.of_hosts();
        let (host, here) = self.here.take(is_new, state.host, told, before)?;
        state.host = Some(host);
        sites.pages.push((host, is_new));
        let page = match known {
            None => {
                sites.names.push(host);
                let name = state.new_names(1)?;
                let place = here.add()?;
                if head.counted { LOCAL | place } else { name }
            }
            Some(distance) => {
                // Of a host that is not counted, that is found where the block is completed.
                let most = if head.counted { here.all } else { LOCAL };
                here.last = near(here.last, distance, most)?;
                LOCAL | here.last
            }
        };
        state.known_here = here.all;
        Ok(page)
    }

    /// Appends a visit's targets to `links`; 1 if the page itself is among them, as the last.
    #[inline]
    fn list(
        &mut self,
        head: &BlockHead,
        page: u32,
        state: &mut State,
        batch: &mut Batch,
        into: &mut LinkCounts,
    ) -> Result<u32, Fault> {
        let (links, sites) = (&mut batch.links, &mut batch.sites);
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
            let mut copy = |range: Range<usize>| {
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
        // Places that are known on one host may not be on another.
        let end = state.locals_end(head);
        if head.counted && links[start..].iter().any(|&link| link >= end) {
            return Err(Fault::new("a copy of pages that its host does not have"));
        }
        let [rest, local, new, told @ ..] = match head.hosts {
            true => match columns.shapes.take() {
                0 => {
                    let mut shape = Shape::default();
                    for (number, column) in shape.iter_mut().zip(columns.of_shape()) {
                        *number = column.take();
                    }
                    self.shapes.push(shape);
                    shape
                }
                known => {
                    let known = usize::try_from(known - 1).ok();
                    let known = known.and_then(|known| self.shapes.get(known));
                    *known.ok_or_else(|| Fault::new("a shape that is not there"))?
                }
            },
            false => {
                let (rest, new) = (columns.rest_counts.take(), columns.new.take());
                let counts = columns.counts.each_mut();
                let [own, repeated, scheme, invalid, too_long] = counts.map(Column::take);
                [rest, 0, new, own, repeated, scheme, invalid, too_long]
            }
        };
        let full = || Fault::new("it has more links than it says");
        let mut all = [rest, local, new].into_iter();
        let all = all.try_fold(links.len() as u64, u64::checked_add);
        if all.ok_or_else(full)? > room {
            return Err(full());
        }
        let base = match head.from {
            From::Zero => 0,
            From::Page => page,
            From::Newest => state.names,
        };
        let known = 0..state.names;
        take_targets(
            &mut columns.rests,
            head.hosts,
            head.from,
            rest as usize,
            base,
            known,
            links,
        )?;
        if local > 0 {
            let from = head.local_from;
            let base = match from {
                From::Zero => LOCAL,
                From::Page => page.max(LOCAL),
                From::Newest => end,
            };
            let known = LOCAL..end;
            take_targets(
                &mut columns.locals,
                true,
                from,
                local as usize,
                base,
                known,
                links,
            )?;
        }
        let first = state.new_names(new)?;
        if head.hosts {
            for name in first..state.names {
                let before = &mut sites.before;
                let told = columns.of_hosts();
                let (host, here) = self.here.take(true, state.host, told, before)?;
                sites.names.push(host);
                let place = here.add()?;
                let is_local = head.counted && state.host == Some(host);
                links.push(if is_local { LOCAL | place } else { name });
            }
        } else {
            links.extend(first..state.names);
        }
        let mut counts = [0u32; 5];
        for ((count, before), told) in counts.iter_mut().zip(before).zip(told) {
            let now = i64::from(before).checked_add(unzigzag(told));
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
            let on_host = |target| {
                let host = state.host?;
                Some(is_on(host, target, head.first_name, &sites.names))
            };
            self.foreseen
                .each(&links[start..], &mut classes[start..], on_host, told);
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
    /// Without hosts: the page of the record before.
    source: u32,
    /// The host of the last record's page.
    host: Option<u32>,
    /// Its pages before the record's targets.
    known_here: u32,
    time: i64,
    links: u64,
}

impl State {
    /// What places that are told are below. Of a host that is not counted, that is found where the block is completed.
    fn locals_end(&self, head: &BlockHead) -> u32 {
        match head.counted {
            true => LOCAL.saturating_add(self.known_here),
            false => u32::MAX,
        }
    }

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

/// The inverse of [`Targets::put`]; `with_gaps`: gaps are there, not among the firsts. The targets are among `known`.
/// Not inlined: its loop needs the registers.
#[inline(never)]
fn take_targets(
    told: &mut Targets,
    with_gaps: bool,
    from: From,
    count: usize,
    base: u32,
    known: Range<u32>,
    links: &mut Vec<u32>,
) -> Result<(), Fault> {
    if count == 0 {
        return Ok(());
    }
    let wrong = || Fault::new("a link to a name that is not known");
    // From the newest on they descend, so they are told as if from the other end.
    let (base, lowest, end) = match from {
        From::Zero | From::Page => (base, known.start, known.end),
        From::Newest => (0, 0, base.checked_sub(known.start).ok_or_else(wrong)?),
    };
    let first = told.firsts.take();
    let first = match from {
        From::Page => i64::from(base).checked_add(unzigzag(first)),
        From::Zero | From::Newest => i64::try_from(first)
            .ok()
            .and_then(|at| at.checked_add(i64::from(base))),
    };
    let first = first.and_then(|at| u32::try_from(at).ok());
    let first = first.filter(|at| (lowest..end).contains(at));
    let mut at = u64::from(first.ok_or_else(wrong)?);
    let end = u64::from(end);
    let start = links.len();
    links.resize(start + count, at as u32);
    let mut rest = links[start + 1..].iter_mut();
    let gaps = match with_gaps {
        true => &mut told.gaps,
        false => &mut told.firsts,
    };
    gaps.each(count - 1, |gap| {
        at = at.saturating_add(gap).saturating_add(1);
        if let Some(target) = rest.next() {
            *target = at as u32;
        }
        at < end
    });
    if at >= end {
        return Err(wrong());
    }
    // A list does not depend on how it was told.
    if from == From::Newest {
        let newest = known.start + end as u32 - 1;
        links[start..].reverse();
        let descending = links[start..].iter_mut();
        descending.for_each(|target| *target = newest - *target);
    }
    Ok(())
}
