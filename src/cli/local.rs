//! `cashrank local`: the global PageRank of a local domain.

use std::io::Write;
use std::path::PathBuf;

use cashrank_base::rules::Scope;
use cashrank_graph::engine::{PageId, checked_damping, ranks};
use cashrank_graph::rows::Rows as _;
use cashrank_steer::answers::each_listed;
use cashrank_steer::local::{
    LocalEstimate, LocalGraph, LocalOptions, Matrix, Policy, estimate, search_bytes,
};
use cashrank_steer::schedule::{Candidate, MAX_FAILURES, Taker};
use cashrank_store::memory::check_room;
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;

use super::common::{
    self, Exit, MemoryArg, STORE, counted, lines, one_of, positive, print_json, report_lines, say,
    takers, thousands, words,
};
use super::json::object;
use super::output::OutputArgs;

/// Estimate how one site's pages rank in the whole web, and what to fetch for that.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank local --store ranks --domain host:www.example.org -n 500 > fetch.txt
  cashrank local --store ranks --domain file:pages.txt -o ranks.tsv
  cashrank local --store ranks --domain host:a.org -n 200 --to heritrix-schedule -o job/action/next.schedule

If you crawl only one site, the ranks of its pages are wrong, since importance also flows in from outside. Fetch the \
pages listed, ingest them into the same store, and ask again, until as many pages outside were fetched as the domain has \
or twice as many (Davis, Dhillon: Estimating the global PageRank of web communities, 2006; see formats/guide/local.md).

Without -n the domain's pages are written as TSV, best first, with their estimated ranks:
  importance  the estimated PageRank in the whole web, scaled so that the domain's pages sum to 1
  outside     the part of it that comes over links from outside the domain")]
pub struct LocalArgs {
    /// A store that keeps links (`ingest --keep-links`) [default: the environment variable CASHRANK_STORE].
    #[arg(long, value_name = "DIR", env = STORE, hide_env = true)]
    store: PathBuf,
    /// The domain: host:NAME, or another rule as of `ingest --scope`, or file:PATH, a list of URLs. May be repeated.
    #[arg(long, value_name = "PAGES", required = true)]
    domain: Vec<String>,
    /// List K pages outside, best first.
    #[arg(short, long = "count", alias = "n", value_name = "K", value_parser = pages)]
    n: Option<u64>,
    /// Which pages outside to list [default: share].
    ///
    /// share: by the PageRank that flows into them from the domain and pages that link into it; sc: by Stochastic Complementation,
    /// the paper's own; pf: by PageRank flow; outlink: by links from the domain; random.
    #[arg(long, value_name = "WHICH", requires = "n", value_parser = words::<Policy>(Policy::ALL.map(|of| (of.name(), ""))))]
    select: Option<Policy>,
    /// How to estimate ranks in the whole web.
    ///
    /// extrapolated: to where all pages outside would be fetched; sc (also plain): as in the paper.
    #[arg(long, value_name = "HOW", default_value = "extrapolated", action = clap::ArgAction::Set,
        value_parser = one_of([("extrapolated", ""), ("sc", ""), ("plain", "")], |name| Ok(name == "extrapolated")))]
    estimate: bool,
    /// The format of the list, as of `next` [default: plain].
    #[arg(long, value_name = "FORMAT", requires = "n", value_parser = takers())]
    to: Option<Taker>,
    #[command(flatten)]
    output: OutputArgs,
    /// The share of a page's importance that its links pass on.
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    damping: f64,
    /// Print one JSON object, for programs.
    #[arg(long, conflicts_with_all = ["to", "output"])]
    json: bool,
    #[command(flatten)]
    memory: MemoryArg,
}

