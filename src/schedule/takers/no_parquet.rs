//! Apache Parquet in a build without it.

use super::TakerSpec;
use crate::model::Feature;

pub(super) const PARQUET: TakerSpec = TakerSpec {
    name: "parquet",
    about: "Apache Parquet; this build has none: cargo install --features parquet",
    is_text: false,
    write: |_, _| Err(Feature::refusal("parquet", "parquet")),
};
