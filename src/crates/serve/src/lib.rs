//! The service of `cashrank`: answers about a crawl over HTTP, for programs and for people.
//!
//! It knows nothing of stores: the program that starts it passes a [`Backend`], which has all answers. One thread
//! serves all clients. Slow work runs on a few other threads; [`ServiceLimits`] bounds how many jobs run and wait. A
//! client that is slow, or requests too much, is disconnected or gets an error: it uses no memory beyond the limits,
//! and delays no other client.
//!
//! ```
//! # use std::sync::Arc;
//! use cashrank_serve::{Backend, Service, ServiceOptions};
//!
//! fn serve(backend: Arc<dyn Backend>) -> std::io::Result<()> {
//!     let listen = ([127, 0, 0, 1], 0).into();
//!     let service = Service::start(ServiceOptions::new(listen), backend)?;
//!     println!("http://{}/", service.address());
//!     service.stop();
//!     Ok(())
//! }
//! ```
//!
//! | path | answers |
//! |---|---|
//! | `/` | a page for people |
//! | `/status` | counts, the bound, snapshots so far |
//! | `/NAME` | what else the backend answers, by its names: `/top`, `/rank` |
//! | `/next` | pages to crawl next |
//! | `/metrics` | counts, for Prometheus |
//! | others | calls of another protocol, over HTTP/2, if there are any ([`Calls`]): only with the feature `frontier` |
//!
//! axum finds the function for a path, and its layers do what all answers have in common (`http.rs`). Connections are
//! hyper's (`server.rs`, `held.rs`): layers see a request once its header has arrived, and an answer until it is handed
//! over, so they cannot limit the time and memory of clients that are slow to send or to take.

mod access;
mod backend;
mod held;
mod http;
mod limits;
mod server;
mod workers;

pub use access::{Token, is_loopback};
pub use backend::{Backend, Calls, NextList, NextPage, NextQuery, Problem, Result, RunningCalls};
pub use limits::ServiceLimits;
pub use server::{Service, ServiceOptions};
pub use workers::{Workers, start_thread, thread_time};
