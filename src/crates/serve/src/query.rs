//! Query strings. A request with an unknown name or an invalid value is refused.

use std::str::FromStr;

use crate::backend::{Problem, Result};

pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: Option<&str>) -> Query {
        let pairs = form_urlencoded::parse(text.unwrap_or("").as_bytes());
        Query(pairs.into_owned().collect())
    }

    /// Removes and returns all values of a name.
    pub(crate) fn all(&mut self, name: &str) -> Vec<String> {
        let (found, rest) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(key, _)| key == name);
        self.0 = rest;
        let found: Vec<(String, String)> = found;
        found.into_iter().map(|(_, value)| value).collect()
    }

    /// Removes and returns the value of a name; refuses a repeated one.
    pub(crate) fn one(&mut self, name: &str) -> Result<Option<String>> {
        let mut found = self.all(name);
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => Err(Problem::Asked(format!("{name}: given more than once"))),
        }
    }

    /// Removes and returns a number from 1 to `most`.
    pub(crate) fn count(&mut self, name: &str, default: usize, most: usize) -> Result<usize> {
        let Some(text) = self.one(name)? else {
            return Ok(default.min(most));
        };
        match usize::from_str(&text) {
            Ok(n) if (1..=most).contains(&n) => Ok(n),
            _ => Err(Problem::Asked(format!(
                "{name}={text}: a whole number from 1 to {most}"
            ))),
        }
    }

    /// Returns all parameters that remain.
    pub(crate) fn rest(self) -> Vec<(String, String)> {
        self.0
    }

    /// Refuses remaining parameters. `known` lists the valid names; empty: there are none.
    pub(crate) fn end(self, known: &str) -> Result<()> {
        let Some((name, _)) = self.0.first() else {
            return Ok(());
        };
        let instead = if known.is_empty() {
            "there are none here".into()
        } else {
            format!("use one of {known}")
        };
        Err(Problem::Asked(format!(
            "{name}: unknown parameter; {instead}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_checked() {
        let mut query = Query::parse(Some("url=http%3A%2F%2Fa%2F%3Fx%3D1&n=7&url=b+c"));
        assert_eq!(query.all("url"), ["http://a/?x=1", "b c"]);
        assert_eq!(query.count("n", 1, 10), Ok(7));
        assert_eq!(query.count("n", 3, 10), Ok(3));
        assert_eq!(query.end("n"), Ok(()));
        for wrong in [
            "n=0",
            "n=11",
            "n=-1",
            "n=",
            "n=x",
            "n=1&n=2",
            "n=99999999999999999999",
        ] {
            assert!(
                Query::parse(Some(wrong)).count("n", 1, 10).is_err(),
                "{wrong}"
            );
        }
        assert!(Query::parse(Some("m=1")).end("n").is_err());
    }
}
