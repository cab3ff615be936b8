//! Values of records' fields in every notation that crawlers use: times, digests, statuses.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::link::urls;
use crate::decode::json::JsonText;
use crate::decode::{Bad, RecordTime, http, time};
use crate::model::{Digest, FetchTotals};

/// Time as written. It is parsed only if its field counts: an invalid `timestamp` next to `fetched_at` does no harm.
pub(super) enum RawTime<'a> {
    Seconds(i64),
    /// Number with a fraction, or a whole number beyond `i64`.
    Fraction(f64),
    Text(Cow<'a, str>),
    /// Anything else, by its JSON type name.
    Other(&'static str),
}

impl<'a> RawTime<'a> {
    /// Returns the time, read as UTC if it is a text without an offset.
    pub fn in_utc(self) -> RawTime<'a> {
        match self {
            RawTime::Text(text) if time::from_text(&text).is_none() => {
                let utc = format!("{text}Z");
                match time::from_text(&utc) {
                    Some(_) => RawTime::Text(Cow::Owned(utc)),
                    None => RawTime::Text(text),
                }
            }
            other => other,
        }
    }

    pub fn read(self) -> RecordTime {
        let time = match &self {
            RawTime::Seconds(seconds) => time::from_seconds(*seconds),
            RawTime::Fraction(seconds) => time::from_fraction(*seconds),
            RawTime::Text(text) => time::from_text(text),
            RawTime::Other(_) => None,
        };
        time.map(Some).ok_or_else(|| {
            let message = match self {
                RawTime::Seconds(seconds) => seconds.to_string(),
                RawTime::Fraction(seconds) => seconds.to_string(),
                RawTime::Text(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
                RawTime::Other(kind) => kind.to_owned(),
            };
            format!("{message} is neither RFC 3339 nor seconds since 1970 (milliseconds?)")
        })
    }
}

impl<'de> Deserialize<'de> for RawTime<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeVisitor;
        impl<'de> Visitor<'de> for TimeVisitor {
            type Value = RawTime<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time: RFC 3339, or seconds since 1970")
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<Self::Value, E> {
                Ok(RawTime::Seconds(seconds))
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<Self::Value, E> {
                Ok(i64::try_from(seconds)
                    .map_or(RawTime::Fraction(seconds as f64), RawTime::Seconds))
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<Self::Value, E> {
                Ok(RawTime::Fraction(seconds))
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(RawTime::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(RawTime::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
                Ok(RawTime::Other("a boolean"))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(RawTime::Other("an array"))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(RawTime::Other("an object"))
            }
        }
        deserializer.deserialize_any(TimeVisitor)
    }
}

/// Digest of the content, whatever computed it. A value that is not a text, or empty, counts as none and does not
/// reject the record.
#[derive(Default)]
pub(super) struct ContentDigest(pub Digest);

impl ContentDigest {
    pub fn of(text: &str) -> ContentDigest {
        ContentDigest(Digest::of_text(text))
    }
}

impl<'de> Deserialize<'de> for ContentDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(ContentDigest::of(value.as_str().unwrap_or_default()))
    }
}

/// Requested URLs, each of which redirected to the next and the last to the record's URL: one text, several in one
/// text, or a list.
pub(super) struct RequestedUrls<'a>(pub Vec<Cow<'a, [u8]>>);

impl<'a> RequestedUrls<'a> {
    pub fn of(text: Cow<'a, [u8]>) -> RequestedUrls<'a> {
        let urls = match text {
            Cow::Borrowed(text) => str::from_utf8(text).map_or(vec![], |text| {
                let of_text = |url| match url {
                    Cow::Borrowed(url) => Cow::Borrowed(str::as_bytes(url)),
                    Cow::Owned(url) => Cow::Owned(String::into_bytes(url)),
                };
                urls(text).into_iter().map(of_text).collect()
            }),
            Cow::Owned(text) => {
                let text = String::from_utf8_lossy(&text);
                let urls = urls(&text).into_iter();
                urls.map(|url| Cow::Owned(url.into_owned().into_bytes()))
                    .collect()
            }
        };
        let mut urls: Vec<Cow<'a, [u8]>> = urls;
        urls.retain(|url| !url.is_empty());
        RequestedUrls(urls)
    }
}

impl<'de> Deserialize<'de> for RequestedUrls<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AskedVisitor;
        impl<'de> Visitor<'de> for AskedVisitor {
            type Value = RequestedUrls<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a URL that was asked for, or a list of them")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(RequestedUrls::of(Cow::Borrowed(text.as_bytes())))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(RequestedUrls::of(Cow::Owned(text.as_bytes().to_vec())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut urls = Vec::new();
                while let Some(url) = seq.next_element::<Option<JsonText<'_>>>()? {
                    urls.extend(url.map(|JsonText(url)| url).filter(|url| !url.is_empty()));
                }
                Ok(RequestedUrls(urls))
            }
        }
        deserializer.deserialize_any(AskedVisitor)
    }
}

