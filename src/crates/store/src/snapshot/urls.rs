//! Pages of a snapshot, looked up by URLs in any form.

use serde::Serialize;

use super::{Info, Snapshot, SnapshotPage};
use crate::Result;
use crate::model::{Page, PageId, PageState, utc};
use crate::url::{Reject, canonical as canonical_form};

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
    /// Its cash, as a share of all: C of the OPIC paper; absent of a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cash: Option<f64>,
    /// What it distributed in the ranking's window, as a share of what all pages did: H of the paper; of a settled ranking, what
    /// it would distribute in the long run. Absent of a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distributed: Option<f64>,
    /// Visits.
    pub visits: Option<u64>,
    /// Its last fetch, in RFC 3339.
    pub last_fetch: Option<String>,
    /// What its fetches came to: crawled, not crawled, failed or gone; absent of a site, and where an older snapshot does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PageState>,
    /// Fetches that failed since it was last reached.
    pub failed: Option<u64>,
    /// How often two fetches showed whether it had changed.
    pub compared: Option<u64>,
    /// How often it had.
    pub changed: Option<u64>,
}

impl Rank {
    /// Of a page of a snapshot; `None`: it is not known.
    pub fn of(url: &str, page: Option<&SnapshotPage>, info: &Info) -> Rank {
        let row = page.map(|page| page.named(url, info.pages));
        let rank = Rank::of_row(url, row.as_ref(), info.ranked_pages());
        Rank {
            failed: page.map(|page| page.fetches.failed),
            compared: page.map(|page| page.fetches.compared),
            changed: page.map(|page| page.fetches.changed),
            ..rank
        }
    }

    /// Makes the answer for a row of a ranking of `of` pages or sites; `None`: the name is not known.
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
            cash: row.cash,
            distributed: row.distributed,
            state: row.state,
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

impl Snapshot {
    /// Rank and fetches of pages, by URLs in any form or opaque names.
    ///
    /// # Errors
    /// The snapshot is damaged or cannot be read.
    pub fn ranks(&self, urls: &[String]) -> Result<Vec<Rank>> {
        let found = pages_of(urls, |names| self.find(names))?;
        page_ranks(self, urls, &found)
    }
}

/// The ranks of pages that the snapshot has, by the URLs that they were found by.
pub fn page_ranks(
    snapshot: &Snapshot,
    urls: &[String],
    found: &[Option<PageId>],
) -> Result<Vec<Rank>> {
    let numbers: Vec<PageId> = found.iter().flatten().copied().collect();
    let mut pages = snapshot.pages_of(&numbers)?.into_iter();
    let pages = found.iter().map(|page| page.and_then(|_| pages.next()));
    let ranks = urls.iter().zip(pages);
    Ok(ranks
        .map(|(url, page)| Rank::of(url, page.as_ref(), snapshot.info()))
        .collect())
}

/// A URL's canonical form, or an opaque name as it is.
pub fn canonical(url: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match canonical_form(url.as_bytes(), None, usize::MAX, &mut out) {
        Ok(form) => form.text(url.as_bytes(), &out).to_vec(),
        Err(_) => url.as_bytes().to_vec(),
    }
}

/// The pages of these names, found by `find`: a URL in any form, or an opaque name that looks like one, for which `find` is
/// called once more.
///
/// # Errors
///
/// Those of `find`.
pub fn pages_of<P: Copy, E>(
    urls: &[String],
    find: impl FnMut(&[&[u8]]) -> std::result::Result<Vec<Option<P>>, E>,
) -> std::result::Result<Vec<Option<P>>, E> {
    let lines = (0..).zip(urls);
    let lines = lines.map(|(number, url)| ListLine::of(url.as_bytes(), number));
    let found = find_lines(lines.collect(), find)?;
    Ok(found.into_iter().map(|of| of.page).collect())
}

/// A line of a list.
pub struct ListLine {
    /// The canonical URL, or what stands there if it is none.
    pub name: Vec<u8>,
    /// What stands there, if that is another URL.
    pub typed: Option<Vec<u8>>,
    /// Why it is no URL.
    pub why: Option<Reject>,
    /// Its number, from 0.
    pub number: u64,
}

impl ListLine {
    pub fn of(text: &[u8], number: u64) -> ListLine {
        let mut out = Vec::new();
        match canonical_form(text, None, usize::MAX, &mut out) {
            Ok(form) => {
                let name = form.text(text, &out).to_vec();
                let typed = (name != text).then(|| text.to_vec());
                ListLine {
                    name,
                    typed,
                    why: None,
                    number,
                }
            }
            Err(why) => ListLine {
                name: text.to_vec(),
                typed: None,
                why: Some(why),
                number,
            },
        }
    }
}

/// A page that a list names.
pub struct ListedPage<P = PageId> {
    /// Its canonical URL, or its opaque name.
    pub name: Vec<u8>,
    /// Its number; `None`: it is not known.
    pub page: Option<P>,
    /// The line that names it, from 0.
    pub line: u64,
    /// Why it is no URL.
    pub why: Option<Reject>,
}

/// The pages of a piece; a name that is opaque though it looks like a URL is found as it is typed.
pub fn find_lines<P: Copy, E>(
    piece: Vec<ListLine>,
    mut find: impl FnMut(&[&[u8]]) -> std::result::Result<Vec<Option<P>>, E>,
) -> std::result::Result<Vec<ListedPage<P>>, E> {
    let names: Vec<&[u8]> = piece.iter().map(|line| &*line.name).collect();
    let pages = find(&names)?;
    let typed = piece.iter().zip(&pages).filter(|(_, page)| page.is_none());
    let typed: Vec<&[u8]> = typed
        .filter_map(|(line, _)| line.typed.as_deref())
        .collect();
    let mut as_typed = if typed.is_empty() {
        Vec::new().into_iter()
    } else {
        find(&typed)?.into_iter()
    };
    let listed = piece.into_iter().zip(pages).map(|(line, page)| {
        let typed = line.typed.filter(|_| page.is_none());
        let found = typed.as_ref().and_then(|_| as_typed.next()).flatten();
        ListedPage {
            name: typed.filter(|_| found.is_some()).unwrap_or(line.name),
            page: page.or(found),
            line: line.number,
            why: line.why,
        }
    });
    Ok(listed.collect())
}
