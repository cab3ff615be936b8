//! Focus (OPIC, section 3.3): pages that receive extra cash from the virtual page.
//!
//! A rule selects pages by host, domain or URL, and gives them a share of the virtual page's payments, divided equally. A page belongs to the first rule that selects it. This is a personalised teleport for the
//! order of what to read next; rankings stay PageRank with their certificates.

use std::str::FromStr;

use crate::rules::Scope;

/// Maximum number of rules: a page's rule is kept in a byte.
const RULES_MAX: usize = 255;

/// Share of the virtual page's payments for some pages.
#[derive(Debug, Clone, PartialEq)]
pub struct FocusRule {
    pages: Scope,
    share: f64,
}

impl FromStr for FocusRule {
    type Err = String;

    fn from_str(text: &str) -> Result<FocusRule, String> {
        let wrong = || {
            format!(
                "{text:?}: PAGES=SHARE, with host:NAME, barehost:NAME, domain:NAME, prefix:HOST/FOLDERS or url:PATTERN, and the share of the \
                 virtual page's payments, above 0 and at most 1, as in url:*news*=0.3"
            )
        };
        let (pages, share) = text.rsplit_once('=').ok_or_else(wrong)?;
        let share = share
            .parse()
            .ok()
            .filter(|share| *share > 0.0 && *share <= 1.0);
        let pages = pages.parse();
        Ok(FocusRule {
            pages: pages.map_err(|why: crate::Error| format!("{}: {why}", wrong()))?,
            share: share.ok_or_else(wrong)?,
        })
    }
}

/// Rules of a crawl, and once it is known the rule of each page; without rules there is no focus.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Focus {
    rules: Vec<FocusRule>,
    /// Rule of each page, from 1; 0 if there is none.
    pages: Vec<u8>,
}

impl Focus {
    /// Collects rules, in this order. Fails like [`Focus::add`].
    #[cfg(test)]
    pub fn of(rules: Vec<FocusRule>) -> Result<Focus, String> {
        let mut focus = Focus::default();
        rules.into_iter().try_for_each(|rule| focus.add(rule))?;
        Ok(focus)
    }

    /// Adds a rule after the others. Fails with a message if the shares exceed 1 together, or there are too many rules.
    pub fn add(&mut self, rule: FocusRule) -> Result<(), String> {
        let shares = self.rules.iter().chain([&rule]).map(|rule| rule.share);
        let sum: f64 = shares.sum();
        if sum > 1.0 + 1e-9 {
            return Err(format!(
                "the shares of the focus are {sum} together: at most 1"
            ));
        }
        if self.rules.len() == RULES_MAX {
            return Err(format!("more than {RULES_MAX} rules of a focus"));
        }
        self.rules.push(rule);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the rule of the page with this name, from 1; 0 if there is none.
    pub fn rule_of(&self, name: &[u8]) -> u8 {
        let mut rules = self.rules.iter();
        let found = rules.position(|rule| rule.pages.has(name));
        found.map_or(0, |at| at as u8 + 1)
    }

    /// Assigns rules to the pages of a crawl; `each` calls its visitor with their names in page order.
    pub fn places<E>(
        mut self,
        each: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<(), E>,
    ) -> Result<Focus, E> {
        let mut pages = Vec::new();
        each(&mut |name| pages.push(self.rule_of(name)))?;
        self.pages = pages;
        Ok(self)
    }

    pub(super) fn shares(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.rules.iter().map(|rule| rule.share)
    }

    /// Returns the rule of a page, from 0.
    pub(super) fn rule(&self, page: u32) -> Option<usize> {
        let rule = *self.pages.get(page as usize)?;
        usize::from(rule).checked_sub(1)
    }

    /// Returns what the virtual page pays each page, `total` in all: to the pages of each rule its share, the rest by
    /// `plain`, which must have the same total. A rule without pages pays nothing.
    pub(super) fn payments<'a>(
        &'a self,
        pages: u32,
        total: f64,
        plain: impl Fn(u32) -> f64 + 'a,
    ) -> impl Fn(u32) -> f64 + 'a {
        let mut members = vec![0u32; self.shares().len()];
        if !members.is_empty() {
            let paid = (0..pages).filter_map(|page| self.rule(page));
            paid.for_each(|rule| members[rule] += 1);
        }
        let mut rest = 1.0;
        let mut units = vec![0.0; members.len()];
        for ((units, share), members) in units.iter_mut().zip(self.shares()).zip(members) {
            if members > 0 {
                rest -= share;
                *units = share * total / f64::from(members);
            }
        }
        move |page| plain(page) * rest + self.rule(page).map_or(0.0, |rule| units[rule])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn focus(rules: &[&str]) -> Result<Focus, String> {
        Focus::of(
            rules
                .iter()
                .map(|rule| rule.parse())
                .collect::<Result<_, _>>()?,
        )
    }

    #[test]
    fn a_page_belongs_to_the_first_rule_that_names_it() {
        let rules = ["url:*news*=0.25", "domain:b.example=0.5", "url:*=0.125"];
        let focus = focus(&rules).unwrap();
        let shares: Vec<f64> = focus.shares().collect();
        assert_eq!(shares, [0.25, 0.5, 0.125]);
        for (name, rule) in [
            ("http://a.example/news/1", 1),
            ("http://www.b.example/news", 1),
            ("http://www.b.example/", 2),
            ("http://c.example/", 3),
        ] {
            assert_eq!(focus.rule_of(name.as_bytes()), rule, "{name}");
        }
        assert_eq!(Focus::default().rule_of(b"x"), 0);
    }

    #[test]
    fn an_invalid_focus_is_an_error() {
        for wrong in [
            "news",
            "url:x",
            "url:x=0",
            "url:x=1.5",
            "url:x=nan",
            "=0.5",
            "read=0.1",
            "unread=0.1",
        ] {
            assert!(
                focus(&[wrong]).unwrap_err().contains("PAGES=SHARE"),
                "{wrong}"
            );
        }
        assert!(
            focus(&["host:a=0.7", "url:*=0.4"])
                .unwrap_err()
                .contains("at most 1")
        );
    }
}
