//! The partitions of a committed state, for reading: how they hang together, and what they come to.

use std::sync::Arc;

use super::View;
use super::addresses::{ADDRESSES, Addresses, GHOSTS};
use super::all::{PublishedPart, PublishedParts};
use super::rows::{KeptRows, Retention};
use crate::disk::Disk;
use crate::engine::{Row, Totals};
use crate::rows::Ghost;
use crate::{Error, Result};

/// The partitions of a state, and what all of them are together.
pub(super) struct ViewParts {
    pub views: Vec<View>,
    /// By partition: the number of each of its own pages among all. They ascend.
    pub numbers: Vec<Vec<u32>>,
    pub totals: Totals,
    pub retention: Retention,
    /// What a snapshot is read with.
    published: PublishedParts,
    /// The partition of each page, and its number there.
    places: Arc<[(u32, u32)]>,
    pub ghosts: Vec<Arc<[Ghost]>>,
    /// The logs that this was read from.
    pub order: Addresses,
    pub ghost_logs: Vec<Addresses>,
}

/// What settling in blocks needs of the partitions of a state.
pub(crate) struct ViewBlocks {
    /// By partition: rows, and ghosts.
    pub blocks: Vec<(KeptRows, Arc<[Ghost]>)>,
    /// The block of each page, and its number there.
    pub places: Arc<[(u32, u32)]>,
}

impl View {
    /// Of a store with partitions: with the states of these that belong to this one.
    ///
    /// # Errors
    /// The orders of pages and ghosts are damaged or cannot be read.
    pub(crate) fn with_parts(mut self, disk: &dyn Disk, views: Vec<View>) -> Result<View> {
        let published = PublishedParts {
            addresses: self.manifest.parts.log,
            parts: views.iter().map(View::published).collect(),
        };
        let addresses = Addresses::open(disk, &self.dir, ADDRESSES, published.addresses)?;
        let mut places = Vec::with_capacity(published.addresses.count as usize);
        let pages = published.parts.iter().map(|part| part.pages);
        let numbers = addresses.numbers(pages, |owner, at| places.push((owner, at)))?;
        let mut ghosts = Vec::with_capacity(views.len());
        let mut ghost_logs = Vec::with_capacity(views.len());
        for view in &views {
            let log = Addresses::open(disk, &view.dir, GHOSTS, view.manifest.parts.log)?;
            ghosts.push(log.entries(0)?.collect::<Result<Arc<[Ghost]>>>()?);
            ghost_logs.push(log);
        }
        let totals = Totals {
            pages: published.addresses.count,
            visits: views
                .iter()
                .map(|view| view.manifest.engine.totals.visits)
                .sum(),
            ..self.manifest.engine.totals
        };
        self.parts = Some(Box::new(ViewParts {
            retention: published.retention(),
            views,
            numbers,
            totals,
            published,
            places: places.into(),
            ghosts,
            order: addresses,
            ghost_logs,
        }));
        Ok(self)
    }

    /// Returns whether it is of a store with partitions.
    pub(crate) fn has_partitions(&self) -> bool {
        self.settings().partitions.split().is_some()
    }

    /// Pages that settling has to go over: those of all partitions, with what each knows of others.
    pub fn settled_pages(&self) -> u64 {
        match &self.parts {
            None => self.manifest.engine.totals.pages,
            Some(parts) => parts.views.iter().map(View::settled_pages).sum(),
        }
    }

    fn published(&self) -> PublishedPart {
        PublishedPart {
            pages: self.manifest.engine.totals.pages,
            names: self.manifest.names,
            ghosts: self.manifest.parts.log,
            rows: *self.rows_retention(),
        }
    }

    /// What a snapshot of this state is read with, if there are partitions.
    pub(crate) fn published_parts(&self) -> Option<PublishedParts> {
        self.parts.as_ref().map(|parts| parts.published.clone())
    }

    /// The partitions as blocks to settle, if there are any.
    ///
    /// # Errors
    /// Those of reading rows.
    pub(crate) fn blocks(&self) -> Result<Option<ViewBlocks>> {
        let Some(parts) = &self.parts else {
            return Ok(None);
        };
        let blocks = parts.views.iter().zip(&parts.ghosts);
        let blocks = blocks.map(|(view, ghosts)| Ok((view.rows()?, ghosts.clone())));
        Ok(Some(ViewBlocks {
            blocks: blocks.collect::<Result<_>>()?,
            places: parts.places.clone(),
        }))
    }

    /// Gives rows of a partition's history the numbers of all pages. Those of ghosts, which were never visited but whose
    /// cash was recycled, are left out.
    pub(super) fn number(&self, numbers: &[u32], rows: &mut Vec<Row>) -> Result<()> {
        let mut lost = None;
        rows.retain_mut(|row| match numbers.get(row.page as usize) {
            Some(&number) if number != u32::MAX => {
                row.page = number.into();
                true
            }
            _ => {
                lost = lost.or((row.visits > 0).then_some(row.page));
                false
            }
        });
        match lost {
            None => Ok(()),
            Some(page) => Err(Error::damaged(
                self.dir.join("store.redb"),
                format!("history of page {page}, which is another partition's"),
            )),
        }
    }
}
