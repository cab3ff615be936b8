//! Spooled streams through the library: a sender that keeps only what was not acknowledged, and
//! streams that break off anywhere, end with the snapshot of an undisturbed run over a file.

#[path = "spool/again.rs"]
mod again;
#[path = "spool/broken.rs"]
mod broken;
#[path = "spool/cuts.rs"]
mod cuts;
use crate::crawl;
use crate::disk;
#[path = "spool/faults.rs"]
mod faults;
use crate::pack;
#[path = "spool/support.rs"]
mod support;
