//! Parameters of [`next`](crate::schedule::next), by name.

use std::collections::HashSet;
use std::path::Path;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Error as TimeError, Timestamp};

use super::list::each_listed;
use super::question::{flag, parsed, unknown};
use crate::decode::Time;
use crate::disk::RealDisk;
use crate::model::{PageId, split_time};
use crate::rows::Bits;
use crate::rules::list::{NameSet, SkippedLines};
use crate::schedule::{Candidate, ListLimits, NextOptions, PageSelection, Seed};
use crate::snapshot::Snapshot;
use crate::store::settings_of;
use crate::{Error, Result};

/// Parameter of a list, of which the command makes an option.
pub struct Parameter {
    /// Name: words joined by `-`.
    pub name: &'static str,
    pub takes: Takes,
    /// Default as text; `None` if it cannot be written as text.
    pub default: Option<&'static str>,
    pub help: &'static str,
    /// Names of parameters that it excludes, and that exclude it.
    pub excludes: &'static [&'static str],
    set: fn(&mut NextOptions, &str) -> Read<()>,
}

/// Number of values that a parameter takes, with the name of a value for the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// No value, or `1`.
    Nothing,
    Value(&'static str),
    /// One value each time the parameter is given; it may be repeated.
    Values(&'static str),
}

impl Parameter {
    /// Checks a value. The error says what would be valid.
    pub fn check(&self, value: &str) -> Read<()> {
        self.read(value, &mut NextOptions::default())
    }

    fn read(&self, value: &str, asked: &mut NextOptions) -> Read<()> {
        if self.takes == Takes::Nothing {
            flag(value)?;
        }
        (self.set)(asked, value)
    }
}

/// Parameters of a list, except for its length.
pub const NEXT: [Parameter; 12] = [
    Parameter {
        name: "strategy",
        takes: Takes::Value("ORDER"),
        default: Some("forecast"),
        help: "The order of pages that were not fetched yet. Parameters may follow, as in fica:k=1000,beta=0.2.",
        excludes: &[],
        set: |asked, text| put(&mut asked.strategy, text.parse()),
    },
    Parameter {
        name: "refetch",
        takes: Takes::Nothing,
        default: None,
        help: "List pages to fetch again, those with the largest expected gain first, and no others.",
        excludes: &["budget", "focus"],
        set: |asked, _| put(&mut asked.which, Ok(PageSelection::Refetch)),
    },
    Parameter {
        name: "budget",
        takes: Takes::Value("discovery=SHARE"),
        default: None,
        help: "List pages of both kinds; SHARE is the share of pages not fetched yet, or `any`: as many of each as come, for the order greedy.",
        excludes: &["refetch"],
        set: |asked, text| put(&mut asked.which, budget(text)),
    },
    Parameter {
        name: "per-host",
        takes: Takes::Value("N"),
        default: None,
        help: "List at most N pages of one host.",
        excludes: &[],
        set: |asked, text| put(&mut asked.per_host, positive(text).map(Some)),
    },
    Parameter {
        name: "per-domain",
        takes: Takes::Value("N"),
        default: None,
        help: "List at most N pages of one registered domain (by the public suffix list).",
        excludes: &[],
        set: |asked, text| put(&mut asked.per_domain, positive(text).map(Some)),
    },
    Parameter {
        name: "scope",
        takes: Takes::Values("PAGES"),
        default: None,
        help: "List only these pages: host:NAME, barehost:NAME, domain:NAME, prefix:HOST/FOLDERS or url:PATTERN, where * matches anything. With `!` in front: \
            all but these. May be repeated [default: all].",
        excludes: &[],
        set: |asked, text| parsed(text).map(|pages| asked.scope.add(pages)),
    },
    Parameter {
        name: "known-hosts",
        takes: Takes::Nothing,
        default: None,
        help: "List only pages of hosts of which a page was fetched, or is among the seeds.",
        excludes: &[],
        set: |asked, _| put(&mut asked.known_hosts, Ok(true)),
    },
    Parameter {
        name: "older-than",
        takes: Takes::Value("TIME"),
        default: None,
        help: "Fetch again only pages whose last fetch is at least this long ago: 90s, 15m, 12h, 30d, 4w.",
        excludes: &[],
        set: |asked, text| put(&mut asked.older_than, duration(text).map(Some)),
    },
    Parameter {
        name: "focus",
        takes: Takes::Values("PAGES=SHARE"),
        default: None,
        help: "Bring these pages forward: readers who start anew go to them with probability SHARE. host:NAME, barehost:NAME, \
            domain:NAME, prefix:HOST/FOLDERS or url:PATTERN, as in url:*news*=0.3. The first rule that matches a page counts. \
            May be repeated. For the orders forecast, settled and xyleme.",
        excludes: &["refetch"],
        set: |asked, text| parsed(text).and_then(|rule| asked.focus.add(rule)),
    },
    Parameter {
        name: "retry-after",
        takes: Takes::Value("TIME"),
        default: Some("1d"),
        help: "Wait this long before listing a page whose fetch failed.",
        excludes: &[],
        set: |asked, text| put(&mut asked.retry_after, duration(text)),
    },
    Parameter {
        name: "max-failures",
        takes: Takes::Value("N"),
        default: Some("3"),
        help: "Stop listing a page that failed N times since it was last reached; 0: never stop.",
        excludes: &[],
        set: |asked, text| put(&mut asked.max_failures, parsed(text)),
    },
    Parameter {
        name: "as-of",
        takes: Takes::Value("WHEN"),
        default: None,
        help: "The time from which ages count: `now`, or a time like 2026-11-24 or 2026-11-24T12:00:00Z [default: the \
            latest record's time].",
        excludes: &[],
        set: |asked, text| put(&mut asked.now, when(text).map(Some)),
    },
];

impl NextOptions {
    /// Parses parameters by name, as in `[("strategy", "fica:k=1000"), ("per-host", "2")]`. The guide describes all of
    /// them. Fails with [`Error::Usage`] if a name or value is invalid, or parameters contradict each other.
    pub fn of(given: &[(impl AsRef<str>, impl AsRef<str>)]) -> Result<NextOptions> {
        let given = given.iter();
        let given = given.map(|(name, value)| (name.as_ref(), value.as_ref()));
        let given: Vec<(&str, &str)> = given.collect();
        let asked = NextOptions::read(&given).map_err(Error::Usage)?;
        let names_order = given.iter().any(|(name, _)| *name == "strategy");
        if names_order && asked.which == PageSelection::Refetch && !asked.strategy.spec().by_cash {
            let text = "`strategy`: of all orders only greedy is one of pages to fetch again; leave it or `refetch` out";
            return Err(Error::Usage(text.into()));
        }
        if asked.older_than.is_some() && asked.which == PageSelection::NotFetched {
            let text = "`older_than` applies only to pages to fetch again: add `refetch`, or `budget` discovery=SHARE";
            return Err(Error::Usage(text.into()));
        }
        Ok(asked)
    }

    fn read(given: &[(&str, &str)]) -> Read<NextOptions> {
        let mut asked = NextOptions::default();
        for (at, &(name, value)) in given.iter().enumerate() {
            let Some(parameter) = NEXT.iter().find(|known| known.name == name) else {
                return Err(unknown(name, &NEXT.each_ref().map(|known| known.name)));
            };
            for (other, _) in &given[..at] {
                if parameter.excludes.contains(other) {
                    return Err(format!("{name}: cannot be combined with {other}"));
                }
                if *other == name && !matches!(parameter.takes, Takes::Values(_)) {
                    return Err(format!("{name}: given more than once"));
                }
            }
            let read = parameter.read(value, &mut asked);
            read.map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(asked)
    }

    /// Excludes the pages of the store in `dir` that the lines of `excluded` name, and puts the unread, not excluded
    /// pages that the lines of `seeds` name first, each once. Both are lists of URLs in any form, one per line; other
    /// lines are skipped and counted. All other options must be set before, as only seeds that will be listed are kept.
    /// If both lists are given, the hashes of names that no store knows are held, in at most `memory` bytes. Fails with
    /// [`Error::Missing`] if no snapshot was published and there are no seeds.
    pub fn name(
        &mut self,
        dir: &Path,
        excluded: impl IntoIterator<Item = Result<Vec<u8>>>,
        seeds: impl IntoIterator<Item = Result<Vec<u8>>>,
        memory: Option<u64>,
    ) -> Result<SkippedOf> {
        let (mut excluded, mut seeds) = (
            excluded.into_iter().peekable(),
            seeds.into_iter().peekable(),
        );
        let mut skipped = SkippedOf::default();
        let has_seeds = seeds.peek().is_some();
        if excluded.peek().is_none() && !has_seeds {
            return Ok(skipped);
        }
        let snapshot = match Snapshot::latest(&RealDisk, dir) {
            Err(Error::Missing(_)) if has_seeds => None,
            snapshot => Some(snapshot?),
        };
        let snapshot = snapshot.as_ref();
        // Names that no store knows have no page number to exclude.
        let mut unknown = NameSet::new(memory);
        self.exclude = Bits::new(snapshot.map_or(0, |snapshot| snapshot.info().pages));
        skipped.excluded = each_listed(excluded, snapshot, |pages| {
            for (line, page) in pages {
                match page {
                    Some(page) => {
                        self.exclude.set(page.0);
                    }
                    None if has_seeds => {
                        unknown.add(&line.name)?;
                    }
                    None => (),
                }
            }
            Ok(())
        })?;
        let shard = settings_of(&RealDisk, dir)?.and_then(|settings| settings.input.shard);
        let now = snapshot.and_then(|snapshot| self.now(snapshot));
        let (mut other_shards, mut chosen) = (0, Vec::new());
        let (mut limits, mut names) = (ListLimits::new(self, snapshot), HashSet::new());
        skipped.seeds = each_listed(seeds, snapshot, |mut pages| {
            let listed = pages.len();
            pages.retain(|(line, _)| shard.is_none_or(|shard| shard.has(&line.name)));
            other_shards += (listed - pages.len()) as u64;
            if chosen.len() >= self.count {
                return Ok(());
            }
            let known: Vec<PageId> = pages.iter().filter_map(|(_, page)| *page).collect();
            let mut known = match snapshot {
                Some(snapshot) => snapshot.pages_of(&known)?.into_iter(),
                None => Vec::new().into_iter(),
            };
            for (line, page) in pages {
                let page = page.and_then(|_| known.next());
                let is_open = page.map_or(!unknown.has(&line.name), |page| {
                    page.fetches.visits == 0
                        && page.fetches.last.is_none()
                        && !self.exclude.get(page.page.0)
                        && !self.is_failing(now, &page.fetches)
                });
                let url = String::from_utf8_lossy(&line.name).into_owned();
                if is_open
                    && chosen.len() < self.count
                    && !names.contains(&url)
                    && limits.takes(&url)
                {
                    names.insert(url.clone());
                    let page = Candidate {
                        page: page.map(|page| page.page),
                        importance: page.map_or(0.0, |page| page.importance),
                        fetches: page.map(|page| page.fetches).unwrap_or_default(),
                        url,
                        ..Candidate::default()
                    };
                    chosen.push(Seed {
                        page,
                        line: line.number,
                    });
                }
            }
            Ok(())
        })?;
        skipped.seeds.other_shards = other_shards;
        self.seeds = chosen;
        Ok(skipped)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkippedOf {
    pub excluded: SkippedLines,
    pub seeds: SkippedLines,
}

type Read<T> = std::result::Result<T, String>;

fn put<T>(place: &mut T, value: Read<T>) -> Read<()> {
    *place = value?;
    Ok(())
}

fn positive(text: &str) -> Read<u64> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| format!("{text:?}: a whole number of at least 1"))
}

fn budget(text: &str) -> Read<PageSelection> {
    let share = text
        .strip_prefix("discovery=")
        .and_then(|share| share.parse().ok());
    if text == "discovery=any" {
        return Ok(PageSelection::Either);
    }
    match share.filter(|share| (0.0..=1.0).contains(share)) {
        Some(discovery) => Ok(PageSelection::Budget { discovery }),
        None => Err(format!(
            "{text:?}: discovery=SHARE, from 0 to 1, as in discovery=0.7, or discovery=any"
        )),
    }
}

/// Parses a duration such as `30d` into seconds.
fn duration(text: &str) -> Read<u64> {
    let found = split_time(text).and_then(|(number, unit)| {
        let number: u64 = number.parse().ok()?;
        number.checked_mul(unit.into())
    });
    found.ok_or_else(|| format!("{text:?}: a number and s, m, h, d or w, as in 30d"))
}

/// Parses `now`, or a time in RFC 3339, into seconds since 1970.
fn when(text: &str) -> Read<Time> {
    let day = |text: &str| -> std::result::Result<Timestamp, TimeError> {
        let start = text.parse::<Date>()?.to_zoned(TimeZone::UTC)?;
        Ok(start.timestamp())
    };
    let time = match text {
        "now" => Ok(Timestamp::now()),
        text => text.parse().or_else(|error| day(text).map_err(|_| error)),
    };
    time.map(Timestamp::as_second)
        .map_err(|_| format!("{text:?}: `now`, or a time like 2026-11-24 or 2026-11-24T12:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<NextOptions> {
        let given = text.split_whitespace().map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            (name.to_owned(), value.to_owned())
        });
        NextOptions::of(&given.collect::<Vec<_>>())
    }

    #[test]
    fn documented_defaults_are_the_actual_ones() {
        let none = NextOptions::default();
        for parameter in &NEXT {
            let Some(default) = parameter.default else {
                continue;
            };
            let given = asked(&format!("{}={default}", parameter.name)).unwrap();
            assert_eq!(
                format!("{given:?}"),
                format!("{none:?}"),
                "{}",
                parameter.name
            );
        }
    }

    #[test]
    fn names_and_values_are_checked() {
        let list =
            asked("refetch older-than=2w scope=host:a.example scope=!url:*y* max-failures=0")
                .unwrap();
        assert_eq!((list.which, list.max_failures), (PageSelection::Refetch, 0));
        assert_eq!(list.older_than, Some(14 * 86_400));
        assert!(list.scope.has(b"http://a.example/") && !list.scope.has(b"http://a.example/y"));
        assert_eq!(asked("").unwrap().which, PageSelection::NotFetched);
        assert_eq!(asked("as-of=1970-01-02").unwrap().now, Some(86_400));
        for (wrong, says) in [
            (
                "colour=red",
                "unknown parameter; use one of strategy, refetch",
            ),
            ("refetch=yes", "no value, or 1"),
            (
                "refetch budget=discovery=0.5",
                "budget: cannot be combined with refetch",
            ),
            ("focus=host:a=0.5 refetch", "cannot be combined with focus"),
            ("focus=host:b=0.6 focus=host:a=0.6", "at most 1"),
            ("per-host=1 per-host=2", "more than once"),
            ("per-host=0", "at least 1"),
            ("older-than=3d", "add `refetch`"),
            ("retry-after=5", "as in 30d"),
            ("retry-after=\u{e9}", "as in 30d"),
            ("budget=discovery=2", "from 0 to 1"),
            ("strategy=none", "unknown strategy"),
        ] {
            let why = asked(wrong).unwrap_err().to_string();
            assert!(why.contains(says), "{wrong}: {why}");
        }
    }
}
