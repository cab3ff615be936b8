//! Pages of a graph whose names are one URL in other spellings: *twins*. They are one page, whose record is where the first of
//! them is, with the links and the fetches of all. As records of their own the last one's links would be all.

use std::collections::BTreeMap;

use super::super::decompress::Fault;
use super::graph::{Ahead, Fetch, Files, NumberedLink};
use crate::memory::{LOOK_EVERY, check_room};

/// Bytes that a twin takes, and a link of one.
const TWIN: u64 = 160;
const LINK: u64 = 2 * size_of::<NumberedLink>() as u64;

/// See the module.
#[derive(Default)]
pub(super) struct Twins {
    /// The first of its kind, of every later one.
    firsts: BTreeMap<u64, u64>,
    /// What the later ones have, by the first.
    others: BTreeMap<u64, Others>,
}

struct Others {
    fetch: Fetch,
    links: Vec<NumberedLink>,
}

impl Twins {
    /// Page `first` is page `later` as well.
    pub fn add(&mut self, first: u64, later: u64) {
        self.firsts.insert(later, first);
        let none = || Others {
            fetch: Fetch::Never,
            links: Vec::new(),
        };
        self.others.entry(first).or_insert_with(none);
    }

    /// Reads what the later ones have.
    ///
    /// # Errors
    /// Those of reading; they have more links than there may be in memory.
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
        let mut links = Ahead::of(files.links()?, pages)?;
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

    /// Returns whether the page is read with one before it.
    pub fn is_later(&self, page: u64) -> bool {
        self.firsts.contains_key(&page)
    }

    /// The links of the later ones, where the page is the first.
    pub fn links(&self, page: u64) -> &[NumberedLink] {
        self.others.get(&page).map_or(&[], |others| &others.links)
    }

    /// Takes [`Twins::links`]: they are written once.
    pub fn take_links(&mut self, page: u64) -> Vec<NumberedLink> {
        let others = self.others.get_mut(&page);
        others.map_or(Vec::new(), |others| std::mem::take(&mut others.links))
    }

    /// How the page was fetched, with the later ones.
    pub fn fetch(&self, page: u64, own: Fetch) -> Fetch {
        self.others
            .get(&page)
            .map_or(own, |others| own.or(others.fetch))
    }
}
