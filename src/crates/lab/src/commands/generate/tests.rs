//! Promises of the model, checked on the generated text itself.

use std::collections::{HashMap, HashSet};

use super::crawl::{Config, Crawl};
use super::mix::{Permutation, mix, root, scale};
use super::text::Text;
use super::{Args, Format, names, push_adjacency, push_record, write};

fn options(pages: u64, links: u64) -> Args {
    Args {
        pages,
        crawled: None,
        links,
        seed: 1,
        format: Format::Adjacency,
        recrawl: 0,
        change: 0.0,
        inside: 0.25,
    }
}

fn text(options: &Args) -> String {
    let mut out = Vec::new();
    write(options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Parses (page, targets) of every line of `adjacency`.
fn rows(text: &str) -> Vec<(u64, Vec<u64>)> {
    let row = |line: &str| {
        let mut numbers = line.split('\t').map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.collect())
    };
    text.lines().map(row).collect()
}

fn crawl(pages: u64, links: u64) -> Crawl {
    Crawl::new(Config {
        pages,
        crawled: pages,
        links,
        seed: 1,
        change: 0.1,
        inside: 0.25,
    })
}

#[test]
fn same_arguments_same_bytes_and_another_seed_another_crawl() {
    for format in [Format::Records, Format::Adjacency, Format::Edges] {
        let one = Args {
            format,
            recrawl: 1,
            change: 0.5,
            ..options(3_000, 30_000)
        };
        let other = Args {
            seed: 2,
            ..options(3_000, 30_000)
        };
        let other = Args {
            format,
            recrawl: 1,
            change: 0.5,
            ..other
        };
        assert_eq!(text(&one), text(&one));
        assert_ne!(text(&one), text(&other));
    }
}

#[test]
fn every_pass_fetches_every_page_once_in_another_order_with_all_links() {
    for (pages, links) in [
        (1, 0),
        (1, 5),
        (7, 3),
        (100, 2_000),
        (5_000, 1),
        (9_999, 123_456),
    ] {
        let text = text(&Args {
            recrawl: 2,
            change: 0.3,
            ..options(pages, links)
        });
        let rows = rows(&text);
        assert_eq!(rows.len() as u64, 3 * pages);
        let passes: Vec<_> = rows.chunks(pages as usize).collect();
        for pass in &passes {
            let seen: HashSet<u64> = pass.iter().map(|row| row.0).collect();
            assert_eq!(seen, (0..pages).collect());
            assert_eq!(
                pass.iter().map(|row| row.1.len() as u64).sum::<u64>(),
                links
            );
            assert!(
                pass.iter()
                    .all(|row| row.1.iter().all(|&target| target < pages))
            );
        }
        if pages >= 100 {
            let order = |pass: &[(u64, Vec<u64>)]| pass.iter().map(|row| row.0).collect::<Vec<_>>();
            assert_ne!(order(passes[0]), order(passes[1]));
        }
    }
}

#[test]
fn of_the_pages_that_are_not_crawled_each_is_known_from_a_crawled_one() {
    for (pages, crawled, links) in [
        (1, 1, 0),
        (2, 1, 1),
        (7, 1, 6),
        (129, 17, 112),
        (10_007, 1_251, 50_000),
        (20_000, 8_000, 80_000),
        (20_000, 19_999, 5),
    ] {
        let text = text(&Args {
            crawled: Some(crawled),
            recrawl: 1,
            change: 0.5,
            ..options(pages, links)
        });
        let rows = rows(&text);
        assert_eq!(rows.len() as u64, 2 * crawled);
        let visited = |pass: &[(u64, Vec<u64>)]| pass.iter().map(|row| row.0).collect();
        let (first, second) = rows.split_at(crawled as usize);
        let (fetched, again): (HashSet<u64>, HashSet<u64>) = (visited(first), visited(second));
        assert_eq!(fetched.len() as u64, crawled);
        assert_eq!(fetched, again);
        for pass in [first, second] {
            let targets = || pass.iter().flat_map(|row| &row.1);
            assert_eq!(targets().count() as u64, links);
            let known: HashSet<u64> = targets().chain(&fetched).copied().collect();
            assert_eq!(known, (0..pages).collect(), "{pages} {crawled} {links}");
        }
    }
}

#[test]
fn every_host_has_crawled_pages_first() {
    let crawl = Crawl::new(Config {
        pages: 1_000_003,
        crawled: 125_001,
        links: 1_000_000,
        seed: 1,
        change: 0.0,
        inside: 0.25,
    });
    let mut numbers = 0..125_001;
    let mut page = 0;
    while page < 1_000_003 {
        let host = crawl.host(page);
        let first = crawl.row(numbers.next().unwrap());
        assert_eq!((first.page, first.host), (host.first_page, host));
        page += host.pages;
        // The host's other pages follow: an eighth of its pages, rounded up or down.
        let more = |row: &Option<u64>| row.is_some_and(|n| crawl.row(n).host == host);
        let mut here = 1;
        while more(&numbers.clone().next()) {
            let row = crawl.row(numbers.next().unwrap());
            assert_eq!(row.page, host.first_page + here);
            here += 1;
        }
        assert!(
            here.abs_diff(host.pages / 8) <= 1,
            "{here} of {}",
            host.pages
        );
    }
    assert!(numbers.is_empty());
}

#[test]
fn what_cannot_be_generated_is_refused() {
    let check = |pages, crawled, links| {
        let of = Args {
            crawled: Some(crawled),
            ..options(pages, links)
        };
        of.config().check()
    };
    assert!(check(1_000, 125, 875).is_ok());
    for (pages, crawled, links) in [
        (1_000, 124, 9_000),
        (1_000, 1_001, 9_000),
        (1_000, 0, 9_000),
    ] {
        assert!(
            check(pages, crawled, links)
                .unwrap_err()
                .contains("--crawled")
        );
    }
    assert!(check(1_000, 125, 874).unwrap_err().contains("--links"));
    assert!(check(1_000, 500, 450_500).is_ok());
    assert!(check(1_000, 500, 450_501).unwrap_err().contains("--links"));
    assert!(check(1_000, 500, u64::MAX).unwrap_err().contains("--links"));
}

#[test]
fn edges_are_the_adjacency_lists_link_by_link() {
    let of = |format| {
        text(&Args {
            format,
            crawled: Some(1_000),
            recrawl: 1,
            change: 0.5,
            ..options(3_000, 30_000)
        })
    };
    let edges: String = rows(&of(Format::Adjacency))
        .iter()
        .flat_map(|(page, targets)| targets.iter().map(move |to| format!("{page}\t{to}\n")))
        .collect();
    assert_eq!(of(Format::Edges), edges);
}

#[test]
fn records_are_json_with_distinct_urls_of_web_like_length() {
    let text = text(&Args {
        format: Format::Records,
        ..options(20_000, 200_000)
    });
    let (mut urls, mut links, mut bytes) = (HashSet::new(), 0, 0);
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["status"], 200);
        let url = record["url"].as_str().unwrap();
        assert_eq!(url::Url::parse(url).unwrap().as_str(), url, "not canonical");
        bytes += url.len();
        assert!(urls.insert(url.to_owned()), "{url} twice");
        links += record["links"].as_array().unwrap().len();
    }
    assert_eq!((urls.len(), links), (20_000, 200_000));
    let mean = bytes as f64 / 20_000.0;
    assert!((55.0..75.0).contains(&mean), "mean URL length {mean}");
    assert!(text.starts_with("{\"url\":\"https://"));
    assert!(
        text.contains("\"fetched_at\":\"2024-01-01T00:03:19Z\""),
        "record 19,999 is in it"
    );
    assert!(!text.contains("T00:03:20Z"));
}

