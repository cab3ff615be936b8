//! Values of records' fields in all notations of crawlers: texts, times, statuses, lists of URLs, counts.

use std::borrow::Cow;

use serde_json::Result as JsonResult;

use super::link::each;
use crate::decode::json::{Value, bytes};
use crate::decode::{Bad, RecordTime, time};
use crate::model::FetchTotals;
use crate::rules::FieldName;

pub(super) type Text<'a> = Cow<'a, [u8]>;

pub(super) fn some(value: Value<'_>) -> Option<Value<'_>> {
    (!matches!(value, Value::Null)).then_some(value)
}

pub(super) fn text(value: Value<'_>) -> JsonResult<Option<Text<'_>>> {
    match value {
        Value::Null => Ok(None),
        Value::Text(text) => Ok(Some(bytes(text))),
        other => Err(other.wrong_type("a string")),
    }
}

/// Marks a time as UTC if it is a text without an offset.
pub(super) fn in_utc(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Text(text) if time::from_text(&text).is_none() => {
            let utc = format!("{text}Z");
            Value::Text(match time::from_text(&utc) {
                Some(_) => Cow::Owned(utc),
                None => text,
            })
        }
        other => other,
    }
}

/// Reads a time, once its field is certain to count: an invalid `timestamp` next to `fetched_at` does no harm.
pub(super) fn read_time(value: &Value<'_>) -> RecordTime {
    let time = match value {
        Value::Int(seconds) => time::from_seconds(*seconds),
        Value::Unsigned(seconds) => time::from_fraction(*seconds as f64),
        Value::Float(seconds) => time::from_fraction(*seconds),
        Value::Text(text) => time::from_text(text),
        _ => None,
    };
    time.map(Some).ok_or_else(|| {
        let shown = match value {
            Value::Int(seconds) => seconds.to_string(),
            Value::Unsigned(seconds) => (*seconds as f64).to_string(),
            Value::Float(seconds) => seconds.to_string(),
            Value::Text(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
            Value::Bool(_) => "a boolean".to_owned(),
            Value::List(_) => "an array".to_owned(),
            Value::Null | Value::Object => "an object".to_owned(),
        };
        format!("{shown} is neither RFC 3339 nor seconds since 1970 (milliseconds?)")
    })
}

/// Reads requested URLs, of which each redirected to the next, the last to the record's: one text or more, or a list.
pub(super) fn urls<'a>(value: Value<'a>) -> JsonResult<Option<Vec<Text<'a>>>> {
    let owned = |value: Value<'_>| -> JsonResult<Option<Text<'a>>> {
        Ok(text(value)?.map(|url| Cow::Owned(url.into_owned())))
    };
    let urls = match value {
        Value::Null => return Ok(None),
        list @ (Value::Text(_) | Value::List(_)) => each(list, owned).transpose()?,
        other => return Err(other.wrong_type("a URL that was asked for, or a list of them")),
    };
    let urls = urls.into_iter().flatten().flatten();
    Ok(Some(urls.filter(|url| !url.is_empty()).collect()))
}

/// Reads a status: a whole number, which may be written as `200.0` or `"200"`.
pub(super) fn status(value: Value<'_>) -> JsonResult<Option<i32>> {
    const EXPECTED: &str = "a status: a whole number of at most 32 bits, or its digits";
    let status = match &value {
        Value::Null => return Ok(None),
        Value::Int(status) => i32::try_from(*status).ok(),
        Value::Float(status) => Some(*status as i32).filter(|whole| f64::from(*whole) == *status),
        Value::Text(text) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_number)
        }
        Value::Unsigned(_) => None,
        _ => return Err(value.wrong_type(EXPECTED)),
    };
    let wrong = || value.wrong_value(EXPECTED);
    status.map(Some).ok_or_else(wrong)
}

pub(super) const TOTALS: usize = FieldName::Watched as usize - FieldName::Visits as usize + 1;

/// Returns the totals of a page's fetches; `None` without `visits`.
pub(super) fn totals(values: &[Option<Value<'_>>; TOTALS]) -> Result<Option<FetchTotals>, Bad> {
    let [visits, failed, last_failed, compared, changed, watched] = values;
    if visits.is_none() {
        return Ok(None);
    }
    let count = |name: &str, value: &Option<Value<'_>>| {
        let number = match value {
            None => Some(0),
            Some(Value::Int(number)) => u32::try_from(*number).ok(),
            Some(_) => None,
        };
        let most = u32::MAX;
        number.ok_or_else(|| {
            Bad::malformed(format!(
                "`{name}`: expected a whole number from 0 to {most}"
            ))
        })
    };
    let last_failed = last_failed.as_ref().map_or(Ok(None), read_time);
    let totals = FetchTotals {
        visits: count("visits", visits)?,
        failed: count("failed", failed)?,
        last_failed: last_failed
            .map_err(|what| Bad::malformed(format!("`last_failed`: {what}")))?,
        compared: count("compared", compared)?,
        changed: count("changed", changed)?,
        watched_s: count("watched_s", watched)?,
    };
    if totals.changed > totals.compared {
        return Err(Bad::malformed("`changed` is more than `compared`"));
    }
    Ok(Some(totals))
}
