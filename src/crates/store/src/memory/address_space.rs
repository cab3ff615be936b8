//! The limit on address space that a shell or a batch system sets (`ulimit -v`, `RLIMIT_AS`). An allocation beyond it
//! aborts the process, so the unused part counts as available memory.

use std::fs;

use rustix::process::{Resource, getrlimit};

use super::MIB;
use super::machine::kib_of;
use crate::threads::ADDRESS_SPACE;
use crate::{Error, Result};

/// Address space of every command: buffers of files, tables of names, a page cache.
const A_COMMAND: u64 = 64 * MIB;

/// Limit on address space, and its unused part, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressSpace {
    /// Limit in bytes.
    pub limit: u64,
    /// Part that is not mapped yet, in bytes.
    pub left: u64,
}

impl AddressSpace {
    /// Returns the limit of this process; `None` if there is none, or it is unknown.
    pub fn of_process() -> Option<AddressSpace> {
        let limit = getrlimit(Resource::As).current?;
        let status = fs::read_to_string("/proc/self/status").ok()?;
        AddressSpace::of(limit, &status)
    }

    /// Returns the limit of a process with this text in `/proc/PID/status`.
    fn of(limit: u64, status: &str) -> Option<AddressSpace> {
        let mapped = kib_of("VmSize", status)?;
        let left = limit.saturating_sub(mapped);
        Some(AddressSpace { limit, left })
    }

    /// Returns what is left for data besides the needs of a command with `threads` additional threads.
    pub(super) fn for_data(self, threads: usize) -> u64 {
        self.left.saturating_sub(taken(threads))
    }
}

/// Returns the address space that a command with `threads` additional threads needs, in bytes.
fn taken(threads: usize) -> u64 {
    A_COMMAND.saturating_add(ADDRESS_SPACE.saturating_mul(threads as u64))
}

/// Returns [`Error::AddressSpace`] if the limit leaves too little for `data` bytes with `threads` additional threads.
pub fn check_address_space(threads: usize, data: u64) -> Result<()> {
    let need = taken(threads).saturating_add(data);
    match AddressSpace::of_process() {
        Some(space) if space.left < need => Err(Error::AddressSpace {
            need,
            remedy: "raise the limit on address space (ulimit -v)",
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_is_taken_from_the_limit() {
        let status = "Name:\tcashrank\nVmPeak:\t  999 kB\nVmSize:\t  102400 kB\n";
        let space = AddressSpace::of(300 * MIB, status).unwrap();
        assert_eq!(space.left, 200 * MIB);
        assert_eq!(space.for_data(0), 136 * MIB);
        assert_eq!(space.for_data(2), 4 * MIB);
        assert_eq!(space.for_data(3), 0);
        assert_eq!(space.for_data(usize::MAX), 0);
        assert_eq!(AddressSpace::of(MIB, status).unwrap().left, 0);
        assert_eq!(AddressSpace::of(MIB, ""), None);
    }
}
