//! Parameters of questions, by name: the options of the command and the parameters of the service are made of one table.

use std::str::FromStr;

/// A parameter of questions of which `T` holds what was asked.
pub struct Parameter<T> {
    /// Its name: words with `-` between them.
    pub name: &'static str,
    /// The values it takes.
    pub takes: Takes,
    /// Its default, as text; `None`: there is none that could be given.
    pub default: Option<&'static str>,
    /// Its help.
    pub help: &'static str,
    /// Parameters that do not go with it.
    pub excludes: &'static [&'static str],
    pub(super) set: fn(&mut T, &str) -> Result<(), String>,
}

/// The values that a parameter takes. A value has a name, for help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing, or `1`.
    Nothing,
    /// A value.
    Value(&'static str),
    /// A value each time that it is given.
    Values(&'static str),
}

impl<T: Default> Parameter<T> {
    /// Returns whether a value makes sense.
    ///
    /// # Errors
    ///
    /// It does not; the text says what would.
    pub fn check(&self, value: &str) -> Result<(), String> {
        if self.takes == Takes::Nothing && !["", "1"].contains(&value) {
            return Err(format!("{value:?}: takes no value, or 1"));
        }
        (self.set)(&mut T::default(), value)
    }
}

/// Reads parameters from names and values.
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

/// A value that is read from text; the error is text as well.
pub(super) fn parsed<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: ToString,
{
    text.parse().map_err(|why: T::Err| why.to_string())
}
