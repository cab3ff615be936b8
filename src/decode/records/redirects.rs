//! Redirects that a crawler followed by itself: its record is of the page at the end, and names the URLs asked for.
//!
//! Each of them was fetched, too, and gets a record of a redirect before the page's. Without it a crawl order would ask
//! for it again and again.

use std::borrow::Cow;

use crate::model::Record;
use crate::url::{self, Base, Reject};

/// Most redirects of one record. Browsers follow 20.
pub(super) const MOST: usize = 100;

/// The status of such a redirect: which one the server gave is not known, and 302 promises nothing.
const STATUS: i32 = 302;

/// Hands out a redirect from each of `asked` to the next, from the last one to the record. `false`: no more are wanted.
pub(super) fn each<'a>(
    asked: &[Cow<'a, [u8]>],
    record: &Record<'a>,
    hand_out: &mut dyn FnMut(&Record<'_>) -> bool,
) -> bool {
    asked.iter().enumerate().all(|(at, from)| {
        let to = asked.get(at + 1).unwrap_or(&record.url);
        if !are_two(from, to) {
            return true;
        }
        hand_out(&Record {
            url: from.clone(),
            redirect: Some(to.clone()),
            fetched_at: record.fetched_at,
            status: Some(STATUS),
            ..Record::default()
        })
    })
}

/// Resolves where redirects ended, if that is relative, against the URL that was asked for.
pub(super) fn absolute<'a>(found: Cow<'a, [u8]>, asked: &[u8]) -> Cow<'a, [u8]> {
    let mut out = Vec::new();
    if url::canonical(&found, None, usize::MAX, &mut out) != Err(Reject::Relative) {
        return found;
    }
    let asked = Base::new(asked, None);
    match url::canonical(&found, Some(&asked), usize::MAX, &mut out) {
        Ok(form) => Cow::Owned(form.text(&found, &out).to_vec()),
        Err(_) => found,
    }
}

/// Returns whether both are URLs, and not of the same page.
fn are_two(from: &[u8], to: &[u8]) -> bool {
    if from == to {
        return false;
    }
    let canonical = |raw: &[u8]| {
        let mut scratch = Vec::new();
        let form = url::canonical(raw, None, usize::MAX, &mut scratch).ok()?;
        Some(form.text(raw, &scratch).to_vec())
    };
    let from = canonical(from);
    from.is_some() && from != canonical(to)
}
