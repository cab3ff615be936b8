//! Joint ranking of the shards of one crawl: the work of each shard, and the messages between them ([`Peers`]).

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod names;
mod ranks;
mod remote_pages;
mod settle;
mod together;

pub use crate::rank::peers::{OneProcess, Peers, RemotePages};
pub use remote_pages::verify_remote;
pub use settle::{RankedShard, SettleOptions, Together, settle};
pub use together::{LocalShard, check_together, local_shards, open_shards};
