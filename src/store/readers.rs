//! Stores opened for reading: the last committed state, and the settings.

use std::path::Path;
use std::sync::Arc;

use super::base::{self, CommittedBase, OwedBase, OwedGoal};
use super::folder::{is_busy, is_store, remove_unpublished, take_lock};
use super::identity::{self, Identity, Settings};
use super::manifest::Manifest;
use super::tables::{Access, Tables};
use super::verify::Depth;
use super::view::View;
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
    view.lock = Some(Arc::from(lock));
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
    /// Makes what was settled of this state the store's base, by a commit of its own. The store is locked by whoever reads
    /// this ([`open_view_to_publish`]).
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub(crate) fn name_base(&self, disk: &dyn Disk, base: CommittedBase) -> Result<()> {
        let mut manifest = self.next_manifest(None);
        let state = &mut manifest.base;
        // Rows that were owed a base may lie elsewhere since.
        let owed = state.owed.take().filter(|owed| owed.number == base.number);
        let place = owed.map_or(base.place, |owed| owed.place);
        let before = state.base.replace(CommittedBase { place, ..base });
        commit(disk, &self.dir, &manifest)?;
        match before.filter(|before| before.number != base.number) {
            Some(before) => base::remove(disk, &self.dir, before.number),
            None => Ok(()),
        }
    }

    /// The same of a base that it owed. The state with it.
    ///
    /// # Errors
    ///
    /// Those of writing, and of [`open_view`].
    pub(crate) fn with_owed_base(self, disk: &dyn Disk, base: CommittedBase) -> Result<View> {
        self.name_base(disk, base)?;
        self.reopened(disk)
    }

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

    /// Has the store owe the base of this state, for which there was no room, by a commit of its own: the next writer makes it
    /// first. It is locked likewise.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub(crate) fn owe_base(&self, disk: &dyn Disk, owed: OwedBase, goal: OwedGoal) -> Result<()> {
        let mut manifest = self.next_manifest(Some(goal));
        let state = &mut manifest.base;
        let from = state.base.map(|base| base.place);
        state.owed = Some(OwedBase { from, ..owed });
        commit(disk, &self.dir, &manifest)
    }

    fn next_manifest(&self, goal: Option<OwedGoal>) -> Manifest {
        Manifest {
            generation: self.manifest.generation + 1,
            goal,
            ..self.manifest.clone()
        }
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

/// Commits what is said of a store's base, and nothing else. Pages of the commit before are not written over.
fn commit(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<()> {
    Tables::open(disk, dir, Access::Write)?
        .begin()?
        .commit(manifest)
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
