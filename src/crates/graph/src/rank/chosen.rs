//! Lists of chosen pages with weights, such as the pages of a topic or trusted pages.
//!
//! Each line names pages: a URL in any form or an opaque name, or `host:NAME`, `barehost:NAME`, `domain:NAME`,
//! `prefix:HOST/FOLDERS` or `url:PATTERN`, as in a scope. A tab and a whole number may follow, the weight of each of
//! these pages; the default is 1. If several lines match a page, the first counts. If sites are ranked, a site gets the
//! largest weight of its pages.

use std::collections::HashMap;

use crate::rank::Teleport;
use crate::rules::Scope;
use crate::sites::Sites;
use crate::url::{CanonicalForm, canonical};
use crate::{Error, Result};

/// Parsed list of chosen pages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChosenList {
    /// Line number and weight by canonical URL or name.
    named: HashMap<Vec<u8>, (usize, u32)>,
    patterns: Vec<(Scope, usize, u32)>,
    lines: usize,
}

impl ChosenList {
    /// Parses lines; empty ones and comments (`#`) are ignored. An error states the number of the invalid line.
    pub fn of<'l>(lines: impl IntoIterator<Item = &'l str>) -> Result<ChosenList> {
        let mut chosen = ChosenList::default();
        for (at, line) in lines.into_iter().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                chosen
                    .add(line)
                    .map_err(|why| Error::Usage(format!("line {}: {why}", at + 1)))?;
            }
        }
        Ok(chosen)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let (pages, weight) = line.split_once('\t').unwrap_or((line, "1"));
        let weight: u32 = weight.trim().parse().map_err(|_| {
            format!(
                "{weight:?} behind a tab is no weight: a whole number from 0 to {}",
                u32::MAX
            )
        })?;
        let pages = pages.trim();
        let number = self.lines;
        self.lines += 1;
        let is_pattern = ["host:", "barehost:", "domain:", "prefix:", "url:"];
        if is_pattern.iter().any(|kind| pages.starts_with(kind)) {
            let scope = pages.parse().map_err(|error: Error| error.to_string())?;
            self.patterns.push((scope, number, weight));
            return Ok(());
        }
        let mut put = |name: &[u8]| {
            let known = self.named.entry(name.to_vec());
            known.or_insert((number, weight));
        };
        put(pages.as_bytes());
        let mut rewritten = Vec::new();
        let form = canonical(pages.as_bytes(), None, usize::MAX, &mut rewritten);
        if let Ok(form) = form
            && form != CanonicalForm::AsIs
        {
            put(form.text(pages.as_bytes(), &rewritten));
        }
        Ok(())
    }

    /// Returns the weight of the page with this name; `None` if no line matches it.
    pub fn weight(&self, name: &[u8]) -> Option<u32> {
        let named = self.named.get(name).copied();
        let fits = self.patterns.iter().find(|(scope, ..)| scope.has(name));
        let fits = fits.map(|&(_, number, weight)| (number, weight));
        let first = named.into_iter().chain(fits).min_by_key(|found| found.0);
        first.map(|(_, weight)| weight)
    }
}

/// Weights of the pages of a crawl, by a list.
#[derive(Debug)]
pub struct ChosenPages {
    chosen: ChosenList,
    weights: Vec<u32>,
    /// Number of pages that some line matches.
    found: u64,
}

impl ChosenPages {
    /// Creates an empty set of weights.
    pub fn new(chosen: ChosenList) -> ChosenPages {
        ChosenPages {
            chosen,
            weights: Vec::new(),
            found: 0,
        }
    }

    pub fn add(&mut self, name: &[u8]) {
        let weight = self.chosen.weight(name);
        self.found += u64::from(weight.is_some());
        self.weights.push(weight.unwrap_or(0));
    }

    /// Returns the number of pages that some line matches.
    pub fn found(&self) -> u64 {
        self.found
    }

    /// Returns the teleport vector of the pages, or of their sites.
    ///
    /// # Errors
    /// [`Error::Missing`] if no line matches a page; [`Error::Usage`] if the weights sum to 0 or to more than 2^32.
    pub fn teleport(self, sites: Option<&Sites>) -> Result<Teleport> {
        if self.found == 0 {
            return Err(Error::Missing(format!(
                "no line of the list (`teleport`) names one of the {} pages that are known: lines are URLs, host:NAME, barehost:NAME, \
                 domain:NAME, prefix:HOST/FOLDERS or url:PATTERN, and a weight may follow behind a tab",
                self.weights.len()
            )));
        }
        let Some(sites) = sites else {
            return Teleport::of(self.weights);
        };
        let mut weights = vec![0; sites.len()];
        for (page, weight) in self.weights.into_iter().enumerate() {
            if let Some(site) = sites.site(page) {
                weights[site] = weight.max(weights[site]);
            }
        }
        Teleport::of(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::Level;

    const NAMES: [&str; 5] = [
        "http://a.example/",
        "http://a.example/x",
        "http://www.b.example/",
        "http://c.example/news/1",
        "17",
    ];

    fn pages(lines: &str) -> ChosenPages {
        let mut pages = ChosenPages::new(ChosenList::of(lines.lines()).unwrap());
        NAMES.iter().for_each(|name| pages.add(name.as_bytes()));
        pages
    }

    #[test]
    fn the_first_line_that_names_a_page_counts() {
        for (lines, weights) in [
            ("HTTP://A.example", [1, 0, 0, 0, 0]),
            (
                "http://a.example/x#top\t7\nhost:a.example\t3\n\n17",
                [3, 7, 0, 0, 1],
            ),
            ("domain:b.example\nurl:*news*\t0", [0, 0, 1, 0, 0]),
            ("host:a.example\t2\nhttp://a.example/\t9", [2, 2, 0, 0, 0]),
        ] {
            let pages = pages(lines);
            assert_eq!(pages.weights, weights, "{lines}");
        }
        let found = pages("domain:b.example\nurl:*news*\t0");
        assert_eq!(found.found(), 2);
    }

    #[test]
    fn a_site_has_the_largest_weight_of_its_pages() {
        let sites = Sites::of_names(Level::Host, None, NAMES.map(str::as_bytes)).unwrap();
        let teleport = pages("http://a.example/x\t7\nhost:a.example\t3\nurl:*news*")
            .teleport(Some(&sites))
            .unwrap();
        assert_eq!(teleport, Teleport::of(vec![7, 0, 1]).unwrap());
    }

    #[test]
    fn what_names_no_page_is_refused() {
        for wrong in ["host:a.org\tmany", "http://a/\t-1", "host:a b", "url:"] {
            let why = ChosenList::of(["http://ok/", wrong])
                .unwrap_err()
                .to_string();
            assert!(why.starts_with("line 2: "), "{why}");
        }
        for (lines, says) in [
            (
                "http://z.example/\nhost:y.example",
                "names one of the 5 pages",
            ),
            ("", "no line of the list"),
            ("host:a.example\t0", "at least one"),
        ] {
            let why = pages(lines).teleport(None).unwrap_err().to_string();
            assert!(why.contains(says), "{why}");
        }
    }
}
