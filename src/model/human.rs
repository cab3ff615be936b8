//! Sizes and lengths of time as people write them.

const MIB: u64 = 1 << 20;

/// Units of time and their seconds, longest first.
pub(crate) const TIME_UNITS: [(char, u32); 5] = [
    ('w', 7 * 86_400),
    ('d', 86_400),
    ('h', 3600),
    ('m', 60),
    ('s', 1),
];

/// Divides a length of time like `90d` into its number and the seconds of its unit.
pub(crate) fn split_time(text: &str) -> Option<(&str, u32)> {
    let mut units = TIME_UNITS.iter();
    units.find_map(|(letter, seconds)| Some((text.strip_suffix(*letter)?, *seconds)))
}

/// Bytes as people read them, with one decimal, rounded up.
pub fn human(bytes: u64) -> String {
    let tenths = |shift: u32| (u128::from(bytes) * 10).div_ceil(1 << shift);
    let (tenths, unit) = match bytes {
        0..MIB => (tenths(10), "KiB"),
        MIB..0x4000_0000 => (tenths(20), "MiB"),
        _ => (tenths(30), "GiB"),
    };
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
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
