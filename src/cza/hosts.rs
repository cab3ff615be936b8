//! Hosts: the pages of each host of an archive that is read, and its name.
//!
//! Blocks are unpacked by themselves, and speak of pages by their places on hosts ([`super::sites`]). Taken in
//! order, they are completed here: places become numbers of names, and names get the beginnings that they lack.

use std::ops::Range;

use super::Fault;
use super::sites::{LOCAL, host_len};
use crate::batch::{Batch, Fingerprints};
use crate::model::Part;

/// The hosts of an archive that is read, and their pages: some 5 bytes a name, and 40 a host and its text; nothing
/// where all names are on one host.
pub(super) struct Hosts {
    fingerprints: Fingerprints,
    /// The most that a name has.
    url_bytes: u64,
    names: Vec<List>,
    text: Vec<u8>,
    /// Where each host's text ends. Fewer, where names were not read.
    ends: Vec<usize>,
    /// Names completed; spare memory.
    spare: (Vec<u8>, Vec<u32>),
    /// Bytes of the lists' own memory.
    bytes: u64,
}

/// The names of a host, in order: those from `first` on as long as they follow each other, and the others.
#[derive(Debug)]
struct List {
    first: u32,
    run: u32,
    others: Vec<u32>,
}

impl List {
    /// Takes the next name. The bytes of memory that takes.
    fn push(&mut self, name: u32) -> u64 {
        if self.others.is_empty() && name == self.first + self.run {
            self.run += 1;
            return 0;
        }
        let before = self.others.capacity();
        if self.others.len() == before {
            // Not twice as long: that is a quarter more memory, and saves little time.
            self.others.reserve_exact(before / 4 + 4);
        }
        self.others.push(name);
        // An allocation takes some bytes beside.
        let more = self.others.capacity() - before + 4 * usize::from(before == 0);
        (more * size_of::<u32>()) as u64
    }

    fn len(&self) -> usize {
        self.run as usize + self.others.len()
    }

    /// The name that is told.
    #[inline]
    fn name(&self, told: u32) -> Result<u32, Fault> {
        let Some(place) = told.checked_sub(LOCAL) else {
            return Ok(told);
        };
        let name = match place.checked_sub(self.run) {
            None => Some(self.first + place),
            Some(at) => self.others.get(at as usize).copied(),
        };
        name.ok_or_else(|| Fault::new("a page that its host does not have"))
    }
}

impl Hosts {
    /// Before an archive whose names are at most `url_bytes` long.
    pub fn new(fingerprints: Fingerprints, url_bytes: u64) -> Hosts {
        Hosts {
            fingerprints,
            url_bytes,
            names: Vec::new(),
            text: Vec::new(),
            ends: Vec::new(),
            spare: Default::default(),
            bytes: 0,
        }
    }

