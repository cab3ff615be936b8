//! `cashrank coverage`: bounds on the crawled share of the pages that readers see.

use std::path::PathBuf;

use cashrank_steer::answers::{CoveredHost, SeedCoverage, seeds_of};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;

use super::common::{
    Exit, MemoryArg, StoreArg, lines, print, print_json, report_lines, shown, thousands,
};
use super::table::write_table;

/// Memory per page, in bytes: settling, the weight of a seed, and whether the page was read.
const COVERED_BYTES: u64 = 27;
/// Memory per host with a single page, in bytes.
const BY_HOST_BYTES: u64 = 320;

/// Show how much of what readers see was crawled.
///
/// Readers start at the seeds and follow links, as PageRank has it. Two bounds on the share that was read of what they
/// see are proven, whatever the rest of the web is like.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank coverage --store ranks
  cashrank coverage --store ranks --seeds seeds.txt
  cashrank coverage --store ranks --by-host -n 20

Without --seeds, readers start at the pages that were read before any link to them was seen. It reads the kept links \
(`ingest --keep-links`) some 40 times, and works while an ingest is running.")]
pub struct CoverageArgs {
    #[command(flatten)]
    store: StoreArg,
    /// Readers start at the URLs in this file, one a line; `-`: standard input. May be repeated.
    #[arg(long, value_name = "FILE")]
    seeds: Vec<PathBuf>,
    /// Show hosts, too: those first where most of what readers see is known not to be read.
    #[arg(long)]
    by_host: bool,
    /// Show N hosts.
    #[arg(
        short,
        long = "count",
        alias = "n",
        value_name = "N",
        default_value_t = 20,
        requires = "by_host"
    )]
    n: usize,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

impl CoverageArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let snapshot = Snapshot::latest(&RealDisk, &self.store.store)?;
        let pages = snapshot.info().pages;
        let a_page = COVERED_BYTES + if self.by_host { BY_HOST_BYTES } else { 0 };
        let work = || format!("the coverage of {pages} pages");
        let instead = "leave --by-host out, or use a machine with more";
        let room = self.memory.left_after(pages * a_page, work, instead)?;
        let mut seeds = None;
        if !self.seeds.is_empty() {
            let (found, skipped) = seeds_of(&snapshot, lines(&self.seeds), room)?;
            report_lines("--seeds", skipped);
            anyhow::ensure!(
                found.first().is_some_and(|&page| u64::from(page) < pages),
                "none of the seeds is known: crawl them first and ingest what was read"
            );
            seeds = Some(found);
        }
        let coverage = SeedCoverage::of(&snapshot, seeds)?;
        let covered = &coverage.covered;
        let hosts = self.by_host.then(|| coverage.hosts(&snapshot));
        let hosts = hosts.transpose()?.map(|mut hosts| {
            hosts.truncate(self.n);
            hosts
        });
        if self.json {
            let mut answer = serde_json::to_value(covered)?;
            if let Some(hosts) = hosts {
                answer["hosts"] = serde_json::to_value(hosts)?;
            }
            return print_json(&answer);
        }
        print(|out| {
            let seeds = if covered.seeds == 1 { "seed" } else { "seeds" };
            writeln!(
                out,
                "Readers who start at the {} {seeds}, and follow links with probability {}: of what they see, at least \
                 {} and at most {} was read.",
                thousands(covered.seeds),
                covered.damping,
                percent(covered.at_least, f64::floor),
                percent(covered.at_most, f64::ceil),
            )?;
            let unread = covered.seeds - covered.seeds_read;
            if unread > 0 {
                writeln!(out, "{} of the seeds not read yet", thousands(unread))?;
            }
            writeln!(
                out,
                "{} of {} known pages read",
                thousands(covered.read),
                thousands(covered.pages)
            )?;
            hosts.map_or(Ok(()), |hosts| show_hosts(out, &hosts))
        })
    }
}

fn show_hosts(out: &mut dyn std::io::Write, hosts: &[CoveredHost]) -> anyhow::Result<()> {
    let columns = [
        ("pages", 10),
        ("read", 10),
        ("read, least", 12),
        ("unread, least", 13),
        ("host", 0),
    ];
    let row = |host: &CoveredHost| {
        [
            thousands(host.pages),
            thousands(host.read),
            percent(host.at_least, f64::floor),
            percent(host.unread, f64::floor),
            shown(&host.host).into_owned(),
        ]
    };
    writeln!(out)?;
    Ok(write_table(out, "  ", columns, hosts.iter().map(row))?)
}

/// Formats a share in tenths of a percent; `round` keeps a proven bound valid.
fn percent(share: f64, round: fn(f64) -> f64) -> String {
    format!("{:.1} %", round(share * 1000.0) / 10.0)
}
