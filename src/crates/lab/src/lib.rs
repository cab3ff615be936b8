//! Experiments with [`cashrank`] for its papers, figures and benchmarks, which the product does not need.
//! The commands of `cashrank-lab` run them.
//!
//! | module | holds |
//! |---|---|
//! | [`web`] | webs made from a seed or a graph, which change while they are crawled |
//! | [`crawl`], [`strategy`] | the engine driven through a web by one of the paper's crawl strategies |
//! | [`experiment`], [`errors`] | such a crawl measured against exact PageRank |
//! | [`figures`] | the experiments of Abiteboul, Preda and Cobena (2003) |
//! | [`steer`], [`orders`] | how early crawl orders find the important pages; orders that only papers use |
//! | [`local`] | the experiments of Davis and Dhillon (2006) with local domains |
//! | [`plot`], [`svg`], [`folder`] | drawings, and where they go |

pub mod crawl;
pub mod errors;
pub mod experiment;
pub mod figures;
mod flow;
pub mod folder;
pub mod local;
pub mod orders;
pub mod plot;
mod random;
pub mod steer;
pub mod strategy;
pub mod svg;
pub mod web;
