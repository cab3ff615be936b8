//! The model: which pages there are, when they are fetched and what they link to.
//!
//! Nothing is stored for a page or a host. Every answer is computed from hashes of (seed, page),
//! so a crawl of any size takes the same few kilobytes, and any record can be made by itself.
//! With `P` pages, `L` links and `m = L / P`:
//!
//! **Hosts.** Pages are numbered `0..P`, host after host. The number of hosts of `s` pages is
//! proportional to `s^-2.1`, from 8 pages to `P / 16`, in steps of an eighth of an octave: sizes
//! are `(8 + i) 2^k`, and the hosts of one size share a run of pages in proportion to
//! `2^k s^-1.1`. Pages that make no whole host of their run are left to the next one; at the end
//! they are a host of their own.
//!
//! **Order.** The visit `t` of a pass fetches page `f(t)`, `f` being a keyed permutation of
//! `0..P`, another one in each pass. So every page is fetched once a pass and hosts are mixed as
//! evenly as their sizes allow.
//!
//! **Out-degree.** `P(out > x) = (1 + x/m)^-2` up to 1,000 m. Pages are dealt the `P` equal slices
//! of that law by a keyed permutation. The slices below the `j`-th hold
//! `S(j) = floor(L ((1 - r) / (1 - r_P))^2)` links, `r = sqrt(1 - (1 - 1e-6) j / P)`, so a page has
//! `S(j + 1) - S(j)` links, and all pages together have exactly `L`.
//!
//! **Links.** First come the navigation links, the same on every page of a host: its first 3 to 10
//! pages, but at most half of the page's links. The last eighth repeats the page's first links (a
//! footer). Of those between, one in four goes to any page of the host alike, the others anywhere.
//!
//! **In-degree.** A link that goes anywhere finds the page of popularity rank `k` with a chance in
//! proportion to `(k + 4)^(-10/11)`, which gives `P(in = n) ~ n^-2.1`: for `x` uniform in
//! `[x0, 1]`, `k = (P + 4) x^11 - 4`, and `x0 = (4 / (P + 4))^(1/11)`. The 4 keeps the most
//! popular page at some percent of all pages. Pages are ranked by a keyed permutation. Navigation
//! links have the same tail, since the first pages of a host get about as many links as the host
//! has pages.
//!
//! **Change.** In each pass after the first, a page changes with the chance `change`. A change
//! draws a quarter of its links anew, navigation and number of links excepted.

use crate::mix::{Permutation, mix, root, scale};

/// What to generate.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Pages, 1 to 2^34 - 1.
    pub pages: u64,
    /// Links of all pages together, at most 900 a page.
    pub links: u64,
    /// Everything random comes from it.
    pub seed: u64,
    /// The chance that a page changes from one pass to the next, 0 to 1.
    pub change: f64,
}

/// A crawl, ready to be asked.
pub struct Crawl {
    config: Config,
    runs: Vec<Run>,
    ranked: Permutation,
    dealt: Permutation,
    /// `x0` as a 64-bit fraction.
    popularity_start: u64,
}

/// A host: its number, its first page and its number of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    pub number: u64,
    pub first_page: u64,
    pub pages: u64,
}

/// The hosts of one size.
struct Run {
    first_page: u64,
    end_page: u64,
    first_host: u64,
    host_pages: u64,
}

/// What a hash is for: draws for different purposes must not agree.
#[derive(Clone, Copy)]
enum Draw {
    Order = 1,
    Rank,
    Deal,
    Navigation,
    Link,
    Change,
    Redrawn,
}

/// Least pages of a host.
const HOST_MIN: u64 = 8;
/// The largest host has about one in this many pages.
const HOST_SHARE: u64 = 16;
/// Flattens the top of the popularity law.
const POPULARITY_SHIFT: u64 = 4;
/// The share of the out-degree law's tail that is cut off; its largest value is one over the root.
const TAIL: f64 = 1e-6;

impl Crawl {
    pub fn new(config: Config) -> Self {
        let pages = config.pages;
        let shift = POPULARITY_SHIFT as f64;
        let start = root(shift / (pages as f64 + shift), 11);
        Crawl {
            runs: runs(pages),
            ranked: Permutation::new(mix(config.seed, Draw::Rank as u64), pages),
            dealt: Permutation::new(mix(config.seed, Draw::Deal as u64), pages),
            popularity_start: (start * 2f64.powi(64)) as u64,
            config,
        }
    }

    /// The order in which a pass (0, 1, ...) fetches the pages: visit number to page.
    pub fn order(&self, pass: u64) -> Permutation {
        Permutation::new(mix(self.key(Draw::Order), pass), self.config.pages)
    }

    /// The host of a page.
    pub fn host(&self, page: u64) -> Host {
        let run = &self.runs[self.runs.partition_point(|run| run.end_page <= page)];
        let nth = (page - run.first_page) / run.host_pages;
        let first_page = run.first_page + nth * run.host_pages;
        Host {
            number: run.first_host + nth,
            first_page,
            pages: run.host_pages,
        }
    }

