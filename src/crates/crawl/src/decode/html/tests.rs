//! Tests rule by rule; expected values come from the HTML and URL standards.

use super::read;
use crate::decode::Record;
use crate::rules::Rel;

fn page(body: &[u8], charset: Option<&str>) -> Record<'static> {
    let mut record = Record::default();
    read(body, charset.map(str::as_bytes), &mut record);
    record
}

/// Returns the links of a page in UTF-8.
fn links(body: &str) -> Vec<String> {
    texts(&page(body.as_bytes(), Some("utf-8")))
}

fn texts(record: &Record<'_>) -> Vec<String> {
    let text = |link: &crate::decode::Link<'_>| String::from_utf8(link.url.to_vec()).unwrap();
    record.links.iter().map(text).collect()
}

fn check(cases: &[(&str, &[&str])]) {
    for (body, expected) in cases {
        assert_eq!(links(body), *expected, "{body}");
    }
}

#[test]
fn anchors_and_areas_are_links() {
    check(&[
        (
            "<a href='one'>1</a><map><area href=two></map><A HREF=\"three\">",
            &["one", "two", "three"],
        ),
        ("<a href>", &[""]),
        ("<a href=''>", &[""]),
        ("<a name=x>", &[]),
        ("<a/href=x/y>", &["x/y"]),
        ("<a href = 'x' >", &["x"]),
        ("<a href=x href=y>", &["x"]),
        ("<a\nhref='\n x\ty '>", &["\n x\ty "]),
        ("<a href=x", &[]),
        ("<a href='x>", &[]),
        (
            "<link href=x><img src=x><script src=x></script><iframe src=x></iframe><frame src=x>",
            &[],
        ),
        ("<abbr href=x><article href=x><areas href=x>", &[]),
        ("</a href=x>", &[]),
    ]);
}

#[test]
fn text_is_no_markup() {
    check(&[
        ("<!-- <a href=x> --><a href=y>", &["y"]),
        ("<!--><a href=y>", &["y"]),
        ("<!-- --!><a href=y>", &["y"]),
        ("<!x <a href=x><a href=y>", &["y"]),
        ("<?x <a href=x><a href=y>", &["y"]),
        ("</ <a href=x><a href=y>", &["y"]),
        ("<style><a href=x></style><a href=y>", &["y"]),
        ("<title><a href=x></TITLE><a href=y>", &["y"]),
        (
            "<textarea><a href=x></textareas></textarea ><a href=y>",
            &["y"],
        ),
        (
            "<xmp><a href=x></xmp><noembed><a href=x></noembed><a href=y>",
            &["y"],
        ),
        (
            "<iframe><a href=x></iframe><noframes><a href=x></noframes><a href=y>",
            &["y"],
        ),
        ("<noscript><a href=x></noscript>", &["x"]),
        (
            "<template><a href=x></template><select><a href=y>",
            &["x", "y"],
        ),
        (
            "<a href=x><plaintext><a href=y></plaintext><a href=z>",
            &["x"],
        ),
        ("<p title='<a href=x>'><a href=y>", &["y"]),
        ("1 < 2 <a href=y>", &["y"]),
    ]);
}

#[test]
fn scripts_end_where_they_end() {
    check(&[
        ("<script>'<a href=x>'</script><a href=y>", &["y"]),
        ("<script><!-- </script><a href=y>", &["y"]),
        (
            "<script><!-- <script> </script> <a href=x> </script><a href=y>",
            &["y"],
        ),
        ("<script><!-- <script> --> </script><a href=y>", &["y"]),
        ("<script><!--> <script> </script><a href=y>", &["y"]),
        ("<script><!-- <scripts> </script><a href=y>", &["y"]),
        ("<script/><a href=x></script><a href=y>", &["y"]),
    ]);
}

#[test]
fn svg_and_math() {
    check(&[
        ("<svg><a href=x></svg>", &["x"]),
        ("<svg><![CDATA[<a href=x>]]><a href=y></svg>", &["y"]),
        ("<![CDATA[<a href=x>]]><a href=y>", &["y"]),
        // An empty element holds no text. In HTML the tag begins one that holds text only.
        ("<svg><style/><a href=x></svg>", &["x"]),
        ("<svg><script href=s /><a href=x></svg>", &["x"]),
        ("<math><title/><a href=x></math>", &["x"]),
        ("<svg></svg><style/><a href=x></style><a href=y>", &["y"]),
        ("<svg/><style/><a href=x></style><a href=y>", &["y"]),
        ("<svg><title>'<a href=x>'</title></svg><a href=y>", &["y"]),
        ("<svg><p><style><a href=x></style>", &[]),
        ("<div><svg></div><style><a href=x></style>", &[]),
    ]);
}

