//! Textual form of a store's settings, and their comparison with requested ones.

use std::path::Path;

use super::Settings;
use crate::engine::Config;
use crate::model::{Limits, SETTINGS};
use crate::{Error, Result};

/// Name of a setting and its value, empty if not set.
type Given = (&'static str, String);

/// Lists every setting. Different settings differ in some value.
fn as_given(settings: &Settings) -> Vec<Given> {
    let config = &settings.config;
    let mut given = vec![
        ("damping", damping(config)),
        ("window", config.window.to_string()),
        ("estimator", config.estimator().to_string()),
        (
            "self_links",
            format!("{:?}", config.self_links).to_lowercase(),
        ),
        ("marks", config.marks.to_string()),
        (
            "max_age",
            config.max_age.map_or(String::new(), |age| age.to_string()),
        ),
        ("recycle_after", config.recycle_after.to_string()),
        ("limit_line", settings.line_bytes.to_string()),
        ("limit_url", settings.url_bytes.to_string()),
        ("limit_links", settings.links.to_string()),
        ("version of the URL rules", settings.url_rules.to_string()),
        ("follow", config.follow.to_string()),
    ];
    given.extend(settings.input.given());
    given
}

impl Settings {
    /// Returns the settings that differ from their defaults, with their values.
    pub fn chosen(&self) -> Vec<(&'static str, String)> {
        let mut usual = Settings::new(Config::default(), &Limits::default());
        let window = usual.config.window.to_string();
        // The window determines the default estimator.
        usual.config.window = self.config.window;
        let both = as_given(self).into_iter().zip(as_given(&usual));
        let chosen = both.filter(|((setting, given), (_, usual))| {
            let usual = if *setting == "window" { &window } else { usual };
            given != usual && SETTINGS.contains(setting)
        });
        chosen.map(|(given, _)| given).collect()
    }
}

/// Formats damping as it was typed: it is stored in 1/2^32, so eight decimals suffice.
fn damping(config: &Config) -> String {
    let text = format!("{:.8}", config.damping());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Describes the settings that differ: those found, and those requested.
pub fn differences(found: &Settings, asked: &Settings) -> String {
    let both = as_given(found).into_iter().zip(as_given(asked));
    let differences: Vec<String> = both
        .filter(|(found, asked)| found != asked)
        .map(|((setting, found), (_, asked))| {
            let setting = named(setting);
            match (&*found, &*asked) {
                ("", asked) => format!("no {setting}, not {asked}"),
                (found, "") => format!("{setting} {found}, not without"),
                (found, asked) => format!("{setting} {found}, not {asked}"),
            }
        })
        .collect();
    if differences.is_empty() {
        "other settings".into()
    } else {
        differences.join(" and ")
    }
}

/// Returns an error if the requested settings differ from the store's; it names the differences and all settings.
pub(super) fn check_settings(dir: &Path, found: &Settings, asked: &Settings) -> Result<()> {
    if found == asked {
        return Ok(());
    }
    let what = differences(found, asked);
    Err(Error::Conflict(format!(
        "{}: this store was made with {what}; leave that out, or name another store. All that it was \
         made with: {}",
        dir.display(),
        as_typed(found)
    )))
}

/// Quotes the name of a setting for messages; other names stay as they are.
fn named(setting: &str) -> String {
    if SETTINGS.contains(&setting) {
        format!("`{setting}`")
    } else {
        setting.into()
    }
}

/// Formats the settings as they are typed.
fn as_typed(settings: &Settings) -> String {
    let typed = as_given(settings)
        .into_iter()
        .filter(|(setting, value)| SETTINGS.contains(setting) && !value.is_empty())
        .map(|(setting, value)| format!("{} {value}", named(setting)));
    typed.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::rules::{FieldNames, Scope};

    #[test]
    fn whatever_differs_is_named_with_its_option() {
        let usual = Settings::new(Config::default(), &Limits::default());
        let mut other = usual.clone();
        other.input.fields = FieldNames::of(vec!["url=response_url".parse().unwrap()]).unwrap();
        other.input.scope = Scope::default();
        other.input.scope.add("host:a.example".parse().unwrap());
        other.config.marks = 3;
        let refused = |found, asked| match check_settings(Path::new("s"), found, asked) {
            Err(Error::Conflict(text)) => text,
            other => panic!("{other:?}"),
        };
        let text = refused(&usual, &other);
        for word in [
            "no `field`, not url=response_url",
            "no `scope`, not host:a.example",
            "`marks` 6, not 3",
            "made with: `damping` 0.85 `window` auto",
        ] {
            assert!(text.contains(word), "{word:?} is not in {text:?}");
        }
        let text = refused(&other, &usual);
        assert!(text.contains("`marks` 3 `"), "{text}");
        assert!(text.contains("`field` url=response_url"), "{text}");
        assert!(check_settings(Path::new("s"), &usual, &usual).is_ok());
    }
}
