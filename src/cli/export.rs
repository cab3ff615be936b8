//! `cashrank export`: the whole ranking as a file.

use cashrank::Error;
use cashrank::memory::{ALLOCATION, LOOK_EVERY, check_room, to_read};
use cashrank::schedule::Measure;
use cashrank::snapshot::Snapshot;
use cashrank::snapshot::export::{Columns, Format, Page, export};

use super::common::{Exit, MemoryArg, StoreArg, counted, one_of, parsed, print_json, word};
use super::output::{Output, SummedOutputArgs};
use super::snapshots::SnapshotArg;
use crate::cli::common::say;

/// Write the current ranking for other programs: url, importance, rank, visits, last_fetch.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank export --to parquet -o ranks.parquet --store ranks
  cashrank export --to tsv --sort rank --store ranks | head
  cashrank export --to tsv --distance fica:k=10000 --store ranks")]
pub struct Args {
    #[command(flatten)]
    store: StoreArg,
    #[command(flatten)]
    snapshot: SnapshotArg,
    /// The format to write.
    #[arg(long, value_name = "FORMAT", value_parser = export_formats())]
    to: Format,
    #[command(flatten)]
    output: SummedOutputArgs,
    /// The order of the pages: id (that of their first appearance), or rank, which holds all URLs in memory.
    #[arg(long, value_name = "ORDER", default_value = "id", value_parser = ["id", "rank"])]
    sort: String,
    /// Add a column with each page's distance: `fica` or `distance`, with the parameters that `next --strategy` takes.
    /// This reads all kept links once, and takes 16 bytes of memory per page.
    #[arg(long, value_name = "MEASURE", value_parser = parsed::<Measure>)]
    distance: Option<Measure>,
    #[command(flatten)]
    memory: MemoryArg,
}

/// Distances of all pages, if they are asked for.
pub(super) fn distances(
    snapshot: &Snapshot,
    measure: Option<&Measure>,
) -> cashrank::Result<Vec<Option<f64>>> {
    match measure {
        None => Ok(Vec::new()),
        Some(measure) => measure.of(&snapshot.rows()?),
    }
}

/// The formats by name, for clap.
pub(super) fn export_formats() -> impl clap::builder::TypedValueParser<Value = Format> {
    let formats = Format::ALL.map(|format| word(format.name(), format.about()));
    one_of(formats, parsed::<Format>)
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let output = self.output.open()?;
        output.must_show(self.to.name(), self.to.is_text())?;
        let snapshot = self.snapshot.open(&self.store.store)?;
        let path = self.output.file.name();
        let distances = distances(&snapshot, self.distance.as_ref())?;
        let columns = Columns {
            distance: self.distance.is_some(),
        };
        let rows = snapshot.named().map(|page| {
            let page = page?;
            Ok(Page {
                distance: distances.get(page.page.0 as usize).copied().flatten(),
                ..page
            })
        });
        let mut count = 0;
        output.put(|out| {
            count = if self.sort == "rank" {
                let rows = self.sorted(snapshot.info().pages, rows)?;
                export(self.to, columns, out, path, rows.into_iter().map(Ok))?
            } else {
                export(self.to, columns, out, path, rows)?
            };
            Ok(())
        })?;
        if self.output.json {
            let path = snapshot.path().display().to_string();
            return print_json(&serde_json::json!({"pages": count, "snapshot": path}));
        }
        if output != Output::Standard {
            say!("{}: {}", path.display(), counted(count, "page", "pages"));
        }
        Ok(Exit::Done)
    }

    /// All `pages` rows, by rank.
    fn sorted<'r>(
        &self,
        pages: u64,
        rows: impl Iterator<Item = Result<Page<'r>, Error>>,
    ) -> Result<Vec<Page<'r>>, Error> {
        let budget = self.memory.budget();
        let check = |names: u64| {
            let need = pages * size_of::<Page<'_>>() as u64 + names + to_read(pages);
            let work = || format!("sorting {pages} pages by rank");
            check_room(
                budget,
                need,
                work,
                "export without --sort and sort the lines",
            )
        };
        check(pages * ALLOCATION)?;
        // Room that grew by doubling would be half too much.
        let (mut sorted, mut names) = (Vec::new(), 0);
        sorted.reserve_exact(pages as usize);
        for row in rows {
            let row = row?;
            names += row.url.len() as u64 + ALLOCATION;
            if (sorted.len() as u64).is_multiple_of(LOOK_EVERY) {
                check(names)?;
            }
            sorted.push(row);
        }
        sorted.sort_unstable_by_key(|row| (row.rank, row.page));
        Ok(sorted)
    }
}
