//! Settling by several processes, where the command was built with it (the feature `cluster`).

#[cfg(feature = "cluster")]
mod children;
#[cfg(feature = "cluster")]
mod cluster;

use cashrank::rank::settle::Peers;

#[cfg(feature = "cluster")]
pub use cluster::TogetherArgs;

#[cfg(not(feature = "cluster"))]
pub use alone::TogetherArgs;

/// Who settles: threads, and other processes.
pub struct AllWorkers {
    pub threads: usize,
    pub peers: Option<Peers>,
}

/// What there is without.
#[cfg(not(feature = "cluster"))]
mod alone {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use cashrank::store::View;

    use super::AllWorkers;
    use crate::cli::common::{Exit, MemoryArg, threads};

    /// No options.
    #[derive(clap::Args)]
    pub struct TogetherArgs {}

    /// This process alone.
    pub struct Together {}

    impl TogetherArgs {
        pub fn share(&self, _: &Path, _: &MemoryArg) -> Option<anyhow::Result<Exit>> {
            None
        }

        /// Pages that this process goes over, and pages that others do.
        pub fn pages(&self, view: &View) -> anyhow::Result<(u64, u64)> {
            Ok((view.settled_pages(), 0))
        }

        pub fn begin(&self, _: &View, _: &Arc<AtomicBool>) -> anyhow::Result<Together> {
            Ok(Together {})
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
            }
        }

        pub fn end(self) {}
    }
}
