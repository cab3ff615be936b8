//! Questions by name with their parameters, as the service takes them.

use std::str::FromStr;

use crate::rank::measures::measure;
use crate::snapshot::{RankingName, Selection};
use crate::{Error, Result};

/// Maximum number of pages or hosts in an answer.
pub const LISTING_MAX: usize = 1_000;
const URLS_MAX: usize = 100;
/// Maximum length of a part of a URL, in bytes.
const TEXT_MAX: usize = 1_000;

/// Question with its parameters, of which each question has its own. The guide's chapter on the service describes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    pub name: String,
    pub n: usize,
    pub urls: Vec<String>,
    pub ranking: RankingName,
    pub selection: Selection,
    pub text: Option<String>,
    /// Number of pages or kept links that are searched.
    pub within: Option<u64>,
    pub incoming: bool,
    pub certain_only: bool,
}

pub(super) fn unknown(name: &str, known: &[&str]) -> String {
    let known = known.join(", ");
    format!("{name}: unknown parameter; use one of {known}")
}

pub(super) fn flag(value: &str) -> Result<bool, String> {
    match value {
        "" | "1" => Ok(true),
        _ => Err(format!("{value:?}: takes no value, or 1")),
    }
}

pub(super) fn parsed<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: ToString,
{
    text.parse().map_err(|why: T::Err| why.to_string())
}

impl Question {
    pub const NAMES: [&str; 7] = [
        "top", "movers", "coverage", "rank", "links", "search", "failures",
    ];

