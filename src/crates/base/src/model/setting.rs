//! Settings as they are named in messages.
//!
//! Below the command, nothing knows how a setting is given: a command has options, a program fields, a script
//! arguments. Messages name a setting by its field, between backquotes (`` `keep_links` ``), and whoever shows them
//! replaces it with [`name_settings`].

/// All settings that messages name.
pub const SETTINGS: [&str; 52] = [
    "also",
    "best",
    "budget",
    "complete",
    "damping",
    "deep",
    "drop_params",
    "estimator",
    "expire",
    "field",
    "follow",
    "format",
    "gamma",
    "inside",
    "into",
    "keep_links",
    "leave_unfinished",
    "level",
    "limit_distinct",
    "limit_expansion",
    "limit_line",
    "limit_links",
    "limit_pages",
    "limit_url",
    "limit_zstd_window",
    "marks",
    "max_age",
    "measure",
    "memory",
    "new_stream",
    "older_than",
    "outlinks",
    "recycle_after",
    "refetch",
    "registers",
    "repeat",
    "resume",
    "roll_up",
    "scope",
    "self_links",
    "settle",
    "shard",
    "site_links",
    "snapshot_every",
    "spool",
    "store",
    "strategy",
    "teleport",
    "threads",
    "until",
    "window",
    "without_gone",
];

/// Returns a message with each setting replaced by the caller's word for it.
///
/// ```
/// let message = "`a.gz`: a record of more than `limit_links` 5: raise it";
/// let message = cashrank_base::model::name_settings(message, |name| format!("{name}="));
/// assert_eq!(message, "`a.gz`: a record of more than limit_links= 5: raise it");
/// ```
pub fn name_settings(message: &str, word: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('`') {
        out.push_str(before);
        match after.split_once('`') {
            Some((name, behind)) if SETTINGS.contains(&name) => {
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
