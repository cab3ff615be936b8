//! Backend with fixed answers: for trying out clients, and for tests.

use std::sync::Arc;

use crate::backend::{Backend, NextList, NextPage, NextQuery, Problem, Result, ServiceStatus};

/// Backend that answers from its fields.
#[derive(Debug, Clone, Default)]
pub struct FixedBackend {
    /// Status to answer with.
    pub status: ServiceStatus,
    /// Most important pages to answer with, as JSON.
    pub top: String,
    /// Pages to crawl next, best first.
    pub next: Vec<NextPage>,
}

impl Backend for FixedBackend {
    fn status(&self) -> Result<ServiceStatus> {
        Ok(self.status.clone())
    }

    fn questions(&self) -> &'static [&'static str] {
        &["top"]
    }

    fn answer(&self, _: &str, parameters: &[(String, String)]) -> Result<Vec<u8>> {
        match parameters.first() {
            None => Ok(self.top.clone().into()),
            Some((name, value)) => Err(Problem::Asked(format!("{name}={value}: not known here"))),
        }
    }

    fn next(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        if let Some((name, _)) = query.options.first() {
            return Err(Problem::Asked(format!("{name}: not known here")));
        }
        let snapshot = self.status.snapshot.clone().unwrap_or_default();
        Ok(Some(Arc::new(NextList {
            version: snapshot.clone(),
            snapshot,
            records: self.status.counts.records,
            made: None,
            pages: self.next.iter().take(query.n).cloned().collect(),
        })))
    }

    fn canonical(&self, url: &str) -> String {
        url.into()
    }

    fn log(&self, text: &str) {
        eprintln!("{text}");
    }
}
