//! Questions by name with their parameters, as the service takes them, and answers that cover more than one page.

use std::str::FromStr;

use crate::rank::measures::measure;
use crate::snapshot::{self, RankingName, SearchOptions, Selection};
use crate::{Error, Result};

/// Maximum number of pages or hosts in an answer.
const LISTING_MAX: usize = 1_000;
const URLS_MAX: usize = 100;
/// Maximum length of a part of a URL, in bytes.
const TEXT_MAX: usize = 1_000;
/// Default number of kept links that are searched for links to a page.
const LINKS_WITHIN: u64 = 200_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Maximum number of rows in the answer.
    pub n: usize,
    pub subject: Subject,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Most important selected pages or sites of a ranking.
    Top(RankingName, Selection),
    /// Largest moves since the previous snapshot; only the certain ones if the flag is set.
    Movers(bool),
    /// Share of what readers see that was crawled, and the hosts with the most unread.
    Coverage,
    /// Pages that could not be fetched, and their hosts.
    Failures,
    /// Rank and fetches of these pages or sites in a ranking.
    Rank(Vec<String>, RankingName),
    /// Links of a page; with a number, links to it among as many kept links.
    Links(String, Option<u64>),
    /// Pages by a part of their URL, or within a scope.
    Search(SearchOptions),
}

#[derive(Default)]
struct QuestionParameters {
    n: Option<usize>,
    urls: Vec<String>,
    ranking: RankingName,
    selection: Selection,
    text: Option<String>,
    within: Option<u64>,
    incoming: bool,
    certain_only: bool,
}

impl QuestionParameters {
    /// Sets a parameter. The guide's chapter on the service describes all of them.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "n" => {
                let n = value.parse().ok().filter(|n| (1..=LISTING_MAX).contains(n));
                let wrong = || format!("{value:?}: a whole number from 1 to {LISTING_MAX}");
                self.n = Some(n.ok_or_else(wrong)?);
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
            _ => {
                check_flag(value)?;
                match name {
                    "in" => self.incoming = true,
                    "certain-only" => self.certain_only = true,
                    _ => self.selection.without_gone = true,
                }
            }
        }
        Ok(())
    }
}

pub(super) fn unknown(name: &str, known: &[&str]) -> String {
    let known = known.join(", ");
    format!("{name}: unknown parameter; use one of {known}")
}

pub(super) fn check_flag(value: &str) -> Result<(), String> {
    if ["", "1"].contains(&value) {
        Ok(())
    } else {
        Err(format!("{value:?}: takes no value, or 1"))
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
            _ => &["n"],
        };
        let repeatable = if name == "rank" { "url" } else { "scope" };
        let mut asked = QuestionParameters::default();
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
        let QuestionParameters {
            ranking,
            selection,
            within,
            ..
        } = asked;
        let n = asked.n.unwrap_or(if name == "links" { 100 } else { 20 });
        let is_of_sites = !ranking.level.is_page();
        let subject = match name {
            "top" if is_of_sites && !selection.scope.is_all() => {
                return usage("scope: it names pages; leave it or level out".into());
            }
            "top" if is_of_sites && selection.without_gone => {
                return usage("without-gone: it is for pages; leave it or level out".into());
            }
            "links" if within.is_some() && !asked.incoming => {
                let text = "within: it is for links to a page; give `in`, or leave it out";
                return usage(text.into());
            }
            "rank" | "links" if asked.urls.is_empty() => {
                return usage("url: which page? Like ?url=https%3A%2F%2Fexample.org%2F".into());
            }
            "top" => Subject::Top(ranking, selection),
            "movers" => Subject::Movers(asked.certain_only),
            "coverage" => Subject::Coverage,
            "failures" => Subject::Failures,
            "rank" => Subject::Rank(asked.urls, ranking),
            "links" => {
                let within = within.unwrap_or(LINKS_WITHIN);
                Subject::Links(asked.urls.concat(), asked.incoming.then_some(within))
            }
            "search" => Subject::Search(SearchOptions {
                text: asked.text,
                scope: selection.scope,
                count: n,
                within: within.unwrap_or(snapshot::WITHIN),
            }),
            _ => return usage(format!("{name}: unknown question")),
        };
        Ok(Question { n, subject })
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

    fn listing(n: usize, subject: Subject) -> Question {
        Question { n, subject }
    }

    #[test]
    fn questions_are_read_by_name() {
        let usual = RankingName::default();
        assert_eq!(
            asked("top", &[]).unwrap(),
            listing(20, Subject::Top(usual.clone(), Selection::default()))
        );
        let by = RankingName {
            level: crate::sites::Level::Domain,
            measure: Some("harmonic".into()),
        };
        assert_eq!(
            asked(
                "rank",
                &[("measure", "harmonic"), ("url", "a"), ("level", "domain")]
            )
            .unwrap()
            .subject,
            Subject::Rank(vec!["a".into()], by)
        );
        assert_eq!(
            asked("top", &[("scope", "host:a.org"), ("scope", "url:*x*")]).unwrap(),
            listing(
                20,
                Subject::Top(usual.clone(), {
                    let mut scope: Scope = "host:a.org".parse().unwrap();
                    scope.add("url:*x*".parse().unwrap());
                    Selection {
                        scope,
                        without_gone: false,
                    }
                })
            )
        );
        assert_eq!(
            asked("coverage", &[("n", "1000")]).unwrap(),
            listing(1_000, Subject::Coverage)
        );
        let both = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(
            asked("rank", &[("url", "a"), ("url", "b")])
                .unwrap()
                .subject,
            Subject::Rank(both, usual)
        );
        let links = |n, within| {
            let subject = Subject::Links("a".into(), within);
            Question { n, subject }
        };
        let of = [("n", "7"), ("url", "a")];
        assert_eq!(asked("links", &of).unwrap(), links(7, None));
        assert_eq!(
            asked("links", &[("in", ""), ("url", "a"), ("within", "9")]).unwrap(),
            links(100, Some(9))
        );
        assert_eq!(
            asked("movers", &[("certain-only", "1")]).unwrap(),
            listing(20, Subject::Movers(true))
        );
        assert_eq!(
            asked("search", &[("text", "X"), ("scope", "host:a"), ("n", "3")])
                .unwrap()
                .subject,
            Subject::Search(SearchOptions {
                text: Some("X".into()),
                scope: "host:a".parse().unwrap(),
                count: 3,
                within: snapshot::WITHIN,
            })
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
