//! The shards of one crawl, ranked together: what each shard does, and what it exchanges with the others ([`Peers`]).

mod ranks;

pub use crate::rank::peers::{OneProcess, Peers, RemotePages};
pub use ranks::{ShardRanking, ShardScores, rank_together};
