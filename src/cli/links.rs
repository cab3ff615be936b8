//! `cashrank links`: the links of a page, and who links to it.

use cashrank_steer::answers::LinkList;
use cashrank_store::memory::check_room;
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;

use super::common::{Exit, MemoryArg, StoreArg, print, say, shown, thousands, write_json};

/// Show what a page links to, or with --in what links to it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank links https://example.org/ --store ranks
  cashrank links https://example.org/ --in -n 20 --store ranks
  cashrank links https://example.org/ --in --json --store ranks

The links are those that the last visit of each page found, as of the current snapshot (`ingest --keep-links`). --in \
reads all of them once.")]
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
        let listed = self.n.unwrap_or(usize::MAX);
        let check = |links: usize| {
            let need = links as u64 * END_BYTES + links.min(listed) as u64 * LISTED_BYTES;
            let work = || format!("listing {links} links");
            check_room(self.memory.budget(), need, work, "list fewer (-n)")
        };
        let within = self.incoming.then_some(u64::MAX);
        let Some(found) = LinkList::of(&snapshot, &self.url, listed, within, check)? else {
            say!("{}: not known", shown(&self.url));
            return Ok(Exit::Unknown);
        };
        print(|out| {
            for end in &found.links {
                if self.json {
                    write_json(out, end)?;
                } else {
                    writeln!(out, "{}", shown(&end.url))?;
                }
            }
            Ok(())
        })?;
        let count = thousands(found.count);
        if self.incoming {
            say!("{count} pages link to it");
            return Ok(Exit::Done);
        }
        let name = snapshot.names_of(&[found.page])?.concat();
        let note = match (found.visited, found.gone) {
            (true, true) => ": the page is gone",
            (true, false) => "",
            _ if !snapshot.is_local(name.as_bytes()) => {
                ": a page of another shard, whose store has its links"
            }
            _ => ": the page was not fetched yet",
        };
        say!("{count} links{note}");
        Ok(Exit::Done)
    }
}
