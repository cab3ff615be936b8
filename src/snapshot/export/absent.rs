//! Formats that this program was built without.

use super::{Content, ExportSpec};
use crate::Error;

/// What stands for the module of a format, which is named as its feature is.
macro_rules! absent {
    ($name:ident, $about:literal) => {
        pub(super) mod $name {
            pub(in super::super) const FORMAT: super::ExportSpec = super::ExportSpec {
                name: stringify!($name),
                about: concat!($about, "; this program was built without it"),
                is_text: false,
                content: super::Content::Table,
                start: |_, _| Err(super::none(stringify!($name))),
            };
        }
    };
}

#[cfg(not(feature = "arrow"))]
absent!(arrow, "Apache Arrow");
#[cfg(not(feature = "parquet"))]
absent!(parquet, "Apache Parquet");
#[cfg(not(feature = "sqlite"))]
absent!(sqlite, "a SQLite database");

/// Says what would help.
pub(crate) fn none(feature: &str) -> Error {
    Error::Unsupported(format!(
        "this cashrank was built without its feature `{feature}`"
    ))
}
