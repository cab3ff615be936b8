//! Maps names in the file to fields: the usual names, or those chosen (`--field`).

use crate::model::Names as Naming;
use crate::rules::FieldNames;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
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
pub(super) enum LinkField {
    Url,
    Rel,
    Nofollow,
    Weight,
}

/// Field found under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamedField<F> {
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
const _: () = assert!(USUAL.len() <= 64);

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
pub(super) enum FieldNameMap {
    /// The usual names, searched directly.
    Usual,
    /// The usual names for pages with opaque names.
    UsualOfNodes,
    Chosen(Box<CustomNames>),
}

#[derive(Clone)]
pub(super) struct CustomNames {
    of_record: Vec<(String, Field)>,
    of_link: Vec<(String, LinkField)>,
}

impl FieldNameMap {
    /// Returns the usual names for this naming, changed by the user's choices.
    pub fn by(fields: &FieldNames, naming: Naming) -> FieldNameMap {
        let (usual, names) = match naming {
            Naming::Url => (USUAL, FieldNameMap::Usual),
            Naming::Opaque => (USUAL_OF_NODES, FieldNameMap::UsualOfNodes),
        };
        if fields.choices().is_empty() {
            return names;
        }
        let mut of_record = usual.map(|(name, field)| (name.to_owned(), field)).to_vec();
        let mut of_link = USUAL_OF_LINKS
            .map(|(name, field)| (name.to_owned(), field))
            .to_vec();
        for choice in fields.choices() {
            let name = choice.theirs.clone();
            // The first usual name of a field is its own.
            let ours = choice.ours.name();
            if let Some(known) = ours
                .strip_prefix("link.")
                .and_then(|of| find(&USUAL_OF_LINKS, of))
            {
                choose(&mut of_link, name, &[known.field]);
            } else if let Some(known) = find(&USUAL, ours) {
                match known.field {
                    Field::FetchedAt => {
                        choose(
                            &mut of_record,
                            name,
                            &[Field::FetchedAt, Field::FetchedAtUtc],
                        );
                    }
                    field => choose(&mut of_record, name, &[field]),
                }
            }
        }
        FieldNameMap::Chosen(Box::new(CustomNames { of_record, of_link }))
    }

    /// Returns the field of a record that has this name.
    #[inline]
    pub fn field(&self, name: &str) -> Option<NamedField<Field>> {
        match self {
            FieldNameMap::Usual => find(&USUAL, name),
            FieldNameMap::UsualOfNodes => find(&USUAL_OF_NODES, name),
            FieldNameMap::Chosen(chosen) => find(&chosen.of_record, name),
        }
    }

    /// Returns the field of a link that has this name.
    #[inline]
    pub fn link_field(&self, name: &str) -> Option<NamedField<LinkField>> {
        match self {
            FieldNameMap::Chosen(chosen) => find(&chosen.of_link, name),
            _ => find(&USUAL_OF_LINKS, name),
        }
    }

    /// Returns the name of a record's field.
    pub fn name(&self, field: Field) -> &str {
        match self {
            FieldNameMap::Usual => name_of(&USUAL, field),
            FieldNameMap::UsualOfNodes => name_of(&USUAL_OF_NODES, field),
            FieldNameMap::Chosen(chosen) => name_of(&chosen.of_record, field),
        }
    }

    /// Returns the name of a link's field.
    pub fn link_name(&self, field: LinkField) -> &str {
        match self {
            FieldNameMap::Chosen(chosen) => name_of(&chosen.of_link, field),
            _ => name_of(&USUAL_OF_LINKS, field),
        }
    }
}

fn find<N: AsRef<str>, F: Copy>(names: &[(N, F)], name: &str) -> Option<NamedField<F>> {
    let order = names.iter().position(|(known, _)| known.as_ref() == name)?;
    let (field, order) = (names[order].1, order as u8);
    Some(NamedField { field, order })
}

/// Returns the name of a field; empty if it has none.
fn name_of<N: AsRef<str>, F: PartialEq>(names: &[(N, F)], field: F) -> &str {
    let found = names.iter().find(|(_, known)| *known == field);
    found.map_or("", |(name, _)| name.as_ref())
}

/// Gives the name to the first of `fields` and removes all other names of `fields`. If the name was usual for another
/// field, it no longer is.
fn choose<F: Copy + PartialEq>(names: &mut Vec<(String, F)>, name: String, fields: &[F]) {
    names.retain(|(known, field)| *known != name && !fields.contains(field));
    names.push((name, fields[0]));
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
        let field = |name| names.field(name).map(|known| known.field);
        assert_eq!(field("fetch_time"), Some(Field::FetchedAt));
        for gone in ["fetched_at", "time", "timestamp", "crawl_time", "redirect"] {
            assert_eq!(field(gone), None, "{gone}");
        }
        assert_eq!(field("url"), Some(Field::Redirect));
        assert_eq!(field("u"), Some(Field::Url));
        assert_eq!(field("outlinks"), Some(Field::Links));
        assert_eq!(names.name(Field::Url), "u");
        let link_field = |name| names.link_field(name).map(|known| known.field);
        assert_eq!(link_field("rel"), None);
        assert_eq!(link_field("relation"), Some(LinkField::Rel));
        assert_eq!(link_field("url"), Some(LinkField::Url));
    }

    /// A usual name that is chosen for another field means only that field.
    #[test]
    fn a_usual_name_can_be_chosen_for_another_field() {
        let names = names(&["url=links"]);
        let field = |name| names.field(name).map(|known| known.field);
        assert_eq!(field("links"), Some(Field::Url));
        assert_eq!(field("outlinks"), Some(Field::Links));
        assert_eq!(field("url"), None);
    }
}
