//! The shards of one crawl, ranked together: what each shard does, and what it exchanges with the others ([`Peers`]).

pub use crate::rank::peers::{OneProcess, Peers, RemotePages};
