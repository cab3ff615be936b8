//! Links between sites, made from those between pages, as rows that can be ranked.
//!
//! Pairs of sites come in any order and repeat: they are sorted, externally if they are many, and added up.

use std::path::Path;

use super::{NO_SITE, Sites};
use crate::Result;
use crate::codec::varint::be_number;
use crate::disk::ExternalSorter;
use crate::graph::Graph;
use crate::model::check_room;
use crate::rows::Rows;

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
        /// One, however many links there are.
        Once = "once",
    }
}

impl SiteLinks {
    pub fn about(self) -> &'static str {
        match self {
            SiteLinks::Count => "the number of links between their pages",
            SiteLinks::Once => "one, however many links there are",
        }
    }
}

pub struct Pairing<'f> {
    pub links: SiteLinks,
    pub memory: Option<u64>,
    /// Folder of temporary files for pairs of linked sites that exceed a third of the memory, or 256 MiB, while they are
    /// sorted.
    pub folder: &'f Path,
}

/// Derives the links between sites from those of pages: the row of a site has the sites that its pages link to,
/// ascending. Links inside a site do not count. Pages without a site, or beyond the column, are left out. Fails with
/// [`crate::Error::TooLarge`] if the links exceed the memory.
pub fn site_graph(rows: &dyn Rows, sites: &Sites, pairing: Pairing<'_>) -> Result<Graph> {
    let third = pairing.memory.map_or(u64::MAX, |memory| memory / 3);
    let sorting = third.min(SORTING_BYTES);
    let mut pairs = ExternalSorter::new(sorting as usize, pairing.folder);
    let of = |page: u32| sites.column.get(page as usize).copied().unwrap_or(NO_SITE);
    let mut reached = Vec::new();
    rows.sweep(&mut |row| {
        let from = of(row.page);
        if from == NO_SITE {
            return Ok(());
        }
        reached.clear();
        let targets = row.links().map(of);
        reached.extend(targets.filter(|&to| to != NO_SITE && to != from));
        reached.sort_unstable();
        for same in reached.chunk_by(|a, b| a == b) {
            let weight = match pairing.links {
                SiteLinks::Count => same.len() as u32,
                SiteLinks::Once => 1,
            };
            let pair = [from.to_be_bytes(), same[0].to_be_bytes()];
            pairs.push(pair.as_flattened(), &weight.to_be_bytes())?;
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
    let mut last: Option<(u64, u64)> = None;
    for record in pairs.sorted()? {
        let (pair, weight) = record?;
        let (pair, weight) = (be_number(&pair), be_number(&weight));
        match &mut last {
            Some((same, sum)) if *same == pair => *sum += weight,
            last => {
                if let Some((pair, sum)) = last.replace((pair, weight)) {
                    table.link(pair as u32, weighted.then_some(sum));
                }
                while table.nodes() < (pair >> 32) as usize {
                    table.end();
                    check(&table)?;
                }
            }
        }
    }
    if let Some((pair, sum)) = last {
        table.link(pair as u32, weighted.then_some(sum));
    }
    while table.nodes() < sites.len() {
        table.end();
    }
    check(&table)?;
    Ok(table)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use cashrank_base::folder::in_memory;
    use proptest::prelude::*;

    use super::*;
    use crate::Error;
    use crate::graph::GraphBuilder;
    use crate::model::SelfLinks;
    use crate::sites::Level;

    type Pairs = BTreeMap<(u32, u32), u64>;

    fn pairs(graph: &Graph) -> Pairs {
        let mut pairs = Pairs::new();
        let mut links = 0;
        graph
            .sweep(&mut |row| {
                pairs.extend(row.iter().map(|(to, weight)| ((row.page, to), weight)));
                links += row.targets.len();
                Ok(())
            })
            .unwrap();
        assert_eq!(links, graph.links());
        pairs
    }

    /// Computes the links by definition, one by one.
    fn expected(links: &BTreeSet<(u32, u32)>, of: &[Option<u32>], how: SiteLinks) -> Pairs {
        let mut pages: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for &(from, to) in links {
            if let (Some(a), Some(b)) = (of[from as usize], of[to as usize])
                && a != b
            {
                pages.entry((a, b)).or_default().push(from);
            }
        }
        let weight = |from: Vec<u32>| match how {
            SiteLinks::Count => from.len() as u64,
            SiteLinks::Once => 1,
        };
        pages
            .into_iter()
            .map(|(pair, from)| (pair, weight(from)))
            .collect()
    }

    proptest! {
        /// In memory and on disk, both weights agree with the definition.
        #[test]
        fn site_links_are_those_of_their_pages(
            links in prop::collection::btree_set((0u32..20, 0u32..20), 0..150),
            hosts in prop::collection::vec(prop::option::weighted(0.9, 0u32..5), 20),
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
                let pairing = Pairing { links: how, memory, folder: folder.path() };
                let found = site_graph(&graph, &sites, pairing).unwrap();
                prop_assert_eq!(pairs(&found), expected(&links, &of, how));
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
                memory: Some(memory),
                folder: folder.path(),
            };
            site_graph(&graph, &sites, pairing)
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
