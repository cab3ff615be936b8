//! Fuzz target: compares canonical URLs with the `url` crate, and checks their invariants.

use ::url::Url;

use super::{CanonicalForm, LinkBase, Reject, canonical, host, is_canonical};
use crate::fuzz::dice::Dice;

/// Implements `formats/url.md` by the `url` crate alone. It distinguishes only two kinds of rejection: not a link to a
/// page, and not a URL.
pub(super) fn expected(raw: &[u8], base: Option<&Url>) -> Result<String, Reject> {
    let text: String = raw
        .utf8_chunks()
        .flat_map(|chunk| {
            let escaped = chunk.invalid().iter().map(|byte| format!("%{byte:02X}"));
            std::iter::once(chunk.valid().to_string()).chain(escaped)
        })
        .collect();
    const THREE: [&str; 4] = ["///", "//\\", "\\\\", "/\\"];
    let ink = text.trim_matches(|char| char <= ' ');
    let ink = ink.replace(['\t', '\n', '\r'], "");
    let parsed = match base {
        // `Url::join` deviates from the standard here, see `formats/url.md`.
        Some(base) if THREE.iter().any(|slashes| ink.starts_with(slashes)) => {
            Url::parse(&format!("{}:{ink}", base.scheme()))
        }
        Some(base) => base.join(&text),
        None => Url::parse(&text),
    };
    match parsed {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => Err(Reject::Scheme),
        Ok(mut url) => {
            url.set_fragment(None);
            Ok(url.into())
        }
        Err(_) => Err(Reject::Invalid),
    }
}

/// Returns whether two results agree, where the kind of rejection depends on more than the parser reports.
pub(super) fn agree(found: &Result<String, Reject>, expected: &Result<String, Reject>) -> bool {
    match (found, expected) {
        // Schemes like `mailto:` are rejected as such even if the rest is malformed.
        (Err(Reject::Scheme), Err(_)) => true,
        (Err(Reject::Empty | Reject::Relative | Reject::Invalid), Err(Reject::Invalid)) => true,
        (found, expected) => found == expected,
    }
}

/// Input of up to three lines: page, base, link; or page and link; or a link alone.
pub fn url(data: &[u8]) {
    let limit = Dice::of(data).one_of([60, 8192]);
    let mut parts = data.splitn(3, |&byte| byte == b'\n');
    let (page, href, link) = match (parts.next(), parts.next(), parts.next()) {
        (Some(page), Some(href), Some(link)) => (Some(page), Some(href), link),
        (Some(page), Some(link), None) => (Some(page), None, link),
        (link, ..) => (None, None, link.unwrap_or_default()),
    };
    let judge = match page.map(|page| base(page, href, limit)) {
        None => Some(None),
        Some(Some(judge)) => Some(Some(judge)),
        Some(None) => None,
    };
    let base = page.map(|page| LinkBase::new(page, href));
    let found = check(link, base.as_ref(), limit);
    match judge {
        // The base's errors show only if it is used.
        None => {}
        Some(_) if found == Err(Reject::TooLong) => {}
        Some(judge) => {
            let expected = expected(link, judge.as_ref());
            assert!(
                agree(&found, &expected),
                "{found:?}, but the parser: {expected:?}"
            );
        }
    }
}

/// Returns the parser's base; `None` if it is unusable, or if it may be replaced for one of several reasons.
fn base(page: &[u8], href: Option<&[u8]>, limit: usize) -> Option<Url> {
    let page = Url::parse(&check(page, None, limit).ok()?).ok()?;
    match href.map(|href| (href.len(), expected(href, Some(&page)))) {
        None => Some(page),
        Some((len, Ok(url))) if len <= limit && url.len() <= limit => Url::parse(&url).ok(),
        Some(_) => None,
    }
}

/// Returns the canonical form after checking its invariants.
fn check(raw: &[u8], base: Option<&LinkBase<'_>>, limit: usize) -> Result<String, Reject> {
    let mut out = b"kept".to_vec();
    let form = canonical(raw, base, limit, &mut out);
    assert_eq!(&out[..4], b"kept");
    assert!(
        out.len() == 4 || form == Ok(CanonicalForm::Rewritten),
        "{form:?}"
    );
    let text = form?.text(raw, &out[4..]);
    assert!(text.len() <= limit && text.is_ascii() && !text.contains(&b'#'));
    let mut again = Vec::new();
    assert_eq!(
        canonical(text, base, limit, &mut again),
        Ok(CanonicalForm::AsIs),
        "not its own canonical form"
    );
    if form == Ok(CanonicalForm::AsIs) {
        assert_eq!(text, raw);
    }
    if is_canonical(raw) {
        assert_eq!(form, Ok(CanonicalForm::AsIs));
    }
    let text = String::from_utf8_lossy(text).into_owned();
    let parsed = Url::parse(&text);
    assert_eq!(parsed.as_ref().map(Url::as_str), Ok(&*text));
    let judged = parsed.as_ref().ok().and_then(Url::host_str);
    assert_eq!(judged.map(str::as_bytes), Some(host(text.as_bytes())));
    Ok(text)
}
