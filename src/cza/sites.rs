//! Sites: what a block says of a page by the host that it is on.
//!
//! Most links stay on their host, and a page's name begins with it. So a block says of every new name which host
//! it is on, by number, and speaks of the pages of a host by their place among those: small numbers where
//! the whole archive's are large. Hosts, like names, are numbered in order of first appearance, and a page's *place*
//! is the number of pages that its host had before it.
//!
//! Here is what a block says by itself. It knows the numbers of hosts, not their pages: that is completed in the order
//! of the archive ([`super::hosts`]).

use std::collections::HashMap;

use super::Fault;
use super::column::Column;

/// Marks a page told by its place on the host of the page whose record speaks of it. So names are fewer.
pub(crate) const LOCAL: u32 = 1 << 31;

/// Bytes of a name that tell its host: those of a URL's, up to the slash behind it; none, if not told by sites.
pub(super) fn host_len(name: &[u8], by_site: bool) -> usize {
    if !by_site {
        return 0;
    }
    let authority = memchr::memmem::find(name, b"://").map_or(0, |at| at + 3);
    let slash = memchr::memchr(b'/', &name[authority..]);
    slash.map_or(name.len(), |at| authority + at + 1)
}

/// The hosts of a block, while it is packed or unpacked.
#[derive(Default)]
pub(super) struct Here {
    teller: Teller,
    /// Whether it is told how many pages hosts had before the block.
    counted: bool,
    hosts: HashMap<u32, Pages>,
}

/// What is known of a host's pages.
#[derive(Default)]
pub(super) struct Pages {
    /// How many there are; without meaning if not told.
    pub all: u32,
    /// Of its known pages that had a record in the block, the last one's place; at first 0.
    pub last: u32,
}

impl Here {
    /// Before a block.
    pub fn begin(&mut self, first_host: u32, counted: bool) {
        self.teller = Teller {
            hosts: first_host,
            other: None,
        };
        self.counted = counted;
        self.hosts.clear();
    }

    /// Tells `host`, and how many pages it had `before` the block.
    pub fn tell(
        &mut self,
        host: u32,
        expected: Option<u32>,
        before: &HashMap<u32, u32>,
        columns: (&mut Column, &mut Column),
    ) -> &mut Pages {
        let known = self.teller.hosts;
        columns.0.put(self.teller.tell(host, expected));
        let counted = self.counted && host < known;
        self.hosts.entry(host).or_insert_with(|| {
            let all = before.get(&host).copied().unwrap_or(0);
            if counted {
                columns.1.put(u64::from(all));
            }
            Pages { all, last: 0 }
        })
    }

    /// The inverse of [`Here::tell`]. `is_new`: the name is, and so the host may be.
    pub fn take(
        &mut self,
        is_new: bool,
        expected: Option<u32>,
        columns: (&mut Column, &mut Column),
        before: &mut HashMap<u32, u32>,
    ) -> Result<(u32, &mut Pages), Fault> {
        let known = self.teller.hosts;
        let host = self.teller.host(columns.0.take(), expected)?;
        if host >= known && !is_new {
            return Err(Fault::new("a known page on a new host"));
        }
        let counted = self.counted && host < known;
        let pages = self.hosts.entry(host).or_insert_with(|| {
            let mut all = 0;
            if counted {
                // More than there can be are found where the block is completed.
                all = u32::try_from(columns.1.take()).unwrap_or(u32::MAX);
                before.insert(host, all);
            }
            Pages { all, last: 0 }
        });
        Ok((host, pages))
    }
}

impl Pages {
    /// Takes a new page, and gives its place.
    pub fn add(&mut self) -> Result<u32, Fault> {
        let place = self.all;
        if place >= LOCAL {
            return Err(Fault::new("a host has more pages than it can"));
        }
        self.all += 1;
        Ok(place)
    }
}

/// How a host is told: by what it has in common with others.
#[derive(Default)]
struct Teller {
    /// Hosts so far.
    hosts: u32,
    /// The last host told that was not the expected one.
    other: Option<u32>,
}

/// Numbers before those of hosts.
const RELATIONS: u64 = 3;

impl Teller {
    /// The number that tells `host`, where `expected` is likely.
    fn tell(&mut self, host: u32, expected: Option<u32>) -> u64 {
        if expected == Some(host) {
            return 0;
        }
        let told = if host == self.hosts {
            self.hosts += 1;
            1
        } else if self.other == Some(host) {
            2
        } else {
            RELATIONS + u64::from(host)
        };
        self.other = Some(host);
        told
    }

