//! `cashrank-lab bfs-order`: a graph as the crawl that a breadth-first crawler would have made of it: every
//! page once, in the order in which it would have been fetched from random seeds.
//!
//! ```text
//! zstd -dc ../shared/data/cnr-2000/adjacency.tsv.zst \
//!     | cargo run --release -p cashrank-lab -- bfs-order --seeds 10 --seed 1 | cashrank ingest - --store ranks
//! ```
//!
//! Reads `page<TAB>target<TAB>...` lines with pages as numbers. Writes crawl records (formats/records.md), or with
//! `--format adjacency` lines like those read. When all links found are followed, another random page is fetched. The
//! seed is printed: the same one gives the same bytes.

mod order;

use std::io::{self, BufRead, Write};

use anyhow::Context as _;
use cashrank::Error;
use clap::ValueEnum;

use super::{print, progress};
use order::{Random, breadth_first};

/// Write a graph, read from stdin, as a breadth-first crawl of it to stdout.
#[derive(clap::Args)]
pub struct Args {
    /// Random pages to begin with.
    #[arg(long, default_value_t = 10)]
    seeds: usize,
    /// Another seed, another crawl.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, value_enum, default_value_t = Format::Records)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// JSON lines with URLs made of page numbers.
    Records,
    /// Lines like those read.
    Adjacency,
}

impl Args {
    pub fn run(self) -> anyhow::Result<()> {
        let links = read(io::stdin().lock())?;
        let order = breadth_first(&links, self.seeds, &mut Random::new(self.seed));
        progress(&format!(
            "bfs-order: {} pages from {} random seeds, --seed {}",
            order.len(),
            self.seeds,
            self.seed
        ));
        print(|out| {
            for page in order {
                write(out, self.format, page, &links[page as usize])?;
            }
            Ok(())
        })
    }
}

/// Reads the links of all pages, by page.
pub(super) fn read(lines: impl BufRead) -> anyhow::Result<Vec<Vec<u32>>> {
    let mut links: Vec<Vec<u32>> = Vec::new();
    for (at, line) in lines.lines().enumerate() {
        let line = line.map_err(Error::io("standard input", "read"))?;
        let numbers = line.split_terminator('\t').map(str::parse);
        let numbers: Result<Vec<u32>, _> = numbers.collect();
        let numbers = numbers.with_context(|| format!("line {}: pages are numbers", at + 1))?;
        let Some((&page, targets)) = numbers.split_first() else {
            continue;
        };
        let pages = numbers.iter().max().map_or(0, |&most| most as usize + 1);
        if links.len() < pages {
            links.resize(pages, Vec::new());
        }
        links[page as usize] = targets.to_vec();
    }
    Ok(links)
}

fn write(out: &mut dyn Write, format: Format, page: u32, targets: &[u32]) -> io::Result<()> {
    match format {
        Format::Adjacency => {
            write!(out, "{page}\t")?;
            for (at, target) in targets.iter().enumerate() {
                let tab = if at > 0 { "\t" } else { "" };
                write!(out, "{tab}{target}")?;
            }
            writeln!(out)
        }
        Format::Records => {
            write!(out, "{{\"url\":\"http://web.example/{page}\",\"links\":[")?;
            for (at, target) in targets.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                write!(out, "{comma}\"http://web.example/{target}\"")?;
            }
            writeln!(out, "]}}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 -> 1, 2; 1 -> 3; 2 -> 4; 5 -> 0.
    const GRAPH: &str = "0\t1\t2\n1\t3\n2\t4\n5\t0\n";

    #[test]
    fn every_page_comes_once_and_after_the_one_that_found_it() {
        let links = read(GRAPH.as_bytes()).unwrap();
        for seed in 0..50 {
            for seeds in [1, 2, 10] {
                let order = breadth_first(&links, seeds, &mut Random::new(seed));
                let place = |page| order.iter().position(|&other| other == page).unwrap();
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
                // 1 and 2 are found together by 0 if that is the first page.
                if seeds == 1 && order[0] == 0 {
                    assert!(place(1) < place(2) && place(2) < place(3) && place(3) < place(4));
                }
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let links = read(GRAPH.as_bytes()).unwrap();
        let order = |seed| breadth_first(&links, 2, &mut Random::new(seed));
        assert_eq!(order(7), order(7));
        assert!((0..20).any(|seed| order(seed) != order(7)));
    }

    #[test]
    fn pages_are_numbers() {
        let error = read("0\t1\nx\t2\n".as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("line 2: "), "{error}");
    }
}