impl LocalArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        checked_damping(self.damping)?;
        let output = self.output.open()?;
        let to = self.to.unwrap_or(Taker::Plain);
        output.must_show(to.name(), to.is_text())?;
        let snapshot = Snapshot::latest(&RealDisk, &self.store)?;
        let members = DomainPages::of(&self.domain, &snapshot)?;
        let options = LocalOptions {
            policy: self.select.unwrap_or(Policy::Share),
            extrapolates: self.estimate,
            ..LocalOptions::of(self.damping)
        };
        self.check_memory(&snapshot, &members, options.policy)?;
        let (mut known, mut failing) = known(&snapshot, &members.pages)?;
        // For the ranks, pages whose fetch failed have no links, though a list may contain them again.
        if self.n.is_none() {
            failing.drain(..).for_each(|page| known.lost(page));
        }
        let mut matrix = known.matrix();
        let mut ranks = matrix.ranks(&options.power, &[]);
        let asked = match self.n {
            Some(n) => options.requests(&matrix, &ranks, usize::try_from(n)?, |_| 0),
            None => Vec::new(),
        };
        if !failing.is_empty() {
            failing.into_iter().for_each(|page| known.lost(page));
            matrix = known.matrix();
            ranks = matrix.ranks(&options.power, &[]);
        }
        let names = names(&snapshot, asked.iter().map(|asked| asked.page))?;
        let next = asked.iter().zip(names).map(|(asked, url)| Candidate {
            page: Some(PageId(asked.page.into())),
            url,
            score: asked.score,
            // What the known links pass to it.
            importance: asked.flow,
            ..Candidate::default()
        });
        let next: Vec<Candidate> = next.collect();
        let estimate = estimate(&known, &matrix, &ranks, &options);
        let pages = ranked(&snapshot, &known, &estimate)?;
        let of_domain = members.pages.iter();
        let unfetched = of_domain.filter(|&&page| !known.is_fetched(page)).count();
        if self.json {
            let next = next.iter().map(|page| {
                object! {
                    "url": &page.url,
                    "score": page.score,
                    "importance": page.importance,
                }
            });
            return print_json(&object! {
                "domain_pages": known.domain,
                "domain_pages_not_fetched": unfetched,
                "outside_pages": known.outside(),
                "gone_pages": known.gone,
                "failed_pages": matrix.failed,
                "frontier_pages": matrix.frontier.len(),
                "leak": estimate.leak,
                "extrapolated": estimate.extrapolated,
                "next": next.collect::<Vec<_>>(),
                "pages": &pages,
            });
        }
        report(&known, &matrix, &estimate, unfetched);
        note_outside(&snapshot, &known, &matrix, members.pages.len());
        let Some(n) = self.n else {
            output.put(|out| write_ranks(&pages, out))?;
            return Ok(Exit::Done);
        };
        let count = next.len() as u64;
        if count < n && count > 0 {
            let count = counted(count, "page is", "pages are");
            say!("only {count} known and not fetched: all are listed");
        }
        output.put(|out| Ok(to.write(&next, out)?))?;
        Ok(Exit::Done)
    }

    fn check_memory(
        &self,
        snapshot: &Snapshot,
        domain: &DomainPages,
        policy: Policy,
    ) -> anyhow::Result<()> {
        let rows = snapshot.rows()?;
        let frontier = rows.pages().saturating_sub(rows.rows());
        let need = search_bytes(&rows, rows.rows(), rows.has_weights()?, policy)
            + domain.pages.len() as u64 * MEMBER_BYTES
            + domain.name_bytes
            + self.n.unwrap_or(0).min(frontier) * LISTED_BYTES;
        let (pages, links) = (rows.pages(), rows.links());
        let work = || format!("a search over {pages} pages and {links} links");
        let instead = "crawl less outside of the domain into a store of its own";
        Ok(check_room(self.memory.budget(), need, work, instead)?)
    }
}

fn pages(text: &str) -> Result<u64, String> {
    match positive(text) {
        Err(_) if text.parse() == Ok(0) => {
            Err("\"0\": to get only the ranks of the crawl so far, leave out -n".into())
        }
        read => read,
    }
}

/// Maximum memory per page of the domain, without its name, in bytes: its number and its estimate.
const MEMBER_BYTES: u64 = 256;
/// Maximum memory per listed page, including its name, in bytes.
const LISTED_BYTES: u64 = 400;

#[derive(Default)]
struct DomainPages {
    /// Page numbers, ascending.
    pages: Vec<u32>,
    name_bytes: u64,
}

impl DomainPages {
    fn of(rules: &[String], snapshot: &Snapshot) -> anyhow::Result<DomainPages> {
        let (mut scope, mut found) = (Scope::default(), DomainPages::default());
        for rule in rules {
            let Some(path) = rule.strip_prefix("file:") else {
                scope.add(rule.parse()?);
                continue;
            };
            let (files, mut is_empty) = ([PathBuf::from(path)], true);
            let skipped = each_listed(lines(&files), Some(snapshot), |listed| {
                is_empty = false;
                for (line, page) in listed {
                    if let Some(page) = page {
                        found.pages.push(page.0 as u32);
                        found.name_bytes += line.name.len() as u64;
                    }
                }
                Ok(())
            })?;
            report_lines("--domain", skipped);
            anyhow::ensure!(!is_empty, "--domain {rule}: the file names no page");
        }
        if !scope.is_all() {
            for (page, name) in (0..).zip(snapshot.names()) {
                let name = name?;
                if scope.has(name.as_bytes()) {
                    found.pages.push(page);
                    found.name_bytes += name.len() as u64;
                }
            }
        }
        found.pages.sort_unstable();
        found.pages.dedup();
        Ok(found)
    }
}