    /// How many links a page has; the same in every pass.
    pub fn out_degree(&self, page: u64) -> u64 {
        let slice = self.dealt.apply(page);
        self.links_below(slice + 1) - self.links_below(slice)
    }

    /// Calls `to` with host and page of every link of `page` as it is in `pass`, in order.
    pub fn links(&self, page: u64, pass: u64, mut to: impl FnMut(Host, u64)) {
        let host = self.host(page);
        let count = self.out_degree(page);
        let body = count - count / 8;
        let navigation = self.navigation(host).min(count.div_ceil(2));
        let changes = self.changes(page, pass);
        for nth in 0..count {
            let nth = if nth < body { nth } else { nth - body };
            if nth < navigation {
                to(host, host.first_page + nth);
            } else {
                self.content_link(host, page, nth, changes, &mut to);
            }
        }
    }

    /// How many of a host's first pages are in its navigation.
    pub fn navigation(&self, host: Host) -> u64 {
        let draw = mix(self.key(Draw::Navigation), host.number);
        host.pages.min(3 + scale(draw, 8))
    }

    fn content_link(
        &self,
        host: Host,
        page: u64,
        nth: u64,
        changes: u64,
        to: &mut impl FnMut(Host, u64),
    ) {
        let slot = mix(mix(self.key(Draw::Link), page), nth);
        let draw = mix(slot, self.last_redrawn(slot, changes));
        let place = mix(draw, 0);
        if draw & 3 == 0 {
            to(host, host.first_page + scale(place, host.pages));
        } else {
            let target = self.ranked.apply(self.popular_rank(place));
            to(self.host(target), target);
        }
    }

    /// How often the page has changed until `pass`.
    fn changes(&self, page: u64, pass: u64) -> u64 {
        let key = mix(self.key(Draw::Change), page);
        let below = (self.config.change * 2f64.powi(53)) as u64;
        let changed = |&pass: &u64| mix(key, pass) >> 11 < below;
        (1..=pass).filter(changed).count() as u64
    }

    /// The last of the page's changes that drew this link anew; 0: none did.
    fn last_redrawn(&self, slot: u64, changes: u64) -> u64 {
        let key = mix(slot, Draw::Redrawn as u64);
        let redrawn = |&change: &u64| mix(key, change) & 3 == 0;
        (1..=changes).rev().find(redrawn).unwrap_or(0)
    }

    /// A popularity rank, drawn by the law in the module's head.
    fn popular_rank(&self, draw: u64) -> u64 {
        let x = self.popularity_start + scale(draw, self.popularity_start.wrapping_neg());
        let x2 = scale(x, x);
        let x4 = scale(x2, x2);
        let x11 = scale(scale(scale(x4, x4), x2), x);
        let rank = scale(x11, self.config.pages + POPULARITY_SHIFT);
        rank.saturating_sub(POPULARITY_SHIFT)
    }

    /// `S(slice)`. Exactly rounded operations are monotone, so it never falls.
    fn links_below(&self, slice: u64) -> u64 {
        if slice == self.config.pages {
            return self.config.links;
        }
        let part = (1.0 - TAIL) * (slice as f64 / self.config.pages as f64);
        let share = (1.0 - (1.0 - part).sqrt()) / (1.0 - TAIL.sqrt());
        ((self.config.links as f64 * (share * share)) as u64).min(self.config.links)
    }

    fn key(&self, draw: Draw) -> u64 {
        mix(self.config.seed, draw as u64)
    }
}

/// The runs of hosts of equal size, in page order, without empty ones.
fn runs(pages: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut first_page, mut first_host) = (0, 0);
    for (host_pages, share_end) in size_shares(pages) {
        let hosts = (share_end - first_page) / host_pages;
        if hosts > 0 {
            let end_page = first_page + hosts * host_pages;
            runs.push(Run {
                first_page,
                end_page,
                first_host,
                host_pages,
            });
            first_page = end_page;
            first_host += hosts;
        }
    }
    if first_page < pages {
        let host_pages = pages - first_page;
        runs.push(Run {
            first_page,
            end_page: pages,
            first_host,
            host_pages,
        });
    }
    runs
}

/// Every host size, with the page before which the shares of it and all smaller sizes end.
fn size_shares(pages: u64) -> Vec<(u64, u64)> {
    let largest = (pages / HOST_SHARE).max(HOST_MIN);
    let mut sum = 0.0;
    let sums: Vec<(u64, f64)> = (0..60)
        .flat_map(|octave| (8..16).map(move |eighth: u64| (eighth << octave, 1u64 << octave)))
        .take_while(|&(size, _)| size <= largest)
        .map(|(size, width)| {
            // s^-1.1 = (1/s) (1/s)^(1/10).
            sum += width as f64 / size as f64 * root(1.0 / size as f64, 10);
            (size, sum)
        })
        .collect();
    let end = |sum_here: f64| ((pages as f64 * (sum_here / sum)) as u64).min(pages);
    sums.iter()
        .map(|&(size, sum_here)| (size, end(sum_here)))
        .collect()
}
