//! A synthetic web of hosts.

use cashrank_graph::engine::SelfLinks;
use cashrank_graph::graph::Graph;

use crate::random::{Distribution, Purpose, Random};

/// Exponent of the power law of hosts' sizes, similar to real crawls.
const HOST_EXPONENT: f64 = 1.6;
/// Maximum number of pages of a host.
const HOST_PAGES: u32 = 20_000;
/// Number of a page's links, of 16, that lead to its own host.
const WITHIN: usize = 12;

/// Returns a synthetic web of hosts, whose pages have consecutive numbers. Sizes follow a power law. A page links to
/// its host's first page and to others of the host, low numbers more often (like menus), and with a quarter of its
/// links to other hosts, half of these to first pages, with a preference for hosts that are linked already. One page in
/// six has no links.
pub fn hosts(pages: usize, links: usize, seed: u64) -> Graph {
    let mut random = Random::new(seed, Purpose::Web);
    let sizes = Distribution::power(HOST_EXPONENT, HOST_PAGES.min(pages.max(1) as u32));
    let mut starts = Vec::new();
    let mut host_of = Vec::with_capacity(pages);
    while host_of.len() < pages {
        starts.push(host_of.len());
        let size = (sizes.draw(&mut random) as usize).min(pages - host_of.len());
        host_of.extend(std::iter::repeat_n(starts.len() as u32 - 1, size));
    }
    starts.push(pages);
    // Each host appears as often as it is linked.
    let mut popular: Vec<u32> = (0..starts.len() as u32 - 1).collect();
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for (page, &own) in host_of.iter().enumerate() {
        if random.below(6) == 0 {
            continue;
        }
        let own = own as usize;
        for _ in 0..1 + random.below(2 * links) {
            let within = random.below(16) < WITHIN;
            let host = if within {
                own
            } else {
                random.one_of(&popular) as usize
            };
            let (from, size) = (starts[host], starts[host + 1] - starts[host]);
            let at = if within {
                // The square of a uniform number: a page at position x is drawn with weight 1/sqrt(x).
                (random.unit() * random.unit() * size as f64) as usize
            } else if random.coin() {
                0
            } else {
                random.below(size)
            };
            if !within {
                popular.push(host as u32);
            }
            sources.push(page as u32);
            targets.push((from + at) as u32);
        }
    }
    Graph::of_pairs(pages, &sources, &targets, SelfLinks::Drop)
}
