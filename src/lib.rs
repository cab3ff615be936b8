//! Importance of web pages, computed while they are crawled: Adaptive OPIC (S. Abiteboul, M. Preda, G. Cobena, WWW
//! 2003), which stores no links, and, if links are kept, PageRank with a certificate.
//!
//! Every page holds *cash*. When a page is visited, its cash is added to its *history* and distributed over its links.
//! The cash that flows through a page in the long run is its importance: PageRank.
//!
//! A [`Writer`] takes the records of a crawl into a store, a directory that survives crashes, and publishes rankings
//! ([`Snapshot`]), each with a proven bound on its distance from PageRank.
//!
//! ```
//! use cashrank::{Options, Record, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let home = tempfile::tempdir()?;
//! let mut writer = Writer::open(home.path().join("store"), &Options::default())?;
//! writer.push(&Record::new("http://a.example/", ["/about", "http://b.example/"]))?;
//! writer.push(&Record::new("http://a.example/about", ["/", "http://b.example/#part"]))?;
//! writer.push(&Record::new("http://b.example/", ["http://a.example/"]))?;
//! let ranking = writer.publish()?;
//! println!("the total error is at most {:?}", ranking.bound_l1());
//! for page in ranking.top(10)? {
//!     println!("{:>3} {:.4} {}", page.rank, page.importance, page.url);
//! }
//! # assert_eq!(ranking.top(10)?[0].url, "http://a.example/");
//! # assert!(ranking.bound_l1().is_some_and(|bound| bound <= 0.011));
//! # Ok(())
//! # }
//! ```
//!
//! A [`Store`] answers questions from any process: rankings, pages by URL, what to crawl next.
//!
//! An [`Engine`] keeps everything in memory and needs no directory:
//!
//! ```
//! use cashrank::{Config, Engine, Names, Reader, Record};
//!
//! # fn main() -> cashrank::Result<()> {
//! let mut engine = Engine::new(Config::default())?;
//! let mut reader = Reader::new(&engine, Names::Url)?;
//! let crawl = [
//!     ("http://a.example/", ["http://b.example/", "http://c.example/"]),
//!     ("http://b.example/", ["http://c.example/", "http://c.example/#part"]),
//!     ("http://c.example/", ["http://a.example/", "mailto:c@example.org"]),
//! ];
//! for (url, links) in crawl {
//!     reader.apply(&mut engine, &Record::new(url, links))?;
//! }
//! let ranking = engine.settled(1e-9)?;
//! assert_eq!(ranking.top(1)[0].url, "http://c.example/");
//! // PageRank: a = 0.05 + 0.85 c, b = 0.05 + 0.85 a/2, c = 0.05 + 0.85 (a/2 + b).
//! let a = (0.05 + 0.85 * 0.0925) / (1.0 - 0.85 * 0.85 * 0.925);
//! assert!((ranking.pages[0].importance - a).abs() < 1e-6);
//! assert!(ranking.window.bound_l1().is_some_and(|bound| bound < 1e-6));
//! # Ok(())
//! # }
//! ```
//!
//! | | |
//! |---|---|
//! | [`Writer`], [`Options`], [`Record`], [`Link`] | writing records of a crawl into a store |
//! | [`Config`], [`InputRules`], [`Shard`], [`Limits`] | settings that change results, rules for what is read, limits |
//! | [`Store`], [`Snapshot`], [`Page`], [`Change`], [`Info`] | rankings of a store, and exports |
//! | [`Window`], [`Certificate`], [`Effort`] | what a ranking was computed from, its certainty, and its cost |
//! | [`NextOptions`], [`Candidate`] | what to crawl next |
//! | [`Rank`], [`Mover`], [`movers`] | facts about a page by its URL, and changes between two rankings |
//! | [`Engine`], [`Reader`], [`Ranking`] | a crawl in memory |
//!
//! The crates below this one (`cashrank-store`, ...) are the program's, and may change with every version.

#![warn(missing_docs)]

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;

#[doc(inline)]
pub use cashrank_base::model::{
    Change, Digest, Error, FetchTotals, Fetches, Limits, Link, Names, Page, PageId, PageState,
    Reason, Record, Rel, Result, SelfLinks, Time, What,
};
#[doc(inline)]
pub use cashrank_base::rules::{Follow, InputRules, Scope, Shard};
#[doc(inline)]
pub use cashrank_graph::engine::{
    Certificate, Config, Counters, Effort, Engine, Estimator, InMemory, Ranking, ShardCounts, Span,
    Window, WindowPolicy,
};
#[doc(inline)]
pub use cashrank_steer::answers::{History, Moment, Mover, Store, movers};
#[doc(inline)]
pub use cashrank_steer::schedule::{Candidate, NextOptions};
#[doc(inline)]
pub use cashrank_store::session::{Options, Reader, Writer};
#[doc(inline)]
pub use cashrank_store::snapshot::export::Format as ExportFormat;
#[doc(inline)]
pub use cashrank_store::snapshot::{
    Info, KeepSnapshots, Rank, Snapshot, SnapshotEntry, SnapshotPage,
};
#[doc(inline)]
pub use cashrank_store::store::rows::KeepRows;
