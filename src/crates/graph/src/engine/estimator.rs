//! The two estimators of importance.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Estimator of importance: one of a snapshot's two columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimator {
    /// X; for a window of measures or an interpolation, the estimate of section 3.3.
    Distributed,
    /// Y: the cash that the page received, in the window, as a share.
    Received,
}

impl Estimator {
    /// Returns (importance, distributed) of (received, distributed).
    pub fn read(self, (received, distributed): (f64, f64)) -> (f64, f64) {
        match self {
            Estimator::Received => (received, distributed),
            Estimator::Distributed => (distributed, distributed),
        }
    }
}

impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Estimator::Distributed => "distributed",
            Estimator::Received => "received",
        })
    }
}

impl FromStr for Estimator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "distributed" => Ok(Estimator::Distributed),
            "received" => Ok(Estimator::Received),
            _ => Err(format!("{text:?}: received or distributed")),
        }
    }
}
