//! Stores opened for reading: the last committed state, and the settings.

use std::path::Path;
use std::sync::Arc;

use super::SettledBase;
use super::base::{self, BaseState, CommittedBase, OwedBase, OwedGoal};
use super::folder::{is_busy, is_store, remove_unpublished, take_lock};
use super::identity::{self, Identity, Settings};
use super::manifest::Manifest;
use super::partition_dir;
use super::tables::{Access, Tables};
use super::verify::Depth;
use super::view::View;
use super::view_parts::RowBlock;
use crate::disk::{Disk, allow_open_files};
use crate::memory::{DATABASE, part_of_cache};
use crate::{Error, Result};

/// Files that are open of each partition of a state that is read.
const VIEWED_FILES: u64 = 24;

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
    let view = look(disk, dir, identity, (depth, DATABASE), None)?;
    let generations = &view.manifest.parts.generations;
    if generations.is_empty() {
        return Ok(view);
    }
    let count = generations.len() as u32;
    allow_open_files(VIEWED_FILES * u64::from(count), count)?;
    let parts = (0..generations.len()).map(|number| part(disk, &view, number, depth));
    let parts = parts.collect::<Result<_>>()?;
    view.with_parts(disk, parts)
}

/// The state of a partition that belongs to that of its store.
fn part(disk: &dyn Disk, whole: &View, number: usize, depth: Depth) -> Result<View> {
    let generations = &whole.manifest.parts.generations;
    let dir = partition_dir(&whole.dir, number as u32);
    let identity = match Identity::read(disk, &dir) {
        Err(Error::Missing(_)) => return Err(identity::no_partition(disk, &dir)),
        read => read?,
    };
    let cache = part_of_cache(generations.len() as u32);
    let commit = (
        generations[number],
        whole.manifest.sums.get(number).copied(),
    );
    look(disk, &dir, identity, (depth, cache), Some(commit))
}

/// Partitions of the last committed state of a store, which another process has locked ([`open_view_to_publish`]) and has
/// the whole of.
pub(crate) struct SomeParts {
    /// See [`View::digest`].
    pub digest: u128,
    /// How many partitions there are in all.
    pub count: usize,
    pub settings: Settings,
    /// The partitions asked for, and what is settled of each.
    pub views: Vec<View>,
    pub blocks: Vec<RowBlock>,
}

impl SomeParts {
    /// The settled bases of these names, which the store's commit has for these partitions, or that are `beside` the run.
    ///
    /// # Errors
    /// One cannot be used, and why.
    pub fn bases(
        &self,
        disk: &dyn Disk,
        named: &[CommittedBase],
        beside: bool,
    ) -> Result<Vec<SettledBase>> {
        let views = self.views.iter().zip(named);
        views
            .map(|(view, named)| view.open_base(disk, named, beside))
            .collect()
    }

    /// What was there to settle when these bases were owed, one for each of these partitions.
    ///
    /// # Errors
    /// Those of reading rows.
    pub fn blocks_of(&self, disk: &dyn Disk, owed: &[OwedBase]) -> Result<Vec<RowBlock>> {
        let all = self.views.iter().zip(owed).zip(&self.blocks);
        let block = |((view, owed), latest): ((&View, &OwedBase), &RowBlock)| {
            view.block_of(disk, owed, &latest.ghosts)
        };
        all.map(block).collect()
    }

    /// Those whose states are these, of a store with these settings.
    ///
    /// # Errors
    /// Those of reading them.
    pub fn of(disk: &dyn Disk, settings: &Settings, views: Vec<View>) -> Result<SomeParts> {
        let block = |view: &View| {
            Ok(RowBlock {
                rows: view.rows()?,
                ghosts: view.ghosts(disk)?,
            })
        };
        Ok(SomeParts {
            digest: 0,
            count: settings.partitions.count as usize,
            settings: settings.clone(),
            blocks: views.iter().map(block).collect::<Result<_>>()?,
            views,
        })
    }

    /// Removes all bases but these, which the store's commit names.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn keep_bases(&self, disk: &dyn Disk, named: &[CommittedBase]) -> Result<()> {
        for (view, &base) in self.views.iter().zip(named) {
            let state = BaseState {
                base: Some(base),
                owed: None,
            };
            base::remove_others(disk, &view.dir, &state)?;
        }
        Ok(())
    }
}

