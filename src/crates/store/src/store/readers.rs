//! Opening of stores for reading: the last committed state, and the settings.

use std::path::Path;
use std::sync::Arc;

use super::folder::{is_busy, is_store, remove_unfinished, remove_unpublished, take_lock};
use super::identity::{self, Identity, Settings};
use super::tables::{Access, Tables};
use super::verify::Depth;
use super::view::View;
use super::warm::WarmStart;
use crate::disk::Disk;
use crate::{Error, Result};

/// Opens the last committed state of the store in `dir` for reading. Writes nothing and blocks no writer. Returns
/// [`Error::Busy`] while an ingest runs. If one begins later, what is read may mix two commits and look damaged: see
/// [`View::is_overtaken`].
pub fn open_view(disk: &dyn Disk, dir: &Path) -> Result<View> {
    open_view_to(disk, dir, Depth::Quick)
}

/// Opens like [`open_view`]; with [`Depth::Deep`], checks all of redb's pages before using any.
pub fn open_view_to(disk: &dyn Disk, dir: &Path, depth: Depth) -> Result<View> {
    let look = || {
        let identity = Identity::read(disk, dir)?;
        if is_busy(disk, dir) {
            return Err(Error::Busy { path: dir.into() });
        }
        committed(disk, dir, identity, depth)
    };
    // Apparent damage may come from a writer that began meanwhile.
    look().or_else(|error| match error {
        Error::Damaged { .. } => look(),
        other => Err(other),
    })
}

/// Opens the last committed state of the store in `dir` together with its lock, so that results can be published and no
/// writer interferes. Returns [`Error::Busy`] while there is a writer.
pub fn open_view_to_publish(disk: &dyn Disk, dir: &Path) -> Result<View> {
    // Creates nothing where there is no store.
    identity_of(disk, dir)?;
    let lock = take_lock(disk, dir)?;
    let identity = Identity::read(disk, dir)?;
    let mut view = committed(disk, dir, identity, Depth::Quick)?;
    remove_unpublished(disk, dir)?;
    remove_unfinished(disk, dir)?;
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
    /// Returns the last committed state, under the same lock.
    pub fn reopened(self, disk: &dyn Disk) -> Result<View> {
        let (dir, lock) = (self.dir.clone(), self.lock.clone());
        // The database has to be closed before it is opened again.
        drop(self);
        let identity = Identity::read(disk, &dir)?;
        let mut view = committed(disk, &dir, identity, Depth::Quick)?;
        view.lock = lock;
        Ok(view)
    }

    /// Returns true if a writer came since this was opened, so that data may mix two commits.
    pub fn is_overtaken(&self, disk: &dyn Disk) -> bool {
        let now = || {
            Tables::open(disk, &self.dir, Access::Look)?
                .read()?
                .manifest()
        };
        is_busy(disk, &self.dir) || !now().is_ok_and(|now| now == self.manifest)
    }
}

/// Returns the settings of the store in `dir`; `None` if there is none yet.
pub fn settings_of(disk: &dyn Disk, dir: &Path) -> Result<Option<Settings>> {
    if !is_store(disk, dir)? {
        return Ok(None);
    }
    Ok(Some(Identity::read(disk, dir)?.settings))
}

/// Returns the identity of the store in `dir`: settings, key of the fingerprints, and their hash.
pub fn identity_of(disk: &dyn Disk, dir: &Path) -> Result<Identity> {
    if is_store(disk, dir)? {
        Identity::read(disk, dir)
    } else {
        Err(identity::no_store(dir))
    }
}
