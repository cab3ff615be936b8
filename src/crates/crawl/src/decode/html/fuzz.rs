//! Fuzz target: guarantees of the HTML reader for any bytes.

use super::{Markup, decode, prescan, read, read_as, refresh, with_query};
use crate::decode::Record;
use crate::fuzz::dice::Dice;
use crate::rules::Rel;

pub fn html(data: &[u8]) {
    let mut dice = Dice::of(data);
    let named = dice.one_of([
        None,
        Some(&b"utf-8"[..]),
        Some(b"shift_jis"),
        Some(b"latin1"),
    ]);
    let page = record(data, named);
    for text in page.links.iter().map(|link| &link.url).chain(&page.base) {
        assert!(std::str::from_utf8(text).is_ok(), "{}", text.escape_ascii());
    }
    let (encoding, text) = decode(data, named, false);
    let text = std::str::from_utf8(&text).expect("text is UTF-8");
    same_in_utf_16(text);
    cut_short(text, &mut dice);
    if let Some(url) = refresh(data) {
        assert!(!url.trim_ascii().is_empty() && url.len() < data.len());
    }
    let query = with_query(text.into(), encoding);
    assert_eq!(with_query(query.clone(), encoding), query, "once is enough");
    prescan(data, dice.below(2) == 0);
    xml(text);
    #[cfg(test)]
    super::oracle_tests::check(text);
}

fn record(body: &[u8], charset: Option<&[u8]>) -> Record<'static> {
    let mut record = Record::default();
    read(body, charset, &mut record);
    record
}

/// Checks that a page read as XML yields a subset of the links it yields as HTML.
fn xml(text: &str) {
    let record = |markup| {
        let mut record = Record::default();
        read_as(markup, text.as_bytes(), Some(b"utf-8"), &mut record);
        record
    };
    let (strict, served) = (record(Markup::Xml), record(Markup::Xhtml));
    assert!(strict.links.len() <= served.links.len());
}

/// Checks that a page yields the same record in each Unicode encoding.
fn same_in_utf_16(text: &str) {
    let marked = format!("\u{FEFF}{text}");
    let utf_16: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(record(&utf_16, None), record(marked.as_bytes(), None));
}

/// Checks that a truncated page yields the links before the cut.
fn cut_short(text: &str, dice: &mut Dice) {
    let all = record(text.as_bytes(), Some(b"utf-8"));
    let mut front = record(
        &text.as_bytes()[..dice.below(text.len() + 1)],
        Some(b"utf-8"),
    );
    assert!(front.base.is_none() || front.base == all.base);
    assert!(front.links.len() <= all.links.len());
    for (link, same) in front.links.iter_mut().zip(&all.links) {
        // A `nofollow` for the whole page may stand in the part cut off.
        if same.rel.has(Rel::NOFOLLOW) {
            link.rel = link.rel.with(Rel::NOFOLLOW);
        }
        assert_eq!(link, same);
    }
}
