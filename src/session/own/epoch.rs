//! The end of an epoch: cash crosses from partition to partition, and the virtual page pays. See `engine/joint.rs`.

use super::{OwnParts, Part};
use crate::Result;
use crate::engine::{Engine, Transfer};
use crate::store::Store;
use crate::threads::dealt;

impl OwnParts {
    /// Ends an epoch of so many records, with so many pages in all. All partitions are in this process.
    ///
    /// # Errors
    /// Those of writing, which are final.
    pub fn end_epoch(
        &mut self,
        whole: &mut Engine<Store>,
        (records, pages): (u64, u64),
    ) -> Result<()> {
        let ends_round = whole.fills_round(records);
        let (threads, count) = (self.workers.threads, self.parts.len());
        let sent = dealt(threads, &mut self.parts, |_, part| {
            let mut mail: Vec<Vec<Transfer>> = vec![Vec::new(); count];
            part.engine.send_cash(&part.ghosts, &mut mail)?;
            Ok(mail)
        })?;
        let handed = dealt(threads, &mut self.parts, |at, part| {
            let mut mail = sent.iter().filter_map(|mail| mail.get(at));
            mail.try_for_each(|transfers| part.engine.receive_cash(transfers))?;
            part.engine.close_epoch(ends_round)
        })?;
        drop(sent);
        let epoch = whole.end_epoch(pages, ends_round, &handed)?;
        let begin = |_, part: &mut Part| {
            part.is_changed = true;
            part.engine.begin_epoch(&epoch, &part.ghosts)
        };
        dealt(threads, &mut self.parts, begin).map(drop)
    }
}
