//! Cooperation of processes of `cashrank` on one crawl: they meet, authenticate each other, and exchange messages.
//!
//! [`join`] connects N processes, each of which has the same list of addresses and the same secret; they then exchange
//! bytes, in rounds ([`Cluster::exchange`]), on timely dataflow. [`Cluster::assign`] announces the shards of each
//! process; after it, messages go between shards ([`Peers`](cashrank_store::shards::Peers)).
//!
//! **Guarantees.** A message is from a process that knows the secret and began with the same program, shards, number of
//! processes and digest, and nobody on the way read or changed it: Noise `NNpsk0` over Curve25519, ChaCha20-Poly1305
//! and BLAKE2s. Strangers that connect are refused and reported ([`Joining::tell`]); once all are connected, none listens
//! any more. If a process ends, or is silent for [`Joining::silence`], all others get an error that names it, and nothing
//! more is exchanged.
//!
//! **Timely** panics if a peer is lost. Here it never notices: the stream from which it reads blocks instead (`line`),
//! and the error goes to the caller.

mod exchange;
mod line;
mod meeting;
mod noise;

use std::io;

use cashrank_base::{Error, Result};

pub use exchange::Cluster;
pub use meeting::{Joining, Secret, addresses};

/// Connects the processes. Calls `is_stopped` often meanwhile, and stops waiting once that returns true. Fails with
/// [`Error::Usage`] if one has other settings, and with [`Error::Io`] if some did not come.
pub fn join(joining: Joining, is_stopped: &dyn Fn() -> bool) -> Result<Cluster> {
    let met = meeting::meet(&joining, is_stopped)?;
    let lines = met.lines.clone();
    Cluster::start(&joining, met).inspect_err(|error| {
        let why = reason(error);
        lines.iter().flatten().for_each(|line| line.abandon(&why));
    })
}

fn failed(what: impl Into<String>) -> Error {
    Error::io("processes", "work together")(io::Error::other(what.into()))
}

fn reason(error: &Error) -> String {
    match error {
        Error::Io { path, source, .. } if path.as_os_str() == "processes" => source.to_string(),
        other => other.to_string(),
    }
}

fn no_thread(error: io::Error) -> Error {
    failed(format!(
        "cannot start a thread: {error}; each process takes some beside those that compute, and two for each of the others: \
         raise the limit of processes (`ulimit -u`, `TasksMax=` of systemd, that of a container)"
    ))
}
