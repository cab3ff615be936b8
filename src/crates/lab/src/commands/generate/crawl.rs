//! The model: which pages there are, when they are fetched and what they link to.
//!
//! Nothing is stored for a page or a host. Every answer is computed from hashes of (seed, page),
//! so a crawl of any size takes the same few kilobytes, and any record can be made by itself.
//! With `P` pages, `N` of them crawled, and `L` links:
//!
//! **Hosts.** Pages are numbered `0..P`, host after host. The number of hosts of `s` pages is
//! proportional to `s^-2.1`, from 8 pages to `P / 16`, in steps of an eighth of an octave: sizes
//! are `(8 + i) 2^k`, and the hosts of one size share a run of pages in proportion to
//! `2^k s^-1.1`. Pages that make no whole host of their run are left to the next one; at the end
//! they are a host of their own.
//!
//! **Crawled pages.** Of `P` pages, `N` are fetched. With `C(p) = floor(N p / P)`, a host with the
//! pages `a..b` has `C(b) - C(a)` crawled ones, its first; because hosts have 8 pages or more and
//! `N >= P / 8`, that is one at least. The crawled pages of all hosts are numbered `0..N`.
//!
//! **Order.** The visit `t` of a pass fetches crawled page `f(t)`, `f` being a keyed permutation of
//! `0..N`, another one in each pass. So every crawled page is fetched once a pass and hosts are
//! mixed as evenly as their sizes allow.
//!
//! **Out-degree.** A host's crawled pages share out its others: each of these is linked from one
//! of them (discovery). So every page is known after a pass, and exactly `P`. All further links, `L`
//! less `P - N`, follow a law: with `m` of them a crawled page, `P(out > x) = (1 + x/m)^-2` up to
//! 1,000 m. Pages are dealt the `N` equal slices of that law by a keyed permutation. The slices
//! below the `j`-th hold `S(j) = floor((L - P + N) ((1 - r) / (1 - r_N))^2)` links, `r = sqrt(1 -
//! (1 - 1e-6) j / N)`, so a page has `S(j + 1) - S(j)` of them, and all pages together exactly `L`.
//!
//! **Links.** First come the navigation links, the same on every page of a host: its first 3 to 10
//! pages, but at most half of the page's links by the law; then the page's discoveries. The last
//! eighth repeats the page's first links (a footer). Of those between, the share `inside` goes to any
//! page of the host alike, the others anywhere.
//!
//! **In-degree.** A link that goes anywhere finds the page of popularity rank `k` with a chance in
//! proportion to `(k + 4)^(-10/11)`, which gives `P(in = n) ~ n^-2.1`: for `x` uniform in
//! `[x0, 1]`, `k = (P + 4) x^11 - 4`, and `x0 = (4 / (P + 4))^(1/11)`. The 4 keeps the most
//! popular page at some percent of all pages. Pages are ranked by a keyed permutation. Navigation
//! links have the same tail, since the first pages of a host get about as many links as the host
//! has pages.
//!
//! **Change.** In each pass after the first, a page changes with the chance `change`. A change
//! draws a quarter of its links again, navigation and number of links excepted.

use std::ops::Range;

use super::mix::{Permutation, mix, root, scale};

/// Configuration of a crawl.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Number of pages, 1 to 2^34 - 1.
    pub pages: u64,
    /// Number of pages that are fetched: at least an eighth of all.
    pub crawled: u64,
    /// Number of links of all pages together: at least one for each page that is not fetched, and beyond these at most
    /// 900 per crawled page.
    pub links: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Probability that a page changes from one pass to the next.
    pub change: f64,
    /// Share of links beyond navigation that stay on their host, 0 to 1.
    pub inside: f64,
}

impl Config {
    /// Maximum number of links per crawled page, without discoveries.
    const LINKS_MAX: u64 = 900;

    /// Checks the configuration; the error says what is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        let (pages, crawled) = (self.pages, self.crawled);
        if crawled > pages || crawled < pages.div_ceil(8) {
            return Err("--crawled is more than --pages, or less than an eighth of it");
        }
        let Some(law) = self.links.checked_sub(pages - crawled) else {
            return Err("--links is less than one for each page that is not crawled");
        };
        if law > Self::LINKS_MAX * crawled {
            return Err("--links is more than 900 a crawled page");
        }
        Ok(())
    }
}

/// Crawl with everything precomputed.
pub struct Crawl {
    config: Config,
    /// Number of links that the law of out-degrees distributes.
    law_links: u64,
    hosts: Hosts,
    ranked: Permutation,
    dealt: Permutation,
    /// `x0` as a 64-bit fraction.
    popularity_start: u64,
    link_key: u64,
    change_key: u64,
    /// Threshold for the top 53 bits of a draw, below which a page changes.
    change_below: u64,
    /// Threshold for the low 16 bits of a draw, reversed, below which a link stays on its host.
    inside_below: u32,
}

/// Host: its number, its first page and its number of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    pub number: u64,
    pub first_page: u64,
    pub pages: u64,
}

