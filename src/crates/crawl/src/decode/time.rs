//! Times in crawlers' notations, parsed to seconds since 1970-01-01T00:00:00Z. All are within the years 0000 to 9999: a
//! larger number is rejected, because it is most likely in milliseconds.

use std::ops::RangeInclusive;

use jiff::civil::{Date, DateTime, datetime};

use super::{RecordTime, Time, shown};

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
/// 0000-01-01T00:00:00Z.
pub(super) const EARLIEST: Time = -62_167_219_200;
/// 9999-12-31T23:59:59Z.
pub(super) const LATEST: Time = 253_402_300_799;

pub(super) fn from_seconds(seconds: i64) -> Option<Time> {
    (EARLIEST..=LATEST).contains(&seconds).then_some(seconds)
}

/// Rounds seconds with a fraction down (-0.5 is second -1).
pub fn from_fraction(seconds: f64) -> Option<Time> {
    let floor = seconds.floor();
    // Both bounds are exact in an f64; NaN fails both comparisons.
    (floor >= EARLIEST as f64 && floor <= LATEST as f64).then_some(floor as Time)
}

/// Parses RFC 3339 (`2015-04-30T10:00:21Z`; a fraction is dropped) and unambiguous variants:
///
/// - fields with one digit instead of two (`2008-10-29T4:21:46Z`), `/` between year, month and day;
/// - offsets without a colon or without minutes (`-0700`, `-07`), `UTC` or `GMT` for `Z`, a space before either;
/// - 14 or 17 digits, see [`from_digits`];
/// - days of the year in place of days of the month ([`day_of_month`]).
///
pub fn from_text(text: &str) -> Option<Time> {
    spelled(text, false).or_else(|| from_digits(text).filter(|_| text.len() >= 14))
}

/// Parses a time of an archive file, which is in UTC unless it has an offset: digits ([`from_digits`]; 14 in ARC), the
/// notations of [`from_text`], also without an offset, or the shorter forms of WARC 1.1 (`2016`, `2016-01`,
/// `2016-01-11`, `2016-01-11T23:24Z`), read as their first second.
pub fn from_archive(text: &str) -> Option<Time> {
    from_digits(text).or_else(|| spelled(text, true))
}

/// Reads a time of an archive file; `Ok(None)` if there is none. `expected` describes the time in the error.
pub(super) fn read_archive(text: &[u8], expected: &str) -> RecordTime {
    if text.is_empty() {
        return Ok(None);
    }
    let time = std::str::from_utf8(text).ok().and_then(from_archive);
    time.map(Some)
        .ok_or_else(|| format!("{:?} is not {expected}", shown(text)))
}

/// Parses the notations of [`from_text`] other than digits; with `of_archive`, also those of [`from_archive`].
fn spelled(text: &str, of_archive: bool) -> Option<Time> {
    let mut rest = TimeParser(text.trim_matches(' ').as_bytes());
    let mut parts = [rest.digits(4..=4)?, 1, 1, 0, 0, 0];
    let is_end = |rest: &TimeParser<'_>| of_archive && rest.0.is_empty();
    if is_end(&rest) {
        return seconds(parts, 0);
    }
    let separator = [rest.one_of(b"-/")?];
    parts[1] = rest.digits(1..=2)?;
    if is_end(&rest) {
        return seconds(parts, 0);
    }
    rest.one_of(&separator)?;
    let before = rest.0.len();
    let day = rest.digits(1..=3)?;
    parts[2] = day_of_month(parts[0], parts[1], day, before - rest.0.len() == 3)?;
    if is_end(&rest) {
        return seconds(parts, 0);
    }
    rest.one_of(b"Tt ")?;
    parts[3] = rest.digits(1..=2)?;
    rest.one_of(b":")?;
    parts[4] = rest.digits(1..=2)?;
    let has_seconds = rest.0.starts_with(b":");
    if has_seconds || !of_archive {
        rest.one_of(b":")?;
        parts[5] = rest.digits(1..=2)?;
        rest.fraction()?;
    }
    let offset = if has_seconds && is_end(&rest) {
        0
    } else {
        rest.offset()?
    };
    rest.0.is_empty().then(|| seconds(parts, offset))?
}

