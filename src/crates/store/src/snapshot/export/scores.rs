//! Lines of a name and a score, without a header.
//!
//! | format | line | source |
//! |---|---|---|
//! | `scores` | name, tab, score | as `compare` reads it |
//! | `solr` | `name=score` | Solr's `ExternalFileField`: a key may hold `=`, since lines are split at their last; sorted by key they load far faster |
//!
//! Solr reads scores as 32-bit numbers, so scores are written in the shortest digits of one.

use std::io::Write;

use super::score::Scorer;
use super::{Content, ExportFormatSpec, ExportOutput, Exporter, LineWriter, Page, Setup, without};
use crate::{Error, Result};

pub(super) const SCORES: ExportFormatSpec = ExportFormatSpec {
    name: "scores",
    about: "a URL, a tab and a score per line",
    is_text: true,
    content: Content::Score,
    start: |out, setup| Ok(ScoreLines::boxed(out, setup, ScoreLineKind::Plain)),
};

pub(super) const SOLR: ExportFormatSpec = ExportFormatSpec {
    name: "solr",
    about: "url=score, for Solr's ExternalFileField",
    is_text: true,
    content: Content::Score,
    start: |out, setup| Ok(ScoreLines::boxed(out, setup, ScoreLineKind::Solr)),
};

enum ScoreLineKind {
    Plain,
    Solr,
}

struct ScoreLines<'w> {
    lines: LineWriter<'w>,
    scorer: Scorer,
    kind: ScoreLineKind,
}

impl<'w> ScoreLines<'w> {
    fn boxed(out: ExportOutput<'w>, setup: &Setup, kind: ScoreLineKind) -> Box<dyn Exporter + 'w> {
        Box::new(ScoreLines {
            lines: LineWriter::new(out),
            scorer: Scorer::new(setup),
            kind,
        })
    }
}

impl Exporter for ScoreLines<'_> {
    fn row(&mut self, page: &Page<'_>) -> Result<()> {
        let (line, url) = (&mut self.lines.buffer, &page.url);
        let score = self.scorer.of(page)?;
        let written = match self.kind {
            ScoreLineKind::Plain => {
                without(page, b"\t\r\n", "a file of scores")?;
                writeln!(line, "{url}\t{score:?}")
            }
            ScoreLineKind::Solr => {
                without(page, b"\r\n", "a file for Solr")?;
                writeln!(line, "{url}={:?}", score as f32)
            }
        };
        written.map_err(|e| Error::io(&self.lines.out.path, "write")(e))?;
        self.lines.line_done()
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.lines.finish().map(|()| 0)
    }
}
