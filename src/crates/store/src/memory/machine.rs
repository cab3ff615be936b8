//! Memory that the machine or the container has for this process: Linux's `/proc` and control groups, of both versions.
//! On other systems it is unknown.

use std::fs;
use std::path::{Path, PathBuf};

use super::AddressSpace;

/// Divisor for the part of the memory that is left for the kernel and other processes.
const LEFT: u64 = 16;

/// Returns the memory that this process may take, in bytes, with `threads` additional threads: the least of what is
/// available without swapping, the limits of all its control groups, and the rest of its limit on address space, less a
/// sixteenth. `None` if it is unknown.
pub fn available(threads: usize) -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let proc = |name: &str| read(&Path::new("/proc").join(name)).unwrap_or_default();
    let files = limit_files(&proc("self/cgroup"), &proc("self/mountinfo"));
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

/// Mounted file system of control groups.
struct Mount {
    root: PathBuf,
    at: PathBuf,
    unified: bool,
}

/// Returns the files with the limits of the process's control groups and all their ancestors, as far as they are
/// mounted. `cgroup` and `mountinfo` are the texts of those files in `/proc/self`.
fn limit_files(cgroup: &str, mountinfo: &str) -> Vec<PathBuf> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(mount).collect();
    let mut files = Vec::new();
    for line in cgroup.lines() {
        // Number, controllers, path: `0::/a` in version 2, `4:memory:/a` in version 1.
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let unified = number == "0" && controllers.is_empty();
        if !unified && !controllers.split(',').any(|one| one == "memory") {
            continue;
        }
        let name = if unified {
            "memory.max"
        } else {
            "memory.limit_in_bytes"
        };
        for mount in mounts.iter().filter(|mount| mount.unified == unified) {
            // If the path is outside of the mount, the mount is the container's own group.
            let own = Path::new(path).strip_prefix(&mount.root);
            let own = own.unwrap_or(Path::new(""));
            files.extend(own.ancestors().map(|group| mount.at.join(group).join(name)));
        }
    }
    files
}

/// Parses a line of mountinfo: `31 23 0:28 /root /at rw shared:1 - cgroup2 source options`.
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let unified = match after.next()? {
        "cgroup2" => true,
        "cgroup" if after.nth(1)?.split(',').any(|option| option == "memory") => false,
        _ => return None,
    };
    let mut before = before.split(' ').skip(3).map(unescaped);
    Some(Mount {
        root: before.next()?,
        at: before.next()?,
        unified,
    })
}

/// Decodes a path in which blanks are written as `\040`.
fn unescaped(text: &str) -> PathBuf {
    let plain = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let mut text = text.to_owned();
    for (code, sign) in plain {
        text = text.replace(code, sign);
    }
    text.into()
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

    fn names(cgroup: &str, mountinfo: &str) -> Vec<String> {
        let files = limit_files(cgroup, mountinfo);
        files
            .iter()
            .map(|file| file.display().to_string())
            .collect()
    }

    /// Version 2, as systemd mounts it: every ancestor may have a limit.
    #[test]
    fn all_groups_above_count() {
        let mountinfo = "24 1 8:1 / / rw - ext4 /dev/sda rw\n\
                         30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let found = names("0::/user.slice/a.service\n", mountinfo);
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
        let mountinfo = "34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                         35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                         41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found = names("4:memory,hugetlb:/a\n1:cpu:/b\n0::/\nno line\n", mountinfo);
        assert_eq!(
            found,
            [
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/unified/memory.max"
            ]
        );
    }

    /// In a container the group's own directory is mounted, under the host's name or a new one.
    #[test]
    fn a_container_sees_its_own_group() {
        let mountinfo =
            "35 31 0:32 /docker/0a /sys/fs/cg\\040roup ro master:11 - cgroup cgroup rw,memory\n";
        for path in ["/docker/0a", "/", "/../elsewhere"] {
            let cgroup = format!("4:memory:{path}\n");
            let file = "/sys/fs/cg roup/memory.limit_in_bytes";
            assert_eq!(names(&cgroup, mountinfo), [file]);
        }
    }

    #[test]
    fn no_control_groups_no_limits() {
        for mountinfo in [
            "",
            "x",
            "1 2 3 - cgroup2",
            "1 2 3 4 5 - cgroup cgroup rw,cpu\n",
            " - ",
        ] {
            assert!(names("0::/\n4:memory:/\n", mountinfo).is_empty());
        }
    }
}
