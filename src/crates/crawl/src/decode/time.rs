//! Times in crawlers' notations, parsed to seconds since 1970-01-01T00:00:00Z. All lie within the years 0000 to 9999: a
//! larger number is most likely in milliseconds, and rejected.

use jiff::civil::{Date, DateTime, datetime};

use super::Time;

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
/// Earliest time: 0000-01-01T00:00:00Z.
pub(super) const EARLIEST: Time = -62_167_219_200;
/// Latest time: 9999-12-31T23:59:59Z.
pub(super) const LATEST: Time = 253_402_300_799;

/// Accepts a whole number of seconds.
pub(super) fn from_seconds(seconds: i64) -> Option<Time> {
    (EARLIEST..=LATEST).contains(&seconds).then_some(seconds)
}

/// Rounds seconds with a fraction down (-0.5 is second -1).
pub fn from_fraction(seconds: f64) -> Option<Time> {
    let floor = seconds.floor();
    // Both bounds are exact in an f64; NaN fails both comparisons.
    (floor >= EARLIEST as f64 && floor <= LATEST as f64).then_some(floor as Time)
}

/// Parses a date and a time of day with its offset from UTC: RFC 3339 (`2015-04-30T10:00:21Z`, `t` or a space for the
/// `T`, a fraction, which is dropped, an offset), and unambiguous variants:
///
/// - fields with one digit instead of two (`2008-10-29T4:21:46Z`), `/` between year, month and day;
/// - offsets without a colon or without minutes (`-0700`, `-07`), `UTC` or `GMT` for `Z`, a space before either;
/// - 14 or 17 digits, see [`from_digits`];
/// - days of the year in place of days of the month ([`day_of_month`]).
///
/// Second 60 is read as 59.
pub fn from_text(text: &str) -> Option<Time> {
    near(text, None).or_else(|| from_digits(text).filter(|_| text.len() >= 14))
}

/// Parses a time of an archive file, which is in UTC unless it has an offset: digits ([`from_digits`]; 14 in ARC), the
/// notations of [`from_text`], also without an offset, or the shorter forms of WARC 1.1 (`2016`, `2016-01`,
/// `2016-01-11`, `2016-01-11T23:24Z`), read as their first second.
pub fn from_archive(text: &str) -> Option<Time> {
    let spelled = || near(text, Some(0)).or_else(|| from_short(text));
    from_digits(text).or_else(spelled)
}

/// Parses the notations of [`from_text`] other than digits. `unsaid` is the offset of a time without one.
fn near(text: &str, unsaid: Option<i64>) -> Option<Time> {
    let mut rest = TimeParser(text.trim_matches(' ').as_bytes());
    let year = rest.digits(4)?;
    let separator = [*rest.0.first().filter(|byte| b"-/".contains(byte))?];
    let month = rest.few_after(&separator, 2)?;
    let before = rest.0.len();
    let day = rest.few_after(&separator, 3)?;
    let day = day_of_month(year, month, day, before - rest.0.len() > 3)?;
    let (hour, minute) = (rest.few_after(b"Tt ", 2)?, rest.few_after(b":", 2)?);
    let second = rest.few_after(b":", 2)?;
    rest.fraction()?;
    let offset = match (rest.0.is_empty(), unsaid) {
        (true, Some(offset)) => offset,
        _ => rest.offset_of_any_kind()?,
    };
    rest.end()?;
    seconds([year, month, day, hour, minute, second], offset)
}

/// Returns the day of the month, which may be written as a day of the year: in Java's patterns, `dd` is the former and
/// `DD` the latter, and whole crawls are dated by the wrong one (`2009-03-65` in ClueWeb09 is 6 March). A valid day of
/// the month is taken as one. Another number, or one of three digits (`is_long`), must be a day of the year that lies
/// in the month, which confirms that it was meant so.
fn day_of_month(year: i16, month: i16, day: i16, is_long: bool) -> Option<i16> {
    let first = Date::new(year, i8::try_from(month).ok()?, 1).ok()?;
    let days = 1..=i16::from(first.days_in_month());
    let of_year = day - (first.day_of_year() - 1);
    let found = if is_long {
        [of_year; 2]
    } else {
        [day, of_year]
    };
    found.into_iter().find(|day| days.contains(day))
}

/// Parses digits in UTC: a day (`20080430`) or a minute (12 digits), each as its first second, a second (14 digits), or
/// a millisecond (17 digits, rounded down). Not ten digits, which may be seconds since 1970, nor six, which may be a
/// year of two digits.
pub(super) fn from_digits(text: &str) -> Option<Time> {
    let length_fits = matches!(text.len(), 8 | 12 | 14 | 17);
    if !length_fits || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut rest = TimeParser(text.as_bytes());
    let mut parts = [rest.digits(4)?, rest.digits(2)?, rest.digits(2)?, 0, 0, 0];
    for part in &mut parts[3..] {
        // The last three of 17 digits are a fraction.
        if rest.0.len() >= 2 {
            *part = rest.digits(2)?;
        }
    }
    seconds(parts, 0)
}

