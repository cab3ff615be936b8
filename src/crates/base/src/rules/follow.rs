//! Weights of links: `--follow`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Rel, Scope};
use crate::{Error, Result};

/// Maximum weight of a kind of link, and of links to some pages.
pub const WEIGHT_MAX: u32 = 1000;

/// Weight of each kind of link and of links to some pages, 0 to [`WEIGHT_MAX`], 1 by default. The weight of a link is
/// the product of those of all its kinds, of all rules that its target matches, and of its own
/// ([`Link::weight`](crate::model::Link::weight)); if a record links to a target several times, the largest counts. A
/// page's cash is divided in proportion. A link of weight 0 passes nothing on; a page whose links all weigh 0 is
/// dangling. A record whose links weigh 2^63 or more together is skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Follow {
    /// Weights of links with these values of `rel`.
    pub nofollow: u32,
    pub ugc: u32,
    pub sponsored: u32,
    /// Weight of links to a page on the same host.
    pub internal: u32,
    /// Weight of links to a page on another host.
    pub external: u32,
    /// Weights of links to pages that match a rule, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<PageWeight>,
}

/// Weight of links to pages that match a rule in the notation of `--scope`: `url:*/tag/*=0`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageWeight {
    pages: Scope,
    weight: u32,
}

impl Default for Follow {
    fn default() -> Follow {
        Follow {
            nofollow: 1,
            ugc: 1,
            sponsored: 1,
            internal: 1,
            external: 1,
            pages: Vec::new(),
        }
    }
}

impl Follow {
    /// Returns whether all links weigh the same, unless records give weights.
    pub fn is_default(&self) -> bool {
        *self == Follow::default()
    }

    /// Returns the weights of the kinds of links, with their names.
    fn kinds(&mut self) -> [(&'static str, &mut u32); 5] {
        [
            ("nofollow", &mut self.nofollow),
            ("ugc", &mut self.ugc),
            ("sponsored", &mut self.sponsored),
            ("internal", &mut self.internal),
            ("external", &mut self.external),
        ]
    }

    /// Returns the weight of a link with these values of `rel`, on the same host or not; below 2^40.
    pub fn weight(&self, rel: Rel, is_internal: bool) -> u64 {
        let place = if is_internal {
            self.internal
        } else {
            self.external
        };
        let kinds = [
            (Rel::NOFOLLOW, self.nofollow),
            (Rel::UGC, self.ugc),
            (Rel::SPONSORED, self.sponsored),
        ];
        let kinds = kinds.iter().filter(|(kind, _)| rel.has(*kind));
        kinds.fold(u64::from(place), |all, (_, weight)| {
            all * u64::from(*weight)
        })
    }

    /// Returns the weight of links to the page of this canonical name, whatever their kind: at most [`u64::MAX`].
    pub fn weight_of_page(&self, name: &[u8]) -> u64 {
        let fitting = self.pages.iter().filter(|rule| rule.pages.has(name));
        fitting.fold(1, |all, rule| all.saturating_mul(rule.weight.into()))
    }
}

fn weight_of(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&weight| weight <= WEIGHT_MAX)
}

impl FromStr for PageWeight {
    type Err = Error;

    fn from_str(text: &str) -> Result<PageWeight> {
        let weighed = text.rsplit_once('=');
        let weighed = weighed.and_then(|(pages, weight)| Some((pages, weight_of(weight)?)));
        let Some((pages, weight)) = weighed else {
            return Err(Error::Usage(format!(
                "{text:?}: RULE=WEIGHT, with a rule for pages like url:*/tag/* and a whole number from 0 to {WEIGHT_MAX}; \
                 a comma ends a rule: write * for one"
            )));
        };
        Ok(PageWeight {
            pages: pages.parse()?,
            weight,
        })
    }
}

impl fmt::Display for PageWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.pages, self.weight)
    }
}

crate::stored_as_text!(PageWeight);

impl FromStr for Follow {
    type Err = Error;

