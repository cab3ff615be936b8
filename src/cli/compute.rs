//! `cashrank compute`: rankings of pages or sites by any measure.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use cashrank_base::model::Fetches;
use cashrank_graph::engine::{Page, PageId, ranks};
use cashrank_graph::rank::chosen::ChosenList;
use cashrank_graph::rank::computing::{Computing, MeasureResult, NamesVisit};
use cashrank_graph::rank::measures::{Uses, measure};
use cashrank_graph::sites::{Level, SiteTotal, Sites};
use cashrank_ingest::load::LoadedGraph;
use cashrank_store::snapshot::export::{Format, NumberColumn, Setup, export};
use cashrank_store::snapshot::{ComputedInfo, Watcher, publish_computed};
use cashrank_store::store::{RealDisk, View, open_view_to_publish};

use super::common::{
    Exit, MemoryArg, bound, lines, links, positive, print_json, report_lines, say, stop_on_signal,
    store_unless, threads,
};
use super::export::{scratch, tables};
use super::inputs::LoadArgs;
use super::levels::{SiteGraphArgs, accuracy_of_measure, counted_of, levels, measures, sureness};
use super::output::{OutputTarget, SummedOutputArgs};
use super::reporter::with_progress;
use super::summary::{report_loaded, withheld};

/// Rank pages or sites by a measure of importance, of a store or of files.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank compute --measure harmonic --level host --store ranks
  cashrank top --measure harmonic --level host --store ranks
  cashrank compute --measure personalised --teleport topic.txt --store ranks
  cashrank compute graph.tsv --until 1e-9 -o exact.tsv

With a store, the ranking of its kept links is published beside the current snapshot: `top`, `rank` and `export` show it with \
the same --measure and --level. The store is locked meanwhile. Of inputs, the links are held in memory, and the result is \
written as a table. The guide's chapter on measures says what each measure is good for.")]
pub struct ComputeArgs {
    /// Files, or `-` for standard input; none: a store.
    #[arg(value_name = "INPUT")]
    inputs: Vec<OsString>,
    /// Use the links that this store keeps, and publish the ranking in it [default, without inputs: the environment
    /// variable CASHRANK_STORE].
    #[arg(long, value_name = "DIR", conflicts_with_all = ["inputs", "follow", "output"])]
    store: Option<PathBuf>,
    /// The measure of importance.
    #[arg(long, value_name = "MEASURE", default_value = "pagerank", value_parser = measures())]
    measure: String,
    /// Rank pages, or sites.
    #[arg(long, value_name = "LEVEL", default_value = "page", value_parser = levels())]
    level: Level,
    /// For personalised: the pages at which readers begin.
    ///
    /// Each line of FILE is a URL, or a rule as of `ingest --scope`; a weight, a whole number, may follow after a tab, and a
    /// comment after ` #`. The first line that names a page counts; a site has the largest weight of its pages.
    #[arg(long, value_name = "FILE")]
    teleport: Option<PathBuf>,
    /// The share of importance that links pass on, 0 or more and less than 1 [default: that of the store, or 0.85].
    #[arg(long, value_name = "D")]
    damping: Option<f64>,
    /// How near to come to the exact scores, which sum to 1 [default: 1e-6].
    ///
    /// Proven for pagerank and personalised; hits ends when another step would change scores by no more in all.
    #[arg(long, value_name = "EPS", value_parser = bound)]
    until: Option<f64>,
    #[command(flatten)]
    sites: SiteGraphArgs,
    /// Use at most N threads [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = positive)]
    threads: Option<u64>,
    /// Of inputs: the format to write, of a table [default: tsv].
    #[arg(long, value_name = "FORMAT", value_parser = tables())]
    to: Option<Format>,
    #[command(flatten)]
    output: SummedOutputArgs,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print only problems.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    load: LoadArgs,
}

