//! Options that limit input, for commands that read some.

use cashrank::Limits;

use super::common::{bytes, positive};

/// Heading of the help.
pub(super) const LIMITS: &str = "Limits on input";

/// Limits on input. Sizes take K, M, G and T.
#[derive(clap::Args)]
#[command(next_help_heading = LIMITS)]
pub(super) struct LimitArgs {
    /// Longest record: a line, a WARC or WAT record, or all edges of a source [default: 64M].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_line: Option<u64>,
    /// Longest URL or node name [default: 8K].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_url: Option<u64>,
    /// Most links of a record, at most 3145728 [default: 1000000].
    #[arg(long, value_name = "N", value_parser = positive)]
    limit_links: Option<u64>,
    /// Largest gzip member or zstd frame that is checked before its records are used [default: 64M].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_held: Option<u64>,
    /// Largest size that a gzip member or zstd frame may expand to [default: 1T].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    limit_expansion: Option<u64>,
    /// Largest zstd window, as an exponent of two, 10 to 31 [default: 27].
    #[arg(long, value_name = "LOG", value_parser = clap::value_parser!(u32).range(10..=31))]
    limit_zstd_window: Option<u32>,
}

impl LimitArgs {
    /// Returns the limits given by options; those not given are taken from `limits`.
    pub(super) fn over(&self, limits: Limits) -> Limits {
        Limits {
            line_bytes: self.limit_line.unwrap_or(limits.line_bytes),
            url_bytes: self.limit_url.unwrap_or(limits.url_bytes),
            links: self.limit_links.unwrap_or(limits.links),
            held_bytes: self.limit_held.unwrap_or(limits.held_bytes),
            expansion_bytes: self.limit_expansion.unwrap_or(limits.expansion_bytes),
            zstd_window_log: self.limit_zstd_window.unwrap_or(limits.zstd_window_log),
            ..limits
        }
    }
}
