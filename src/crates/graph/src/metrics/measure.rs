//! Trait of measures that compare two rankings, and the table of them.

use std::fmt::Display;

use serde::Serialize;

use super::scores::ScoreRow;

/// Page of either side, with its normalised scores: 0 if absent.
pub(super) struct ScorePair<'a> {
    pub left: Option<&'a ScoreRow>,
    pub right: Option<&'a ScoreRow>,
    pub left_share: f64,
    pub right_share: f64,
}

/// Measure of the distance between two rankings. The right one is the reference.
pub(super) trait Measure: Sized {
    /// Result: fields of JSON, and lines of `name<TAB>value`.
    type Found: Serialize + Display;

    /// Called before pages are joined. May reorder the rows of either side.
    fn begin(left: &mut [ScoreRow], right: &mut [ScoreRow]) -> Self;

    /// Takes a page. Each page of the union comes once.
    fn page(&mut self, pair: &ScorePair<'_>);

    /// Called once all pages have come and the sides' memory is free.
    fn end(self) -> Self::Found;
}

/// Defines [`Comparison`](super::Comparison) from a table of measures, in its order.
macro_rules! measures {
    ($(#[$attribute:meta])* $comparison:ident;
     $($(#[$doc:meta])* $name:ident: $found:path, by $measure:path;)*) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Serialize)]
        pub struct $comparison {
            $($(#[$doc])* #[serde(flatten)] pub $name: $found,)*
        }

        struct MeasureSet {
            $($name: $measure,)*
        }

        impl Measure for MeasureSet {
            type Found = $comparison;

            fn begin(left: &mut [ScoreRow], right: &mut [ScoreRow]) -> MeasureSet {
                MeasureSet {
                    $($name: Measure::begin(left, right),)*
                }
            }

            fn page(&mut self, pair: &ScorePair<'_>) {
                $(self.$name.page(pair);)*
            }

            fn end(self) -> $comparison {
                $comparison {
                    $($name: self.$name.end(),)*
                }
            }
        }

        impl fmt::Display for $comparison {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(write!(f, "{}", self.$name)?;)*
                Ok(())
            }
        }
    };
}

pub(super) use measures;