impl ComputeArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        self.check()?;
        match store_unless(&self.inputs, self.store.as_deref())? {
            Some(store) => self.of_store(&store),
            None => self.of_inputs(),
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        let measure = measure(&self.measure)?;
        for (is_given, uses, option) in [
            (self.damping.is_some(), Uses::Damping, "--damping"),
            (self.until.is_some(), Uses::Until, "--until"),
        ] {
            anyhow::ensure!(
                !is_given || measure.has(uses),
                "{option}: {} has no such parameter; leave it out",
                measure.name
            );
        }
        anyhow::ensure!(
            !self.level.is_page() || self.sites.is_usual(),
            "--site-links is for the links of sites: add --level"
        );
        Ok(())
    }

    fn to(&self) -> Format {
        self.to.unwrap_or(Format::Tsv)
    }

    fn computing(&self, damping: f64) -> anyhow::Result<Computing> {
        let mut computing = Computing::new(measure(&self.measure)?, self.level);
        computing.site_links = self.sites.site_links;
        let options = &mut computing.options;
        options.damping = self.damping.unwrap_or(damping);
        options.until = self.until.unwrap_or(options.until);
        options.threads = threads(self.threads);
        options.memory = self.memory.budget();
        if let Some(file) = &self.teleport {
            let list = std::slice::from_ref(file);
            let chosen = ChosenList::read(lines(list), options.memory)?;
            options.memory = left_after(options.memory, &chosen);
            computing.chosen = Some(Arc::new(chosen));
        }
        computing.check()?;
        Ok(computing)
    }

    fn of_store(&self, store: &Path) -> anyhow::Result<Exit> {
        anyhow::ensure!(
            self.output.is_standard(),
            "-o and --force go with inputs; `cashrank export --measure {} --level {}` writes what `compute` published in a store",
            self.measure,
            self.level
        );
        let unused = self.load.given().or(self.to.map(|_| "--to"));
        if let Some(option) = unused {
            anyhow::bail!(
                "{option} goes with inputs: a store's links were read by its own settings"
            );
        }
        let view = open_to_publish(store)?;
        let computing = self.computing(view.identity.settings.config.damping_asked())?;
        let watcher = Arc::new(Watcher::new(stop_on_signal()?));
        let started = Instant::now();
        let publish = || publish_computed(&RealDisk, &view, &computing, &watcher);
        let published = if self.quiet && !self.output.json {
            publish()?
        } else {
            with_progress(&watcher, publish)?
        };
        let seconds = started.elapsed().as_secs_f64();
        let Some((path, info)) = published else {
            say!("stopped: nothing was published; run the command again to start over");
            return Ok(Exit::Stopped);
        };
        report_lines("--teleport", info.skipped);
        if self.output.json {
            let mut summary = serde_json::to_value(&info)?;
            summary["ranking"] = path.display().to_string().into();
            summary["seconds"] = seconds.into();
            return print_json(&summary);
        }
        if let Some(until) = info.parameters.until {
            report_unreached(info.reached, until);
        }
        if self.quiet {
            return Ok(Exit::Done);
        }
        report(&info, &path, seconds);
        Ok(Exit::Done)
    }

    fn of_inputs(&self) -> anyhow::Result<Exit> {
        let output = self.output.open()?;
        output.must_spare(&self.inputs)?;
        output.must_spare(&self.teleport)?;
        output.must_show(self.to().name(), self.to().is_text())?;
        let computing = self.computing(0.85)?;
        let budget = self.memory.budget();
        let room = match &computing.chosen {
            Some(chosen) => left_after(budget, chosen),
            None => budget,
        };
        let loaded = self.load.load(&self.inputs, room)?;
        let names: &NamesVisit<'_> = &|visit| {
            let mut pages = loaded.pages.iter();
            pages.try_for_each(|page| visit(page.name.as_bytes()))
        };
        let folder = std::env::temp_dir();
        let computed = computing.compute(&loaded.graph, (names, 0), &folder, &mut ())?;
        let computed = computed.context("nothing was ranked")?;
        self.write(&output, &loaded, &computed)?;
        report_lines("--teleport", computed.skipped);
        if self.output.json {
            print_json(&serde_json::json!({
                "measure": self.measure,
                "level": self.level,
                "count": computed.measured.scores.len(),
                "links": computed.links,
                "parameters": computed.parameters,
                "accuracy": computed.measured.accuracy,
                "reached": computed.measured.reached,
                "sweeps": computed.measured.sweeps,
                "skipped": loaded.report.skipped,
                "ungrouped": loaded.report.ungrouped,
            }))?;
        } else {
            let measured = &computed.measured;
            if !self.quiet {
                say!(
                    "{}, {}; {}: {}",
                    counted_of(self.level, measured.scores.len() as u64),
                    links(computed.links),
                    self.measure,
                    accuracy_of_measure(measured.accuracy)
                );
            }
            report_unreached(measured.reached, computing.options.until);
        }
        Ok(report_loaded(&loaded.report))
    }

    fn write(
        &self,
        output: &OutputTarget,
        loaded: &LoadedGraph,
        computed: &MeasureResult,
    ) -> anyhow::Result<()> {
        let scores = &computed.measured.scores;
        let setup = Setup {
            level: self.level,
            score: NumberColumn::of_measure(Some(&self.measure)),
            pages: scores.len() as u64,
            folder: Some(scratch(output)),
            ..Setup::default()
        };
        let scored = scores.iter().zip(ranks(scores)).enumerate();
        let scored = scored.map(|(at, (&importance, rank))| Page {
            page: PageId(at as u64),
            importance,
            rank,
            ..Page::default()
        });
        output.put(|out| {
            let path = self.output.file.name();
            match &computed.sites {
                None => {
                    let rows = scored.zip(&loaded.pages).map(|(scored, page)| {
                        Ok(Page {
                            url: Cow::Borrowed(&page.name),
                            visits: page.visits,
                            last_fetch: page.last_fetch,
                            ..scored
                        })
                    });
                    export(self.to(), &setup, out, path, rows)?;
                }
                Some(sites) => {
                    let totals = roll_up(loaded, sites);
                    let rows = scored.zip(totals).zip(sites.names());
                    let rows = rows.map(|((scored, total), name)| Ok(total.of(scored, name)));
                    export(self.to(), &setup, out, path, rows)?;
                }
            }
            Ok(())
        })
    }
}

