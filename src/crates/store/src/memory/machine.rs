//! Memory that the machine or the container has for this process: Linux's `/proc` and control groups, of both versions.
//! On other systems it is unknown.

use std::fs;
use std::path::{Path, PathBuf};

use super::AddressSpace;

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
    let space = AddressSpace::of_process().map(|space| space.for_data(threads));
    let least = limits
        .chain(of_meminfo(&proc("meminfo")))
        .chain(space)
        .min()?;
    Some(least - least / LEFT)
}

/// Returns the available memory by `/proc/meminfo`, or all memory before Linux 3.14.
fn of_meminfo(text: &str) -> Option<u64> {
    kib_of("MemAvailable", text).or_else(|| kib_of("MemTotal", text))
}

/// Parses the field in a line like `MemTotal:   2 kB`, in bytes.
pub(super) fn kib_of(field: &str, text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kib = line.strip_prefix(':')?.trim().strip_suffix(" kB")?;
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

/// Parses a control group's limit; `None` if it has none.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Returns the files with the limits of the process's control groups and all their ancestors, of which not all exist: in
/// a container its own group is the folder itself. `cgroup` is the text of `/proc/self/cgroup`.
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
}
