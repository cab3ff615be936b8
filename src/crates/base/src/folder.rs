//! Folders for tests.

use std::path::Path;

use tempfile::TempDir;

/// Free space that suffices for all tests together, in bytes.
const ROOM: u64 = 2 << 30;

/// Creates a folder in memory, if there is a file system in memory with enough room: syncs, which take most of the time
/// of many tests of stores, are free there. Not for tests that interrupt a run at a moment.
pub fn in_memory() -> TempDir {
    let shm = Path::new("/dev/shm");
    let has_room = rustix::fs::statvfs(shm).is_ok_and(|at| at.f_bavail * at.f_frsize >= ROOM);
    let memory = has_room.then(|| tempfile::tempdir_in(shm).ok()).flatten();
    memory.unwrap_or_else(|| TempDir::new().unwrap())
}
