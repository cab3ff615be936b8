//! Types that all crates share: pages and their names, records and batches of them, limits, damage and errors.
//!
//! Plain data: nothing here opens a file, starts a thread, or uses another module of this crate.

mod error;
mod hash;
mod input;
mod limits;
mod page;
mod record;
mod registry;
mod remedy;
mod setting;

pub use crate::registry;
pub use error::{Error, Exit, Result};
pub use hash::{Digest, Fingerprint, Fingerprints, HashKey, NameHash};
pub use input::{Compression, Damage, DamageKind, InputPosition, Member, Restart};
pub use input::{InputSignature, SIGNATURE_HEAD, Signature, signature_fronts};
pub use limits::{LINE_BYTES, LINKS_MAX, LOOK_EVERY, Limits, check_room};
pub use limits::{TIME_UNITS, bytes, counted, human, split_time, thousands};
pub use page::rfc_3339;
pub use page::{Change, FetchTotals, Fetches, Page, PageId, PageState, SiteFacts};
pub use record::{Batch, BatchEntry, LinkCounts, TEXT_BYTES, What};
pub use record::{Link, Names, Parsed, Reason, Record, Rel, SelfLinks, TIMES, Time, utc};
pub use record::{has_page, is_redirect, keep};
pub use registry::unknown_word;
pub use remedy::{part_of, remedy};
pub use setting::{is_setting, lacks_feature, name_settings, require_feature};
