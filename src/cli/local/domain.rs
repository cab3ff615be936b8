//! The domain: its pages, and the crawl that their links are read from.

use std::path::PathBuf;

use anyhow::bail;
use cashrank::Error;
use cashrank_base::rules::Scope;
use cashrank_graph::engine::PageId;
use cashrank_graph::rows::Rows;
use cashrank_ingest::load::Crawled;
use cashrank_steer::answers::{NameSet, names_of};
use cashrank_steer::local::{LocalGraph, Policy, Size};
use cashrank_steer::schedule::MAX_FAILURES;
use cashrank_store::memory::check_room;
use cashrank_store::snapshot::Snapshot;

use crate::cli::common::{lines, report_lines, say};

pub struct Domain {
    scope: Scope,
    listed: NameSet,
}

impl Domain {
    /// Parses the rules of `--domain`; the lists that they name take at most `memory` bytes.
    pub fn new(rules: &[String], memory: Option<u64>) -> anyhow::Result<Domain> {
        let mut domain = Domain {
            scope: Scope::default(),
            listed: NameSet::new(memory),
        };
        for rule in rules {
            match rule.strip_prefix("file:") {
                None => domain.scope.add(rule.parse()?),
                Some(path) => {
                    let files = [PathBuf::from(path)];
                    let (skipped, opaque) = names_of(lines(&files), &mut domain.listed)?;
                    report_lines("--domain", skipped);
                    if opaque > 0 {
                        say!(
                            "--domain: {opaque} without http:// or https:// count as names of nodes"
                        );
                    }
                    if domain.listed.is_empty() {
                        bail!("--domain {rule}: the file names no page");
                    }
                }
            }
        }
        Ok(domain)
    }

    pub fn has(&self, name: &[u8]) -> bool {
        let ruled = !self.scope.is_all() && self.scope.has(name);
        ruled || self.listed.has(name)
    }
}

/// Maximum memory per page of the domain, without its name, in bytes: its number and its estimate.
const MEMBER_BYTES: u64 = 256;
/// Maximum memory per listed page, including its name, in bytes.
const LISTED_BYTES: u64 = 400;

#[derive(Default)]
pub struct DomainPages {
    /// Page numbers, ascending.
    pub pages: Vec<u32>,
    name_bytes: u64,
}

pub enum CrawlSource {
    Store(Box<Snapshot>),
    Files(Box<Crawled>),
}

impl CrawlSource {
    pub fn members(&self, domain: &Domain) -> anyhow::Result<DomainPages> {
        let mut members = DomainPages::default();
        let mut look_at = |page: u32, name: &str| {
            if domain.has(name.as_bytes()) {
                members.pages.push(page);
                members.name_bytes += name.len() as u64;
            }
        };
        match self {
            CrawlSource::Store(snapshot) => {
                for (page, name) in (0u32..).zip(snapshot.names()) {
                    look_at(page, &name?);
                }
            }
            CrawlSource::Files(crawled) => {
                let named = (0u32..).zip(crawled.names());
                named.for_each(|(page, name)| look_at(page, name));
            }
        }
        Ok(members)
    }

    /// Returns the number of bytes that a search from this domain and a list of `listed` pages take in addition to the
    /// crawl itself. Refuses them if the total exceeds `budget`.
    pub fn room(
        &self,
        members: &DomainPages,
        (policy, listed): (Policy, u64),
        budget: Option<u64>,
    ) -> anyhow::Result<u64> {
        let (size, held) = match self {
            CrawlSource::Store(snapshot) => (Size::of_rows(&snapshot.rows()?)?, 0),
            CrawlSource::Files(crawled) => (Size::of_rows(crawled.rows())?, crawled.bytes()),
        };
        let frontier = size.pages.saturating_sub(size.fetched);
        let need = size.search_bytes(policy)
            + members.pages.len() as u64 * MEMBER_BYTES
            + members.name_bytes
            + listed.min(frontier) * LISTED_BYTES;
        let work = || {
            format!(
                "a search over {} pages and {} links",
                size.pages, size.links
            )
        };
        let instead = "crawl less outside of the domain into a store of its own";
        check_room(budget, held + need, work, instead)?;
        Ok(need)
    }

    /// Returns the graph of the domain and the pages outside it, and its pages whose failed fetch can be retried.
    pub fn known(&self, members: &[u32]) -> anyhow::Result<(LocalGraph, Vec<u32>)> {
        if members.is_empty() {
            bail!(
                "the domain has no page: no name known fits --domain; see some names with `cashrank top` or \
                 `cashrank inspect`"
            );
        }
        match self {
            CrawlSource::Store(snapshot) => {
                let rows = snapshot.rows()?;
                let mut known = LocalGraph::of_rows(&rows as &dyn Rows, members, true)?;
                let mut failing = Vec::new();
                for page in snapshot.pages() {
                    let page = page?;
                    let number = page.page.0 as u32;
                    if page.fetches.failed == 0 || !known.has(number) {
                        continue;
                    }
                    // A page that failed too often is not requested again in every round.
                    if page.fetches.failed >= MAX_FAILURES {
                        known.lost(number)?
                    } else {
                        failing.push(number)
                    }
                }
                Ok((known, failing))
            }
            CrawlSource::Files(crawled) => Ok((
                LocalGraph::of_rows(crawled.rows(), members, true)?,
                Vec::new(),
            )),
        }
    }

    pub fn pages(&self) -> u64 {
        match self {
            CrawlSource::Store(snapshot) => snapshot.info().pages,
            CrawlSource::Files(crawled) => crawled.names().len() as u64,
        }
    }

    /// Returns whether `--scope` may have left out links to pages outside.
    pub fn is_scoped(&self) -> bool {
        match self {
            CrawlSource::Store(snapshot) => !snapshot.info().settings.input.scope.is_all(),
            CrawlSource::Files(crawled) => crawled.is_scoped(),
        }
    }

    pub fn names(&self, pages: &[u32]) -> Result<Vec<String>, Error> {
        match self {
            CrawlSource::Store(snapshot) => {
                let pages: Vec<PageId> = pages.iter().map(|&p| PageId(u64::from(p))).collect();
                snapshot.names_of(&pages)
            }
            CrawlSource::Files(crawled) => {
                Ok(pages.iter().map(|&p| crawled.name(p).to_owned()).collect())
            }
        }
    }
}