/// Clauset, Shalizi and Newman, "Power-law distributions in empirical data" (2009), formula 3.7.
fn exponent(values: &[u64], from: u64) -> f64 {
    let logs: Vec<f64> = values
        .iter()
        .filter(|&&value| value >= from)
        .map(|&value| (value as f64 / (from as f64 - 0.5)).ln())
        .collect();
    assert!(
        logs.len() > 500,
        "too few values in the tail: {}",
        logs.len()
    );
    1.0 + logs.len() as f64 / logs.iter().sum::<f64>()
}

#[test]
fn in_degrees_follow_a_power_law_of_exponent_2_1() {
    for seed in [1, 2] {
        let rows = rows(&text(&Args {
            seed,
            ..options(200_000, 4_000_000)
        }));
        let mut sources = vec![0; 200_000];
        for (_, targets) in &rows {
            for &target in targets.iter().collect::<HashSet<_>>() {
                sources[target as usize] += 1;
            }
        }
        for from in [30, 50, 100, 200] {
            let found = exponent(&sources, from);
            eprintln!("seed {seed}, in-degree from {from}: exponent {found:.3}");
            assert!(
                (found - 2.1).abs() <= 0.15,
                "seed {seed}, from {from}: {found}"
            );
        }
    }
}

#[test]
fn host_sizes_follow_a_power_law_of_exponent_2_1_and_tile_the_pages() {
    let crawl = crawl(2_000_000, 0);
    let (mut page, mut number, mut sizes) = (0, 0, Vec::new());
    while page < 2_000_000 {
        let host = crawl.host(page);
        assert_eq!((host.first_page, host.number), (page, number));
        assert_eq!(crawl.host(page + host.pages - 1), host);
        sizes.push(host.pages);
        page += host.pages;
        number += 1;
    }
    assert_eq!(page, 2_000_000);
    assert!(*sizes.iter().max().unwrap() <= 2_000_000 / 16);
    // Sizes are steps of an eighth of an octave; the middle of the first step is at 15.5.
    let found = exponent(&sizes, 16);
    assert!((found - 2.1).abs() <= 0.1, "{found}");
}