#[test]
fn character_references() {
    check(&[
        ("<a href='?a=1&amp;b=2'>", &["?a=1&b=2"]),
        ("<a href='?a=1&b=2&amp'>", &["?a=1&b=2&"]),
        // Without a semicolon and before a letter, digit or `=`, a reference is plain text.
        (
            "<a href='?a&copy=1&copyright&copy;&copy'>",
            &["?a&copy=1&copyright\u{A9}\u{A9}"],
        ),
        ("<a href='&#97;&#x62;&#X63;&#100e'>", &["abcde"]),
        (
            "<a href='&#128;&#0;&#xD800;&#x110000;'>",
            &["\u{20AC}\u{FFFD}\u{FFFD}\u{FFFD}"],
        ),
        ("<a href='&nosuch;&#;&#x;&'>", &["&nosuch;&#;&#x;&"]),
        ("<a href='a\0b&amp;'>", &["a\u{FFFD}b&"]),
        ("<a href=&quot;x&quot;>", &["\"x\""]),
    ]);
}

#[test]
fn refreshes() {
    let refresh =
        |content: &str| links(&format!("<meta http-equiv=Refresh content=\"{content}\">"));
    for (content, url) in [
        ("0; url=/next", "/next"),
        ("0;URL=/next", "/next"),
        (" 5 , Url = /next ", "/next "),
        ("5 /next", "/next"),
        ("0; '/next'x", "/next"),
        ("0; url='/ne xt' x", "/ne xt"),
        ("0; url=&quot;/next&quot;", "/next"),
        ("0; url='/next", "/next"),
        ("0.5; url=/next", "/next"),
        (".5; url=/next", "/next"),
        ("0; /next", "/next"),
        ("0; urn:next", "urn:next"),
        ("0; url /next", "url /next"),
        ("0; u", "u"),
    ] {
        assert_eq!(refresh(content), [url], "{content}");
    }
    for content in [
        "",
        "5",
        "5;",
        "5; ",
        "5; url=",
        "5; url=''",
        "x; url=/next",
        "5x url=/next",
        "url=/next",
        "-1; url=/next",
    ] {
        assert_eq!(refresh(content), [""; 0], "{content}");
    }
    check(&[
        ("<meta content='0; url=x'>", &[]),
        ("<meta http-equiv=refresh>", &[]),
        (
            "<a href=x><meta http-equiv=refresh content='0; url=y'><a href=z>",
            &["x", "y", "z"],
        ),
    ]);
}

#[test]
fn the_first_base_with_an_href() {
    let base = |body: &str| page(body.as_bytes(), Some("utf-8")).base;
    assert_eq!(base("<a href=x>"), None);
    assert_eq!(base("<base target=_top>"), None);
    let found = base("<base target=_top><base href='/a?b&amp;c'><base href=/d>");
    assert_eq!(found.as_deref(), Some(&b"/a?b&c"[..]));
    assert_eq!(base("<base href>").as_deref(), Some(&b""[..]));
}

#[test]
fn rel_and_robots() {
    let rels = |body: &str| -> Vec<Rel> {
        let page = page(body.as_bytes(), Some("utf-8"));
        page.links.iter().map(|link| link.rel).collect()
    };
    let (none, both) = (Rel::default(), Rel::NOFOLLOW.with(Rel::UGC));
    assert_eq!(
        rels("<a href=x rel='NoFollow ugc'><area rel=x href=y>"),
        [both, none]
    );
    assert_eq!(rels("<a href=x>"), [none]);
    for content in ["nofollow", "NONE", "noindex,nofollow", "noindex , NoFollow"] {
        let body = format!("<a href=x rel=ugc><META name=Robots content='{content}'><a href=y>");
        assert_eq!(rels(&body), [both, Rel::NOFOLLOW], "{content}");
    }
    for meta in [
        "<meta name=robots content=noindex>",
        "<meta name=robot content=nofollow>",
        "<meta name=robots>",
    ] {
        assert_eq!(rels(&format!("{meta}<a href=x>")), [none], "{meta}");
    }
}

