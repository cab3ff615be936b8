//! `cashrank links`: the links of a page, and who links to it.

use cashrank_steer::answers::{Ends, pages_of};
use cashrank_store::memory::check_room;
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;

use super::common::{Exit, MemoryArg, StoreArg, print, shown, thousands, write_json};
use crate::cli::common::say;

/// Show what a page links to, or with --in what links to it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank links https://example.org/ --store ranks
  cashrank links https://example.org/ --in -n 20 --store ranks
  cashrank links https://example.org/ --in --json --store ranks

The links are those that the last visit of each page found, as of the current snapshot. They come from the store \
(`ingest --keep-links`); no input is read. --in reads all kept links once. Both work while an ingest is running.")]
pub struct LinksArgs {
    /// A URL in any form, or the name of a node.
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    store: StoreArg,
    /// Show the pages that link to it.
    #[arg(long = "in")]
    incoming: bool,
    /// Show only the first N.
    #[arg(short, long = "count", alias = "n", value_name = "N")]
    n: Option<usize>,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print one JSON object per line, for programs.
    #[arg(long)]
    json: bool,
}

/// Memory for the other end of a link while it is ranked, in bytes.
const END_BYTES: u64 = 64;
/// Memory for the other end of a link that is listed, including its name, in bytes.
const LISTED_BYTES: u64 = 256;

impl LinksArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let snapshot = Snapshot::latest(&RealDisk, &self.store.store)?;
        let asked = std::slice::from_ref(&self.url);
        let found = pages_of(asked, |names| snapshot.find(names))?;
        let Some(page) = found.into_iter().flatten().next() else {
            say!("{}: not known", shown(&self.url));
            return Ok(Exit::Unknown);
        };
        let found = if self.incoming {
            Ends::to(&snapshot.rows()?, page.0 as u32, u64::MAX)?
        } else {
            Ends::of(&snapshot, page.0 as u32)?
        };
        let (links, listed) = (found.ends.len(), self.n.unwrap_or(usize::MAX));
        let need = links as u64 * END_BYTES + links.min(listed) as u64 * LISTED_BYTES;
        let work = || format!("listing {links} links");
        check_room(self.memory.budget(1)?, need, work, "list fewer (-n)")?;
        let (all, ends) = found.listed(&snapshot, listed)?;
        print(|out| {
            for end in &ends {
                if self.json {
                    write_json(out, end)?;
                } else {
                    writeln!(out, "{}", shown(&end.url))?;
                }
            }
            Ok(())
        })?;
        let what = if self.incoming {
            "pages link to it"
        } else {
            "links"
        };
        let name = snapshot.names_of(&[page])?.concat();
        let note = note(&found, !snapshot.is_local(name.as_bytes()));
        say!("{} {what}{note}", thousands(all));
        Ok(Exit::Done)
    }
}

fn note(found: &Ends, is_remote: bool) -> &'static str {
    match (found.visited, is_remote) {
        (true, _) if found.gone => ": the page is gone",
        (true, _) => "",
        (false, true) => ": a page of another shard, whose store has its links",
        (false, false) => ": the page was not fetched yet",
    }
}
