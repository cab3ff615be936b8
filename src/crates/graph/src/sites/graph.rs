//! Links between sites, made from those between pages, as rows that can be ranked.
//!
//! Pairs of sites come in any order and repeat. They are collected, and sorted and added up whenever the memory is full.
//! If more than half of it is still in use by then, the pairs are moved to an external sorter.

use std::path::{Path, PathBuf};

use super::{NO_SITE, Sites};
use crate::disk::ExternalSorter;
use crate::graph::Graph;
use crate::model::check_room;
use crate::rows::{Rows, RowsVisitor, Stop};
use crate::{Error, Result};

/// Maximum memory in which pairs of linked sites are sorted, in bytes.
const SORTING_BYTES: u64 = 256 << 20;

cashrank_base::words! {
    /// Weight of a link from one site to another. A link between pages counts as one whatever its weight, unless that
    /// is 0.
    #[derive(Default)]
    SiteLinks {
        /// Number of links from pages of the one site to pages of the other.
        #[default]
        Count = "count",
        /// Number of pages of the one site that link to the other.
        Pages = "pages",
        /// One, however many links there are.
        Once = "once",
    }
}

impl SiteLinks {
    pub fn about(self) -> &'static str {
        match self {
            SiteLinks::Count => "the number of links between their pages",
            SiteLinks::Pages => "the number of pages that link",
            SiteLinks::Once => "one, however many links there are",
        }
    }
}

pub struct Pairing {
    pub links: SiteLinks,
    /// Includes links inside a site.
    pub inside: bool,
    pub memory: Option<u64>,
    /// Folder of temporary files for pairs of linked sites that exceed a third of the memory, or 256 MiB, while they are
    /// sorted.
    pub folder: PathBuf,
}

/// Links between sites. A site's row has the sites that its pages link to, ascending; a site without links has no row.
pub struct SiteGraph(Graph);

impl SiteGraph {
    /// Derives the links between sites from those of pages. Pages without a site, or beyond the column, are left out.
    /// Fails with [`crate::Error::TooLarge`] if the links exceed the memory.
    pub fn of_rows(rows: &dyn Rows, sites: &Sites, pairing: Pairing) -> Result<SiteGraph> {
        let third = pairing.memory.map_or(u64::MAX, |memory| memory / 3);
        let sorting = third.min(SORTING_BYTES);
        let mut pairs = PairSums::new(sorting, &pairing.folder);
        let column = &sites.column;
        let mut reached = Vec::new();
        rows.sweep(&mut |row| {
            let of = |page: u32| column.get(page as usize).copied().unwrap_or(NO_SITE);
            let from = of(row.page);
            if from == NO_SITE {
                return Ok(());
            }
            reached.clear();
            let targets = row.links().map(of);
            let inside = pairing.inside;
            reached.extend(targets.filter(|&to| to != NO_SITE && (inside || to != from)));
            reached.sort_unstable();
            for same in reached.chunk_by(|a, b| a == b) {
                let weight = match pairing.links {
                    SiteLinks::Count => same.len() as u64,
                    SiteLinks::Pages | SiteLinks::Once => 1,
                };
                pairs.add(from, same[0], weight)?;
            }
            Ok(())
        })?;
        let weighted = pairing.links != SiteLinks::Once;
        let check = |table: &Graph| {
            check_room(
                pairing.memory,
                sorting + table.bytes(),
                || {
                    let links = table.links();
                    format!("the links between sites, of which there are {links} or more,")
                },
                "rank a coarser level, such as domains",
            )
        };
        let mut table = Graph::default();
        pairs.finish(&mut |pair| {
            let (from, to) = sites_of(pair);
            while table.nodes() < from as usize {
                table.end();
                check(&table)?;
            }
            table.link(to, weighted.then_some(pair[1]));
            Ok(())
        })?;
        while table.nodes() < sites.len() {
            table.end();
        }
        check(&table)?;
        Ok(SiteGraph(table))
    }

    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

impl Rows for SiteGraph {
    fn pages(&self) -> u64 {
        self.0.pages()
    }

    fn links(&self) -> u64 {
        Rows::links(&self.0)
    }

    fn walk(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        self.0.walk(&mut |rows| {
            let mut rows = rows.iter().filter(|row| !row.targets.is_empty());
            rows.try_for_each(|row| visit(std::slice::from_ref(row)))
        })
    }
}

/// Weighted link between two sites: from x 2^32 + to, and the weight.
type SitePair = [u64; 2];

/// Memory per pair in bytes: the pair, half of that to sort it, and as much for the external sorter.
const PAIR_BYTES: u64 = 2 * size_of::<SitePair>() as u64;

/// Returns (from, to) of a pair.
fn sites_of(pair: SitePair) -> (u32, u32) {
    ((pair[0] >> 32) as u32, pair[0] as u32)
}

/// Adds up the weights of a pair. Rows require that weights sum to less than 2^63.
fn sum(one: u64, other: u64) -> Result<u64> {
    let sum = one.checked_add(other).filter(|sum| *sum < 1 << 63);
    sum.ok_or_else(|| {
        let text = "links from one site to another weigh 2^63 or more together";
        Error::Unsupported(text.into())
    })
}

struct PairSums {
    /// Pairs in memory, of which the first are sorted, each once.
    held: Vec<SitePair>,
    /// Number of pairs at which they are added up.
    room: usize,
    sorter: ExternalSorter,
    is_spilled: bool,
}

impl PairSums {
    /// Returns sums that take `memory` bytes; the rest is spilled to a file in `folder`.
    pub fn new(memory: u64, folder: &Path) -> PairSums {
        let room = ((memory / PAIR_BYTES) as usize).max(2);
        PairSums {
            // Only what is used takes memory.
            held: Vec::with_capacity(room),
            room,
            sorter: ExternalSorter::new(room * size_of::<SitePair>() / 2, folder),
            is_spilled: false,
        }
    }

