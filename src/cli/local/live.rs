//! `local --live`: lists pages round by round, and reads what a crawler delivers on standard input.

use std::collections::HashSet;
use std::path::Path;

use anyhow::bail;
use cashrank::{Error, Options, Writer};
use cashrank_crawl::source::InputName;
use cashrank_ingest::load::{Crawled, FetchOutcome};
use cashrank_steer::local::LocalSearch;
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::{RealDisk, settings_of};

use super::domain::{CrawlSource, Domain};
use super::ranks::Findings;
use super::{LocalArgs, Outputs, candidates, report_few};
use crate::cli::common::{self, Exit, counted, is_closed_pipe, say, thousands, threads};
use crate::cli::output::OutputTarget;

struct LiveSearch<'a> {
    args: &'a LocalArgs,
    search: LocalSearch,
    /// Listed pages that have not arrived yet.
    waiting: HashSet<u32>,
    rounds: u64,
    /// Number of the domain's pages that were fetched only during the search.
    late: usize,
}

impl LocalArgs {
    fn check_live(&self, outputs: &Outputs) -> anyhow::Result<()> {
        let mut inputs = self.inputs.iter();
        if inputs.any(|input| InputName::parse(input) == InputName::Stdin) {
            bail!("with --live, standard input is the crawler; name files with the crawl so far");
        }
        for (output, what) in [(&outputs.ranks, "ranks"), (&outputs.impact, "impact")] {
            if *output == Some(OutputTarget::Standard) {
                bail!(
                    "with --live, standard output is for the pages to fetch: write the {what} to a file (--{what} FILE)"
                );
            }
        }
        if self.ranks.is_none() && self.store.is_none() {
            bail!("--live without --store needs --ranks FILE: nothing else keeps the results");
        }
        if !self.list.to().is_text() && self.list.is_standard()? {
            bail!(
                "Parquet is written to a file: -o 'round-*.parquet', where * is the number of the round"
            );
        }
        // None of the rounds may replace a file without --force.
        (1..=self.rounds).try_for_each(|round| {
            let name = self.list.name(round);
            OutputTarget::open(name.as_deref(), self.list.force).map(drop)
        })
    }

    /// Lists pages round by round, and reads the crawler's records in between.
    pub fn live(&self, domain: &Domain, outputs: &Outputs) -> anyhow::Result<Exit> {
        self.check_live(outputs)?;
        let (crawl, mut writer, budget) = match &self.store {
            Some(store) => {
                let (snapshot, writer, budget) = self.open_store(store)?;
                (CrawlSource::Store(snapshot), Some(writer), budget)
            }
            None => {
                let crawl = CrawlSource::Files(Box::new(self.crawled()?));
                (crawl, None, self.memory.budget(1)?)
            }
        };
        let members = crawl.members(domain)?;
        let listed = (self.search().policy, self.n.unwrap_or(0));
        let need = crawl.room(&members, listed, budget)?;
        let (known, _) = crawl.known(&members.pages)?;
        let search = LocalSearch::new(known, self.search())?;
        let left = budget.map(|budget| budget.saturating_sub(need));
        let mut crawled = match (crawl, &writer) {
            (CrawlSource::Store(snapshot), Some(writer)) => {
                Crawled::of_store(&snapshot, writer, left)?
            }
            (CrawlSource::Files(mut crawled), _) => {
                crawled.limit_memory(left);
                *crawled
            }
            (CrawlSource::Store(_), None) => bail!("--live has no writer for its store"),
        };
        let mut live = LiveSearch {
            args: self,
            search,
            waiting: HashSet::new(),
            rounds: 0,
            late: 0,
        };
        if live.ask(&crawled)? {
            live.listen(&mut crawled, writer.as_mut(), domain)?;
        }
        live.end(crawled, writer, outputs)
    }