    /// Hosts so far.
    pub fn len(&self) -> u32 {
        self.names.len() as u32
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> u64 {
        let lists = self.names.capacity() * size_of::<List>();
        let texts = self.text.capacity() + self.ends.capacity() * size_of::<usize>();
        self.bytes + (lists + texts) as u64
    }

    /// Most bytes with `names` names more. Their text is counted with their block's.
    pub fn bytes_with(&self, names: u64) -> u64 {
        // All may be lists of their own, and the list of those is twice as long where it grows.
        let each = 2 * size_of::<List>() as u64 + 48;
        self.bytes() + names * each
    }

    /// Roughly the bytes of memory in use after so many names on so many hosts.
    pub fn rough_bytes(names: u64, hosts: u64) -> u64 {
        // Names of the only host follow each other. Else lists are of four bytes a name, and have room to grow; a
        // host has its list, its text and where that ends.
        match hosts {
            0 | 1 => 0,
            _ => 5 * names + (size_of::<List>() + size_of::<usize>() + 32) as u64 * hosts,
        }
    }

    /// Completes a block, `part` of its archive: its entries and links speak of names, then, and its names are whole,
    /// if they are given.
    pub fn complete(&mut self, batch: &mut Batch, part: &Part) -> Result<(), Fault> {
        if batch.sites.first_host != self.len() {
            return Err(Fault::new("its hosts do not go on from the block before"));
        }
        // Else they are known, and were not read.
        if !batch.text_ends.is_empty() || part.names == 0 {
            self.texts(batch, part)?;
        }
        let Batch {
            entries,
            links,
            sites,
            ..
        } = batch;
        let are_right = sites.before.iter().all(|(&host, &told)| {
            let list = self.names.get(host as usize);
            list.is_some_and(|list| list.len() == told as usize)
        });
        if !are_right {
            return Err(Fault::new("a host's names are counted wrong"));
        }
        let mut pages = sites.pages.iter();
        let mut new = (part.first_name..).zip(&sites.names);
        let mut known = part.first_name;
        for entry in entries.iter_mut().filter(|entry| entry.what.is_of_page()) {
            let Some(&(host, is_new)) = pages.next() else {
                break;
            };
            // Where hosts are counted, new targets have places, too, and all others were seen to be known.
            let before = match sites.counted {
                true => entry.names_end - known,
                false => u32::from(is_new),
            };
            self.admit(new.by_ref().take(before as usize));
            let list = self.names.get(host as usize);
            let list = list.ok_or_else(|| Fault::new("a host that is not known"))?;
            entry.source = list.name(entry.source)?;
            // A link to the page itself that was dropped stands behind the others.
            let links_end = entry.links_end + u32::from(entry.counts.own > 0);
            for link in &mut links[entry.links_start as usize..links_end as usize] {
                *link = list.name(*link)?;
            }
            let after = entry.names_end - known - before;
            self.admit(new.by_ref().take(after as usize));
            known = entry.names_end;
        }
        Ok(())
    }

    /// Takes the next names, each with its host.
    fn admit<'n>(&mut self, names: impl Iterator<Item = (u32, &'n u32)>) {
        names.for_each(|(name, &host)| self.push(host, name));
    }

    /// Takes the next name, which is on `host`, or on the next one.
    fn push(&mut self, host: u32, name: u32) {
        match self.names.get_mut(host as usize) {
            Some(list) => self.bytes += list.push(name),
            None => self.names.push(List {
                first: name,
                run: 1,
                others: Vec::new(),
            }),
        }
    }

    /// Puts the hosts before the names.
    fn texts(&mut self, batch: &mut Batch, part: &Part) -> Result<(), Fault> {
        let (whole, ends) = &mut self.spare;
        whole.clear();
        ends.clear();
        let mut hosts = self.names.len();
        for (at, &host) in batch.sites.names.iter().enumerate() {
            let told = batch.name(at as u32);
            let start = whole.len();
            if host as usize == hosts {
                hosts += 1;
                if self.ends.len() + 1 != hosts {
                    return Err(nameless());
                }
                self.text
                    .extend_from_slice(&told[..host_len(told, part.sites)]);
                self.ends.push(self.text.len());
            } else {
                let place = host_text(&self.ends, host).ok_or_else(nameless)?;
                whole.extend_from_slice(&self.text[place]);
            }
            whole.extend_from_slice(told);
            let len = whole.len() - start;
            if len == 0 || len as u64 > self.url_bytes {
                return Err(Fault::new("a name's length is wrong"));
            }
            if whole.len() as u64 > part.text {
                return Err(Fault::new("it has more text than it says"));
            }
            ends.push(whole.len() as u32);
            let fingerprint = self.fingerprints.of(&whole[start..]);
            batch.fingerprints.push(fingerprint);
        }
        if whole.len() as u64 != part.text {
            return Err(Fault::new("it has less text than it says"));
        }
        std::mem::swap(whole, &mut batch.text);
        std::mem::swap(ends, &mut batch.text_ends);
        Ok(())
    }
}

fn nameless() -> Fault {
    Fault::new("a name on a host whose own is not known")
}

