//! Columns of tables: one definition for all formats.

use super::host::{domain_of, host_of};
use super::score::{Score, Scorer};
use super::{Page, Setup, finite};
use crate::model::{Change, PageState, utc};
use crate::rank::measures::{ScoreKind, measure};
use crate::sites::Level;
use crate::{Error, Result};

/// Choice of the columns of a table.
#[derive(Debug, Clone, Default)]
pub struct OptionalColumns {
    /// Kind of the rows; of what follows, only `score` and `more` are for other tables than rankings.
    pub of: TableOf,
    /// Level of the ranking; rows of sites have [`Page::site`].
    pub level: Level,
    /// Column of the ranking's score ([`Page::importance`]).
    pub score: NumberColumn,
    /// Adds the result of a page's fetches ([`Page::state`]).
    pub state: bool,
    /// Adds C and H of the OPIC paper: [`Page::cash`] and [`Page::distributed`].
    pub cash: bool,
    /// Adds further numbers ([`Page::more`]), in their order.
    pub more: Vec<NumberColumn>,
    /// Adds the difference from an older ranking ([`Page::change`]), which each row then has.
    pub change: bool,
}

/// Kind of the rows of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TableOf {
    /// Pages or sites of a ranking.
    #[default]
    Ranking,
    /// Pages or sites that were looked up; rank 0 stands for an unknown one.
    LookedUp,
    /// Pages to crawl next. The first two of `more` stand before their visits.
    Candidates,
}

/// Column of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberColumn {
    /// Name of the column.
    pub name: String,
    /// Type of the values: real, integer or bool.
    pub kind: ValueKind,
}

impl NumberColumn {
    /// Makes a column of this name and type.
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

/// Column of a table.
pub(super) struct ExportColumn {
    pub name: String,
    #[cfg_attr(
        not(any(feature = "arrow", feature = "parquet", feature = "sqlite")),
        expect(dead_code)
    )]
    pub kind: ValueKind,
    /// True if each row must have a value.
    pub is_required: bool,
    value: Box<ValueOf>,
}

type ValueOf = dyn for<'p> Fn(&'p Page<'_>) -> Option<ColumnValue<'p>> + Send + Sync;

/// Type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// UTF-8 text.
    Text,
    /// Real numbers.
    Real,
    /// Whole numbers from 0.
    Integer,
    /// True or false.
    Bool,
    /// Seconds since 1970.
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ColumnValue<'p> {
    Text(&'p str),
    Real(f64),
    Integer(u64),
    Bool(bool),
    Time(i64),
}

impl Setup {
    /// Returns all columns of a table in their order.
    pub(super) fn all_columns(&self) -> Vec<ExportColumn> {
        let asked = &self.columns;
        let mut all = vec![text("url", |page| Some(&page.url)).required()];
        let rank = integer("rank", |page| Some(page.rank).filter(|rank| *rank > 0));
        let score = |page: &Page<'_>| (page.rank > 0).then_some(page.importance);
        let score = asked.score.column(score);
        let visits = integer("visits", |page| Some(page.visits)).required();
        let last_fetch = ExportColumn::new("last_fetch", ValueKind::Time, |page| {
            page.last_fetch.map(ColumnValue::Time)
        });
        let more = asked.more.iter().enumerate();
        let mut more =
            more.map(|(at, of)| of.column(move |page| page.more.get(at).copied().flatten()));
        match asked.of {
            TableOf::Ranking => {}
            TableOf::LookedUp => {
                all.extend([rank, score, text("state", state_or_unknown)]);
                return all;
            }
            TableOf::Candidates => {
                all.extend(more.by_ref().take(2));
                let importance = asked.score.column(|page| Some(page.importance));
                all.extend([visits, last_fetch, importance.required()]);
                all.extend(more);
                return all;
            }
        }
        all.extend([score.required(), rank.required(), visits, last_fetch]);
        if asked.state {
            all.push(text("state", state));
        }
        all.push(match asked.level {
            Level::Domain => text("host", |_| None),
            _ => text("host", host_of),
        });
        all.push(text("domain", domain_of));
        all.push(integer("page", |page| Some(page.page.0)).required());
        if asked.cash {
            all.push(NumberColumn::new("cash", ValueKind::Real).column(|page| page.cash));
            let distributed = NumberColumn::new("distributed", ValueKind::Real);
            all.push(distributed.column(|page| page.distributed));
        }
        if self.scoring.score != Score::Importance {
            let column = NumberColumn::new(self.scoring.score.name(), ValueKind::Real);
            let scorer = Scorer::new(self);
            all.push(column.column(move |page| scorer.of(page).ok()));
        }
        all.extend(more);
        if !asked.level.is_page() {
            let pages = |page: &Page<'_>| Some(page.site.as_ref().map_or(0, |site| site.pages));
            all.push(integer("pages", pages).required());
        }
        if asked.change {
            all.push(text("change", |page| page.change.map(Change::name)).required());
        }
        all
    }
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

    /// Returns its value for a page.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a required value is absent, a number is not finite, or a time is outside the years -9999
    /// to 9999.
    pub fn of<'p>(&self, page: &'p Page<'_>) -> Result<Option<ColumnValue<'p>>> {
        let (value, name) = ((self.value)(page), &self.name);
        let why = match value {
            Some(ColumnValue::Real(number)) => return finite(page, name, number).map(|_| value),
            Some(ColumnValue::Time(seconds)) if utc(seconds).is_none() => {
                format!("its {name}, {seconds} s from 1970, is outside the years -9999 to 9999")
            }
            None if self.is_required => format!("it has no {name}"),
            _ => return Ok(value),
        };
        Err(Error::Unsupported(format!("page {}: {why}", page.page.0)))
    }
}

/// Appends a row to a line: values between separators, with numbers in Rust's shortest form; `put` appends text.
pub(super) fn put_values(
    line: &mut Vec<u8>,
    separator: u8,
    columns: &[ExportColumn],
    page: &Page<'_>,
    put: impl Fn(&mut Vec<u8>, &str),
) -> Result<()> {
    for (at, column) in columns.iter().enumerate() {
        if at > 0 {
            line.push(separator);
        }
        match column.of(page)? {
            None => (),
            Some(ColumnValue::Text(text)) => put(line, text),
            Some(ColumnValue::Real(number)) => line.extend(format!("{number:?}").bytes()),
            Some(ColumnValue::Integer(number)) => line.extend(number.to_string().bytes()),
            Some(ColumnValue::Bool(is)) => line.extend(is.to_string().bytes()),
            Some(ColumnValue::Time(seconds)) => {
                line.extend(utc(seconds).unwrap_or_default().bytes())
            }
        }
    }
    Ok(())
}

/// Appends the names of the columns to a line, between separators.
pub(super) fn put_names(line: &mut Vec<u8>, separator: &str, columns: &[ExportColumn]) {
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    line.extend_from_slice(names.join(separator).as_bytes());
}
