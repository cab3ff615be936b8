//! The manifest that each commit writes, encoded by bincode, and in it the progress in the inputs, which `ingest`
//! interprets. The only module that uses bincode.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::names::NameLengths;
use crate::disk::log::LogLengths;
use crate::engine::{EngineState, ShardCounts};
use crate::model::{InputPosition, InputSignature, Restart, human};
use crate::{Error, Result};

/// Maximum length of a manifest in bytes: 64 MiB, some hundred thousand inputs.
const BYTES_MAX: usize = 64 << 20;
/// Encoding of values. Without a limit bincode would allocate for any length that the input claims.
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
    /// Unused: always 0, as in stores that program version 0.1 created without `--correction`.
    pub corrected: u8,
    pub names: NameLengths,
    /// Runs of the history, oldest first.
    pub runs: Vec<HistoryRun>,
    pub next_run: u64,
    pub admission_blocks: u64,
    /// Hash of the cash chunks' current slots ([`super::cash::slots_sum`]).
    pub slots: u64,
    /// Unused: hash of the slots of a file that program version 0.1 had.
    pub corrected_slots: u64,
    pub progress: InputProgress,
    /// Kept rows or why there are none. Encoded after the others with what follows, up to the last that is not the
    /// default.
    #[serde(skip)]
    pub retention: Retention,
    /// Limit of kept rows in bytes that was requested; `None` for the default.
    #[serde(skip)]
    pub rows_most: Option<u64>,
    /// Numbers of row files from before compactions that a snapshot may still name.
    #[serde(skip)]
    pub retired_rows: Vec<u64>,
}

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
        let rows = (&self.retention, self.rows_most, &self.retired_rows);
        if has_shard || rows != (&Retention::default(), None, &Vec::new()) {
            encode(&rows, &mut bytes)?;
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
            let Manifest {
                retention,
                rows_most,
                retired_rows,
                ..
            } = &mut manifest;
            ((*retention, *rows_most, *retired_rows), rest) = decode(rest)?;
        }
        let engine = &mut manifest.engine;
        if !rest.is_empty() {
            (engine.counters.shard, rest) = decode(rest)?;
        }
        if !rest.is_empty() {
            engine.fetch_times =
                from_bytes(rest).map_err(|what| format!("the manifest's end {what}"))?;
            if engine.fetch_times.is_empty() {
                return Err("the manifest's end has no times".into());
            }
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

/// Committed state of the row file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedRows {
    /// Number of the file; each compaction begins another.
    pub number: u64,
    pub lengths: LogLengths,
    pub rows: u64,
    pub links: u64,
    pub superseded: u64,
    /// Number of rows and links at which a checkpoint next checks how much is superseded.
    pub look_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GiveUpReason {
    Asked,
    /// Rows would have exceeded this limit in bytes.
    TooLarge(u64),
    TooManyPages,
}

/// Kept rows of a store, or the reason why there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    /// No rows were kept from the start.
    #[default]
    NotKept,
    Kept(CommittedRows),
    /// Rows were kept until they were given up.
    GivenUp(GiveUpReason),
}

impl Retention {
    pub fn kept(&self) -> Option<&CommittedRows> {
        match self {
            Retention::Kept(kept) => Some(kept),
            _ => None,
        }
    }

    /// Tells serde to omit the default.
    pub fn is_not_kept(&self) -> bool {
        *self == Retention::NotKept
    }

    pub fn why_not(&self) -> String {
        match self {
            Retention::Kept(_) => "they are kept".into(),
            Retention::NotKept => "it was begun with `keep_links` none".into(),
            Retention::GivenUp(reason) => format!("they were dropped: {reason}"),
        }
    }
}

impl std::fmt::Display for GiveUpReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GiveUpReason::Asked => f.write_str("`keep_links` none"),
            GiveUpReason::TooLarge(most) => {
                write!(
                    f,
                    "they would have taken more than {} of disk",
                    human(*most)
                )
            }
            GiveUpReason::TooManyPages => f.write_str("page numbers in rows have 32 bits"),
        }
    }
}

/// Inputs of a store, and the position reached in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputProgress {
    /// Inputs begun, in the order of the first pass. The last may be unfinished in pass 1.
    pub inputs: Vec<Input>,
    /// Number of passes requested by the last command.
    pub repeat: u32,
    /// Current pass, from 1. Larger than `repeat` when all are done.
    pub pass: u32,
    /// Input being read in this pass, as an index into `inputs`; their number if none is begun.
    pub input: u64,
    pub place: InputPosition,
    /// True in stores of earlier versions that visited link targets without a record at the end of each pass.
    pub complete: bool,
    /// How far they were visited.
    pub completing: Option<u64>,
    /// True if all that the last command requested is done.
    pub finished: bool,
    /// First record that was applied unverified, if any: no snapshot may be published until all are verified.
    pub unverified: Option<Unverified>,
    /// Signature of the last stream, to recognise it when it is sent again. Stored separately from the manifest.
    #[serde(skip)]
    pub stream: Option<InputSignature>,
    /// Number of the last stream in which a request was read, which its last capture may lack. Stored separately.
    #[serde(skip)]
    pub requests: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Name as given on the command line, for messages only; `-` is standard input.
    pub name: String,
    pub format: String,
    /// Position of the input's end, once reached.
    pub end: Option<InputPosition>,
    /// Position from which a spooled input is read again, and the length of the stream as sent, once known.
    pub spooled: Option<(Restart, Option<u64>)>,
}

impl Input {
    pub fn is_empty(&self) -> bool {
        self.end.is_some_and(|end| end.offset == 0)
    }
}

/// First record that was applied without verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unverified {
    pub input: String,
    /// Number of the record in the input, from 1.
    pub from_record: u64,
}

impl Default for InputProgress {
    fn default() -> Self {
        InputProgress {
            inputs: Vec::new(),
            repeat: 1,
            pass: 1,
            input: 0,
            place: InputPosition::start(),
            complete: false,
            completing: None,
            finished: false,
            unverified: None,
            stream: None,
            requests: None,
        }
    }
}

impl InputProgress {
    /// Returns an error if records that were read could not be verified, so that no ranking may be published.
    pub fn check_verified(&self, store: &Path) -> Result<()> {
        match &self.unverified {
            None => Ok(()),
            Some(unverified) => Err(Error::Conflict(format!(
                "{}: {} could not be verified from its record {} on: no ranking of it is published",
                store.display(),
                unverified.input,
                unverified.from_record
            ))),
        }
    }

    pub fn check_finished(&self, store: &Path) -> Result<()> {
        if self.inputs.is_empty() || self.finished {
            return Ok(());
        }
        Err(Error::Conflict(format!(
            "{}: an ingest of its inputs has not finished; let its command finish first",
            store.display()
        )))
    }

    pub fn go_to(&mut self, input: u64) {
        self.input = input;
        self.place = InputPosition::start();
    }

    /// Returns true if only passes after the first remain or remained; they need no stream.
    pub fn is_past_first(&self) -> bool {
        self.repeat > 1 && self.pass > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::YEAR;

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
