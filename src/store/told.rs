//! A store's settings as the options that make them, and whether a command asks for others.

use std::path::Path;

use super::Settings;
use crate::engine::Config;
use crate::{Error, Result};

/// A setting: its option, and what it was given; empty: nothing.
type Told = (&'static str, String);

/// Every setting. Two settings that differ differ here.
fn told(settings: &Settings) -> Vec<Told> {
    let config = &settings.config;
    let mut told = vec![
        ("--damping", damping(config)),
        ("--window", config.window.to_string()),
        ("--estimator", config.estimator().to_string()),
        (
            "--self-links",
            format!("{:?}", config.self_links).to_lowercase(),
        ),
        ("--marks", config.marks.to_string()),
        (
            "--max-age",
            config.max_age.map_or(String::new(), |age| age.to_string()),
        ),
        ("--recycle-after", config.recycle_after.to_string()),
        ("--limit-line", settings.line_bytes.to_string()),
        ("--limit-url", settings.url_bytes.to_string()),
        ("--limit-links", settings.links.to_string()),
        ("version of the URL rules", settings.url_rules.to_string()),
        ("--follow", config.follow.to_string()),
    ];
    told.extend(settings.input.told());
    told
}

/// Damping as it was typed: it is kept in 1/2^32, so eight decimals say it all.
fn damping(config: &Config) -> String {
    let text = format!("{:.8}", config.damping());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Refuses settings that are not the store's; says which differ, and all that the store has.
pub(super) fn check_settings(dir: &Path, found: &Settings, asked: &Settings) -> Result<()> {
    if found == asked {
        return Ok(());
    }
    let or_none = |text: String| match text.is_empty() {
        true => "not given".into(),
        false => text,
    };
    let both = told(found).into_iter().zip(told(asked));
    let differences: Vec<String> = both
        .filter(|(found, asked)| found != asked)
        .map(|((option, found), (_, asked))| {
            format!("{option} {}, not {}", or_none(found), or_none(asked))
        })
        .collect();
    let what = match differences.is_empty() {
        true => "other settings".into(),
        false => differences.join(" and "),
    };
    Err(Error::Refused(format!(
        "{}: this store was made with {what}; leave the option out, or name another --store. All that it was \
         made with: {}",
        dir.display(),
        as_typed(found)
    )))
}

/// The settings as a command line has them.
fn as_typed(settings: &Settings) -> String {
    let typed =
        told(settings)
            .into_iter()
            .filter_map(|(option, value)| match (option, &value[..]) {
                (_, "") => None,
                (option, value) if option.starts_with("--") => Some(format!("{option} {value}")),
                _ => None,
            });
    typed.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::rules::{Fields, Scope};

    #[test]
    fn whatever_differs_is_named_with_its_option() {
        let usual = Settings::new(Config::default(), &Limits::default());
        let mut other = usual.clone();
        other.input.fields = Fields::of(vec!["url=response_url".parse().unwrap()]).unwrap();
        other.input.scope = Scope::default();
        other.input.scope.add("host:a.example".parse().unwrap());
        other.config.marks = 3;
        let told = |found, asked| match check_settings(Path::new("s"), found, asked) {
            Err(Error::Refused(text)) => text,
            other => panic!("{other:?}"),
        };
        let text = told(&usual, &other);
        for word in [
            "--field not given, not url=response_url",
            "--scope not given, not host:a.example",
            "--marks 6, not 3",
            "made with: --damping 0.85 --window auto",
        ] {
            assert!(text.contains(word), "{word:?} is not in {text:?}");
        }
        let text = told(&other, &usual);
        assert!(text.contains("--marks 3 --"), "{text}");
        assert!(text.contains("--field url=response_url"), "{text}");
        assert!(check_settings(Path::new("s"), &usual, &usual).is_ok());
    }
}
