//! Packing: a batch of numbered records to the two parts of a block.

use std::collections::HashMap;

use super::Fault;
use super::block::{Columns, From, Shape, Targets, counts_of, is_on, kind};
use super::column::Column;
use super::lists::Lists;
use super::names;
use super::section::BlockHead;
use super::sites::{Here, LOCAL};
use crate::batch::{Batch, Entry, What};
use crate::codec::varint::zigzag;
use crate::rules::LinkClass;

/// Level from which on PPMd packs the text of names, and these are told by their sites. Below it, archives are read
/// faster in the first pass, and without memory for sites.
pub(super) const SMALL_LEVEL: i32 = 10;

/// Hosts are counted if a block has one in so many records, or fewer.
const COUNTED_SHARE: usize = 32;

/// Packs blocks. Keeps its memory from one to the next.
pub(super) struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    /// Whether PPMd packs the text of names.
    ppmd: bool,
    columns: Columns,
    /// Other ways to tell the rests and the locals.
    rests: Targets,
    locals: [Targets; 2],
    lists: Lists,
    here: Here,
    /// The counts of each list's record.
    counts: Vec<[u32; 5]>,
    known: Vec<u32>,
    new: Vec<u32>,
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
            ppmd: level >= SMALL_LEVEL,
            columns: Columns::default(),
            rests: Targets::default(),
            locals: Default::default(),
            lists: Lists::default(),
            here: Here::default(),
            counts: Vec::new(),
            known: Vec::new(),
            new: Vec::new(),
            shapes: HashMap::new(),
            classes: Vec::new(),
        })
    }

    /// Packs `batch`, whose names are numbered from the archive's first on, and whose links are as
    /// [`SelfLinks::Drop`](crate::engine::SelfLinks::Drop) makes them; known pages of a record's own host, its page
    /// too, are told by their place there ([`LOCAL`]). `head` says what comes before; the rest of it is filled in.
    pub fn pack(&mut self, batch: &Batch, mut head: BlockHead) -> Result<Packed, Fault> {
        let sites = &batch.sites;
        head.hosts = true;
        head.counted = sites.before.len() <= 1 + batch.entries.len() / COUNTED_SHARE;
        head.first_host = sites.first_host;
        head.classes = has_classes(batch);
        head.words = true;
        head.ppmd = self.ppmd;
        head.names = batch.text_ends.len() as u32;
        head.text = batch.text.len() as u64;
        head.records = batch.entries.len() as u32;
        let names = names::pack(batch, head.sites, &mut self.zstd, self.ppmd)?;
        let records = self.records(batch, &mut head)?;
        Ok(Packed {
            names,
            records,
            head,
        })
    }

    /// The records part; what it decides of the head is filled in.
    fn records(&mut self, batch: &Batch, head: &mut BlockHead) -> Result<Vec<u8>, Fault> {
        self.columns.all(true, true).for_each(Column::clear);
        self.columns.classes.clear();
        self.rests.clear();
        self.locals.iter_mut().for_each(Targets::clear);
        self.lists.clear();
        self.shapes.clear();
        self.here.begin(head.first_host, head.counted);
        self.counts.clear();
        let sites = &batch.sites;
        let mut pages = sites.pages.iter();
        let mut names = head.first_name;
        let (mut last, mut time) = (None, 0i64);
        for entry in &batch.entries {
            self.columns.kinds.put(kind(entry.what));
            if !entry.what.is_of_page() {
                continue;
            }
            let &(host, is_new) = pages.next().ok_or_else(unsited)?;
            let columns = self.columns.of_hosts();
            let here = self.here.tell(host, last, &sites.before, columns);
            last = Some(host);
            let mut told = entry.source;
            if is_new {
                let place = here.add()?;
                if head.counted {
                    told = LOCAL | place;
                }
                self.columns.sources.put(0);
                names += 1;
            } else {
                let place = told & !LOCAL;
                let distance = i64::from(place) - i64::from(here.last);
                self.columns.sources.put(1 + zigzag(distance));
                here.last = place;
            }
            let page = Page {
                host,
                told,
                names,
                on_host: here.all,
            };
            let told = entry.fetched_at.map(|at| zigzag(at.wrapping_sub(time)));
            let told = told.map_or(Some(0), |told| told.checked_add(1));
            let far = || Fault::new("two times are 2^63 seconds apart");
            self.columns.times.put(told.ok_or_else(far)?);
            time = entry.fetched_at.unwrap_or(time);
            if entry.what == What::Visit {
                self.new.clear();
                for name in names..entry.names_end {
                    let at = (name - head.first_name) as usize;
                    let &on = sites.names.get(at).ok_or_else(unsited)?;
                    let columns = self.columns.of_hosts();
                    let here = self.here.tell(on, last, &sites.before, columns);
                    let place = here.add()?;
                    let is_local = head.counted && on == host;
                    self.new.push(if is_local { LOCAL | place } else { name });
                }
                self.list(batch, entry, page, head.counted);
                if head.classes {
                    self.classes(batch, entry, page, head.first_name);
                }
            }
            names = entry.names_end;
            head.links += u64::from(entry.counts.read);
        }
        head.targets = self.lists.targets();
        let (columns, [by_page, by_newest]) = (&mut self.columns, &mut self.locals);
        head.from = cheapest(&mut columns.rests, [(From::Newest, &mut self.rests)]);
        head.local_from = match head.counted {
            true => {
                let others = [(From::Page, by_page), (From::Newest, by_newest)];
                cheapest(&mut columns.locals, others)
            }
            false => cheapest(&mut columns.locals, [(From::Page, by_page)]),
        };
        let mut part = Vec::new();
        for column in self.columns.all(true, head.counted) {
            column.put_into(&mut part, &mut self.zstd)?;
        }
        if head.classes {
            self.columns.classes.put_into(&mut part, &mut self.zstd)?;
        }
        Ok(part)
    }

    /// One visit's list and counts.
    fn list(&mut self, batch: &Batch, entry: &Entry, page: Page, counted: bool) {
        let targets = batch.targets(entry);
        let is_local = |target: u32| target >= LOCAL;
        self.known.clear();
        let known = |&&target: &&u32| is_local(target) || target < page.names;
        self.known.extend(targets.iter().filter(known));
        self.known.sort_unstable();
        // Names that the index took for one would come twice.
        self.known.dedup();
        let distinct = self.known.len() + self.new.len();
        let doubled = targets.len().saturating_sub(distinct);
        let number = self.lists.len();
        let own = entry.counts.own > 0;
        let copied = self
            .lists
            .add(page.host, page.told, &self.known, &self.new, own);
        let columns = &mut self.columns;
        columns.lists.put((number - copied.list) as u64);
        let mut before = [0; 5];
        if copied.list < number {
            before = self.counts[copied.list];
            columns.run_counts.put(copied.runs.len() as u64);
            let runs = copied.runs.iter();
            runs.for_each(|&run| columns.runs.put(u64::from(run)));
        }
        let split = copied.rest.partition_point(|&target| !is_local(target));
        let (rest, local) = copied.rest.split_at(split);
        columns.rests.put(From::Zero, rest, 0);
        self.rests.put(From::Newest, rest, page.names);
        let [by_page, by_newest] = &mut self.locals;
        columns.locals.put(From::Zero, local, LOCAL);
        by_page.put(From::Page, local, page.told.max(LOCAL));
        if counted {
            by_newest.put(From::Newest, local, LOCAL + page.on_host);
        }
        let mut counts = counts_of(&entry.counts);
        counts[1] += doubled as u32;
        let told = |at: usize| zigzag(i64::from(counts[at]) - i64::from(before[at]));
        let [own, repeated, scheme, invalid, too_long] = [0, 1, 2, 3, 4].map(told);
        let lens = [rest.len(), local.len(), self.new.len()].map(|len| len as u64);
        let [rest, local, new] = lens;
        let shape = [rest, local, new, own, repeated, scheme, invalid, too_long];
        let next = self.shapes.len() as u64 + 1;
        let known = *self.shapes.entry(shape).or_insert(next);
        columns.shapes.put(if known == next { 0 } else { known });
        if known == next {
            for (column, number) in columns.of_shape().zip(shape) {
                column.put(number);
            }
        }
        self.counts.push(counts);
    }

    /// The classes of the list put last.
    fn classes(&mut self, batch: &Batch, entry: &Entry, page: Page, first_name: u32) {
        let told = |target: u32| {
            let new = target.checked_sub(page.names);
            let new = new.and_then(|new| self.new.get(new as usize));
            new.copied().unwrap_or(target)
        };
        let all = &mut self.classes;
        all.clear();
        let targets = batch.targets(entry).iter().map(|&target| told(target));
        all.extend(targets.zip(batch.classes(entry).iter().copied()));
        if entry.counts.own > 0 {
            all.push((page.told, entry.counts.own_class));
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
        let on_host = |target| Some(is_on(page.host, target, first_name, &batch.sites.names));
        let column = &mut self.columns.classes;
        self.lists
            .tell_classes(on_host, class, |told| column.put(told));
    }
}

/// The page of a record, and what was known before its targets.
#[derive(Clone, Copy)]
struct Page {
    host: u32,
    /// As it is told.
    told: u32,
    /// Names of the archive,
    names: u32,
    /// and of the host, if it is counted.
    on_host: u32,
}

fn unsited() -> Fault {
    Fault::new("a name without a host; please report it")
}

/// Leaves the cheapest way to tell targets in its columns, and says which that is.
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

/// Whether any link is of another class than most.
fn has_classes(batch: &Batch) -> bool {
    let is_other = |class: &LinkClass| *class != LinkClass::default();
    let mut own = batch.entries.iter().map(|entry| entry.counts.own_class);
    batch.classes.iter().any(is_other) || own.any(|class| is_other(&class))
}
