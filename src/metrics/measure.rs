//! Trait of measures that compare two rankings, and the table of them.

use std::fmt::Display;

use serde::Serialize;

use super::scores::Row;

/// Page of either side, with its normalised scores: 0 if absent.
pub(super) struct Pair<'a> {
    pub left: Option<&'a Row>,
    pub right: Option<&'a Row>,
    pub left_share: f64,
    pub right_share: f64,
}

/// Measure of the distance between two rankings. The right one is the reference.
pub(super) trait Measure: Sized {
    /// Result: fields of JSON, and lines of `name<TAB>value`.
    type Found: Serialize + Display;

    /// Called before pages are joined. May reorder the rows of either side.
    fn begin(left: &mut [Row], right: &mut [Row]) -> Self;

    /// Takes a page. Each page of the union comes once.
    fn page(&mut self, pair: &Pair<'_>);

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

        struct Measures {
            $($name: $measure,)*
        }

        impl Measure for Measures {
            type Found = $comparison;

            fn begin(left: &mut [Row], right: &mut [Row]) -> Measures {
                Measures {
                    $($name: Measure::begin(left, right),)*
                }
            }

            fn page(&mut self, pair: &Pair<'_>) {
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
