//! Joint ranking of the shards of one crawl: the stores of one command, the check that they are the shards of one crawl
//! (each of them once, all with the same settings), the work of each shard, the messages between them ([`Peers`]), and
//! their snapshots for readers.

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod names;
mod ranks;
mod settle;

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
pub use crate::rank::peers::{OneProcess, Peers, RemotePages};
use crate::rules::{InputRules, Shard};
use crate::session::Options;
use crate::snapshot::{Snapshot, SnapshotSelector};
use crate::store::rows::KeepRows;
use crate::store::{Settings, differences, identity_of};
use crate::{Error, Result};
pub use names::verify_remote;
pub use settle::{RankedShard, SettleOptions, Together, settle};

/// Gathers a small value of each process in all processes, in the order of the processes.
fn gather_all<T: DeserializeOwned>(own: &impl Serialize, peers: &mut dyn Peers) -> Result<Vec<T>> {
    let bytes = serde_json::to_vec(own).map_err(|error| Error::internal(error.to_string()))?;
    let all = peers.gather(bytes)?.into_iter().enumerate();
    let read = all.map(|(process, bytes)| {
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::internal(format!(
                "what process {process} says cannot be read: {error}"
            ))
        })
    });
    read.collect()
}

/// Gathers a small value of each shard in all processes, in shard order; `local` has those of the local shards.
fn gather_values<T: Serialize + DeserializeOwned>(
    local: &[T],
    peers: &mut dyn Peers,
) -> Result<Vec<T>> {
    let own: Vec<(usize, &T)> = peers.local().iter().copied().zip(local).collect();
    let mut all: Vec<(usize, T)> = gather_all::<Vec<_>>(&own, peers)?
        .into_iter()
        .flatten()
        .collect();
    all.sort_by_key(|(shard, _)| *shard);
    if !all.iter().map(|(shard, _)| *shard).eq(0..peers.shards()) {
        return Err(Error::internal("not each shard says something once"));
    }
    Ok(all.into_iter().map(|(_, value)| value).collect())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalShard {
    pub dir: PathBuf,
    pub shard: Shard,
    pub identity: u64,
    settings: Settings,
}

impl LocalShard {
    fn options(&self) -> Options {
        Options {
            config: self.settings.config.clone(),
            input: InputRules {
                shard: Some(self.shard),
                ..self.settings.input.clone()
            },
            limits: self.settings.limits(),
            keep_links: KeepRows::usual(&self.dir),
            ..Options::default()
        }
    }
}

/// Reads which shards the stores in `dirs` are, and returns them in the order of their numbers.
pub fn local_shards(disk: &dyn Disk, dirs: &[PathBuf]) -> Result<Vec<LocalShard>> {
    let mut shards = Vec::with_capacity(dirs.len());
    for dir in dirs {
        let identity = identity_of(disk, dir)?;
        let mut settings = identity.settings;
        let Some(shard) = settings.input.shard.take() else {
            return Err(Error::Usage(format!(
                "{}: this store is of a whole crawl, and no shard of one (it was made without `shard`); leave it out",
                dir.display()
            )));
        };
        shards.push(LocalShard {
            dir: dir.clone(),
            shard,
            identity: identity.hash,
            settings,
        });
    }
    shards.sort_by_key(|store| store.shard.number());
    Ok(shards)
}

/// Checks that the stores of all processes are the shards of one crawl; returns them in order, with their processes.
pub fn check_together(
    local: &[LocalShard],
    peers: &mut dyn Peers,
) -> Result<Vec<(usize, LocalShard)>> {
    // A path may be no text, and is only for messages in other processes.
    let claim = |store: &LocalShard| LocalShard {
        dir: store.dir.display().to_string().into(),
        ..store.clone()
    };
    let claims: Vec<LocalShard> = local.iter().map(claim).collect();
    let claims: Vec<Vec<LocalShard>> = gather_all(&claims, peers)?;
    let mut all: Vec<_> = (claims.into_iter().enumerate())
        .flat_map(|(process, claims)| claims.into_iter().map(move |claim| (process, claim)))
        .collect();
    let Some((_, first)) = all.first() else {
        return Err(Error::Usage(
            "no store is given; name the stores of all shards".into(),
        ));
    };
    let count = first.shard.count();
    for (_, claim) in &all {
        check_pair(first, claim)?;
    }
    all.sort_by_key(|(_, claim)| claim.shard.number());
    let mut pairs = all.iter().zip(all.iter().skip(1));
    if let Some(((_, one), (_, other))) = pairs.find(|(one, other)| one.1.shard == other.1.shard) {
        return Err(Error::Conflict(format!(
            "{} and {}: both are shard {}; give each shard once",
            one.dir.display(),
            other.dir.display(),
            one.shard
        )));
    }
    if all.len() < count as usize {
        let is_there = |number: &u32| {
            let number_of = |(_, claim): &(usize, LocalShard)| claim.shard.number();
            all.binary_search_by_key(number, number_of).is_ok()
        };
        let missing = (0..count).filter(|number| !is_there(number));
        return Err(Error::Usage(absent(missing, count, all.len())));
    }
    Ok(all)
}

fn check_pair(one: &LocalShard, other: &LocalShard) -> Result<()> {
    let both = format!("{} and {}", one.dir.display(), other.dir.display());
    if one.shard.count() != other.shard.count() {
        return Err(Error::Conflict(format!(
            "{both}: shards {} and {} are of crawls that were divided in different ways; give the shards of one crawl",
            one.shard, other.shard
        )));
    }
    if one.settings != other.settings {
        return Err(Error::Conflict(format!(
            "{both}: these shards were made with different settings, {}; shards of one crawl have the same",
            differences(&one.settings, &other.settings)
        )));
    }
    Ok(())
}

const NAMED: usize = 8;

fn absent(mut missing: impl Iterator<Item = u32>, count: u32, found: usize) -> String {
    let named: Vec<String> = missing
        .by_ref()
        .take(NAMED)
        .map(|number| format!("{number}/{count}"))
        .collect();
    let more = match missing.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "only {found} of {count} shards are given: {}{more} missing; name the stores of all shards",
        named.join(", ")
    )
}

