//! `cashrank next`: the pages to crawl next.

use std::path::{Path, PathBuf};

use cashrank::Error;
use cashrank_steer::answers::{NEXT, Parameter, SkippedLines, SkippedOf, Takes};
use cashrank_steer::schedule::{NextOptions, STRATEGIES, Taker, next, next_of_shards};
use cashrank_store::memory::{check_room, to_read};
use cashrank_store::shards::open_shards;
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::RealDisk;
use clap::builder::{StringValueParser, TypedValueParser as _};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::common::{
    Exit, Forms, LIST_BYTES, MemoryArg, STORE, lines, parsed, positive, report_lines, say, takers,
    thousands,
};
use super::output::OutputArgs;

/// Memory per line of a list of URLs, in addition to its text, in bytes.
const LINE_BYTES: u64 = 64;
/// Memory per listed page, in bytes, with a name of some hundred bytes.
const LISTED_BYTES: u64 = 400;

/// List the pages to crawl next, best first.
///
/// Uses the last snapshot and the kept links, and works while an ingest runs. Pages whose fetch failed (5xx, 403, or a
/// crawler's own negative code) are listed again after --retry-after: ingest the records of failed fetches, too.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank next --store ranks -n 1000 > urls.txt
  cashrank next --store ranks -n 500 --per-host 10 --scope domain:example.org
  cashrank next --store ranks -n 1000 --strategy fica:k=10000 --to jsonl
  cashrank next --store ranks -n 1000 --budget discovery=0.7 --older-than 30d --to scrapy
  cashrank next --store ranks -n 500 --focus 'url:*/news/*=0.3' --focus host:blog.example.org=0.1
  cashrank next --store ranks -n 1000 --exclude urls.txt --retry-after 6h --as-of now
  cashrank next --store ranks -n 1000 --seeds seeds.txt --quiet
  cashrank next --store ranks -n 5000 --to nutch-inject -o seeds/next.txt
  cashrank next --store ranks-0 --store ranks-1 -n 1000

The same store gives the same list. The guide (formats/guide/next.md) has recipes for Nutch, Heritrix, StormCrawler \
and Browsertrix.")]
pub struct NextArgs {
    /// The store's directory; repeated for all shards of a crawl [default: the environment variable CASHRANK_STORE].
    #[arg(long = "store", value_name = "DIR", env = STORE, hide_env = true)]
    stores: Vec<PathBuf>,
    /// List at most N pages.
    #[arg(short = 'n', long, alias = "n", value_name = "N", default_value_t = 100, value_parser = positive)]
    count: u64,
    #[command(flatten)]
    asked: NextParameters,
    /// Leave out the URLs in this file, one per line, such as those being fetched; `-`: standard input.
    ///
    /// Comments (`#`) and lines that are no http or https URL are skipped. May be repeated.
    #[arg(long, value_name = "FILE")]
    exclude: Vec<PathBuf>,
    /// Begin with those URLs in this file that were not fetched yet, one per line; `-`: standard input.
    ///
    /// In the file's order. Comments (`#`), what follows a tab, and lines that are no http or https URL are skipped. Works before
    /// the first ingest, too. May be repeated.
    #[arg(long, value_name = "FILE", conflicts_with = "refetch")]
    seeds: Vec<PathBuf>,
    /// The format to write.
    #[arg(long, value_name = "FORMAT", default_value = "plain", value_parser = takers())]
    to: Taker,
    /// The same as --to jsonl.
    #[arg(long, conflicts_with = "to")]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print only problems.
    #[arg(long, short)]
    quiet: bool,
}

