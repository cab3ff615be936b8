//! Memory that the machine or the container has for this process: Linux's `/proc` and control groups, of both versions.
//! On other systems it is unknown.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::MIB;
use crate::threads::ADDRESS_SPACE;
use crate::{Error, Result};

/// Divisor for the part of the memory that is left for the kernel and other processes.
const LEFT: u64 = 16;

/// Folder of control groups of version 2, and that of the memory controller of version 1, with the name of the limit.
const GROUPS: [(&str, &str); 2] = [
    ("/sys/fs/cgroup", "memory.max"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
];

/// Returns the memory that this process may take, in bytes, with `threads` additional threads: the least of what is
/// available without swapping, the limits of all its control groups, and the rest of its limit on address space, less a
/// sixteenth. `None` if it is unknown.
pub fn available(threads: usize) -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let proc = |name: &str| read(&Path::new("/proc").join(name)).unwrap_or_default();
    let files = limit_files(&proc("self/cgroup"));
    let limits = files.iter().filter_map(|file| limit(&read(file)?));
    let least = limits
        .chain(of_meminfo(&proc("meminfo")))
        .chain(address_space().map(|space| space.left.saturating_sub(taken(threads))))
        .min()?;
    Some(least - least / LEFT)
}

/// Returns the available memory by `/proc/meminfo`, or all memory before Linux 3.14.
fn of_meminfo(text: &str) -> Option<u64> {
    kib_of("MemAvailable", text).or_else(|| kib_of("MemTotal", text))
}

/// Parses the field in a line like `MemTotal:   2 kB`, in bytes.
fn kib_of(field: &str, text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kib = line.strip_prefix(':')?.trim().strip_suffix(" kB")?;
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

/// Parses a control group's limit; `None` if it has none.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Returns the files with the limits of the process's control groups and all their ancestors, of which not all exist:
/// in a container its own group is the folder itself. `cgroup` is the text of `/proc/self/cgroup`.
fn limit_files(cgroup: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in cgroup.lines() {
        // Number, controllers, path: `0::/a` in version 2, `4:memory:/a` in version 1.
        let fields: Vec<&str> = line.splitn(3, ':').collect();
        let [number, controllers, path] = fields[..] else {
            continue;
        };
        let (folder, name) = match controllers {
            "" if number == "0" => GROUPS[0],
            _ if controllers.split(',').any(|one| one == "memory") => GROUPS[1],
            _ => continue,
        };
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        files.extend(groups.map(|group| Path::new(folder).join(group).join(name)));
    }
    files
}

/// Address space of every command: buffers of files, tables of names, a page cache.
const A_COMMAND: u64 = 64 * MIB;

/// Limit on address space that a shell or a batch system sets (`ulimit -v`, `RLIMIT_AS`). An allocation beyond it
/// aborts the process, so what is left of it counts as available memory.
pub struct AddressSpace {
    /// Limit, in bytes.
    pub limit: u64,
    /// Part of the limit that the process has not taken, in bytes.
    pub left: u64,
}

/// Returns the limit on address space; `None` if there is none, or it is unknown.
pub fn address_space() -> Option<AddressSpace> {
    let limit = getrlimit(Resource::As).current?;
    let left = unmapped(limit, &fs::read_to_string("/proc/self/status").ok()?)?;
    Some(AddressSpace { limit, left })
}

/// Returns what a process with this text in `/proc/PID/status` has left of a limit.
fn unmapped(limit: u64, status: &str) -> Option<u64> {
    Some(limit.saturating_sub(kib_of("VmSize", status)?))
}

/// Returns the address space that a command with `threads` additional threads needs, in bytes.
fn taken(threads: usize) -> u64 {
    A_COMMAND.saturating_add(ADDRESS_SPACE.saturating_mul(threads as u64))
}

/// Returns [`Error::AddressSpace`] if the limit leaves too little for `data` bytes with `threads` additional threads.
pub fn check_address_space(threads: usize, data: u64) -> Result<()> {
    let need = taken(threads).saturating_add(data);
    match address_space() {
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
    fn what_is_available_counts_before_what_there_is() {
        let text = "MemTotal:       24683656 kB\nMemFree:  1 kB\nMemAvailable:   1024 kB\n";
        assert_eq!(of_meminfo(text), Some(1 << 20));
        assert_eq!(of_meminfo("MemTotal: 2 kB\n"), Some(2048));
        for text in [
            "",
            "MemAvailable: x kB\n",
            "MemTotal: 5\n",
            "MemTotal: 99999999999999999999 kB",
        ] {
            assert_eq!(of_meminfo(text), None, "{text}");
        }
    }

    #[test]
    fn a_limit_is_a_number() {
        assert_eq!(limit("536870912\n"), Some(512 << 20));
        assert_eq!(limit("max\n"), None);
        assert_eq!(limit(""), None);
    }

    fn names(cgroup: &str) -> Vec<String> {
        let files = limit_files(cgroup);
        files
            .iter()
            .map(|file| file.display().to_string())
            .collect()
    }

    /// Version 2: every ancestor may have a limit.
    #[test]
    fn all_groups_above_count() {
        let found = names("0::/user.slice/a.service\n");
        assert_eq!(
            found,
            [
                "/sys/fs/cgroup/user.slice/a.service/memory.max",
                "/sys/fs/cgroup/user.slice/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
    }

    /// Version 1, and version 2 without a memory controller in addition: both are read.
    #[test]
    fn version_1_has_a_line_for_each_controller() {
        let found = names("4:memory,hugetlb:/a\n1:cpu:/b\n0::/\nno line\n");
        assert_eq!(
            found,
            [
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert!(names("").is_empty() && names("1:cpu:/\n").is_empty());
    }

    #[test]
    fn what_is_mapped_is_taken_from_the_limit() {
        let status = "Name:\tcashrank\nVmPeak:\t  999 kB\nVmSize:\t  102400 kB\n";
        assert_eq!(unmapped(300 * MIB, status), Some(200 * MIB));
        assert_eq!(unmapped(MIB, status), Some(0));
        assert_eq!(unmapped(MIB, ""), None);
        assert_eq!([0, 2].map(taken), [64 * MIB, 196 * MIB]);
        assert_eq!(taken(usize::MAX), u64::MAX);
    }
}
