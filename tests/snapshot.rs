//! Snapshots as files: the golden sample reads as its graph's closed form and equals what the program writes today;
//! damage anywhere in a snapshot or a store is found, and never causes a panic.
//!
//! `WRITE_SAMPLES=1 cargo test --test library snapshot` (twice: the bad ones are made of the good) rewrites the golden
//! files, after an intended change of the format.

use crate::common;

#[path = "snapshot/damage.rs"]
mod damage;
#[path = "snapshot/golden.rs"]
mod golden;
#[path = "snapshot/make.rs"]
mod make;
