//! Simulated crawls, which hold the engine to exact PageRank.

pub mod crawl;
pub mod errors;
pub mod experiment;
pub mod figures;
pub mod local;
pub mod plot;
pub(crate) mod random;
pub mod steer;
pub mod strategy;
pub mod web;