    pub fn of(name: &str, given: &[(String, String)]) -> Result<Question> {
        let usage = |text: String| Err(Error::Usage(text));
        let known: &[&str] = match name {
            "top" => &["n", "measure", "level", "scope", "without-gone"],
            "rank" => &["url", "measure", "level"],
            "links" => &["url", "n", "in", "within"],
            "movers" => &["n", "certain-only"],
            "search" => &["text", "scope", "n", "within"],
            "coverage" | "failures" => &["n"],
            _ => return usage(format!("{name}: unknown question")),
        };
        let repeatable = if name == "rank" { "url" } else { "scope" };
        let mut asked = Question {
            name: name.into(),
            n: if name == "links" { 100 } else { 20 },
            ..Question::default()
        };
        for (at, (parameter, value)) in given.iter().enumerate() {
            if !known.contains(&&**parameter) {
                return usage(unknown(parameter, known));
            }
            let is_repeated = given[..at].iter().any(|(other, _)| other == parameter);
            if is_repeated && parameter != repeatable {
                return usage(format!("{parameter}: given more than once"));
            }
            let set = asked.set(parameter, value);
            set.map_err(|why| Error::Usage(format!("{parameter}: {why}")))?;
        }
        let is_of_sites = !asked.ranking.level.is_page();
        let wrong = match name {
            "top" if is_of_sites && !asked.selection.scope.is_all() => {
                "scope: it names pages; leave it or level out"
            }
            "top" if is_of_sites && asked.selection.without_gone => {
                "without-gone: it is for pages; leave it or level out"
            }
            "links" if asked.within.is_some() && !asked.incoming => {
                "within: it is for links to a page; give `in`, or leave it out"
            }
            "rank" | "links" if asked.urls.is_empty() => {
                "url: which page? Like ?url=https%3A%2F%2Fexample.org%2F"
            }
            _ => return Ok(asked),
        };
        usage(wrong.into())
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "n" => {
                let n = value.parse().ok().filter(|n| (1..=LISTING_MAX).contains(n));
                let wrong = || format!("{value:?}: a whole number from 1 to {LISTING_MAX}");
                self.n = n.ok_or_else(wrong)?;
            }
            "url" if self.urls.len() == URLS_MAX => {
                return Err(format!("more than {URLS_MAX} URLs in one request"));
            }
            "url" => self.urls.push(value.into()),
            "measure" => {
                let known = measure(value).map_err(|unknown| unknown.to_string())?;
                self.ranking.measure = Some(known.name.into());
            }
            "level" => self.ranking.level = parsed(value)?,
            "scope" => self.selection.scope.add(parsed(value)?),
            "text" if value.is_empty() || value.len() > TEXT_MAX => {
                return Err(format!("1 to {TEXT_MAX} bytes"));
            }
            "text" => self.text = Some(value.into()),
            "within" => {
                let within = value.parse().ok().filter(|within| *within > 0);
                let wrong = || format!("{value:?}: a whole number above 0");
                self.within = Some(within.ok_or_else(wrong)?);
            }
            "in" => self.incoming = flag(value)?,
            "certain-only" => self.certain_only = flag(value)?,
            _ => self.selection.without_gone = flag(value)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Scope;

    fn asked(name: &str, given: &[(&str, &str)]) -> Result<Question> {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Question::of(name, &given.collect::<Vec<_>>())
    }

    fn question(name: &str, n: usize) -> Question {
        Question {
            name: name.into(),
            n,
            ..Question::default()
        }
    }

    #[test]
    fn questions_are_read_by_name() {
        assert_eq!(asked("top", &[]).unwrap(), question("top", 20));
        assert_eq!(
            asked(
                "rank",
                &[("measure", "harmonic"), ("url", "a"), ("level", "domain")]
            )
            .unwrap(),
            Question {
                urls: vec!["a".into()],
                ranking: RankingName {
                    level: crate::sites::Level::Domain,
                    measure: Some("harmonic".into()),
                },
                ..question("rank", 20)
            }
        );
        let mut scope: Scope = "host:a.org".parse().unwrap();
        scope.add("url:*x*".parse().unwrap());
        assert_eq!(
            asked("top", &[("scope", "host:a.org"), ("scope", "url:*x*")]).unwrap(),
            Question {
                selection: Selection {
                    scope,
                    without_gone: false,
                },
                ..question("top", 20)
            }
        );
        assert!(
            asked("top", &[("without-gone", "")])
                .unwrap()
                .selection
                .without_gone
        );
        assert_eq!(
            asked("coverage", &[("n", "1000")]).unwrap(),
            question("coverage", 1_000)
        );
        assert_eq!(
            asked("rank", &[("url", "a"), ("url", "b")]).unwrap(),
            Question {
                urls: vec!["a".into(), "b".into()],
                ..question("rank", 20)
            }
        );
        let links = |n, incoming, within| Question {
            urls: vec!["a".into()],
            incoming,
            within,
            ..question("links", n)
        };
        let of = [("n", "7"), ("url", "a")];
        assert_eq!(asked("links", &of).unwrap(), links(7, false, None));
        assert_eq!(
            asked("links", &[("in", ""), ("url", "a"), ("within", "9")]).unwrap(),
            links(100, true, Some(9))
        );
        assert_eq!(
            asked("movers", &[("certain-only", "1")]).unwrap(),
            Question {
                certain_only: true,
                ..question("movers", 20)
            }
        );
        assert_eq!(
            asked("search", &[("text", "X"), ("scope", "host:a"), ("n", "3")]).unwrap(),
            Question {
                text: Some("X".into()),
                selection: Selection {
                    scope: "host:a".parse().unwrap(),
                    without_gone: false,
                },
                ..question("search", 3)
            }
        );
        for name in Question::NAMES {
            assert!(asked(name, &[("url", "a")]).is_ok() || asked(name, &[]).is_ok());
        }
        let many = [("url", "a"); 101];
        for (name, given, says) in [
            ("top", &[("n", "0")][..], "1 to 1000"),
            ("top", &[("n", "1001")], "1 to 1000"),
            ("top", &[("n", "99999999999999999999")], "1 to 1000"),
            ("top", &[("n", "1"), ("n", "1")], "more than once"),
            ("top", &[("m", "1")], "unknown parameter; use one of n"),
            ("top", &[("measure", "fame")], "fame"),
            ("top", &[("level", "nation")], "nation"),
            (
                "top",
                &[("level", "host"), ("scope", "host:a")],
                "leave it or level out",
            ),
            ("coverage", &[("level", "host")], "use one of n"),
            ("links", &[("url", "a"), ("url", "b")], "more than once"),
            ("links", &[], "which page"),
            ("links", &[("url", "a"), ("within", "1")], "give `in`"),
            ("links", &[("url", "a"), ("in", "no")], "takes no value"),
            ("search", &[("text", "")], "1 to 1000 bytes"),
            ("search", &[("within", "0")], "above 0"),
            ("failures", &[("scope", "host:a")], "use one of n"),
            ("rank", &[], "which page"),
            ("rank", &many, "more than 100 URLs"),
            ("nothing", &[], "unknown question"),
        ] {
            let why = asked(name, given).unwrap_err().to_string();
            assert!(why.contains(says), "{name}: {why}");
        }
    }
}