    /// The host that `told` tells.
    fn host(&mut self, told: u64, expected: Option<u32>) -> Result<u32, Fault> {
        let wrong = || Fault::new("a host that is not known");
        let host = match told {
            0 => return expected.ok_or_else(wrong),
            1 => {
                let host = self.hosts;
                let next = host.checked_add(1).filter(|&next| next < LOCAL);
                self.hosts = next.ok_or_else(|| Fault::new("more hosts than there can be"))?;
                host
            }
            2 => self.other.ok_or_else(wrong)?,
            _ => {
                let host = u32::try_from(told - RELATIONS).ok();
                host.filter(|&host| host < self.hosts).ok_or_else(wrong)?
            }
        };
        self.other = Some(host);
        Ok(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cza::column::Streams;
    use proptest::prelude::*;

    #[test]
    fn a_host_is_a_url_up_to_its_path() {
        for (name, host) in [
            ("https://rose.example/garden", "https://rose.example/"),
            ("https://rose.example/", "https://rose.example/"),
            ("http://rose.example:8080/a//b", "http://rose.example:8080/"),
            ("https://rose.example", "https://rose.example"),
            ("rose/garden", "rose/"),
            ("rose", "rose"),
        ] {
            assert_eq!(host_len(name.as_bytes(), true), host.len(), "{name}");
            assert_eq!(host_len(name.as_bytes(), false), 0);
        }
    }

    /// The numbers of the table in `formats/cza.md`, by hand.
    #[test]
    fn hosts_are_told_by_the_table() {
        let mut teller = Teller {
            hosts: 5,
            other: None,
        };
        let told = [
            (5, None, 1),
            (5, Some(5), 0),
            (2, Some(5), 5),
            (5, Some(5), 0),
            (2, Some(5), 2),
            (6, Some(5), 1),
            (2, Some(5), 5),
        ];
        for (host, expected, number) in told {
            assert_eq!(teller.tell(host, expected), number);
        }
        assert_eq!(teller.hosts, 7);
    }

    #[test]
    fn hosts_that_are_not_known_are_refused() {
        let refused = |hosts: u32, told: u64, expected: Option<u32>| {
            let mut teller = Teller { hosts, other: None };
            teller.host(told, expected).unwrap_err().0
        };
        for (told, expected) in [(0, None), (2, Some(1)), (3 + 5, None), (u64::MAX, None)] {
            assert_eq!(refused(5, told, expected), "a host that is not known");
        }
        assert_eq!(refused(LOCAL - 1, 1, None), "more hosts than there can be");
    }

    proptest! {
        /// What one side tells the other takes, counts of hosts included.
        #[test]
        fn hosts_come_back(
            told in prop::collection::vec((0u32..8, 0u32..8), 0..60),
            counted: bool,
        ) {
            let first = 4;
            let before: HashMap<u32, u32> = (0..first).map(|host| (host, 10 * host)).collect();
            let [mut hosts, mut counts] = [Column::default(), Column::default()];
            let (mut here, mut known) = (Here::default(), first);
            here.begin(first, counted);
            let mut all = Vec::new();
            for (host, expected) in told {
                let host = host.min(known);
                let expected = (expected < known).then_some(expected);
                known = known.max(host + 1);
                let pages = here.tell(host, expected, &before, (&mut hosts, &mut counts));
                all.push((host, expected, pages.add().unwrap()));
            }
            let mut part = Vec::new();
            let mut packer = zstd::bulk::Compressor::new(1).unwrap();
            for column in [&hosts, &counts] {
                column.put_into(&mut part, &mut packer).unwrap();
            }
            let mut unpacker = zstd::bulk::Decompressor::new().unwrap();
            let mut streams = Streams::new(&part, &mut unpacker, 1 << 12);
            streams.column(&mut hosts).unwrap();
            streams.column(&mut counts).unwrap();
            here.begin(first, counted);
            let mut places: HashMap<u32, u32> = HashMap::new();
            for (host, expected, place) in all {
                let (found, pages) =
                    here.take(true, expected, (&mut hosts, &mut counts), &mut HashMap::new()).unwrap();
                prop_assert_eq!(found, host);
                let next = places.entry(host).or_insert(match before.get(&host) {
                    Some(&before) if counted => before,
                    _ => pages.all,
                });
                prop_assert_eq!(pages.add().unwrap(), *next);
                prop_assert!(!counted || place == *next);
                *next += 1;
            }
            hosts.end().unwrap();
            counts.end().unwrap();
        }
    }

    #[test]
    fn a_known_page_is_on_a_known_host() {
        let mut hosts = Column::default();
        hosts.put(1);
        let mut part = Vec::new();
        let mut packer = zstd::bulk::Compressor::new(1).unwrap();
        hosts.put_into(&mut part, &mut packer).unwrap();
        let mut unpacker = zstd::bulk::Decompressor::new().unwrap();
        Streams::new(&part, &mut unpacker, 1 << 12)
            .column(&mut hosts)
            .unwrap();
        let mut here = Here::default();
        here.begin(0, false);
        let columns = (&mut hosts, &mut Column::default());
        let told = here.take(false, None, columns, &mut HashMap::new());
        let Err(Fault(said)) = told else {
            panic!("it is taken");
        };
        assert_eq!(said, "a known page on a new host");
    }
}
