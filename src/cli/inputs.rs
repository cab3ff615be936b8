//! Options of commands that read crawl records or graphs: what is read of inputs, within which limits, and how.

use std::ffi::OsString;

use cashrank::Limits;
use cashrank_base::rules::{
    DropParams, FieldChoice, FieldNames, Follow, InputRules, Outlinks, Scope,
};
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::{InputName, SourceOptions};
use cashrank_graph::engine::{Config, SelfLinks};
use cashrank_ingest::ReadOptions;
use cashrank_ingest::load::{LoadedGraph, load};

use super::common::{OrNone, bytes, formats, parsed, positive, threads, words};
use super::levels::all_of;

pub const INPUT: &str = "Input";

#[derive(clap::Args)]
#[command(next_help_heading = INPUT)]
pub struct RulesArgs {
    /// Count only these pages, like domain:example.org; with ! in front: all but these [default: all].
    ///
    /// host:NAME, barehost:NAME (with or without www.), domain:NAME, prefix:HOST/FOLDERS or url:PATTERN with *. May be repeated.
    #[arg(long, value_name = "PAGES", value_parser = parsed::<Scope>)]
    scope: Vec<Scope>,
    /// Remove these parameters from URLs, like utm_*; `tracking` and `session` are lists of common names [default: none].
    #[arg(long, value_name = "NAMES", value_parser = parsed::<DropParams>)]
    drop_params: Vec<DropParams>,
    /// The name of a field in JSON lines, where it is another, like url=response_url.
    ///
    /// Fields: url, links, fetched_at, status, redirect, digest, requested_url, final_url, base, method, links_nofollow, links_rel,
    /// links_weight, revisit; of a link: link.url, link.rel, link.nofollow, link.weight. Separate several by commas.
    #[arg(long = "field", value_name = "FIELD=NAME", value_delimiter = ',', value_parser = parsed::<FieldChoice>)]
    fields: Vec<FieldChoice>,
    /// Take the links of archived pages from their HTML, or from the `outlink` lines of WARC metadata [default: html].
    #[arg(long, value_name = "WHENCE", value_parser = words::<Outlinks>(Outlinks::ALL.map(|of| (of.name(), ""))))]
    outlinks: Option<Outlinks>,
}

impl RulesArgs {
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.outlinks.is_some(), "--outlinks"),
            (!self.fields.is_empty(), "--field"),
            (!self.drop_params.is_empty(), "--drop-params"),
            (!self.scope.is_empty(), "--scope"),
        ];
        first_given(&given)
    }

    pub fn resolve(&self, store: Option<&InputRules>) -> anyhow::Result<InputRules> {
        let mut rules = store.cloned().unwrap_or_default();
        rules.outlinks = self.outlinks.unwrap_or(rules.outlinks);
        if !self.fields.is_empty() {
            rules.fields = FieldNames::of(self.fields.clone())?;
        }
        if !self.drop_params.is_empty() {
            rules.drop_params = DropParams::default();
            let given = self.drop_params.iter().cloned();
            given.for_each(|names| rules.drop_params.add(names));
        }
        if !self.scope.is_empty() {
            rules.scope = all_of(&self.scope);
        }
        Ok(rules)
    }
}

pub fn first_given<'n>(options: &[(bool, &'n str)]) -> Option<&'n str> {
    options
        .iter()
        .find(|(is_given, _)| *is_given)
        .map(|of| of.1)
}

pub const LIMITS: &str = "Limits on input";

/// Limits on input. Sizes take K, M, G and T.
#[derive(clap::Args)]
#[command(next_help_heading = LIMITS)]
pub struct LimitArgs {
    /// Longest record: a line, a WARC or WAT record, or all edges of a source [default: 64M].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_line: Option<u64>,
    /// Longest URL or node name [default: 8K].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_url: Option<u64>,
    /// Most links of a record, at most 3145728 [default: 1000000].
    #[arg(long, value_name = "N", value_parser = positive)]
    limit_links: Option<u64>,
    /// Largest gzip member or zstd frame that is checked before its records are used [default: 64M].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_held: Option<u64>,
    /// Largest size that a gzip member or zstd frame may expand to [default: 1T].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_expansion: Option<u64>,
    /// Largest zstd window, as an exponent of two, 10 to 31 [default: 27].
    #[arg(long, value_name = "LOG", value_parser = clap::value_parser!(u32).range(10..=31))]
    limit_zstd_window: Option<u32>,
}