/// Returns the graph of the domain and the pages outside it, and its pages whose failed fetch can be retried.
fn known(snapshot: &Snapshot, domain: &[u32]) -> anyhow::Result<(LocalGraph, Vec<u32>)> {
    anyhow::ensure!(
        !domain.is_empty(),
        "the domain has no page: no name known fits --domain; see some names with `cashrank top` or `cashrank inspect`"
    );
    let rows = snapshot.rows()?;
    let mut known = LocalGraph::of_rows(&rows, domain)?;
    let mut failing = Vec::new();
    for page in snapshot.pages() {
        let page = page?;
        let number = page.page.0 as u32;
        if page.fetches.failed == 0 || !known.has(number) {
            continue;
        }
        // A page that failed too often is not requested again in every round.
        if page.fetches.failed >= MAX_FAILURES {
            known.lost(number);
        } else {
            failing.push(number)
        }
    }
    Ok((known, failing))
}

fn names(snapshot: &Snapshot, pages: impl Iterator<Item = u32>) -> cashrank::Result<Vec<String>> {
    let pages: Vec<PageId> = pages.map(|page| PageId(page.into())).collect();
    snapshot.names_of(&pages)
}

#[derive(serde::Serialize)]
struct LocalPageRank {
    url: String,
    importance: f64,
    rank: u64,
    outside: f64,
}

fn ranked(
    snapshot: &Snapshot,
    known: &LocalGraph,
    estimate: &LocalEstimate,
) -> cashrank::Result<Vec<LocalPageRank>> {
    let names = names(snapshot, known.fetched[..known.domain].iter().copied())?;
    let pages = names.into_iter().zip(ranks(&estimate.ranks)).enumerate();
    let pages = pages.map(|(member, (url, rank))| LocalPageRank {
        url,
        importance: estimate.ranks[member],
        rank,
        outside: estimate.outside[member],
    });
    let mut pages: Vec<LocalPageRank> = pages.collect();
    pages.sort_by(|a, b| {
        let order = b.importance.total_cmp(&a.importance);
        order.then_with(|| a.url.cmp(&b.url))
    });
    Ok(pages)
}

fn write_ranks(pages: &[LocalPageRank], out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "url\timportance\trank\toutside")?;
    for page in pages {
        writeln!(
            out,
            "{}\t{:e}\t{}\t{:.4}",
            page.url, page.importance, page.rank, page.outside
        )?;
    }
    Ok(())
}

/// Prints what was found on standard error; `unfetched` pages of the domain were not fetched.
fn report(known: &LocalGraph, matrix: &Matrix, estimate: &LocalEstimate, unfetched: usize) {
    let count = |count: usize| thousands(count as u64);
    say!(
        "{} in the domain, {} fetched outside, {} known and not fetched",
        common::pages(known.domain as u64),
        count(known.outside()),
        count(matrix.frontier.len())
    );
    for (what, pages, so) in [
        ("found gone", known.gone, ", and have no rank here"),
        (
            "that could not be fetched",
            matrix.failed,
            " until they are",
        ),
    ] {
        if pages > 0 {
            let pages = count(pages);
            say!("pages {what}: {pages}; they count as pages without links{so}");
        }
    }
    if unfetched > 0 {
        say!(
            "of the domain, {} not fetched: these have no estimate, but are among the pages to fetch",
            counted(unfetched as u64, "page was", "pages were")
        );
    }
    let outside = estimate.outside.iter().zip(&estimate.ranks);
    say!(
        "importance of the domain: {:.1} % from links outside; {:.1} % of all flows to pages not fetched",
        100.0 * outside.map(|(part, rank)| part * rank).sum::<f64>(),
        100.0 * estimate.leak
    );
    if known.links() == 0 {
        say!("no fetched page links to another page: all ranks are equal");
    }
}

/// Prints a note if nothing is left to fetch, or nothing is outside of a domain of `pages` pages.
fn note_outside(snapshot: &Snapshot, known: &LocalGraph, matrix: &Matrix, pages: usize) {
    match (matrix.frontier.len(), known.outside()) {
        (0, 0) if !snapshot.info().settings.input.scope.is_all() => say!(
            "no link leads out of the domain: --scope left out pages outside and links to them when the crawl was read; \
             ingest it into another store, without --scope, to keep them"
        ),
        (0, 0) => say!(
            "no link leads out of the domain: there is nothing to fetch, and the ranks are those of the domain alone"
        ),
        (_, 0) if pages as u64 == snapshot.len() => {
            say!("all known pages are in the domain: the ranks are those of the crawl alone")
        }
        (0, _) => say!(
            "all pages that can be reached were fetched: the ranks are those in the whole crawl"
        ),
        _ => {}
    }
}
