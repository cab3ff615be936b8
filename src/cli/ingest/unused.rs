//! Options of `ingest` that would have no effect.

use cashrank_crawl::source::InputName;
use cashrank_ingest::ingest::IngestJob;
use cashrank_store::store::rows::KeepRows;

use super::IngestArgs;
use crate::cli::values::Bound;

impl IngestArgs {
    /// Refuses options that have no effect on this run.
    pub(super) fn refuse_unused(&self, job: &IngestJob) -> anyhow::Result<()> {
        let settles = job.settle.is_some()
            && job.settings.config.is_settled()
            && job.keep_links != KeepRows::None;
        let bound = match self.settle {
            Some(Bound(Some(_))) => Some("--settle"),
            _ => None,
        };
        let cold = self.cold.then_some("--cold");
        if let Some(option) = self.settle_time.map(|_| "--settle-time").or(bound).or(cold) {
            anyhow::ensure!(
                settles,
                "{option}: importance is not settled, which --settle none, --keep-links none, --window and --max-age \
                 prevent; leave it out"
            );
        }
        anyhow::ensure!(
            self.estimator.is_none() || !settles,
            "--estimator: it says how a window is read, and importance is settled over the kept links: add --window, or leave \
             it out"
        );
        let of_streams = [(self.resume, "--resume"), (self.new_stream, "--new-stream")];
        if let Some((_, option)) = of_streams.iter().find(|(given, _)| *given) {
            anyhow::ensure!(
                job.inputs.iter().any(InputName::is_stream),
                "{option} is for a stream on standard input: name `-` among the inputs"
            );
        }
        Ok(())
    }
}