    /// Opens a store for writing. Returns its snapshot, its writer, and the memory that is left.
    fn open_store(&self, store: &Path) -> anyhow::Result<(Box<Snapshot>, Writer, Option<u64>)> {
        let Some(settings) = settings_of(&RealDisk, store)? else {
            bail!(Error::Missing(format!(
                "{}: not a cashrank store; `cashrank ingest` creates one",
                store.display()
            )));
        };
        let mut options = Options::of(store)?;
        options.input = self.rules.resolve(Some(&settings.input))?;
        let budget = self.memory.budget(threads(None))?;
        options.limits.memory = budget;
        let mut writer = Writer::open(store, &options).map_err(|error| {
            let busy = matches!(error, Error::Busy { .. });
            let error = anyhow::Error::from(error);
            if busy { error.context(
                "--live writes what the crawler finds into the store; while another process writes there, list \
                 pages without --live, and ingest them in that process",
            ) } else { error }
        })?;
        if !writer.is_published()? {
            writer.publish()?;
        }
        let snapshot = Snapshot::latest(&RealDisk, store)?;
        let ingest = snapshot.memory_to_resume().total();
        let left = budget.map(|budget| budget.saturating_sub(ingest));
        Ok((Box::new(snapshot), writer, left))
    }
}

impl LiveSearch<'_> {
    /// Lists the next round. Returns `false` if there is none, or if its reader went away.
    fn ask(&mut self, crawled: &Crawled) -> anyhow::Result<bool> {
        if self.rounds == self.args.rounds {
            return Ok(false);
        }
        self.rounds += 1;
        let count = usize::try_from(self.args.n.unwrap_or(1)).unwrap_or(usize::MAX);
        let asked = self.search.next(count);
        let names = asked.iter().map(|of| crawled.name(of.page).to_owned());
        let pages = candidates(&asked, names);
        match self.args.list.write_round(&pages, self.rounds) {
            Err(error) if is_closed_pipe(&error) => {
                say!("the crawler accepts no more pages: the search ends");
                return Ok(false);
            }
            written => written?,
        }
        say!(
            "round {} of {}: {} listed",
            self.rounds,
            self.args.rounds,
            common::pages(asked.len() as u64)
        );
        report_few(count as u64, asked.len());
        self.waiting.extend(asked.iter().map(|asked| asked.page));
        Ok(!asked.is_empty())
    }

    /// Reads standard input until the last round is complete, or the input ends.
    fn listen(
        &mut self,
        crawled: &mut Crawled,
        store: Option<&mut Writer>,
        domain: &Domain,
    ) -> anyhow::Result<()> {
        let mut failed = None;
        let format = self.args.format();
        crawled.deliver(
            &InputName::Stdin,
            format,
            store,
            &mut |crawled, store, page, fetch| {
                match fetch {
                    FetchOutcome::Read => {
                        let is_new = !self.search.known().is_fetched(page);
                        let is_local = is_new && domain.has(crawled.name(page).as_bytes());
                        self.late += usize::from(is_local);
                        let known = self.search.known_mut();
                        known.fetch_weighted(page, crawled.rows().get(page).iter())?;
                    }
                    FetchOutcome::Gone => self.search.known_mut().gone(page)?,
                    FetchOutcome::Failed => self.search.known_mut().lost(page)?,
                }
                if !self.waiting.remove(&page) || !self.waiting.is_empty() {
                    return Ok(true);
                }
                self.search.update();
                if let Some(store) = store {
                    store.checkpoint()?;
                }
                self.ask(crawled).or_else(|error| {
                    failed = Some(error);
                    Ok(false)
                })
            },
        )?;
        failed.map_or(Ok(()), Err)
    }

    fn end(
        mut self,
        crawled: Crawled,
        store: Option<Writer>,
        outputs: &Outputs,
    ) -> anyhow::Result<Exit> {
        self.search.update();
        if !self.waiting.is_empty() {
            let count = thousands(self.waiting.len() as u64);
            say!("standard input ended before {count} of the listed pages arrived");
        }
        if let Some(mut store) = store {
            store.publish()?;
        }
        let crawl = CrawlSource::Files(Box::new(crawled));
        let found = Findings::of(&crawl, &self.search)?;
        found.report();
        if self.late > 0 {
            say!(
                "{} of the domain fetched only now, and treated as outside: run `cashrank local` over the whole crawl \
                 to rank them, too",
                counted(self.late as u64, "page was", "pages were")
            );
        }
        found.write(outputs)?;
        self.args.exit(&crawl)
    }
}
