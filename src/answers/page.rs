//! Answers about pages, by URLs in any form.

use serde::Serialize;

use crate::model::{Page, utc};
use crate::snapshot::SnapshotPage;
use crate::url;

/// The most important pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Top {
    /// Name of the snapshot.
    pub snapshot: String,
    /// Records until then.
    pub records: u64,
    /// Pages known.
    pub pages: u64,
    /// Bound on the error.
    pub bound_l1: Option<f64>,
    /// The pages, best first.
    pub top: Vec<Page<'static>>,
}

/// The answer about one page.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rank {
    /// The URL or name, as it was asked for.
    pub url: String,
    /// Whether the page is known; all else is absent where not.
    pub known: bool,
    /// Its share of all importance.
    pub importance: Option<f64>,
    /// 1 + pages of strictly greater importance.
    pub rank: Option<u64>,
    /// The share of pages, in percent, that do not rank higher.
    pub percentile: Option<f64>,
    /// Of a site: its pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// Visits.
    pub visits: Option<u64>,
    /// Its last fetch, in RFC 3339.
    pub last_fetch: Option<String>,
    /// Fetches that failed since it was last reached.
    pub failed: Option<u64>,
    /// How often two fetches showed whether it had changed.
    pub compared: Option<u64>,
    /// How often it had.
    pub changed: Option<u64>,
}

impl Rank {
    /// Of a page among so many; `None`: it is not known.
    pub fn of(url: &str, page: Option<&SnapshotPage>, pages: u64) -> Rank {
        let row = page.map(|page| page.named(url));
        let rank = Rank::of_row(url, row.as_ref(), pages);
        Rank {
            failed: page.map(|page| page.fetches.failed),
            compared: page.map(|page| page.fetches.compared),
            changed: page.map(|page| page.fetches.changed),
            ..rank
        }
    }

    /// Of a row of a ranking of pages or sites, of which there are so many; `None`: it is not known.
    pub fn of_row(url: &str, row: Option<&Page<'_>>, count: u64) -> Rank {
        let url = url.to_owned();
        let Some(row) = row else {
            return Rank {
                url,
                ..Rank::default()
            };
        };
        Rank {
            url,
            known: true,
            importance: Some(row.importance),
            rank: Some(row.rank),
            percentile: Some(percentile(row.rank, count)),
            pages: row.site.as_ref().map(|site| site.pages),
            visits: Some(row.visits),
            last_fetch: row.last_fetch.and_then(utc),
            ..Rank::default()
        }
    }
}

/// The share of all, in percent, that do not rank higher.
fn percentile(rank: u64, of: u64) -> f64 {
    100.0 * (1.0 - (rank - 1) as f64 / of as f64)
}

/// A URL's canonical form, or an opaque name as it is.
pub fn canonical(url: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match url::canonical(url.as_bytes(), None, usize::MAX, &mut out) {
        Ok(form) => form.text(url.as_bytes(), &out).to_vec(),
        Err(_) => url.as_bytes().to_vec(),
    }
}

/// The pages of these names, found by `find`: a URL in any form, or an opaque name that looks like one.
///
/// # Errors
///
/// Those of `find`.
pub fn pages_of<P: Copy, E>(
    urls: &[String],
    find: impl FnOnce(&[&[u8]]) -> std::result::Result<Vec<Option<P>>, E>,
) -> std::result::Result<Vec<Option<P>>, E> {
    let canonical: Vec<Vec<u8>> = urls.iter().map(|url| canonical(url)).collect();
    let names: Vec<&[u8]> = canonical
        .iter()
        .map(Vec::as_slice)
        .chain(urls.iter().map(String::as_bytes))
        .collect();
    let found = find(&names)?;
    let (as_urls, as_names) = found.split_at(urls.len());
    let both = as_urls.iter().zip(as_names);
    Ok(both.map(|(as_url, as_name)| as_url.or(*as_name)).collect())
}