/// Opens the partitions of a store that are asked for by number. Of the others nothing is read.
///
/// # Errors
/// [`Error::Usage`]: the store has no partitions; those of [`open_view`].
pub(crate) fn open_some_parts(
    disk: &dyn Disk,
    dir: &Path,
    has: &dyn Fn(usize) -> bool,
) -> Result<SomeParts> {
    let identity = Identity::read(disk, dir)?;
    let whole = look(disk, dir, identity, (Depth::Quick, DATABASE), None)?;
    if !whole.has_partitions() {
        return Err(Error::Usage(format!(
            "{}: only a store made with `partitions` can be worked on by several processes",
            dir.display()
        )));
    }
    let count = whole.manifest.parts.generations.len();
    let asked: Vec<usize> = (0..count).filter(|&number| has(number)).collect();
    allow_open_files(VIEWED_FILES * asked.len() as u64, count as u32)?;
    let views = asked.into_iter();
    let views = views.map(|number| part(disk, &whole, number, Depth::Quick));
    let views = views.collect::<Result<_>>()?;
    Ok(SomeParts {
        digest: whole.digest()?,
        count,
        ..SomeParts::of(disk, whole.settings(), views)?
    })
}

/// Opens a store, or the partition of one of which this commit, with its sum, belongs to the store's, so that nothing is
/// written.
fn look(
    disk: &dyn Disk,
    dir: &Path,
    identity: Identity,
    (depth, cache): (Depth, u64),
    commit: Option<(u64, Option<u128>)>,
) -> Result<View> {
    let mut tables = Tables::open_with(disk, dir, Access::Look, cache)?;
    if depth == Depth::Deep {
        tables.check()?;
    }
    // A partition that is a commit ahead, of a checkpoint that was cut off, is read as it was before.
    if let Some((generation, sum)) = commit {
        tables.bring_to(generation, sum)?;
    }
    let identity = identity.or_next(disk, dir, tables.read()?.manifest()?.identity)?;
    View::new(disk, dir, Arc::new(tables), &identity)
}

impl View {
    /// Makes what was settled of this state the store's base, or those of its partitions, by a commit of its own. The store is
    /// locked by whoever reads this ([`open_view_to_publish`]).
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub(crate) fn name_bases(&self, disk: &dyn Disk, bases: &[CommittedBase]) -> Result<()> {
        let mut manifest = self.next_manifest(None);
        let mut before = Vec::new();
        for (state, base) in manifest.bases_mut(bases.len()).zip(bases) {
            // Rows that were owed a base may lie elsewhere since.
            let owed = state.owed.take().filter(|owed| owed.number == base.number);
            let place = owed.map_or(base.place, |owed| owed.place);
            let named = state.base.replace(CommittedBase { place, ..*base });
            before.push(named.filter(|named| named.number != base.number));
        }
        commit(disk, &self.dir, &manifest)?;
        for (view, before) in self.settled_views().iter().zip(before) {
            if let Some(before) = before {
                base::remove(disk, &view.dir, before.number)?;
            }
        }
        Ok(())
    }

    /// The same of bases that it owed. The state with them.
    ///
    /// # Errors
    ///
    /// Those of writing, and of [`open_view`].
    pub(crate) fn with_owed_bases(self, disk: &dyn Disk, bases: &[CommittedBase]) -> Result<View> {
        self.name_bases(disk, bases)?;
        let identity = Identity::read(disk, &self.dir)?;
        let mut view = committed(disk, &self.dir, identity, Depth::Quick)?;
        view.lock = self.lock;
        Ok(view)
    }

    /// Has the store owe the bases of this state, for which there was no room, by a commit of its own: the next writer makes them
    /// first. It is locked likewise.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub(crate) fn owe_bases(
        &self,
        disk: &dyn Disk,
        owed: &[OwedBase],
        goal: OwedGoal,
    ) -> Result<()> {
        let mut manifest = self.next_manifest(Some(goal));
        for (state, owed) in manifest.bases_mut(owed.len()).zip(owed) {
            let from = state.base.map(|base| base.place);
            state.owed = Some(OwedBase { from, ..*owed });
        }
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

/// Commits what is said of a store's bases, and nothing else. Pages of the commit before are not written over.
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
