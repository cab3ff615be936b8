//! Settings as they are named in messages, and parts of the program that a build may lack.
//!
//! Messages name a setting by its field, between backquotes (`` `keep_links` ``), and whoever shows them replaces it with
//! the option, field or argument that it is there ([`name_settings`]).

/// All settings that messages name.
const SETTINGS: &str = "
    budget damping deep drop_params estimator expire field follow format into
    keep_links keep_snapshots leave_unfinished level limit_expansion limit_line limit_links
    limit_pages limit_url limit_zstd_window marks max_age measure memory new_stream older_than outlinks
    recycle_after refetch repeat resume scope self_links settle shard site_links snapshot_every
    spool store strategy teleport threads until window without_gone";

/// Returns whether messages name a setting by this word.
pub fn is_setting(word: &str) -> bool {
    SETTINGS.split_whitespace().any(|setting| setting == word)
}

/// Returns a message with each setting replaced by the caller's word for it.
pub fn name_settings(message: &str, word: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('`') {
        out.push_str(before);
        match after.split_once('`') {
            Some((name, behind)) if is_setting(name) => {
                out.push_str(&word(name));
                rest = behind;
            }
            _ => {
                out.push('`');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Parts of the program that a build may lack: the feature, its name in messages, and whether it is built.
const FEATURES: [(&str, &str, bool); 5] = [
    ("frontier", "URLFrontier", cfg!(feature = "frontier")),
    ("man", "man pages", cfg!(feature = "man")),
    ("parquet", "Parquet", cfg!(feature = "parquet")),
    ("serve", "service", cfg!(feature = "serve")),
    ("sqlite", "SQLite", cfg!(feature = "sqlite")),
];

/// Fails with a message for users of the command if the build lacks the feature of this name.
pub fn require_feature(name: &str) -> Result<(), String> {
    match FEATURES.iter().find(|(feature, ..)| *feature == name) {
        Some((_, what, false)) => Err(format!(
            "this build has no {what}; cargo install --features {name}"
        )),
        _ => Ok(()),
    }
}

/// Returns the library's error for `what`, which needs a feature that this build lacks.
pub fn lacks_feature(what: impl std::fmt::Display, name: &str) -> super::Error {
    super::Error::Unsupported(format!(
        "{what}: this build of cashrank lacks the feature {name}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_are_renamed() {
        let option = |name: &str| format!("--{}", name.replace('_', "-"));
        for (message, named) in [
            ("`-` among `limit_pages`", "`-` among --limit-pages"),
            ("`a` ``scope`", "`a` `--scope"),
            ("`scope", "`scope"),
            ("`scope``until`", "--scope--until"),
            ("`unknown` ä `store`", "`unknown` ä --store"),
            ("", ""),
        ] {
            assert_eq!(name_settings(message, option), named, "{message}");
        }
    }
}
