//! Limits on input. Each has an option of the same name (`--limit-line`, ...); a record over a limit is skipped and
//! counted, never cut short.

use super::{Error, PageId, Result};

/// Limits on what an input may demand of this process. All sizes are in bytes unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a record: a line, a WARC record with its tail, a WAT record, or an `edges` group.
    pub line_bytes: u64,
    /// Maximum length of a URL or node name, as read and in canonical form.
    pub url_bytes: u64,
    /// Maximum number of links of one record, as read (including repeats); at most 3 x 2^20.
    pub links: u64,
    /// Maximum decompressed size of a gzip member or zstd frame that is held back until its checksum is verified.
    /// Larger ones are applied as they stream.
    pub held_bytes: u64,
    /// Maximum decompressed size of one gzip member or zstd frame.
    pub expansion_bytes: u64,
    /// Maximum zstd window, as a power of two (`zstd --long=N`).
    pub zstd_window_log: u32,
    /// Maximum number of pages in the store; at most 2^34 - 1.
    pub pages: u64,
    /// Maximum memory for an ingest (the `Need` of a store), or for anything else that holds something for each
    /// page ([`check_room`]); `None`: no limit.
    pub memory: Option<u64>,
}

/// Maximum `line_bytes` and `url_bytes`: a batch counts its bytes in 32 bits.
const BYTES_MAX: u64 = 1 << 30;

/// Default of `line_bytes`.
pub const LINE_BYTES: u64 = 64 << 20;

/// Maximum of `links`. Decoders keep at most one more: a line may hold tens of millions of empty links, and each takes
/// 32 bytes, more than its text.
pub const LINKS_MAX: usize = 3 << 20;

impl Limits {
    /// Rejects limits that no input could meet, or that are too large to count.
    pub fn check(&self) -> Result<()> {
        for (setting, bytes) in [
            ("limit_line", self.line_bytes),
            ("limit_url", self.url_bytes),
        ] {
            if !(1..=BYTES_MAX).contains(&bytes) {
                return Err(Error::Usage(format!(
                    "`{setting}` {bytes}: from 1 to {BYTES_MAX} bytes"
                )));
            }
        }
        if self.links > LINKS_MAX as u64 {
            return Err(Error::Usage(format!(
                "`limit_links` {}: at most {LINKS_MAX}",
                self.links
            )));
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            line_bytes: LINE_BYTES,
            url_bytes: 8192,
            links: 1_000_000,
            held_bytes: 64 << 20,
            expansion_bytes: 1 << 40,
            zstd_window_log: 27,
            pages: PageId::LIMIT,
            memory: None,
        }
    }
}

/// Number of entries between two checks of the budget, where entries come one by one.
pub const LOOK_EVERY: u64 = 1 << 14;

/// Fails with [`Error::TooLarge`] if `need` bytes exceed the budget (`None`: no limit). `work` says what needs them,
/// `instead` what to do on a machine that has no more.
pub fn check_room(
    budget: Option<u64>,
    need: u64,
    work: impl FnOnce() -> String,
    instead: &'static str,
) -> Result<()> {
    match budget {
        Some(budget) if need > budget => Err(Error::TooLarge {
            work: work(),
            need,
            budget,
            instead,
        }),
        _ => Ok(()),
    }
}
