//! Facts of pages that were gathered elsewhere: a run of the history without cash.

use super::Store;
use super::tables::RunPacker;
use crate::Result;
use crate::engine::Row;

/// Such a run, while it is written.
pub(crate) struct FactsRun(RunPacker);

impl Store {
    /// Begins a run behind all that there are, of the time after mark `interval`.
    ///
    /// # Errors
    /// Those of writing, after which nothing more is written.
    pub(crate) fn begin_facts(&mut self, interval: u64) -> Result<FactsRun> {
        let packed = self.finish_packing();
        self.noting(packed)?;
        let number = self.manifest.next_run;
        self.manifest.next_run += 1;
        Ok(FactsRun(RunPacker::new(number, interval)))
    }

    /// Adds what is known of a page, which is behind that of the last one.
    ///
    /// # Errors
    /// As of [`Store::begin_facts`].
    pub(crate) fn add_facts(&mut self, run: &mut FactsRun, row: Row) -> Result<()> {
        match run.0.add(row) {
            Some((key, block)) => self.put_facts(key, &block),
            None => Ok(()),
        }
    }

    /// Ends the run: the next commit has it.
    ///
    /// # Errors
    /// As of [`Store::begin_facts`].
    pub(crate) fn end_facts(&mut self, run: FactsRun) -> Result<()> {
        let (run, last) = run.0.end();
        if let Some((key, block)) = last {
            self.put_facts(key, &block)?;
        }
        if run.rows > 0 {
            self.manifest.runs.push(run);
        }
        Ok(())
    }

    fn put_facts(&mut self, key: (u64, u64), block: &[u8]) -> Result<()> {
        let put = self
            .writing()
            .and_then(|writing| writing.put_block(key, block));
        self.noting(put)
    }
}
