//! Restart of a store without pages: it takes other settings and forgets what it read.
//!
//! Nothing is lost, as nothing was applied, and a first try with a wrong option costs nothing. Acknowledged bytes of a
//! sender are kept, unless their stream has ended and is not resumed; then the next stream begins at byte 0.
//!
//! Identity and manifest are two files, and both change. The new identity is written under a temporary name
//! (`identity.next`), the manifest that names it is committed, and it is renamed. After a crash at any point, one of
//! the two files is the one the manifest names, and the next opening selects it.

use std::path::Path;

use super::chunks::slots_sum;
use super::identity::Identity;
use super::manifest::Manifest;
use super::spool::{remove_spool, spool_state};
use super::tables::Tables;
use super::{SNAPSHOTS, Settings, check_settings};
use crate::disk::Disk;
use crate::engine::EngineState;
use crate::{Error, Result};

/// Returns the store's identity and last commit, renewed if it has no pages and `asked` are other settings.
pub(super) fn opened(
    disk: &dyn Disk,
    dir: &Path,
    tables: &Tables,
    asked: &Settings,
    resumes: bool,
) -> Result<(Identity, Manifest)> {
    let manifest = tables.read()?.manifest()?;
    let identity = Identity::named(disk, dir, manifest.identity)?;
    manifest.check_identity(dir, &identity)?;
    let untouched = manifest.progress.inputs.is_empty() && identity.settings == *asked;
    if untouched || !is_void(disk, dir, &manifest, resumes)? {
        check_settings(dir, &identity.settings, asked)?;
        return Ok((identity, manifest));
    }
    let next = manifest.generation + 1;
    let renewed = renew(disk, dir, tables, &identity, next, asked)?;
    Ok((renewed, tables.read()?.manifest()?))
}

/// Returns true if the store holds nothing to keep: no page, and no acknowledged bytes on which a sender may rely.
fn is_void(disk: &dyn Disk, dir: &Path, manifest: &Manifest, resumes: bool) -> Result<bool> {
    if manifest.engine.totals.pages > 0 {
        return Ok(false);
    }
    let has_ended = manifest.progress.finished && !resumes;
    Ok(has_ended || spool_state(disk, dir)?.is_none_or(|spool| spool.acked == 0))
}

fn renew(
    disk: &dyn Disk,
    dir: &Path,
    tables: &Tables,
    identity: &Identity,
    generation: u64,
    settings: &Settings,
) -> Result<Identity> {
    remove_snapshots(disk, dir)?;
    remove_spool(disk, dir)?;
    let next = Identity::stage(disk, dir, settings.clone(), identity.key)?;
    tables.begin()?.commit(&Manifest {
        generation,
        identity: next.hash,
        slots: slots_sum(&[]),
        engine: EngineState::start(),
        ..Manifest::default()
    })?;
    Identity::named(disk, dir, next.hash)
}

/// Removes the snapshots of a store without pages, the name of the current one first.
fn remove_snapshots(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let folder = dir.join(SNAPSHOTS);
    let mut names = disk.list(&folder).map_err(Error::opening(&folder))?;
    names.sort_by_key(|name| name != "latest.json");
    for name in names {
        let path = folder.join(name);
        disk.remove(&path).map_err(Error::io(&path, "remove"))?;
        disk.sync_dir(&folder).map_err(Error::io(&folder, "sync"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Depth, check};
    use crate::disk::RealDisk;
    use crate::engine::Config;
    use crate::model::Limits;
    use crate::store::rows::KeepRows;
    use crate::store::tables::Access;
    use crate::store::{StoreWriter, settings_of};
    use std::sync::Arc;

    /// Regression: a writer that takes other settings may stop after the commit and before renaming the identity.
    /// Readers then called the store damaged until the next ingest.
    #[test]
    fn settings_that_were_stopped_on_their_way_are_no_damage() {
        let dir = cashrank_base::folder::in_memory();
        let dir = &dir.path().join("s");
        let limits = Limits::default();
        let old = Settings::new(Config::default(), &limits);
        let open = |settings: &Settings| {
            StoreWriter::open(
                Arc::new(RealDisk),
                dir,
                settings,
                &limits,
                KeepRows::None,
                false,
            )
        };
        drop(open(&old).unwrap());
        let new = Settings {
            links: 77,
            ..old.clone()
        };
        let tables = Tables::open(&RealDisk, dir, Access::Write).unwrap();
        let manifest = tables.read().unwrap().manifest().unwrap();
        let identity = Identity::read(&RealDisk, dir).unwrap();
        let next = Identity::stage(&RealDisk, dir, new.clone(), identity.key).unwrap();
        let checked = || check(&RealDisk, dir, Depth::Deep, None).unwrap();

        let is_sound = |checked: &crate::check::CheckReport| {
            checked.damage.is_empty() && checked.strangers.is_empty()
        };
        drop(tables);
        assert!(is_sound(&checked()), "before the commit");
        let tables = Tables::open(&RealDisk, dir, Access::Write).unwrap();
        tables
            .begin()
            .unwrap()
            .commit(&Manifest {
                generation: manifest.generation + 1,
                identity: next.hash,
                ..manifest
            })
            .unwrap();
        drop(tables);
        let after = checked();
        assert!(is_sound(&after), "after it: {:?}", after.damage);
        assert!(after.checkpoint.is_some());
        assert_eq!(settings_of(&RealDisk, dir).unwrap(), Some(old));
        drop(open(&new).unwrap());
        assert_eq!(settings_of(&RealDisk, dir).unwrap(), Some(new));

        // Identities of two stores are still damage.
        let other = Identity::stage(&RealDisk, dir, identity.settings, identity.key).unwrap();
        std::fs::rename(dir.join("identity.next"), dir.join("identity.json")).unwrap();
        assert_ne!(other.hash, next.hash);
        assert_eq!(checked().damage.len(), 1);
    }
}
