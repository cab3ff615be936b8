//! Values of `rel` that are relevant to ranking.

/// Set of link types. HTML living standard, section 4.6.7 (`nofollow`); `ugc` and `sponsored` are the search engines'
/// refinements of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rel(u8);

impl Rel {
    /// The page does not vouch for the target.
    pub const NOFOLLOW: Rel = Rel(1);
    /// A visitor of the page set the link.
    pub const UGC: Rel = Rel(2);
    /// The link was paid for.
    pub const SPONSORED: Rel = Rel(4);

    const NAMED: [(&[u8], Rel); 3] = [
        (b"nofollow", Rel::NOFOLLOW),
        (b"ugc", Rel::UGC),
        (b"sponsored", Rel::SPONSORED),
    ];

    /// Parses a `rel` attribute: words between spaces, in any case. Other words are ignored.
    pub fn of(attribute: &[u8]) -> Rel {
        let words = attribute.split(u8::is_ascii_whitespace);
        words.fold(Rel::default(), |all, word| {
            let known = Rel::NAMED
                .iter()
                .find(|(name, _)| word.eq_ignore_ascii_case(name));
            known.map_or(all, |(_, rel)| all.with(*rel))
        })
    }

    /// Returns the words of the attribute, separated by spaces; empty if there are none.
    pub fn words(self) -> String {
        let named = Rel::NAMED.iter().filter(|(_, rel)| self.has(*rel));
        let words: Vec<_> = named
            .map(|(name, _)| String::from_utf8_lossy(name))
            .collect();
        words.join(" ")
    }

    /// Returns the union of both sets.
    pub fn with(self, other: Rel) -> Rel {
        Rel(self.0 | other.0)
    }

    /// Returns whether the set contains all of `other`.
    pub fn has(self, other: Rel) -> bool {
        self.0 & other.0 == other.0
    }

    /// Yields every set of types, in the order of [`Rel::bits`].
    pub fn all() -> impl Iterator<Item = Rel> {
        (0..8).map(Rel)
    }

    /// Returns one bit per type, from the lowest: nofollow, ugc, sponsored.
    pub fn bits(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_rel() {
        let all = Rel::NOFOLLOW.with(Rel::UGC).with(Rel::SPONSORED);
        assert_eq!(Rel::of(b" NoFollow\tugc\nsponsored noopener"), all);
        assert_eq!(Rel::of(b"nofollows no-follow"), Rel::default());
        assert!(all.has(Rel::UGC) && !Rel::UGC.has(all));
        assert_eq!(all.bits(), 7);
        assert!(Rel::all().all(|rel| Rel::of(rel.words().as_bytes()) == rel));
    }
}
