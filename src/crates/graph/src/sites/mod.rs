//! Sites: pages grouped by host, by registered domain, or by host and the first folders of the path.
//!
//! A [`Level`] derives the site of a page from its name alone. [`Sites`] is a column with the site of every page, with
//! sites numbered in the order of their first pages. Sites are ranked in two ways:
//!
//! * a [`SiteTotal`] sums a ranking of pages over the pages of a site;
//! * a [`site_graph`] has the weighted links between sites ([`SiteLinks`]), which are ranked like links between pages.
//!
//! Memory: 4 bytes per page for the column, plus the sites, and 12 bytes per pair of linked sites, or 4 if all weigh the
//! same. Pairs are sorted in at most 256 MiB, the rest in a temporary file.

mod graph;
mod level;
mod map;

pub use graph::{Pairing, SiteLinks, site_graph};
pub use level::Level;
pub use map::{NO_SITE, SiteTotal, Sites, SitesBuilder};
