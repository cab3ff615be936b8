//! Name order: which pages are neighbours by their names. 8 bytes per page, and 36 while it is built or may grow.
//!
//! Sites name pages by section and in sequence, and pages with similar names have similar links. Names are ordered by
//! host (its last two labels first), then by the first two folders, then by the other folders, then by what follows the
//! last slash: text and the first number in it, so that `page9` precedes `page10`. Host and folders are compared by
//! hash: equal ones are together, in arbitrary order. Names that are not URLs are read as paths.
//!
//! Names are sorted in runs, optionally by several threads; names added later form further runs. The order is that of
//! all runs merged, so it does not depend on their number.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::{AddAssign, Range, SubAssign};

use xxhash_rust::xxh3::xxh3_64;

use crate::Result;
use crate::threads;
use crate::url::{host, path_and_query};

/// Name order of pages.
#[derive(Debug, Default)]
pub struct NameOrder {
    /// Pages in name order.
    order: Vec<u32>,
    /// Host of each page, numbered in order of first appearance.
    host: Vec<u32>,
    hosts: u32,
}

/// Sort key: host and folders, the last part, and a hash of the whole name to separate equal ones.
type Key = (u64, u64, u32);

/// Builds a name order from names in the order of page numbers.
#[derive(Debug, Default)]
pub struct NameOrderBuilder {
    runs: Runs,
    last: Run,
    hosts: Hosts,
}

impl NameOrderBuilder {
    /// Adds the next page's name.
    pub fn add(&mut self, name: &[u8]) {
        self.last.push((key(name), self.last.len() as u32));
        self.hosts.add(name);
    }

    /// Returns the order of all names.
    pub fn build(mut self) -> NameOrder {
        self.runs.add(self.last);
        NameOrder {
            order: self.runs.order(),
            host: self.hosts.host,
            hosts: self.hosts.numbers.len() as u32,
        }
    }
}

/// Host of each page.
#[derive(Debug, Default)]
struct Hosts {
    host: Vec<u32>,
    numbers: HashMap<u64, u32>,
}

impl Hosts {
    /// Adds the next page's name.
    fn add(&mut self, name: &[u8]) {
        let hosts = self.numbers.len() as u32;
        let number = *self.numbers.entry(xxh3_64(host(name))).or_insert(hosts);
        self.host.push(number);
    }
}

/// Pages with their keys, in order.
type Run = Vec<(Key, u32)>;

/// Number of runs at which the smallest two are merged.
const RUNS: usize = 9;
/// Minimum number of names per thread.
const RUN_NAMES: u64 = 1 << 16;

/// Keys of all pages, in sorted runs.
#[derive(Debug, Default)]
pub(super) struct Runs(Vec<Run>);

impl Runs {
    /// Adds pages, for whose names `each` calls its visitor in their order, on up to `threads` threads, each of which
    /// requests a range.
    pub fn extend(
        &mut self,
        pages: Range<u64>,
        threads: usize,
        each: impl Fn(Range<u64>, &mut dyn FnMut(&[u8])) -> Result<()> + Sync,
    ) -> Result<()> {
        let names = pages.end - pages.start;
        let parts = (names / RUN_NAMES).clamp(1, threads.clamp(1, RUNS - 1) as u64);
        let start = |part: u64| pages.start + names * part / parts;
        let runs = threads::each_of(parts as usize, |part| {
            let range = start(part as u64)..start(part as u64 + 1);
            let mut run = Run::with_capacity((range.end - range.start) as usize);
            let mut page = range.start as u32;
            each(range, &mut |name| {
                run.push((key(name), page));
                page += 1;
            })?;
            run.sort_unstable();
            Ok(run)
        });
        for run in runs {
            self.add_sorted(run?);
        }
        Ok(())
    }

    fn add(&mut self, mut run: Run) {
        run.sort_unstable();
        self.add_sorted(run);
    }

    fn add_sorted(&mut self, run: Run) {
        self.0.push(run);
        while self.0.len() > RUNS {
            self.0.sort_by_key(|run| Reverse(run.len()));
            let last = self.0.pop().unwrap_or_default();
            if let Some(run) = self.0.last_mut() {
                run.extend(last);
                run.sort();
            }
        }
    }

