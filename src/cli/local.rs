//! `cashrank local`: the global PageRank of a local domain.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, bail};
use cashrank::engine::PageId;
use cashrank::local::{Asked, Estimate, Estimator, Known, Options, Policy, Power, Search};
use cashrank::rows::Rows;
use cashrank::rules::Scope;
use cashrank::sim::crawled::{Crawled, Fetch};
use cashrank::snapshot::Snapshot;
use cashrank::source::InputName;
use cashrank::store::RealDisk;
use cashrank::{Error, Limits};

use super::common::{
    self, Exit, MemoryArg, canonical, one_of, parsed, positive, print, print_json, say,
    store_unless,
};
use super::ingest::{FormatArg, formats};
use super::output::Output;
use super::rules::RulesArgs;

/// Estimate how one site's pages rank in the whole web, and list the pages outside to fetch for that.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank local --store ranks --domain host:www.example.org -n 500 > fetch.txt
  cashrank local --store ranks --domain domain:example.org --ranks ranks.tsv
  cashrank local crawl.jsonl --domain file:pages.txt -n 100 --select sc --json
  crawler | cashrank local crawl.jsonl --live --domain host:a.org -n 200 --ranks ranks.tsv

If you crawl only one site, the ranks of its pages are wrong, since importance also flows in from outside. Fetch the \
pages listed, ingest them into the same store, and ask again. After a few rounds, with as many pages outside as the \
domain has or twice as many, most of the error is gone (Davis, Dhillon: Estimating the global PageRank of web \
communities, 2006; see formats/guide/local.md).

Without -n the domain's pages are printed with their estimated ranks:
  importance  estimated PageRank in the whole web, scaled so that the domain's pages sum to 1
  outside     the part of it that comes over links from outside the domain
  certified   the part of it that is certain, whatever the pages not fetched are like")]
pub struct Args {
    /// Files with a crawl of the domain, and of pages outside so far, instead of a store.
    #[arg(value_name = "INPUT")]
    inputs: Vec<OsString>,
    /// A store that keeps links (`ingest --keep-rows`) [default, without inputs: the environment variable
    /// CASHRANK_STORE].
    #[arg(long, value_name = "DIR", conflicts_with = "inputs")]
    store: Option<PathBuf>,
    /// The format of the inputs (see formats/). auto recognises it from the content.
    #[arg(long, default_value = "auto", conflicts_with = "store", value_parser = formats())]
    format: FormatArg,
    /// The domain: host:NAME, domain:NAME or url:PATTERN, where * matches anything (with `!` in front: all but these),
    /// or file:PATH, a list of URLs. May be repeated.
    #[arg(long, value_name = "PAGES", required = true)]
    domain: Vec<String>,
    /// List K pages outside, best first.
    #[arg(short, long, value_name = "K", value_parser = positive)]
    n: Option<u64>,
    /// Which pages outside to list: share, by the PageRank that flows into them from the domain and from pages that
    /// link into it; sc, by stochastic complementation; pf, by PageRank flow; outlink, by links from the domain; or
    /// random.
    #[arg(long, value_name = "WHICH", default_value = "share", value_parser = one_of(["share", "sc", "pf", "outlink", "random"], parsed::<Policy>))]
    select: Policy,
    /// How to estimate global ranks: extrapolated, to where all pages outside would be fetched, or plain, as in the
    /// paper.
    #[arg(long, value_name = "HOW", default_value = "extrapolated", value_parser = one_of(["extrapolated", "plain"], estimator))]
    estimate: Estimator,
    /// Write the domain's pages to FILE (`-`: standard output) as TSV, best first, with importance, rank, outside and
    /// certified.
    #[arg(long, value_name = "FILE")]
    ranks: Option<PathBuf>,
    /// Replace that file if it exists.
    #[arg(long, requires = "ranks")]
    force: bool,
    /// Work with a crawler: write the pages to fetch to standard output, with an empty line after each round, and read
    /// its records from standard input. The next round follows when all pages of the last one came or failed.
    #[arg(long, requires = "n", requires = "inputs", conflicts_with = "json")]
    live: bool,
    /// With --live: how many rounds.
    #[arg(long, value_name = "T", default_value_t = 10, value_parser = positive, requires = "live")]
    rounds: u64,
    /// Share of a page's importance that its links pass on.
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    damping: f64,
    /// Stop the power method when a step moves the ranking by less than this, in L1.
    #[arg(long, value_name = "L1", default_value_t = 1e-6)]
    threshold: f64,
    /// The random seed of --select random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object, for programs.
    #[arg(long, conflicts_with = "ranks")]
    json: bool,
    #[command(flatten)]
    memory: MemoryArg,
    #[command(flatten)]
    rules: RulesArgs,
}

