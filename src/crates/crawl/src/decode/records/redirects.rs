//! Redirects that a crawler followed itself: its record is of the final page, and names the URLs that it requested.
//!
//! Each of these URLs was fetched too and gets a redirect record before the page's own. Otherwise a crawl order would
//! schedule it again and again.

use std::borrow::Cow;

use crate::model::Record;
use crate::url::{self, LinkBase, Reject};

/// Maximum number of redirects in one record. Browsers follow 20.
pub(super) const MOST: usize = 100;

/// Status of such redirects: the server's is unknown, and 302 promises nothing.
const STATUS: i32 = 302;

/// Emits a redirect from each of `asked` to the next, and from the last to the record's URL. Returns `false` if the
/// consumer wants no more.
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

/// Resolves a relative final URL against the requested one.
pub(super) fn absolute<'a>(found: Cow<'a, [u8]>, asked: &[u8]) -> Cow<'a, [u8]> {
    let canonical = url::canonical(&found, None, usize::MAX, &mut Vec::new());
    if canonical.err() != Some(Reject::Relative) {
        return found;
    }
    let asked = LinkBase::new(asked, None);
    url::name_of(&found, Some(&asked), usize::MAX).map_or(found, Cow::Owned)
}

/// Returns whether both are URLs of different pages.
fn are_two(from: &[u8], to: &[u8]) -> bool {
    let canonical = |raw| url::name_of(raw, None, usize::MAX).ok();
    from != to && canonical(from).is_some_and(|from| canonical(to) != Some(from))
}
