//! Lists of pages as tables.

use std::io::Write;
use std::path::Path;

use super::TakerSpec;
use crate::Result;
use crate::model::Page;
use crate::schedule::Candidate;
use crate::snapshot::export::{
    Format, NumberColumn, OptionalColumns, Setup, TableOf, ValueKind, export,
};

pub(super) const TSV: TakerSpec = TakerSpec {
    name: "tsv",
    about: "tab-separated values with a header line",
    write: |pages, out| write(Format::Tsv, pages, out),
};

pub(super) const JSONL: TakerSpec = TakerSpec {
    name: "jsonl",
    about: "JSON lines, one object per page",
    write: |pages, out| write(Format::Jsonl, pages, out),
};

pub(super) const PARQUET: TakerSpec = TakerSpec {
    name: "parquet",
    about: if cfg!(feature = "parquet") {
        "Apache Parquet"
    } else {
        "Apache Parquet; this build has none: cargo install --features parquet"
    },
    write: |pages, out| write(Format::Parquet, pages, out),
};

/// Writes a list by the export of rankings.
fn write(format: Format, pages: &[Candidate], out: &mut (dyn Write + Send)) -> Result<()> {
    let more = [
        ("score", ValueKind::Real),
        ("fetched", ValueKind::Bool),
        ("failed", ValueKind::Integer),
        ("compared", ValueKind::Integer),
        ("changed", ValueKind::Integer),
    ];
    let setup = Setup {
        columns: OptionalColumns {
            of: TableOf::Candidates,
            more: more
                .map(|(name, kind)| NumberColumn::new(name, kind))
                .into(),
            ..OptionalColumns::default()
        },
        ..Setup::default()
    };
    let rows = pages.iter().map(|of| {
        let fetches = &of.fetches;
        let counts = [fetches.failed, fetches.compared, fetches.changed];
        let numbers = [of.score, of.fetched.into()].into_iter();
        let numbers = numbers.chain(counts.map(|count| count as f64));
        Ok(Page {
            url: (&*of.url).into(),
            importance: of.importance,
            visits: fetches.visits,
            last_fetch: fetches.last,
            more: numbers
                .map(|number| Some(number).filter(|it| it.is_finite()))
                .collect(),
            ..Page::default()
        })
    });
    export(format, &setup, out, Path::new("the list of pages"), rows).map(drop)
}
