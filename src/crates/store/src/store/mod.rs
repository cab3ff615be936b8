//! The store: a directory that outlives the process, specified in `formats/store.md`. One writer, locked; any number of
//! readers.
//!
//! **A checkpoint**, at a record boundary: logs and rows appended and synced; new marks synced; changed chunks written
//! to their other slots, synced; then one redb transaction with history and manifest. Only then are old slots and
//! dropped marks freed.
//!
//! **Recovery** is opening: redb gives the last commit, logs are truncated to its lengths, chunks are loaded and
//! checked, the law is checked, the index is read or rebuilt, and uncommitted marks and unpublished snapshots are
//! removed. redb trusts its pages, so all its calls are fenced (`fence`).
//!
//! **Damage** is detected and never used. It is repaired only in caches: the warm start, the index and the numbers of
//! remote pages. [`part_of`] says what damage to each file means; [`crate::check`] finds it.
//!
//! Any failure of an operation is final for the process: a store that failed once refuses all further writes, because
//! the disk's contents are unknown after a failed sync.

mod blocks;
mod cash;
mod checkpoint;
mod folder;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod identity;
mod index_file;
mod manifest;
mod names;
pub mod rows;
mod spool;
mod tables;
mod view;
pub mod warm;

pub use crate::codec::sealed::{from_text, to_text};
pub use crate::codec::varint::number;
pub use crate::disk::{
    Disk, DiskFile, RealDisk, TempFile, read_sealed, temporary, unfinished, write_sealed,
};
pub use crate::model::part_of;
pub use cashrank_fence::{PanicFate, fenced};
pub use checkpoint::{StoreWriter, checkpoint};
pub use folder::{IDENTITY, blame_move, is_busy, is_own, lock_soon};
pub use identity::{Settings, VERSION, differences};
pub use index_file::{IndexFile, keep_index, trust_index};
pub use manifest::{Input, InputProgress, Manifest, Unverified};
pub use names::{NameLengths, NameReader, kept};
pub use spool::{OnDurable, SpoolOptions, SpoolState, spool_state, verify_spool};
pub use spool::{Spool, SpoolReader, remove_spool};
pub use view::{Depth, VerifyReport, View};
pub use view::{identity_of, open_view, open_view_to, open_view_to_publish, settings_of};

pub const SNAPSHOTS: &str = "snapshots";
