//! Windows: the part of the history from which importance is computed (section 3.3 of the paper).
//!
//! A window of *sums* begins at a retained mark, so that all a page distributed since is one number: `auto`, `whole`,
//! and `fixed` with the estimator `received`. A window of *measures* keeps each visit separately: `fixed` with
//! `distributed`, and `variable`. An *interpolation* keeps one number per page, which decays with time.

mod auto;
mod fixed;
mod interpolation;
mod measures;
mod policy;
mod shape;
mod span;
mod sums;
mod variable;
mod whole;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::estimator::Estimator;
use interpolation::Folding;
use shape::WindowSpec;
use sums::SumsPolicy;

pub use fixed::FixedWindow;
pub(super) use interpolation::default_weight;
pub use measures::KeptMeasures;
pub use policy::Policy;
pub use shape::Shape;
pub use span::{Span, TimeTable};

/// Content of a page's rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowContent {
    /// Sums between marks.
    Sums,
    /// Separate measures.
    Measures(KeptMeasures),
    /// One number, folded for a window of this length.
    Folded(Span),
}

/// Defines the enum of all windows from a table: for each its documentation, its parameters, the type behind [`Shape`],
/// and its specification. Names, help and completions come from it.
macro_rules! windows {
    ($($(#[$doc:meta])* $item:ident $(($chosen:ident: $type:ty))? => $shape:expr, $entry:path;)*) => {
        /// Policy that selects the window a store keeps.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub enum WindowPolicy {
            $($(#[$doc])* $item $(($type))?,)*
        }

        const ANNOUNCED: &[WindowSpec] = &[$($entry),*];

        impl WindowPolicy {
            /// Returns the implementation of this kind of window.
            pub fn shape(self) -> Box<dyn Shape> {
                match self {
                    $(WindowPolicy::$item $(($chosen))? => Box::new($shape),)*
                }
            }
        }
    };
}

windows! {
    /// Window since the retained mark that gives the least certified residual.
    Auto => auto::Auto, auto::WINDOW;
    /// Everything since the start of the stream.
    Whole => whole::WholeWindow, whole::WINDOW;
    /// Window of the last N turnovers or seconds.
    Fixed(window: FixedWindow) => window, fixed::WINDOW;
    /// Last N measures of every page, 1 to [`MEASURES_MAX`].
    Variable(last: u32) => variable::Variable(last), variable::WINDOW;
    /// One interpolated measure per page, for a window of this length.
    Interpolation(span: Span) => interpolation::Interpolation(span), interpolation::WINDOW;
}

/// Largest number of measures per page that a policy may request.
pub const MEASURES_MAX: u32 = 1000;

impl WindowPolicy {
    /// Returns the ways to write a window, each with a short description.
    pub fn forms() -> impl Iterator<Item = (&'static str, &'static str)> {
        ANNOUNCED.iter().flat_map(|window| window.forms).copied()
    }

    /// Returns the policy by which rows are kept, if importance is read by `estimator`.
    pub fn policy(self, estimator: Estimator) -> Arc<dyn Policy> {
        match self.shape().kept(estimator) {
            RowContent::Sums => Arc::new(SumsPolicy),
            RowContent::Measures(measures) => Arc::new(measures),
            RowContent::Folded(_) => Arc::new(Folding),
        }
    }

    /// Returns the measures that are kept, if any.
    pub fn measures(self, estimator: Estimator) -> Option<KeptMeasures> {
        match self.shape().kept(estimator) {
            RowContent::Measures(measures) => Some(measures),
            RowContent::Sums | RowContent::Folded(_) => None,
        }
    }

    /// Returns true if marks (copies of the cash cells) are used.
    pub fn uses_marks(self, estimator: Estimator) -> bool {
        self.shape().uses_marks(estimator)
    }

    /// Returns the length of the window, if it has one.
    pub fn span(self) -> Option<Span> {
        self.shape().span()
    }

    /// Returns true if the window supports `estimator`: receipts are known since marks only.
    pub fn allows(self, estimator: Estimator) -> bool {
        estimator == Estimator::Distributed || self.shape().allows_received()
    }

    /// Returns the default estimator: `received` if the window supports it.
    pub fn estimator(self) -> Estimator {
        if self.allows(Estimator::Received) {
            Estimator::Received
        } else {
            Estimator::Distributed
        }
    }
}

impl fmt::Display for WindowPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shape().form())
    }
}

impl FromStr for WindowPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let window = ANNOUNCED.iter().find(|window| window.name == name);
        let read = window.and_then(|window| (window.read)(rest));
        read.unwrap_or_else(|| {
            let forms: Vec<&str> = WindowPolicy::forms().map(|(form, _)| form).collect();
            let forms = forms.join(", ");
            Err(format!(
                "unknown window {text:?}: {forms} (T in turnovers, like 1.5, or of fetch time, like 90d)"
            ))
        })
    }
}

fn measures(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=MEASURES_MAX) => Ok(number),
        _ => Err(format!(
            "{text:?} is not a number of measures: 1 to {MEASURES_MAX}"
        )),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_written_as_it_is_read() {
        for text in [
            "auto",
            "whole",
            "fixed:1.5",
            "fixed:90d",
            "fixed:0.5,min=3",
            "fixed:8,groups=4",
            "fixed:90d,min=2,groups=1000",
            "variable:8",
            "interpolation:2",
            "interpolation:36h",
        ] {
            let policy: WindowPolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
        }
        assert_eq!("fixed:1.5x".parse(), "fixed:1.5".parse::<WindowPolicy>());
        assert_eq!("fixed:7d".parse(), "fixed:1w".parse::<WindowPolicy>());
    }

    /// Help is right: each form, with a length and numbers filled in, parses as a window, and every kind has one.
    #[test]
    fn every_form_is_a_window() {
        for window in ANNOUNCED {
            assert!(!window.forms.is_empty());
            for (form, about) in window.forms {
                let text = form.replace('T', "1.5").replace(['M', 'N', 'K'], "2");
                let read: WindowPolicy = text.parse().unwrap();
                assert_eq!(read.to_string(), text, "{about}");
                assert!(form.starts_with(window.name));
            }
        }
    }

    #[test]
    fn what_is_no_window_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "unknown window"),
            ("fixed", "unknown window"),
            ("variable", "unknown window"),
            ("variable:0", "not a number of measures"),
            ("variable:-1", "not a number of measures"),
            ("variable:1001", "not a number of measures"),
            ("fixed:0", "not a window length"),
            ("fixed:-1", "not a window length"),
            ("fixed:NaN", "not a window length"),
            ("fixed:1e9", "not a window length"),
            ("fixed:0d", "not a window length"),
            ("fixed:1.5d", "not a window length"),
            ("fixed:9999999d", "not a window length"),
            ("fixed:1,min=0", "not a number of measures"),
            ("fixed:1,least=2", "not a window length"),
            ("fixed:1,groups=0", "not a number of measures"),
            ("fixed:1,groups=2,min=1", "not a number of measures"),
            ("interpolation:0", "not a window length"),
        ] {
            let error = text.parse::<WindowPolicy>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
