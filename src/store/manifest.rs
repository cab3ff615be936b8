//! The manifest, which commits write, coded by bincode. The only place that uses bincode.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::names::NameLengths;
use super::progress::Progress;
use super::rows::RowsState;
use crate::engine::{EngineState, ShardCounts};
use crate::{Error, Result};

/// Longest manifest: 64 MiB, some hundred thousand inputs.
const BYTES_MAX: usize = 64 << 20;
/// bincode counts a value by its size in memory, at most 16 times what it takes coded. Without a limit
/// it would make room for any length that a text claims to have.
const CODING: bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Varint,
    bincode::config::Limit<{ 16 * BYTES_MAX }>,
> = bincode::config::standard().with_limit();

/// All of a store that is not an array, a log or the history.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Counts commits.
    pub generation: u64,
    /// XXH3-64 of the identity file, so that the two cannot be mixed up.
    pub identity: u64,
    /// The engine's totals, marks and counters.
    pub engine: EngineState,
    /// What version 0.1 had here of a store that was made with `--correction`. Nothing of it is used, and the next
    /// commit has none.
    pub corrected: Option<CorrectionTotals>,
    /// Committed lengths of the name logs.
    pub names: NameLengths,
    /// The history's runs, oldest first.
    pub runs: Vec<Run>,
    /// Number of the next run.
    pub next_run: u64,
    /// Blocks of admissions.
    pub admission_blocks: u64,
    /// Hash of the cash chunks' current slots ([`super::chunks::slots_sum`]).
    pub slots: u64,
    /// The same of a file that version 0.1 had with `--correction`; of no meaning.
    pub corrected_slots: u64,
    /// How far the inputs were read.
    pub progress: Progress,
    /// The state of kept rows. Coded behind all else, and only if it is not the default: stores of version
    /// 1 have none. Behind them come the counts of a shard, if there are any.
    #[serde(skip)]
    pub rows: RowsState,
}

/// The totals of version 0.1's ledger of corrections: a phase, and sums.
pub(crate) type CorrectionTotals = (u32, u128, i128, i128, [u128; 3], u32, u64, u64, bool);

/// One run of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// First part of its blocks' keys.
    pub number: u64,
    /// The mark its rows come after.
    pub interval: u64,
    pub rows: u64,
    pub blocks: u64,
    /// Bytes of its blocks.
    pub bytes: u64,
}

impl Manifest {
    /// Its bytes, behind 8 that are free for the seal.
    pub fn to_bytes(&self) -> std::result::Result<Vec<u8>, String> {
        let mut bytes = vec![0; 8];
        bincode::serde::encode_into_std_write(self, &mut bytes, CODING)
            .map_err(|error| error.to_string())?;
        let shard = &self.engine.counters.shard;
        let has_shard = *shard != ShardCounts::default();
        if has_shard || self.rows != RowsState::default() {
            bincode::serde::encode_into_std_write(&self.rows, &mut bytes, CODING)
                .map_err(|error| error.to_string())?;
        }
        if has_shard {
            bincode::serde::encode_into_std_write(shard, &mut bytes, CODING)
                .map_err(|error| error.to_string())?;
        }
        match bytes.len() {
            0..=BYTES_MAX => Ok(bytes),
            len => Err(format!(
                "a manifest of {len} bytes, more than {BYTES_MAX}: too many inputs for one store"
            )),
        }
    }

    /// Checks that the identity file is the one the store was made with.
    pub fn check_identity(&self, dir: &Path, identity: &Identity) -> Result<()> {
        if self.identity == identity.hash {
            return Ok(());
        }
        Err(Error::damaged(
            dir.join("identity.json"),
            "it and store.redb are of two stores",
        ))
    }

    /// The manifest of an unsealed value.
    pub fn from_bytes(content: &[u8]) -> std::result::Result<Manifest, String> {
        let unreadable = |error| format!("the manifest cannot be read: {error}");
        let (mut manifest, len): (Manifest, usize) =
            bincode::serde::decode_from_slice(content, CODING).map_err(unreadable)?;
        let rest = &content[len..];
        if rest.is_empty() {
            return Ok(manifest);
        }
        let (rows, len) = bincode::serde::decode_from_slice(rest, CODING).map_err(unreadable)?;
        manifest.rows = rows;
        if len < rest.len() {
            manifest.engine.counters.shard =
                from_bytes(&rest[len..]).map_err(|what| format!("the manifest's end {what}"))?;
        }
        Ok(manifest)
    }
}

/// A value's bytes, behind 8 that are free for the seal.
pub(crate) fn to_bytes(value: &impl Serialize) -> std::result::Result<Vec<u8>, String> {
    let mut bytes = vec![0; 8];
    bincode::serde::encode_into_std_write(value, &mut bytes, CODING)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// The value that an unsealed one tells.
pub(crate) fn from_bytes<T: DeserializeOwned>(content: &[u8]) -> std::result::Result<T, String> {
    let (value, len) = bincode::serde::decode_from_slice(content, CODING)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if len != content.len() {
        return Err("is longer than it should be".into());
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Input;

    /// Its story: bincode made room for as many bytes as a text said it had, before it looked
    /// whether they were there; a length of 2^60 ended the process, whatever the checksum said.
    #[test]
    fn a_text_that_claims_too_much_is_an_error() {
        let mut manifest = Manifest::default();
        manifest.progress.inputs.push(Input {
            name: "\u{1}".repeat(77),
            format: String::new(),
            end: None,
            spooled: None,
        });
        let bytes = manifest.to_bytes().unwrap().split_off(8);
        assert_eq!(Manifest::from_bytes(&bytes), Ok(manifest));
        let at = bytes.windows(2).position(|pair| pair == [77, 1]).unwrap();
        // 253: the next eight bytes are the length.
        let length = [&[253][..], &(1u64 << 60).to_le_bytes()].concat();
        let claims = [&bytes[..at], &length, &bytes[at + 1..]].concat();
        assert!(Manifest::from_bytes(&claims).is_err());
    }
}
