//! `cashrank export --to common-crawl` with a level: ranks of hosts or domains by two measures, in one file.

use cashrank_store::snapshot::write_ranks;

use super::super::common::Exit;
use super::super::levels::counted_of;
use super::super::output::OutputTarget;
use super::ExportArgs;

impl ExportArgs {
    /// Writes the ranks of hosts or domains, which must have been computed before.
    pub(super) fn export_ranks(&self, output: &OutputTarget) -> anyhow::Result<Exit> {
        anyhow::ensure!(
            self.level.is_roll_up() && self.sort.is_none() && self.scope.rules().is_all(),
            "common-crawl has both measures and an order of its own: leave --measure, --roll-up, --sort and --scope out"
        );
        let scoring = &self.scoring;
        let score = scoring.score.is_some() || scoring.score_field.is_some();
        anyhow::ensure!(
            !score
                && scoring.into.is_none()
                && !self.cash
                && !self.gone.without_gone
                && self.since.since.is_none(),
            "common-crawl has columns of its own: leave --score, --score-field, --into, --cash, --without-gone and --since out"
        );
        let open = |measure: &str| {
            let snapshot = self.snapshot.open(self.stores.first())?;
            let name = self.level.named(Some(measure));
            self.level.open_named(snapshot, &name, &self.memory)
        };
        let (harmonic, pagerank) = (open("harmonic")?, open("pagerank")?);
        let memory = self.memory.budget(1)?;
        let path = self.output.file.name();
        let mut count = 0;
        output.put(|out| {
            count = write_ranks(&harmonic, &pagerank, memory, out, path)?;
            Ok(())
        })?;
        let level = harmonic.level();
        let summary = serde_json::json!({
            "count": count,
            "level": level.to_string(),
            "snapshot": harmonic.snapshot().path().display().to_string(),
        });
        self.output
            .report(output, &counted_of(level, count), summary)
    }
}
