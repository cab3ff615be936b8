//! Options of `ingest` that would have no effect.

use cashrank::ingest::Job;
use cashrank::source::InputName;
use cashrank::store::rows::KeepRows;

use super::Args;
use crate::cli::values::Bound;

impl Args {
    /// Refuses options that have no effect on this run.
    pub(super) fn refuse_unused(&self, job: &Job) -> anyhow::Result<()> {
        let settles = job.settle.is_some()
            && job.settings.config.is_settled()
            && job.keep_rows != KeepRows::None;
        let bound = match self.settle {
            Some(Bound(Some(_))) => Some("--settle"),
            _ => None,
        };
        if let Some(option) = self.settle_time.map(|_| "--settle-time").or(bound) {
            anyhow::ensure!(
                settles,
                "{option}: importance is not settled, which --settle none, --keep-rows none, --window and --max-age \
                 prevent; leave it out"
            );
        }
        anyhow::ensure!(
            !self.resume || job.inputs.contains(&InputName::Stdin),
            "--resume is for a stream on standard input: name `-` among the inputs"
        );
        Ok(())
    }
}