    pub fn add(&mut self, from: u32, to: u32, weight: u64) -> Result<()> {
        if self.held.len() == self.room {
            self.sum()?;
            if self.held.len() > self.room / 2 {
                self.spill()?;
            }
        }
        self.held
            .push([u64::from(from) << 32 | u64::from(to), weight]);
        Ok(())
    }

    /// Sorts the pairs in memory, and adds up equal ones.
    fn sum(&mut self) -> Result<()> {
        // A stable sort is fast where a part is sorted already.
        self.held.sort_by_key(|pair| pair[0]);
        let mut failed = Ok(());
        self.held.dedup_by(|pair, first| {
            let is_same = pair[0] == first[0];
            if is_same {
                match sum(first[1], pair[1]) {
                    Ok(sum) => first[1] = sum,
                    Err(error) => failed = Err(error),
                }
            }
            is_same
        });
        failed
    }

    fn spill(&mut self) -> Result<()> {
        self.is_spilled = true;
        let sorter = &mut self.sorter;
        let mut pairs = self.held.drain(..);
        pairs.try_for_each(|[key, weight]| sorter.push(&key.to_be_bytes(), &weight.to_be_bytes()))
    }

    /// Calls `visit` with each pair, once, in ascending order.
    pub fn finish(mut self, visit: &mut dyn FnMut(SitePair) -> Result<()>) -> Result<()> {
        self.sum()?;
        if !self.is_spilled {
            return self.held.into_iter().try_for_each(visit);
        }
        self.spill()?;
        drop(self.held);
        let mut last: Option<SitePair> = None;
        for record in self.sorter.sorted()? {
            let (key, weight) = record?;
            let pair = [key, weight].map(|bytes| bytes.try_into().map_or(0, u64::from_be_bytes));
            match &mut last {
                Some(last) if last[0] == pair[0] => last[1] = sum(last[1], pair[1])?,
                last => last.replace(pair).map_or(Ok(()), &mut *visit)?,
            }
        }
        last.map_or(Ok(()), visit)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use cashrank_base::folder::in_memory;
    use proptest::prelude::*;

    use super::*;
    use crate::graph::GraphBuilder;
    use crate::model::SelfLinks;
    use crate::sites::Level;

    type Pairs = BTreeMap<(u32, u32), u64>;

    fn pairs(graph: &SiteGraph) -> Pairs {
        let mut pairs = Pairs::new();
        let mut links = 0;
        graph
            .sweep(&mut |row| {
                pairs.extend(row.iter().map(|(to, weight)| ((row.page, to), weight)));
                links += row.targets.len() as u64;
                Ok(())
            })
            .unwrap();
        assert_eq!(links, graph.links());
        pairs
    }

    /// Computes the links by definition, one by one.
    fn expected(
        links: &BTreeSet<(u32, u32)>,
        of: &[Option<u32>],
        how: SiteLinks,
        inside: bool,
    ) -> Pairs {
        let mut pages: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for &(from, to) in links {
            if let (Some(a), Some(b)) = (of[from as usize], of[to as usize])
                && (inside || a != b)
            {
                pages.entry((a, b)).or_default().push(from);
            }
        }
        let weight = |mut from: Vec<u32>| match how {
            SiteLinks::Count => from.len() as u64,
            SiteLinks::Once => 1,
            SiteLinks::Pages => {
                from.dedup();
                from.len() as u64
            }
        };
        pages
            .into_iter()
            .map(|(pair, from)| (pair, weight(from)))
            .collect()
    }

    proptest! {
        /// In memory and on disk, all three weights agree with the definition.
        #[test]
        fn site_links_are_those_of_their_pages(
            links in prop::collection::btree_set((0u32..20, 0u32..20), 0..150),
            hosts in prop::collection::vec(prop::option::weighted(0.9, 0u32..5), 20),
            inside in any::<bool>(),
            pairs_bytes in prop::sample::select(vec![2000, 3000, 3 << 20]),
        ) {
            prop_assume!(hosts.iter().any(Option::is_some));
            let name = |host: &Option<u32>| host.map_or("none".into(), |host| format!("http://h{host}.example/"));
            let names: Vec<String> = hosts.iter().map(name).collect();
            let sites = Sites::of_names(Level::Host, None, names.iter().map(String::as_bytes)).unwrap();
            let of: Vec<Option<u32>> = (0..20).map(|page| sites.site(page).map(|site| site as u32)).collect();
            let mut builder = GraphBuilder::new(SelfLinks::Keep);
            builder.grow(20);
            for page in 0..20 {
                builder.row(page, links.iter().filter(|link| link.0 == page).map(|link| link.1));
            }
            let graph = builder.build();
            for how in SiteLinks::ALL {
                let folder = in_memory();
                let memory = Some(pairs_bytes);
                let pairing = Pairing { links: how, inside, memory, folder: folder.path().into() };
                let found = SiteGraph::of_rows(&graph, &sites, pairing).unwrap();
                prop_assert_eq!(pairs(&found), expected(&links, &of, how, inside));
                prop_assert_eq!(found.pages(), sites.len() as u64);
            }
        }
    }

    /// A table that takes more than the memory is refused, while it is made or at its end.
    #[test]
    fn links_beyond_the_memory_are_refused() {
        let names = (0..100).map(|host| format!("http://h{host}.example/"));
        let names: Vec<String> = names.collect();
        let names = names.iter().map(String::as_bytes);
        let sites = Sites::of_names(Level::Host, None, names).unwrap();
        let targets: Vec<u32> = (0..100).collect();
        let graph = Graph::of_pairs(100, &[7; 100], &targets, SelfLinks::Drop);
        let folder = in_memory();
        let links = |memory| {
            let pairing = Pairing {
                links: SiteLinks::Count,
                inside: false,
                memory: Some(memory),
                folder: folder.path().into(),
            };
            SiteGraph::of_rows(&graph, &sites, pairing)
        };
        let need = links(1 << 20).unwrap().bytes();
        assert_eq!(need, 100 * 8 + 99 * (4 + 8));
        // A third of the memory sorts pairs.
        assert!(links(3 * need / 2).is_ok());
        assert!(matches!(
            links(3 * need / 2 - 3),
            Err(Error::TooLarge { .. })
        ));
    }

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for links in SiteLinks::ALL {
            assert_eq!(links.name().parse::<SiteLinks>().unwrap(), links);
        }
        assert!("twice".parse::<SiteLinks>().is_err());
    }
}

#[cfg(test)]
mod pair_tests {
    use std::collections::BTreeMap;
    use std::fs;