    /// Returns all pages in name order.
    pub fn order(&self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.0.iter().map(Vec::len).sum());
        let mut heads = BinaryHeap::new();
        let mut runs: Vec<_> = self.0.iter().map(|run| run.iter()).collect();
        for (at, run) in runs.iter_mut().enumerate() {
            heads.extend(run.next().map(|head| Reverse((*head, at))));
        }
        while let Some(mut head) = heads.peek_mut() {
            let Reverse(((_, page), at)) = *head;
            order.push(page);
            match runs[at].next() {
                Some(next) => *head = Reverse((*next, at)),
                None => drop(std::collections::binary_heap::PeekMut::pop(head)),
            }
        }
        order
    }

    /// Returns the order, without hosts.
    pub fn names(&self) -> NameOrder {
        NameOrder {
            order: self.order(),
            ..NameOrder::default()
        }
    }
}

/// Stands for pages that are left out in [`NameOrder::renumbered`].
const NONE: u32 = u32::MAX;

impl NameOrder {
    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Returns the number of a page's host.
    pub fn host(&self, page: u32) -> u32 {
        self.host[page as usize]
    }

    /// Returns the order of some pages under other numbers: `numbers` holds the new number of each page, `u32::MAX` for
    /// those left out; `pages` is their count.
    pub fn renumbered(&self, numbers: &[u32], pages: u32) -> NameOrder {
        let mut host = vec![0; pages as usize];
        for (&number, &at) in numbers.iter().zip(&self.host) {
            if number != NONE {
                host[number as usize] = at;
            }
        }
        let order = self.order.iter().map(|&page| numbers[page as usize]);
        NameOrder {
            order: order.filter(|&number| number != NONE).collect(),
            host,
            hosts: self.hosts,
        }
    }

    /// Calls `each` with every page, the number of pages near it (`radius` on each side, and itself), and the sum of
    /// their `worth`.
    pub fn around<T: Copy + Default + AddAssign + SubAssign>(
        &self,
        radius: usize,
        worth: impl Fn(u32) -> T,
        mut each: impl FnMut(u32, u32, T),
    ) {
        let mut sum = T::default();
        let mut end = 0;
        for (at, &page) in self.order.iter().enumerate() {
            let until = (at + radius + 1).min(self.order.len());
            while end < until {
                sum += worth(self.order[end]);
                end += 1;
            }
            if let Some(left) = at.checked_sub(radius + 1) {
                sum -= worth(self.order[left]);
            }
            let near = until - at.saturating_sub(radius);
            each(page, near as u32, sum);
        }
    }
}

/// Returns the low `bits` of a text's hash.
fn hash(text: &[u8], bits: u32) -> u64 {
    xxh3_64(text) & ((1 << bits) - 1)
}

fn key(name: &[u8]) -> Key {
    let host = host(name);
    let path = match host {
        [] => name,
        _ => path_and_query(name),
    };
    let plain = memchr::memchr2(b'?', b'#', path).unwrap_or(path.len());
    let last = memchr::memrchr(b'/', &path[..plain]).map_or(0, |slash| slash + 1);
    let mut folders = path[..last]
        .splitn(4, |&byte| byte == b'/')
        .skip(usize::from(!host.is_empty()));
    let first = folders.next().unwrap_or_default();
    let second = folders.next().unwrap_or_default();
    let others = folders.next().unwrap_or_default();
    let mut dots = memchr::memrchr_iter(b'.', host).skip(1);
    let domain = &host[dots.next().map_or(0, |dot| dot + 1)..];
    let place = [
        (domain, 12),
        (host, 12),
        (first, 14),
        (second, 14),
        (others, 12),
    ];
    let place = place
        .iter()
        .fold(0, |key, &(text, bits)| key << bits | hash(text, bits));
    (place, in_folder(&path[last..]), xxh3_64(name) as u32)
}

