//! Names of fields in JSON lines that differ from the usual ones: `--field`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result, words};

words! {
    /// Field of `records` (`formats/records.md`), first those whose names can be chosen, of links last among them.
    FieldName {
        Url = "url",
        Links = "links",
        FetchedAt = "fetched_at",
        Status = "status",
        Redirect = "redirect",
        Digest = "digest",
        RequestedUrl = "requested_url",
        FinalUrl = "final_url",
        Base = "base",
        Method = "method",
        LinksNofollow = "links_nofollow",
        LinksRel = "links_rel",
        LinksWeight = "links_weight",
        Revisit = "revisit",
        /// `url` of a link that is an object.
        LinkUrl = "link.url",
        LinkRel = "link.rel",
        LinkNofollow = "link.nofollow",
        LinkWeight = "link.weight",
        /// Time that is in UTC if it has no offset.
        FetchedAtUtc = "crawl_time",
        /// Totals over all fetches of the page.
        Visits = "visits",
        Failed = "failed",
        LastFailed = "last_failed",
        Compared = "compared",
        Changed = "changed",
        Watched = "watched_s",
    }
}

impl FieldName {
    /// Number of fields whose names can be chosen.
    pub const CHOICES: usize = FieldName::LinkWeight as usize + 1;

    /// Returns whether it is a field of a link, not of the record.
    pub fn is_of_link(self) -> bool {
        self.name().starts_with("link.")
    }
}

/// One choice of `--field`: `url=response_url`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FieldChoice {
    /// Field of the `records` format.
    pub ours: FieldName,
    /// Name in the file; not empty.
    pub theirs: String,
}

impl FromStr for FieldChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<FieldChoice> {
        let choices = &FieldName::ALL[..FieldName::CHOICES];
        let names: Vec<&str> = choices.iter().map(|field| field.name()).collect();
        let names = names.join(", ");
        let Some((ours, theirs)) = text.split_once('=') else {
            return Err(Error::Usage(format!(
                "{text:?}: FIELD=NAME is expected, like url=response_url; the fields are {names}"
            )));
        };
        let known = choices.iter().find(|field| field.name() == ours);
        let ours =
            *known.ok_or_else(|| Error::Usage(format!("no field {ours:?}; there are: {names}")))?;
        if theirs.is_empty() {
            return Err(Error::Usage(format!(
                "{text:?}: the file's name for it is missing"
            )));
        }
        let theirs = theirs.to_owned();
        Ok(FieldChoice { ours, theirs })
    }
}

/// Fields with chosen names; all others have the usual ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<FieldChoice>")]
pub struct FieldNames(Vec<FieldChoice>);

impl FieldNames {
    /// Collects choices. Fails if a field has two names, or two fields of one object have the same name.
    pub fn of(mut choices: Vec<FieldChoice>) -> Result<FieldNames> {
        choices.sort();
        for pair in choices.windows(2) {
            if pair[0].ours == pair[1].ours {
                return Err(Error::Usage(format!(
                    "the field {} has two names, {:?} and {:?}",
                    pair[0].ours.name(),
                    pair[0].theirs,
                    pair[1].theirs
                )));
            }
        }
        for (at, one) in choices.iter().enumerate() {
            let same = |other: &&FieldChoice| {
                other.theirs == one.theirs && other.ours.is_of_link() == one.ours.is_of_link()
            };
            if let Some(other) = choices[..at].iter().find(same) {
                return Err(Error::Usage(format!(
                    "{:?} cannot be both {} and {}",
                    one.theirs,
                    other.ours.name(),
                    one.ours.name()
                )));
            }
        }
        Ok(FieldNames(choices))
    }

    /// Returns the choices, in order of the fields.
    pub fn choices(&self) -> &[FieldChoice] {
        &self.0
    }
}

/// Formats the choices as an option: `url=response_url,links=urls`.
impl fmt::Display for FieldNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, choice) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{}={}", choice.ours.name(), choice.theirs)?;
        }
        Ok(())
    }
}

impl TryFrom<Vec<FieldChoice>> for FieldNames {
    type Error = Error;

    fn try_from(choices: Vec<FieldChoice>) -> Result<FieldNames> {
        FieldNames::of(choices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(choices: &[&str]) -> Result<FieldNames> {
        FieldNames::of(
            choices
                .iter()
                .map(|text| text.parse())
                .collect::<Result<_>>()?,
        )
    }

    #[test]
    fn names_come_back() {
        for (at, field) in FieldName::ALL.into_iter().enumerate() {
            let choice = format!("{}=a=b", field.name()).parse::<FieldChoice>();
            assert_eq!(choice.is_ok(), at < FieldName::CHOICES, "{}", field.name());
            if let Ok(choice) = choice {
                assert_eq!((choice.ours, &*choice.theirs), (field, "a=b"));
            }
            let json = serde_json::to_value(field).unwrap();
            assert_eq!(json, field.name());
        }
        assert_eq!(FieldName::ALL[FieldName::CHOICES], FieldName::FetchedAtUtc);
        let fields = of(&["link.url=href", "url=response_url"]).unwrap();
        let json = serde_json::to_string(&fields).unwrap();
        assert_eq!(
            json,
            r#"[{"ours":"url","theirs":"response_url"},{"ours":"link.url","theirs":"href"}]"#
        );
        assert_eq!(serde_json::from_str::<FieldNames>(&json).unwrap(), fields);
    }

    #[test]
    fn what_is_refused() {
        for (choices, message) in [
            (
                &["uri=x"][..],
                "no field \"uri\"; there are: url, links, fetched_at,",
            ),
            (&["response_url"], "FIELD=NAME is expected"),
            (&["url="], "name for it is missing"),
            (&["url=a", "url=b"], "two names, \"a\" and \"b\""),
            (
                &["url=a", "redirect=a"],
                "\"a\" cannot be both url and redirect",
            ),
        ] {
            let error = of(choices).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        // A record and a link are two objects.
        assert!(of(&["url=a", "link.url=a"]).is_ok());
        let json = r#"[{"ours":"url","theirs":"a"},{"ours":"url","theirs":"b"}]"#;
        assert!(serde_json::from_str::<FieldNames>(json).is_err());
    }
}
