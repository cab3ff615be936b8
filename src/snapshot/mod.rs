//! Published rankings.

pub mod export;
