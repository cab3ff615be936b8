//! Optional columns of tables.

#[cfg(any(feature = "arrow", feature = "parquet", feature = "sqlite"))]
use super::signed;
use super::{Page, finite};
use crate::model::{Change, PageState};
use crate::{Error, Result};

/// Choice of the optional columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Columns {
    /// Adds the result of a page's fetches ([`Page::state`]).
    pub state: bool,
    /// Adds C and H of the OPIC paper: [`Page::cash`] and [`Page::distributed`].
    pub cash: bool,
    /// Adds the distance of a page, [`Page::distance`].
    pub distance: bool,
    /// Adds the number of pages of a site ([`Page::site`]).
    pub pages: bool,
    /// Adds the difference from an older ranking ([`Page::change`]), which each row then has.
    pub change: bool,
}

/// Optional column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub name: &'static str,
    #[cfg_attr(
        not(any(feature = "arrow", feature = "parquet", feature = "sqlite")),
        expect(dead_code)
    )]
    pub kind: Kind,
    /// True if each row must have a value.
    pub is_required: bool,
    value: fn(&Page<'_>) -> Option<Value>,
}

/// Type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Real,
    Integer,
}

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
    /// Returns the chosen columns in their order.
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
    /// Returns its value for a page.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a required value is absent or not a number.
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
    /// Returns the value if it is text.
    pub fn text(self) -> Option<&'static str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value if it is a real number.
    pub fn real(self) -> Option<f64> {
        match self {
            Value::Real(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the value as a signed integer, if it is an integer.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it does not fit.
    pub fn integer(self, page: &Page<'_>) -> Result<Option<i64>> {
        match self {
            Value::Integer(number) => signed(page, number).map(Some),
            _ => Ok(None),
        }
    }
}

/// Appends the values of a row to a line, each after a separator, with numbers in Rust's shortest form.
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

/// Appends the names of the columns to a line, each after a separator.
pub(super) fn put_names(line: &mut Vec<u8>, separator: char, columns: &[Column]) {
    for column in columns {
        line.extend_from_slice(separator.encode_utf8(&mut [0; 4]).as_bytes());
        line.extend_from_slice(column.name.as_bytes());
    }
}
