//! Parameters of questions, by name: one table defines both the options of the command and the parameters of the
//! service.

use std::str::FromStr;

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
