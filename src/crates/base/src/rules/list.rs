//! Lists of URLs as people and crawlers keep them, one per line: seeds, pages in progress, chosen pages.
//!
//! A line holds one `http` or `https` URL in any form. Blank lines and comments (`#`) are ignored. A tab ends the URL, as in
//! seed lists of Nutch's injector. Any other line counts as a name only if there is a page of that name (a graph of opaque
//! names); otherwise it is skipped, and counted by reason ([`SkippedLines`]).

use std::collections::HashMap;
use std::fmt;

use super::scope::is_rule;
use crate::Result;
use crate::model::{NameHash, check_room};
use crate::url::{Reject, name_of};

/// Counts of the lines of a list that name no page, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkippedLines {
    pub comments: u64,
    pub no_scheme: u64,
    pub other_scheme: u64,
    pub invalid: u64,
    /// Number of pages of other shards.
    pub other_shards: u64,
}

impl SkippedLines {
    pub fn is_none(&self) -> bool {
        *self == SkippedLines::default()
    }

    /// Returns the counts of lines of the same list that another store skips as well, without those of other shards.
    pub fn shared_with(self, other: SkippedLines) -> SkippedLines {
        SkippedLines {
            comments: self.comments.min(other.comments),
            no_scheme: self.no_scheme.min(other.no_scheme),
            other_scheme: self.other_scheme.min(other.other_scheme),
            invalid: self.invalid.min(other.invalid),
            other_shards: 0,
        }
    }

    /// Counts lines that are not URLs, by the reason.
    pub fn count(&mut self, why: Reject, lines: u64) {
        *match why {
            Reject::Relative => &mut self.no_scheme,
            Reject::Scheme => &mut self.other_scheme,
            Reject::Empty | Reject::TooLong | Reject::Invalid => &mut self.invalid,
        } += lines;
    }
}

impl fmt::Display for SkippedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.comments, "comments"),
            (self.no_scheme, "no http:// or https://"),
            (self.other_scheme, "another scheme"),
            (self.invalid, "no URL"),
            (self.other_shards, "of other shards"),
        ];
        let all = reasons.iter().map(|(count, _)| count).sum::<u64>();
        let lines = if all == 1 { "line" } else { "lines" };
        write!(f, "{all} {lines} skipped")?;
        let mut between = ": ";
        for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{between}{reason} ({count})")?;
            between = ", ";
        }
        Ok(())
    }
}

/// Returns the name in a line, and the text after the tab; `None` if the line is blank.
pub fn parts(line: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let line = line
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(line)
        .trim_ascii();
    // A URL, a rule and a weight contain no spaces, but an opaque name may.
    let has_no_blank = |text: &[u8]| {
        let is_url = memchr::memmem::find(text, b"://").is_some();
        is_url || is_rule(text) || text.contains(&b'\t')
    };
    let is_comment = |&at: &usize| {
        let before = &line[..at];
        (before.ends_with(b" ") || before.ends_with(b"\t")) && has_no_blank(before)
    };
    let comment = memchr::memchr_iter(b'#', line).find(is_comment);
    let line = &line[..comment.unwrap_or(line.len())];
    let (text, behind) = match memchr::memchr(b'\t', line) {
        Some(tab) => (&line[..tab], line[tab + 1..].trim_ascii()),
        None => (line, &[][..]),
    };
    let text = text.trim_ascii();
    let behind = (!behind.is_empty()).then_some(behind);
    (!text.is_empty()).then_some((text, behind))
}

pub struct ListLine {
    /// Canonical URL; if the line is not a URL, its text.
    pub name: Vec<u8>,
    /// Text of the line, if it differs from the canonical URL.
    pub typed: Option<Vec<u8>>,
    /// Reason why the line is not a URL.
    pub why: Option<Reject>,
    /// Number of the line, from 0.
    pub number: u64,
}

