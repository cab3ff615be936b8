//! `cashrank next`: the pages to crawl next.

use std::path::{Path, PathBuf};

use cashrank::Error;
use cashrank::rules::Scope;
use cashrank::schedule::{
    Choice, Focus, FocusRule, MAX_FAILURES, NextOptions, STRATEGIES, Taker, Which, next,
};
use cashrank::snapshot::Snapshot;
use cashrank::store::RealDisk;

use super::common::{Exit, Forms, STORE, listed_urls, parsed, positive, thousands};
use super::output::OutputArgs;
use super::values::takers;
use crate::cli::common::say;

/// List the pages to crawl next, best first.
///
/// Uses the last snapshot and the kept links, without a lock, also while an ingest runs. Pages that were fetched or
/// found gone (404, 410) are never listed as new. Pages whose fetch failed (5xx, 403, or a crawler's own negative code,
/// as for timeouts or robots.txt) are listed again after --retry-after, until they have failed --max-failures times in
/// a row. For this, ingest the records of failed fetches, too.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank next --store ranks -n 1000 > urls.txt
  cashrank next --store ranks -n 500 --per-host 10 --scope domain:example.org
  cashrank next --store ranks -n 1000 --strategy fica:k=10000 --to jsonl
  cashrank next --store ranks -n 1000 --budget discovery=0.7 --older-than 30d --to scrapy
  cashrank next --store ranks -n 500 --focus 'url:*/news/*=0.3' --focus host:blog.example.org=0.1
  cashrank next --store ranks -n 1000 --exclude urls.txt --retry-after 6h --as-of now
  cashrank next --store ranks -n 5000 --to nutch-inject -o seeds/next.txt

The same store gives the same list. The guide (formats/guide/next.md) has recipes for Nutch, Heritrix, StormCrawler \
and Browsertrix.")]
pub struct Args {
    /// The store's directory [default: the environment variable CASHRANK_STORE].
    #[arg(long, value_name = "DIR", env = STORE, hide_env = true)]
    store: Option<PathBuf>,
    /// List at most N pages.
    #[arg(short = 'n', long, alias = "n", value_name = "N", default_value_t = 100, value_parser = positive)]
    count: u64,
    /// The order of pages not fetched yet, with its parameters, as in fica:k=1000,beta=0.2. `list` shows all orders.
    #[arg(long, value_name = "ORDER", default_value = "forecast", value_parser = orders(), hide_possible_values = true)]
    strategy: String,
    /// List pages not fetched yet (the default).
    #[arg(long, conflicts_with_all = ["refetch", "budget"])]
    not_fetched: bool,
    /// List pages to fetch again, by how much that gains.
    #[arg(long, conflicts_with = "budget")]
    refetch: bool,
    /// List both; SHARE is the share of pages not fetched yet.
    #[arg(long, value_name = "discovery=SHARE", value_parser = budget)]
    budget: Option<f64>,
    /// List at most N pages of one host.
    #[arg(long, value_name = "N", value_parser = positive)]
    per_host: Option<u64>,
    /// List at most N pages of one registered domain (by the public suffix list).
    #[arg(long, value_name = "N", value_parser = positive)]
    per_domain: Option<u64>,
    /// List only these pages: host:NAME, domain:NAME or url:PATTERN, where * matches anything. With `!` in front: all
    /// but these. May be repeated [default: all].
    #[arg(long, value_name = "PAGES", value_parser = parsed::<Scope>)]
    scope: Vec<Scope>,
    /// Fetch again only pages whose last fetch is at least so long ago: 90s, 15m, 12h, 30d, 4w.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    older_than: Option<u64>,
    /// Bring these pages forward: the virtual page pays them SHARE of what it has. host:NAME, domain:NAME, url:PATTERN or
    /// unread, as in url:*news*=0.3. The first rule that names a page counts. May be repeated. For the orders forecast,
    /// settled and xyleme.
    #[arg(long, value_name = "PAGES=SHARE", value_parser = parsed::<FocusRule>, conflicts_with = "refetch")]
    focus: Vec<FocusRule>,
    /// List a page whose fetch failed only after this time.
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = duration)]
    retry_after: u64,
    /// Give up a page that failed N times since it was last reached; 0: never.
    #[arg(long, value_name = "N", default_value_t = MAX_FAILURES)]
    max_failures: u64,
    /// The time from which ages count: `now`, or a time like 2026-11-24 or 2026-11-24T12:00:00Z [default: the latest record's time].
    #[arg(long, value_name = "WHEN", value_parser = when)]
    as_of: Option<i64>,
    /// Leave out the URLs in this file, one a line; `-`: standard input. For pages that were handed out and are not
    /// ingested yet. May be repeated.
    #[arg(long, value_name = "FILE")]
    exclude: Vec<PathBuf>,
    /// The format to write.
    #[arg(long, value_name = "FORMAT", default_value = "plain", value_parser = takers())]
    to: Taker,
    /// The same as --to jsonl.
    #[arg(long, conflicts_with = "to")]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Orders by name, as completions know them; parameters may follow a name.
