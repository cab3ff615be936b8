//! What a name in the file stands for: the usual names, or those chosen (`--field`).

use crate::rules::{FieldName, Fields};

/// A field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Url,
    Links,
    Outlinks,
    FetchedAt,
    Time,
    Timestamp,
    Status,
    Redirect,
    Digest,
}

/// A field of a link that is an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkField {
    Url,
    Rel,
    Nofollow,
}

/// The usual names. A field has one name, so a name that comes twice is a field that does.
const USUAL: [(&str, Field); FIELDS] = [
    ("url", Field::Url),
    ("links", Field::Links),
    ("outlinks", Field::Outlinks),
    ("fetched_at", Field::FetchedAt),
    ("time", Field::Time),
    ("timestamp", Field::Timestamp),
    ("status", Field::Status),
    ("redirect", Field::Redirect),
    ("digest", Field::Digest),
];
/// Number of fields of a record.
pub(super) const FIELDS: usize = 9;

const USUAL_OF_LINKS: [(&str, LinkField); 3] = [
    ("url", LinkField::Url),
    ("rel", LinkField::Rel),
    ("nofollow", LinkField::Nofollow),
];

/// All names that are read.
pub(super) struct Names(Option<Box<Chosen>>);

struct Chosen {
    of_record: Vec<(String, Field)>,
    of_link: Vec<(String, LinkField)>,
}

impl Names {
    /// The usual names, looked for without a detour.
    pub const USUAL: Names = Names(None);

    /// The usual names but for those chosen.
    pub fn by(fields: &Fields) -> Names {
        if fields.choices().is_empty() {
            return Names::USUAL;
        }
        let mut of_record = USUAL.map(|(name, field)| (name.to_owned(), field)).to_vec();
        let mut of_link = USUAL_OF_LINKS
            .map(|(name, field)| (name.to_owned(), field))
            .to_vec();
        for choice in fields.choices() {
            let name = choice.theirs.clone();
            match choice.ours {
                FieldName::Url => choose(&mut of_record, name, &[Field::Url]),
                FieldName::Links => choose(&mut of_record, name, &[Field::Links, Field::Outlinks]),
                FieldName::FetchedAt => {
                    let times = [Field::FetchedAt, Field::Time, Field::Timestamp];
                    choose(&mut of_record, name, &times);
                }
                FieldName::Status => choose(&mut of_record, name, &[Field::Status]),
                FieldName::Redirect => choose(&mut of_record, name, &[Field::Redirect]),
                FieldName::Digest => choose(&mut of_record, name, &[Field::Digest]),
                FieldName::LinkUrl => choose(&mut of_link, name, &[LinkField::Url]),
                FieldName::LinkRel => choose(&mut of_link, name, &[LinkField::Rel]),
                FieldName::LinkNofollow => choose(&mut of_link, name, &[LinkField::Nofollow]),
            }
        }
        Names(Some(Box::new(Chosen { of_record, of_link })))
    }

    /// The field of a record that has this name.
    #[inline]
    pub fn field(&self, name: &str) -> Option<Field> {
        match &self.0 {
            None => find(&USUAL, name),
            Some(chosen) => find(&chosen.of_record, name),
        }
    }

    /// The field of a link that has this name.
    #[inline]
    pub fn link_field(&self, name: &str) -> Option<LinkField> {
        match &self.0 {
            None => find(&USUAL_OF_LINKS, name),
            Some(chosen) => find(&chosen.of_link, name),
        }
    }

    /// The name of a record's field.
    pub fn name(&self, field: Field) -> &str {
        match &self.0 {
            None => name_of(&USUAL, field),
            Some(chosen) => name_of(&chosen.of_record, field),
        }
    }

    /// The name of a link's field.
    pub fn link_name(&self, field: LinkField) -> &str {
        match &self.0 {
            None => name_of(&USUAL_OF_LINKS, field),
            Some(chosen) => name_of(&chosen.of_link, field),
        }
    }
}

fn find<N: AsRef<str>, F: Copy>(names: &[(N, F)], name: &str) -> Option<F> {
    let found = names.iter().find(|(known, _)| known.as_ref() == name);
    found.map(|(_, field)| *field)
}

/// Empty for a field without a name: nothing can stand for it.
fn name_of<N: AsRef<str>, F: PartialEq>(names: &[(N, F)], field: F) -> &str {
    let found = names.iter().find(|(_, known)| *known == field);
    found.map_or("", |(name, _)| name.as_ref())
}

/// Gives the first of `fields` the name, and to none of the others any: what a name was usual for, it no
/// longer means.
fn choose<F: Copy + PartialEq>(names: &mut Vec<(String, F)>, name: String, fields: &[F]) {
    names.retain(|(known, field)| *known != name && !fields.contains(field));
    names.push((name, fields[0]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(choices: &[&str]) -> Names {
        let choices = choices.iter().map(|text| text.parse().unwrap());
        Names::by(&Fields::of(choices.collect()).unwrap())
    }

    #[test]
    fn a_chosen_name_takes_the_place_of_the_usual_ones() {
        let names = names(&[
            "fetched_at=fetch_time",
            "link.rel=relation",
            "redirect=url",
            "url=u",
        ]);
        assert_eq!(names.field("fetch_time"), Some(Field::FetchedAt));
        for gone in ["fetched_at", "time", "timestamp", "redirect"] {
            assert_eq!(names.field(gone), None, "{gone}");
        }
        assert_eq!(names.field("url"), Some(Field::Redirect));
        assert_eq!(names.field("u"), Some(Field::Url));
        assert_eq!(names.field("outlinks"), Some(Field::Outlinks));
        assert_eq!(names.name(Field::Url), "u");
        assert_eq!(names.link_field("rel"), None);
        assert_eq!(names.link_field("relation"), Some(LinkField::Rel));
        assert_eq!(names.link_field("url"), Some(LinkField::Url));
    }

    /// A name that was usual for another field means the chosen one only.
    #[test]
    fn a_usual_name_can_be_chosen_for_another_field() {
        let names = names(&["url=links"]);
        assert_eq!(names.field("links"), Some(Field::Url));
        assert_eq!(names.field("outlinks"), Some(Field::Outlinks));
        assert_eq!(names.field("url"), None);
    }
}