impl ListLine {
    pub fn of(text: &[u8], number: u64) -> ListLine {
        let (name, why) = match name_of(text, None, usize::MAX) {
            Ok(name) => (name, None),
            Err(why) => (text.to_vec(), Some(why)),
        };
        ListLine {
            typed: (name != text).then(|| text.to_vec()),
            name,
            why,
            number,
        }
    }
}

/// Map from names to values; names are distinguished by 128 bits of their hashes.
#[derive(Debug, Clone, Default)]
pub struct NameMap<V> {
    values: HashMap<NameHash, V>,
    memory: Option<u64>,
    /// Memory that the list takes beside the names, in bytes.
    beside: u64,
}

pub type NameSet = NameMap<()>;

impl<V> NameMap<V> {
    /// Memory of a name while the map grows, in bytes: 8 slots per 7 names in the old table, and 16 in the new one.
    const NAME_BYTES: u64 = (size_of::<(NameHash, V)>() as u64 + 1) * 24 / 7;

    /// Creates an empty map of at most `memory` bytes; `None` for no limit.
    pub fn new(memory: Option<u64>) -> NameMap<V> {
        NameMap {
            values: HashMap::new(),
            memory,
            beside: 0,
        }
    }

    /// Returns the value of a name, which is `value` if the name is new.
    pub fn get_or_add(&mut self, name: &[u8], value: V) -> Result<&mut V> {
        self.check(1)?;
        Ok(self.values.entry(NameHash::of(name)).or_insert(value))
    }

    /// Reserves memory that the list takes beside the names.
    pub fn take(&mut self, bytes: u64) -> Result<()> {
        self.beside += bytes;
        self.check(0)
    }

    fn check(&self, more: u64) -> Result<()> {
        let names = self.values.len() as u64 + more;
        check_room(
            self.memory,
            names * Self::NAME_BYTES + self.beside,
            || format!("a list of {names} names or more"),
            "use a shorter list",
        )
    }

    pub fn bytes(&self) -> u64 {
        self.values.len() as u64 * Self::NAME_BYTES + self.beside
    }

    pub fn get(&self, name: &[u8]) -> Option<&V> {
        // Most lists of rules have no names.
        if self.values.is_empty() {
            return None;
        }
        self.values.get(&NameHash::of(name))
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl NameSet {
    /// Adds a name. Returns whether it is new.
    pub fn add(&mut self, name: &[u8]) -> Result<bool> {
        self.check(1)?;
        Ok(self.values.insert(NameHash::of(name), ()).is_none())
    }

    pub fn has(&self, name: &[u8]) -> bool {
        self.get(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn names_beyond_the_memory_are_refused() {
        let mut names = NameSet::new(Some(2 * NameSet::NAME_BYTES));
        assert!(names.add(b"a").unwrap() && !names.add(b"a").unwrap());
        assert!(names.add(b"b").unwrap());
        assert!(matches!(names.add(b"c"), Err(Error::TooLarge { .. })));
        assert!(names.has(b"b") && !names.has(b"c"));
        assert!(matches!(names.take(1), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn comments_end_urls_and_rules_but_not_names() {
        let parts = |line: &str| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            parts(line.as_bytes()).map(|(of, behind)| (text(of), behind.map(text)))
        };
        let is = |text: &str, behind: Option<&str>| Some((text.into(), behind.map(Into::into)));
        assert_eq!(parts("http://a/ # of\tuse"), is("http://a/", None));
        assert_eq!(
            parts("http://a/#x\t3 # of use"),
            is("http://a/#x", Some("3"))
        );
        assert_eq!(parts("host:a.example\t# good"), is("host:a.example", None));
        assert_eq!(parts("url:*news* # good"), is("url:*news*", None));
        assert_eq!(parts("C # and\t7 # of use\r"), is("C # and", Some("7")));
        assert_eq!(parts("\u{feff}\t \r"), None);
        assert_eq!(parts("# a\tb"), is("# a", Some("b")));
    }
}
