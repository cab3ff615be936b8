//! Which partition has which page, and under which number.

use std::path::Path;

use super::watch::{Stage, Watch};
use crate::batch::split::partition_of;
use crate::disk::Disk;
use crate::engine::{Engine, HistoryView};
use crate::model::{Digest, Fingerprint};
use crate::rows::{Ghost, Stop};
use crate::store::{PRINT, Store, View, print_bytes, read_print};
use crate::{Error, Result};

/// How often the work is looked at.
pub(super) const LOOK: u64 = 1 << 12;
/// Bytes of memory for each page: what is here, and a digest of its links.
pub(super) const A_PAGE: u64 = 1 + 4 + PRINT as u64 + size_of::<Digest>() as u64;

/// See the head of the file.
pub(super) struct Deal {
    /// New partitions; 1: there are none, and pages stay as they are.
    pub count: u32,
    /// Of each page its partition, the number that this has for it, and its fingerprint; none without partitions.
    owners: Vec<u8>,
    places: Vec<u32>,
    prints: Vec<[u8; PRINT]>,
    /// Pages of each partition.
    pub own: Vec<u64>,
}

impl Deal {
    /// Of a store without partitions.
    pub fn whole(pages: u64) -> Deal {
        Deal {
            count: 1,
            owners: Vec::new(),
            places: Vec::new(),
            prints: Vec::new(),
            own: vec![pages],
        }
    }

    /// Deals all pages of a store out to so many partitions, and tells the new store where they are. A partition has its
    /// own pages first, in the order of all.
    ///
    /// # Errors
    /// Those of reading names; [`Stop::Enough`].
    pub fn new(
        disk: &dyn Disk,
        (view, count): (&View, u32),
        whole: &mut Engine<Store>,
        watch: &Watch,
    ) -> Result<Deal, Stop> {
        let pages = HistoryView::totals(view).pages;
        watch.begin(Stage::Dealing, pages)?;
        let room = pages as usize;
        let mut deal = Deal {
            count,
            owners: Vec::with_capacity(room),
            places: Vec::with_capacity(room),
            prints: Vec::with_capacity(room),
            own: vec![0; count as usize],
        };
        let names = view.names(disk)?;
        for (page, (name, print)) in (0..pages).zip(names.names().zip(names.fingerprints())) {
            let owner = partition_of(name?.as_bytes(), count);
            let own = &mut deal.own[owner as usize];
            let at = *own as u32;
            *own += 1;
            deal.owners.push(owner as u8);
            deal.places.push(at);
            deal.prints.push(print_bytes(print?));
            let page = page as u32;
            whole.storage_mut().add_address(Ghost { page, owner, at })?;
            if u64::from(page) % LOOK == 0 {
                watch.at(page.into())?;
            }
        }
        if deal.owners.len() as u64 != pages {
            return Err(unnamed(view.dir(), deal.owners.len() as u64, pages).into());
        }
        Ok(deal)
    }

    /// The partition of a page, and the page's number there.
    pub fn place(&self, page: u32) -> (u32, u32) {
        match self.count {
            1 => (0, page),
            _ => {
                let at = page as usize;
                (self.owners[at].into(), self.places[at])
            }
        }
    }

    /// All pages, those of one partition after those of the other, in the order in which each has them.
    pub fn order(&self, pages: usize) -> Vec<u32> {
        if self.count == 1 {
            return (0..pages as u32).collect();
        }
        let mut begins = Vec::with_capacity(self.own.len());
        let mut begin = 0;
        for &own in &self.own {
            begins.push(begin);
            begin += own as usize;
        }
        let mut order = vec![0; pages];
        for page in 0..pages as u32 {
            let (owner, at) = self.place(page);
            order[begins[owner as usize] + at as usize] = page;
        }
        order
    }

    /// What is kept of a page's fingerprint, where there are partitions.
    pub fn print(&self, page: u32) -> Fingerprint {
        read_print(self.prints[page as usize])
    }
}

/// Fewer names than pages.
pub(super) fn unnamed(dir: &Path, names: u64, pages: u64) -> Error {
    Error::damaged(
        dir.join("urls"),
        format!("names of {names} pages, where there are {pages}"),
    )
}