/// Returns a sort key for names in one folder: by the text before the first number, then by that number; names without
/// a number by their first eight bytes.
fn in_folder(name: &[u8]) -> u64 {
    let Some(start) = name.iter().position(u8::is_ascii_digit) else {
        let mut first = [0; 8];
        let len = name.len().min(8);
        first[..len].copy_from_slice(&name[..len]);
        return u64::from_be_bytes(first);
    };
    let digits = name[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let most = (1u64 << 40) - 1;
    let number = digits.fold(0u64, |number, digit| {
        (number * 10 + u64::from(digit - b'0')).min(most)
    });
    hash(&name[..start], 24) << 40 | number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(names: &[&str]) -> NameOrder {
        let mut builder = NameOrderBuilder::default();
        names.iter().for_each(|name| builder.add(name.as_bytes()));
        builder.build()
    }

    #[test]
    fn numbers_are_in_order() {
        let names: Vec<String> = (0..50).map(|n| ((n * 7) % 50).to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let numbers = order(&names).order;
        assert!(
            numbers
                .iter()
                .map(|&at| names[at as usize])
                .eq((0..50).map(|n| n.to_string()))
        );
        let pages = [
            "http://a.example/d/p10.html",
            "http://a.example/d/p9.html",
            "http://b.example/",
            "http://a.example/d/p11.html",
        ];
        let order = order(&pages).order;
        let at = |page: u32| order.iter().position(|&p| p == page).unwrap();
        assert_eq!((at(0), at(3)), (at(1) + 1, at(1) + 2));
    }

    #[test]
    fn folders_and_hosts_stand_together() {
        let pages: Vec<String> = (0..60)
            .map(|n| format!("http://h{}.example.org/a{}/b/{}", n % 3, n % 4, n * 31 % 17))
            .collect();
        let names: Vec<&str> = pages.iter().map(String::as_str).collect();
        let order = order(&names);
        assert_eq!(order.hosts(), 3);
        assert_eq!(order.host(4), 1);
        let changes = |of: &dyn Fn(u32) -> u32| {
            order
                .order
                .windows(2)
                .filter(|pair| of(pair[0]) != of(pair[1]))
                .count()
        };
        assert_eq!(changes(&|page| page % 3), 2);
        assert_eq!(changes(&|page| page % 12), 11);
    }

    /// The order does not depend on the number of threads or on how often names are added.
    #[test]
    fn the_order_is_that_of_all_names() {
        let count = 150_000u64;
        let name = |page: u64| format!("http://h{}.example/{}", page % 7, page * 7919 % 100_003);
        let mut builder = NameOrderBuilder::default();
        (0..count).for_each(|page| builder.add(name(page).as_bytes()));
        let expected = builder.build().order;
        let each = |pages: Range<u64>, visit: &mut dyn FnMut(&[u8])| {
            pages.for_each(|page| visit(name(page).as_bytes()));
            Ok(())
        };
        let mut runs = Runs::default();
        let mut from = 0;
        for (until, threads) in [(100_000, 1), (100_001, 8), (100_001, 2), (count, 3)] {
            runs.extend(from..until, threads, each).unwrap();
            from = until;
        }
        assert_eq!(runs.order(), expected);
        let mut runs = Runs::default();
        for part in 0..25 {
            let pages = count * part / 25..count * (part + 1) / 25;
            runs.extend(pages, 1, each).unwrap();
        }
        assert!(runs.0.len() <= RUNS);
        assert!(runs.order() == expected);
    }

    #[test]
    fn neighbours_are_counted() {
        let order = order(&["3", "1", "0", "2"]);
        let mut seen = Vec::new();
        order.around(
            1,
            |page| u32::from(page < 2),
            |page, near, counted| seen.push((page, near, counted)),
        );
        // By name: 0 (page 2), 1 (page 1), 2 (page 3), 3 (page 0).
        assert_eq!(seen, [(2, 2, 1), (1, 3, 1), (3, 3, 2), (0, 2, 1)]);
        let fewer = order.renumbered(&[0, NONE, 1, NONE], 2);
        assert_eq!(fewer.order, [1, 0]);
    }
}
