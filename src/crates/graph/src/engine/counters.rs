//! Counts of what was read and what was left out.

use serde::{Deserialize, Serialize};

use crate::model::{LinkCounts, Reason, What};

/// Counts of what a store read and left out since it was created.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Records applied, including gone pages and failed fetches.
    pub records: u64,
    /// Applied records of gone pages (404, 410).
    pub gone: u64,
    /// Applied records of unchanged pages, whose links are unknown.
    pub unchanged: u64,
    /// Applied records of failed fetches.
    pub failed: u64,
    /// Unusable records, by reason in the order of [`Reason::ALL`].
    pub skipped: [u64; Reason::ALL.len()],
    /// Pieces of input that are not crawl records, such as comments and requests.
    pub other: u64,
    #[serde(default)]
    pub out_of_scope: u64,
    /// Links read from applied records.
    pub links: u64,
    /// Links to something that is not a page, such as `mailto:`.
    pub links_scheme: u64,
    pub links_invalid: u64,
    pub links_too_long: u64,
    /// Links from a page to itself that were dropped.
    pub links_own: u64,
    /// Links that repeat an earlier target of the same record.
    pub links_repeated: u64,
    #[serde(default)]
    pub links_out_of_scope: u64,
    /// Pages visited at least once.
    pub visited: u64,
    /// Counts that only a store that is a shard has.
    #[serde(skip)]
    pub shard: ShardCounts,
}

/// Serde functions for counters that omit the counts of a shard if all are zero.
pub mod with_shard {
    use super::{Counters, Deserialize, Serialize, ShardCounts};
    use serde::{Deserializer, Serializer};

    #[derive(Serialize, Deserialize)]
    struct All<C> {
        #[serde(flatten)]
        counters: C,
        #[serde(default, skip_serializing_if = "is_none")]
        shard: ShardCounts,
    }

    fn is_none(counts: &ShardCounts) -> bool {
        *counts == ShardCounts::default()
    }

    pub fn serialize<S: Serializer>(counters: &Counters, to: S) -> Result<S::Ok, S::Error> {
        let shard = counters.shard;
        All { counters, shard }.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Counters, D::Error> {
        let All { counters, shard } = All::<Counters>::deserialize(from)?;
        Ok(Counters { shard, ..counters })
    }
}

/// Counts of a store that is a shard ([`crate::rules::Shard`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardCounts {
    pub other_records: u64,
    /// Pages of other shards, known from links only.
    pub remote_pages: u64,
}

impl Counters {
    /// Returns the number of records skipped for any reason.
    pub fn skipped_total(&self) -> u64 {
        self.skipped.iter().sum()
    }

    /// Adds an entry to all counters except [`Counters::visited`].
    pub fn take(&mut self, what: What, counts: &LinkCounts) {
        match what {
            What::Other => self.other += 1,
            What::OutOfScope => self.out_of_scope += 1,
            What::OtherShard => self.shard.other_records += 1,
            What::Skipped(reason) => self.skipped[reason as usize] += 1,
            What::Visit | What::Gone | What::Unchanged | What::Failed => {
                self.records += 1;
                self.gone += u64::from(what == What::Gone);
                self.unchanged += u64::from(what == What::Unchanged);
                self.failed += u64::from(what == What::Failed);
                self.links += u64::from(counts.read);
                self.links_scheme += u64::from(counts.scheme);
                self.links_invalid += u64::from(counts.invalid);
                self.links_too_long += u64::from(counts.too_long);
                self.links_own += u64::from(counts.own);
                self.links_repeated += u64::from(counts.repeated);
                self.links_out_of_scope += u64::from(counts.out_of_scope);
            }
        }
    }
}
