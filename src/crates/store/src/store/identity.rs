//! The identity of a store, fixed when it is created: `identity.json`; its settings as text, compared with requested ones.
//!
//! It holds the store's version, all settings that change results, and the key of its fingerprints. The manifest holds
//! the file's hash, so that the parts of two stores cannot be mixed. The file holds a checksum too, for readers that
//! never see the manifest: with a wrong key no URL would be found.

use std::ops::RangeInclusive;
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::folder::{IDENTITY, sync_dir};
use crate::batch::HashKey;
use crate::codec::sealed;
use crate::disk::{Disk, read_whole, recreate};
use crate::engine::Config;
use crate::model::{Limits, is_setting};
use crate::rules::InputRules;
use crate::{Error, Result};

/// Version of the store's layout.
pub const VERSION: u32 = 3;
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
}

pub(super) fn no_store(dir: &Path) -> Error {
    Error::Missing(format!(
        "{}: not a cashrank store (it has no {IDENTITY}); `cashrank ingest` creates one",
        dir.display()
    ))
}

impl Identity {
    /// Writes the identity of a new store under its temporary name. Returns its hash.
    pub fn stage(disk: &dyn Disk, dir: &Path, settings: Settings, key: HashKey) -> Result<u64> {
        let version = match settings.input.shard {
            Some(_) => WITH_SHARD,
            None => VERSION,
        };
        let file = File {
            cashrank_store: version,
            settings,
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
        Ok(xxh3_64(&text))
    }

    /// Makes the staged identity the store's.
    pub fn adopt(disk: &dyn Disk, dir: &Path) -> Result<()> {
        let path = dir.join(IDENTITY);
        disk.rename(&dir.join(NEXT), &path)
            .map_err(Error::io(&path, "replace"))?;
        sync_dir(disk, dir)
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
        let is_other = |version: &u64| ![VERSION, WITH_SHARD].map(u64::from).contains(version);
        if let Some(version) = version.filter(is_other) {
            let other = format!("{}: a store of version {version}", path.display());
            return Err(Error::Unsupported(if WITH_PARTITIONS.contains(&version) {
                format!(
                    "{other}, which has partitions; this cashrank reads stores without: ingest the inputs into a new store, \
                     or the links that `cashrank export` of version 0.2 writes of it"
                )
            } else {
                format!(
                    "{other}; this cashrank reads versions {VERSION} and {WITH_SHARD}: use the cashrank that made it, or ingest the inputs \
                     into a new store"
                )
            }));
        }
        let window = value.pointer("/settings/config/window");
        let window = window.and_then(|window| window.as_str()).unwrap_or("");
        if window.contains("groups=") {
            return Err(Error::Unsupported(format!(
                "{}: a store whose window has groups of measures, which this cashrank does not read: ingest the inputs into a \
                 new store",
                path.display()
            )));
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
        })
    }
}

/// Lists every setting with its value, empty if not set. Different settings differ in some value.
fn as_given(settings: &Settings) -> Vec<(&'static str, String)> {
    let config = &settings.config;
    let mut given = vec![
        ("damping", damping(config)),
        ("window", config.window.to_string()),
        ("estimator", config.estimator().to_string()),
        (
            "self_links",
            format!("{:?}", config.self_links).to_lowercase(),
        ),
        ("marks", config.marks.to_string()),
        (
            "max_age",
            config.max_age.map_or(String::new(), |age| age.to_string()),
        ),
        ("recycle_after", config.recycle_after.to_string()),
        ("limit_line", settings.line_bytes.to_string()),
        ("limit_url", settings.url_bytes.to_string()),
        ("limit_links", settings.links.to_string()),
        ("version of the URL rules", settings.url_rules.to_string()),
        ("follow", config.follow.to_string()),
    ];
    given.extend(settings.input.given());
    given
}

impl Settings {
    /// Returns the settings that differ from their defaults, with their values.
    pub fn chosen(&self) -> Vec<(&'static str, String)> {
        let mut usual = Settings::new(Config::default(), &Limits::default());
        let window = usual.config.window.to_string();
        // The window determines the default estimator.
        usual.config.window = self.config.window;
        let both = as_given(self).into_iter().zip(as_given(&usual));
        let chosen = both.filter(|((setting, given), (_, usual))| {
            let usual = if *setting == "window" { &window } else { usual };
            given != usual && is_setting(setting)
        });
        chosen.map(|(given, _)| given).collect()
    }
}

/// Formats damping as it was typed: it is stored in 1/2^32, so eight decimals suffice.
fn damping(config: &Config) -> String {
    let text = format!("{:.8}", config.damping());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Describes the settings that differ: those found, and those requested.
pub fn differences(found: &Settings, asked: &Settings) -> String {
    let both = as_given(found).into_iter().zip(as_given(asked));
    let differences: Vec<String> = both
        .filter(|(found, asked)| found != asked)
        .map(|((setting, found), (_, asked))| {
            let setting = named(setting);
            match (&*found, &*asked) {
                ("", asked) => format!("no {setting}, not {asked}"),
                (found, "") => format!("{setting} {found}, not without"),
                (found, asked) => format!("{setting} {found}, not {asked}"),
            }
        })
        .collect();
    if differences.is_empty() {
        // Values of damping may differ by less than is shown.
        "other settings".into()
    } else {
        differences.join(" and ")
    }
}

/// Returns an error if the requested settings differ from the store's; it names the differences and all settings.
pub(super) fn check_settings(dir: &Path, found: &Settings, asked: &Settings) -> Result<()> {
    if found == asked {
        return Ok(());
    }
    let what = differences(found, asked);
    Err(Error::Conflict(format!(
        "{}: this store was made with {what}; leave that out, or name another store. All that it was \
         made with: {}",
        dir.display(),
        as_typed(found)
    )))
}

/// Quotes the name of a setting for messages; other names stay as they are.
fn named(setting: &str) -> String {
    if is_setting(setting) {
        format!("`{setting}`")
    } else {
        setting.into()
    }
}

fn as_typed(settings: &Settings) -> String {
    let typed = as_given(settings)
        .into_iter()
        .filter(|(setting, value)| is_setting(setting) && !value.is_empty())
        .map(|(setting, value)| format!("{} {value}", named(setting)));
    typed.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{FieldNames, Scope};

    #[test]
    fn whatever_differs_is_named_with_its_option() {
        let usual = Settings::new(Config::default(), &Limits::default());
        let mut other = usual.clone();
        other.input.fields = FieldNames::of(vec!["url=response_url".parse().unwrap()]).unwrap();
        other.input.scope = Scope::default();
        other.input.scope.add("host:a.example".parse().unwrap());
        other.config.marks = 3;
        let refused = |found, asked| match check_settings(Path::new("s"), found, asked) {
            Err(Error::Conflict(text)) => text,
            other => panic!("{other:?}"),
        };
        let text = refused(&usual, &other);
        for word in [
            "no `field`, not url=response_url",
            "no `scope`, not host:a.example",
            "`marks` 6, not 3",
            "made with: `damping` 0.85 `window` auto",
        ] {
            assert!(text.contains(word), "{word:?} is not in {text:?}");
        }
        let text = refused(&other, &usual);
        assert!(text.contains("`marks` 3 `"), "{text}");
        assert!(text.contains("`field` url=response_url"), "{text}");
        assert!(check_settings(Path::new("s"), &usual, &usual).is_ok());
    }
}
