//! The manifest that each commit writes, encoded by bincode. The only module that uses bincode.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::names::NameLengths;
use super::progress::InputProgress;
use super::rows::RowsState;
use crate::engine::{EngineState, ShardCounts};
use crate::{Error, Result};

/// Maximum length of a manifest in bytes: 64 MiB, some hundred thousand inputs.
const BYTES_MAX: usize = 64 << 20;
/// Encoding of values. bincode counts a value by its size in memory, at most 16 times its encoded size. Without a limit
/// it would allocate for any length that the input claims.
const CODING: bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Varint,
    bincode::config::Limit<{ 16 * BYTES_MAX }>,
> = bincode::config::standard().with_limit();

/// State of a store except for arrays, logs and history.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub generation: u64,
    /// XXH3-64 of the identity file, so that parts of two stores cannot be mixed.
    pub identity: u64,
    pub engine: EngineState,
    /// Field of stores that version 0.1 created with `--correction`. Unused; the next commit drops it.
    pub corrected: Option<CorrectionTotals>,
    pub names: NameLengths,
    /// Runs of the history, oldest first.
    pub runs: Vec<HistoryRun>,
    pub next_run: u64,
    pub admission_blocks: u64,
    /// Hash of the cash chunks' current slots ([`super::chunks::slots_sum`]).
    pub slots: u64,
    /// Unused: hash of the slots of a file that version 0.1 had with `--correction`.
    pub corrected_slots: u64,
    pub progress: InputProgress,
    /// State of kept rows. Encoded after the other fields unless it is the default: stores of version 1 have none. The
    /// counts of a shard and the times of records follow, up to the last of the three that is not the default.
    #[serde(skip)]
    pub rows: RowsState,
}

/// Totals of version 0.1's ledger of corrections: a phase, and sums.
pub type CorrectionTotals = (u32, u128, i128, i128, [u128; 3], u32, u64, u64, bool);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRun {
    /// First part of the keys of the run's blocks.
    pub number: u64,
    /// Number of the mark after which the run's rows come.
    pub interval: u64,
    pub rows: u64,
    pub blocks: u64,
    /// Total length of the run's blocks in bytes.
    pub bytes: u64,
}

impl Manifest {
    /// Encodes the manifest, after 8 bytes reserved for the seal.
    pub fn to_bytes(&self) -> std::result::Result<Vec<u8>, String> {
        let mut bytes = vec![0; 8];
        encode(self, &mut bytes)?;
        let (shard, times) = (&self.engine.counters.shard, &self.engine.fetch_times);
        let has_times = !times.is_empty();
        let has_shard = has_times || *shard != ShardCounts::default();
        if has_shard || self.rows != RowsState::default() {
            encode(&self.rows, &mut bytes)?;
        }
        if has_shard {
            encode(shard, &mut bytes)?;
        }
        if has_times {
            encode(times, &mut bytes)?;
        }
        match bytes.len() {
            0..=BYTES_MAX => Ok(bytes),
            len => Err(format!(
                "a manifest of {len} bytes, more than {BYTES_MAX}: too many inputs for one store"
            )),
        }
    }

    /// Checks that the identity file belongs to this store.
    pub fn check_identity(&self, dir: &Path, identity: &Identity) -> Result<()> {
        if self.identity == identity.hash {
            return Ok(());
        }
        Err(Error::damaged(
            dir.join("identity.json"),
            "it and store.redb are of two stores",
        ))
    }

    pub fn from_bytes(content: &[u8]) -> std::result::Result<Manifest, String> {
        let (mut manifest, mut rest): (Manifest, _) = decode(content)?;
        if !rest.is_empty() {
            (manifest.rows, rest) = decode(rest)?;
        }
        let engine = &mut manifest.engine;
        if !rest.is_empty() {
            (engine.counters.shard, rest) = decode(rest)?;
        }
        if !rest.is_empty() {
            engine.fetch_times =
                from_bytes(rest).map_err(|what| format!("the manifest's end {what}"))?;
        } else if let Some(time) = engine.time {
            // A store without this part: all its records count as of the latest time.
            let records = engine.counters.records.max(1);
            engine.fetch_times.add_some(time, records);
        }
        Ok(manifest)
    }
}

fn encode(value: &impl Serialize, bytes: &mut Vec<u8>) -> std::result::Result<(), String> {
    bincode::serde::encode_into_std_write(value, bytes, CODING)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// Decodes a part of a manifest. Returns it and what follows.
fn decode<T: DeserializeOwned>(content: &[u8]) -> std::result::Result<(T, &[u8]), String> {
    let (value, len) = bincode::serde::decode_from_slice(content, CODING)
        .map_err(|error| format!("the manifest cannot be read: {error}"))?;
    Ok((value, &content[len..]))
}

/// Encodes a value, after 8 bytes reserved for the seal.
pub fn to_bytes(value: &impl Serialize) -> std::result::Result<Vec<u8>, String> {
    let mut bytes = vec![0; 8];
    encode(value, &mut bytes)?;
    Ok(bytes)
}

pub fn from_bytes<T: DeserializeOwned>(content: &[u8]) -> std::result::Result<T, String> {
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
    use crate::engine::YEAR;
    use crate::store::Input;

    /// Of a store that kept no times, all records count as of the latest, so that a single later date is not believed.
    #[test]
    fn a_store_may_have_kept_no_times() {
        let mut manifest = Manifest::default();
        manifest.engine.time = Some(5);
        manifest.engine.counters.records = 7;
        let bytes = manifest.to_bytes().unwrap().split_off(8);
        let mut read = Manifest::from_bytes(&bytes).unwrap();
        assert_eq!(read.engine.fetch_times.latest(), Some((5, 0)));
        read.engine.fetch_times.add(5 + 2 * YEAR);
        assert_eq!(read.engine.fetch_times.latest(), Some((5, 1)));
        let bytes = read.to_bytes().unwrap().split_off(8);
        assert_eq!(Manifest::from_bytes(&bytes), Ok(read));
    }

    /// Regression: bincode allocated as many bytes as the input claimed before checking that they were there; a length
    /// of 2^60 aborted the process, whatever the checksum.
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
