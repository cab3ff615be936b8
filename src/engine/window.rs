//! The part of the history that importance is read from (section 3.3 of the paper).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::history::Row;
use super::ledger::ENDOWMENT;

/// Which window a store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum WindowPolicy {
    /// Of the windows since a retained mark, the one with the least certified residual.
    Auto,
    /// Everything since the start of the stream.
    Whole,
    /// One interpolated measure a page, for a window of this many turnovers of the supply.
    Interpolation(f64),
}

impl WindowPolicy {
    /// Whether marks (copies of the cash cells) are of use.
    pub fn uses_marks(self) -> bool {
        matches!(self, WindowPolicy::Auto)
    }

    /// Whether measures need the clock.
    pub(crate) fn is_timed(self) -> bool {
        matches!(self, WindowPolicy::Interpolation(_))
    }

    /// Length of an interpolation window in units of G, at a time when `pages` are known.
    fn span(turnovers: f64, pages: u64) -> f64 {
        turnovers * pages as f64 * ENDOWMENT as f64
    }

    /// Joins `next` into `row`: measures of one page, `row` the older. False: the policy needs
    /// them apart (raw measures of an interpolation wait for the state they will be folded into).
    pub(crate) fn join(self, row: &mut Row, next: &Row) -> bool {
        match self {
            WindowPolicy::Auto | WindowPolicy::Whole => {
                row.cash += next.cash;
                row.take_visits(next);
                true
            }
            WindowPolicy::Interpolation(turnovers) => {
                if !row.folded {
                    return false;
                }
                interpolate(row, next, turnovers);
                true
            }
        }
    }

    /// Turns a page's oldest raw row into its first state. `admitted` is (G, pages) at admission.
    pub(crate) fn open(self, row: &Row, admitted: (u128, u64)) -> Row {
        let WindowPolicy::Interpolation(turnovers) = self else {
            return *row;
        };
        let (clock, pages) = admitted;
        let mut state = Row {
            page: row.page,
            // The default history: a page of mean importance, which is what its endowment says.
            cash: Self::span(turnovers, 1) as u128,
            clock,
            pages,
            folded: true,
            ..Row::default()
        };
        interpolate(&mut state, row, turnovers);
        state
    }

    /// The history of a page without any measure, in units of G. Only for an interpolation.
    pub(crate) fn default_history(self) -> u128 {
        match self {
            WindowPolicy::Interpolation(turnovers) => Self::span(turnovers, 1) as u128,
            WindowPolicy::Auto | WindowPolicy::Whole => 0,
        }
    }
}

/// Section 3.3, Interpolation: `H (T - (G - G_i)) / T + C` if `G - G_i < T`, else
/// `C T / (G - G_i)`. H is kept in whole units; the fraction of a unit is dropped.
/// A row without a measure (an unchanged page) moves the last fetch only.
fn interpolate(state: &mut Row, next: &Row, turnovers: f64) {
    state.take_visits(next);
    if next.clock == 0 {
        return;
    }
    let span = WindowPolicy::span(turnovers, next.pages);
    let gone_by = (next.clock - state.clock) as f64;
    state.cash = if gone_by < span {
        (state.cash as f64 * ((span - gone_by) / span)) as u128 + next.cash
    } else {
        (next.cash as f64 * (span / gone_by)) as u128
    };
    state.clock = next.clock;
    state.pages = next.pages;
}

impl fmt::Display for WindowPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WindowPolicy::Auto => f.write_str("auto"),
            WindowPolicy::Whole => f.write_str("whole"),
            WindowPolicy::Interpolation(turnovers) => write!(f, "interpolation:{turnovers}"),
        }
    }
}

impl FromStr for WindowPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "auto" => Ok(WindowPolicy::Auto),
            None if text == "whole" => Ok(WindowPolicy::Whole),
            Some(("interpolation", turnovers)) => {
                let number = turnovers.strip_suffix('x').unwrap_or(turnovers);
                match number.parse::<f64>() {
                    Ok(t) if t > 0.0 && t <= 1e6 => Ok(WindowPolicy::Interpolation(t)),
                    _ => Err(format!(
                        "{turnovers:?} is no window length: a number of turnovers above 0 and at \
                         most 1000000, like 1.5 or 1.5x"
                    )),
                }
            }
            _ => Err(format!(
                "unknown window {text:?}: auto, whole or interpolation:T (T in turnovers, like 1.5)"
            )),
        }
    }
}

impl From<WindowPolicy> for String {
    fn from(policy: WindowPolicy) -> String {
        policy.to_string()
    }
}

impl TryFrom<String> for WindowPolicy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
