//! The identity of a store, fixed when it is created: `identity.json`.
//!
//! It holds the store's version, all settings that change results, and the key of its fingerprints. The manifest holds
//! the file's hash, so that the parts of two stores cannot be mixed. The file holds a checksum too, for readers that
//! never see the manifest: with a wrong key no URL would be found.

use std::ops::RangeInclusive;
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::folder::IDENTITY;
use crate::batch::HashKey;
use crate::codec::sealed;
use crate::disk::{Disk, read_whole, recreate};
use crate::engine::Config;
use crate::model::Limits;
use crate::rules::InputRules;
use crate::{Error, Result};

/// Version of the store's layout. Stores of version 1, without kept rows, and 2, without failures and changes of
/// fetches, are read and continue without these.
pub const VERSION: u32 = WITH_FETCHES;
/// First version with kept rows.
const WITH_ROWS: u32 = 2;
/// First version that keeps failures and changes.
const WITH_FETCHES: u32 = 3;
/// Version of a store that is a shard: older programs would take all records.
const WITH_SHARD: u32 = 6;
/// Versions that program version 0.2 gave to stores with partitions.
const WITH_PARTITIONS: RangeInclusive<u64> = 4..=5;
/// Temporary name of the identity of a store that is created.
pub const NEXT: &str = "identity.next";

/// Settings that change results. Threads, checkpoints and memory are not among them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub config: Config,
    /// Limit `--limit-line` in bytes; like the other limits, it decides which records are skipped.
    pub line_bytes: u64,
    /// Limit `--limit-url`, in bytes.
    pub url_bytes: u64,
    /// Limit `--limit-links`, in links per record.
    pub links: u64,
    /// Version of the canonical form of URLs ([`crate::url::RULES`]).
    pub url_rules: u32,
    #[serde(default, skip_serializing_if = "InputRules::is_default")]
    pub input: InputRules,
}

impl Settings {
    pub fn new(config: Config, limits: &Limits) -> Settings {
        Settings {
            config,
            line_bytes: limits.line_bytes,
            url_bytes: limits.url_bytes,
            links: limits.links,
            url_rules: crate::url::RULES,
            input: InputRules::default(),
        }
    }

    /// Returns the default limits with those of the settings.
    pub fn limits(&self) -> Limits {
        Limits {
            line_bytes: self.line_bytes,
            url_bytes: self.url_bytes,
            links: self.links,
            ..Limits::default()
        }
    }
}

#[derive(Serialize, Deserialize)]
struct File {
    cashrank_store: u32,
    settings: Settings,
    key: String,
}

#[derive(Clone)]
pub struct Identity {
    pub settings: Settings,
    pub key: HashKey,
    /// XXH3-64 of the file.
    pub hash: u64,
    version: u32,
}

/// Error for a directory without a store.
pub(super) fn no_store(dir: &Path) -> Error {
    Error::Missing(format!(
        "{}: not a cashrank store (it has no {IDENTITY}); `cashrank ingest` creates one",
        dir.display()
    ))
}

impl Identity {
    /// Writes the identity of a new store under its temporary name.
    pub fn stage(
        disk: &dyn Disk,
        dir: &Path,
        settings: Settings,
        key: HashKey,
    ) -> Result<Identity> {
        let version = match settings.input.shard {
            Some(_) => WITH_SHARD,
            None => VERSION,
        };
        let file = File {
            cashrank_store: version,
            settings: settings.clone(),
            key: format!("{:016x}{:016x}", key.0[0], key.0[1]),
        };
        let text = sealed::to_text(&file).map_err(|error| Error::internal(error.to_string()))?;
        let path = dir.join(NEXT);
        let written = recreate(disk, &path).and_then(|file| {
            file.write_at(&text, 0)?;
            file.sync()
        });
        written
            .and_then(|()| disk.sync_dir(dir))
            .map_err(Error::io(&path, "write"))?;
        Ok(Identity {
            settings,
            key,
            hash: xxh3_64(&text),
            version,
        })
    }

    /// Makes the staged identity the store's.
    pub fn adopt(disk: &dyn Disk, dir: &Path) -> Result<()> {
        let path = dir.join(IDENTITY);
        disk.rename(&dir.join(NEXT), &path)
            .map_err(Error::io(&path, "replace"))?;
        disk.sync_dir(dir).map_err(Error::io(dir, "sync"))
    }

    /// Returns true if the store's version keeps failures and changes.
    pub fn has_fetches(&self) -> bool {
        self.version >= WITH_FETCHES
    }

    /// Returns true if the store's version may keep rows.
    pub fn has_rows(&self) -> bool {
        self.version >= WITH_ROWS
    }

    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Identity> {
        let path = dir.join(IDENTITY);
        let text = read_whole(disk, &path).map_err(|error| {
            let is_listed = || {
                disk.list(dir)
                    .is_ok_and(|names| names.iter().any(|n| n == IDENTITY))
            };
            match error.kind() {
                std::io::ErrorKind::NotFound if is_listed() => {
                    Error::damaged(&path, "it is a link, and what it leads to is missing")
                }
                std::io::ErrorKind::NotFound => no_store(dir),
                _ => Error::reading(&path)(error),
            }
        })?;
        Identity::parse(&path, &text)
    }

    fn parse(path: &Path, text: &[u8]) -> Result<Identity> {
        let value: serde_json::Value = serde_json::from_slice(text)
            .map_err(|error| Error::damaged(path, error.to_string()))?;
        let version = value.get("cashrank_store").and_then(|v| v.as_u64());
        let is_read = |version: &u64| {
            (1..=u64::from(VERSION)).contains(version) || *version == u64::from(WITH_SHARD)
        };
        if let Some(version) = version.filter(|version| !is_read(version)) {
            let other = format!("{}: a store of version {version}", path.display());
            return Err(Error::Unsupported(if WITH_PARTITIONS.contains(&version) {
                format!(
                    "{other}, which has partitions; this cashrank reads stores without: ingest the inputs into a new store, \
                     or the links that `cashrank export` of version 0.2 writes of it"
                )
            } else {
                format!(
                    "{other}; this cashrank reads versions 1 to {VERSION} and {WITH_SHARD}: use the cashrank that made it, or ingest the inputs \
                     into a new store"
                )
            }));
        }
        let file: File = sealed::from_text(text).map_err(|what| Error::damaged(path, what))?;
        let half = |range| {
            file.key
                .get(range)
                .and_then(|half| u64::from_str_radix(half, 16).ok())
                .ok_or_else(|| Error::damaged(path, "its key is not a number"))
        };
        Ok(Identity {
            key: HashKey([half(0..16)?, half(16..32)?]),
            settings: file.settings,
            hash: xxh3_64(text),
            version: file.cashrank_store,
        })
    }
}
