//! What to crawl next, answers about stores, and the ranking of a domain within the web.
//!
//! ```
//! use cashrank_base::model::Record;
//! use cashrank_steer::answers::Store;
//! use cashrank_steer::schedule::NextOptions;
//! use cashrank_store::session::{Options, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let dir = home.path().join("store");
//! let mut writer = Writer::open(&dir, &Options::default())?;
//! writer.push(&Record::new("http://a.example/", ["/about"]))?;
//! writer.publish()?;
//! let list = Store::open(&dir)?.next(&NextOptions::default())?;
//! assert_eq!(list[0].url, "http://a.example/about");
//! # Ok(())
//! # }
//! ```
//!
//! | | |
//! |---|---|
//! | [`schedule`] | crawl orders, refreshing, and a list that follows a crawl |
//! | [`local`] | the ranking of one domain within the web (Davis and Dhillon) |
//! | [`answers`] | questions about a store, and their answers |

use cashrank_base::{Error, Result};
use cashrank_base::{disk, model, rules, threads, url};
use cashrank_crawl::decode;
use cashrank_graph::{engine, graph, metrics, rank, rows, sites};
use cashrank_store::{check, snapshot, store};

pub mod answers;
pub mod local;
pub mod schedule;
