//! Name order: which pages are neighbours by their names. 4 bytes per page, and 12 while it is built.
//!
//! Sites name pages by section and in sequence, and pages with similar names have similar links. Names are ordered by
//! host (its last two labels first), then by the first two folders, then by the other folders, then by what follows the
//! last slash: text and the first number in it, so that `page9` precedes `page10`. Host and folders are compared by
//! hash: equal ones are together, in arbitrary order. Names that are not URLs are read as paths. Names with equal keys
//! are in page order.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::Result;
use crate::threads::{par_map, sort_by_key};
use crate::url::{host, host_and_path};

/// Returns the numbers of all `pages` pages in the order of their names. `each` passes the names of a range of pages to
/// its visitor, in page order; `threads` threads each ask for a range.
pub fn by_name(
    pages: u64,
    threads: usize,
    each: impl Fn(Range<u64>, &mut dyn FnMut(&[u8])) -> Result<()> + Sync,
) -> Result<Vec<u32>> {
    // Twelve bytes a page, without padding, of which the collected numbers reuse four.
    let mut keyed: Vec<[u32; 3]> = (0..pages as u32).map(|page| [0, 0, page]).collect();
    let part = pages.div_ceil(threads.max(1) as u64).max(1);
    let mut parts: Vec<&mut [[u32; 3]]> = keyed.chunks_mut(part as usize).collect();
    par_map(&mut parts, |at, keyed| {
        let first = at as u64 * part;
        let (mut keys, mut next) = (NameKeys::default(), keyed.iter_mut());
        each(first..first + next.len() as u64, &mut |name| {
            if let Some([high, low, _]) = next.next() {
                let key = keys.key(name);
                (*high, *low) = ((key >> 32) as u32, key as u32);
            }
        })
    })?;
    sort_by_key(&mut keyed, |&[high, low, page]| {
        (u64::from(high) << 32 | u64::from(low), page)
    });
    let mut order: Vec<u32> = keyed.into_iter().map(|[.., page]| page).collect();
    order.shrink_to_fit();
    Ok(order)
}

fn hash(text: &[u8], bits: u32) -> u64 {
    xxh3_64(text) & ((1 << bits) - 1)
}

/// Computes sort keys of names one after the other: names often have the host, or the folder, of the one before. A key
/// has eight bits for each of domain, host, first, second and other folders, and [`in_folder`].
#[derive(Default)]
struct NameKeys {
    /// Text of the last name up to the last slash of its path.
    folder: Vec<u8>,
    /// Length of its part with the host; 0 if it has none.
    site: usize,
    /// Bits of domain and host, and of these and all folders.
    of_site: u64,
    of_folder: u64,
}

impl NameKeys {
    fn key(&mut self, name: &[u8]) -> u64 {
        let plain = memchr::memchr2(b'?', b'#', name).unwrap_or(name.len());
        let last = memchr::memrchr(b'/', &name[..plain]).map_or(0, |slash| slash + 1);
        if name[..last].ends_with(b"://") && !host(name).is_empty() {
            // A URL without a path, as there may be among opaque names.
            let of_folder = (0..3).fold(of_site(host(name)), |key, _| key << 8 | hash(b"", 8));
            return of_folder << IN_FOLDER_BITS | in_folder(b"");
        }
        let (folder, name) = name.split_at(last);
        if folder != self.folder || folder.is_empty() {
            if self.site == 0 || !folder.starts_with(&self.folder[..self.site]) {
                let (host, path) = host_and_path(folder);
                self.of_site = of_site(host);
                self.site = if host.is_empty() {
                    0
                } else {
                    folder.len() + 1 - path.len()
                };
            }
            let parts = if self.site == 0 { 4 } else { 3 };
            let mut folders = folder[self.site..].splitn(parts, |&byte| byte == b'/');
            self.of_folder = (0..3).fold(self.of_site, |key, _| {
                key << 8 | hash(folders.next().unwrap_or_default(), 8)
            });
            self.folder.clear();
            self.folder.extend_from_slice(folder);
        }
        self.of_folder << IN_FOLDER_BITS | in_folder(name)
    }
}

/// Returns eight bits each for a domain, as the last two labels of a host, and the host.
fn of_site(host: &[u8]) -> u64 {
    let mut dots = memchr::memrchr_iter(b'.', host).skip(1);
    let domain = &host[dots.next().map_or(0, |dot| dot + 1)..];
    hash(domain, 8) << 8 | hash(host, 8)
}

const IN_FOLDER_BITS: u32 = 24;

