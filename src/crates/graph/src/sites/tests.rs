use std::collections::{BTreeMap, BTreeSet};

use cashrank_base::folder::in_memory;
use proptest::prelude::*;

use super::*;
use crate::graph::GraphBuilder;
use crate::model::SelfLinks;

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
            let found = site_graph(&graph, &sites, how, memory, folder.path()).unwrap();
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
    let count = SiteLinks::Count;
    let links = |memory| site_graph(&graph, &sites, count, Some(memory), folder.path());
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

#[test]
fn sites_are_numbered_as_they_appear() {
    let names = [
        "http://b.example/1",
        "opaque",
        "http://a.example/",
        "https://b.example:8/2",
    ];
    let names = names.map(str::as_bytes);
    let sites = Sites::of_names(Level::Host, None, names).unwrap();
    assert_eq!(sites.column, [0, NO_SITE, 1, 0]);
    assert!(sites.names().eq(["b.example", "a.example"]));
    assert_eq!(sites.without, 1);
    assert_eq!(
        (sites.site(1), sites.site(3), sites.site(9)),
        (None, Some(0), None)
    );
}

#[test]
fn without_hosts_or_room_it_is_refused() {
    let none = Sites::of_names(Level::Domain, None, [&b"a"[..], b"b"]).unwrap_err();
    assert!(none.to_string().contains("none of the 2 pages has a host"));
    let names: Vec<String> = (0..LOOK_EVERY)
        .map(|n| format!("http://h{n}.example/"))
        .collect();
    let names = || names.iter().map(String::as_bytes);
    let small = Sites::of_names(Level::Host, Some(100_000), names()).unwrap_err();
    assert!(matches!(small, Error::TooLarge { .. }));
    assert!(small.to_string().contains("16384 pages or more needs"));
    // The reserved bytes leave no room.
    let mut beside = SitesBuilder::new(Level::Host, Some(1_000), 1_001);
    let none = beside.add(b"http://h.example/").unwrap_err();
    assert!(none.to_string().contains("finding sites needs"));
    Sites::of_names(Level::Host, Some(10_000_000), names()).unwrap();
}

#[test]
fn pages_of_a_site_are_added_up() {
    let names = [
        "http://a/1",
        "http://b/1",
        "http://a/2",
        "none",
        "http://a/3",
    ];
    let sites = Sites::of_names(Level::Host, None, names.map(str::as_bytes)).unwrap();
    let mut totals = vec![SiteTotal::default(); sites.len()];
    let pages = [
        (0.125, Some(5)),
        (0.5, None),
        (0.25, Some(9)),
        (0.0625, Some(99)),
        (0.25, None),
    ];
    for (page, (importance, last_fetch)) in (0..).map(PageId).zip(pages) {
        let fetches = Fetches {
            visits: page.0,
            last: last_fetch,
            ..Fetches::default()
        };
        if let Some(site) = sites.site(page.index()) {
            totals[site].add(page, importance, &fetches);
        }
    }
    let of = |total: &SiteTotal| {
        (
            total.importance(),
            total.pages,
            total.largest,
            total.best.0,
            total.visits,
        )
    };
    assert_eq!(of(&totals[0]), (0.625, 3, 0.25, 2, 6));
    assert_eq!(of(&totals[1]), (0.5, 1, 0.5, 1, 1));
    assert_eq!(
        (totals[0].last_fetch, totals[1].last_fetch),
        (Some(9), None)
    );
}

/// In any order, the best page is the most important of those that are not gone, or of all if all are. The largest
/// importance is that of any page.
#[test]
fn the_best_page_is_not_gone() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        for (gone, best) in [
            ([true, false, false], 1),
            ([true, true, false], 2),
            ([true; 3], 0),
        ] {
            let mut total = SiteTotal::default();
            for page in order {
                let fetches = Fetches {
                    visits: 1,
                    gone: gone[page as usize],
                    ..Fetches::default()
                };
                let importance = [0.5, 0.25, 0.125][page as usize];
                total.add(PageId(page), importance, &fetches);
            }
            assert_eq!(
                (total.best.0, total.largest),
                (best, 0.5),
                "{order:?} {gone:?}"
            );
        }
    }
}
