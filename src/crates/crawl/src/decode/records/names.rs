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
    /// Returns whether a name was seen before, and marks it as seen.
    #[inline]
    pub fn was_seen(&mut self, order: u8) -> bool {
        let before = self.0;
        self.0 |= 1 << order;
        before == self.0
    }
}

pub struct FieldNameMap {
    pub record: NameTable,
    pub link: NameTable,
}

impl FieldNameMap {
    /// Returns the usual names, changed by the user's choices.
    pub fn by(fields: &FieldNames, naming: Naming) -> FieldNameMap {
        let (mut of_record, mut of_link) = (Vec::new(), Vec::new());
        for FieldChoice { ours, theirs } in fields.choices() {
            let chosen = if ours.is_of_link() {
                &mut of_link
            } else {
                &mut of_record
            };
            chosen.push((&**theirs, *ours));
            // The chosen name replaces `crawl_time`, too.
            if *ours == FieldName::FetchedAt {
                chosen.push((theirs, FieldName::FetchedAtUtc));
            }
        }
        let usual: &[_] = match naming {
            Naming::Url => &USUAL,
            Naming::Opaque => &USUAL_OF_NODES,
        };
        FieldNameMap {
            record: NameTable::by(usual, &of_record),
            link: NameTable::by(&USUAL_OF_LINKS, &of_link),
        }
    }
}

/// Names of one kind of object: those chosen, and the usual ones of fields without a chosen name.
pub struct NameTable(Vec<(String, NamedField)>);

impl NameTable {
    fn by(usual: &[(&str, FieldName)], chosen: &[(&str, FieldName)]) -> NameTable {
        let named = |(order, &(name, field)): (usize, &(&str, FieldName))| {
            let order = order as u8;
            (name.to_owned(), NamedField { field, order })
        };
        let is_free = |(_, (name, field)): &(usize, &(&str, FieldName))| {
            chosen
                .iter()
                .all(|(taken, of)| taken != name && of != field)
        };
        let first = (usual.len()..).zip(chosen).map(named);
        let rest = usual.iter().enumerate().filter(is_free).map(named);
        NameTable(first.chain(rest).collect())
    }

    #[inline]
    pub fn field(&self, name: &str) -> Option<NamedField> {
        let mut names = self.0.iter();
        let (_, field) = names.find(|(known, _)| known == name)?;
        Some(*field)
    }

    pub fn name(&self, field: FieldName) -> &str {
        let mut names = self.0.iter();
        let found = names.find(|(_, known)| known.field == field);
        found.map_or("", |(name, _)| name)
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
