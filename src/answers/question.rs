//! Questions by name, and answers that are of more than one page's facts.

use serde::Serialize;

use super::parameter::{Parameter, Takes, read};
use crate::{Error, Result};

/// Most pages, or hosts, of an answer.
const PAGES_MAX: usize = 1_000;
/// Most URLs of a question.
const URLS_MAX: usize = 100;

/// A question about a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// The most important pages, so many.
    Top(usize),
    /// The largest moves since the previous snapshot.
    Movers(usize),
    /// The hosts of the largest importance.
    Hosts(usize),
    /// How much of what readers see was read, and the hosts with most that was not, so many.
    Coverage(usize),
    /// Rank and fetches of these pages.
    Rank(Vec<String>),
    /// The links of a page, so many.
    Links(String, usize),
}

/// The parameters of a question that were given.
#[derive(Default)]
struct Asked {
    n: Option<usize>,
    urls: Vec<String>,
}

const N: Parameter<Asked> = Parameter {
    name: "n",
    takes: Takes::Value("N"),
    default: None,
    help: "At most so many.",
    excludes: &[],
    set: |asked, text| match text.parse() {
        Ok(n) if (1..=PAGES_MAX).contains(&n) => {
            asked.n = Some(n);
            Ok(())
        }
        _ => Err(format!("{text:?}: a whole number from 1 to {PAGES_MAX}")),
    },
};

const URLS: Parameter<Asked> = Parameter {
    name: "url",
    takes: Takes::Values("URL"),
    default: None,
    help: "A URL in any form, or the name of a node.",
    excludes: &[],
    set: |asked, text| {
        if asked.urls.len() == URLS_MAX {
            return Err(format!("more than {URLS_MAX} URLs in one request"));
        }
        asked.urls.push(text.to_owned());
        Ok(())
    },
};

const URL: Parameter<Asked> = Parameter {
    takes: Takes::Value("URL"),
    ..URLS
};

impl Question {
    /// The names of all questions.
    pub const NAMES: [&str; 6] = ["top", "movers", "hosts", "coverage", "rank", "links"];

    /// A question by its name and its parameters.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`]: there is no such question, or it does not make sense.
    pub fn of(name: &str, given: &[(String, String)]) -> Result<Question> {
        let parameters: &[Parameter<Asked>] = match name {
            "rank" => &[URLS],
            "links" => &[URL, N],
            _ => &[N],
        };
        let Asked { n, mut urls } = read(parameters, given).map_err(Error::Usage)?;
        let no_url =
            || Error::Usage("url: which page? Like ?url=https%3A%2F%2Fexample.org%2F".into());
        let most = n.unwrap_or(20);
        Ok(match name {
            "top" => Question::Top(most),
            "movers" => Question::Movers(most),
            "hosts" => Question::Hosts(most),
            "coverage" => Question::Coverage(most),
            "rank" if urls.is_empty() => return Err(no_url()),
            "rank" => Question::Rank(urls),
            "links" => Question::Links(urls.pop().ok_or_else(no_url)?, n.unwrap_or(100)),
            _ => return Err(Error::Usage(format!("{name}: unknown question"))),
        })
    }
}

/// The links of a page.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Links {
    /// The page, as it was asked for.
    pub url: String,
    /// Whether its links are known: it was visited, and its links were kept.
    pub visited: bool,
    /// Links that are known, those not listed too.
    pub count: u64,
    /// Targets, as many as were asked for.
    pub links: Vec<Target>,
}

/// The target of a link.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Target {
    /// Its URL or name.
    pub url: String,
    /// 1 + pages of strictly greater importance; absent for a page that is newer than the snapshot.
    pub rank: Option<u64>,
}

/// A host.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Pages of it among those looked at.
    pub pages: u64,
    /// The sum of their importance.
    pub importance: f64,
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

    #[test]
    fn questions_are_read_by_name() {
        assert_eq!(asked("top", &[]).unwrap(), Question::Top(20));
        assert_eq!(
            asked("hosts", &[("n", "1000")]).unwrap(),
            Question::Hosts(1_000)
        );
        let both = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(
            asked("rank", &[("url", "a"), ("url", "b")]).unwrap(),
            Question::Rank(both)
        );
        let links = Question::Links("a".into(), 7);
        assert_eq!(asked("links", &[("n", "7"), ("url", "a")]).unwrap(), links);
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
            ("links", &[("url", "a"), ("url", "b")], "more than once"),
            ("links", &[], "which page"),
            ("rank", &[], "which page"),
            ("rank", &many, "more than 100 URLs"),
            ("nothing", &[], "unknown question"),
        ] {
            let why = asked(name, given).unwrap_err().to_string();
            assert!(why.contains(says), "{name}: {why}");
        }
    }
}
