//! `<meta http-equiv="refresh">` and the HTTP field `Refresh`, by the HTML standard's "shared declarative refresh
//! steps", ignoring the time.

/// Returns the URL named by the content; `None` for a page that only reloads itself.
pub fn url(content: &[u8]) -> Option<&[u8]> {
    let rest = content.trim_ascii_start();
    let time = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if time == 0 && rest.first() != Some(&b'.') {
        return None;
    }
    let is_time = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let rest = &rest[rest.iter().take_while(is_time).count()..];
    let rest = match rest {
        [b';' | b',', rest @ ..] => rest,
        [blank, ..] if blank.is_ascii_whitespace() => match rest.trim_ascii_start() {
            [b';' | b',', rest @ ..] => rest,
            rest => rest,
        },
        _ => return None,
    };
    let rest = rest.trim_ascii_start();
    let url = named(rest).map_or(rest, unquoted);
    (!url.trim_ascii().is_empty()).then_some(url)
}

/// Returns what follows `url=`, or the whole text if it does not begin with a `u`.
fn named(rest: &[u8]) -> Option<&[u8]> {
    if !rest
        .first()
        .is_some_and(|byte| byte.eq_ignore_ascii_case(&b'u'))
    {
        return Some(rest);
    }
    let (word, rest) = rest.split_at_checked(3)?;
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?;
    word.eq_ignore_ascii_case(b"url")
        .then(|| rest.trim_ascii_start())
}

/// Removes the quotes around a URL; the closing one may be missing.
fn unquoted(url: &[u8]) -> &[u8] {
    match url {
        [quote @ (b'\'' | b'"'), rest @ ..] => {
            rest.split(|byte| byte == quote).next().unwrap_or(rest)
        }
        _ => url,
    }
}
