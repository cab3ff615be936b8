//! Stand-ins for formats that this build lacks.

use super::{Content, ExportFormatSpec};
use crate::model::lacks_feature;

/// Defines a stand-in for the module of a format, which has the name of its feature.
macro_rules! absent {
    ($name:ident, $about:literal) => {
        pub(super) mod $name {
            pub const FORMAT: super::ExportFormatSpec = super::ExportFormatSpec {
                name: stringify!($name),
                about: concat!(
                    $about,
                    "; this build has none: cargo install --features ",
                    stringify!($name)
                ),
                is_text: false,
                content: super::Content::Table,
                write: |_, _, _| Err(super::lacks_feature(stringify!($name), stringify!($name))),
            };
        }
    };
}

#[cfg(not(feature = "parquet"))]
absent!(parquet, "Apache Parquet");
#[cfg(not(feature = "sqlite"))]
absent!(sqlite, "a SQLite database");
