//! Several processes of `cashrank` that work on one crawl: how they find each other, prove that they belong together, and
//! exchange messages.
//!
//! It knows nothing of stores. [`join`] brings N processes together, each of which has the same list of addresses and the
//! same secret; what they then exchange is bytes, in rounds ([`Cluster::exchange`]), by timely dataflow.
//!
//! ```
//! use cashrank_cluster::{Address, Joining, Plan, Secret, join};
//!
//! # fn main() -> Result<(), cashrank_cluster::Error> {
//! # let home = tempfile::tempdir().unwrap();
//! let secret = Secret::of(b"sixteen bytes or more")?;
//! let of = |process| Joining {
//!     plan: Plan { program: "0.2.0".into(), shards: 4, digest: 7 },
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
//!     Ok::<_, cashrank_cluster::Error>(heard)
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
//! **What holds.** A message is from a process that knows the secret and began with the same program, shards, number of
//! processes and digest, and nobody on the way read or changed it: Noise `NNpsk0` over Curve25519, ChaCha20-Poly1305 and
//! BLAKE2s. What connects while the processes come together and cannot prove that is refused, named ([`Joining::tell`]), and
//! makes no difference. Once all are there, nobody listens any more. A process that ends, or is silent for
//! [`Joining::silence`], is an error that names it, in all others; then nothing more is exchanged. Whoever has the secret is
//! trusted.
//!
//! **Timely** panics where a peer is lost. It never learns of it here: the stream that it reads from stops there (`line`),
//! and the error goes to the caller.

mod address;
mod exchange;
mod greeting;
mod line;
mod meeting;
mod noise;
mod reserved;
mod secret;
mod socket;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use address::{Address, addresses};
pub use exchange::Cluster;
pub use greeting::Plan;
pub use secret::Secret;

/// How many processes there can be.
pub const PROCESSES_MAX: usize = 256;

/// What a process needs to find the others.
#[derive(Clone)]
pub struct Joining {
    /// The address of each process.
    pub addresses: Vec<Address>,
    /// Which of them this is.
    pub process: usize,
    /// What all of them know, and nobody else.
    pub secret: Secret,
    /// What must be the same for all.
    pub plan: Plan,
    /// How long to wait for the others at the start.
    pub wait: Duration,
    /// After how long a process that says nothing is lost. The others say something six times as often.
    pub silence: Duration,
    /// Called with a line about each stranger.
    pub tell: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Joining {
    /// With the usual times, an empty plan, and messages about strangers dropped.
    pub fn new(addresses: Vec<Address>, process: usize, secret: Secret) -> Joining {
        Joining {
            addresses,
            process,
            secret,
            plan: Plan::default(),
            wait: Duration::from_secs(60),
            silence: Duration::from_secs(30),
            tell: Arc::new(|_| {}),
        }
    }

    /// A process as messages name it.
    pub(crate) fn name(&self, process: usize) -> String {
        match self.addresses.get(process) {
            Some(address) => format!("process {process} ({address})"),
            None => format!("process {process}"),
        }
    }
}

/// Brings the processes together. `hopeless` is asked often meanwhile; once it says why it is, there is no more waiting.
///
/// # Errors
/// [`Error::Usage`]: these cannot be processes; [`Error::Io`]: this one's address is not to be had; [`Error::Missing`]: some did
/// not come; [`Error::Differs`]: one has another plan.
pub fn join(joining: Joining, hopeless: &dyn Fn() -> Option<String>) -> Result<Cluster, Error> {
    let lines = meeting::meet(&joining, hopeless)?;
    Cluster::start(&joining, lines)
}

/// What can go wrong between processes. Each names the process.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for cannot be.
    Usage(String),
    /// A file cannot be read, or a socket or thread not had: what, and why.
    Io(String, io::Error),
    /// Processes did not come.
    Missing(String),
    /// A process has another plan.
    Differs(String),
    /// A process ended, or was silent.
    Lost(String),
}

impl Error {
    /// A thread cannot be started: what to do.
    fn no_thread(error: io::Error) -> Error {
        let what = format!(
            "{error}; each process takes some beside those that compute, and two for each of the others: raise the limit of \
             processes (`ulimit -u`, `TasksMax=` of systemd, that of a container)"
        );
        Error::Io(
            "cannot start a thread".into(),
            io::Error::new(error.kind(), what),
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(what)
            | Error::Missing(what)
            | Error::Differs(what)
            | Error::Lost(what) => f.write_str(what),
            Error::Io(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for Error {}