    use cashrank_base::folder::in_memory;
    use proptest::prelude::*;

    use super::*;

    fn all(sums: PairSums) -> Vec<((u32, u32), u64)> {
        let mut all = Vec::new();
        let found = sums.finish(&mut |pair| {
            all.push((sites_of(pair), pair[1]));
            Ok(())
        });
        found.unwrap();
        all
    }

    proptest! {
        /// The sums are those of a map, whatever fits into memory.
        #[test]
        fn sums_do_not_depend_on_the_room(
            pairs in prop::collection::vec((0u32..12, 0u32..12, 1u64..9), 0..300),
            bytes in 0u64..6000,
        ) {
            let mut expected = BTreeMap::new();
            let folder = in_memory();
            let mut sums = PairSums::new(bytes, folder.path());
            for &(from, to, weight) in &pairs {
                *expected.entry((from, to)).or_insert(0) += weight;
                sums.add(from, to, weight).unwrap();
            }
            prop_assert!(all(sums).into_iter().eq(expected));
            prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a temporary file is left");
        }
    }

    /// The sums are those of a map, however often they are added up meanwhile, and whether they are spilled.
    #[test]
    fn sums_are_those_of_a_map() {
        let folder = in_memory();
        // There are 97 x 101 different pairs.
        for (pairs, is_spilled) in [(1 << 15, false), (1 << 12, true)] {
            let mut sums = PairSums::new(pairs as u64 * PAIR_BYTES, folder.path());
            let mut expected = BTreeMap::new();
            for at in 0..200_000u32 {
                let (from, to) = (at * 7919 % 97, at * 31 % 101);
                let weight = u64::from(at % 5);
                sums.add(from, to, weight).unwrap();
                *expected.entry((from, to)).or_insert(0) += weight;
            }
            assert_eq!(sums.is_spilled, is_spilled);
            assert!(all(sums).into_iter().eq(expected));
        }
    }

    #[test]
    fn weights_beyond_63_bits_are_refused() {
        let folder = in_memory();
        for pairs in [2, 1 << 20] {
            let mut sums = PairSums::new(pairs * PAIR_BYTES, folder.path());
            let mut add = |to, weight| sums.add(0, to, weight);
            add(1, 1 << 62).unwrap();
            // They are added up in memory, or while spilled pairs are merged.
            let added = (2..6)
                .try_for_each(|to| add(to, 1))
                .and_then(|()| add(1, 1 << 62));
            let finished = added.and_then(|()| sums.finish(&mut |_| Ok(())));
            assert!(matches!(finished, Err(Error::Unsupported(_))));
        }
    }
}
