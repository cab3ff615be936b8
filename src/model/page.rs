//! Pages: their numbers, and what is known of one that is ranked.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::{PageState, Time, utc};

/// A page's number: 0 for the first page that appears in the stream, and so on without gaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

impl PageId {
    /// Pages a ledger can hold at most: with 2^30 units each, no cell overflows 64 bits.
    pub const LIMIT: u64 = (1 << 34) - 1;

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A page of a ranking, with its name.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Page<'a> {
    /// Its number, in order of first appearance.
    #[serde(skip)]
    pub page: PageId,
    /// 1 + pages of strictly greater importance.
    pub rank: u64,
    /// Its importance; all pages sum to 1.
    pub importance: f64,
    /// Visits.
    pub visits: u64,
    /// Its last fetch, in seconds since 1970.
    #[serde(serialize_with = "rfc_3339")]
    pub last_fetch: Option<Time>,
    /// What its fetches came to; `None` of a site, and where an older snapshot does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PageState>,
    /// Its URL in canonical form, or its opaque name.
    pub url: Cow<'a, str>,
    /// Its cash, as a share of all: C of the OPIC paper. `None` of a site.
    #[serde(skip)]
    pub cash: Option<f64>,
    /// What it distributed in the ranking's window, as a share of what all did: H of the paper; of a settled ranking what it would
    /// distribute in the long run. `None` of a site.
    #[serde(skip)]
    pub distributed: Option<f64>,
    /// FICA's or the logarithmic distance, where it was asked for.
    #[serde(skip)]
    pub distance: Option<f64>,
    /// How it differs from an older ranking, where that was asked for.
    #[serde(skip)]
    pub change: Option<Change>,
    /// Where sites are ranked: what is known of its pages.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteFacts>,
}

/// How a page or site differs from an older ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was not in the older ranking.
    New,
    /// Its score changed.
    Changed,
    /// Its score changed as that of the mean page did: it only gave way to new pages.
    Diluted,
    /// It has been found gone (404, 410) since. It stays in the ranking.
    Gone,
}

impl Change {
    pub(crate) const ALL: [Change; 4] =
        [Change::New, Change::Changed, Change::Diluted, Change::Gone];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Change::New => "new",
            Change::Changed => "changed",
            Change::Diluted => "diluted",
            Change::Gone => "gone",
        }
    }
}

/// What is known of the pages of a site.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SiteFacts {
    /// How many they are.
    pub pages: u64,
    /// The greatest importance of one, where importance of pages is added up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<f64>,
    /// The name of the page that has it, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<String>,
    /// The most important pages, best first, as many as were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub best_pages: Vec<SitePage>,
}

/// A page of a site.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SitePage {
    /// Among all pages: 1 + pages of strictly greater importance.
    pub rank: u64,
    /// Its importance.
    pub importance: f64,
    /// Its URL.
    pub url: String,
    /// What its fetches came to; absent where the snapshot does not say which pages are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PageState>,
}

/// A time in RFC 3339, in UTC.
pub(crate) fn rfc_3339<S: Serializer>(time: &Option<Time>, to: S) -> Result<S::Ok, S::Error> {
    time.and_then(utc).serialize(to)
}
