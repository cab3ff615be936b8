//! What tells a partition's commit from that of a copy of its store that went on with other records: its *sum*.
//!
//! Two copies of a store may have as many commits, and a partition's folder of one may come to stand in the other. So each
//! commit of a partition has a sum over the one before it, over what its manifest says (which has the hash of all cash), over
//! all blocks of names, fingerprints, ghosts and rows that were appended since, and over what was put into the history. The store's commit has the sums of
//! its partitions' commits that belong to it; a partition with another one is refused when it is opened.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::Store;
use super::manifest::Manifest;
use super::tables::Writing;
use crate::{Error, Result};

/// What a commit says of sums. A value of its own, which programs that know of none leave as it is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CommittedSums {
    /// The commit that says it: in a later one of such a program it has no meaning.
    generation: u64,
    /// Of a store with partitions: those of all; of a partition its own.
    sums: Vec<u128>,
}

impl CommittedSums {
    /// What the next commit is to say; `None`: nothing.
    pub fn of(manifest: &Manifest) -> Option<CommittedSums> {
        (!manifest.sums.is_empty()).then(|| CommittedSums {
            generation: manifest.generation,
            sums: manifest.sums.clone(),
        })
    }

    /// The sums, if they are of the commit that they were read with.
    pub fn of_commit(self, generation: u64) -> Vec<u128> {
        if self.generation == generation {
            self.sums
        } else {
            Vec::new()
        }
    }
}

impl Manifest {
    /// The sum of a partition's commit. Where an older program made it, that of what its manifest says.
    ///
    /// # Errors
    /// It is too long to be written.
    pub fn sum(&self) -> Result<u128> {
        match self.sums.first() {
            Some(&sum) => Ok(sum),
            None => Ok(self.hash()?.digest128()),
        }
    }

    /// A hash of what it says. Bases are left out, and the number of the commit, which naming one adds to: nothing that is
    /// settled depends on them.
    fn hash(&self) -> Result<Xxh3> {
        let said = Manifest {
            generation: 0,
            ..self.clone()
        };
        let mut hasher = Xxh3::new();
        let beside = super::manifest::to_bytes(&(&self.parts, &self.progress.stream));
        let joint = self.joint.as_ref().map(super::manifest::to_bytes);
        for bytes in [said.to_bytes(), beside].into_iter().chain(joint) {
            hasher.update(&bytes.map_err(Error::internal)?);
        }
        Ok(hasher)
    }

    /// A hash of what it and the commits of its partitions say. Two copies of a store may have as many commits, and not the
    /// same ones.
    ///
    /// # Errors
    /// It is too long to be written.
    pub fn digest(&self) -> Result<u128> {
        let mut hasher = self.hash()?;
        for sum in &self.sums {
            hasher.update(&sum.to_le_bytes());
        }
        Ok(hasher.digest128())
    }
}

impl Store {
    /// The sum of a partition's last commit, or of what is to be its next one.
    ///
    /// # Errors
    /// As of [`Manifest::sum`].
    pub(crate) fn sum(&self) -> Result<u128> {
        self.manifest.sum()
    }

    /// The manifest says what is to be committed: it gets the sum of that.
    pub(super) fn add_to_sum(&mut self) -> Result<()> {
        let mut hasher = self.manifest.hash()?;
        hasher.update(&self.sum()?.to_le_bytes());
        let names = &self.names.logs;
        let logs = [
            names.urls.appended(),
            names.fingerprints.appended(),
            (self.names.addresses.as_ref()).map_or(0, |ghosts| ghosts.appended()),
            (self.rows.writer.as_ref()).map_or(0, |rows| rows.appended()),
        ];
        hasher.update(bytemuck::cast_slice(&logs.map(u64::to_le)));
        let history = self.db.writing.as_ref().map_or(0, Writing::history_sum);
        hasher.update(&history.to_le_bytes());
        self.manifest.sums = vec![hasher.digest128()];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that knows of no sums commits without them, and leaves those of an earlier commit in the database.
    #[test]
    fn sums_of_another_commit_have_no_meaning() {
        let manifest = Manifest {
            generation: 7,
            sums: vec![3, 4],
            ..Manifest::default()
        };
        let sums = |read_with| CommittedSums::of(&manifest).unwrap().of_commit(read_with);
        assert_eq!(sums(7), [3, 4]);
        assert!(sums(8).is_empty());
        assert!(CommittedSums::of(&Manifest::default()).is_none());
    }
}
