//! Apache Parquet, where this program was built without it.

use super::Announcement;
use crate::snapshot::export::parquet::none;

pub(super) const PARQUET: Announcement = Announcement {
    name: "parquet",
    about: "Apache Parquet; this program was built without it",
    is_text: false,
    write: |_, _| Err(none()),
};
