//! Importance of web pages, computed while they are crawled: Adaptive OPIC (S. Abiteboul, M. Preda, G. Cobena,
//! WWW 2003), which needs no stored links; and, where links are kept, PageRank with a certificate.
//!
//! Every page holds *cash*. When a page is visited, its cash is written into its *history* and handed
//! out over its links. The cash that flows through a page in the long run is its importance: PageRank.
//!
//! ```
//! use std::borrow::Cow;
//!
//! use cashrank::decode::{Link, Names, Record};
//! use cashrank::{Config, Engine};
//!
//! # fn main() -> cashrank::Result<()> {
//! let mut engine = Engine::new(Config::default())?;
//! let mut reader = engine.reader(Names::Url)?;
//! let crawl = [
//!     ("http://a.example/", ["http://b.example/", "http://c.example/"]),
//!     ("http://b.example/", ["http://c.example/", "http://c.example/#part"]),
//!     ("http://c.example/", ["http://a.example/", "mailto:c@example.org"]),
//! ];
//! engine.begin_pass()?;
//! for (url, links) in &crawl {
//!     let links = links.iter().map(|link| Link::to(link.as_bytes()));
//!     let record = Record {
//!         url: Cow::Borrowed(url.as_bytes()),
//!         links: links.collect(),
//!         ..Record::default()
//!     };
//!     reader.apply(&mut engine, &record)?;
//! }
//! let ranking = engine.settled(1e-9)?;
//! assert_eq!(ranking.top(1)[0].url, "http://c.example/");
//! // PageRank: a = 0.05 + 0.85 c, b = 0.05 + 0.85 a/2, c = 0.05 + 0.85 (a/2 + b).
//! let a = (0.05 + 0.85 * 0.0925) / (1.0 - 0.85 * 0.85 * 0.925);
//! assert!((ranking.pages[0].importance - a).abs() < 1e-6);
//! let bound = ranking.window.certificate.and_then(|c| c.received_l1);
//! assert!(bound.is_some_and(|bound| bound < 1e-6));
//! # Ok(())
//! # }
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`source`] | inputs: decompression, verification, chunks of whole records |
//! | [`decode`] | one pure parser a format |
//! | [`url`] | the canonical form of a URL |
//! | [`batch`] | records with their distinct names, hashed once |
//! | [`formats`] | the formats by name, and a guess |
//! | [`archive`] | crawl archives: compact, for replays |
//! | [`cdxj`] | captures of archives in the order of their fetches |
//! | [`engine`] | index, ledger, history, estimates: no clock, no files, no threads |
//! | [`store`] | what outlives the process: checkpoint and recovery |
//! | [`check`] | looking for damage in a store's files |
//! | [`rows`] | the links of pages, as page numbers |
//! | [`snapshot`] | published rankings, and exports |
//! | [`schedule`] | what to crawl next: crawl orders, refreshing |
//! | [`answers`] | questions about a store by name, and their answers for people |
//! | [`memory`] | what an ingest needs of it, and what there is |
//! | [`Writer`] | records into a store, one by one |
//! | [`ingest`] | all of these together: the `ingest` command |
//! | [`inspect`](mod@inspect) | what an ingest would read in an input: the `inspect` command |
//! | [`local`] | the global PageRank of a local domain, and the pages outside to fetch for it |
//! | [`graph`] | links as a table in memory |
//! | [`rank`] | PageRank from the links of pages: settled with a certificate, or exact |
//! | [`load`](mod@load) | inputs read into memory: a graph, or a crawl |
//! | [`metrics`] | comparing rankings |

#![warn(missing_docs)]

pub mod answers;
pub mod archive;
pub mod batch;
pub mod cdxj;
pub mod check;
mod codec;
pub mod decode;
mod disk;
pub mod engine;
pub mod formats;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod graph;
pub mod ingest;
pub mod inspect;
#[doc(hidden)]
pub mod internal;
#[cfg(test)]
mod ladder;
pub mod load;
pub mod local;
pub mod memory;
pub mod metrics;
mod model;
mod pipeline;
pub mod rank;
pub mod rows;
pub mod rules;
pub mod schedule;
mod session;
pub mod snapshot;
pub mod source;
pub mod store;
mod threads;
pub mod url;

pub use engine::{Config, Engine, Ranking};
pub use model::{Error, Limits, Result, SETTINGS, name_settings};
pub use session::{Options, Reader, Writer};
