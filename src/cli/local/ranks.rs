//! Results of `cashrank local`: the domain's estimated ranks.

use cashrank_graph::engine::{PageId, ranks};
use cashrank_steer::local::{LocalEstimate, LocalSearch};
use cashrank_store::snapshot::Snapshot;

use crate::cli::common::{self, counted, say, thousands};
use crate::cli::output::OutputTarget;

/// Returns the names of pages.
pub fn names(
    snapshot: &Snapshot,
    pages: impl Iterator<Item = u32>,
) -> cashrank::Result<Vec<String>> {
    let pages: Vec<PageId> = pages.map(|page| PageId(page.into())).collect();
    snapshot.names_of(&pages)
}

#[derive(serde::Serialize)]
pub struct LocalPageRank {
    url: String,
    importance: f64,
    rank: u64,
    outside: f64,
    certified: f64,
    at_least: f64,
}

/// Results of a search, with the names of the pages.
pub struct Findings<'a> {
    snapshot: &'a Snapshot,
    search: &'a LocalSearch,
    pub estimate: LocalEstimate,
    /// Pages of the domain, best first.
    pub pages: Vec<LocalPageRank>,
    /// Number of the domain's pages that were not fetched.
    pub unfetched: usize,
    /// True if all pages of the store are in the domain.
    is_all: bool,
}

impl Findings<'_> {
    /// Returns the results of a search for a domain, whose page numbers are `domain`.
    pub fn of<'a>(
        snapshot: &'a Snapshot,
        search: &'a LocalSearch,
        domain: &[u32],
    ) -> anyhow::Result<Findings<'a>> {
        let (known, estimate) = (search.known(), search.estimate());
        let names_of_domain = names(snapshot, (0..known.domain()).map(|of| known.page(of)))?;
        let pages = names_of_domain
            .into_iter()
            .zip(ranks(&estimate.ranks))
            .enumerate();
        let pages = pages.map(|(member, (url, rank))| LocalPageRank {
            url,
            importance: estimate.ranks[member],
            rank,
            outside: estimate.outside[member],
            certified: estimate.certified[member],
            at_least: estimate.at_least[member],
        });
        let mut pages: Vec<LocalPageRank> = pages.collect();
        pages.sort_by(|a, b| {
            let order = b.importance.total_cmp(&a.importance);
            order.then_with(|| a.url.cmp(&b.url))
        });
        Ok(Findings {
            snapshot,
            search,
            pages,
            estimate,
            unfetched: domain.iter().filter(|&&of| !known.is_fetched(of)).count(),
            is_all: domain.len() as u64 == snapshot.len(),
        })
    }

    pub fn write_ranks(&self, to: &OutputTarget) -> anyhow::Result<()> {
        // Rounds down, so that a certified value stays valid.
        let down = |value: f64| (value * 1e4).floor() / 1e4;
        to.put(|out| {
            writeln!(out, "url\timportance\trank\toutside\tcertified\tat_least")?;
            for page in &self.pages {
                writeln!(
                    out,
                    "{}\t{:e}\t{}\t{:.4}\t{:.4}\t{:.4}",
                    page.url,
                    page.importance,
                    page.rank,
                    page.outside,
                    down(page.certified),
                    down(page.at_least)
                )?;
            }
            Ok(())
        })
    }

    /// Prints what was found on standard error.
    pub fn report(&self) {
        let (known, estimate) = (self.search.known(), &self.estimate);
        let count = |count: usize| thousands(count as u64);
        let gone = known.found_gone();
        let beyond = known.fetched() - known.domain() - gone;
        let frontier = self.search.matrix().frontier.len();
        say!(
            "{} in the domain, {} fetched outside, {} known and not fetched",
            common::pages(known.domain() as u64),
            count(beyond),
            count(frontier)
        );
        for (what, pages, so) in [
            ("found gone", gone, ", and have no rank here"),
            (
                "that could not be fetched",
                known.failed(),
                " until they are",
            ),
        ] {
            if pages > 0 {
                let pages = count(pages);
                say!("pages {what}: {pages}; they count as pages without links{so}");
            }
        }
        if self.unfetched > 0 {
            say!(
                "of the domain, {} not fetched: these have no estimate, but are among the pages to fetch",
                counted(self.unfetched as u64, "page was", "pages were")
            );
        }
        let weighted = |parts: &[f64]| -> f64 {
            let both = parts.iter().zip(&estimate.ranks);
            100.0 * both.map(|(part, rank)| part * rank).sum::<f64>()
        };
        say!(
            "importance of the domain: {:.1} % from links outside, {:.1} % from known pages by links that were read; {:.1} % of all flows to pages not fetched",
            weighted(&estimate.outside),
            weighted(&estimate.certified),
            100.0 * estimate.leak
        );
        if known.links() == 0 {
            say!("no fetched page links to another page: all ranks are equal");
        }
        match (frontier, beyond) {
            (0, 0) if !self.snapshot.info().settings.input.scope.is_all() => say!(
                "no link leads out of the domain: --scope left out pages outside and links to them when the crawl was read; \
                 ingest it into another store, without --scope, to keep them"
            ),
            (0, 0) => say!(
                "no link leads out of the domain: there is nothing to fetch, and the ranks are those of the domain alone"
            ),
            (_, 0) if self.is_all => {
                say!("all known pages are in the domain: the ranks are those of the crawl alone")
            }
            (0, _) => say!(
                "all pages that can be reached were fetched: the ranks are those in the whole crawl"
            ),
            _ => {}
        }
    }
}
