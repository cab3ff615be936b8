//! Questions about a store, and their answers, as types that the command, the service and other programs share.
//!
//! | | |
//! |---|---|
//! | [`Question`] | what may be asked of a snapshot, by name |
//! | [`NEXT`] | what may be asked of a list of pages to crawl, by name |
//! | [`Store`] | a store to be asked |
//! | [`Page`](crate::model::Page), [`Rank`], [`History`], [`Top`], [`LinkList`], [`SnapshotMovers`], [`Host`] | answers, for people and as JSON |
//! | [`Ends`] | the links of a page, and those to it |
//! | [`SeedCoverage`] | how much of what readers see was read |
//! | [`Resettling`] | a closer ranking of what a store holds |
//! | [`Rankings`] | the shards of a crawl, read as one |
//! | [`pages_of`], [`ranks_of`], [`look_up`] | pages by URLs in any form |

mod coverage;
mod history;
mod links;
mod list;
mod movers;
mod next;
mod page;
mod parameter;
mod question;
mod settle;
mod shards;
mod store;

pub use coverage::{Covered, CoveredHost, SeedCoverage, Seeds};
pub use history::{History, HistoryOptions, Moment, history};
pub use links::{Ends, FetchState, LinkList, LinkSweep, LinkTarget, RankedEnd};
pub use list::{LookedUp, NameSet, SkippedLines, look_up, names_of, seeds_of};
pub use movers::{Mover, SnapshotMovers, movers};
pub use next::{NEXT, SkippedOf};
pub use page::{RankingOf, Top, ranks_of};
pub use parameter::{Parameter, Takes};
pub use question::{Host, Question};
pub use settle::Resettling;
pub use shards::Rankings;
pub use store::Store;

pub use crate::snapshot::{Rank, canonical, pages_of};
