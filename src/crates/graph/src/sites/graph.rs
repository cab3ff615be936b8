//! Links between sites, made from those between pages, as rows that can be ranked.

use super::{NO_SITE, Sites};
use crate::graph::{Graph, LinkRows};
use crate::model::check_room;
use crate::rows::{RowVisitor, Rows, Stop};
use crate::{Error, Result};

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
    /// Returns a description in a few words.
    pub fn about(self) -> &'static str {
        match self {
            SiteLinks::Count => "the number of links between their pages",
            SiteLinks::Pages => "the number of pages that link",
            SiteLinks::Once => "one, however many links there are",
        }
    }
}

/// Options for deriving links between sites from links between pages.
pub struct Pairing {
    /// Weight of a link.
    pub links: SiteLinks,
    /// Includes links inside a site.
    pub inside: bool,
    /// Memory limit in bytes; `None` for no limit.
    pub memory: Option<u64>,
}

/// Links between sites. A site's row has the sites that its pages link to, ascending; a site without links has no row.
pub struct SiteGraph(Graph);

impl SiteGraph {
    /// Derives the links between sites from those of pages. Pages without a site, or beyond the column, are left out
    /// with their links. Fails with [`Error::TooLarge`] if the links between sites exceed the memory.
    pub fn of_rows(rows: &dyn Rows, sites: &Sites, pairing: Pairing) -> Result<SiteGraph> {
        let mut pairs = PairSums::new(pairing.memory);
        let column = sites.column();
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
        Ok(SiteGraph(pairs.graph(sites.len(), weighted)?))
    }

    /// Returns the memory of its links, in bytes.
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

    fn walk(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.0.walk(&mut |row| {
            if row.targets.is_empty() {
                return Ok(());
            }
            visit(row)
        })
    }
}

/// Link between two sites, which are ordered like its number, and its weight.
type SitePair = (u64, u64);

/// Memory of a pair in bytes: itself and a quarter more, with half of that to sort them, or the link made of it.
const PAIR_BYTES: u64 = 32;
/// Smallest number of pairs that are collected before they are added up.
const LEAST: usize = 1 << 12;

/// Weights of pairs of sites, added up. Pairs come in any order and repeat: they are collected, and sorted and added up
/// whenever there are a quarter more than the last time.
struct PairSums {
    /// Pairs, of which the first are sorted, each once.
    pairs: Vec<SitePair>,
    /// Number of pairs at which they are added up.
    room: usize,
    memory: Option<u64>,
}

impl PairSums {
    fn new(memory: Option<u64>) -> PairSums {
        PairSums {
            pairs: Vec::new(),
            room: 0,
            memory,
        }
    }

    fn add(&mut self, from: u32, to: u32, weight: u64) -> Result<()> {
        if self.pairs.len() == self.room {
            self.sum()?;
            let pairs = self.pairs.len();
            self.room = pairs + (pairs / 4).max(LEAST);
            check_room(
                self.memory,
                self.room as u64 * PAIR_BYTES,
                || format!("the links between sites, of which there are {pairs} or more,"),
                "rank a coarser level, such as domains",
            )?;
            self.pairs.reserve_exact(self.room - pairs);
        }
        self.pairs
            .push((u64::from(from) << 32 | u64::from(to), weight));
        Ok(())
    }

    /// Sorts the pairs, and adds up equal ones.
    fn sum(&mut self) -> Result<()> {
        // A stable sort is fast where a part is sorted already.
        self.pairs.sort_by_key(|pair| pair.0);
        let mut fits = true;
        self.pairs.dedup_by(|pair, sum| {
            let is_same = pair.0 == sum.0;
            if is_same {
                // Rows require that weights sum to less than 2^63.
                sum.1 = sum.1.saturating_add(pair.1);
                fits &= sum.1 < 1 << 63;
            }
            is_same
        });
        if fits {
            return Ok(());
        }
        let text = "links from one site to another weigh 2^63 or more together";
        Err(Error::Unsupported(text.into()))
    }

    /// Returns the graph of all pairs.
    fn graph(mut self, sites: usize, weighted: bool) -> Result<Graph> {
        self.sum()?;
        let weights = if weighted { self.pairs.len() } else { 0 };
        let mut table = LinkRows::with_room(sites, self.pairs.len(), weights);
        let mut pairs = self.pairs.into_iter().peekable();
        for site in 0..sites as u64 {
            while let Some((pair, weight)) = pairs.next_if(|pair| pair.0 >> 32 == site) {
                table.link(pair as u32, weighted.then_some(weight));
            }
            table.end();
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::graph::{GraphBuilder, Links};
    use crate::model::SelfLinks;
    use crate::sites::Level;

    type Pairs = BTreeMap<(u32, u32), u64>;

    fn pairs(graph: &SiteGraph) -> Pairs {
        let mut pairs = Pairs::new();
        let mut links = 0;
        graph
            .sweep(&mut |row| {
                let links_of = Links::from(row);
                pairs.extend(links_of.iter().map(|(to, weight)| ((row.page, to), weight)));
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
        /// All three weights agree with the definition.
        #[test]
        fn site_links_are_those_of_their_pages(
            links in prop::collection::btree_set((0u32..20, 0u32..20), 0..150),
            hosts in prop::collection::vec(prop::option::weighted(0.9, 0u32..5), 20),
            inside in any::<bool>(),
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
                let pairing = Pairing { links: how, inside, memory: None };
                let found = SiteGraph::of_rows(&graph, &sites, pairing).unwrap();
                prop_assert_eq!(pairs(&found), expected(&links, &of, how, inside));
                prop_assert_eq!(found.pages(), sites.len() as u64);
                let mut row = Vec::new();
                found.row(0, &mut |of| row.extend_from_slice(of.targets)).unwrap();
                let first = pairs(&found).into_keys().filter(|pair| pair.0 == 0);
                prop_assert!(row.into_iter().eq(first.map(|pair| pair.1)));
            }
        }
    }

    /// The sums are those of a map, however often they are added up meanwhile.
    #[test]
    fn sums_are_those_of_a_map() {
        let mut pairs = PairSums::new(None);
        let mut expected = BTreeMap::new();
        for at in 0..5 * LEAST as u32 {
            let (from, to, weight) = (at * 7919 % 97, at * 31 % 101, u64::from(at % 5));
            pairs.add(from, to, weight).unwrap();
            *expected.entry((from, to)).or_insert(0) += weight;
        }
        let found = SiteGraph(pairs.graph(97, true).unwrap());
        assert_eq!(self::pairs(&found), expected);
    }

    #[test]
    fn pairs_beyond_the_memory_are_refused() {
        let mut pairs = PairSums::new(Some(2 * LEAST as u64 * PAIR_BYTES));
        let add = |to| pairs.add(0, to, 1);
        let refused = (0..u32::MAX).map(add).find_map(Result::err).unwrap();
        assert!(matches!(refused, Error::TooLarge { .. }));
        assert!(pairs.pairs.len() >= LEAST);
    }

    #[test]
    fn weights_beyond_63_bits_are_refused() {
        let mut pairs = PairSums::new(None);
        for _ in 0..2 {
            pairs.add(0, 1, 1 << 62).unwrap();
        }
        assert!(pairs.graph(2, true).is_err());
    }

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for links in SiteLinks::ALL {
            assert_eq!(links.name().parse::<SiteLinks>().unwrap(), links);
        }
        assert!("twice".parse::<SiteLinks>().is_err());
    }
}
