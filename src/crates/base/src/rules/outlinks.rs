//! Source of a page's links in a WARC: `--outlinks`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Source of a page's links in a WARC. A `revisit` has no text: its links are always those of the crawler's metadata,
/// or unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outlinks {
    /// The HTML of the page itself.
    #[default]
    Html,
    /// The `outlink` lines of the crawler's metadata, if there are any; otherwise the HTML.
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
