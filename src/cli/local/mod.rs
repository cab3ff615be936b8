//! `cashrank local`: the global PageRank of a local domain.

mod domain;
mod ranks;

use std::path::PathBuf;

use anyhow::bail;
use cashrank_graph::engine::PageId;
use cashrank_graph::rank::pagerank::PowerOptions;
use cashrank_steer::local::{LocalEstimator, LocalSearch, LocalSearchOptions, PageRequest, Policy};
use cashrank_steer::schedule::{Candidate, Taker};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;

use super::common::{self, Exit, MemoryArg, STORE, one_of, positive, print_json, say, words};
use super::json::object;
use super::output::OutputTarget;
use super::values::takers;
use domain::{Domain, check_memory, known};
use ranks::{Findings, names};

/// Estimate how one site's pages rank in the whole web, and what to fetch for that.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank local --store ranks --domain host:www.example.org -n 500 > fetch.txt
  cashrank local --store ranks --domain domain:example.org --ranks ranks.tsv
  cashrank local --store ranks --domain file:pages.txt -n 100 --select sc --json
  cashrank local --store ranks --domain host:a.org -n 200 --to heritrix-schedule -o job/action/next.schedule

If you crawl only one site, the ranks of its pages are wrong, since importance also flows in from outside. Fetch the \
pages listed, ingest them into the same store, and ask again. After a few rounds, with as many pages outside as the \
domain has or twice as many, most of the error is gone (Davis, Dhillon: Estimating the global PageRank of web \
communities, 2006; see formats/guide/local.md).

Without -n the domain's pages are printed with their estimated ranks:
  importance  the estimated PageRank in the whole web, scaled so that the domain's pages sum to 1
  outside     the part of it that comes over links from outside the domain
  certified   the part of it that comes from readers who start at a known page, over links read
  at_least    a lower bound on its PageRank, where the mean of all pages of the web is 1")]
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
    /// share: by the PageRank that flows into them from the domain and from pages that link into it; sc: by Stochastic
    /// Complementation, the paper's own (a score is then the page's influence, its equation 7); pf: by PageRank flow; outlink: by
    /// links from the domain; random.
    #[arg(long, value_name = "WHICH", value_parser = words::<Policy>(Policy::ALL.map(|of| (of.name(), ""))))]
    select: Option<Policy>,
    /// How to estimate ranks in the whole web.
    ///
    /// extrapolated: to where all pages outside would be fetched; sc (also plain): as in the paper, whose method is
    /// `--select sc --estimate sc`, Stochastic Complementation.
    #[arg(long, value_name = "HOW", default_value = "extrapolated", value_parser = one_of([("extrapolated", ""), ("sc", ""), ("plain", "")], estimator))]
    estimate: LocalEstimator,
    /// The format of the list, as of `next` [default: plain].
    #[arg(long, value_name = "FORMAT", value_parser = takers())]
    to: Option<Taker>,
    /// Write the list to FILE (`-`: standard output).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace files that exist.
    #[arg(long)]
    force: bool,
    /// Write the domain's pages to FILE (`-`: standard output) as TSV, best first, with importance, rank, outside,
    /// certified and at_least.
    #[arg(long, value_name = "FILE")]
    ranks: Option<PathBuf>,
    /// The share of a page's importance that its links pass on.
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    damping: f64,
    /// Print one JSON object, for programs.
    #[arg(long, conflicts_with_all = ["ranks", "to", "output"])]
    json: bool,
    #[command(flatten)]
    memory: MemoryArg,
}

fn estimator(name: &str) -> Result<LocalEstimator, String> {
    Ok(match name {
        "extrapolated" => LocalEstimator::Extrapolated,
        _ => LocalEstimator::Plain,
    })
}

