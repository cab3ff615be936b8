//! `X-Robots-Tag`, by [Google's
//! description](https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag): rules separated by
//! commas, preceded by a robot's name and a colon if they are for that robot only.

use memchr::memchr;

/// Rules that have a value after a colon.
const WITH_VALUE: [&[u8]; 4] = [
    b"unavailable_after",
    b"max-snippet",
    b"max-image-preview",
    b"max-video-preview",
];

/// Returns whether a field makes all links `nofollow`: its rules for all robots have `nofollow` or `none`.
pub fn is_nofollow(value: &[u8]) -> bool {
    let mut for_all = true;
    value.split(|&byte| byte == b',').any(|rule| {
        let mut rule = rule.trim_ascii();
        if let Some(colon) = memchr(b':', rule) {
            let (name, rest) = (rule[..colon].trim_ascii(), &rule[colon + 1..]);
            if name.contains(&b' ')
                || WITH_VALUE
                    .iter()
                    .any(|with| name.eq_ignore_ascii_case(with))
            {
                return false;
            }
            // A robot's name applies to the rules up to the next name.
            for_all = name == b"*";
            rule = rest;
        }
        for_all && crate::decode::html::forbids(rule)
    })
}

#[cfg(test)]
mod tests {
    use super::is_nofollow;

    #[test]
    fn rules_for_all_robots_count() {
        for (value, expected) in [
            ("nofollow", true),
            ("noindex, NoFollow", true),
            ("NONE", true),
            ("noindex nofollow", true),
            ("*: nofollow", true),
            ("noindex", false),
            ("", false),
            ("nofollowing", false),
            ("googlebot: nofollow", false),
            ("googlebot: noindex, nofollow", false),
            ("nofollow, googlebot: noindex", true),
            ("googlebot: none, *: nofollow", true),
            (
                "unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow",
                true,
            ),
            (
                "unavailable_after: Friday, 25-Jun-10 15:00:00 PST, nofollow",
                true,
            ),
            ("max-snippet: 20, nofollow", true),
            ("max-image-preview:none", false),
        ] {
            assert_eq!(is_nofollow(value.as_bytes()), expected, "{value}");
        }
    }
}
