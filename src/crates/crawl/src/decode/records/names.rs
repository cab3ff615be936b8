//! Maps names in the file to fields, by the usual names or those chosen (`--field`).

use crate::model::Names as Naming;
use crate::rules::{FieldChoice, FieldName, FieldNames};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedField {
    pub field: FieldName,
    /// Position among all names. Of several names of one field, the lowest counts.
    pub order: u8,
}

/// The usual names. An object may have each only once.
const USUAL: [(&str, FieldName); 34] = [
    ("url", FieldName::Url),
    ("links", FieldName::Links),
    ("outlinks", FieldName::Links),
    ("links_url", FieldName::Links),
    ("fetched_at", FieldName::FetchedAt),
    ("time", FieldName::FetchedAt),
    ("timestamp", FieldName::FetchedAt),
    ("fetchedAt", FieldName::FetchedAt),
    ("crawl_time", FieldName::FetchedAtUtc),
    ("status", FieldName::Status),
    ("status_code", FieldName::Status),
    ("statusCode", FieldName::Status),
    ("http_status", FieldName::Status),
    ("redirect", FieldName::Redirect),
    ("digest", FieldName::Digest),
    ("requested_url", FieldName::RequestedUrl),
    ("request_url", FieldName::RequestedUrl),
    ("redirect_urls", FieldName::RequestedUrl),
    ("final_url", FieldName::FinalUrl),
    ("loadedUrl", FieldName::FinalUrl),
    ("base", FieldName::Base),
    ("method", FieldName::Method),
    ("request_method", FieldName::Method),
    ("http_method", FieldName::Method),
    ("links_nofollow", FieldName::LinksNofollow),
    ("links_rel", FieldName::LinksRel),
    ("links_weight", FieldName::LinksWeight),
    ("revisit", FieldName::Revisit),
    ("visits", FieldName::Visits),
    ("failed", FieldName::Failed),
    ("last_failed", FieldName::LastFailed),
    ("compared", FieldName::Compared),
    ("changed", FieldName::Changed),
    ("watched_s", FieldName::Watched),
];

const USUAL_OF_NODES: [(&str, FieldName); USUAL.len()] = {
    let mut names = USUAL;
    names[0].0 = NODE;
    names
};

pub(super) const NODE: &str = "node";

pub fn page_field(names: Naming) -> &'static str {
    match names {
        Naming::Url => USUAL[0].0,
        Naming::Opaque => NODE,
    }
}

const USUAL_OF_LINKS: [(&str, FieldName); 5] = [
    ("url", FieldName::LinkUrl),
    ("href", FieldName::LinkUrl),
    ("rel", FieldName::LinkRel),
    ("nofollow", FieldName::LinkNofollow),
    ("weight", FieldName::LinkWeight),
];

/// Set of the names seen in the current object, by their order.
#[derive(Default)]
pub(super) struct NameBits(u64);
const _: () = assert!(USUAL.len() + FieldName::CHOICES < 64);

impl NameBits {
    /// Returns whether a name was seen before.
    #[inline]
    pub fn again(&mut self, order: u8) -> bool {
        let before = self.0;
        self.0 |= 1 << order;
        before == self.0
    }
}

pub struct FieldNameMap {
    pub record: NameTable,
    pub link: NameTable,
}

pub struct NameTable {
    usual: &'static [(&'static str, FieldName)],
    chosen: Vec<(String, FieldName)>,
}

impl FieldNameMap {
    pub const fn usual(naming: Naming) -> FieldNameMap {
        let usual: &[_] = match naming {
            Naming::Url => &USUAL,
            Naming::Opaque => &USUAL_OF_NODES,
        };
        FieldNameMap {
            record: NameTable::new(usual),
            link: NameTable::new(&USUAL_OF_LINKS),
        }
    }

    /// Returns the usual names, changed by the user's choices.
    pub fn by(fields: &FieldNames, naming: Naming) -> FieldNameMap {
        let mut names = FieldNameMap::usual(naming);
        for FieldChoice { ours, theirs } in fields.choices() {
            let table = if ours.is_of_link() {
                &mut names.link
            } else {
                &mut names.record
            };
            table.chosen.push((theirs.clone(), *ours));
            // The chosen name replaces `crawl_time`, too.
            if *ours == FieldName::FetchedAt {
                table.chosen.push((theirs.clone(), FieldName::FetchedAtUtc));
            }
        }
        names
    }
}

impl NameTable {
    const fn new(usual: &'static [(&'static str, FieldName)]) -> NameTable {
        NameTable {
            usual,
            chosen: Vec::new(),
        }
    }

    /// Returns the field that has this name: by choice, or as usual if the field has no chosen name.
    #[inline]
    pub fn field(&self, name: &str) -> Option<NamedField> {
        let (chosen, usual) = (&self.chosen, self.usual);
        let named = |field, order: usize| NamedField {
            field,
            order: order as u8,
        };
        if let Some(at) = chosen.iter().position(|(known, _)| known == name) {
            return Some(named(chosen[at].1, usual.len() + at));
        }
        let at = usual.iter().position(|(known, _)| *known == name)?;
        let field = usual[at].1;
        let is_chosen = chosen.iter().any(|(_, other)| *other == field);
        (!is_chosen).then(|| named(field, at))
    }

    pub fn name(&self, field: FieldName) -> &str {
        let usual = self.usual.iter().map(|(name, _)| *name);
        let mut names = self.chosen.iter().map(|(name, _)| &**name).chain(usual);
        let is_of = |name: &&str| self.field(name).is_some_and(|known| known.field == field);
        names.find(is_of).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(choices: &[&str]) -> FieldNameMap {
        let choices = choices.iter().map(|text| text.parse().unwrap());
        FieldNameMap::by(&FieldNames::of(choices.collect()).unwrap(), Naming::Url)
    }

    #[test]
    fn a_chosen_name_takes_the_place_of_the_usual_ones() {
        let names = names(&[
            "fetched_at=fetch_time",
            "link.rel=relation",
            "redirect=url",
            "url=u",
        ]);
        let field = |name| names.record.field(name).map(|known| known.field);
        assert_eq!(field("fetch_time"), Some(FieldName::FetchedAt));
        for gone in ["fetched_at", "time", "timestamp", "crawl_time", "redirect"] {
            assert_eq!(field(gone), None, "{gone}");
        }
        assert_eq!(field("url"), Some(FieldName::Redirect));
        assert_eq!(field("u"), Some(FieldName::Url));
        assert_eq!(field("outlinks"), Some(FieldName::Links));
        assert_eq!(names.record.name(FieldName::Url), "u");
        let link_field = |name| names.link.field(name).map(|known| known.field);
        assert_eq!(link_field("rel"), None);
        assert_eq!(link_field("relation"), Some(FieldName::LinkRel));
        assert_eq!(link_field("url"), Some(FieldName::LinkUrl));
    }

    /// A usual name that is chosen for another field means only that field.
    #[test]
    fn a_usual_name_can_be_chosen_for_another_field() {
        let names = names(&["url=links"]);
        let field = |name| names.record.field(name).map(|known| known.field);
        assert_eq!(field("links"), Some(FieldName::Url));
        assert_eq!(field("outlinks"), Some(FieldName::Links));
        assert_eq!(field("url"), None);
    }
}
