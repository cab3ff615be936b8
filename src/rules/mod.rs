//! What is taken from inputs, where users have a choice. It changes results, so a store keeps it.

mod fields;
mod outlinks;
mod rel;

use serde::{Deserialize, Serialize};

pub use fields::{FieldChoice, FieldName, Fields};
pub use outlinks::Outlinks;
pub use rel::Rel;

/// All choices; the default is what most inputs want.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InputRules {
    /// `--outlinks`.
    #[serde(skip_serializing_if = "is_default")]
    pub outlinks: Outlinks,
    /// `--field`.
    #[serde(skip_serializing_if = "is_default")]
    pub fields: Fields,
}

impl InputRules {
    /// Whether nothing is chosen.
    pub fn is_default(&self) -> bool {
        is_default(self)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
