//! Webs to simulate crawls of: made from a seed or from a graph, and changing while they are crawled.
//!
//! A synthetic web draws every page's in-degree from a distribution (section 4.2 of the paper: a power
//! law, or Poisson's) and then its sources among all other pages: alike, which makes out-degrees Poisson's,
//! or by weights. A link goes to a page once, and never to itself.
//!
//! A page that vanished keeps its number, has no links, and none lead to it.

use std::fmt;
use std::str::FromStr;

use cashrank::{Error, Result};
use cashrank_graph::engine::SelfLinks;
use cashrank_graph::graph::Graph;

use crate::random::{Distribution, Purpose, Random};

/// Distribution of the in-degrees of a synthetic web.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum InDegree {
    /// P(I = n) proportional to n^-exponent, n from 1; the exponent is 2 to 10, in the paper 2.1.
    Power(f64),
    /// Poisson's distribution with this mean: above 0, at most 500.
    Poisson(f64),
}

/// Distribution of the out-degrees of a synthetic web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutDegree {
    /// All pages are equally likely sources of a link, which gives Poisson's distribution.
    #[default]
    Poisson,
    /// Sources are drawn by weights that follow a power law with exponent 2.72 (Broder and others: Graph structure in
    /// the web, 2000), independently of their in-degree.
    Power,
    /// Sources are drawn by their in-degree: pages with many links to them have many themselves.
    LikeIn,
}

/// Exponent of [`OutDegree::Power`].
const OUT_EXPONENT: f64 = 2.72;

