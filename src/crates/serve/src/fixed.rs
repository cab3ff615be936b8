//! A backend whose answers are given: for trying clients, and for tests.

use std::sync::Arc;

use crate::backend::{
    Backend, Host, Links, Movers, NextList, NextPage, NextQuery, Page, Problem, Rank, Result,
    Status, Top,
};

/// Answers from what it holds.
#[derive(Debug, Clone, Default)]
pub struct Fixed {
    /// The status.
    pub status: Status,
    /// Pages, best first; what is known of a page is found here by its URL.
    pub pages: Vec<Page>,
    /// Links of pages.
    pub links: Vec<Links>,
    /// Movers.
    pub movers: Movers,
    /// Hosts, best first.
    pub hosts: Vec<Host>,
    /// Pages to crawl, best first.
    pub next: Vec<NextPage>,
}

fn first<T: Clone>(items: &[T], n: usize) -> Vec<T> {
    items.iter().take(n).cloned().collect()
}

impl Backend for Fixed {
    fn status(&self) -> Result<Status> {
        Ok(self.status.clone())
    }

    fn top(&self, n: usize) -> Result<Top> {
        Ok(Top {
            snapshot: self.status.snapshot.clone().unwrap_or_default(),
            records: self.status.records,
            pages: self.status.pages,
            bound_l1: self.status.bound_l1,
            top: first(&self.pages, n),
        })
    }

    fn rank(&self, urls: &[String]) -> Result<Vec<Rank>> {
        let rank = |url: &String| match self.pages.iter().find(|page| page.url == *url) {
            None => Rank {
                url: url.clone(),
                ..Rank::default()
            },
            Some(page) => Rank {
                url: url.clone(),
                known: true,
                importance: Some(page.importance),
                rank: Some(page.rank),
                percentile: None,
                visits: Some(page.visits),
                last_fetch: page.last_fetch.clone(),
                ..Rank::default()
            },
        };
        Ok(urls.iter().map(rank).collect())
    }

    fn links(&self, url: &str, n: usize) -> Result<Links> {
        let found = self.links.iter().find(|links| links.url == url);
        let mut found = found
            .cloned()
            .ok_or_else(|| Problem::Unknown(format!("{url}: not known")))?;
        found.links.truncate(n);
        Ok(found)
    }

    fn movers(&self, n: usize) -> Result<Movers> {
        Ok(Movers {
            movers: first(&self.movers.movers, n),
            ..self.movers.clone()
        })
    }

    fn hosts(&self, n: usize) -> Result<Vec<Host>> {
        Ok(first(&self.hosts, n))
    }

    fn next(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        if let Some((name, _)) = query.options.first() {
            return Err(Problem::Asked(format!("{name}: not known here")));
        }
        let snapshot = self.status.snapshot.clone().unwrap_or_default();
        Ok(Some(Arc::new(NextList {
            version: snapshot.clone(),
            snapshot,
            records: self.status.records,
            made: None,
            pages: first(&self.next, query.n),
        })))
    }

    fn canonical(&self, url: &str) -> String {
        url.into()
    }

    fn tell(&self, text: &str) {
        eprintln!("{text}");
    }
}
