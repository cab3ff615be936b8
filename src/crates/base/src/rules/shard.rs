//! Part of a crawl that one store takes: `--shard`.
//!
//! Pages are assigned by host, so that a site is in one shard: XXH3-64 with seed 0 of the host's name
//! ([`host`](crate::url::host)), modulo the number of shards. A name without a host is hashed whole.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::Names;
use crate::url::{self, host};
use crate::{Error, Result};

/// One of several stores that share a crawl by host, written as in `--shard`: `2/8` is number 2 of the shards 0 to 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    number: u32,
    count: u32,
}

impl Shard {
    /// Returns the shard's number, from 0.
    pub fn number(self) -> u32 {
        self.number
    }

    /// Returns the number of shards.
    pub fn count(self) -> u32 {
        self.count
    }

    /// Returns whether the page of this name, a canonical URL or an opaque name, belongs to the shard.
    #[inline]
    pub fn has(self, name: &[u8]) -> bool {
        self.owner_of(name) == self.number
    }

    /// Returns the number of the shard that owns the page of this name.
    #[inline]
    pub fn owner_of(self, name: &[u8]) -> u32 {
        let host = host(name);
        let dealt = if host.is_empty() { name } else { host };
        (xxh3_64(dealt) % u64::from(self.count)) as u32
    }

    /// Returns whether the page `raw`, as its input spells it, belongs to another shard; only a URL does.
    pub fn passes_over(self, raw: &[u8], names: Names) -> bool {
        if names == Names::Opaque || url::is_canonical(raw) {
            return !raw.is_empty() && !self.has(raw);
        }
        url::name_of(raw, None, usize::MAX).is_ok_and(|name| !self.has(&name))
    }
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shard> {
        let whole = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u32>().ok().filter(|_| is_plain)
        };
        let parts = text.split_once('/');
        match parts.and_then(|(number, count)| whole(number).zip(whole(count))) {
            Some((number, count)) if number < count => Ok(Shard { number, count }),
            Some((_, count @ 1..)) => Err(Error::Usage(format!(
                "{text:?}: shards are counted from 0: of {count} they are 0/{count} to {}/{count}",
                count - 1
            ))),
            _ => Err(Error::Usage(format!(
                "{text:?}: K/N is expected, shard K of N, counted from 0: 0/4 to 3/4 for four stores"
            ))),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

crate::stored_as_text!(Shard);

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(text: &str) -> Shard {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_refused_says_what_is_right() {
        for (text, right) in [
            ("4/4", "0/4 to 3/4"),
            ("8/4", "0/4 to 3/4"),
            ("1/1", "0/1 to 0/1"),
            ("0/0", "K/N"),
            ("1", "K/N"),
            ("a/4", "K/N"),
            ("-1/4", "K/N"),
            ("+1/4", "K/N"),
            ("1/4/2", "K/N"),
            ("1 / 4", "K/N"),
            ("", "K/N"),
            ("/", "K/N"),
            ("1/4294967296", "K/N"),
        ] {
            let error = text.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains(right), "{text:?}: {error}");
        }
        assert_eq!(shard("3/4").to_string(), "3/4");
        let json = serde_json::to_string(&shard("0/1")).unwrap();
        assert_eq!(
            (&*json, serde_json::from_str(&json).ok()),
            ("\"0/1\"", Some(shard("0/1")))
        );
        assert!(serde_json::from_str::<Shard>("\"4/4\"").is_err());
    }

    /// XXH3-64 of host names by the reference implementation (`xxhash.xxh3_64_intdigest` of Python's xxhash), modulo 8.
    const HOSTS: [(&str, u32); 7] = [
        ("example.org", 5),
        ("www.example.org", 2),
        ("a.example", 0),
        ("b.example", 0),
        ("192.0.2.1", 0),
        ("[2001:db8::1]", 6),
        ("xn--bcher-kva.example", 6),
    ];

    #[test]
    fn pages_of_a_host_are_one_shards() {
        for (host, number) in HOSTS {
            let of = shard(&format!("{number}/8"));
            let other = shard(&format!("{}/8", (number + 1) % 8));
            for url in [
                format!("http://{host}/"),
                format!("https://{host}/a?b"),
                format!("http://me@{host}:8080/a"),
            ] {
                assert!(
                    of.has(url.as_bytes()) && !other.has(url.as_bytes()),
                    "{url}"
                );
            }
            assert!(of.has(host.as_bytes()), "an opaque name is hashed whole");
            assert_eq!(other.owner_of(host.as_bytes()), number);
            let spelled = format!("HTTP://{}/#top", host.to_uppercase());
            assert!(other.passes_over(spelled.as_bytes(), Names::Url));
            assert!(!of.passes_over(spelled.as_bytes(), Names::Url));
        }
        for (raw, names) in [
            ("mailto:a@b.example", Names::Url),
            ("", Names::Url),
            ("", Names::Opaque),
        ] {
            let passed_over = (0..4)
                .map(|number| shard(&format!("{number}/4")).passes_over(raw.as_bytes(), names));
            assert!(
                !passed_over.into_iter().any(|over| over),
                "no record is lost in all shards: {raw:?}"
            );
        }
    }
}