/// Returns a sort key of 24 bits for names in one folder: by the text before the first number, then by that number, of
/// which the first 17 bits count; names without a number by their first three bytes.
fn in_folder(name: &[u8]) -> u64 {
    let Some(start) = name.iter().position(u8::is_ascii_digit) else {
        let mut first = [0; 3];
        let len = name.len().min(3);
        first[..len].copy_from_slice(&name[..len]);
        return first
            .iter()
            .fold(0, |key, &byte| key << 8 | u64::from(byte));
    };
    let digits = name[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0u64, |number, digit| {
        (number * 10 + u64::from(digit - b'0')).min((1 << 31) - 1)
    });
    let left_out = (64 - number.leading_zeros()).saturating_sub(17);
    (hash(&name[..start], 4) << 20) | ((u64::from(left_out) << 16) + (number >> left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(names: &[&str]) -> Vec<u32> {
        let each = |all: Range<u64>, visit: &mut dyn FnMut(&[u8])| {
            all.for_each(|page| visit(names[page as usize].as_bytes()));
            Ok(())
        };
        by_name(names.len() as u64, 1, each).unwrap()
    }

    fn name_key(name: &[u8]) -> u64 {
        NameKeys::default().key(name)
    }

    #[test]
    fn numbers_are_in_order() {
        let names: Vec<String> = (0..50).map(|n| ((n * 7) % 50).to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let numbers = order(&names);
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
        let order = order(&pages);
        let at = |page: u32| order.iter().position(|&p| p == page).unwrap();
        assert_eq!((at(0), at(3)), (at(1) + 1, at(1) + 2));
    }

    /// Numbers of more than 17 bits stay in order; those that differ in lower bits only have the same key.
    #[test]
    fn large_numbers_are_in_order() {
        let key = |number: u64| in_folder(number.to_string().as_bytes());
        let numbers = [
            0,
            1,
            131_071,
            131_072,
            131_074,
            262_143,
            262_144,
            9_999_999,
            1 << 31,
        ];
        for pair in numbers.windows(2) {
            assert!(key(pair[0]) < key(pair[1]), "{pair:?}");
        }
        assert_eq!(key(131_072), key(131_073));
        assert_eq!(key(u64::MAX), key(1 << 31));
        assert!(key(u64::MAX) < 1 << IN_FOLDER_BITS);
    }

    /// A key does not depend on the name before, and a host without a path is the host's.
    #[test]
    fn keys_do_not_depend_on_the_name_before() {
        let names = [
            "http://a.org/",
            "http://a.org",
            "http://a.org:80",
            "http://a.org.evil/x/1",
            "http://a.org/x/1",
            "http://a.org/x/y/2",
            "https://a.org/x/y/2",
            "a/b/3",
            "a/b",
            "a",
            "",
            "://x/",
            "http://b.a.org?x=/y",
        ];
        for one in names {
            for other in names {
                let mut keys = NameKeys::default();
                keys.key(one.as_bytes());
                let after = keys.key(other.as_bytes());
                assert_eq!(after, name_key(other.as_bytes()), "{other} after {one}");
            }
        }
        let site = |name: &str| name_key(name.as_bytes()) >> (24 + IN_FOLDER_BITS);
        assert_eq!(site("http://a.org:80"), site("http://a.org/x/1"));
        assert_ne!(site("http://a.org"), site("http://b.org"));
    }

    #[test]
    fn folders_and_hosts_stand_together() {
        let pages: Vec<String> = (0..60)
            .map(|n| format!("http://h{}.example.org/a{}/b/{}", n % 3, n % 4, n * 31 % 17))
            .collect();
        let names: Vec<&str> = pages.iter().map(String::as_str).collect();
        let order = order(&names);
        let changes = |of: &dyn Fn(u32) -> u32| {
            let pairs = order.windows(2);
            pairs.filter(|pair| of(pair[0]) != of(pair[1])).count()
        };
        assert_eq!(changes(&|page| page % 3), 2);
        assert_eq!(changes(&|page| page % 12), 11);
    }

    /// The order is that of the keys, equal ones in page order, and does not depend on the number of threads.
    #[test]
    fn the_order_is_that_of_all_names() {
        let count = 150_000u64;
        let name = |page: u64| format!("http://h{}.example/{}", page % 7, page * 7919 % 100_003);
        let each = |pages: Range<u64>, visit: &mut dyn FnMut(&[u8])| {
            pages.for_each(|page| visit(name(page).as_bytes()));
            Ok(())
        };
        let mut expected: Vec<(u64, u32)> = (0..count)
            .map(|page| (name_key(name(page).as_bytes()), page as u32))
            .collect();
        expected.sort_unstable();
        let expected: Vec<u32> = expected.into_iter().map(|(_, page)| page).collect();
        for threads in [1, 2, 8] {
            let order = by_name(count, threads, each).unwrap();
            assert!(order == expected, "{threads}");
        }
        let none = by_name(0, 2, each).unwrap();
        assert!(none.is_empty());
    }
}
