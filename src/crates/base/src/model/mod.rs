//! Types that all rooms share: pages and their names, records and batches of them, limits, damage and errors.
//!
//! Plain data: nothing here opens a file or starts a thread, and nothing uses another room, so that every other may use
//! this one.

pub mod batch;
mod class;
mod damage;
mod digest;
mod error;
mod exit;
mod feature;
mod fetches;
mod fingerprint;
mod human;
mod limits;
mod page;
mod parts;
mod position;
mod record;
mod registry;
mod rel;
mod restart;
mod setting;
pub mod signature;

pub use crate::registry;
pub use batch::{Batch, BatchEntry, LinkCounts, RawRedirect, What};
pub use class::SelfLinks;
pub use damage::{Damage, DamageKind, Member};
pub use digest::Digest;
pub use error::{Error, Result};
pub use exit::Exit;
pub use feature::{FEATURES, Feature};
pub use fetches::{FetchTotals, Fetches, PageState};
pub use fingerprint::{Fingerprint, Fingerprints, HashKey};
pub use human::{TIME_UNITS, split_time};
pub use human::{bytes, human};
pub use limits::{LINE_BYTES, LINKS_MAX, LOOK_EVERY};
pub use limits::{Limits, check_room};
pub use page::rfc_3339;
pub use page::{Change, Page, PageId, SiteFacts, SitePage};
pub use parts::remedy;
pub use parts::{PARTS, StoreFile, part_of};
pub use position::InputPosition;
pub use record::{Link, Names, Parsed, Reason, Record, Time, utc};
pub use record::{has_page, is_redirect, keep};
pub use rel::Rel;
pub use restart::{Compression, Restart};
pub use setting::{SETTINGS, name_settings};
pub use signature::{InputSignature, Signature};