/// `é` in UTF-8 read as windows-1252 is `Ã©`.
#[test]
fn the_charset_that_counts() {
    let (utf_8, latin) = ("é".as_bytes(), "Ã©".as_bytes());
    let link = |front: &[u8], charset: Option<&str>| {
        let body = [front, b"<a href='", utf_8, b"'>"].concat();
        page(&body, charset).links[0].url.to_vec()
    };
    // Precedence: byte order mark, then HTTP, then the page's own declaration, then the guess.
    assert_eq!(
        link(b"\xEF\xBB\xBF<meta charset=latin1>", Some("latin1")),
        utf_8
    );
    assert_eq!(link(b"<meta charset=utf-8>", Some("iso-8859-1")), latin);
    assert_eq!(link(b"<meta charset=latin1>", Some(" UTF-8 ")), utf_8);
    // Single quotes are not part of a label; double quotes around a `Content-Type` charset are stripped before.
    assert_eq!(link(b"<meta charset=latin1>", Some("'UTF-8'")), latin);
    assert_eq!(link(b"<meta charset=latin1>", Some("no such")), latin);
    assert_eq!(link(b"<meta charset=latin1>", None), latin);
    assert_eq!(link(b"", None), utf_8);
    assert_eq!(link(b"\xE9", None), latin);
    let typed = b"<META content='text/html; Charset = \"latin1\"' http-equiv=Content-Type>";
    assert_eq!(link(typed, None), latin);
    assert_eq!(
        link(b"<meta content='text/html; charset=latin1'>", None),
        utf_8
    );
    assert_eq!(
        link(b"<?xml version='1.0' encoding='latin1'?>", None),
        latin
    );
    assert_eq!(link(b"<meta charset=x-user-defined>", None), latin);
    // Not UTF-16: a `<meta>` could not have been read in it.
    assert_eq!(link(b"<meta charset=utf-16>", None), utf_8);
    // A `<meta>` within text is not a tag.
    assert_eq!(link(b"<!--<meta charset=latin1>-->", None), utf_8);
    assert_eq!(link(b"<p title='<meta charset=latin1>'>", None), utf_8);
    assert_eq!(link(b"<!--><meta charset=latin1>", None), latin);
    for text in ["title", "script"] {
        let text = format!("<{text}><meta charset=latin1></{text}>");
        assert_eq!(link(text.as_bytes(), None), utf_8, "{text}");
    }
    // Only the first 1,024 bytes count.
    let meta = b"<meta charset=latin1>";
    let before = |len: usize| [&vec![b' '; len][..], meta].concat();
    assert_eq!(link(&before(1024 - meta.len()), None), latin);
    assert_eq!(link(&before(1025 - meta.len()), None), utf_8);
    // A page cut off within a character.
    let cut = page(b"<a href='\xC3\xA9'>\xC3", None);
    assert_eq!(*cut.links[0].url, *utf_8);
}

#[test]
fn pages_in_other_encodings() {
    let link = |body: &[u8], charset: &str| texts(&page(body, Some(charset))).concat();
    assert_eq!(link(b"<a href='\xE9'>", "iso-8859-1"), "é");
    assert_eq!(link(b"<a href='\x93\xFA\x96\x7B'>", "shift_jis"), "日本");
    assert_eq!(link(b"<a href='\xC6\xFC\xCB\xDC'>", "euc-jp"), "日本");
    assert_eq!(link(b"<a href='\x1B$BF|K\\\x1B(B'>", "iso-2022-jp"), "日本");
    assert_eq!(link(b"<a href='\xC8\xD5\xB1\xBE'>", "gb2312"), "日本");
    assert_eq!(link(b"<a href='\xEF\xF0'>", "windows-1251"), "пр");
    assert_eq!(link(b"<a href='\xC3'>", "utf-8"), "\u{FFFD}");
    let utf_16: Vec<u8> = "<a href='日本'>"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    assert_eq!(link(&utf_16, "utf-16be"), "日本");
    let marked = [&b"\xFE\xFF"[..], &utf_16].concat();
    assert_eq!(link(&marked, "latin1"), "日本");
}

/// Tests the query state of the URL standard with an encoding; encodings follow the Encoding standard.
#[test]
fn queries_are_in_the_encoding_of_the_page() {
    let link = |href: &str, charset: &str| {
        let encoding = encoding_rs::Encoding::for_label(charset.as_bytes()).unwrap();
        let (href, _, _) = encoding.encode(href);
        let body = [b"<a href=\"", &href[..], b"\">"].concat();
        texts(&page(&body, Some(charset))).concat()
    };
    assert_eq!(link("é?é#é", "latin1"), "é?%E9#é");
    assert_eq!(link("#é?é", "latin1"), "#é?é");
    assert_eq!(link("?a'=<é> \t# ", "latin1"), "?a%27=%3C%E9%3E%20#");
    assert_eq!(link("?é ", "latin1"), "?%E9");
    assert_eq!(link("?日本", "shift_jis"), "?%93%FA%96{");
    assert_eq!(link("?日本", "iso-2022-jp"), "?%1B$BF|K\\%1B(B");
    assert_eq!(
        link("?é&eacute;&#x65E5;", "latin1"),
        "?%E9%E9%26%2326085%3B"
    );
    assert_eq!(link("?é", "utf-8"), "?é");
    assert_eq!(link("?a=%E9&b", "latin1"), "?a=%E9&b");
    assert_eq!(link("?a=%E9&é", "latin1"), "?a=%E9&%E9");
    let refresh = page(
        b"<meta http-equiv=refresh content='0; url=?\xE9'>",
        Some("latin1"),
    );
    assert_eq!(texts(&refresh), ["?%E9"]);
}

