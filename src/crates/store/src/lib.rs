//! Stores on disk: what a crawl said, in checkpoints that survive crashes, and the rankings published from it.
//!
//! ```
//! use cashrank_base::model::Record;
//! use cashrank_store::session::{Options, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let home = tempfile::tempdir()?;
//! let mut writer = Writer::open(home.path().join("store"), &Options::default())?;
//! writer.push(&Record::new("http://a.example/", ["/about"]))?;
//! let ranking = writer.publish()?;
//! assert_eq!(ranking.info().pages, 2);
//! # Ok(())
//! # }
//! ```
//!
//! | | |
//! |---|---|
//! | [`store`] | the files of a store, its checkpoints, and what a commit holds |
//! | [`session`] | one writer: records in, checkpoints and rankings out |
//! | [`snapshot`] | published rankings: making, reading, comparing and exporting them |
//! | [`shards`] | several stores of one crawl, ranked together |
//! | [`memory`], [`check`] | memory that an ingest needs; damage of a store |

#[cfg(any(test, feature = "testing"))]
use cashrank_base::fuzz;
use cashrank_base::{Error, Limits, Result};
use cashrank_base::{codec, disk, model, rules, threads, url};
#[cfg(any(test, feature = "testing"))]
use cashrank_crawl::formats;
use cashrank_crawl::{batch, decode, source};
use cashrank_graph::{engine, graph, metrics, rank, rows, sites};

pub mod check;
pub mod memory;
pub mod session;
pub mod shards;
pub mod snapshot;
pub mod store;