    fn from_str(text: &str) -> Result<Follow> {
        let mut follow = Follow::default();
        let mut given: Vec<&str> = Vec::new();
        for part in text.split(',').map(str::trim) {
            if part.contains(':') {
                let rule: PageWeight = part.parse()?;
                if follow.pages.iter().any(|other| other.pages == rule.pages) {
                    return Err(Error::Usage(format!("{} is given twice", rule.pages)));
                }
                follow.pages.push(rule);
                continue;
            }
            let wrong = || {
                Error::Usage(format!(
                    "{part:?}: KIND=WEIGHT, with a kind of {} or a rule for pages like url:*/tag/*, and a whole number from 0 \
                     to {WEIGHT_MAX}",
                    Follow::default().kinds().map(|(name, _)| name).join(", ")
                ))
            };
            let (name, weight) = part.split_once('=').ok_or_else(wrong)?;
            let mut kinds = follow.kinds().into_iter();
            let kind = kinds.find(|(kind, _)| *kind == name).ok_or_else(wrong)?;
            *kind.1 = weight_of(weight).ok_or_else(wrong)?;
            if given.contains(&name) {
                return Err(Error::Usage(format!("{name} is given twice")));
            }
            given.push(name);
        }
        // The order of rules does not matter.
        follow.pages.sort_by_key(PageWeight::to_string);
        Ok(follow)
    }
}

impl fmt::Display for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = self.clone();
        let mut between = "";
        for (name, weight) in all.kinds() {
            if *weight != 1 {
                write!(f, "{between}{name}={weight}")?;
                between = ",";
            }
        }
        for rule in &self.pages {
            write!(f, "{between}{rule}")?;
            between = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_multiply() {
        let follow: Follow = "nofollow=0, ugc=3,internal=2,external=5".parse().unwrap();
        let weight = |rel, internal| follow.weight(rel, internal);
        assert_eq!(weight(Rel::default(), true), 2);
        assert_eq!(weight(Rel::UGC, false), 15);
        assert_eq!(weight(Rel::UGC.with(Rel::NOFOLLOW), false), 0);
        assert_eq!(weight(Rel::UGC, true), 6);
        assert_eq!(follow.to_string().parse::<Follow>().unwrap(), follow);
        let full = "nofollow=1000,ugc=1000,sponsored=1000,internal=1000,external=1000";
        let full: Follow = full.parse().unwrap();
        let most = Rel::all().map(|rel| full.weight(rel, true)).max();
        assert!(most.is_some_and(|most| most == 1_000_000_000_000 && most < 1 << 40));
    }

    /// All rules that a page matches count, as all kinds of a link do.
    #[test]
    fn pages_have_weights() {
        let text = "ugc=2,domain:a.org=5,url:*/tag/*=0,url:*?page=*=3";
        let follow: Follow = text.parse().unwrap();
        for (url, weight) in [
            ("http://b.org/", 1),
            ("http://www.a.org/", 5),
            ("http://b.org/x?page=2", 3),
            ("http://a.org/x?page=2", 15),
            ("http://a.org/tag/x?page=2", 0),
            ("tag", 1),
        ] {
            assert_eq!(follow.weight_of_page(url.as_bytes()), weight, "{url}");
        }
        let of_pages: Follow = "url:*/tag/*=0".parse().unwrap();
        assert!(!of_pages.is_default());
        assert_eq!(follow.to_string(), text);
        let other: Follow = "url:*?page=*=3,url:*/tag/*=0,ugc=2,domain:a.org=5"
            .parse()
            .unwrap();
        assert_eq!(other, follow);
        let json = serde_json::to_string(&follow).unwrap();
        assert!(json.contains(r#""pages":["domain:a.org=5","url:*/tag/*=0","url:*?page=*=3"]"#));
        assert_eq!(serde_json::from_str::<Follow>(&json).unwrap(), follow);
        let plain = serde_json::to_string(&Follow::default()).unwrap();
        assert!(
            !plain.contains("pages"),
            "older programs know no such field"
        );
    }

    #[test]
    fn what_is_no_weight() {
        for text in [
            "",
            "nofollow",
            "nofollow=",
            "nofollow=-1",
            "ugc=1001",
            "links=1",
            "ugc=1,ugc=2",
            "url:*=1001",
            "url:*",
            "url:=1",
            "path:/tag=0",
            "host:*.org=0",
            "url:a=1,url:a=2",
        ] {
            assert!(text.parse::<Follow>().is_err(), "{text:?}");
        }
    }
}
