//! Lists of chosen pages with weights, such as the pages of a topic or trusted pages.
//!
//! Each line names pages: a URL in any form or an opaque name, or `host:NAME`, `barehost:NAME`, `domain:NAME`,
//! `prefix:HOST/FOLDERS` or `url:PATTERN`, as in a scope. A tab and a whole number may follow, the weight of each of
//! these pages; the default is 1. The first line that matches a page counts. In a ranking of sites, a site gets the
//! largest weight of its pages. Lines are read as in other lists ([`crate::rules::list`]): names are kept as hashes.
//! Lines that are not URLs and name no page are skipped and counted; those that look like a misspelt rule are errors.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::rank::Teleport;
use crate::rules::Scope;
use crate::rules::list::{self, ListLine, NameMap, SkippedLines};
use crate::rules::{is_rule, looks_like_rule};
use crate::sites::Sites;
use crate::url::Reject;
use crate::{Error, Result};

const RULES: &str = "host:NAME, barehost:NAME, domain:NAME, prefix:HOST/FOLDERS or url:PATTERN";
/// Memory of a rule in bytes, without its text, which it may hold twice.
const RULE_BYTES: u64 = 192;
/// Memory of a line that is not a URL in bytes, without its text.
const OPAQUE_BYTES: u64 = 96;

#[derive(Debug, Clone, Default)]
pub struct ChosenList {
    /// Weights by canonical URL or name.
    named: NameMap<ChosenLine>,
    patterns: Vec<(Scope, ChosenLine)>,
    opaque: Vec<OpaqueLine>,
    comments: u64,
}

/// Number of a line, and the weight of its pages.
#[derive(Debug, Clone, Copy, Default)]
struct ChosenLine {
    number: u32,
    weight: u32,
}

/// Line with a name that is not a URL.
#[derive(Debug, Clone)]
struct OpaqueLine {
    /// Number of the first line with this name.
    first: u32,
    why: Reject,
    /// Text of the name, if it looks like a rule.
    rule: Option<String>,
}

impl ChosenList {
    /// Reads lines into a list of at most `memory` bytes; `None` for no limit. Fails with [`Error::Usage`] with the
    /// number of a line whose rule or weight is wrong; [`Error::TooLarge`].
    pub fn read(
        lines: impl IntoIterator<Item = Result<Vec<u8>>>,
        memory: Option<u64>,
    ) -> Result<ChosenList> {
        let mut chosen = ChosenList {
            named: NameMap::new(memory),
            ..ChosenList::default()
        };
        for (number, line) in (0u64..).zip(lines) {
            let line = line?;
            let number = u32::try_from(number)
                .map_err(|_| Error::Usage("`teleport`: a list of more than 2^32 lines".into()))?;
            match list::parts(&line) {
                None => (),
                Some(([b'#', ..], _)) => chosen.comments += 1,
                Some((text, behind)) => chosen.add(text, behind, number)?,
            }
        }
        Ok(chosen)
    }

    fn add(&mut self, text: &[u8], behind: Option<&[u8]>, number: u32) -> Result<()> {
        let wrong = |why: String| {
            Error::Usage(format!("`teleport`: line {}: {why}", u64::from(number) + 1))
        };
        let behind = String::from_utf8_lossy(behind.unwrap_or(b"1"));
        let weight = behind.parse().map_err(|_| {
            wrong(format!(
                "{behind:?} behind a tab is no weight: a whole number from 0 to {}",
                u32::MAX
            ))
        })?;
        let chosen = ChosenLine { number, weight };
        if is_rule(text) {
            let rule = String::from_utf8_lossy(text);
            let scope = rule
                .parse()
                .map_err(|error: Error| wrong(error.to_string()))?;
            self.named.take(RULE_BYTES + 2 * rule.len() as u64)?;
            self.patterns.push((scope, chosen));
            return Ok(());
        }
        let line = ListLine::of(text, u64::from(number));
        let first = *self.named.get_or_add(&line.name, chosen)?;
        if let Some(typed) = &line.typed {
            self.named.get_or_add(typed, chosen)?;
        }
        if let Some(why) = line.why {
            let text = std::str::from_utf8(&line.name).unwrap_or_default();
            let rule = looks_like_rule(text).then(|| text.to_owned());
            self.named
                .take(OPAQUE_BYTES + rule.as_ref().map_or(0, String::len) as u64)?;
            let first = first.number;
            self.opaque.push(OpaqueLine { first, why, rule });
        }
        Ok(())
    }

    pub fn bytes(&self) -> u64 {
        self.named.bytes()
    }
}

/// Weights of the pages of a crawl by a `ChosenList`.
#[derive(Debug)]
pub struct ChosenPages {
    chosen: Arc<ChosenList>,
    weights: Vec<u32>,
    pub found: u64,
    /// Lines of names that are not URLs, and of no page so far.
    unknown: BTreeSet<u32>,
}

impl ChosenPages {
    pub fn new(chosen: Arc<ChosenList>) -> ChosenPages {
        ChosenPages {
            unknown: chosen.opaque.iter().map(|line| line.first).collect(),
            chosen,
            weights: Vec::new(),
            found: 0,
        }
    }

