//! The limit on open files that a shell or a service manager sets (`ulimit -n`, `RLIMIT_NOFILE`). Of a store with many
//! partitions more are open at a time than the usual 1,024: then the limit is raised, as far as the system lets a process do
//! that by itself.

use std::fs;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{Error, Result};

/// Files that are open beside those that are asked for: inputs, sockets, temporary files. Where they cannot be counted, those
/// that are open already are taken to be as many.
const OTHERS: u64 = 128;

/// One at a time, so that nobody takes back what another has got.
static RAISING: Mutex<()> = Mutex::new(());

/// Sees to it that so many more files can be opened, for so many partitions.
///
/// # Errors
/// [`Error::Usage`]: the system does not allow it, and what to do.
pub(crate) fn allow_open_files(more: u64, partitions: u32) -> Result<()> {
    let _raising = RAISING.lock().unwrap_or_else(PoisonError::into_inner);
    let open = fs::read_dir("/proc/self/fd").map_or(OTHERS, |files| files.count() as u64);
    let need = open + more + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|&current| current < need) else {
        return Ok(());
    };
    let refused = |most: u64| {
        Err(Error::Usage(format!(
            "`partitions` {partitions}: takes up to {need} open files, and the limit is {most}: raise it (in a shell by \
             `ulimit -n {need}`, for a service of systemd by LimitNOFILE={need}), or, for a new store, take fewer \
             `partitions`"
        )))
    };
    if let Some(most) = limit.maximum.filter(|&most| most < need) {
        return refused(most);
    }
    let raised = Rlimit {
        current: Some(need),
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => Ok(()),
        Err(_) => refused(current),
    }
}
