//! Packing: a batch of numbered records to the two parts of a block.

use std::collections::HashMap;
use std::ops::Range;

use super::Fault;
use super::block::{Columns, From, Shape, Targets, counts_of, first_host, kind};
use super::column::Column;
use super::lists::Lists;
use super::names;
use super::section::BlockHead;
use crate::batch::{Batch, Entry, What};
use crate::codec::varint::zigzag;
use crate::rules::LinkClass;

/// Packs blocks. Keeps its memory from one to the next.
pub(super) struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    columns: Columns,
    /// Other ways to store the known targets.
    others: [Targets; 2],
    lists: Lists,
    /// The counts of each list's record.
    counts: Vec<[u32; 6]>,
    known: Vec<u32>,
    /// The number of each shape.
    shapes: HashMap<Shape, u64>,
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
            columns: Columns::default(),
            others: Default::default(),
            lists: Lists::default(),
            counts: Vec::new(),
            known: Vec::new(),
            shapes: HashMap::new(),
            classes: Vec::new(),
        })
    }

    /// Packs `batch`, whose names are numbered from the archive's first on, and whose links are as
    /// [`SelfLinks::Drop`](crate::engine::SelfLinks::Drop) makes them. `head` says what comes before; the rest of it is
    /// filled in.
    pub fn pack(&mut self, batch: &Batch, mut head: BlockHead) -> Result<Packed, Fault> {
        head.features.classes = has_classes(batch);
        head.features.scoped = is_scoped(batch);
        head.names = batch.text_ends.len() as u32;
        head.text = batch.text.len() as u64;
        head.records = batch.entries.len() as u32;
        let names = names::pack(batch, &mut self.zstd)?;
        let records = self.records(batch, &mut head)?;
        Ok(Packed {
            names,
            records,
            head,
        })
    }

    /// The records part; what it decides of the head is filled in.
    fn records(&mut self, batch: &Batch, head: &mut BlockHead) -> Result<Vec<u8>, Fault> {
        self.columns.all(true).for_each(Column::clear);
        self.columns.classes.clear();
        self.others.iter_mut().for_each(Targets::clear);
        self.lists.clear();
        self.shapes.clear();
        self.counts.clear();
        let mut names = head.first_name;
        let (mut known, mut time) = (0, 0i64);
        for entry in &batch.entries {
            self.columns.kinds.put(kind(entry.what));
            if !entry.what.is_of_page() {
                continue;
            }
            let page = entry.source;
            self.host(head.first_name, 1);
            if page == names {
                self.columns.sources.put(0);
                names += 1;
            } else {
                let distance = i64::from(page) - i64::from(known);
                self.columns.sources.put(1 + zigzag(distance));
                known = page;
            }
            let stored = entry.fetched_at.map(|at| zigzag(at.wrapping_sub(time)));
            let stored = stored.map_or(Some(0), |stored| stored.checked_add(1));
            let far = || Fault::new("two times are 2^63 seconds apart");
            self.columns.times.put(stored.ok_or_else(far)?);
            time = entry.fetched_at.unwrap_or(time);
            if entry.what == What::Visit {
                self.host(head.first_name, entry.names_end - names);
                self.list(batch, entry, names..entry.names_end, head.features.scoped);
                if head.features.classes {
                    self.classes(batch, entry);
                }
            }
            names = entry.names_end;
            head.links += u64::from(entry.counts.read);
        }
        head.targets = self.lists.targets();
        let [by_page, by_newest] = &mut self.others;
        let others = [(From::Page, by_page), (From::Newest, by_newest)];
        head.from = cheapest(&mut self.columns.known, others);
        let mut part = Vec::new();
        for column in self.columns.all(head.features.scoped) {
            column.put_into(&mut part, &mut self.zstd)?;
        }
        if head.features.classes {
            self.columns.classes.put_into(&mut part, &mut self.zstd)?;
        }
        Ok(part)
    }

    /// The host of the next `count` names: the first has the number of the only one, and how many names were there.
    fn host(&mut self, first_name: u32, count: u32) {
        for _ in 0..count {
            if self.columns.hosts.of_names.len() > 0 {
                self.columns.hosts.of_names.put(0);
                continue;
            }
            self.columns.hosts.of_names.put(first_host(first_name));
            if first_name > 0 {
                self.columns.hosts.names_before.put(u64::from(first_name));
            }
        }
    }

    /// One visit's list and counts.
    fn list(&mut self, batch: &Batch, entry: &Entry, new: Range<u32>, scoped: bool) {
        let targets = batch.targets(entry);
        let page = entry.source;
        self.known.clear();
        self.known
            .extend(targets.iter().filter(|&&target| target < new.start));
        self.known.sort_unstable();
        // Names that the index took for one would come twice.
        self.known.dedup();
        let distinct = self.known.len() + new.len();
        let doubled = targets.len().saturating_sub(distinct);
        let number = self.lists.len();
        let own = entry.counts.own > 0;
        let copied = self.lists.add(page, &self.known, new.clone(), own);
        let columns = &mut self.columns;
        columns.copies.lists.put((number - copied.list) as u64);
        let mut before = [0; 6];
        if copied.list < number {
            before = self.counts[copied.list];
            columns.copies.run_counts.put(copied.runs.len() as u64);
            let runs = copied.runs.iter();
            runs.for_each(|&run| columns.copies.runs.put(u64::from(run)));
        }
        let rest = &copied.rest[..];
        columns.known.put(From::Zero, rest, 0);
        let [by_page, by_newest] = &mut self.others;
        by_page.put(From::Page, rest, page);
        by_newest.put(From::Newest, rest, new.start);
        let mut counts = counts_of(&entry.counts);
        counts[1] += doubled as u32;
        let more = |at: usize| zigzag(i64::from(counts[at]) - i64::from(before[at]));
        let [own, repeated, scheme, invalid, long, out] = [0, 1, 2, 3, 4, 5].map(more);
        let [known, new] = [rest.len() as u64, new.len() as u64];
        let shape = [0, known, new, own, repeated, scheme, invalid, long, out];
        let next = self.shapes.len() as u64 + 1;
        let known = *self.shapes.entry(shape).or_insert(next);
        columns.shapes.put(if known == next { 0 } else { known });
        if known == next {
            for (column, number) in columns.of_shape(scoped).zip(shape) {
                column.put(number);
            }
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
        self.lists.encode_classes(class, |code| column.put(code));
    }
}

/// Leaves the cheapest way to store targets in its columns, and says which that is.
fn cheapest<const N: usize>(zero: &mut Targets, others: [(From, &mut Targets); N]) -> From {
    let mut best = From::Zero;
    let mut cost = zero.cost();
    for (from, other) in others {
        let of_other = other.cost();
        if of_other < cost {
            (best, cost) = (from, of_other);
            std::mem::swap(zero, other);
        }
    }
    best
}

/// Returns whether any record or link was out of scope.
fn is_scoped(batch: &Batch) -> bool {
    let mut entries = batch.entries.iter();
    entries.any(|entry| entry.what == What::OutOfScope || entry.counts.out_of_scope > 0)
}

/// Returns whether any link is of another class than most.
fn has_classes(batch: &Batch) -> bool {
    let is_other = |class: &LinkClass| *class != LinkClass::default();
    let mut own = batch.entries.iter().map(|entry| entry.counts.own_class);
    batch.classes.iter().any(is_other) || own.any(|class| is_other(&class))
}
