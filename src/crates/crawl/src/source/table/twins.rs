//! Pages of a graph whose names are spellings of one URL: *twins*. They become one record at the position of the first,
//! with the links and fetches of all. As separate records, the links of the last one would replace the others'.

use std::collections::BTreeMap;

use super::super::decompress::Fault;
use super::graph::{Files, LastFetch, NumberedLink, PeekedLinks};
use crate::model::{LOOK_EVERY, check_room};

/// Memory per twin and per link of one, in bytes.
const TWIN: u64 = 160;
const LINK: u64 = 2 * size_of::<NumberedLink>() as u64;

/// Twins of a graph, with their links and fetches.
#[derive(Default)]
pub(super) struct Twins {
    /// Maps every later twin to its first.
    firsts: BTreeMap<u64, u64>,
    /// Links and fetches of the later twins, by their first.
    others: BTreeMap<u64, Others>,
}

struct Others {
    fetch: LastFetch,
    links: Vec<NumberedLink>,
}

impl Twins {
    /// Notes that pages `first` and `later` are one.
    pub fn add(&mut self, first: u64, later: u64) {
        self.firsts.insert(later, first);
        let none = || Others {
            fetch: LastFetch::Never,
            links: Vec::new(),
        };
        self.others.entry(first).or_insert_with(none);
    }

    /// Reads the links and fetches of the later twins. Fails if their links exceed the memory.
    pub fn read(
        &mut self,
        files: &dyn Files,
        pages: u64,
        memory: Option<u64>,
    ) -> Result<(), Fault> {
        if self.firsts.is_empty() {
            return Ok(());
        }
        let mut rows = files.pages()?;
        for page in 0..pages {
            let row = rows.next()?;
            if let Some((row, others)) = row.zip(self.others_of(page)) {
                others.fetch = others.fetch.or(row.fetch);
            }
        }
        let mut links = PeekedLinks::of(files.links()?, pages)?;
        let mut count = 0u64;
        while let Some(link) = links.next {
            if let Some(others) = self.others_of(link.source) {
                others.links.push(link);
                count += 1;
                if count.is_multiple_of(LOOK_EVERY) {
                    self.check(count, memory)?;
                }
            }
            links.advance()?;
        }
        self.check(count, memory)
    }

    fn others_of(&mut self, later: u64) -> Option<&mut Others> {
        let first = self.firsts.get(&later)?;
        self.others.get_mut(first)
    }

    fn check(&self, links: u64, memory: Option<u64>) -> Result<(), Fault> {
        let twins = self.firsts.len() as u64;
        let work = || {
            format!("{links} links of {twins} pages whose URLs other pages of the graph have, too,")
        };
        let instead = "join the pages outside";
        Ok(check_room(
            memory,
            twins * TWIN + links * LINK,
            work,
            instead,
        )?)
    }

    /// Returns whether the page is merged into an earlier one.
    pub fn is_later(&self, page: u64) -> bool {
        self.firsts.contains_key(&page)
    }

    /// Returns the links of the later twins of `page`.
    pub fn links(&self, page: u64) -> &[NumberedLink] {
        self.others.get(&page).map_or(&[], |others| &others.links)
    }

    /// Takes the links that [`Twins::links`] returns: they are written once.
    pub fn take_links(&mut self, page: u64) -> Vec<NumberedLink> {
        let others = self.others.get_mut(&page);
        others.map_or(Vec::new(), |others| std::mem::take(&mut others.links))
    }

    /// Combines the page's own fetch with those of its later twins.
    pub fn fetch(&self, page: u64, own: LastFetch) -> LastFetch {
        self.others
            .get(&page)
            .map_or(own, |others| own.or(others.fetch))
    }
}
