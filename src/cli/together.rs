//! Ingesting and settling by several processes, where the command was built with it (the feature `cluster`).

#[cfg(feature = "cluster")]
mod children;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod ingest;

use cashrank::Result;
use cashrank::memory::check_room;
use cashrank::rank::settle::Peers;
use cashrank::snapshot::Residency;

use super::common::thousands;

#[cfg(feature = "cluster")]
pub use cluster::{JoinArgs, TogetherArgs};

#[cfg(not(feature = "cluster"))]
pub use alone::{JoinArgs, TogetherArgs};

/// Who settles: threads, and other processes; and what of the store is in memory at a time.
pub struct AllWorkers {
    pub threads: usize,
    pub peers: Option<Peers>,
    pub within: Residency,
}

/// What settling takes on this machine.
pub struct Needs {
    /// Bytes of each process, of which the first is this one.
    pub bytes: Vec<u64>,
    /// Pages that they go over.
    pub pages: u64,
}

impl Needs {
    /// Checks that all have room together.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn check(&self, budget: Option<u64>) -> Result<()> {
        let work = || {
            let pages = thousands(self.pages);
            match self.bytes.len() {
                1 => format!("settling {pages} pages"),
                processes => format!("settling {pages} pages by {processes} processes"),
            }
        };
        let instead = "settle on a machine with more memory";
        check_room(budget, self.bytes.iter().sum(), work, instead)
    }
}

/// What there is without.
#[cfg(not(feature = "cluster"))]
mod alone {
    use std::num::NonZeroUsize;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use cashrank::rank::settle::Peers;
    use cashrank::snapshot::{Residency, settling_needs};
    use cashrank::store::{Partitions, View};

    use super::{AllWorkers, Needs};
    use crate::cli::common::{Exit, MemoryArg, threads};

    /// No options.
    #[derive(clap::Args)]
    pub struct TogetherArgs {}

    /// The same.
    #[derive(clap::Args)]
    pub struct JoinArgs {}

    /// This process alone.
    pub struct Together {
        within: Residency,
    }

    /// Nothing is asked for.
    pub struct Asked;

    impl TogetherArgs {
        pub fn read(&self) -> anyhow::Result<Asked> {
            Ok(Asked)
        }
    }

    impl JoinArgs {
        pub fn read(&self, _: Option<u64>) -> anyhow::Result<Asked> {
            Ok(Asked)
        }
    }

    impl Asked {
        pub fn follow(
            &self,
            _: &Path,
            _: Option<u64>,
            _: Option<NonZeroUsize>,
        ) -> Option<anyhow::Result<Exit>> {
            None
        }

        pub fn begin_ingest(
            &self,
            _: &Path,
            _: Partitions,
            _: Option<NonZeroUsize>,
            _: &Arc<AtomicBool>,
        ) -> anyhow::Result<Option<Together>> {
            let within = Residency::default();
            Ok(Some(Together { within }))
        }

        pub fn share(
            &self,
            _: &Path,
            _: &MemoryArg,
            _: Option<NonZeroUsize>,
        ) -> Option<anyhow::Result<Exit>> {
            None
        }

        pub fn machines(&self) -> usize {
            1
        }

        pub fn needs(&self, view: &View, resident: Option<NonZeroUsize>) -> Needs {
            Needs {
                bytes: vec![settling_needs(view, (0, 1), resident, threads(None))],
                pages: view.settled_pages(),
            }
        }

        pub fn begin(
            &self,
            _: &View,
            _: &Arc<AtomicBool>,
            within: Residency,
        ) -> anyhow::Result<Option<Together>> {
            Ok(Some(Together { within }))
        }

        pub fn nothing_to_do(&self, _: &View) -> anyhow::Result<()> {
            Ok(())
        }
    }

    impl Together {
        pub fn workers(&self) -> AllWorkers {
            AllWorkers {
                threads: threads(None),
                peers: None,
                within: self.within,
            }
        }

        pub fn peers(&self) -> Option<Peers> {
            None
        }

        pub fn fail(self, _: &str) {}

        pub fn end(self) {}
    }
}
