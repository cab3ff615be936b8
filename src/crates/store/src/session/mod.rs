//! Records pushed one by one by a program: [`Writer`] into a store, [`Reader`] into an engine in memory.

mod writer;

use crate::batch::{Builder, Rules};
use crate::engine::{Engine, InMemory};
use crate::model::{Batch, HashKey, Limits, Names, Parsed, Record, What};
use crate::{Error, Result};

pub use writer::{Options, Writer};

/// Applies records to an engine in memory, one at a time.
pub struct Reader {
    builder: Builder,
}

impl Reader {
    /// Returns a reader of records; `names` tells whether their names are URLs or opaque.
    pub fn new(engine: &Engine<InMemory>, names: Names) -> Result<Reader> {
        let rules = Rules {
            limits: Limits::default(),
            self_links: engine.config().self_links,
            key: HashKey::random()?,
            input: Default::default(),
            follow: engine.config().follow.clone(),
        };
        Ok(Reader {
            builder: Builder::new(rules, names),
        })
    }

    /// Applies one record. An unusable one is counted by its reason, and is an error (`Error::BadRecord`).
    pub fn apply(&mut self, engine: &mut Engine<InMemory>, record: &Record<'_>) -> Result<()> {
        self.builder.add(Parsed::Record(record));
        let batch: Batch = self.builder.take();
        engine.begin_batch();
        for (at, entry) in batch.entries.iter().enumerate() {
            engine.apply_entry(&batch, at)?;
            if let What::Skipped(reason) = entry.what {
                let detail = batch.complaints.first().map_or("", |(_, text)| text);
                return Err(Error::BadRecord {
                    input: "record".into(),
                    record: engine.counters().records + engine.counters().skipped_total(),
                    offset: 0,
                    reason: reason.name(),
                    detail: detail.into(),
                });
            }
        }
        Ok(())
    }
}