#[test]
fn out_degrees_follow_their_law() {
    // Degrees are that law rounded up or down with its mean kept, so P(out >= x) is the mean of
    // P(X > t) = (1 + t/m)^-2 over t in x-1..x; m = 20.
    let tail = |x: f64| 20.0 * (1.0 / (1.0 + (x - 1.0) / 20.0) - 1.0 / (1.0 + x / 20.0));
    let crawl = crawl(100_000, 2_000_000);
    let degrees: Vec<u64> = (0..100_000).map(|page| crawl.row(page).links()).collect();
    for x in [1, 5, 20, 100, 500] {
        let expected = 100_000.0 * tail(x as f64);
        let found = degrees.iter().filter(|&&degree| degree >= x).count() as f64;
        assert!(
            (found / expected - 1.0).abs() < 0.03,
            "{x}: {found}, not {expected}"
        );
    }
    assert!(*degrees.iter().max().unwrap() <= 20_100);
}

#[test]
fn navigation_is_the_same_on_every_page_of_a_host() {
    let crawl = crawl(100_000, 5_000_000);
    let host = crawl.host(50_000);
    let navigation: Vec<u64> = (0..host.navigation(host.hash()))
        .map(|nth| host.first_page + nth)
        .collect();
    let (mut tried, mut external) = (0, 0);
    for page in host.first_page..host.first_page + host.pages {
        let mut text = Text::new();
        push_adjacency(&mut text, &crawl, 0, &crawl.row(page));
        let text = String::from_utf8(text.as_bytes().to_vec()).unwrap();
        let (source, links) = rows(&text).remove(0);
        assert_eq!(source, page);
        if links.len() >= 2 * navigation.len() {
            assert!(links.starts_with(&navigation));
            let footer = links.len() / 8;
            assert_eq!(links[..footer], links[links.len() - footer..]);
            tried += 1;
        }
        external += links
            .iter()
            .filter(|&&target| crawl.host(target) != host)
            .count();
    }
    assert!(tried > 0 && external > 0);
}