/// Returns the day of the month, even if `day` is a day of the year: in Java's patterns, `dd` is the former and `DD`
/// the latter, and whole crawls are dated by the wrong one (`2009-03-65` in ClueWeb09 is 6 March). A number that is no
/// day of the month, or has three digits (`is_long`), must be a day of the year that is in the month.
fn day_of_month(year: i16, month: i16, day: i16, is_long: bool) -> Option<i16> {
    let first = Date::new(year, i8::try_from(month).ok()?, 1).ok()?;
    let days = 1..=i16::from(first.days_in_month());
    let of_year = day - (first.day_of_year() - 1);
    let found = [if is_long { of_year } else { day }, of_year];
    found.into_iter().find(|day| days.contains(day))
}

/// Parses digits in UTC: a day (`20080430`) or a minute (12 digits), each as its first second, a second (14), or a
/// millisecond (17, rounded down). Rejects ten, which may be seconds since 1970, and six, with a year of two digits.
pub(super) fn from_digits(text: &str) -> Option<Time> {
    if !matches!(text.len(), 8 | 12 | 14 | 17) || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut parts = [0; 6];
    let spans = [0..4, 4..6, 6..8, 8..10, 10..12, 12..14];
    for (part, span) in parts.iter_mut().zip(spans) {
        // A part that the text lacks is 0. The last three of 17 digits are a fraction.
        *part = text
            .get(span)
            .map_or(Some(0), |digits| digits.parse().ok())?;
    }
    seconds(parts, 0)
}