impl Host {
    /// Returns the hash from which its name and its navigation are derived.
    pub fn hash(&self) -> u64 {
        mix(0x686f_7374, self.number)
    }

    /// Returns the number of its first pages that are in its navigation.
    pub fn navigation(&self, hash: u64) -> u64 {
        self.pages.min(3 + (hash >> 61))
    }
}

/// Crawled page with its links, in this order: the host's first `navigation` pages, the pages `discovered`, `content`
/// links, and the first `footer` of these once more.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub host: Host,
    pub page: u64,
    pub navigation: u64,
    pub discovered: Range<u64>,
    pub content: u64,
    pub footer: u64,
}

impl Row {
    /// Returns the number of links, including the footer's.
    #[cfg(test)]
    pub fn links(&self) -> u64 {
        let discovered = self.discovered.end - self.discovered.start;
        self.navigation + discovered + self.content + self.footer
    }
}

/// Purpose of a hash: draws for different purposes must be independent.
#[derive(Clone, Copy)]
enum Draw {
    Order = 1,
    Rank,
    Deal,
    Link,
    Change,
    Redrawn,
}

/// Minimum number of pages of a host, with one exception.
const HOST_MIN: u64 = 8;
/// The largest host has about one in this many pages.
const HOST_SHARE: u64 = 16;
/// Shift that flattens the top of the popularity law.
const POPULARITY_SHIFT: u64 = 4;
/// Share of the out-degree law's tail that is cut off; its largest value is one over the root.
const TAIL: f64 = 1e-6;

impl Crawl {
    /// Creates the crawl; the configuration must be valid (see [`Config::check`]).
    pub fn new(config: Config) -> Self {
        let pages = config.pages;
        let shift = POPULARITY_SHIFT as f64;
        let start = root(shift / (pages as f64 + shift), 11);
        let key = |draw: Draw| mix(config.seed, draw as u64);
        Crawl {
            law_links: config.links - (pages - config.crawled),
            hosts: Hosts::new(pages),
            ranked: Permutation::new(key(Draw::Rank), pages),
            dealt: Permutation::new(key(Draw::Deal), config.crawled),
            popularity_start: (start * 2f64.powi(64)) as u64,
            link_key: key(Draw::Link),
            change_key: key(Draw::Change),
            change_below: (config.change * 2f64.powi(53)) as u64,
            inside_below: (config.inside * 2f64.powi(16)) as u32,
            config,
        }
    }

    /// Returns the order in which a pass (0, 1, ...) fetches the pages: from visit to number of a crawled page.
    pub fn order(&self, pass: u64) -> Permutation {
        let key = mix(self.config.seed, Draw::Order as u64);
        Permutation::new(mix(key, pass), self.config.crawled)
    }

    /// Returns the host of a page.
    pub fn host(&self, page: u64) -> Host {
        self.hosts.of(page)
    }

    /// Returns crawled page `number`, below `crawled`.
    pub fn row(&self, number: u64) -> Row {
        let Config { pages, crawled, .. } = self.config;
        // The first page with C(page + 1) > number: it is on the same host, if it is not the page itself.
        let host = self.host(product_over(number + 1, pages, crawled, true) - 1);
        let first = self.crawled_before(host.first_page);
        let here = self.crawled_before(host.first_page + host.pages) - first;
        let place = number - first;
        let waiting = host.pages - here;
        let discovered = |place| host.first_page + here + product_over(place, waiting, here, false);

        let slice = self.dealt.apply(number);
        let count = self.links_below(slice + 1) - self.links_below(slice);
        let footer = count / 8;
        let navigation = host.navigation(host.hash()).min(count.div_ceil(2));
        Row {
            host,
            page: host.first_page + place,
            navigation,
            discovered: discovered(place)..discovered(place + 1),
            content: count - footer - navigation,
            footer,
        }
    }

    /// Calls `to` with host and page of every link of `row` as it is in `pass`, in order. The footer is left to the
    /// caller, which has the first links already.
    pub fn links(&self, row: &Row, pass: u64, mut to: impl FnMut(Host, u64)) {
        let host = row.host;
        for page in host.first_page..host.first_page + row.navigation {
            to(host, page);
        }
        for page in row.discovered.clone() {
            to(host, page);
        }
        let key = mix(self.link_key, row.page);
        let changes = self.changes(row.page, pass);
        for nth in 0..row.content {
            let slot = mix(key, nth);
            let draw = match last_redrawn(slot, changes) {
                0 => slot,
                change => mix(slot, change),
            };
            // The low bits determine the kind of link, the high ones the target.
            if u32::from((draw as u16).reverse_bits()) < self.inside_below {
                to(host, host.first_page + scale(draw, host.pages));
            } else {
                let target = self.ranked.apply(self.popular_rank(draw));
                to(self.host(target), target);
            }
        }
    }

    /// Returns `C(page)`.
    fn crawled_before(&self, page: u64) -> u64 {
        product_over(self.config.crawled, page, self.config.pages, false)
    }

