//! Rules for what is read from inputs. They change results, so a store keeps them.

mod fields;
mod follow;
pub mod list;
mod params;
mod scope;
mod shard;

use serde::{Deserialize, Serialize};

pub use crate::model::Rel;
use crate::words;
pub use fields::{FieldChoice, FieldName, FieldNames};
pub use follow::{Follow, PageWeight, WEIGHT_MAX};
pub use params::DropParams;
pub use scope::{Scope, is_rule, looks_like_rule};
pub use shard::Shard;

words! {
    /// Source of a page's links in a WARC: `--outlinks`. A `revisit` has those of the crawler's metadata, or none known.
    #[derive(Default)]
    Outlinks {
        /// The HTML of the page itself.
        #[default]
        Html = "html",
        /// The `outlink` lines of the crawler's metadata, if there are any; otherwise the HTML.
        Metadata = "metadata",
    }
}

/// All rules for inputs; the defaults suit most inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InputRules {
    /// Source of a page's links in a WARC: `--outlinks`.
    #[serde(skip_serializing_if = "is_default")]
    pub outlinks: Outlinks,
    /// Fields with other names in the files: `--field`.
    #[serde(skip_serializing_if = "is_default")]
    pub fields: FieldNames,
    /// Parameters that are removed from URLs: `--drop-params`.
    #[serde(skip_serializing_if = "is_default")]
    pub drop_params: DropParams,
    /// Pages that count: `--scope`.
    #[serde(skip_serializing_if = "is_default")]
    pub scope: Scope,
    /// Shard whose records are taken; `None`: all. `--shard`.
    #[serde(skip_serializing_if = "is_default")]
    pub shard: Option<Shard>,
}

impl InputRules {
    /// Returns whether every URL in canonical form names a page, with nothing removed from it.
    pub fn takes_all(&self) -> bool {
        self.drop_params.is_empty() && self.scope.is_all()
    }

    /// Returns every rule as text: the setting, and its value (empty if not given).
    pub fn given(&self) -> Vec<(&'static str, String)> {
        vec![
            ("outlinks", self.outlinks.to_string()),
            ("field", self.fields.to_string()),
            ("drop_params", self.drop_params.to_string()),
            ("scope", self.scope.to_string()),
            (
                "shard",
                self.shard.as_ref().map_or(String::new(), Shard::to_string),
            ),
        ]
    }

    pub fn is_default(&self) -> bool {
        is_default(self)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