/// HTTP method if it is not GET; `None` also for anything that is not an HTTP method.
pub(super) struct MethodField(pub Option<&'static str>);

impl MethodField {
    pub fn of(text: &str) -> MethodField {
        MethodField(http::not_get(text.as_bytes()))
    }
}

impl<'de> Deserialize<'de> for MethodField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(MethodField::of(value.as_str().unwrap_or_default()))
    }
}

/// Totals over all fetches of a page; read only if `visits` is present.
#[derive(Default)]
pub(super) struct RawTotals<'a> {
    pub visits: Option<Count>,
    pub failed: Option<Count>,
    pub last_failed: Option<RawTime<'a>>,
    pub compared: Option<Count>,
    pub changed: Option<Count>,
    pub watched_s: Option<Count>,
}

/// Count; `None` if it is not a whole number of 32 bits.
pub(super) struct Count(pub Option<u32>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Count::of(value.as_u64()))
    }
}

impl Count {
    pub fn of(number: Option<u64>) -> Count {
        Count(number.and_then(|number| u32::try_from(number).ok()))
    }
}

impl RawTotals<'_> {
    pub fn read(self) -> Result<Option<FetchTotals>, Bad> {
        if self.visits.is_none() {
            return Ok(None);
        }
        let count = |name: &str, count: Option<Count>| {
            count
                .map_or(Some(0), |Count(number)| number)
                .ok_or_else(|| {
                    Bad::malformed(format!(
                        "`{name}`: expected a whole number from 0 to {}",
                        u32::MAX
                    ))
                })
        };
        let last_failed = self.last_failed.map_or(Ok(None), RawTime::read);
        let totals = FetchTotals {
            visits: count("visits", self.visits)?,
            failed: count("failed", self.failed)?,
            last_failed: last_failed
                .map_err(|what| Bad::malformed(format!("`last_failed`: {what}")))?,
            compared: count("compared", self.compared)?,
            changed: count("changed", self.changed)?,
            watched_s: count("watched_s", self.watched_s)?,
        };
        if totals.changed > totals.compared {
            return Err(Bad::malformed("`changed` is more than `compared`"));
        }
        Ok(Some(totals))
    }
}

/// Status: a whole number, also written as `200.0` or `"200"`.
pub(super) struct StatusField(pub i32);

impl<'de> Deserialize<'de> for StatusField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StatusVisitor;
        impl Visitor<'_> for StatusVisitor {
            type Value = StatusField;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a status: a whole number of at most 32 bits, or its digits")
            }

            fn visit_i64<E: Error>(self, status: i64) -> Result<StatusField, E> {
                let invalid = |_| E::invalid_value(serde::de::Unexpected::Signed(status), &self);
                i32::try_from(status).map(StatusField).map_err(invalid)
            }

            fn visit_u64<E: Error>(self, status: u64) -> Result<StatusField, E> {
                let invalid = |_| E::invalid_value(serde::de::Unexpected::Unsigned(status), &self);
                i32::try_from(status).map(StatusField).map_err(invalid)
            }

            fn visit_f64<E: Error>(self, status: f64) -> Result<StatusField, E> {
                let whole = status as i32;
                if f64::from(whole) != status {
                    return Err(E::invalid_value(
                        serde::de::Unexpected::Float(status),
                        &self,
                    ));
                }
                Ok(StatusField(whole))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<StatusField, E> {
                let digits = text.strip_prefix('-').unwrap_or(text);
                let status = if digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    text.parse().ok()
                } else {
                    None
                };
                let invalid = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
                status.map(StatusField).ok_or_else(invalid)
            }
        }
        deserializer.deserialize_any(StatusVisitor)
    }
}