/// Opens a store to publish a ranking; refuses one with records that could not be verified.
pub(super) fn open_to_publish(store: &Path) -> anyhow::Result<View> {
    let view = open_view_to_publish(&RealDisk, store)?;
    match &view.manifest.progress.unverified {
        Some(unverified) => anyhow::bail!("{}", withheld(unverified)),
        None => Ok(view),
    }
}

fn left_after(memory: Option<u64>, list: &ChosenList) -> Option<u64> {
    memory.map(|memory| memory.saturating_sub(list.bytes()))
}

fn roll_up(loaded: &LoadedGraph, sites: &Sites) -> Vec<SiteTotal> {
    let mut totals = vec![SiteTotal::default(); sites.len()];
    for (page, facts) in (0..).map(PageId).zip(&loaded.pages) {
        let fetches = Fetches {
            visits: facts.visits,
            last: facts.last_fetch,
            ..Fetches::default()
        };
        if let Some(site) = sites.site(page.index()) {
            totals[site].add(page, 0.0, &fetches);
        }
    }
    totals
}

fn report(info: &ComputedInfo, path: &Path, seconds: f64) {
    say!(
        "computed in {seconds:.1} s: {}, {}",
        counted_of(info.level, info.count),
        links(info.links)
    );
    if info.without_site > 0 {
        say!(
            "left out, because their names have no host: {}",
            super::common::pages(info.without_site)
        );
    }
    say!("ranking {}: {}", path.display(), sureness(info));
}

fn report_unreached(reached: bool, until: f64) {
    if !reached {
        say!("--until {until:e} was not reached: scores and damping have too few digits for it");
    }
}
