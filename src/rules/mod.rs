//! Rules for what is read from inputs. They change results, so a store keeps them.

mod fields;
mod follow;
mod outlinks;
mod params;
mod scope;
mod scope_form;
mod shard;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

pub use crate::model::Rel;
pub use fields::{FieldChoice, FieldName, Fields};
pub use follow::{Follow, PageWeight, WEIGHT_MAX};
pub use outlinks::Outlinks;
pub use params::DropParams;
pub use scope::Scope;
pub use shard::Shard;

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
    /// `--drop-params`.
    #[serde(skip_serializing_if = "is_default")]
    pub drop_params: DropParams,
    /// `--scope`.
    #[serde(skip_serializing_if = "is_default")]
    pub scope: Scope,
    /// `--shard`: whose records are taken; `None`: all.
    #[serde(skip_serializing_if = "is_default")]
    pub shard: Option<Shard>,
}

impl InputRules {
    /// A number for the rules that decide which names there are, `--drop-params` and `--scope`: XXH3-64 of
    /// them as they are written, a line each; 0: no such rules.
    pub fn names_sum(&self) -> u64 {
        if self.takes_all() {
            return 0;
        }
        let scope = Vec::<String>::from(self.scope.clone()).join("\n");
        xxh3_64(format!("{}\n{scope}", self.drop_params).as_bytes())
    }

    /// Returns whether every URL in canonical form names a page, and nothing is dropped of it.
    pub(crate) fn takes_all(&self) -> bool {
        self.drop_params.is_empty() && self.scope.is_all()
    }

    /// Every rule, as it is written: the setting, and what it was given; empty: nothing.
    pub fn given(&self) -> Vec<(&'static str, String)> {
        vec![
            ("outlinks", self.outlinks.to_string()),
            ("field", self.fields.to_string()),
            ("drop_params", self.drop_params.to_string()),
            ("scope", self.scope.to_string()),
            (
                "shard",
                self.shard.map_or(String::new(), |shard| shard.to_string()),
            ),
        ]
    }

    /// Returns whether nothing is chosen.
    pub fn is_default(&self) -> bool {
        is_default(self)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
