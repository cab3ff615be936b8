//! Cooperation of several processes of `cashrank` on one crawl: they find each other, prove that they belong together,
//! and exchange messages.
//!
//! Independent of stores: [`join`] connects N processes, each of which has the same list of addresses and the same
//! secret; they then exchange bytes, in rounds ([`Cluster::exchange`]), on timely dataflow.
//!
//! ```
//! use cashrank_cluster::{Address, Joining, JointPlan, Secret, join};
//!
//! # fn main() -> Result<(), cashrank_cluster::ClusterError> {
//! # let home = tempfile::tempdir().unwrap();
//! let secret = Secret::of(b"sixteen bytes or more")?;
//! let of = |process| Joining {
//!     plan: JointPlan { program: "0.2.0".into(), shards: 4, digest: 7 },
//!     ..Joining::new(
//!         vec![Address::Path(home.path().join("0")), Address::Path(home.path().join("1"))],
//!         process,
//!         secret.clone(),
//!     )
//! };
//! let one = of(0);
//! let other = of(1);
//! let other = std::thread::spawn(move || {
//!     let mut other = join(other, &|| None)?;
//!     let heard = other.exchange(vec![b"to 0".to_vec(), b"to 1".to_vec()])?;
//!     other.finish()?;
//!     Ok::<_, cashrank_cluster::ClusterError>(heard)
//! });
//! let mut one = join(one, &|| None)?;
//! let heard = one.exchange(vec![b"own".to_vec(), b"from 0".to_vec()])?;
//! assert_eq!(heard, [b"own".to_vec(), b"to 0".to_vec()]);
//! one.finish()?;
//! assert_eq!(other.join().unwrap()?, [b"from 0".to_vec(), b"to 1".to_vec()]);
//! # Ok(())
//! # }
//! ```
//!
//! **Guarantees.** A message is from a process that knows the secret and began with the same program, shards, number of
//! processes and digest, and nobody on the way read or changed it: Noise `NNpsk0` over Curve25519, ChaCha20-Poly1305
//! and BLAKE2s. Strangers that connect while the processes meet and cannot prove this are refused and reported
//! ([`Joining::tell`]), without effect. Once all are connected, none listens any more. If a process ends, or is silent
//! for [`Joining::silence`], all others get an error that names it, and nothing more is exchanged. Every holder of the
//! secret is trusted.
//!
//! **Timely** panics if a peer is lost. Here it never notices: the stream from which it reads blocks instead (`line`),
//! and the error goes to the caller.

mod address;
mod exchange;
mod greeting;
mod line;
mod meeting;
mod noise;
mod secret;
mod socket;

use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use address::{Address, addresses};
pub use exchange::Cluster;
pub use greeting::JointPlan;
pub use secret::Secret;

/// Maximum number of processes.
pub const PROCESSES_MAX: usize = 256;

/// Settings by which a process finds the others.
#[derive(Clone)]
pub struct Joining {
    /// Address of each process.
    pub addresses: Vec<Address>,
    /// Number of this process.
    pub process: usize,
    /// Secret that all of them know, and nobody else.
    pub secret: Secret,
    /// Settings that must be equal in all processes.
    pub plan: JointPlan,
    /// Time to wait for the others at the start.
    pub wait: Duration,
    /// Silence after which a process is considered lost. The others send a sign of life six times as often.
    pub silence: Duration,
    /// Callback for a line about each stranger.
    pub tell: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Joining {
    /// Returns options with default times, an empty plan, and messages about strangers dropped.
    pub fn new(addresses: Vec<Address>, process: usize, secret: Secret) -> Joining {
        Joining {
            addresses,
            process,
            secret,
            plan: JointPlan::default(),
            wait: Duration::from_secs(60),
            silence: Duration::from_secs(30),
            tell: Arc::new(|_| {}),
        }
    }

    /// Returns the name of a process for messages.
    pub(crate) fn name(&self, process: usize) -> String {
        match self.addresses.get(process) {
            Some(address) => format!("process {process} ({address})"),
            None => format!("process {process}"),
        }
    }
}

/// Connects the processes. Calls `hopeless` often meanwhile, and stops waiting once that returns a reason.
///
/// # Errors
/// [`ClusterError::Usage`] for invalid processes; [`ClusterError::Io`] if this one's address is not available;
/// [`ClusterError::Missing`] if some did not come; [`ClusterError::Differs`] if one has another plan.
pub fn join(
    joining: Joining,
    hopeless: &dyn Fn() -> Option<String>,
) -> Result<Cluster, ClusterError> {
    let lines = meeting::meet(&joining, hopeless)?;
    Cluster::start(&joining, lines)
}

/// Error between processes, which names the process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The request is invalid.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read, or a socket or thread is not available: description and cause.
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// Some processes did not come.
    #[error("{0}")]
    Missing(String),
    /// A process has another plan.
    #[error("{0}")]
    Differs(String),
    /// A process ended, or was silent.
    #[error("{0}")]
    Lost(String),
}

impl ClusterError {
    /// Error for a thread that cannot be started, with advice.
    fn no_thread(error: io::Error) -> ClusterError {
        let what = format!(
            "{error}; each process takes some beside those that compute, and two for each of the others: raise the limit of \
             processes (`ulimit -u`, `TasksMax=` of systemd, that of a container)"
        );
        ClusterError::Io(
            "cannot start a thread".into(),
            io::Error::new(error.kind(), what),
        )
    }
}
