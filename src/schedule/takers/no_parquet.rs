//! Apache Parquet, where this program was built without it.

use super::TakerSpec;
use crate::snapshot::export::absent::none;

pub(super) const PARQUET: TakerSpec = TakerSpec {
    name: "parquet",
    about: "Apache Parquet; this program was built without it",
    is_text: false,
    write: |_, _| Err(none("parquet")),
};