/// Where a host's text is.
fn host_text(ends: &[usize], host: u32) -> Option<Range<usize>> {
    let host = host as usize;
    let end = *ends.get(host)?;
    let start = host.checked_sub(1).map_or(0, |before| ends[before]);
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Entry, HashKey};
    use crate::cza::section::BlockHead;
    use crate::decode::Reason;

    fn hosts(url_bytes: u64) -> Hosts {
        Hosts::new(HashKey([1, 2]).fingerprints(), url_bytes)
    }

    /// A host's names follow each other, or do not.
    #[test]
    fn names_are_found_by_their_places() {
        let mut hosts = hosts(90);
        let on = [0, 0, 1, 0, 1, 1, 1, 0];
        for (name, host) in (7..).zip(on) {
            hosts.push(host, name);
        }
        let places = |host: u32| -> Vec<u32> {
            let list = &hosts.names[host as usize];
            let found = (0..).map_while(|place| list.name(LOCAL | place).ok());
            found.collect()
        };
        assert_eq!(places(0), [7, 8, 10, 14]);
        assert_eq!(places(1), [9, 11, 12, 13]);
        assert_eq!(hosts.len(), 2);
        assert_eq!(hosts.names[0].name(3), Ok(3));
        assert!(hosts.bytes() >= 2 * size_of::<List>() as u64 + 16);
    }

    /// All names of one host take nothing, however many there are.
    #[test]
    fn one_host_takes_no_memory() {
        let mut hosts = hosts(90);
        (0..1000).for_each(|name| hosts.push(0, name));
        assert!(hosts.bytes() < 1000);
        assert_eq!(hosts.names[0].name(LOCAL | 999), Ok(999));
    }

    /// What is foretold is what it takes, to a quarter.
    #[test]
    fn bytes_are_foretold() {
        for (names, on) in [(100_000u32, 2000), (100_000, 30_000), (1000, 1)] {
            let mut hosts = hosts(90);
            for name in 0..names {
                let next = (name.wrapping_mul(2_654_435_761) >> 8) % on;
                if next >= hosts.len() {
                    hosts.text.extend_from_slice(b"http://rose.example/");
                    hosts.ends.push(hosts.text.len());
                }
                hosts.push(next.min(hosts.len()), name);
            }
            let (foretold, taken) = (
                Hosts::rough_bytes(u64::from(names), u64::from(on)),
                hosts.bytes(),
            );
            assert!(
                taken <= foretold + foretold / 4 + 200,
                "{on}: {foretold} {taken}"
            );
            assert!(foretold <= taken + taken / 4, "{on}: {foretold} {taken}");
        }
    }

    /// A block of names on these hosts, and one record, of the first of them.
    fn block(first_host: u32, names: &[(&str, u32)], link: u32) -> (Batch, Part) {
        let mut batch = Batch::default();
        batch.sites.first_host = first_host;
        for (name, host) in names {
            batch.text.extend_from_slice(name.as_bytes());
            batch.text_ends.push(batch.text.len() as u32);
            batch.sites.names.push(*host);
        }
        batch.sites.pages.push((names[0].1, true));
        batch.links.push(link);
        batch.entries.push(Entry {
            what: crate::batch::What::Visit,
            names_end: names.len() as u32,
            links_end: 1,
            ..Entry::skipped(Reason::Malformed)
        });
        let head = BlockHead {
            hosts: true,
            sites: true,
            names: names.len() as u32,
            text: 37,
            ..BlockHead::empty(true, 0, 0)
        };
        (batch, Part::of_block(&head))
    }

    #[test]
    fn blocks_are_completed_or_refused() {
        let names = [("http://rose.example/", 0), ("garden", 0), ("", 0)];
        let read = |first_host: u32, names: &[(&str, u32)], link: u32, url_bytes: u64| {
            let (mut batch, mut part) = block(first_host, names, link);
            part.text = 20 + 26 + 20;
            let read = hosts(url_bytes).complete(&mut batch, &part);
            read.map(|()| batch).map_err(|Fault(said)| said)
        };
        let sound = read(0, &names, LOCAL, 26).unwrap();
        assert_eq!(
            sound.text,
            b"http://rose.example/http://rose.example/gardenhttp://rose.example/"
        );
        assert_eq!(sound.text_ends, [20, 46, 66]);
        let garden = hosts(26).fingerprints.of(b"http://rose.example/garden");
        assert_eq!(sound.fingerprints[1], garden);
        assert_eq!((sound.entries[0].source, &sound.links[..]), (0, &[0][..]));
        let said = |first_host, names: &[_], link, most| {
            read(first_host, names, link, most)
                .err()
                .expect("it is refused")
        };
        let unknown = said(0, &names, LOCAL | 3, 26);
        assert_eq!(unknown, "a page that its host does not have");
        assert_eq!(said(0, &names, 0, 25), "a name's length is wrong");
        let on = said(1, &names, 0, 26);
        assert_eq!(on, "its hosts do not go on from the block before");
        let less = [names[0], ("gard", 0), ("", 0)];
        assert_eq!(said(0, &less, 0, 26), "it has less text than it says");
        let more = [names[0], ("gardens", 0), ("", 0)];
        assert_eq!(said(0, &more, 0, 90), "it has more text than it says");
    }

    /// A place is known before the record, or it is not there: a reader that took a record's own new target for its
    /// page made of this an archive whose counts were wrong.
    #[test]
    fn what_comes_with_a_record_is_not_known_before() {
        let names = [("http://rose.example/", 0), ("garden", 0), ("", 0)];
        for (place, fits) in [(0, true), (1, false), (2, false)] {
            let (mut batch, mut part) = block(0, &names, LOCAL | place);
            part.text = 66;
            let mut hosts = hosts(90);
            let read = hosts.complete(&mut batch, &part);
            assert_eq!(read.is_ok(), fits, "{place}");
        }
    }

    /// What a block says that a host had before it is what it had.
    #[test]
    fn hosts_that_are_counted_wrong_are_refused() {
        for (told, fits) in [(2, true), (1, false), (3, false), (u32::MAX, false)] {
            let mut hosts = hosts(90);
            (hosts.text, hosts.ends) = (b"http://rose.example/".to_vec(), vec![20]);
            hosts.push(0, 0);
            hosts.push(0, 1);
            let (mut batch, mut part) = block(1, &[("garden", 0)], LOCAL);
            batch.sites.counted = true;
            batch.sites.before.insert(0, told);
            batch.entries[0].names_end = 3;
            (part.first_name, part.text) = (2, 26);
            let read = hosts.complete(&mut batch, &part);
            assert_eq!(read.is_ok(), fits, "{told}: {read:?}");
        }
    }

    /// Names of a host whose own was in a block that was read without its names.
    #[test]
    fn names_on_nameless_hosts_are_refused() {
        let mut hosts = hosts(90);
        hosts.push(0, 0);
        let (mut batch, part) = block(1, &[("garden", 0)], 0);
        let read = hosts.complete(&mut batch, &part);
        assert_eq!(
            read.unwrap_err().0,
            "a name on a host whose own is not known"
        );
    }
}
