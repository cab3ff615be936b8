//! Limits, and sizes and durations as people write them. Each limit on input has an option of the same name
//! (`--limit-line`, ...); a record over a limit is skipped and counted, never cut short.

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
    pub held_bytes: u64,
    /// Maximum decompressed size of one gzip member or zstd frame.
    pub expansion_bytes: u64,
    /// Maximum zstd window, as a power of two (`zstd --long=N`).
    pub zstd_window_log: u32,
    /// Maximum number of pages in the store; at most 2^34 - 1.
    pub pages: u64,
    /// Maximum memory for an ingest, or for anything else that holds something for each page; `None`: no limit.
    pub memory: Option<u64>,
}

/// Maximum `line_bytes` and `url_bytes`: a batch counts its bytes in 32 bits.
const BYTES_MAX: u64 = 1 << 30;
pub const LINE_BYTES: u64 = 64 << 20;
/// Maximum of `links`. Decoders keep at most one more: a line may hold tens of millions of empty links.
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

/// Number of entries between two checks of the budget.
pub const LOOK_EVERY: u64 = 1 << 14;

/// Fails with [`Error::TooLarge`] if `need` bytes exceed the budget (`None`: no limit).
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

const MIB: u64 = 1 << 20;

/// Units of time and their seconds, longest first.
pub const TIME_UNITS: [(char, u32); 5] = [
    ('w', 7 * 86_400),
    ('d', 86_400),
    ('h', 3600),
    ('m', 60),
    ('s', 1),
];

/// Splits a duration like `90d` into its number and the seconds of its unit.
pub fn split_time(text: &str) -> Option<(&str, u32)> {
    let mut units = TIME_UNITS.iter();
    units.find_map(|(letter, seconds)| Some((text.strip_suffix(*letter)?, *seconds)))
}

pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b',')).into_owned()
}

/// Formats a count with its noun: `1 record`, `1,204 records`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

/// Formats a number of bytes with one decimal, rounded up.
pub fn human(bytes: u64) -> String {
    let tenths = |shift: u32| (u128::from(bytes) * 10).div_ceil(1 << shift);
    let (tenths, unit) = match bytes {
        0..MIB => (tenths(10), "KiB"),
        MIB..0x4000_0000 => (tenths(20), "MiB"),
        _ => (tenths(30), "GiB"),
    };
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// Parses a number of bytes: `8192`, `64K`, `64MiB`, `1G`, `1T` (powers of 1,024). The error says what is expected.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    );
    let wrong = || format!("{text:?}: a number of bytes, like 8192, 64K, 64M or 1G");
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(wrong()),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_rounded_up() {
        for (bytes, text) in [
            (0, "0.0 KiB"),
            (1, "0.1 KiB"),
            (1536, "1.5 KiB"),
            (64 * MIB, "64.0 MiB"),
            (64 * MIB + 1, "64.1 MiB"),
            (1 << 30, "1.0 GiB"),
            (u64::MAX, "17179869184.0 GiB"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }
}
