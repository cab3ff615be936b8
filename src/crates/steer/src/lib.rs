//! What to crawl next, answers about stores, and the ranking of a domain within the web.
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