#[test]
fn links_of_a_page_before_stay() {
    let mut record = page(b"<a href=x><base href=y>", None);
    read(
        b"<meta name=robots content=nofollow><a href=z>",
        None,
        &mut record,
    );
    assert_eq!(texts(&record), ["x", "z"]);
    assert_eq!(
        record
            .links
            .iter()
            .map(|link| link.rel.bits())
            .collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(record.base, None);
}

/// Tests of XML: the rules of XML 1.0, and the HTML standard's chapter 14.
mod xml {
    use super::super::{Markup, read_as};
    use super::texts;
    use crate::decode::Record;

    fn links(markup: Markup, page: &str) -> Vec<String> {
        let mut record = Record::default();
        read_as(markup, page.as_bytes(), None, &mut record);
        texts(&record)
    }

    #[test]
    fn elements_are_xml() {
        for (page, expected) in [
            ("<title/><a href='x'/>", &["x"][..]),
            ("<script src='s'/><a href='x'/>", &["x"]),
            ("<script>if (1 &lt; 2) {}</script><a href='x'/>", &["x"]),
            (
                "<script>//<![CDATA[\n'<a href=\"n\">'\n//]]></script><a href='x'/>",
                &["x"],
            ),
            ("<![CDATA[<a href='n'/> > ]]><a href='x'/>", &["x"]),
            ("<?php echo '<a href=\"n\">' ?><a href='x'/>", &["x"]),
            ("<!-- <a href='n'/> > --><a href='x'/>", &["x"]),
            ("<plaintext/><a href='x'/>", &["x"]),
            ("<a href='?a=1&amp;b=2&#x26;c'/>", &["?a=1&b=2&c"]),
            ("<a href='x' href='y'/>", &["x"]),
            ("<b:a xmlns:b='urn:b' href='n'/><a href='x'/>", &["x"]),
            (
                "<svg xmlns='http://www.w3.org/2000/svg'><title/><a href='x'/></svg><area href='y'/>",
                &["x", "y"],
            ),
            ("<meta http-equiv='refresh' content='0;url=x'/>", &["x"]),
            (
                "<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0//EN' 'u' [<!ENTITY e '<a>'> <!-- ' > --> ]><a href='x'/>",
                &["x"],
            ),
            ("</p></p></p><a href='x'/>", &["x"]),
            ("<a href='x'", &[]),
        ] {
            let (front, rest) = match page.find("]>") {
                Some(end) if page.starts_with("<!DOCTYPE") => page.split_at(end + 2),
                _ => ("<?xml version='1.0'?>", page),
            };
            for (markup, root) in [
                (Markup::Xhtml, "<html>"),
                (Markup::Xhtml, "<html xmlns='http://www.w3.org/1999/xhtml'>"),
                (Markup::Xml, "<html xmlns='http://www.w3.org/1999/xhtml'>"),
            ] {
                let whole = format!("{front}{root}{rest}");
                assert_eq!(links(markup, &whole), expected, "{whole}");
            }
        }
    }

    #[test]
    fn other_documents_are_no_pages() {
        for (page, expected) in [
            (
                "<html lang='en' xmlns='http://www.w3.org/1999/xhtml'><a href='x'/></html>",
                &["x"][..],
            ),
            ("<html><a href='x'/></html>", &[]),
            ("<html xmlns='urn:o'><a href='x'/></html>", &[]),
            (
                "<feed xmlns='http://www.w3.org/1999/xhtml'><a href='x'/></feed>",
                &[],
            ),
            (
                "<rss xmlns:h='http://www.w3.org/1999/xhtml'><html xmlns='http://www.w3.org/1999/xhtml'><a href='x'/></html></rss>",
                &[],
            ),
        ] {
            assert_eq!(links(Markup::Xml, page), expected, "{page}");
        }
    }

    /// In XML a `<meta>` names no encoding: the XML declaration does, else the page is UTF-8.
    #[test]
    fn the_declaration_names_the_encoding() {
        let page = |declaration: &str| {
            let text = format!("{declaration}<meta charset='utf-8'/><a href='?");
            let mut record = Record::default();
            let page = [text.as_bytes(), b"\xe9'/>"].concat();
            read_as(Markup::Xhtml, &page, None, &mut record);
            texts(&record)
        };
        assert_eq!(
            page("<?xml version='1.0' encoding='iso-8859-1'?>"),
            ["?%E9"]
        );
    }
}
