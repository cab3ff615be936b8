//! Compares our tags with those of `html5gum`, a tokenizer that passes the tests of html5lib. They share only
//! [`Foreign`].

use std::cell::Cell;
use std::rc::Rc;

use html5gum::{DefaultEmitter, Emitter, ForwardingEmitter, State, Token, Tokenizer};
use proptest::prelude::*;

use super::Markup;
use super::tags::{self, Foreign, Tag, decoded};

const ATTRIBUTES: [&[u8]; 6] = [
    b"href",
    b"rel",
    b"http-equiv",
    b"content",
    b"name",
    b"charset",
];

/// Name of a tag and its relevant attributes, in the order of [`ATTRIBUTES`].
type Seen = (Vec<u8>, [Option<Vec<u8>>; ATTRIBUTES.len()]);

/// Checks that both tokenizers find the same tags.
pub(super) fn check(text: &str) {
    // html5gum normalises line ends; ours leaves that to the readers of the values.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    assert_eq!(ours(text.as_bytes()), theirs(text.as_bytes()), "{text:?}");
}

fn ours(text: &[u8]) -> Vec<Seen> {
    let mut all = Vec::new();
    tags::each(Markup::Html, text, |tag, attributes| {
        let name: &[u8] = match tag {
            Tag::A => b"a",
            Tag::Area => b"area",
            Tag::Base => b"base",
            Tag::Meta => b"meta",
        };
        let values = [
            attributes.href,
            attributes.rel,
            attributes.http_equiv,
            attributes.content,
            attributes.name,
            attributes.charset,
        ];
        let values = values.map(|value| value.map(|value| decoded(value).into_owned()));
        all.push((name.to_vec(), values));
    });
    all
}

/// Emitter that tells html5gum whether it is in foreign content.
struct Judge {
    tokens: DefaultEmitter<()>,
    foreign: Rc<Cell<bool>>,
}

impl ForwardingEmitter for Judge {
    type Token = Token<()>;

    fn inner(&mut self) -> &mut impl Emitter<Token = Token<()>> {
        &mut self.tokens
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.foreign.get()
    }
}

fn theirs(text: &[u8]) -> Vec<Seen> {
    let is_foreign = Rc::new(Cell::new(false));
    let judge = Judge {
        tokens: DefaultEmitter::default(),
        foreign: Rc::clone(&is_foreign),
    };
    let mut tokenizer = Tokenizer::new_with_emitter(text, judge);
    let mut foreign = Foreign::default();
    let mut all = Vec::new();
    while let Some(Ok(token)) = tokenizer.next() {
        match token {
            Token::StartTag(tag) => {
                let name = &tag.name[..];
                let is_empty = foreign.start(name, tag.self_closing);
                if matches!(name, b"a" | b"area" | b"base" | b"meta") {
                    let value = |name: &[u8]| Some(tag.attributes.get(name)?.to_vec());
                    all.push((name.to_vec(), ATTRIBUTES.map(value)));
                }
                if let Some(state) = state(name).filter(|_| !is_empty) {
                    tokenizer.set_state(state);
                }
            }
            Token::EndTag(tag) => foreign.end(&tag.name),
            _ => {}
        }
        is_foreign.set(foreign.is_inside());
    }
    all
}

/// Tokenizer state that the tree builder sets after these start tags, scripting being off (HTML standard, 13.2.6).
fn state(name: &[u8]) -> Option<State> {
    match name {
        b"textarea" | b"title" => Some(State::RcData),
        b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => Some(State::RawText),
        b"script" => Some(State::ScriptData),
        b"plaintext" => Some(State::PlainText),
        _ => None,
    }
}

/// Random text made of fragments of HTML, so that most of it is meaningful.
fn soup() -> impl Strategy<Value = String> {
    #[rustfmt::skip]
    const SCRAPS: &[&str] = &[
        "<a href=", "<A HREF='", "<area href=\"", "<base href=", "<meta name=robots content=", "<a",
        "</a>", "<", ">", "/", "=", "\"", "'", " ", "\n", "\r\n", "\t", "\x0C", "\0", "&amp;", "&", "&amp",
        "&copy=", "&copy", "&#x26;", "&#38", "&#0;", "&#128;", "&#xD800;", "&notit;", "&not", "é", "€", "x", "-",
        "--", "!", "<!--", "-->", "--!>", "<!-->", "<!--->", "<!", "<!doctype html>", "<?", "</", "</>",
        "<![CDATA[", "]]>", "]", "<script>", "</script>", "<script", "</script", "</ScRiPt ", "<style>", "</style>", "<title>",
        "</title>", "<textarea>", "</textarea>", "<xmp>", "</xmp>", "<iframe>", "</iframe>", "<noscript>", "</noscript>",
        "<plaintext>", "<svg>", "</svg>", "<svg/>", "<math>", "</math>", "<desc>", "</desc>", "<foreignObject>",
        "</foreignObject>", "<mi>", "</mi>", "<p>", "</p>", "</div>", "rel=nofollow", " href", " href=x", " rel",
        "http-equiv=refresh", "averyveryverylongname",
    ];
    proptest::collection::vec(proptest::sample::select(SCRAPS), 0..40)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn tags_are_those_of_another_tokenizer(text in soup()) {
        check(&text);
    }
}