fn estimator(text: &str) -> Result<Estimator, String> {
    match text {
        "extrapolated" => Ok(Estimator::Extrapolated),
        "plain" => Ok(Estimator::Plain),
        _ => Err(format!("{text:?}: extrapolated or plain")),
    }
}

/// Who is local.
struct Domain {
    scope: Scope,
    listed: HashSet<Vec<u8>>,
}

impl Domain {
    fn new(rules: &[String]) -> anyhow::Result<Domain> {
        let mut domain = Domain {
            scope: Scope::default(),
            listed: HashSet::new(),
        };
        for rule in rules {
            match rule.strip_prefix("file:") {
                None => domain.scope.add(rule.parse()?),
                Some(path) => {
                    let text = std::fs::read_to_string(path)
                        .with_context(|| format!("--domain {rule}: cannot be read"))?;
                    let urls = text.lines().map(str::trim).filter(|line| !line.is_empty());
                    for url in urls {
                        domain.listed.insert(canonical(url));
                        domain.listed.insert(url.as_bytes().to_vec());
                    }
                    if domain.listed.is_empty() {
                        bail!("--domain {rule}: the file names no page");
                    }
                }
            }
        }
        Ok(domain)
    }

    /// Pages of the list, or of the rules if there are any.
    fn has(&self, name: &[u8]) -> bool {
        let ruled = !self.scope.is_all() && self.scope.has(name);
        ruled || self.listed.contains(name)
    }
}

/// Where the rows and names come from.
enum Crawl {
    Store(Box<Snapshot>),
    Files(Box<Crawled>),
}

impl Crawl {
    /// The numbers of the domain's pages, ascending.
    fn members(&self, domain: &Domain) -> anyhow::Result<Vec<u32>> {
        let mut members = Vec::new();
        match self {
            Crawl::Store(snapshot) => {
                for (page, name) in (0u32..).zip(snapshot.names()) {
                    if domain.has(name?.as_bytes()) {
                        members.push(page);
                    }
                }
            }
            Crawl::Files(crawled) => {
                let named = (0u32..).zip(crawled.names());
                let local = named.filter(|(_, name)| domain.has(name.as_bytes()));
                members.extend(local.map(|(page, _)| page));
            }
        }
        Ok(members)
    }

    fn known(&self, members: &[u32]) -> Result<Known, Error> {
        match self {
            Crawl::Store(snapshot) => {
                let rows = snapshot.rows()?;
                Known::of_rows(&rows as &dyn Rows, members, true)
            }
            Crawl::Files(crawled) => Known::of_rows(&**crawled, members, true),
        }
    }

    fn names(&self, pages: &[u32]) -> Result<Vec<String>, Error> {
        match self {
            Crawl::Store(snapshot) => {
                let pages: Vec<PageId> = pages.iter().map(|&p| PageId(u64::from(p))).collect();
                snapshot.names_of(&pages)
            }
            Crawl::Files(crawled) => {
                Ok(pages.iter().map(|&p| crawled.name(p).to_owned()).collect())
            }
        }
    }
}

