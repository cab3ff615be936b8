//! The service of `cashrank`: answers about a crawl over HTTP, for programs and for people.
//!
//! It knows nothing of stores: the program that starts it ([`Service::start`]) passes a [`Backend`], which has all
//! answers, and perhaps calls of another protocol ([`Calls`]). One thread serves all clients. Slow work runs on a few
//! other threads; [`ServiceLimits`] bounds how many jobs run and wait. A client that is slow, or requests too much, is
//! disconnected or gets an error: it uses no memory beyond the limits, and delays no other client.
//!
//! axum finds the function for a path, and its layers do what all answers have in common (`http.rs`). Connections are
//! hyper's (`server.rs`), because layers cannot limit clients that are slow to send or to take.

mod access;
mod http;
mod server;
mod workers;

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use serde::Serialize;

pub use access::{Token, is_loopback};
pub use server::{Service, ServiceLimits, ServiceOptions};
pub use workers::{Workers, start_thread, thread_time};

pub type Result<T> = std::result::Result<T, Problem>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum Problem {
    /// The request is invalid; the text says what would be valid.
    Asked(String),
    /// The requested thing does not exist (yet).
    Unknown(String),
    /// The answer is not available at the moment; the client should retry.
    Later(String),
    Failed(String),
}

/// Source of the answers, each of which is computed on a thread that may block. Only [`Backend::status`] and
/// [`Backend::metrics`], which are called often, must return quickly.
pub trait Backend: Send + Sync + 'static {
    /// Returns counts and the bound as JSON.
    fn status(&self) -> Result<Vec<u8>>;
    /// Returns the counts in the text format of Prometheus.
    fn metrics(&self) -> Result<String>;
    /// Returns the names of the questions that [`Backend::answer`] answers; each name is a path.
    fn questions(&self) -> &'static [&'static str];
    /// Answers a question with the given parameters, as JSON.
    fn answer(&self, question: &str, parameters: &[(String, String)]) -> Result<Vec<u8>>;
    /// Returns the newest list of pages to crawl next, best first, without waiting; it may be longer than requested.
    /// `None` while the first list is being made: the service calls again until it is there.
    fn next(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>>;
    /// Returns a URL in the form in which [`Backend::next`] names pages.
    fn canonical(&self, url: &str) -> String;
    /// Prints a message for the operator of the service.
    fn log(&self, text: &str);
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextQuery {
    pub n: usize,
    /// All other options by the names of `cashrank next`, without the dashes; a name may be repeated.
    pub options: Vec<(String, String)>,
}

/// Pages to crawl next, best first, as of a snapshot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NextList {
    pub snapshot: String,
    /// Identifier that no list of another snapshot has; ASCII, without quotes.
    pub version: String,
    /// Number of records read until the snapshot.
    pub records: u64,
    pub made: Option<SystemTime>,
    pub pages: Vec<NextPage>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NextPage {
    /// URL, or the name in a crawl without URLs.
    pub url: String,
    /// Score by the strategy: higher comes first.
    pub score: f64,
}

/// Protocol whose calls the service answers at its own address over HTTP/2, such as a frontier's.
pub trait Calls: Send {
    /// Starts with a service at `address`, within its limits. Fails if a resource of the protocol cannot be opened, or
    /// is something else (`InvalidInput`), or if the system allows too few threads (`WouldBlock`).
    fn start(
        self: Box<Self>,
        backend: &Arc<dyn Backend>,
        limits: &ServiceLimits,
        address: String,
    ) -> io::Result<RunningCalls>;
}

pub struct RunningCalls {
    pub routes: Router,
    pub workers: Workers,
    /// Owner of background work, which ends when this is dropped: after the thread that serves clients.
    pub keeper: Box<dyn Any + Send + Sync>,
}