/// Parses `Tue Apr 02 11:22:33 UTC 2013`, of Java's `Date.toString`; ignores the day of the week.
pub(super) fn from_java(text: &str) -> Option<Time> {
    let words: Vec<&str> = text.split(' ').collect();
    let &[_, month, day, clock, zone, year] = &words[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let (offset, minutes) = match ZONES.iter().find(|(name, _)| *name == zone) {
        Some((_, minutes)) => ("Z", i64::from(*minutes)),
        None => (zone.strip_prefix("GMT")?, 0),
    };
    if (day.len(), clock.len(), year.len()) != (2, 8, 4) {
        return None;
    }
    let time = spelled(&format!("{year}-{month}-{day}T{clock}{offset}"), false)?;
    from_seconds(time - 60 * minutes)
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Zones of [`from_java`], in minutes east: those of RFC 2822 and Europe's. Others, as `IST` and `BST`, are ambiguous.
pub(super) const ZONES: [(&str, i16); 17] = [
    ("UTC", 0),
    ("GMT", 0),
    ("EST", -300),
    ("EDT", -240),
    ("CST", -360),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PST", -480),
    ("PDT", -420),
    ("WET", 0),
    ("WEST", 60),
    ("CET", 60),
    ("CEST", 120),
    ("EET", 120),
    ("EEST", 180),
    ("MSK", 180),
];

/// Converts year, month, day, hour, minute and second at an offset from UTC in seconds.
fn seconds(parts: [i16; 6], offset: i64) -> Option<Time> {
    let [year, rest @ ..] = parts;
    let [month, day, hour, minute, second] = rest.map(|part| i8::try_from(part).ok());
    // A leap second is the one before.
    let second = second.map(|second| if second == 60 { 59 } else { second });
    let local = DateTime::new(year, month?, day?, hour?, minute?, second?, 0).ok()?;
    let since = local.duration_since(EPOCH).as_secs();
    from_seconds(since - offset)
}

struct TimeParser<'a>(&'a [u8]);

impl TimeParser<'_> {
    fn digits(&mut self, count: RangeInclusive<usize>) -> Option<i16> {
        let all = self.0.iter().take(*count.end());
        let len = all.take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(len);
        self.0 = rest;
        let number = digits
            .iter()
            .fold(0, |number, digit| number * 10 + i16::from(digit - b'0'));
        count.contains(&len).then_some(number)
    }

    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        bytes.contains(&byte).then_some(byte)
    }

    fn fraction(&mut self) -> Option<()> {
        if let Some(rest) = self.0.strip_prefix(b".") {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            self.0 = &rest[digits..];
            return (digits > 0).then_some(());
        }
        Some(())
    }

    /// Reads `Z`, `UTC`, `GMT`, `+hh:mm`, `+hhmm` or `+hh`, after an optional space; returns seconds east of UTC.
    fn offset(&mut self) -> Option<i64> {
        self.0 = self.0.strip_prefix(b" ").unwrap_or(self.0);
        let names: [&[u8]; 3] = [b"Z", b"UTC", b"GMT"];
        if names.iter().any(|name| self.0.eq_ignore_ascii_case(name)) {
            self.0 = &[];
            return Some(0);
        }
        let is_west = self.one_of(b"+-")? == b'-';
        let hours = self.digits(2..=2)?;
        let minutes = if self.0.is_empty() {
            0
        } else {
            self.0 = self.0.strip_prefix(b":").unwrap_or(self.0);
            self.digits(2..=2)?
        };
        let seconds = 60 * (i64::from(hours) * 60 + i64::from(minutes));
        let signed = if is_west { -seconds } else { seconds };
        (hours < 24 && minutes < 60).then_some(signed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values are from GNU date: `date -u -d 1996-12-19T16:39:57-08:00 +%s`.
    #[test]
    fn rfc3339_as_gnu_date_reads_it() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1996-12-19T16:39:57-08:00", 851_042_397),
            ("1985-04-12T23:20:50.52Z", 482_196_050),
            ("1937-01-01T12:00:27.87+00:20", -1_041_337_173),
            ("2024-02-29t23:59:59z", 1_709_251_199),
            ("2015-04-30 10:00:21+00:00", 1_430_388_021),
            ("1990-12-31T23:59:60Z", 662_687_999),
            ("0000-01-01T00:00:00Z", EARLIEST),
            ("9999-12-31T23:59:59Z", LATEST),
        ] {
            assert_eq!(from_text(text), Some(expected), "{text}");
            assert_eq!(from_archive(text), Some(expected), "{text}");
        }
    }

    // Expected values are from `date -u -d '2008-10-29 04:21:46 -0700' +%s`; days of the year from `date -u -d
    // '2008-01-01 05:21:46 -0700 +293 days' +%s`.
    #[test]
    fn what_is_near_rfc3339_and_means_one_thing() {
        for (text, expected) in [
            ("2008-10-29T4:21:46Z", 1_225_254_106),
            ("2008-10-29T04:21:46-0700", 1_225_279_306),
            ("2008-10-29T04:21:46 -07", 1_225_279_306),
            ("2008/10/29 4:21:46 UTC", 1_225_254_106),
            ("2008-10-29 04:21:46.123 gmt", 1_225_254_106),
            (" 2008-1-2T3:4:5+05:30 ", 1_199_223_245),
            ("20081029042146", 1_225_254_106),
            ("20081029042146999", 1_225_254_106),
            ("2008-10-294T05:21:46-0700", 1_224_505_306),
            ("2009-03-65T08:43:19-0800", 1_236_357_799),
            ("2009-12-365T00:00:00Z", 1_262_217_600),
            ("2008-12-366T00:00:00Z", 1_230_681_600),
        ] {
            assert_eq!(from_text(text), Some(expected), "{text}");
            assert_eq!(from_archive(text), Some(expected), "{text}");
        }
        for text in [
            "2008-10-029T4:21:46Z",
            "2008-09-294T05:21:46-0700",
            "2008-11-294T05:21:46-0700",
            "2009-12-366T00:00:00Z",
            "2009-02-30T00:00:00Z",
            "2009-03-00T00:00:00Z",
            "2008/10-29T04:21:46Z",
            "2008-10-29T04:21:46-070",
            "2008-10-29T04:21:46-07000",
            "2008-10-29T04:21:46-7",
            "2008-10-29T04:21:46+2400",
            "2008-10-29T04:21:46+0060",
            "2008-10-29T04:21:46 EST",
            "2008-10-29T04:21:46UTC+1",
            "2008-10-29T::Z",
            "08-10-29T04:21:46Z",
            "1225254106",
            "2008102904",
            "081029",
        ] {
            assert_eq!(
                (from_text(text), from_archive(text)),
                (None, None),
                "{text}"
            );
        }
    }

    /// A date written with the day of the year equals the one with the day of the month.
    #[test]
    fn days_of_the_year_are_days() {
        for year in [2008, 2009, 2100] {
            let days = if Date::new(year, 1, 1).unwrap().in_leap_year() {
                366
            } else {
                365
            };
            let mut date = Date::new(year, 1, 1).unwrap();
            for day in 1..=days {
                let month = i16::from(date.month());
                let usual = day_of_month(year, month, i16::from(date.day()), false);
                assert_eq!(usual, Some(i16::from(date.day())));
                for is_long in [false, true] {
                    let found = day_of_month(year, month, day, is_long);
                    assert_eq!(found, usual, "{year} {day}");
                }
                date = date.tomorrow().unwrap();
            }
        }
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "2015",
            "2015-04-30",
            "2015-04-30T10:00:21",
            "2015-02-29T00:00:00Z",
            "2015-04-30T24:00:00Z",
            "2015-04-30T10:60:00Z",
            "2015-04-30T10:00:61Z",
            "2015-04-30T10:00:00.Z",
            "2015-04-30T10:00:00+24:00",
            "+015-04-30T10:00:00Z",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "20150430",
            "é015-04-30T10:00:00Z",
        ] {
            assert_eq!(from_text(text), None, "{text}");
        }
        for text in [
            "",
            "20081330204825",
            "2008043020482",
            "2016-",
            "2016-13",
            "2016-01-11T",
            "2016-01-11T23Z",
        ] {
            assert_eq!(from_archive(text), None, "{text}");
        }
    }

    // Expected values are from `date -u -d '2008-04-30 20:48:25' +%s`.
    #[test]
    fn archive_times() {
        for (text, expected) in [
            ("20080430204825", 1_209_588_505),
            ("2016", 1_451_606_400),
            ("2016-03", 1_456_790_400),
            ("2016-01-11", 1_452_470_400),
            ("2016-01-11T23:24Z", 1_452_554_640),
            ("2008-10-29T4:21:46", 1_225_254_106),
            ("200012060402", 976_075_320),
            ("20080430", 1_209_513_600),
        ] {
            assert_eq!(from_archive(text), Some(expected), "{text}");
        }
    }

    // Expected values are from `date -u -d '2013-04-02 11:22:33 +02:00' +%s`.
    #[test]
    fn digits_and_java() {
        for (text, expected) in [
            ("20080430", Some(1_209_513_600)),
            ("20080430204825", Some(1_209_588_505)),
            ("20080430204825999", Some(1_209_588_505)),
            ("2008043", None),
            ("20081330", None),
            ("2008043020482x", None),
            ("+0080430", None),
        ] {
            assert_eq!(from_digits(text), expected, "{text}");
        }
        for (text, expected) in [
            ("Tue Apr 02 11:22:33 UTC 2013", Some(1_364_901_753)),
            ("Tue Apr 02 11:22:33 CEST 2013", Some(1_364_894_553)),
            ("Tue Apr 02 11:22:33 PDT 2013", Some(1_364_926_953)),
            ("Tue Apr 02 11:22:33 GMT-03:00 2013", Some(1_364_912_553)),
            ("Thu Jan 01 00:00:00 GMT 1970", Some(0)),
            ("Tue Apr 02 11:22:33 IST 2013", None),
            ("Tue Apr 02 11:22:33 2013", None),
            ("Tue Apr 31 11:22:33 UTC 2013", None),
            ("Tue Apr 2 11:22:33 UTC 2013", None),
            ("Tue Apr 02 11:22:33 GMT+1 2013", None),
            ("Tue Apr 02 11:22:33 UTC 2013 x", None),
            ("", None),
        ] {
            assert_eq!(from_java(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_floored_and_bounded() {
        assert_eq!(from_fraction(1.9), Some(1));
        assert_eq!(from_fraction(-0.5), Some(-1));
        assert_eq!(from_fraction(LATEST as f64 + 0.5), Some(LATEST));
        assert_eq!(from_fraction(LATEST as f64 + 1.0), None);
        assert_eq!(from_fraction(f64::NAN), None);
        assert_eq!(from_fraction(f64::INFINITY), None);
        assert_eq!(from_seconds(EARLIEST), Some(EARLIEST));
        assert_eq!(from_seconds(EARLIEST - 1), None);
        assert_eq!(from_seconds(1_430_387_621_000), None);
    }
}
