//! Sizes and durations in human-readable notation.

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
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => {
            return Err(format!(
                "{text:?}: a number of bytes, like 8192, 64K, 64M or 1G"
            ));
        }
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| format!("{text:?}: a number of bytes, like 8192, 64K, 64M or 1G"))
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