/// A page of the domain, with its estimate.
#[derive(serde::Serialize)]
struct Local {
    url: String,
    importance: f64,
    rank: u64,
    outside: f64,
    certified: f64,
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        let ranks = self.ranks.as_deref();
        let ranks = ranks.map(|path| Output::open(Some(path), self.force));
        let ranks = ranks.transpose()?;
        let domain = Domain::new(&self.domain)?;
        let options = self.options();
        options.check()?;
        let crawl = self.crawl()?;
        let members = crawl.members(&domain)?;
        let known = crawl.known(&members)?;
        let unfetched = members.len() - known.domain();
        let mut search = Search::new(known, options)?;
        if self.live {
            return self.live(crawl, search, ranks.as_ref());
        }
        let asked = match self.n {
            Some(n) => search.next(usize::try_from(n).unwrap_or(usize::MAX)),
            None => Vec::new(),
        };
        let estimate = search.estimate();
        let pages = locals(&crawl, &search, &estimate)?;
        if self.json {
            return self.object(&crawl, &search, &estimate, unfetched, &asked, &pages);
        }
        tell(&search, &estimate, unfetched);
        if let Some(ranks) = &ranks {
            write_ranks(ranks, &pages)?;
        }
        match self.n {
            None if ranks.is_none() => write_ranks(&Output::Standard, &pages)?,
            None => {}
            Some(n) => {
                tell_few(n, asked.len());
                self.name(&crawl, &asked)?;
            }
        }
        self.exit(&crawl)
    }

    fn options(&self) -> Options {
        Options {
            policy: self.select,
            estimator: self.estimate,
            power: Power {
                damping: self.damping,
                threshold: self.threshold,
            },
            seed: self.seed,
        }
    }

    fn crawl(&self) -> anyhow::Result<Crawl> {
        if let Some(store) = store_unless(&self.inputs, self.store.as_deref())? {
            return Ok(Crawl::Store(Box::new(Snapshot::latest(&RealDisk, &store)?)));
        }
        let limits = Limits {
            memory: self.memory.budget(),
            ..Limits::default()
        };
        let mut crawled = Crawled::new(&self.rules.resolve(None)?, &limits)?;
        for input in &self.inputs {
            let input = InputName::parse(input);
            if self.live && input == InputName::Stdin {
                bail!(
                    "with --live, standard input is the crawler; name files with what was crawled before"
                );
            }
            crawled.read(&input, self.format.0)?;
        }
        Ok(Crawl::Files(Box::new(crawled)))
    }

    /// The pages asked for, one a line.
    fn name(&self, crawl: &Crawl, asked: &[Asked]) -> anyhow::Result<()> {
        let pages: Vec<u32> = asked.iter().map(|asked| asked.page).collect();
        let names = crawl.names(&pages)?;
        print(|out| {
            names.iter().try_for_each(|name| writeln!(out, "{name}"))?;
            Ok(())
        })?;
        Ok(())
    }

    fn object(
        &self,
        crawl: &Crawl,
        search: &Search,
        estimate: &Estimate,
        unfetched: usize,
        asked: &[Asked],
        pages: &[Local],
    ) -> anyhow::Result<Exit> {
        let known = search.known();
        let numbers: Vec<u32> = asked.iter().map(|asked| asked.page).collect();
        let names = crawl.names(&numbers)?;
        let next = names.iter().zip(asked);
        let next = next.map(|(url, asked)| serde_json::json!({"url": url, "score": asked.score}));
        print_json(&serde_json::json!({
            "domain_pages": known.domain(),
            "domain_pages_not_fetched": unfetched,
            "outside_pages": known.fetched() - known.domain(),
            "frontier_pages": search.matrix().frontier.len(),
            "leak": estimate.leak,
            "extrapolated": estimate.extrapolated,
            "next": next.collect::<Vec<_>>(),
            "pages": pages,
        }))?;
        self.exit(crawl)
    }

    /// Names pages round by round, and reads what the crawler found.
    fn live(
        &self,
        crawl: Crawl,
        mut search: Search,
        ranks: Option<&Output>,
    ) -> anyhow::Result<Exit> {
        let Crawl::Files(mut crawled) = crawl else {
            bail!("--live works with files, not with a store");
        };
        let count = usize::try_from(self.n.unwrap_or(1)).unwrap_or(usize::MAX);
        let mut waiting = HashSet::new();
        let mut rounds = 0;
        let mut ask = |crawled: &Crawled, search: &mut Search, waiting: &mut HashSet<u32>| {
            if rounds == self.rounds {
                return Ok(false);
            }
            rounds += 1;
            let asked = search.next(count);
            let done = print(|out| {
                for asked in &asked {
                    writeln!(out, "{}", crawled.name(asked.page))?;
                }
                Ok(writeln!(out)?)
            });
            waiting.extend(asked.iter().map(|asked| asked.page));
            done.map(|_| !asked.is_empty())
        };
        if ask(&crawled, &mut search, &mut waiting)? {
            let mut failed = None;
            crawled.deliver(
                &InputName::Stdin,
                self.format.0,
                &mut |crawled, page, fetch| {
                    match fetch {
                        Fetch::Read => {
                            search.fetched(page, crawled.targets(page).iter().copied())?;
                        }
                        Fetch::Gone | Fetch::Failed => search.lost(page)?,
                    }
                    if !waiting.remove(&page) || !waiting.is_empty() {
                        return Ok(true);
                    }
                    search.update();
                    ask(crawled, &mut search, &mut waiting).or_else(|error| {
                        failed = Some(error);
                        Ok(false)
                    })
                },
            )?;
            if let Some(error) = failed {
                return Err(error);
            }
        }
        search.update();
        if !waiting.is_empty() {
            let count = common::thousands(waiting.len() as u64);
            say!("standard input ended before {count} of the listed pages came");
        }
        let crawl = Crawl::Files(crawled);
        let estimate = search.estimate();
        tell(&search, &estimate, 0);
        let pages = locals(&crawl, &search, &estimate)?;
        if let Some(ranks) = ranks {
            write_ranks(ranks, &pages)?;
        }
        self.exit(&crawl)
    }

    fn exit(&self, crawl: &Crawl) -> anyhow::Result<Exit> {
        match crawl {
            Crawl::Files(crawled) if crawled.skipped() > 0 => {
                let count = common::thousands(crawled.skipped());
                say!("{count} records were skipped");
                Ok(Exit::Skipped)
            }
            _ => Ok(Exit::Done),
        }
    }
}

