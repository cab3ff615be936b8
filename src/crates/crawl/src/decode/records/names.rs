//! Maps names in the file to fields: the usual names, or those chosen (`--field`).

use crate::model::Names as Naming;
use crate::rules::{FieldName, FieldNames};

/// Field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Url,
    Links,
    FetchedAt,
    /// Time that is in UTC if it has no offset.
    FetchedAtUtc,
    Status,
    Redirect,
    Digest,
    RequestedUrl,
    FinalUrl,
    Base,
    Method,
    /// List that says for each link whether it is `nofollow`.
    LinksNofollow,
    /// List with the `rel` of each link.
    LinksRel,
    /// List with the weight of each link.
    LinksWeight,
    /// URL of a page with the same content.
    Revisit,
    /// Totals over all fetches of the page.
    Visits,
    Failed,
    LastFailed,
    Compared,
    Changed,
    Watched,
}

/// Field of a link that is an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkField {
    Url,
    Rel,
    Nofollow,
    Weight,
}

/// Field found under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedField<F> {
    pub field: F,
    /// Position among all names. If several names of a field occur, the lowest counts.
    pub order: u8,
}

/// The usual names: those of `formats/records.md`, then those of crawlers. An object that has a name twice has the
/// field twice.
const USUAL: [(&str, Field); 34] = [
    ("url", Field::Url),
    ("links", Field::Links),
    ("outlinks", Field::Links),
    ("links_url", Field::Links),
    ("fetched_at", Field::FetchedAt),
    ("time", Field::FetchedAt),
    ("timestamp", Field::FetchedAt),
    ("fetchedAt", Field::FetchedAt),
    ("crawl_time", Field::FetchedAtUtc),
    ("status", Field::Status),
    ("status_code", Field::Status),
    ("statusCode", Field::Status),
    ("http_status", Field::Status),
    ("redirect", Field::Redirect),
    ("digest", Field::Digest),
    ("requested_url", Field::RequestedUrl),
    ("request_url", Field::RequestedUrl),
    ("redirect_urls", Field::RequestedUrl),
    ("final_url", Field::FinalUrl),
    ("loadedUrl", Field::FinalUrl),
    ("base", Field::Base),
    ("method", Field::Method),
    ("request_method", Field::Method),
    ("http_method", Field::Method),
    ("links_nofollow", Field::LinksNofollow),
    ("links_rel", Field::LinksRel),
    ("links_weight", Field::LinksWeight),
    ("revisit", Field::Revisit),
    ("visits", Field::Visits),
    ("failed", Field::Failed),
    ("last_failed", Field::LastFailed),
    ("compared", Field::Compared),
    ("changed", Field::Changed),
    ("watched_s", Field::Watched),
];

/// The usual names in records whose pages have opaque names.
const USUAL_OF_NODES: [(&str, Field); USUAL.len()] = {
    let mut names = USUAL;
    names[0].0 = NODE;
    names
};

/// Field that holds an opaque page name.
pub(super) const NODE: &str = "node";

/// Returns the usual name of the field that holds a page's name.
pub fn page_field(names: Naming) -> &'static str {
    match names {
        Naming::Url => USUAL[0].0,
        Naming::Opaque => NODE,
    }
}

const USUAL_OF_LINKS: [(&str, LinkField); 5] = [
    ("url", LinkField::Url),
    ("href", LinkField::Url),
    ("rel", LinkField::Rel),
    ("nofollow", LinkField::Nofollow),
    ("weight", LinkField::Weight),
];

/// Bitmap of the names seen in the current object, by their order.
#[derive(Default)]
pub(super) struct NameBits(u64);
const _: () = assert!(USUAL.len() + FieldName::ALL.len() < 64);

impl NameBits {
    /// Marks a name as seen; returns whether it had been seen before.
    #[inline]
    pub fn again(&mut self, order: u8) -> bool {
        let before = self.0;
        self.0 |= 1 << order;
        before == self.0
    }
}

/// Names that are read.
#[derive(Clone)]
pub struct FieldNameMap {
    pub record: NameTable<Field>,
    pub link: NameTable<LinkField>,
}

/// Names of one kind of object: the usual ones, and those chosen in their place.
#[derive(Clone)]
pub struct NameTable<F: 'static> {
    usual: &'static [(&'static str, F)],
    chosen: Vec<(String, F)>,
}

impl FieldNameMap {
    /// Returns the usual names for this naming.
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

    /// Returns the usual names for this naming, changed by the user's choices.
    pub fn by(fields: &FieldNames, naming: Naming) -> FieldNameMap {
        let mut names = FieldNameMap::usual(naming);
        for choice in fields.choices() {
            // The first usual name of a field is its own.
            let (ours, theirs) = (choice.ours.name(), &choice.theirs);
            if let Some(of) = ours.strip_prefix("link.") {
                names.link.choose(theirs, field_of(&USUAL_OF_LINKS, of));
            } else {
                let field = field_of(&USUAL, ours);
                names.record.choose(theirs, field);
                let also = field.filter(|field| *field == Field::FetchedAt);
                names
                    .record
                    .choose(theirs, also.map(|_| Field::FetchedAtUtc));
            }
        }
        names
    }
}

impl<F: Copy + PartialEq> NameTable<F> {
    const fn new(usual: &'static [(&'static str, F)]) -> NameTable<F> {
        NameTable {
            usual,
            chosen: Vec::new(),
        }
    }

    /// Gives a field this name in place of its usual ones. If the name is usual for another field, it no longer is.
    fn choose(&mut self, name: &str, field: Option<F>) {
        self.chosen.extend(field.map(|field| (name.into(), field)));
    }

    /// Returns the field that has this name.
    #[inline]
    pub fn field(&self, name: &str) -> Option<NamedField<F>> {
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

    /// Returns the first name of a field; empty if it has none.
    pub fn name(&self, field: F) -> &str {
        let usual = self.usual.iter().map(|(name, _)| *name);
        let mut names = self.chosen.iter().map(|(name, _)| &**name).chain(usual);
        let is_of = |name: &&str| self.field(name).is_some_and(|known| known.field == field);
        names.find(is_of).unwrap_or_default()
    }
}

fn field_of<F: Copy>(names: &[(&str, F)], name: &str) -> Option<F> {
    let known = names.iter().find(|(known, _)| *known == name);
    known.map(|(_, field)| *field)
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
        assert_eq!(field("fetch_time"), Some(Field::FetchedAt));
        for gone in ["fetched_at", "time", "timestamp", "crawl_time", "redirect"] {
            assert_eq!(field(gone), None, "{gone}");
        }
        assert_eq!(field("url"), Some(Field::Redirect));
        assert_eq!(field("u"), Some(Field::Url));
        assert_eq!(field("outlinks"), Some(Field::Links));
        assert_eq!(names.record.name(Field::Url), "u");
        let link_field = |name| names.link.field(name).map(|known| known.field);
        assert_eq!(link_field("rel"), None);
        assert_eq!(link_field("relation"), Some(LinkField::Rel));
        assert_eq!(link_field("url"), Some(LinkField::Url));
    }

    /// A usual name that is chosen for another field means only that field.
    #[test]
    fn a_usual_name_can_be_chosen_for_another_field() {
        let names = names(&["url=links"]);
        let field = |name| names.record.field(name).map(|known| known.field);
        assert_eq!(field("links"), Some(Field::Url));
        assert_eq!(field("outlinks"), Some(Field::Links));
        assert_eq!(field("url"), None);
    }
}
