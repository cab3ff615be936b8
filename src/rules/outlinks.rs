//! Where the links of a page in a WARC come from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Where the links of a page in a WARC come from. A `revisit` has no text: its links are those of
/// the crawler's metadata in any case, or unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outlinks {
    /// From the page's HTML.
    #[default]
    Html,
    /// From the `outlink` lines of the crawler's metadata, where there are any; else from HTML.
    Metadata,
}

impl fmt::Display for Outlinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outlinks::Html => "html",
            Outlinks::Metadata => "metadata",
        })
    }
}

impl FromStr for Outlinks {
    type Err = Error;

    fn from_str(text: &str) -> Result<Outlinks> {
        match text {
            "html" => Ok(Outlinks::Html),
            "metadata" => Ok(Outlinks::Metadata),
            _ => Err(Error::Usage(format!("{text:?}: html or metadata"))),
        }
    }
}