/// Parses the output of Java's `Date.toString`: `Tue Apr 02 11:22:33 UTC 2013`. The zone is `GMT+01:00` or an
/// unambiguous name ([`ZONES`]); the day of the week is ignored.
pub(super) fn from_java(text: &str) -> Option<Time> {
    let mut words = text.split(' ');
    let mut word = || words.next();
    let (_, month, day, clock, zone, year) = (word()?, word()?, word()?, word()?, word()?, word()?);
    if word().is_some() {
        return None;
    }
    let month = MONTHS.iter().position(|name| *name == month)? as i16 + 1;
    let mut day = TimeParser(day.as_bytes());
    let day_of_month = day.digits(2)?;
    day.end()?;
    let mut clock = TimeParser(clock.as_bytes());
    let time = [
        clock.digits(2)?,
        clock.after(b":", 2)?,
        clock.after(b":", 2)?,
    ];
    clock.end()?;
    let mut year = TimeParser(year.as_bytes());
    let years = year.digits(4)?;
    year.end()?;
    let offset = match ZONES.iter().find(|(name, _)| *name == zone) {
        Some((_, minutes)) => i64::from(*minutes) * 60,
        None => {
            let mut rest = TimeParser(zone.strip_prefix("GMT")?.as_bytes());
            let offset = rest.offset()?;
            rest.end()?;
            offset
        }
    };
    let [hour, minute, second] = time;
    seconds([years, month, day_of_month, hour, minute, second], offset)
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Zones that [`from_java`] knows, in minutes east: those of RFC 2822, and Europe's. Other names, like `IST` and `BST`,
/// are ambiguous.
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

fn from_short(text: &str) -> Option<Time> {
    let mut rest = TimeParser(text.as_bytes());
    let mut parts = [rest.digits(4)?, 1, 1, 0, 0, 0];
    let mut offset = 0;
    for (at, before) in [(1, b"-"), (2, b"-")] {
        if rest.0.is_empty() {
            break;
        }
        parts[at] = rest.after(before, 2)?;
    }
    if !rest.0.is_empty() {
        (parts[3], parts[4]) = (rest.after(b"Tt ", 2)?, rest.after(b":", 2)?);
        offset = rest.offset()?;
    }
    rest.end()?;
    seconds(parts, offset)
}

/// Converts year, month, day, hour, minute, second at an offset from UTC in seconds.
fn seconds(parts: [i16; 6], offset: i64) -> Option<Time> {
    let [year, rest @ ..] = parts;
    let [month, day, hour, minute, second] = rest.map(|part| i8::try_from(part).ok());
    let second = second.map(|second| if second == 60 { 59 } else { second });
    let local = DateTime::new(year, month?, day?, hour?, minute?, second?, 0).ok()?;
    let since = local.duration_since(EPOCH).as_secs();
    from_seconds(since - offset)
}

/// Returns an offset in seconds east of UTC.
fn offset(is_west: bool, hours: i16, minutes: i16) -> Option<i64> {
    let seconds = 60 * (i64::from(hours) * 60 + i64::from(minutes));
    let signed = if is_west { -seconds } else { seconds };
    (hours < 24 && minutes < 60).then_some(signed)
}

/// Parser over the rest of a text.
struct TimeParser<'a>(&'a [u8]);

impl TimeParser<'_> {
    fn digits(&mut self, count: usize) -> Option<i16> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        digits.iter().try_fold(0, |number, digit| {
            let digit = digit.is_ascii_digit().then(|| i16::from(digit - b'0'))?;
            Some(number * 10 + digit)
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// Reads `count` digits after one of `before`.
    fn after(&mut self, before: &[u8], count: usize) -> Option<i16> {
        before.contains(&self.byte()?).then_some(())?;
        self.digits(count)
    }

    /// Reads one to `most` digits after one of `before`.
    fn few_after(&mut self, before: &[u8], most: usize) -> Option<i16> {
        before.contains(&self.byte()?).then_some(())?;
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit());
        self.digits(digits.count().clamp(1, most))
    }

    /// Skips a `.` and at least one digit, if there is a `.`.
    fn fraction(&mut self) -> Option<()> {
        if let Some(rest) = self.0.strip_prefix(b".") {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            self.0 = &rest[digits..];
            return (digits > 0).then_some(());
        }
        Some(())
    }

    /// Reads `Z` or `+hh:mm`; returns seconds.
    fn offset(&mut self) -> Option<i64> {
        let is_west = match self.byte()? {
            b'Z' | b'z' => return Some(0),
            b'+' => false,
            b'-' => true,
            _ => return None,
        };
        offset(is_west, self.digits(2)?, self.after(b":", 2)?)
    }

    /// Reads `UTC`, `GMT`, `+hhmm`, `+hh` or what [`TimeParser::offset`] reads, with an optional space before it.
    fn offset_of_any_kind(&mut self) -> Option<i64> {
        self.0 = self.0.strip_prefix(b" ").unwrap_or(self.0);
        let (&first, digits) = self.0.split_first()?;
        let is_plain = digits.iter().all(u8::is_ascii_digit);
        let mut rest = TimeParser(digits);
        let offset = match (first, digits.len()) {
            (b'U' | b'u' | b'G' | b'g', _) => {
                let named = [&b"UTC"[..], b"GMT"];
                let known = named.iter().any(|name| self.0.eq_ignore_ascii_case(name));
                known.then_some(0)?
            }
            (b'+' | b'-', 2 | 4) if is_plain => {
                let hours = rest.digits(2)?;
                let minutes = if digits.len() == 4 {
                    rest.digits(2)?
                } else {
                    0
                };
                offset(first == b'-', hours, minutes)?
            }
            _ => return self.offset(),
        };
        self.0 = &[];
        Some(offset)
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
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
