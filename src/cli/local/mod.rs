//! `cashrank local`: the global PageRank of a local domain.

mod domain;
mod ranks;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::bail;
use cashrank::Limits;
use cashrank_base::rules::Follow;
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::PageId;
use cashrank_graph::rank::pagerank::PowerOptions;
use cashrank_ingest::load::Crawled;
use cashrank_steer::local::{LocalEstimator, LocalSearch, LocalSearchOptions, PageRequest, Policy};
use cashrank_steer::schedule::{Candidate, Taker};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;

use super::common::{
    self, Exit, MemoryArg, one_of, parsed, positive, print_json, report_skipped, say, store_unless,
    threads, words,
};
use super::inputs::RulesArgs;
use super::json::object;
use super::output::OutputTarget;
use super::remarks::report_remarks;
use super::values::{OrNone, formats, takers};
use domain::{CrawlSource, Domain};
use ranks::Findings;

/// Estimate how one site's pages rank in the whole web, and what to fetch for that.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank local --store ranks --domain host:www.example.org -n 500 > fetch.txt
  cashrank local --store ranks --domain domain:example.org --ranks ranks.tsv
  cashrank local crawl.jsonl --domain file:pages.txt -n 100 --select sc --json
  cashrank local --store ranks --domain host:a.org -n 200 --to heritrix-schedule -o job/action/next.schedule

If you crawl only one site, the ranks of its pages are wrong, since importance also flows in from outside. Fetch the \
pages listed, ingest them into the same store, and ask again. After a few rounds, with as many pages outside as the \
domain has or twice as many, most of the error is gone (Davis, Dhillon: Estimating the global PageRank of web \
communities, 2006; see formats/guide/local.md).

Without -n the domain's pages are printed with their estimated ranks:
  importance  the estimated PageRank in the whole web, scaled so that the domain's pages sum to 1
  outside     the part of it that comes over links from outside the domain
  certified   the part of it that comes from readers who start at a known page, over links read
  at_least    a lower bound on its PageRank, where the mean of all pages of the web is 1

With --impact the outside pages that lift the domain most are listed:
  impact       its PageRank among all pages fetched, times into_domain
  share        its part of the impact of all outside pages
  importance   its PageRank among all pages fetched
  into_domain  the part of its links that lead into the domain, by weight")]
pub struct LocalArgs {
    /// Files with a crawl of the domain, and of outside pages fetched so far, instead of a store.
    #[arg(value_name = "INPUT")]
    inputs: Vec<OsString>,
    /// A store that keeps links (`ingest --keep-links`) [default, without inputs: the environment variable
    /// CASHRANK_STORE].
    #[arg(long, value_name = "DIR", conflicts_with = "inputs")]
    store: Option<PathBuf>,
    /// The format of the inputs (see formats/). auto recognises it from the content [default: auto].
    #[arg(long, value_parser = formats())]
    format: Option<OrNone<Format>>,
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
    #[command(flatten)]
    list: ListArgs,
    /// Write the domain's pages to FILE (`-`: standard output) as TSV, best first, with importance, rank, outside,
    /// certified and at_least.
    #[arg(long, value_name = "FILE")]
    ranks: Option<PathBuf>,
    /// Write the outside pages that lift the domain most to FILE (`-`: standard output) as TSV, best first, with impact,
    /// share, importance and into_domain.
    #[arg(long, value_name = "FILE")]
    impact: Option<PathBuf>,
    /// The share of a page's importance that its links pass on.
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    damping: f64,
    /// Print one JSON object, for programs.
    #[arg(long, conflicts_with_all = ["ranks", "impact", "to", "output"])]
    json: bool,
    /// How much links of files count, as in `ingest --follow`.
    #[arg(long, value_name = "WEIGHTS", conflicts_with = "store", value_parser = parsed::<Follow>)]
    follow: Option<Follow>,
    #[command(flatten)]
    memory: MemoryArg,
    #[command(flatten)]
    rules: RulesArgs,
}

fn estimator(name: &str) -> Result<LocalEstimator, String> {
    Ok(match name {
        "extrapolated" => LocalEstimator::Extrapolated,
        _ => LocalEstimator::Plain,
    })
}

impl LocalArgs {
    pub fn run(mut self) -> anyhow::Result<Exit> {
        self.store = store_unless(&self.inputs, self.store.as_deref())?;
        let domain = Domain::new(&self.domain, self.memory.budget(1)?)?;
        self.search().check()?;
        self.check()?;
        let outputs = self.outputs()?;
        let list = self.list.open()?;
        list.must_spare(&self.inputs)?;
        let crawl = match &self.store {
            Some(store) => CrawlSource::Store(Box::new(Snapshot::latest(&RealDisk, store)?)),
            None => CrawlSource::Files(Box::new(self.crawled()?)),
        };
        let members = crawl.members(&domain)?;
        let search = (self.search().policy, self.n.unwrap_or(0));
        crawl.room(&members, search, self.memory.budget(1)?)?;
        let members = members.pages;
        let (known, failing) = crawl.known(&members)?;
        let rest = members.iter().filter(|&&page| !known.is_fetched(page));
        let unfetched = rest.count();
        let mut search = LocalSearch::new(known, self.search())?;
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
        let numbers: Vec<u32> = asked.iter().map(|asked| asked.page).collect();
        let next = candidates(&asked, crawl.names(&numbers)?);
        let mut found = Findings::of(&crawl, &search)?;
        found.unfetched = unfetched;
        found.is_all = members.len() as u64 == crawl.pages();
        if self.json {
            let (known, estimate) = (search.known(), &found.estimate);
            let next = next.iter().map(|page| {
                object! {
                    "url": &page.url,
                    "score": page.score,
                    "importance": page.importance,
                }
            });
            print_json(&object! {
                "domain_pages": known.domain(),
                "domain_pages_not_fetched": unfetched,
                "outside_pages": known.fetched() - known.domain() - known.found_gone(),
                "gone_pages": known.found_gone(),
                "failed_pages": known.failed(),
                "frontier_pages": search.matrix().frontier.len(),
                "leak": estimate.leak,
                "extrapolated": estimate.extrapolated,
                "next": next.collect::<Vec<_>>(),
                "impact": &found.lifts,
                "pages": &found.pages,
            })?;
            return self.exit(&crawl);
        }
        found.report();
        found.write(&outputs)?;
        if let Some(n) = self.n {
            report_few(n, next.len());
            list.put(|out| Ok(self.list.to().write(&next, out)?))?;
        } else if outputs.ranks.is_none() && outputs.impact.is_none() {
            found.write_ranks(&OutputTarget::Standard)?;
        }
        self.exit(&crawl)
    }

