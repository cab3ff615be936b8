//! Folders for tests.

use std::path::Path;

use tempfile::TempDir;

/// Free space that suffices for all tests together, in bytes.
const ROOM: u64 = 2 << 30;

/// Creates a folder in memory, where syncs are free, if there is room. Not for tests that interrupt a run.
pub fn in_memory() -> TempDir {
    let shm = Path::new("/dev/shm");
    let has_room = rustix::fs::statvfs(shm).is_ok_and(|at| at.f_bavail * at.f_frsize >= ROOM);
    let memory = has_room.then(|| tempfile::tempdir_in(shm).ok()).flatten();
    memory.unwrap_or_else(|| TempDir::new().unwrap())
}