    pub fn add(&mut self, name: &[u8]) {
        let named = self.chosen.named.get(name);
        if let Some(line) = named {
            self.unknown.remove(&line.number);
        }
        let mut patterns = self.chosen.patterns.iter();
        let fits = patterns.find(|(scope, _)| scope.has(name));
        let lines = named.into_iter().chain(fits.map(|(_, line)| line));
        let first = lines.min_by_key(|line| line.number);
        self.found += u64::from(first.is_some());
        self.weights.push(first.map_or(0, |line| line.weight));
    }

    fn skipped(&self) -> Result<SkippedLines> {
        let mut skipped = SkippedLines {
            comments: self.chosen.comments,
            ..SkippedLines::default()
        };
        let lines = self.chosen.opaque.iter();
        for line in lines.filter(|line| self.unknown.contains(&line.first)) {
            if let Some(rule) = &line.rule {
                return Err(Error::Usage(format!(
                    "`teleport`: line {}: {rule:?} is neither the name of a page nor a rule: {RULES}",
                    u64::from(line.first) + 1
                )));
            }
            skipped.count(line.why, 1);
        }
        Ok(skipped)
    }

    /// Returns the teleport vector of the pages, or of their sites, and the skipped lines. Fails with [`Error::Missing`]
    /// if no line matches a page; [`Error::Usage`] if weights sum to 0 or to more than 2^32, or a rule seems misspelt.
    pub fn teleport(self, sites: Option<&Sites>) -> Result<(Teleport, SkippedLines)> {
        let skipped = self.skipped()?;
        if self.found == 0 {
            return Err(Error::Missing(format!(
                "no line of the list (`teleport`) names one of the {} pages that are known: lines are URLs, {RULES}, and a weight may \
                 follow behind a tab; {skipped}",
                self.weights.len()
            )));
        }
        let Some(sites) = sites else {
            return Ok((Teleport::of(self.weights)?, skipped));
        };
        let mut weights = vec![0; sites.len()];
        for (page, weight) in self.weights.into_iter().enumerate() {
            if let Some(site) = sites.site(page) {
                weights[site] = weight.max(weights[site]);
            }
        }
        Ok((Teleport::of(weights)?, skipped))
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

    fn read(lines: &str) -> Result<ChosenList> {
        let lines = lines.lines().map(|line| Ok(line.as_bytes().to_vec()));
        ChosenList::read(lines, None)
    }

    fn pages(lines: &str) -> ChosenPages {
        let mut pages = ChosenPages::new(Arc::new(read(lines).unwrap()));
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
        assert_eq!(found.found, 2);
    }

    #[test]
    fn a_site_has_the_largest_weight_of_its_pages() {
        let sites = Sites::of_names(Level::Host, None, NAMES.map(str::as_bytes)).unwrap();
        let (teleport, _) = pages("http://a.example/x\t7\nhost:a.example\t3\nurl:*news*")
            .teleport(Some(&sites))
            .unwrap();
        assert_eq!(teleport, Teleport::of(vec![7, 0, 1]).unwrap());
    }

    #[test]
    fn what_names_no_page_is_refused() {
        for wrong in ["host:a.org\tmany", "http://a/\t-1", "host:a b", "url:"] {
            let why = read(&format!("http://ok/\n{wrong}"))
                .unwrap_err()
                .to_string();
            assert!(why.starts_with("`teleport`: line 2: "), "{why}");
        }
        for wrong in [
            "hsot:b.example",
            "Domain:b.example",
            "!host:b.example",
            "urls:*news*",
        ] {
            let why = pages(&format!("17\n{wrong}")).teleport(None).unwrap_err();
            let says = why.to_string();
            assert!(
                says.starts_with("`teleport`: line 2: ") && says.contains("nor a rule"),
                "{says}"
            );
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

    /// As in other lists, what is not a URL is a name if there is such a page, and otherwise counted by reason.
    #[test]
    fn what_is_no_url_is_counted() {
        let list = "# topic\n\u{feff}http://a.example/ # home\t9\nb.example\nb.example\nftp://b.example/\nmailto:me@b.example\n\
                    http://[b.example/\n17\t2 # a node\n17\nhost:c.example # all of it\n";
        let (teleport, skipped) = pages(list).teleport(None).unwrap();
        assert_eq!(teleport, Teleport::of(vec![1, 0, 0, 1, 2]).unwrap());
        assert_eq!(
            skipped.to_string(),
            "6 lines skipped: comments (1), no http:// or https:// (2), another scheme (2), no URL (1)"
        );
    }

    #[test]
    fn a_list_beyond_the_memory_is_refused() {
        let lines =
            |count: u32| (0..count).map(|page| Ok(format!("http://a.example/{page}").into_bytes()));
        let chosen = ChosenList::read(lines(1000), None).unwrap();
        let bytes = chosen.bytes();
        assert!(bytes < 1000 * 100);
        assert!(ChosenList::read(lines(1000), Some(bytes)).is_ok());
        for list in [
            ChosenList::read(lines(1001), Some(bytes)),
            ChosenList::read(
                (0..1000).map(|host| Ok(format!("host:{host}.example").into_bytes())),
                Some(bytes),
            ),
        ] {
            assert!(matches!(list, Err(Error::TooLarge { .. })), "{list:?}");
        }
    }
}
