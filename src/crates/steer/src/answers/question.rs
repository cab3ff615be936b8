//! Questions by name with their parameters, of which one table makes the options of the command and the parameters of
//! the service; and answers that cover more than one page.

use std::str::FromStr;

use crate::rank::measures::measure;
use crate::rules::Scope;
use crate::snapshot::{self, RankingName, SearchOptions, Selection};
use crate::{Error, Result};

/// Maximum number of pages or hosts in an answer.
pub const LISTING_MAX: usize = 1_000;
const URLS_MAX: usize = 100;
/// Maximum number of snapshots in a question; each one is opened.
const SNAPSHOTS_MAX: usize = 1_000;
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
    /// Rank and fetches of these pages or sites in a ranking, and their ranks in the newest snapshots.
    Rank(Vec<String>, RankingName, Option<usize>),
    /// Links of a page; with a number, links to it among as many kept links.
    Links(String, Option<u64>),
    /// Pages by a part of their URL, or within a scope.
    Search(SearchOptions),
}

/// Parameter of questions whose values are collected in a `T`.
pub struct Parameter<T> {
    /// Name: words joined by `-`.
    pub name: &'static str,
    pub takes: Takes,
    /// Default as text; `None` if it cannot be written as text.
    pub default: Option<&'static str>,
    pub help: &'static str,
    /// Names of parameters that it excludes.
    pub excludes: &'static [&'static str],
    pub(super) set: fn(&mut T, &str) -> Result<(), String>,
}