#[test]
fn the_requested_share_of_links_stays_on_its_host() {
    let share = |inside| {
        let crawl = Crawl::new(Config {
            inside,
            ..options(100_000, 2_000_000).config()
        });
        let (mut here, mut content) = (0, 0);
        for number in 0..100_000 {
            let row = crawl.row(number);
            let mut on_host = Vec::new();
            crawl.links(&row, 0, |host, _| on_host.push(host == row.host));
            let free = &on_host[row.navigation as usize..];
            content += free.len();
            here += free.iter().filter(|&&on_host| on_host).count();
        }
        here as f64 / content as f64
    };
    assert_eq!(share(1.0), 1.0);
    // Some of those that lead anywhere happen to stay on their host.
    let found = share(0.0);
    assert!(found < 0.1, "{found}");
    for inside in [0.25, 0.75] {
        let expected = inside + (1.0 - inside) * found;
        assert!((share(inside) - expected).abs() < 0.002, "{inside}");
    }
}

#[test]
fn pages_change_at_the_requested_rate_and_only_partly() {
    let (pages, links) = (10_000, 400_000);
    let text = text(&Args {
        recrawl: 1,
        change: 0.1,
        ..options(pages, links)
    });
    let rows = rows(&text);
    let before: HashMap<_, _> = rows[..10_000].iter().cloned().collect();
    let (mut changed, mut kept, mut all) = (0, 0, 0);
    for (page, targets) in &rows[10_000..] {
        let old = &before[page];
        assert_eq!(old.len(), targets.len());
        if old != targets {
            changed += 1;
            all += old.len();
            kept += old.iter().zip(targets).filter(|(a, b)| a == b).count();
        }
    }
    // Some pages are too short for a change to show.
    assert!(
        (750..=1_050).contains(&changed),
        "{changed} of 10,000 changed"
    );
    let kept = kept as f64 / all as f64;
    assert!((0.7..0.9).contains(&kept), "{kept} of the links kept");
}

/// Memory cannot grow with the crawl: the billions of records before this one are never made.
#[test]
fn any_record_of_a_huge_crawl_is_made_by_itself() {
    let pages = (1 << 34) - 1;
    let crawl = crawl(pages, 20 * pages);
    for visit in [0, 1 << 32, pages - 1] {
        for pass in [0, 3] {
            let row = crawl.row(crawl.order(pass).apply(visit));
            assert!(row.page < pages);
            let mut out = Text::new();
            push_record(&mut out, &crawl, pass, &row, &[b'0'; 20]);
            let record: serde_json::Value = serde_json::from_slice(out.as_bytes()).unwrap();
            let mut url = Text::new();
            names::push_url(&mut url, crawl.host(row.page), row.page);
            assert_eq!(record["url"].as_str().unwrap().as_bytes(), url.as_bytes());
            assert_eq!(
                record["links"].as_array().unwrap().len() as u64,
                row.links()
            );
        }
    }
}

#[test]
fn permutations_permute() {
    for n in (1..70).chain([1_000, 4_096, 4_097]) {
        let permutation = Permutation::new(n, n);
        let image: HashSet<u64> = (0..n).map(|index| permutation.apply(index)).collect();
        assert_eq!(image, (0..n).collect());
    }
}

#[test]
fn arithmetic_helpers() {
    assert_eq!(scale(u64::MAX, 10), 9);
    assert_eq!(scale(1 << 63, 10), 5);
    assert!((root(0.5f64.powi(11), 11) - 0.5).abs() < 1e-15);
    assert!((root(1.0, 10) - 1.0).abs() < 1e-15);
    // Half of the bits differ between neighbours, on average.
    let differing: u32 = (0..1_000)
        .map(|n| (mix(7, n) ^ mix(7, n + 1)).count_ones())
        .sum();
    assert!((30_000..34_000).contains(&differing), "{differing}");
}
