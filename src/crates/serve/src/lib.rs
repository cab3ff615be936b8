//! The service of `cashrank`: answers about a crawl over HTTP, for programs and for people.
//!
//! It knows nothing of stores: the program that starts it ([`Service::start`]) passes a [`Backend`], which has all
//! answers, and perhaps calls of another protocol ([`Calls`]). One thread serves all clients. Slow work runs on a few
//! other threads; [`ServiceLimits`] bounds how many jobs run and wait. A client that is slow, or requests too much, is
//! disconnected or gets an error: it uses no memory beyond the limits, and delays no other client.
//!
//! axum finds the function for a path, and its layers do what all answers have in common (`http.rs`). Connections are
//! hyper's (`server.rs`, `held.rs`), because layers cannot limit clients that are slow to send or to take.

mod access;
mod backend;
mod held;
mod http;
mod server;
mod workers;

pub use access::{Token, is_loopback};
pub use backend::{Backend, Calls, NextList, NextPage, NextQuery, Problem, Result, RunningCalls};
pub use server::{Service, ServiceLimits, ServiceOptions};
pub use workers::{Workers, start_thread, thread_time};
