//! Every limit on input, by name. Each has an option of the same name
//! (`--limit-line`, ...); a record over a limit is skipped and counted, never
//! cut short.

use super::{Error, PageId, Result};

/// Limits on what an input may ask of this process. All sizes are bytes unless
/// named otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Longest record: a line, a WARC record with its tail, a WAT record, or an `edges` group.
    pub line_bytes: u64,
    /// Longest URL or node name, as read and in canonical form.
    pub url_bytes: u64,
    /// Most links of one record, as read (repeats included); at most 3 x 2^20.
    pub links: u64,
    /// Largest gzip member or zstd frame (decompressed) that is held back until
    /// its checksum is verified. Larger ones are applied as they stream.
    pub held_bytes: u64,
    /// Most bytes that one gzip member or zstd frame may expand to.
    pub expansion_bytes: u64,
    /// Largest zstd window, as a power of two (`zstd --long=N`).
    pub zstd_window_log: u32,
    /// Most pages the store may know; at most 2^34 - 1.
    pub pages: u64,
    /// Most bytes of memory that an ingest may need ([`Need`](crate::memory::Need)), or what else holds
    /// something of each page ([`check_room`](crate::memory::check_room)); `None`: no limit.
    pub memory: Option<u64>,
}

/// Largest `line_bytes` and `url_bytes`: a batch counts its bytes in 32 bits.
const BYTES_MAX: u64 = 1 << 30;

/// The usual `line_bytes`.
pub(crate) const LINE_BYTES: u64 = 64 << 20;

/// Largest `links`. Decoders keep one more at most: a line may hold tens of millions of empty ones,
/// each of which would take more memory than text: 32 bytes.
pub(crate) const LINKS_MAX: usize = 3 << 20;

impl Limits {
    /// Refuses limits that no input could meet, or that are beyond what can be counted.
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

/// Refuses what would take `need` bytes where the budget is less; `None`: there is none. `work` says what
/// needs them, `instead` what to do on a machine that has no more.
///
/// # Errors
/// [`Error::TooLarge`].
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
