//! The service of `cashrank`: answers about a crawl over HTTP, for programs and for people.
//!
//! It knows nothing of stores: the program that starts it passes a [`Backend`], which has all answers.
//! One thread serves all clients. Slow work runs on a few other threads; [`ServiceLimits`] bounds how many jobs run
//! and wait. A client that is slow, or requests too much, is disconnected or gets an error: it uses no memory beyond
//! the limits, and delays no other client.
//!
//! ```
//! # use std::sync::Arc;
//! use cashrank_serve::{Service, ServiceOptions, fixed::FixedBackend};
//!
//! # fn main() -> std::io::Result<()> {
//! let listen = ([127, 0, 0, 1], 0).into();
//! let service = Service::start(ServiceOptions::new(listen), Arc::new(FixedBackend::default()))?;
//! println!("http://{}/", service.address());
//! service.stop();
//! # Ok(())
//! # }
//! ```
//!
//! | path | answers |
//! |---|---|
//! | `/` | a page for people |
//! | `/status` | counts, the bound, snapshots so far |
//! | `/end` | whether the service ends, as soon as it does |
//! | `/NAME` | what else the backend answers, by its names: `/top`, `/rank` |
//! | `/next` | pages to crawl next |
//! | `/metrics` | counts, for Prometheus |
//! | others | calls of another protocol, over HTTP/2, if there are any ([`Calls`]): only with the feature `frontier` |

mod access;
mod backend;
mod calls;
pub mod cpu_time;
mod explained;
#[cfg(feature = "frontier")]
mod fence;
pub mod fixed;
mod held;
mod http;
mod limits;
mod metrics;
mod pool;
mod query;
mod server;
mod strangers;
mod stream;
mod workers;

pub use access::{Token, is_loopback};
pub use backend::{
    Backend, Counts, CoverageSummary, IngestStatus, NextList, NextPage, NextQuery, Problem, Rate,
    Result, ServiceStatus, SnapshotSummary,
};
pub use calls::{Answer, Body, BodyError, CallHandler, Calls, RunningCalls};
pub use limits::{ServiceLimits, Timeouts};
pub use pool::{PoolEnd, start as start_thread};
pub use server::{Service, ServiceOptions};
pub use workers::Workers;
