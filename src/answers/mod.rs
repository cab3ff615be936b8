//! Questions about a store, and their answers, as types that the command, the service and other programs share.
//!
//! | | |
//! |---|---|
//! | [`Question`] | what may be asked of a snapshot, by name |
//! | [`NEXT`], [`next_options`] | what may be asked of a list of pages to crawl, by name |
//! | [`Page`], [`Rank`], [`Top`], [`Links`], [`Movers`], [`Host`] | answers, for people and as JSON |
//! | [`Coverage`] | how much of what readers see was read |
//! | [`pages_of`] | pages by URLs in any form |

mod coverage;
mod next;
mod page;
mod parameter;
mod question;

pub use coverage::{Coverage, Covered, CoveredHost, Seeds};
pub use next::{NEXT, next_options};
pub use page::{Page, Rank, Top, canonical, pages_of, top};
pub use parameter::{Parameter, Takes};
pub use question::{Host, Links, Mover, Movers, Question, Target};