/// Number of values that a parameter takes, with the name of a value for the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// No value, or `1`.
    Nothing,
    Value(&'static str),
    /// One value each time the parameter is given; it may be repeated.
    Values(&'static str),
}

impl<T: Default> Parameter<T> {
    /// Checks a value. The error says what would be valid.
    pub fn check(&self, value: &str) -> Result<(), String> {
        if self.takes == Takes::Nothing && !["", "1"].contains(&value) {
            return Err(format!("{value:?}: takes no value, or 1"));
        }
        (self.set)(&mut T::default(), value)
    }
}

pub(super) fn read<T: Default>(
    table: &[Parameter<T>],
    given: &[(String, String)],
) -> Result<T, String> {
    let mut asked = T::default();
    let mut earlier: Vec<&Parameter<T>> = Vec::new();
    for (name, value) in given {
        let Some(parameter) = table.iter().find(|known| known.name == name) else {
            let known: Vec<&str> = table.iter().map(|known| known.name).collect();
            let known = known.join(", ");
            return Err(format!("{name}: unknown parameter; use one of {known}"));
        };
        let excludes = |a: &Parameter<T>, b: &Parameter<T>| a.excludes.contains(&b.name);
        for other in &earlier {
            if excludes(parameter, other) || excludes(other, parameter) {
                return Err(format!("{name}: cannot be combined with {}", other.name));
            }
            if other.name == name && !matches!(parameter.takes, Takes::Values(_)) {
                return Err(format!("{name}: given more than once"));
            }
        }
        earlier.push(parameter);
        let done = parameter.check(value);
        done.and_then(|()| (parameter.set)(&mut asked, value))
            .map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(asked)
}

pub(super) fn put<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

pub(super) fn parsed<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: ToString,
{
    text.parse().map_err(|why: T::Err| why.to_string())
}

#[derive(Default)]
struct QuestionParameters {
    n: Option<usize>,
    history: Option<usize>,
    urls: Vec<String>,
    ranking: RankingName,
    scope: Scope,
    text: Option<String>,
    within: Option<u64>,
    incoming: bool,
    certain_only: bool,
    without_gone: bool,
}

/// Returns a parameter without a default. The guide's chapter on the service describes all of them.
const fn parameter(
    name: &'static str,
    takes: Takes,
    set: fn(&mut QuestionParameters, &str) -> Result<(), String>,
) -> Parameter<QuestionParameters> {
    Parameter {
        name,
        takes,
        default: None,
        help: "",
        excludes: &[],
        set,
    }
}

const N: Parameter<QuestionParameters> = parameter("n", Takes::Value("N"), |asked, text| {
    put(&mut asked.n, count(text, LISTING_MAX).map(Some))
});
const HISTORY: Parameter<QuestionParameters> =
    parameter("history", Takes::Value("N"), |asked, text| {
        put(&mut asked.history, count(text, SNAPSHOTS_MAX).map(Some))
    });
const URLS: Parameter<QuestionParameters> =
    parameter("url", Takes::Values("URL"), |asked, text| {
        if asked.urls.len() == URLS_MAX {
            return Err(format!("more than {URLS_MAX} URLs in one request"));
        }
        asked.urls.push(text.to_owned());
        Ok(())
    });
const URL: Parameter<QuestionParameters> = parameter("url", Takes::Value("URL"), URLS.set);
const MEASURE: Parameter<QuestionParameters> =
    parameter("measure", Takes::Value("MEASURE"), |asked, text| {
        let known = measure(text).map_err(|unknown| unknown.to_string())?;
        asked.ranking.measure = Some(known.name.into());
        Ok(())
    });
const LEVEL: Parameter<QuestionParameters> =
    parameter("level", Takes::Value("LEVEL"), |asked, text| {
        put(&mut asked.ranking.level, parsed(text))
    });
const SCOPE: Parameter<QuestionParameters> =
    parameter("scope", Takes::Values("PAGES"), |asked, text| {
        parsed(text).map(|pages| asked.scope.add(pages))
    });
const TEXT: Parameter<QuestionParameters> =
    parameter("text", Takes::Value("TEXT"), |asked, text| {
        if text.is_empty() || text.len() > TEXT_MAX {
            return Err(format!("1 to {TEXT_MAX} bytes"));
        }
        asked.text = Some(text.to_owned());
        Ok(())
    });
const WITHIN: Parameter<QuestionParameters> =
    parameter("within", Takes::Value("N"), |asked, text| {
        let within = text.parse().ok().filter(|within| *within > 0);
        asked.within = Some(within.ok_or_else(|| format!("{text:?}: a whole number above 0"))?);
        Ok(())
    });
const IN: Parameter<QuestionParameters> = parameter("in", Takes::Nothing, |asked, _| {
    put(&mut asked.incoming, Ok(true))
});
const CERTAIN_ONLY: Parameter<QuestionParameters> =
    parameter("certain-only", Takes::Nothing, |asked, _| {
        put(&mut asked.certain_only, Ok(true))
    });
const WITHOUT_GONE: Parameter<QuestionParameters> =
    parameter("without-gone", Takes::Nothing, |asked, _| {
        put(&mut asked.without_gone, Ok(true))
    });

fn count(text: &str, most: usize) -> Result<usize, String> {
    let count = text.parse().ok().filter(|n| (1..=most).contains(n));
    count.ok_or_else(|| format!("{text:?}: a whole number from 1 to {most}"))
}

impl Question {
    pub const NAMES: [&str; 7] = [
        "top", "movers", "coverage", "rank", "links", "search", "failures",
    ];

    pub fn of(name: &str, given: &[(String, String)]) -> Result<Question> {
        let parameters: &[Parameter<QuestionParameters>] = match name {
            "top" => &[N, MEASURE, LEVEL, SCOPE, WITHOUT_GONE],
            "rank" => &[URLS, MEASURE, LEVEL, HISTORY],
            "links" => &[URL, N, IN, WITHIN],
            "movers" => &[N, CERTAIN_ONLY],
            "search" => &[TEXT, SCOPE, N, WITHIN],
            _ => &[N],
        };
        let asked: QuestionParameters = read(parameters, given).map_err(Error::Usage)?;
        let (is_of_pages, is_links) = (asked.ranking.level.is_page(), name == "links");
        for (is_wrong, why) in [
            (
                !(asked.scope.is_all() || is_of_pages),
                "scope: it names pages; leave it or level out",
            ),
            (
                asked.without_gone && !is_of_pages,
                "without-gone: it is for pages; leave it or level out",
            ),
            (
                asked.history.is_some() && !is_of_pages,
                "history: it is for pages; leave it or level out",
            ),
            (
                asked.within.is_some() && is_links && !asked.incoming,
                "within: it is for links to a page; give `in`, or leave it out",
            ),
            (
                asked.urls.is_empty() && (is_links || name == "rank"),
                "url: which page? Like ?url=https%3A%2F%2Fexample.org%2F",
            ),
        ] {
            if is_wrong {
                return Err(Error::Usage(why.into()));
            }
        }
        let n = asked.n.unwrap_or(if is_links { 100 } else { 20 });
        let subject = match name {
            "top" => Subject::Top(
                asked.ranking,
                Selection {
                    scope: asked.scope,
                    without_gone: asked.without_gone,
                },
            ),
            "movers" => Subject::Movers(asked.certain_only),
            "coverage" => Subject::Coverage,
            "failures" => Subject::Failures,
            "rank" => Subject::Rank(asked.urls, asked.ranking, asked.history),
            "links" => {
                let within = asked.within.unwrap_or(LINKS_WITHIN);
                Subject::Links(asked.urls.concat(), asked.incoming.then_some(within))
            }
            "search" => Subject::Search(SearchOptions {
                text: asked.text,
                scope: asked.scope,
                count: n,
                within: asked.within.unwrap_or(snapshot::WITHIN),
            }),
            _ => return Err(Error::Usage(format!("{name}: unknown question"))),
        };
        Ok(Question { n, subject })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Subject::Rank(vec!["a".into()], by, None)
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
            Subject::Rank(both, usual.clone(), None)
        );
        assert_eq!(
            asked("rank", &[("url", "a"), ("history", "7")])
                .unwrap()
                .subject,
            Subject::Rank(vec!["a".into()], usual, Some(7))
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
            ("rank", &[("url", "a"), ("history", "1001")], "1 to 1000"),
            (
                "rank",
                &[("url", "a"), ("history", "1"), ("level", "host")],
                "history: it is for pages",
            ),
            ("rank", &many, "more than 100 URLs"),
            ("nothing", &[], "unknown question"),
        ] {
            let why = asked(name, given).unwrap_err().to_string();
            assert!(why.contains(says), "{name}: {why}");
        }
    }
}
