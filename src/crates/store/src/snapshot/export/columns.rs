//! Columns of tables: one definition for all formats, with the scores, hosts and domains in them.

use std::borrow::Cow;
use std::f64::consts::LN_2;

use super::{Page, Setup};
use crate::model::{Change, PageState, TIMES, registry};
use crate::rank::measures::{ScoreKind, measure};
use crate::sites::Level;
use crate::{Error, Result, url};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TableOf {
    #[default]
    Ranking,
    /// Pages or sites that were looked up; rank 0 stands for an unknown one.
    LookedUp,
    /// Pages to crawl next. The first two of `more` stand before their visits.
    Candidates,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberColumn {
    pub name: String,
    pub kind: ValueKind,
}

impl NumberColumn {
    pub fn new(name: &str, kind: ValueKind) -> NumberColumn {
        let name = name.to_owned();
        NumberColumn { name, kind }
    }

    /// Makes the column of a measure, by its name with `_` for `-`; `None`: importance.
    pub fn of_measure(by: Option<&str>) -> NumberColumn {
        let scores = by.and_then(|name| measure(name).ok()).map(|of| of.scores);
        let kind = match scores {
            Some(ScoreKind::Count) => ValueKind::Integer,
            _ => ValueKind::Real,
        };
        NumberColumn::new(&by.unwrap_or("importance").replace('-', "_"), kind)
    }

    fn column(
        &self,
        number: impl Fn(&Page<'_>) -> Option<f64> + Send + Sync + 'static,
    ) -> ExportColumn {
        let kind = self.kind;
        ExportColumn::new(&self.name, kind, move |page| {
            Some(match kind {
                ValueKind::Integer => ColumnValue::Integer(number(page)? as u64),
                ValueKind::Bool => ColumnValue::Bool(number(page)? != 0.0),
                _ => ColumnValue::Real(number(page)?),
            })
        })
    }
}

impl Default for NumberColumn {
    fn default() -> NumberColumn {
        NumberColumn::of_measure(None)
    }
}

pub struct ExportColumn {
    pub name: String,
    pub kind: ValueKind,
    pub is_required: bool,
    value: Box<ValueOf>,
}

type ValueOf = dyn for<'p> Fn(&'p Page<'_>) -> Option<ColumnValue<'p>> + Send + Sync;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    Text,
    Real,
    Integer,
    Bool,
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ColumnValue<'p> {
    Text(&'p str),
    Real(f64),
    Integer(u64),
    Bool(bool),
    Time(i64),
}

impl Setup {
    pub(super) fn all_columns(&self) -> Vec<ExportColumn> {
        let mut all = vec![url_column()];
        let rank = rank_column();
        let score = |page: &Page<'_>| (page.rank > 0).then_some(page.importance);
        let score = self.score.column(score);
        let visits = integer("visits", |page| Some(page.visits)).required();
        let last_fetch = ExportColumn::new("last_fetch", ValueKind::Time, |page| {
            page.last_fetch.map(ColumnValue::Time)
        });
        let more = self.more.iter().enumerate();
        let mut more =
            more.map(|(at, of)| of.column(move |page| page.more.get(at).copied().flatten()));
        match self.table {
            TableOf::Ranking => {}
            TableOf::LookedUp => {
                all.extend([rank, score, text("state", state_or_unknown)]);
                return all;
            }
            TableOf::Candidates => {
                all.extend(more.by_ref().take(2));
                let importance = self.score.column(|page| Some(page.importance));
                all.extend([visits, last_fetch, importance.required()]);
                all.extend(more);
                return all;
            }
        }
        all.extend([score.required(), rank.required(), visits, last_fetch]);
        if self.state {
            all.push(text("state", state));
        }
        all.extend([host_column(self), domain_column()]);
        all.push(integer("page", |page| Some(page.page.0)).required());
        if self.cash {
            all.push(NumberColumn::new("cash", ValueKind::Real).column(|page| page.cash));
            let distributed = NumberColumn::new("distributed", ValueKind::Real);
            all.push(distributed.column(|page| page.distributed));
        }
        if let Some(kind) = self.kind.filter(|kind| *kind != Score::Importance) {
            let name = kind.name().to_owned();
            all.push(ExportColumn {
                name,
                ..score_column(self)
            });
        }
        all.extend(more);
        if !self.level.is_page() {
            let pages = |page: &Page<'_>| Some(page.site.as_ref().map_or(0, |site| site.pages));
            all.push(integer("pages", pages).required());
        }
        if self.change {
            all.push(text("change", |page| page.change.map(Change::name)).required());
        }
        all
    }
}

pub(super) fn url_column() -> ExportColumn {
    text("url", |page| Some(&page.url)).required()
}

/// Makes the column of hosts, which is empty for domains, as a domain has several.
pub(super) fn host_column(setup: &Setup) -> ExportColumn {
    match setup.level {
        Level::Domain => text("host", |_| None),
        _ => text("host", host_of),
    }
}

pub(super) fn domain_column() -> ExportColumn {
    text("domain", domain_of)
}

pub(super) fn rank_column() -> ExportColumn {
    integer("rank", |page| Some(page.rank).filter(|rank| *rank > 0))
}

pub(super) fn score_column(setup: &Setup) -> ExportColumn {
    let kind = setup.kind.unwrap_or(Score::Importance);
    let (of, pages) = (kind.spec().of, setup.pages as f64);
    NumberColumn::default().column(move |page| Some(of(page.importance, pages)))
}

fn state<'p>(page: &'p Page<'_>) -> Option<&'p str> {
    page.state.map(PageState::name)
}

fn state_or_unknown<'p>(page: &'p Page<'_>) -> Option<&'p str> {
    match page.rank {
        0 => Some("unknown"),
        _ => state(page),
    }
}

fn text(name: &str, value: for<'p> fn(&'p Page<'_>) -> Option<&'p str>) -> ExportColumn {
    ExportColumn::new(name, ValueKind::Text, move |page| {
        value(page).map(ColumnValue::Text)
    })
}

fn integer(name: &str, value: fn(&Page<'_>) -> Option<u64>) -> ExportColumn {
    ExportColumn::new(name, ValueKind::Integer, move |page| {
        value(page).map(ColumnValue::Integer)
    })
}

impl ExportColumn {
    fn new(
        name: &str,
        kind: ValueKind,
        value: impl for<'p> Fn(&'p Page<'_>) -> Option<ColumnValue<'p>> + Send + Sync + 'static,
    ) -> ExportColumn {
        ExportColumn {
            name: name.to_owned(),
            kind,
            is_required: false,
            value: Box::new(value),
        }
    }

    fn required(mut self) -> ExportColumn {
        self.is_required = true;
        self
    }

    /// Returns the column's value for a page; [`Error::Unsupported`] if it is absent but required, or out of range.
    pub fn of<'p>(&self, page: &'p Page<'_>) -> Result<Option<ColumnValue<'p>>> {
        let (value, name) = ((self.value)(page), &self.name);
        let why = match value {
            Some(ColumnValue::Real(number)) if !number.is_finite() => {
                format!("its {name} is {number}, which cannot be exported")
            }
            Some(ColumnValue::Integer(number)) if number > i64::MAX as u64 => {
                format!("its {name} is {number}, above 2^63 - 1, the largest integer of an export")
            }
            Some(ColumnValue::Time(seconds)) if !TIMES.contains(&seconds) => {
                format!("its {name}, {seconds} s from 1970, is outside the years -9999 to 9999")
            }
            None if self.is_required => format!("it has no {name}"),
            _ => return Ok(value),
        };
        Err(Error::Unsupported(format!("page {}: {why}", page.page.0)))
    }
}

registry! {
    /// Kind of score: 0 or more, increasing with importance. Logarithms are by `libm`, the same on every machine.
    Score of ScoreSpec, called "score";
    Importance is ScoreSpec {
        name: "importance",
        about: "the importance; all pages sum to 1",
        of: |importance, _| importance,
    };
    Ratio is ScoreSpec {
        name: "ratio",
        about: "importance in units of the mean page's",
        of: |importance, pages| importance * pages,
    };
    Log is ScoreSpec {
        name: "log",
        about: "log2(1 + ratio): 1 for a page of mean importance",
        of: |importance, pages| libm::log1p(importance * pages) / LN_2,
    };
}

struct ScoreSpec {
    name: &'static str,
    about: &'static str,
    of: fn(f64, f64) -> f64,
}

impl Score {
    /// Returns the factor by which importance is multiplied first, among this many pages.
    pub fn scale(self, pages: u64) -> f64 {
        match self {
            Score::Importance => 1.0,
            Score::Ratio | Score::Log => pages as f64,
        }
    }
}

/// Returns the host of a page's URL, or in the name of a site; `None` if the name is opaque.
pub(super) fn host_of<'p>(page: &'p Page<'_>) -> Option<&'p str> {
    if page.site.is_some() {
        // The folders of a prefix follow its host.
        return page.url.split('/').next();
    }
    let host = url::host(page.url.as_bytes());
    // ASCII delimits the host, so it is valid UTF-8.
    std::str::from_utf8(host)
        .ok()
        .filter(|host| !host.is_empty())
}

/// Returns the registered domain of `host_of`; a host without a registered domain counts as its own domain.
pub(super) fn domain_of<'p>(page: &'p Page<'_>) -> Option<&'p str> {
    let host = host_of(page)?;
    host.get(host.len() - url::domain(host.as_bytes()).len()..)
}

/// Reverses the labels of a host: `org.example.www`. Addresses are unchanged.
pub(in crate::snapshot) fn reversed(host: &str) -> Cow<'_, str> {
    if is_address(host) {
        return host.into();
    }
    let labels: Vec<&str> = host.rsplit('.').collect();
    labels.join(".").into()
}

/// Returns true if a host of a canonical URL is an IP address: only an IPv4 address ends in a number.
fn is_address(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    host.starts_with('[') || last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SiteFacts;

    fn host_and_domain(name: &str, is_site: bool) -> (Option<String>, Option<String>) {
        let page = Page {
            url: name.into(),
            site: is_site.then(SiteFacts::default),
            ..Page::default()
        };
        let owned = |part: Option<&str>| part.map(str::to_owned);
        (owned(host_of(&page)), owned(domain_of(&page)))
    }

    #[test]
    fn hosts_and_domains() {
        for (name, host, domain, turned) in [
            (
                "https://a.b.example.co.uk/x",
                "a.b.example.co.uk",
                "example.co.uk",
                "uk.co.example.b.a",
            ),
            (
                "http://me@example.org:8080/",
                "example.org",
                "example.org",
                "org.example",
            ),
            ("http://co.uk/", "co.uk", "co.uk", "uk.co"),
            ("http://localhost/", "localhost", "localhost", "localhost"),
            ("http://192.0.2.7/a", "192.0.2.7", "192.0.2.7", "192.0.2.7"),
            (
                "http://[2001:db8::1]:81/a",
                "[2001:db8::1]",
                "[2001:db8::1]",
                "[2001:db8::1]",
            ),
        ] {
            assert_eq!(
                host_and_domain(name, false),
                (Some(host.into()), Some(domain.into())),
                "{name}"
            );
            assert_eq!(reversed(host), turned);
            for site in [host.to_owned(), format!("{host}/folder")] {
                let found = host_and_domain(&site, true);
                assert_eq!(found, (Some(host.into()), Some(domain.into())), "{site}");
            }
        }
        for opaque in ["", "17", "ftp://example.org/"] {
            assert_eq!(host_and_domain(opaque, false), (None, None), "{opaque}");
        }
    }
}