impl LocalArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let domain = Domain::new(&self.domain, self.memory.budget(1)?)?;
        self.search().check()?;
        self.check()?;
        let ranks = self.ranks()?;
        let list = OutputTarget::open(self.output.as_deref(), self.force)?;
        let to = self.to.unwrap_or(Taker::Plain);
        list.must_show(to.name(), to.is_text())?;
        let snapshot = Snapshot::latest(&RealDisk, &self.store)?;
        let members = domain.pages(&snapshot)?;
        let listed = (self.search().policy, self.n.unwrap_or(0));
        check_memory(&snapshot, &members, listed, self.memory.budget(1)?)?;
        let (graph, failing) = known(&snapshot, &members.pages)?;
        let mut search = LocalSearch::new(graph, self.search())?;
        let asked = match self.n {
            Some(n) => search.next(usize::try_from(n).unwrap_or(usize::MAX)),
            None => Vec::new(),
        };
        // For the ranks, pages whose fetch failed have no links, though the list may contain them again.
        if !failing.is_empty() {
            let mut known = search.into_known();
            failing.into_iter().try_for_each(|page| known.lost(page))?;
            search = LocalSearch::new(known, self.search())?;
        }
        let next = candidates(&snapshot, &asked)?;
        let found = Findings::of(&snapshot, &search, &members.pages)?;
        if self.json {
            let (known, estimate) = (search.known(), &found.estimate);
            let next = next.iter().map(|page| {
                object! {
                    "url": &page.url,
                    "score": page.score,
                    "importance": page.importance,
                }
            });
            return print_json(&object! {
                "domain_pages": known.domain(),
                "domain_pages_not_fetched": found.unfetched,
                "outside_pages": known.fetched() - known.domain() - known.found_gone(),
                "gone_pages": known.found_gone(),
                "failed_pages": known.failed(),
                "frontier_pages": search.matrix().frontier.len(),
                "leak": estimate.leak,
                "extrapolated": estimate.extrapolated,
                "next": next.collect::<Vec<_>>(),
                "pages": &found.pages,
            });
        }
        found.report();
        if let Some(ranks) = &ranks {
            found.write_ranks(ranks)?;
        }
        if let Some(n) = self.n {
            let count = next.len() as u64;
            if count < n && count > 0 {
                let count = common::counted(count, "page is", "pages are");
                say!("only {count} known and not fetched: all are listed");
            }
            list.put(|out| Ok(to.write(&next, out)?))?;
        } else if ranks.is_none() {
            found.write_ranks(&OutputTarget::Standard)?;
        }
        Ok(Exit::Done)
    }

    /// Opens the file of ranks if it is named.
    fn ranks(&self) -> anyhow::Result<Option<OutputTarget>> {
        let Some(path) = &self.ranks else {
            return Ok(None);
        };
        let ranks = OutputTarget::open(Some(path), self.force)?;
        let list = OutputTarget::of(self.output.as_deref())?;
        if self.n.is_some() && ranks == OutputTarget::Standard && list == ranks {
            bail!(
                "both the pages to fetch and the ranks would go to standard output: use -o FILE or --ranks FILE"
            );
        }
        Ok(Some(ranks))
    }

    fn search(&self) -> LocalSearchOptions {
        LocalSearchOptions {
            policy: self.select.unwrap_or(Policy::Share),
            estimator: self.estimate,
            power: PowerOptions {
                damping: self.damping,
                ..LocalSearchOptions::default().power
            },
            seed: 1,
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        let select = self.select.map(|_| "--select");
        let list = self.to.map(|_| "--to").or(select);
        if let Some(option) = list.or(self.output.as_ref().map(|_| "--output"))
            && self.n.is_none()
        {
            bail!("{option} is for the list of pages to fetch: add -n K");
        }
        if self.force && self.output.is_none() && self.ranks.is_none() {
            bail!("--force is for files: name one with -o or --ranks");
        }
        Ok(())
    }
}

/// Converts requested pages to candidates of a list. Their importance is what the known links pass to them.
fn candidates(snapshot: &Snapshot, asked: &[PageRequest]) -> cashrank::Result<Vec<Candidate>> {
    let names = names(snapshot, asked.iter().map(|asked| asked.page))?;
    let pages = asked.iter().zip(names).map(|(asked, url)| Candidate {
        page: Some(PageId(asked.page.into())),
        url,
        score: asked.score,
        importance: asked.flow,
        ..Candidate::default()
    });
    Ok(pages.collect())
}

fn pages(text: &str) -> Result<u64, String> {
    match positive(text) {
        Err(_) if text.parse() == Ok(0) => {
            Err("\"0\": to get only the ranks of the crawl so far, leave out -n".into())
        }
        read => read,
    }
}