fn orders() -> Forms<String> {
    let orders = STRATEGIES.iter().map(|order| (order.name, order.about));
    Forms::new(
        [("list", "show all orders")].into_iter().chain(orders),
        |text| Ok(text.to_owned()),
    )
}

impl Args {
    pub fn run(self) -> anyhow::Result<Exit> {
        if self.strategy == "list" {
            return list();
        }
        let Some(store) = &self.store else {
            let text = "whose pages? Name a store: --store DIR, or the environment variable CASHRANK_STORE";
            return Err(Error::Usage(text.into()).into());
        };
        let output = self.output.open()?;
        let to = if self.json { Taker::Jsonl } else { self.to };
        output.must_show(to.name(), to.is_text())?;
        let mut options = self.options()?;
        self.exclude_into(store, &mut options)?;
        let pages = next(&RealDisk, store, &options)?;
        output.put(|out| {
            to.write(&pages, out)
                .map_err(|error| self.named(error).into())
        })?;
        let found = pages.len() as u64;
        if found < self.count {
            say!(
                "{} of {} pages: no more are known that are to be named",
                thousands(found),
                thousands(self.count)
            );
        }
        Ok(Exit::Done)
    }

    /// An error of writing the list, with the file's name.
    fn named(&self, error: Error) -> Error {
        match error {
            Error::Io { action, source, .. } => Error::Io {
                path: match self.output.name() {
                    name if name == Path::new("-") => "standard output".into(),
                    name => name.into(),
                },
                action,
                source,
            },
            other => other,
        }
    }

    /// Holds back the pages that --exclude names. Those that the store does not know are no matter.
    fn exclude_into(&self, store: &Path, options: &mut NextOptions) -> anyhow::Result<()> {
        if self.exclude.is_empty() {
            return Ok(());
        }
        let mut urls = Vec::new();
        for file in &self.exclude {
            urls.extend(listed_urls(file)?);
        }
        let snapshot = Snapshot::latest(&RealDisk, store)?;
        let found = super::rank::pages(&snapshot, &urls)?;
        let pages = found.into_iter().flatten().map(|page| page.0);
        options.exclude.extend(pages);
        Ok(())
    }

    /// What is asked for.
    pub fn options(&self) -> anyhow::Result<NextOptions> {
        let mut options = NextOptions::default();
        options.strategy = self
            .strategy
            .parse::<Choice>()
            .map_err(anyhow::Error::msg)?;
        options.count = usize::try_from(self.count)?;
        options.which = match (self.refetch, self.budget) {
            (true, _) => Which::Refetch,
            (false, Some(discovery)) => Which::Budget { discovery },
            (false, None) => Which::NotFetched,
        };
        if self.older_than.is_some() && options.which == Which::NotFetched {
            let text = "--older-than chooses among pages to fetch again: add --refetch, or --budget discovery=SHARE";
            return Err(Error::Usage(text.into()).into());
        }
        options.per_host = self.per_host;
        options.per_domain = self.per_domain;
        options.older_than = self.older_than;
        options.retry_after = self.retry_after;
        options.max_failures = self.max_failures;
        options.now = self.as_of;
        options.focus = Focus::of(self.focus.clone()).map_err(anyhow::Error::msg)?;
        for pages in &self.scope {
            options.scope.add(pages.clone());
        }
        Ok(options)
    }
}

/// Seconds since 1970 of `now`, or of a time as RFC 3339 has it.
fn when(text: &str) -> Result<i64, String> {
    let day = |text: &str| {
        let start = text.parse::<jiff::civil::Date>()?;
        start
            .to_zoned(jiff::tz::TimeZone::UTC)
            .map(|start| start.timestamp())
    };
    let time = match text {
        "now" => Ok(jiff::Timestamp::now()),
        text => text
            .parse::<jiff::Timestamp>()
            .or_else(|error| day(text).map_err(|_| error)),
    };
    let wrong = |_| format!("{text:?}: `now`, or a time like 2026-11-24 or 2026-11-24T12:00:00Z");
    time.map(jiff::Timestamp::as_second).map_err(wrong)
}

/// All strategies with what they are.
fn list() -> anyhow::Result<Exit> {
    super::common::print(|out| {
        for strategy in STRATEGIES {
            let parameters = match strategy.parameters {
                [] => String::new(),
                names => format!(" ({})", names.join(", ")),
            };
            writeln!(out, "{:<20}{}{parameters}", strategy.name, strategy.about)?;
        }
        Ok(())
    })
}

fn budget(text: &str) -> Result<f64, String> {
    let share = text
        .strip_prefix("discovery=")
        .and_then(|share| share.parse().ok());
    let share = share.filter(|share: &f64| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("{text:?}: discovery=SHARE, from 0 to 1, as in discovery=0.7"))
}

/// Seconds of `30d`.
fn duration(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?}: a number and s, m, h, d or w, as in 30d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).ok_or_else(wrong)
}