impl InDegree {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Usage`] if one is out of range.
    pub fn check(self) -> Result<()> {
        match self {
            InDegree::Power(exponent) if !(2.0..=10.0).contains(&exponent) => {
                Err(Error::Usage(format!(
                    "power:{exponent}: an exponent from 2 to 10 (below 2, links a page grow with the web)"
                )))
            }
            InDegree::Poisson(mean) if !(mean > 0.0 && mean <= 500.0) => Err(Error::Usage(
                format!("poisson:{mean}: a mean above 0 and at most 500"),
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for InDegree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InDegree::Power(exponent) => write!(f, "power:{exponent}"),
            InDegree::Poisson(mean) => write!(f, "poisson:{mean}"),
        }
    }
}

impl FromStr for InDegree {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("{text:?}: power:EXPONENT, like power:2.1, or poisson:MEAN");
        let (name, number) = text.split_once(':').ok_or_else(unknown)?;
        let number: f64 = number.parse().map_err(|_| unknown())?;
        let parsed = match name {
            "power" => InDegree::Power(number),
            "poisson" => InDegree::Poisson(number),
            _ => return Err(unknown()),
        };
        parsed.check().map_err(|error| error.to_string())?;
        Ok(parsed)
    }
}

impl fmt::Display for OutDegree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OutDegree::Poisson => "poisson",
            OutDegree::Power => "power",
            OutDegree::LikeIn => "like-in",
        })
    }
}

impl FromStr for OutDegree {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "poisson" => Ok(OutDegree::Poisson),
            "power" => Ok(OutDegree::Power),
            "like-in" => Ok(OutDegree::LikeIn),
            _ => Err(format!("{text:?}: poisson, power or like-in")),
        }
    }
}

/// Web that can change. Pages are numbered from 0 in order of appearance.
#[derive(Debug, Clone)]
pub struct Web {
    /// Targets of each page's links, in no order.
    out: Vec<Vec<u32>>,
    /// Sources of the links to each page, in no order.
    sources: Vec<Vec<u32>>,
    /// Pages, each as often as its weight as a source; empty if all are equal.
    weighted: Vec<u32>,
    live: Vec<u32>,
    /// Index of each page in `live`, or [`VANISHED`].
    place: Vec<u32>,
    random: Random,
    changes: u64,
}

/// Maximum number of pages of a web: the text of their numbers as names fits in a batch.
pub const PAGES_MAX: u64 = 1 << 28;

const VANISHED: u32 = u32::MAX;

impl Web {
    /// Creates a synthetic web.
    ///
    /// # Errors
    /// [`Error::Usage`] for fewer than two pages or too many, or a parameter out of range.
    pub fn synthetic(
        pages: u64,
        in_degree: InDegree,
        out_degree: OutDegree,
        seed: u64,
    ) -> Result<Web> {
        in_degree.check()?;
        if pages < 2 {
            return Err(Error::Usage(format!(
                "{pages} pages: a web has links between at least 2"
            )));
        }
        check_pages(pages)?;
        let n = pages as usize;
        let mut random = Random::new(seed, Purpose::Web);
        let most = pages as u32 - 1;
        let distribution = match in_degree {
            InDegree::Power(exponent) => Distribution::power(exponent, most),
            InDegree::Poisson(mean) => Distribution::poisson(mean, most),
        };
        let degrees: Vec<u32> = (0..n).map(|_| distribution.draw(&mut random)).collect();
        let weighted = match out_degree {
            OutDegree::Poisson => Vec::new(),
            OutDegree::Power => {
                let weights = Distribution::power(OUT_EXPONENT, most);
                repeated((0..n).map(|_| weights.draw(&mut random)))
            }
            // At least once each, or some degrees could never be reached.
            OutDegree::LikeIn => repeated(degrees.iter().map(|&degree| degree.max(1))),
        };
        let mut web = Web::empty(n, seed);
        web.weighted = weighted;
        let mut linked = vec![VANISHED; n];
        for (page, degree) in (0..).zip(degrees) {
            for _ in 0..degree {
                let source = loop {
                    let source = if web.weighted.is_empty() {
                        random.below(n) as u32
                    } else {
                        random.one_of(&web.weighted)
                    };
                    if source != page && linked[source as usize] != page {
                        break source;
                    }
                };
                linked[source as usize] = page;
                web.link(source, page);
            }
        }
        Ok(web)
    }

    /// Creates the web of a graph, without self-links. `seed` is for changes.
    ///
    /// # Errors
    /// [`Error::Usage`] for fewer than two pages, or too many.
    pub fn of_graph(graph: &Graph, seed: u64) -> Result<Web> {
        if graph.nodes() < 2 {
            return Err(Error::Usage(format!(
                "a graph of {} pages: a web has at least 2",
                graph.nodes()
            )));
        }
        check_pages(graph.nodes() as u64)?;
        let mut web = Web::empty(graph.nodes(), seed);
        for (source, row) in (0..).zip(graph.rows()) {
            for &target in row.iter().filter(|&&target| target != source) {
                web.link(source, target);
            }
        }
        Ok(web)
    }

    fn empty(pages: usize, seed: u64) -> Web {
        let all = 0..pages as u32;
        Web {
            out: vec![Vec::new(); pages],
            sources: vec![Vec::new(); pages],
            weighted: Vec::new(),
            live: all.clone().collect(),
            place: all.collect(),
            random: Random::new(seed, Purpose::Changes),
            changes: 0,
        }
    }

    /// Returns the number of pages that ever existed.
    pub fn pages(&self) -> usize {
        self.out.len()
    }

    /// Returns the live pages, in no order.
    pub fn live(&self) -> &[u32] {
        &self.live
    }

    /// Returns whether a page is live.
    pub fn is_live(&self, page: u32) -> bool {
        self.place[page as usize] != VANISHED
    }

    /// Returns a page's distinct targets, in no order.
    pub fn links(&self, page: u32) -> &[u32] {
        &self.out[page as usize]
    }

    /// Returns the number of links to a page.
    pub fn in_degree(&self, page: u32) -> usize {
        self.sources[page as usize].len()
    }

    /// Returns the number of changes so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the current graph; vanished pages have no links.
    pub fn graph(&self) -> Graph {
        let targets = self.out.concat();
        let mut sources = Vec::with_capacity(targets.len());
        for (page, row) in (0..).zip(&self.out) {
            sources.extend(std::iter::repeat_n(page, row.len()));
        }
        Graph::of_pairs(self.pages(), &sources, &targets, SelfLinks::Drop)
    }

    /// Doubles or halves, with equal probability, the in-degree of a page drawn at random (section 4.2: "divided by two
    /// or multiplied by two"). Halves are rounded down; 0 becomes 1; a page that more than half of the others link to
    /// is halved.
    pub fn change_in_degree(&mut self) {
        let page = self.random.one_of(&self.live);
        let degree = self.in_degree(page);
        let halve = self.random.coin() && degree > 0 || 2 * degree > self.live.len() - 1;
        self.changes += 1;
        if !halve {
            return self.link_from_others(page, degree.max(1));
        }
        for _ in 0..degree - degree / 2 {
            let sources = &mut self.sources[page as usize];
            let at = self.random.below(sources.len());
            let source = sources.swap_remove(at);
            remove(&mut self.out[source as usize], page);
        }
    }

    /// Adds a page with as many incoming links as a page drawn at random, and the outgoing links of another one, so
    /// that the distribution of degrees stays.
    ///
    /// # Errors
    /// [`Error::Usage`] for too many pages.
    pub fn appear(&mut self) -> Result<()> {
        let page = self.pages() as u32;
        check_pages(u64::from(page) + 1)?;
        let alike = self.random.one_of(&self.live);
        let degree = self.in_degree(alike);
        let copied = self.random.one_of(&self.live);
        let targets = self.out[copied as usize].clone();
        self.out.push(Vec::new());
        self.sources.push(Vec::new());
        self.place.push(self.live.len() as u32);
        self.live.push(page);
        if !self.weighted.is_empty() {
            self.weighted.push(page);
        }
        for target in targets {
            self.link(page, target);
        }
        self.link_from_others(page, degree);
        self.changes += 1;
        Ok(())
    }

    /// Removes a page drawn at random, with all links from it and to it.
    ///
    /// # Errors
    /// [`Error::Usage`] if two pages are left.
    pub fn vanish(&mut self) -> Result<()> {
        if self.live.len() <= 2 {
            return Err(Error::Usage(
                "the web died out: two pages are left, and another one is to vanish".into(),
            ));
        }
        let at = self.random.below(self.live.len());
        let page = self.live.swap_remove(at);
        if let Some(&moved) = self.live.get(at) {
            self.place[moved as usize] = at as u32;
        }
        self.place[page as usize] = VANISHED;
        for target in std::mem::take(&mut self.out[page as usize]) {
            remove(&mut self.sources[target as usize], page);
        }
        for source in std::mem::take(&mut self.sources[page as usize]) {
            remove(&mut self.out[source as usize], page);
        }
        self.changes += 1;
        Ok(())
    }

    fn link(&mut self, source: u32, target: u32) {
        self.out[source as usize].push(target);
        self.sources[target as usize].push(source);
    }

    /// Adds `more` links to `page`, from other pages that do not link to it. There must be enough.
    fn link_from_others(&mut self, page: u32, more: usize) {
        let mut added = 0;
        while added < more {
            let source = if self.weighted.is_empty() {
                self.random.one_of(&self.live)
            } else {
                self.random.one_of(&self.weighted)
            };
            let is_new = source != page && !self.out[source as usize].contains(&page);
            if is_new && self.is_live(source) {
                self.link(source, page);
                added += 1;
            }
        }
    }
}

fn check_pages(pages: u64) -> Result<()> {
    if pages <= PAGES_MAX {
        Ok(())
    } else {
        Err(Error::Unsupported(format!(
            "{pages} pages: a simulated web has at most {PAGES_MAX}"
        )))
    }
}

/// Returns 0, 1, 2 ..., each as often as its weight.
fn repeated(weights: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut all = Vec::new();
    for (page, weight) in (0..).zip(weights) {
        all.extend(std::iter::repeat_n(page, weight as usize));
    }
    all
}

/// Removes a value that is in the list at most once.
fn remove(list: &mut Vec<u32>, value: u32) {
    if let Some(at) = list.iter().position(|&other| other == value) {
        list.swap_remove(at);
    }
}
