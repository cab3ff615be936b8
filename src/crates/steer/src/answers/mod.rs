//! Questions about a store and their answers, as types that the command, the service and other programs share.

mod coverage;
mod history;
mod links;
mod list;
mod next;
mod question;
mod rankings;
mod store;

pub use crate::metrics::moved::Mover;
pub use crate::rules::list::SkippedLines;
pub use coverage::{Covered, CoveredHost, SeedCoverage};
pub use history::{History, HistoryOptions, Moment, SnapshotMovers, history, movers};
pub use links::{Ends, LinkList, LinkSweep, LinkTarget};
pub use list::{LookedUp, each_listed, look_up, seeds_of};
pub use next::{NEXT, Parameter, SkippedOf, Takes};
pub use question::{LISTING_MAX, Question};
pub use rankings::{RankingOf, Rankings, Top, ranks_of};
pub use store::{Resettling, Store};

pub use crate::snapshot::{Rank, canonical, pages_of};
