//! Sites: pages grouped by host, by registered domain, or by host and the first folders of the path.
//!
//! A [`Level`] says which site a page belongs to, from its name alone. [`Sites`] is that of all pages as a column, with the
//! sites numbered in the order of their first pages. There are two kinds of ranks of sites:
//!
//! * [`RollUp`] sums what a ranking of pages says of the pages of each site;
//! * a [`SiteGraph`] has the links between sites, with weights ([`SiteLinks`]), to be ranked as links between pages are.
//!
//! Memory: 4 bytes a page for the column, and what sites, and pairs of sites that link, take. Pairs that do not fit
//! their limit are sorted through temporary files.

mod graph;
mod level;
mod map;
mod pairs;
mod roll;

pub use graph::{PAIR_BYTES, Pairing, SiteGraph, SiteLinks, pair_bytes_within};
pub use level::Level;
pub use map::{NO_SITE, Sites, SitesBuilder};
pub use roll::{PageFacts, RollUp, RollUpBy, SiteTotal};