impl NextArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let Some(store) = self.stores.first() else {
            anyhow::bail!(
                "no store given: use --store DIR, or the environment variable CASHRANK_STORE"
            );
        };
        let output = self.output.open()?;
        output.must_spare(self.exclude.iter().chain(&self.seeds))?;
        let to = if self.json { Taker::Jsonl } else { self.to };
        output.must_show(to.name(), to.is_text())?;
        let mut options = NextOptions::of(&self.asked.0)?;
        options.count = usize::try_from(self.count)?;
        options.facts = to.is_table();
        let shards = match self.stores.len() {
            1 => Vec::new(),
            _ => open_shards(&RealDisk, &self.stores, None)?,
        };
        // A store without a snapshot knows no pages: the seeds are the list.
        let known = match &shards[..] {
            [] => Snapshot::latest(&RealDisk, store).map_or(0, |snapshot| snapshot.len()),
            all => all.iter().map(Snapshot::len).max().unwrap_or(0),
        };
        let room = self.check_memory(known)?;
        let stores: Vec<&Path> = match &shards[..] {
            [] => vec![store],
            all => all.iter().map(Snapshot::store).collect(),
        };
        let mut options = self.read_lists(&stores, &options, room)?;
        let pages = if shards.is_empty() {
            let options = options.remove(0);
            next(&RealDisk, store, &options).map_err(|error| match error {
                Error::Missing(text) if known == 0 && options.seeds.is_empty() => {
                    Error::Missing(format!(
                        "{text}. Before the first ingest, --seeds FILE gives the URLs to begin with"
                    ))
                }
                error => error,
            })?
        } else {
            next_of_shards(&shards.iter().zip(options).collect::<Vec<_>>())?
        };
        output.put(|out| {
            to.write(&pages, out)
                .map_err(|error| self.named(error).into())
        })?;
        let found = pages.len() as u64;
        if found < self.count && !self.quiet {
            say!(
                "{} of {} pages: no other known page matches",
                thousands(found),
                thousands(self.count)
            );
        }
        Ok(Exit::Done)
    }

    /// Returns the memory left beside the list; refuses a list that does not fit.
    fn check_memory(&self, known: u64) -> Result<Option<u64>, Error> {
        // Seeds may be pages that no store knows.
        let most = if self.seeds.is_empty() {
            known
        } else {
            self.count
        };
        let lists = self.stores.len() as u64;
        let count = self.count.min(most.saturating_mul(lists));
        let need = known * LIST_BYTES + count * lists * LISTED_BYTES + to_read(known);
        let work = || format!("a list of {count} of {known} pages");
        self.memory.left_after(need, work, "list fewer pages")
    }

    /// Reads the excluded pages and the seeds for each store. With one store the files are read once: they may be
    /// standard input.
    fn read_lists(
        &self,
        stores: &[&Path],
        options: &NextOptions,
        room: Option<u64>,
    ) -> anyhow::Result<Vec<NextOptions>> {
        let mut all = vec![options.clone(); stores.len()];
        let mut skipped = Vec::new();
        if let ([store], [options]) = (stores, &mut all[..]) {
            let lists = (lines(&self.exclude), lines(&self.seeds));
            skipped.push(options.name(store, lists.0, lists.1, room)?);
        } else {
            let excluded = held(&self.exclude, room, "leave --exclude out")?;
            let seeds = held(&self.seeds, room, "leave --seeds out")?;
            for (store, options) in stores.iter().zip(&mut all) {
                let excluded = excluded.iter().cloned().map(Ok);
                let seeds = seeds.iter().cloned().map(Ok);
                skipped.push(options.name(store, excluded, seeds, room)?);
            }
        }
        let shared = |list: fn(&SkippedOf) -> SkippedLines| {
            let lists = skipped.iter().map(list);
            lists.reduce(SkippedLines::shared_with).unwrap_or_default()
        };
        report_lines("--exclude", shared(|of| of.excluded));
        report_lines("--seeds", shared(|of| of.seeds));
        Ok(all)
    }

    fn named(&self, error: Error) -> Error {
        match error {
            Error::Io { action, source, .. } => match self.output.name() {
                name if name == Path::new("-") => Error::io("standard output", action)(source),
                name => Error::io(name, action)(source),
            },
            other => other,
        }
    }
}

/// Reads lists of URLs into memory; if they do not fit into `room`, the error suggests `instead`.
fn held(
    files: &[PathBuf],
    room: Option<u64>,
    instead: &'static str,
) -> Result<Vec<Vec<u8>>, Error> {
    let (mut held, mut bytes) = (Vec::new(), 0);
    for line in lines(files) {
        let line = line?;
        bytes += line.len() as u64 + LINE_BYTES;
        check_room(room, bytes, || "a list of URLs".into(), instead)?;
        held.push(line);
    }
    Ok(held)
}

#[derive(Debug, Clone)]
struct NextParameters(Vec<(String, String)>);

impl NextParameters {
    fn option(parameter: &'static Parameter) -> Arg {
        let option = Arg::new(parameter.name)
            .long(parameter.name)
            .help(parameter.help.trim_end_matches('.'))
            .conflicts_with_all(parameter.excludes);
        let option = match parameter.takes {
            Takes::Nothing => return option.action(ArgAction::SetTrue),
            Takes::Value(name) => option.value_name(name).action(ArgAction::Set),
            Takes::Values(name) => option.value_name(name).action(ArgAction::Append),
        };
        let option = match parameter.default {
            Some(default) => option.default_value(default),
            None => option,
        };
        if parameter.name == "strategy" {
            let orders = STRATEGIES.iter().map(|order| (order.name, order.about));
            return option.value_parser(Forms::new(orders, parsed::<String>));
        }
        let checked = move |text: String| parameter.check(&text).map(|()| text);
        option.value_parser(StringValueParser::new().try_map(checked))
    }
}

impl clap::Args for NextParameters {
    fn augment_args(command: Command) -> Command {
        command.args(NEXT.iter().map(NextParameters::option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        NextParameters::augment_args(command)
    }
}

impl clap::FromArgMatches for NextParameters {
    fn from_arg_matches(found: &ArgMatches) -> Result<NextParameters, clap::Error> {
        let mut asked = Vec::new();
        for Parameter { name, takes, .. } in &NEXT {
            if found.value_source(name) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values = match takes {
                Takes::Nothing => vec![String::new()],
                _ => found
                    .get_many(name)
                    .into_iter()
                    .flatten()
                    .cloned()
                    .collect(),
            };
            let named = values.into_iter().map(|value| ((*name).to_owned(), value));
            asked.extend(named);
        }
        Ok(NextParameters(asked))
    }

    fn update_from_arg_matches(&mut self, found: &ArgMatches) -> Result<(), clap::Error> {
        *self = NextParameters::from_arg_matches(found)?;
        Ok(())
    }
}