/// Opens the snapshot of a store, or of all shards of a crawl in order; [`Error::Conflict`] if not of one ranking.
pub fn open_shards(
    disk: &dyn Disk,
    stores: &[PathBuf],
    which: Option<SnapshotSelector>,
) -> Result<Vec<Snapshot>> {
    if let [store] = stores {
        return Ok(vec![Snapshot::of(disk, store, which)?]);
    }
    let shards = local_shards(disk, stores)?;
    check_together(&shards, &mut OneProcess::new(shards.len()))?;
    let open = |store: &LocalShard| Snapshot::of(disk, &store.dir, which);
    let snapshots = shards.iter().map(open).collect::<Result<Vec<_>>>()?;
    let id = |snapshot: &Snapshot| snapshot.info().cluster.map(|of| of.id);
    let settle = "rank all shards together with `cashrank-cluster settle`";
    if let Some(alone) = snapshots.iter().find(|snapshot| id(snapshot).is_none()) {
        return Err(Error::Conflict(format!(
            "{}: its ranking is of this shard alone; {settle}",
            alone.store().display()
        )));
    }
    for pair in snapshots.windows(2) {
        if id(&pair[0]) != id(&pair[1]) {
            return Err(Error::Conflict(format!(
                "{} and {}: their rankings were not made together; {settle}",
                pair[0].store().display(),
                pair[1].store().display()
            )));
        }
    }
    Ok(snapshots)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disk::RealDisk;
    use crate::rank::peers::threads::{Thread, with_processes};
    use crate::session::Writer;

    fn made(home: &Path, name: &str, shard: Option<&str>, damping: f64) -> PathBuf {
        let dir = home.join(name);
        let mut options = Options {
            input: InputRules {
                shard: shard.map(|shard| shard.parse().unwrap()),
                ..InputRules::default()
            },
            ..Options::default()
        };
        options.config.set_damping(damping).unwrap();
        Writer::open(&dir, &options).unwrap();
        dir
    }

    /// Returns the result of the check in the first of two processes with these stores.
    fn check_two(stores: [Vec<LocalShard>; 2]) -> Result<Vec<(usize, LocalShard)>> {
        let check = |peers: &mut Thread| check_together(&stores[peers.process], peers);
        with_processes(0, 2, check).swap_remove(0)
    }

    #[test]
    fn only_the_shards_of_one_crawl_are_taken() {
        let home = cashrank_base::folder::in_memory();
        let home = home.path();
        let store = |name: &str, shard| made(home, name, Some(shard), 0.85);
        let [a, b, c] = [("a", "0/3"), ("b", "1/3"), ("c", "2/3")].map(|(n, s)| store(n, s));
        let twin = store("twin", "1/3");
        let of_four = store("of-four", "1/4");
        let damped = made(home, "damped", Some("1/3"), 0.9);
        let whole = made(home, "whole", None, 0.85);
        let local = |dirs: &[&PathBuf]| {
            local_shards(
                &RealDisk,
                &dirs.iter().copied().cloned().collect::<Vec<_>>(),
            )
        };

        let shards = local(&[&c, &a, &b]).unwrap();
        let numbers: Vec<u32> = shards.iter().map(|store| store.shard.number()).collect();
        assert_eq!(numbers, [0, 1, 2], "in the order of `Peers::local`");
        let info = check_together(&shards, &mut OneProcess::new(3)).unwrap();
        let expected: Vec<_> = shards.iter().map(|shard| (0, shard.clone())).collect();
        assert_eq!(info, expected);

        // From two processes.
        let info = check_two([&[&b][..], &[&a, &c]].map(|dirs| local(dirs).unwrap())).unwrap();
        let processes: Vec<usize> = info.iter().map(|(process, _)| *process).collect();
        assert_eq!(processes, [1, 0, 1]);

        let refused = |dirs: &[&PathBuf], others: &[&PathBuf]| {
            check_two([dirs, others].map(|dirs| local(dirs).unwrap())).unwrap_err()
        };
        let text_of = |error: Error| match error {
            Error::Usage(text) | Error::Conflict(text) => text,
            other => panic!("{other:?}"),
        };
        for (dirs, others, words) in [
            (
                &[&a, &b][..],
                &[&c, &twin][..],
                &["/b and ", "/twin", "shard 1/3"][..],
            ),
            (&[&a, &a], &[&b, &c], &["/a and ", "shard 0/3"]),
            (
                &[&a, &of_four],
                &[&c],
                &["/a and ", "/of-four", "0/3", "1/4"],
            ),
            (
                &[&a],
                &[&damped, &c],
                &["/a and ", "/damped", "`damping` 0.85, not 0.9"],
            ),
            (&[&b], &[], &["0/3, 2/3 missing", "1 of 3"]),
            (&[], &[], &["no store"]),
        ] {
            let text = text_of(refused(dirs, others));
            for word in words {
                assert!(text.contains(word), "{word:?} is not in {text:?}");
            }
        }
        let text = text_of(local(&[&a, &whole]).unwrap_err());
        assert!(
            text.contains("/whole") && text.contains("`shard`"),
            "{text}"
        );
        let error = local(&[&a, &home.join("none")]).unwrap_err();
        assert!(matches!(error, Error::Missing(_)), "{error}");
    }
}
