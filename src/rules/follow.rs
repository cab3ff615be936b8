//! Weights of links: `--follow`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{LinkClass, Rel};
use crate::{Error, Result};

/// Largest weight of a kind of link: products of four, summed over the links of a record, stay below
/// 2^63.
pub const WEIGHT_MAX: u32 = 1000;

/// The weight of each kind of link, 0 to [`WEIGHT_MAX`], 1 unless given. A link weighs the product of the
/// weights of all kinds it is of; a target that a record links to several times weighs what the
/// heaviest of these links does. What a page hands on is split in proportion. A link that weighs
/// nothing hands nothing on; a page all of whose links weigh nothing is dangling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Follow {
    /// `rel=nofollow`.
    pub nofollow: u32,
    /// `rel=ugc`.
    pub ugc: u32,
    /// `rel=sponsored`.
    pub sponsored: u32,
    /// To a page on the same host.
    pub internal: u32,
    /// To a page elsewhere.
    pub external: u32,
}

impl Default for Follow {
    fn default() -> Follow {
        Follow {
            nofollow: 1,
            ugc: 1,
            sponsored: 1,
            internal: 1,
            external: 1,
        }
    }
}

impl Follow {
    const NAMES: [&str; 5] = ["nofollow", "ugc", "sponsored", "internal", "external"];

    /// Returns whether all links weigh the same, whatever they are.
    pub fn is_default(&self) -> bool {
        *self == Follow::default()
    }

    fn weight_mut(&mut self, name: &str) -> Option<&mut u32> {
        match name {
            "nofollow" => Some(&mut self.nofollow),
            "ugc" => Some(&mut self.ugc),
            "sponsored" => Some(&mut self.sponsored),
            "internal" => Some(&mut self.internal),
            "external" => Some(&mut self.external),
            _ => None,
        }
    }

    /// The weight of a target with such links; below 2^40.
    pub fn weight(&self, class: LinkClass) -> u64 {
        let place = if class.is_internal() {
            self.internal
        } else {
            self.external
        };
        let kinds = [
            (Rel::NOFOLLOW, self.nofollow),
            (Rel::UGC, self.ugc),
            (Rel::SPONSORED, self.sponsored),
        ];
        let of = |rel: Rel| {
            let kinds = kinds.iter().filter(|(kind, _)| rel.has(*kind));
            kinds.map(|(_, weight)| u64::from(*weight)).product::<u64>()
        };
        u64::from(place) * class.rels().map(of).max().unwrap_or(0)
    }

    /// The weight of every class, by its number; empty if all weigh the same.
    pub fn table(&self) -> Vec<u64> {
        if self.is_default() {
            return Vec::new();
        }
        let classes = (0..LinkClass::COUNT as u64).map(LinkClass::from_number);
        classes
            .map(|class| class.map_or(0, |class| self.weight(class)))
            .collect()
    }
}

impl FromStr for Follow {
    type Err = Error;

    fn from_str(text: &str) -> Result<Follow> {
        let mut follow = Follow::default();
        let mut given: Vec<&str> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let wrong = || {
                Error::Usage(format!(
                    "{part:?}: KIND=WEIGHT, with a kind of {} and a whole number from 0 to {WEIGHT_MAX}",
                    Follow::NAMES.join(", ")
                ))
            };
            let (name, weight) = part.split_once('=').ok_or_else(wrong)?;
            let weight = weight.parse().ok().filter(|&w: &u32| w <= WEIGHT_MAX);
            let place = follow.weight_mut(name).ok_or_else(wrong)?;
            *place = weight.ok_or_else(wrong)?;
            if given.contains(&name) {
                return Err(Error::Usage(format!("{name} is given twice")));
            }
            given.push(name);
        }
        Ok(follow)
    }
}

impl fmt::Display for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = *self;
        let mut between = "";
        for name in Follow::NAMES {
            let weight = all.weight_mut(name).map_or(1, |weight| *weight);
            if weight != 1 {
                write!(f, "{between}{name}={weight}")?;
                between = ",";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_multiply_and_the_heaviest_link_counts() {
        let follow: Follow = "nofollow=0, ugc=3,internal=2,external=5".parse().unwrap();
        let weight = |rel, internal| follow.weight(LinkClass::new(rel, internal));
        assert_eq!(weight(Rel::default(), true), 2);
        assert_eq!(weight(Rel::UGC, false), 15);
        assert_eq!(weight(Rel::UGC.with(Rel::NOFOLLOW), false), 0);
        let [ugc, nofollow] = [Rel::UGC, Rel::NOFOLLOW].map(|rel| LinkClass::new(rel, true));
        assert_eq!(follow.weight(ugc.and(nofollow)), 6);
        let table = follow.table();
        assert_eq!(table[usize::from(ugc.number())], 6);
        assert_eq!(follow.to_string().parse::<Follow>().unwrap(), follow);
        let full = "nofollow=1000,ugc=1000,sponsored=1000,internal=1000,external=1000";
        let most = full.parse::<Follow>().unwrap().table().into_iter().max();
        assert!(most.is_some_and(|most| most == 1_000_000_000_000 && most < 1 << 40));
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
        ] {
            assert!(text.parse::<Follow>().is_err(), "{text:?}");
        }
    }
}
