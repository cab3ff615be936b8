//! Stores opened for reading: the last committed state, and the settings.

use std::path::Path;
use std::sync::Arc;

use super::folder::{is_busy, is_store, remove_unpublished, take_lock};
use super::identity::{self, Identity, Settings};
use super::tables::{Access, Tables};
use super::verify::Depth;
use super::view::View;
use super::warm::{self, WarmStart};
use crate::disk::Disk;
use crate::{Error, Result};

/// The last committed state of the store in `dir`, for reading it; nothing is written to it, and no writer is held
/// up. It is [`Error::Busy`] while an ingest runs. Should one begin later, what is read may be of two commits, and look
/// damaged: [`View::is_overtaken`] tells.
pub fn open_view(disk: &dyn Disk, dir: &Path) -> Result<View> {
    open_view_to(disk, dir, Depth::Quick)
}

/// As [`open_view`]; [`Depth::Deep`]: redb's pages are all checked before any is used.
pub(crate) fn open_view_to(disk: &dyn Disk, dir: &Path, depth: Depth) -> Result<View> {
    let look = || {
        let identity = Identity::read(disk, dir)?;
        if is_busy(disk, dir) {
            return Err(Error::Busy { path: dir.into() });
        }
        committed(disk, dir, identity, depth)
    };
    // What looks damaged may be a writer's that came between.
    look().or_else(|error| match error {
        Error::Damaged { .. } => look(),
        other => Err(other),
    })
}

/// The last committed state of the store in `dir`, and its lock with it: what is made of it can be published, and no
/// writer comes meanwhile. It is [`Error::Busy`] while there is one.
///
/// # Errors
/// Those of [`open_view`].
pub fn open_view_to_publish(disk: &dyn Disk, dir: &Path) -> Result<View> {
    // Where there is no store, nothing is to be made.
    identity_of(disk, dir)?;
    let lock = take_lock(disk, dir)?;
    let identity = Identity::read(disk, dir)?;
    let mut view = committed(disk, dir, identity, Depth::Quick)?;
    remove_unpublished(disk, dir)?;
    warm::remove_unfinished(disk, dir)?;
    view.lock = Some(Arc::from(lock));
    view.warm = WarmStart::open(disk, dir, view.identity(), view.rows_retention()).transpose();
    Ok(view)
}

fn committed(disk: &dyn Disk, dir: &Path, identity: Identity, depth: Depth) -> Result<View> {
    let mut tables = Tables::open(disk, dir, Access::Look)?;
    if depth == Depth::Deep {
        tables.check()?;
    }
    let identity = identity.or_next(disk, dir, tables.read()?.manifest()?.identity)?;
    View::new(disk, dir, Arc::new(tables), &identity)
}

impl View {
    /// The last committed state, under the same lock.
    ///
    /// # Errors
    ///
    /// Those of [`open_view`].
    pub(crate) fn reopened(self, disk: &dyn Disk) -> Result<View> {
        let (dir, lock) = (self.dir.clone(), self.lock.clone());
        // Its database is closed before it is opened again.
        drop(self);
        let identity = Identity::read(disk, &dir)?;
        let mut view = committed(disk, &dir, identity, Depth::Quick)?;
        view.lock = lock;
        Ok(view)
    }

    /// Returns whether a writer came since this was opened, so that what was read may be of two commits.
    pub fn is_overtaken(&self, disk: &dyn Disk) -> bool {
        let now = || {
            Tables::open(disk, &self.dir, Access::Look)?
                .read()?
                .manifest()
        };
        is_busy(disk, &self.dir) || !now().is_ok_and(|now| now == self.manifest)
    }
}

/// The settings of the store in `dir`; `None` if there is none yet.
pub fn settings_of(disk: &dyn Disk, dir: &Path) -> Result<Option<Settings>> {
    if !is_store(disk, dir)? {
        return Ok(None);
    }
    Ok(Some(Identity::read(disk, dir)?.settings))
}

/// The settings of the store in `dir`, the key of its fingerprints, and the hash of both.
pub(crate) fn identity_of(disk: &dyn Disk, dir: &Path) -> Result<Identity> {
    if is_store(disk, dir)? {
        Identity::read(disk, dir)
    } else {
        Err(identity::no_store(dir))
    }
}
