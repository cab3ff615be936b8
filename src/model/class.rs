//! How a page links to a target, as far as weights can depend on it.

use serde::{Deserialize, Serialize};

use super::Rel;

/// What a record's links to one target are: which values of `rel` they have (a target may be linked
/// to several times), and whether the target is on the page's own host.
///
/// As a number: bit 0: internal; bit 1 + k: there is a link whose [`Rel::bits`] are k, bit 1 turned
/// round. So 0 is one link or more to another host of which the page says nothing, and names that
/// are no URLs have that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LinkClass(u16);

/// Links of which the page says nothing: turned round, so that most classes are 0 or 1.
const PLAIN: u16 = 2;

impl LinkClass {
    /// Number of classes, those that cannot be included.
    pub const COUNT: usize = 1 << 9;

    /// That of a single link.
    pub fn new(rel: Rel, internal: bool) -> LinkClass {
        LinkClass(((2 << rel.bits()) ^ PLAIN) | u16::from(internal))
    }

    /// That of both together: of links to the same target.
    pub fn and(self, other: LinkClass) -> LinkClass {
        LinkClass(((self.0 ^ PLAIN) | (other.0 ^ PLAIN)) ^ PLAIN)
    }

    /// The class of this number; `None`: no link has it.
    pub fn from_number(number: u64) -> Option<LinkClass> {
        let class = u16::try_from(number)
            .ok()
            .filter(|&n| usize::from(n) < LinkClass::COUNT)?;
        ((class ^ PLAIN) >> 1 != 0).then_some(LinkClass(class))
    }

    /// The number of the class, below [`LinkClass::COUNT`].
    pub fn number(self) -> u16 {
        self.0
    }

    /// Returns whether the target is on the page's host.
    pub fn is_internal(self) -> bool {
        self.0 & 1 == 1
    }

    /// The values of `rel` that the links have.
    pub fn rels(self) -> impl Iterator<Item = Rel> {
        let set = (self.0 ^ PLAIN) >> 1;
        Rel::all().filter(move |rel| set >> rel.bits() & 1 == 1)
    }
}

/// How links from a page to itself are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelfLinks {
    /// They are dropped: a page cannot vote for itself.
    #[default]
    Drop,
    /// They count as other links do.
    Keep,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_rels_and_a_place() {
        let plain = LinkClass::new(Rel::default(), false);
        assert_eq!(plain, LinkClass::default());
        assert_eq!(LinkClass::new(Rel::default(), true).number(), 1);
        let ugc = LinkClass::new(Rel::UGC, true);
        assert!(ugc.is_internal());
        assert_eq!(ugc.rels().collect::<Vec<_>>(), [Rel::UGC]);
        let both = ugc.and(LinkClass::new(Rel::default(), true));
        assert_eq!(both.rels().collect::<Vec<_>>(), [Rel::default(), Rel::UGC]);
        for number in 0..1 << 10 {
            let class = LinkClass::from_number(number);
            let possible = class.is_some_and(|class| class.rels().next().is_some());
            assert_eq!(possible, number < 1 << 9 && number >> 1 != 1, "{number}");
        }
    }
}
