//! The domain: its pages, and the links of a store that a search begins with.

use std::path::PathBuf;

use anyhow::bail;
use cashrank_base::rules::Scope;
use cashrank_graph::rows::Rows;
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

    pub fn pages(&self, snapshot: &Snapshot) -> cashrank::Result<DomainPages> {
        let mut found = DomainPages::default();
        for (page, name) in (0..).zip(snapshot.names()) {
            let name = name?;
            let ruled = !self.scope.is_all() && self.scope.has(name.as_bytes());
            if ruled || self.listed.has(name.as_bytes()) {
                found.pages.push(page);
                found.name_bytes += name.len() as u64;
            }
        }
        Ok(found)
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

/// Refuses a search from this domain, and a list of `listed` pages, that take more than `budget` bytes.
pub fn check_memory(
    snapshot: &Snapshot,
    domain: &DomainPages,
    (policy, listed): (Policy, u64),
    budget: Option<u64>,
) -> anyhow::Result<()> {
    let size = Size::of_rows(&snapshot.rows()?)?;
    let frontier = size.pages.saturating_sub(size.fetched);
    let need = size.search_bytes(policy)
        + domain.pages.len() as u64 * MEMBER_BYTES
        + domain.name_bytes
        + listed.min(frontier) * LISTED_BYTES;
    let work = || {
        format!(
            "a search over {} pages and {} links",
            size.pages, size.links
        )
    };
    let instead = "crawl less outside of the domain into a store of its own";
    Ok(check_room(budget, need, work, instead)?)
}

/// Returns the graph of the domain and the pages outside it, and its pages whose failed fetch can be retried.
pub fn known(snapshot: &Snapshot, domain: &[u32]) -> anyhow::Result<(LocalGraph, Vec<u32>)> {
    if domain.is_empty() {
        bail!(
            "the domain has no page: no name known fits --domain; see some names with `cashrank top` or \
             `cashrank inspect`"
        );
    }
    let rows = snapshot.rows()?;
    let mut known = LocalGraph::of_rows(&rows as &dyn Rows, domain, true)?;
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
