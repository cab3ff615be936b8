//! What the model promises, counted from the generated text itself.

use std::collections::{HashMap, HashSet};

use crate::crawl::{Config, Crawl};
use crate::mix::{Permutation, mix, root, scale};
use crate::{Format, Options, names, push_record, write};

fn options(pages: u64, links: u64) -> Options {
    Options {
        pages,
        links,
        seed: 1,
        format: Format::Adjacency,
        recrawl: 0,
        change: 0.0,
    }
}

fn text(options: &Options) -> String {
    let mut out = Vec::new();
    write(options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// (page, targets) of every line of `adjacency`.
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
        links,
        seed: 1,
        change: 0.1,
    })
}

#[test]
fn same_arguments_same_bytes_and_another_seed_another_crawl() {
    for format in [Format::Records, Format::Adjacency] {
        let one = Options {
            format,
            recrawl: 1,
            change: 0.5,
            ..options(3_000, 30_000)
        };
        let other = Options {
            seed: 2,
            ..options(3_000, 30_000)
        };
        let other = Options {
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
        let text = text(&Options {
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
fn records_are_json_with_distinct_urls_of_web_like_length() {
    let text = text(&Options {
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
        let rows = rows(&text(&Options {
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
    let degrees: Vec<u64> = (0..100_000).map(|page| crawl.out_degree(page)).collect();
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
    let navigation: Vec<u64> = (0..crawl.navigation(host))
        .map(|nth| host.first_page + nth)
        .collect();
    let (mut tried, mut external) = (0, 0);
    for page in host.first_page..host.first_page + host.pages {
        let mut links = Vec::new();
        crawl.links(page, 0, |_, target| links.push(target));
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
fn pages_change_at_the_rate_asked_and_only_partly() {
    let (pages, links) = (10_000, 400_000);
    let text = text(&Options {
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
            let page = crawl.order(pass).apply(visit);
            assert!(page < pages);
            let mut out = Vec::new();
            push_record(&mut out, &crawl, pass, page, "");
            let record: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let mut url = Vec::new();
            names::push_url(&mut url, &crawl, crawl.host(page), page);
            assert_eq!(record["url"].as_str().unwrap().as_bytes(), url);
            assert_eq!(
                record["links"].as_array().unwrap().len() as u64,
                crawl.out_degree(page)
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