    fn outputs(&self) -> anyhow::Result<Outputs> {
        let open = |path: &PathBuf| -> anyhow::Result<OutputTarget> {
            let output = OutputTarget::open(Some(path), self.list.force)?;
            output.must_spare(&self.inputs)?;
            Ok(output)
        };
        let ranks = self.ranks.as_ref().map(open).transpose()?;
        let impact = self.impact.as_ref().map(open).transpose()?;
        let is_standard = |output: &Option<_>| *output == Some(OutputTarget::Standard);
        let (to_ranks, to_impact) = (is_standard(&ranks), is_standard(&impact));
        let lists = self.n.is_some() && !self.json && self.list.is_standard()?;
        if lists && to_ranks {
            bail!(
                "both the pages to fetch and the ranks would go to standard output: use -o FILE or --ranks FILE"
            );
        }
        if to_impact && (to_ranks || lists) {
            bail!("the impact and something else would go to standard output: use --impact FILE");
        }
        Ok(Outputs { ranks, impact })
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
        if self.store.is_some() {
            let format = self.format.map(|_| "--format");
            let follow = self.follow.as_ref().map(|_| "--follow");
            if let Some(option) = self.rules.given().or(format).or(follow) {
                bail!("{option} goes with inputs: a store's links were read by its own settings");
            }
        }
        let select = self.select.map(|_| "--select");
        let list = self.list.to.map(|_| "--to").or(select);
        if let Some(option) = list.or(self.list.output.as_ref().map(|_| "--output"))
            && self.n.is_none()
        {
            bail!("{option} is for the list of pages to fetch: add -n K");
        }
        let files = [&self.list.output, &self.ranks, &self.impact];
        if self.list.force && files.into_iter().all(Option::is_none) {
            bail!("--force is for files: name one with -o or --ranks");
        }
        Ok(())
    }

    fn crawled(&self) -> anyhow::Result<Crawled> {
        let limits = Limits {
            memory: self.memory.budget(threads(None) + 3)?,
            ..Limits::default()
        };
        let follow = self.follow.clone().unwrap_or_default();
        let mut crawled = Crawled::new(&self.rules.resolve(None)?, &follow, &limits)?;
        for input in &self.inputs {
            crawled.read(&InputName::parse(input), self.format.flatten())?;
        }
        report_remarks(&crawled.report);
        Ok(crawled)
    }

    fn exit(&self, crawl: &CrawlSource) -> anyhow::Result<Exit> {
        match crawl {
            CrawlSource::Files(crawled) if crawled.report.skipped > 0 => {
                report_skipped(crawled.report.skipped);
                Ok(Exit::Skipped)
            }
            _ => Ok(Exit::Done),
        }
    }
}

pub struct Outputs {
    ranks: Option<OutputTarget>,
    impact: Option<OutputTarget>,
}

/// Converts requested pages to candidates of a list. Their importance is what the known links pass to them.
fn candidates(asked: &[PageRequest], names: impl IntoIterator<Item = String>) -> Vec<Candidate> {
    let named = asked.iter().zip(names);
    let pages = named.map(|(asked, url)| Candidate {
        page: Some(PageId(asked.page.into())),
        url,
        score: asked.score,
        importance: asked.flow,
        ..Candidate::default()
    });
    pages.collect()
}

fn report_few(wanted: u64, named: usize) {
    if (named as u64) < wanted && named > 0 {
        let named = common::counted(named as u64, "page is", "pages are");
        say!("only {named} known and not fetched: all are listed");
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

/// Options for writing a list of pages.
#[derive(clap::Args)]
struct ListArgs {
    /// The format of the list, as of `next` [default: plain].
    #[arg(long, value_name = "FORMAT", value_parser = takers())]
    to: Option<Taker>,
    /// Write the list to FILE (`-`: standard output).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace files that exist.
    #[arg(long)]
    force: bool,
}

impl ListArgs {
    fn to(&self) -> Taker {
        self.to.unwrap_or(Taker::Plain)
    }

    /// Opens the list's target; refuses to replace a file without `--force`, or to write binary data to a terminal.
    fn open(&self) -> anyhow::Result<OutputTarget> {
        let output = OutputTarget::open(self.output.as_deref(), self.force)?;
        output.must_show(self.to().name(), self.to().is_text())?;
        Ok(output)
    }

    fn is_standard(&self) -> anyhow::Result<bool> {
        Ok(OutputTarget::of(self.output.as_deref())? == OutputTarget::Standard)
    }
}
