//! The two readings of a window.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which of a snapshot's two estimates is its importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimator {
    /// X; for a window of measures or an interpolation, what section 3.3 makes of them.
    Distributed,
    /// Y.
    Received,
}

impl Estimator {
    /// A page's importance and what it distributed, of (received, distributed).
    pub(crate) fn read(self, (received, distributed): (f64, f64)) -> (f64, f64) {
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
