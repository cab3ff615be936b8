//! Compatibility with the option names of the previous version: they still work, and a note gives the new name.

use std::ffi::{OsStr, OsString};

use super::common::say;

/// Old and new names of options.
const OLD_NAMES: [(&str, &str); 2] = [("--keep-rows", "--keep-links"), ("--serve", "--listen")];

/// Returns the arguments of the process with old option names replaced.
pub fn arguments() -> impl Iterator<Item = OsString> {
    let mut are_options = true;
    std::env::args_os().map(move |argument| {
        are_options &= argument != "--";
        let current = current(&argument).filter(|_| are_options);
        current.map_or(argument, |(old, new, now)| {
            say!("{old} is now {new}; the next version will not know the old name");
            now
        })
    })
}

/// Returns the old name, the new one, and the whole argument with the new one; `None` if the argument has no old name.
fn current(argument: &OsStr) -> Option<(&'static str, &'static str, OsString)> {
    let text = argument.to_str()?;
    let (old, new) = OLD_NAMES.iter().find(|(old, _)| {
        let rest = text.strip_prefix(old);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })?;
    Some((old, new, format!("{new}{}", &text[old.len()..]).into()))
}