/// The domain's pages, best first.
fn locals(crawl: &Crawl, search: &Search, estimate: &Estimate) -> anyhow::Result<Vec<Local>> {
    let known = search.known();
    let numbers: Vec<u32> = (0..known.domain())
        .map(|member| known.page(member))
        .collect();
    let names = crawl.names(&numbers)?;
    let pages = names.into_iter().enumerate().map(|(member, url)| Local {
        url,
        importance: estimate.ranks[member],
        rank: 0,
        outside: estimate.outside[member],
        certified: estimate.certified[member],
    });
    let mut pages: Vec<Local> = pages.collect();
    pages.sort_by(|a, b| {
        let order = b.importance.total_cmp(&a.importance);
        order.then_with(|| a.url.cmp(&b.url))
    });
    // 1 and the pages of strictly greater importance.
    for at in 0..pages.len() {
        let alike = at > 0 && pages[at - 1].importance == pages[at].importance;
        pages[at].rank = if alike {
            pages[at - 1].rank
        } else {
            at as u64 + 1
        };
    }
    Ok(pages)
}

fn write_ranks(ranks: &Output, pages: &[Local]) -> anyhow::Result<()> {
    ranks.put(|out| {
        writeln!(out, "url\timportance\trank\toutside\tcertified")?;
        for page in pages {
            writeln!(
                out,
                "{}\t{:e}\t{}\t{:.4}\t{:.4}",
                page.url, page.importance, page.rank, page.outside, page.certified
            )?;
        }
        Ok(())
    })
}

/// Says what the estimate stands on.
fn tell(search: &Search, estimate: &Estimate, unfetched: usize) {
    let known = search.known();
    let thousands = |count: usize| common::thousands(count as u64);
    let beyond = known.fetched() - known.domain();
    let frontier = search.matrix().frontier.len();
    say!(
        "{} pages in the domain, {} fetched outside, {} known and not fetched",
        thousands(known.domain()),
        thousands(beyond),
        thousands(frontier)
    );
    if unfetched > 0 {
        say!(
            "{} pages of the domain were not fetched and have no estimate: they are among those to fetch",
            thousands(unfetched)
        );
    }
    let weighted = |parts: &[f64]| -> f64 {
        let both = parts.iter().zip(&estimate.ranks);
        100.0 * both.map(|(part, rank)| part * rank).sum::<f64>()
    };
    say!(
        "importance of the domain: {:.1} % from links outside, {:.1} % certain; {:.1} % of all flows to pages not fetched",
        weighted(&estimate.outside),
        weighted(&estimate.certified),
        100.0 * estimate.leak
    );
    match (frontier, beyond) {
        (0, 0) => say!(
            "no link leads out of the domain: there is nothing to fetch, and the ranks are those of the domain \
            alone"
        ),
        (0, _) => say!(
            "all pages that can be reached were fetched: the ranks are those in the whole crawl"
        ),
        _ => {}
    }
}

fn tell_few(wanted: u64, named: usize) {
    if (named as u64) < wanted && named > 0 {
        let named = common::thousands(named as u64);
        say!("only {named} pages outside are known and not fetched: all are listed");
    }
}