    /// Returns the number of changes of the page until `pass`.
    fn changes(&self, page: u64, pass: u64) -> u64 {
        let key = mix(self.change_key, page);
        let changed = |&pass: &u64| mix(key, pass) >> 11 < self.change_below;
        (1..=pass).filter(changed).count() as u64
    }

    /// Draws a popularity rank by the law in the module's head.
    fn popular_rank(&self, draw: u64) -> u64 {
        let x = self.popularity_start + scale(draw, self.popularity_start.wrapping_neg());
        let x2 = scale(x, x);
        let x4 = scale(x2, x2);
        let x11 = scale(scale(scale(x4, x4), x2), x);
        let rank = scale(x11, self.config.pages + POPULARITY_SHIFT);
        rank.saturating_sub(POPULARITY_SHIFT)
    }

    /// Returns `S(slice)`. Exactly rounded operations are monotone, so it never decreases.
    fn links_below(&self, slice: u64) -> u64 {
        if slice == self.config.crawled {
            return self.law_links;
        }
        let part = (1.0 - TAIL) * (slice as f64 / self.config.crawled as f64);
        let share = (1.0 - (1.0 - part).sqrt()) / (1.0 - TAIL.sqrt());
        ((self.law_links as f64 * (share * share)) as u64).min(self.law_links)
    }
}

/// Returns the last of a page's changes that drew this link again; 0 if none did.
fn last_redrawn(slot: u64, changes: u64) -> u64 {
    let key = mix(slot, Draw::Redrawn as u64);
    let redrawn = |&change: &u64| mix(key, change) & 3 == 0;
    (1..=changes).rev().find(redrawn).unwrap_or(0)
}

/// Returns `a b / c`, rounded down, or `up`.
fn product_over(a: u64, b: u64, c: u64, up: bool) -> u64 {
    let more = if up { c - 1 } else { 0 };
    // Wide divisions are slow, and seldom needed.
    match a
        .checked_mul(b)
        .and_then(|product| product.checked_add(more))
    {
        Some(sum) => sum / c,
        None => ((u128::from(a) * u128::from(b) + u128::from(more)) / u128::from(c)) as u64,
    }
}

/// Map from pages to hosts.
struct Hosts {
    runs: Vec<Run>,
    /// For each `2^shift` pages, the run of the first of them.
    starts: Vec<u16>,
    shift: u32,
}

/// Run of hosts of one size.
struct Run {
    first_page: u64,
    end_page: u64,
    first_host: u64,
    host_pages: u64,
    /// `floor(2^64 / host_pages) + 1`, or 0 for 2^64.
    reciprocal: u64,
}

impl Hosts {
    const STARTS: u64 = 4096;

    fn new(pages: u64) -> Hosts {
        let runs = runs(pages);
        let shift = (0..64)
            .find(|&shift| pages >> shift < Self::STARTS)
            .unwrap_or(63);
        let first_run = |start: u64| {
            let page = start << shift;
            runs.partition_point(|run| run.end_page <= page) as u16
        };
        Hosts {
            starts: (0..=(pages - 1) >> shift).map(first_run).collect(),
            shift,
            runs,
        }
    }

    fn of(&self, page: u64) -> Host {
        let mut at = usize::from(self.starts[(page >> self.shift) as usize]);
        while self.runs[at].end_page <= page {
            at += 1;
        }
        let run = &self.runs[at];
        let nth = run.nth(page - run.first_page);
        Host {
            number: run.first_host + nth,
            first_page: run.first_page + nth * run.host_pages,
            pages: run.host_pages,
        }
    }
}

impl Run {
    fn new(first_page: u64, end_page: u64, first_host: u64, host_pages: u64) -> Run {
        Run {
            first_page,
            end_page,
            first_host,
            host_pages,
            reciprocal: (u64::MAX / host_pages).wrapping_add(1),
        }
    }

    /// Returns `page / host_pages`. The reciprocal `r` times `h` pages is `2^64` to `2^64 + h - 1`, so `page r / 2^64`
    /// is too large by less than `page / 2^64`. That is below `1 / h`, and the whole part is right: pages are below
    /// 2^34, and hosts have at most 2^30.
    fn nth(&self, page: u64) -> u64 {
        if self.reciprocal == 0 {
            return page;
        }
        scale(page, self.reciprocal)
    }
}

/// Returns the runs of hosts of equal size, in page order, without empty ones.
fn runs(pages: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut first_page, mut first_host) = (0, 0);
    for (host_pages, share_end) in size_shares(pages) {
        let hosts = (share_end - first_page) / host_pages;
        if hosts > 0 {
            let end_page = first_page + hosts * host_pages;
            runs.push(Run::new(first_page, end_page, first_host, host_pages));
            first_page = end_page;
            first_host += hosts;
        }
    }
    if first_page < pages {
        runs.push(Run::new(first_page, pages, first_host, pages - first_page));
    }
    runs
}

/// Returns every host size, with the page before which the shares of it and all smaller sizes end.
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