impl LimitArgs {
    pub fn over(&self, limits: Limits) -> Limits {
        Limits {
            line_bytes: self.limit_line.unwrap_or(limits.line_bytes),
            url_bytes: self.limit_url.unwrap_or(limits.url_bytes),
            links: self.limit_links.unwrap_or(limits.links),
            held_bytes: self.limit_held.unwrap_or(limits.held_bytes),
            expansion_bytes: self.limit_expansion.unwrap_or(limits.expansion_bytes),
            zstd_window_log: self.limit_zstd_window.unwrap_or(limits.zstd_window_log),
            ..limits
        }
    }
}

#[derive(clap::Args)]
pub struct ChecksumArgs {
    /// Also use records that come before damage in a packed file, though no checksum covers them.
    ///
    /// Without this, they are left out where they can be, and no ranking is published where they could not.
    #[arg(long)]
    accept_unverified: bool,
}

impl ChecksumArgs {
    pub fn options(&self) -> SourceOptions {
        SourceOptions {
            accept_unverified: self.accept_unverified,
            ..SourceOptions::default()
        }
    }
}

#[derive(clap::Args)]
pub struct ReadArgs {
    /// Files, or `-` for standard input; plain, gzip or zstd. Archives, Parquet tables and the folders of graphs, too.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<OsString>,
    /// The format of the inputs (see formats/). auto recognises it from the content.
    #[arg(long, default_value = "auto", value_parser = formats())]
    format: OrNone<Format>,
    /// Threads for decoding [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = positive)]
    threads: Option<u64>,
    #[command(flatten)]
    verify: ChecksumArgs,
    #[command(flatten)]
    rules: RulesArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl ReadArgs {
    pub fn names(&self) -> anyhow::Result<Vec<InputName>> {
        let inputs: Vec<_> = self.inputs.iter().map(|i| InputName::parse(i)).collect();
        if inputs.iter().filter(|i| **i == InputName::Stdin).count() > 1 {
            anyhow::bail!("`-` is given twice; standard input can be read once");
        }
        Ok(inputs)
    }

    pub fn options(&self) -> anyhow::Result<ReadOptions> {
        Ok(ReadOptions {
            format: self.format,
            threads: threads(self.threads),
            limits: self.limits.over(Limits::default()),
            input: self.rules.resolve(None)?,
            source: self.verify.options(),
        })
    }
}

#[derive(clap::Args)]
pub struct LoadArgs {
    /// The format of the inputs (see formats/). auto recognises it from the content [default: auto].
    #[arg(long, value_parser = formats())]
    format: Option<OrNone<Format>>,
    /// Weights of links, as for `ingest`.
    #[arg(long, value_name = "WEIGHTS", value_parser = parsed::<Follow>)]
    follow: Option<Follow>,
    /// What to do with links from a page to itself [default: drop].
    #[arg(long, value_name = "HOW", value_parser = words::<SelfLinks>(SelfLinks::ALL.map(|of| (of.name(), ""))))]
    self_links: Option<SelfLinks>,
    #[command(flatten)]
    rules: RulesArgs,
}

impl LoadArgs {
    /// Returns the first of these options that is given. They apply to inputs only: a store has settings of its own.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.format.is_some(), "--format"),
            (self.follow.is_some(), "--follow"),
            (self.self_links.is_some(), "--self-links"),
        ];
        first_given(&given).or(self.rules.given())
    }

    /// Reads the inputs into a graph in at most `memory` bytes.
    pub fn load(&self, inputs: &[OsString], memory: Option<u64>) -> anyhow::Result<LoadedGraph> {
        let inputs: Vec<InputName> = inputs.iter().map(|i| InputName::parse(i)).collect();
        let mut config = Config::default();
        config.self_links = self.self_links.unwrap_or(config.self_links);
        config.follow = self.follow.clone().unwrap_or_default();
        let limits = Limits {
            memory,
            ..Limits::default()
        };
        let rules = self.rules.resolve(None)?;
        Ok(load(
            &inputs,
            self.format.flatten(),
            &config,
            &rules,
            &limits,
        )?)
    }
}
