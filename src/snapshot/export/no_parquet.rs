//! Apache Parquet, where this program was built without it.

use super::{Content, ExportSpec};
use crate::Error;

pub(super) const FORMAT: ExportSpec = ExportSpec {
    name: "parquet",
    about: "Apache Parquet; this program was built without it",
    is_text: false,
    content: Content::Table,
    start: |_, _| Err(none()),
};

/// Says what would help.
pub(crate) fn none() -> Error {
    Error::Unsupported("this cashrank was built without Parquet (its feature `parquet`)".into())
}
