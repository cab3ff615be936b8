//! Columns of tables beside those that all have.

#[cfg(any(feature = "arrow", feature = "parquet", feature = "sqlite"))]
use super::signed;
use super::{Page, finite};
use crate::model::{Change, PageState};
use crate::{Error, Result};

/// Columns beside those that all files have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Columns {
    /// What the fetches of a page came to ([`Page::state`]).
    pub state: bool,
    /// C and H of the OPIC paper: [`Page::cash`] and [`Page::distributed`].
    pub cash: bool,
    /// [`Page::distance`].
    pub distance: bool,
    /// Pages of a site ([`Page::site`]).
    pub pages: bool,
    /// How it differs from an older ranking ([`Page::change`], which each row then has).
    pub change: bool,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub name: &'static str,
    #[cfg_attr(
        not(any(feature = "arrow", feature = "parquet", feature = "sqlite")),
        expect(dead_code)
    )]
    pub kind: Kind,
    /// Whether each row has a value.
    pub is_required: bool,
    value: fn(&Page<'_>) -> Option<Value>,
}

/// What kind of values a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Real,
    Integer,
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Text(&'static str),
    Real(f64),
    Integer(u64),
}

const STATE: Column = Column {
    name: "state",
    kind: Kind::Text,
    is_required: false,
    value: |page| page.state.map(PageState::name).map(Value::Text),
};

const CASH: Column = Column {
    name: "cash",
    kind: Kind::Real,
    is_required: false,
    value: |page| page.cash.map(Value::Real),
};

const DISTRIBUTED: Column = Column {
    name: "distributed",
    kind: Kind::Real,
    is_required: false,
    value: |page| page.distributed.map(Value::Real),
};

const DISTANCE: Column = Column {
    name: "distance",
    kind: Kind::Real,
    is_required: false,
    value: |page| page.distance.map(Value::Real),
};

const PAGES: Column = Column {
    name: "pages",
    kind: Kind::Integer,
    is_required: true,
    value: |page| {
        let site = page.site.as_ref();
        Some(Value::Integer(site.map_or(0, |site| site.pages)))
    },
};

const CHANGE: Column = Column {
    name: "change",
    kind: Kind::Text,
    is_required: true,
    value: |page| page.change.map(Change::name).map(Value::Text),
};

impl Columns {
    /// Those that are asked for, in their order.
    pub(super) fn all(self) -> Vec<Column> {
        let all = [
            (self.state, STATE),
            (self.cash, CASH),
            (self.cash, DISTRIBUTED),
            (self.distance, DISTANCE),
            (self.pages, PAGES),
            (self.change, CHANGE),
        ];
        let asked = all.into_iter().filter(|(is_asked, _)| *is_asked);
        asked.map(|(_, column)| column).collect()
    }
}

impl Column {
    /// Its value for a page.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: there is none, though each row must have one, or it is no number.
    pub fn of(&self, page: &Page<'_>) -> Result<Option<Value>> {
        let value = (self.value)(page);
        if let Some(Value::Real(number)) = value {
            finite(page, self.name, number)?;
        }
        if value.is_none() && self.is_required {
            return Err(Error::Unsupported(format!(
                "page {}: it has no {}",
                page.page.0, self.name
            )));
        }
        Ok(value)
    }
}

#[cfg(any(feature = "arrow", feature = "parquet", feature = "sqlite"))]
impl Value {
    /// As text, if it is one.
    pub fn text(self) -> Option<&'static str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// As a real number, if it is one.
    pub fn real(self) -> Option<f64> {
        match self {
            Value::Real(number) => Some(number),
            _ => None,
        }
    }

    /// As an integer with a sign, if it is an integer.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: it has none.
    pub fn integer(self, page: &Page<'_>) -> Result<Option<i64>> {
        match self {
            Value::Integer(number) => signed(page, number).map(Some),
            _ => Ok(None),
        }
    }
}

/// Appends the values of a row to a line, each behind a separator, in digits as Rust has them.
pub(super) fn put_values(
    line: &mut Vec<u8>,
    separator: char,
    columns: &[Column],
    page: &Page<'_>,
) -> Result<()> {
    for column in columns {
        let text = match column.of(page)? {
            None => String::new(),
            Some(Value::Text(text)) => text.to_owned(),
            Some(Value::Real(number)) => format!("{number:?}"),
            Some(Value::Integer(number)) => number.to_string(),
        };
        line.extend_from_slice(separator.encode_utf8(&mut [0; 4]).as_bytes());
        line.extend_from_slice(text.as_bytes());
    }
    Ok(())
}

/// Appends their names to a line, each behind a separator.
pub(super) fn put_names(line: &mut Vec<u8>, separator: char, columns: &[Column]) {
    for column in columns {
        line.extend_from_slice(separator.encode_utf8(&mut [0; 4]).as_bytes());
        line.extend_from_slice(column.name.as_bytes());
    }
}
