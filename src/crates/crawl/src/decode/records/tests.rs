use std::sync::LazyLock;

use super::*;
use crate::rules::FieldNames;

/// Decoder by the usual field names, for URLs.
pub static USUAL: LazyLock<JsonRecords> =
    LazyLock::new(|| JsonRecords::by(&InputRules::default(), Names::Url));

/// Decodes one line into a record, or the reason and detail of its rejection.
fn one(line: &str) -> Result<Record<'static>, (Reason, String)> {
    let mut found = Vec::new();
    USUAL.decode(line.as_bytes(), &mut |_, parsed| {
        found.push(match parsed {
            Parsed::Record(record) => Ok(record.clone().into_owned()),
            Parsed::Bad { reason, detail } => Err((reason, detail)),
            other => panic!("{other:?}"),
        });
        true
    });
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn links(record: &Record<'_>) -> Vec<String> {
    let text = |link: &Link<'_>| String::from_utf8_lossy(&link.url).into_owned();
    record.links.iter().map(text).collect()
}

/// Links that were read before the page was known to be another shard's are not counted against its lists.
#[test]
fn lists_for_links_of_another_shard_are_not_compared() {
    let shard: Shard = "0/2".parse().unwrap();
    let rules = InputRules {
        shard: Some(shard),
        ..InputRules::default()
    };
    let decoder = JsonRecords::by(&rules, Names::Url);
    let mut other = (0..).map(|at| format!("http://{at}.example/"));
    let passed = |url: &String| shard.passes_over(url.as_bytes(), Names::Url);
    let url = other.find(passed).unwrap();
    let line = format!(
        r#"{{"outlinks":["a",{{"url":"b"}}],"url":"{url}","links":["c"],"links_nofollow":[true]}}"#
    );
    decoder.decode(line.as_bytes(), &mut |_, parsed| {
        assert!(matches!(parsed, Parsed::Record(_)), "{parsed:?}");
        true
    });
}

#[test]
fn plain_strings_are_borrowed() {
    let line = br#"{"url":"http://a/","links":["x",{"rel":"r","url":"y"},"z\/"]}"#;
    USUAL.decode(line, &mut |_, parsed| {
        let Parsed::Record(record) = parsed else {
            panic!("{parsed:?}")
        };
        assert!(matches!(record.url, Cow::Borrowed(_)));
        let borrowed = |link: &Link<'_>| matches!(link.url, Cow::Borrowed(_));
        let borrowed: Vec<_> = record.links.iter().map(borrowed).collect();
        assert_eq!(borrowed, [true, true, false]);
        true
    });
}

#[test]
fn aliases_have_an_order_and_null_is_absent() {
    let both = one(r#"{"url":"u","outlinks":["o"],"links":["l"]}"#).unwrap();
    assert_eq!(links(&both), ["l"]);
    let both = one(r#"{"url":"u","links":["l"],"outlinks":["o"]}"#).unwrap();
    assert_eq!(links(&both), ["l"]);
    let both = one(r#"{"url":"u","links":[],"outlinks":["o"]}"#).unwrap();
    assert!(both.links.is_empty());
    for line in [
        r#"{"url":"u","links":null,"outlinks":["o"]}"#,
        r#"{"url":"u","outlinks":["o"],"links":null}"#,
    ] {
        assert_eq!(links(&one(line).unwrap()), ["o"]);
    }
    let times = one(r#"{"url":"u","timestamp":"odd","time":5,"fetched_at":null}"#).unwrap();
    assert_eq!(times.fetched_at, Some(5));
}

/// Reads one record under various field names, by the fast scan and by serde.
#[test]
fn names_can_be_chosen() {
    let choices = [
        "url=u",
        "links=to",
        "fetched_at=when",
        "status=code",
        "link.url=href",
    ];
    let choices = choices.iter().map(|text| text.parse().unwrap()).collect();
    let rules = InputRules {
        fields: FieldNames::of(choices).unwrap(),
        ..InputRules::default()
    };
    let chosen = JsonRecords::by(&rules, crate::decode::Names::Url);
    for line in [
        r#"{"u":"http://a/","to":["b"],"when":5,"code":404,"url":"x","links":"y","time":"z"}"#,
        r#"{"u":"http://a\/","to":[{"href":"b","url":3}],"when":5,"code":404,"links":[1],"time":[]}"#,
    ] {
        chosen.decode(line.as_bytes(), &mut |_, parsed| {
            let Parsed::Record(record) = parsed else {
                panic!("{parsed:?}")
            };
            assert_eq!(&*record.url, b"http://a/");
            assert_eq!(links(record), ["b"]);
            assert_eq!((record.fetched_at, record.status), (Some(5), Some(404)));
            true
        });
    }
    let line = br#"{"url":"http://a/","links":[]}"#;
    chosen.decode(line, &mut |_, parsed| {
        let Parsed::Bad { detail, .. } = parsed else {
            panic!("{parsed:?}")
        };
        assert_eq!(detail, "no \"u\", which `field` names as the URL");
        true
    });
}

#[test]
fn details_say_what_and_where() {
    for (line, reason, detail) in [
        (
            "{\"url\":3}\n",
            Reason::Malformed,
            "invalid type: integer `3`, expected a string, at byte 8",
        ),
        (
            "[1]\n",
            Reason::Malformed,
            "invalid type: sequence, expected a crawl record, an object, at byte 0",
        ),
        (
            "{\"url\":\"u\"\n",
            Reason::Malformed,
            "EOF while parsing an object, at byte 10",
        ),
        (
            "{\"url\":\"u\"",
            Reason::CutShort,
            "EOF while parsing an object, at byte 10",
        ),
        (
            "{\"links\":[]}\n",
            Reason::BadUrl,
            "no `url`; if the file has another name for it: `field` url=NAME",
        ),
        ("{\"url\":\"\"}\n", Reason::BadUrl, "\"url\" is empty"),
    ] {
        assert_eq!(one(line), Err((reason, detail.to_owned())), "{line}");
    }
}

/// An unreadable time is reported, and the record is used without it.
#[test]
fn a_time_that_cannot_be_read_costs_the_record_nothing_else() {
    for (time, message) in [
        ("1430387621000", "1430387621000"),
        ("99999999999999999999999", "100000000000000000000000"),
        (r#""soon""#, r#""soon""#),
        (r#""2015-02-30T00:00:00Z""#, r#""2015-02-30T00:00:00Z""#),
        (r#""2015-04-30T10:00:21""#, r#""2015-04-30T10:00:21""#),
        ("true", "a boolean"),
        (r#"[1,{"a":[]}]"#, "an array"),
        (r#"{"a":{"b":1},"c":[2]}"#, "an object"),
    ] {
        let line = format!(r#"{{"url":"u","time":{time},"status":200,"links":["b"]}}"#);
        let record = one(&line).unwrap();
        let detail =
            format!("{message} is neither RFC 3339 nor seconds since 1970 (milliseconds?)");
        assert_eq!(record.bad_time, Some(detail), "{line}");
        assert_eq!(record.fetched_at, None, "{line}");
        assert_eq!(
            (links(&record), record.status),
            (vec!["b".to_owned()], Some(200))
        );
    }
    let good = one(r#"{"url":"u","time":"2015-04-30T10:00:21Z"}"#).unwrap();
    assert_eq!(
        (good.fetched_at, good.bad_time),
        (Some(1_430_388_021), None)
    );
}

#[test]
fn every_cut_of_a_record_is_cut_short() {
    let line = r#"{"url":"http://a/é","time":-1.5e3,"x":[null,true],"links":["\ud83d\ude00",{"url":"b"}]}"#;
    assert!(one(line).is_ok());
    for len in 1..line.len() {
        let mut reasons = Vec::new();
        USUAL.decode(&line.as_bytes()[..len], &mut |_, parsed| {
            reasons.push(match parsed {
                Parsed::Bad { reason, .. } => Some(reason),
                _ => None,
            });
            true
        });
        assert_eq!(reasons, [Some(Reason::CutShort)], "{len} bytes");
    }
}

/// JSON can be nested as deep as a line is long: nothing here recurses without bound.
#[test]
fn deep_nesting_is_no_stack_overflow() {
    let deep = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
    assert!(one(&format!("{{\"url\":\"u\",\"x\":{deep}}}\n")).is_ok());
    let timeless = one(&format!("{{\"url\":\"u\",\"time\":{deep}}}\n")).unwrap();
    assert!(timeless.bad_time.is_some());
    for field in ["links", "status", "url"] {
        let line = format!("{{\"url\":\"u\",\"{field}\":{deep}}}\n");
        assert_eq!(one(&line).unwrap_err().0, Reason::Malformed, "{field}");
    }
}

#[test]
fn status_and_redirect() {
    let status = |text: &str| one(&format!("{{\"url\":\"u\",\"status\":{text}}}"));
    for (text, expected) in [
        ("200", Some(200)),
        ("\"404\"", Some(404)),
        ("-9998", Some(-9998)),
        ("\"-5\"", Some(-5)),
        ("301.0", Some(301)),
        ("null", None),
    ] {
        assert_eq!(status(text).unwrap().status, expected, "{text}");
    }
    for text in [
        "\"\"",
        "\"-\"",
        "\"+5\"",
        "\"2xx\"",
        "1.5",
        "2147483648",
        "1e99",
        "[]",
        "true",
    ] {
        assert_eq!(status(text).unwrap_err().0, Reason::Malformed, "{text}");
    }
    for (status, kept) in [
        ("301", true),
        ("null", true),
        ("200", false),
        ("304", false),
    ] {
        let line = format!("{{\"url\":\"u\",\"status\":{status},\"redirect\":\"to\"}}");
        assert_eq!(one(&line).unwrap().redirect.is_some(), kept, "{status}");
    }
}

#[test]
fn requested_urls_that_are_no_list_are_malformed() {
    let requested = |text: &str| {
        let line = format!(r#"{{"url":"http://c/","requested_url":"{text}"}}"#);
        let mut found = Vec::new();
        USUAL.decode(line.as_bytes(), &mut |_, parsed| {
            found.push(match parsed {
                Parsed::Bad { reason, .. } => Err(reason),
                _ => Ok(()),
            });
            true
        });
        found
    };
    for text in ["['http://a/', 'http://b/']", "http://a/@@http://b/"] {
        assert_eq!(requested(text), [Ok(()); 3], "{text}");
    }
    assert_eq!(requested("nan"), [Ok(())]);
    for text in ["[http://a/, http://b/]", "{http://a/,http://b/}"] {
        assert_eq!(requested(text), [Err(Reason::Malformed)], "{text}");
    }
}

#[test]
fn brackets_of_an_array_are_no_records() {
    for line in ["[\n", "]\n", "[]\n", "[ ]\n", " [\t] ,\n"] {
        USUAL.decode(line.as_bytes(), &mut |_, parsed| {
            let is_bracket = matches!(
                parsed,
                Parsed::Other {
                    kind: "array bracket"
                }
            );
            assert!(is_bracket, "{line:?}: {parsed:?}");
            true
        });
    }
}

#[test]
fn an_unpaired_surrogate_becomes_a_replacement_character() {
    let read = one(r#"{"url":"http://a/\ud83d","links":["\ud83d\ude00","b"]}"#).unwrap();
    assert_eq!(&*read.url, "http://a/\u{FFFD}".as_bytes());
    assert_eq!(links(&read), ["\u{1F600}", "b"]);
}

/// An answer to another method says nothing about the page. Methods of RFC 9110 are matched in any case, those of
/// extensions (RFC 4918, RFC 3253, UPnP) in capitals only.
#[test]
fn answers_to_other_methods_are_no_visits() {
    let kind = |method: &str| {
        let line = format!("{{\"url\":\"http://a.example/\",\"method\":\"{method}\"}}\n");
        let mut found = None;
        USUAL.decode(line.as_bytes(), &mut |_, parsed| {
            found = match parsed {
                Parsed::Other { kind } => Some(kind),
                _ => None,
            };
            true
        });
        found
    };
    assert_eq!(kind("HEAD"), Some("answer to HEAD"));
    assert_eq!(kind(" post "), Some("answer to POST"));
    for method in ["PROPFIND", "REPORT", "QUERY", "PURGE", "M-SEARCH"] {
        assert_eq!(kind(method), Some("answer to another method"), "{method}");
    }
    for method in ["GET", " get", "", "-", "None", "selenium", "2"] {
        assert_eq!(kind(method), None, "{method}");
    }
}

/// A last record is complete if its JSON is, whatever follows.
#[test]
fn an_object_that_is_whole_was_not_cut() {
    for (rest, is_cut) in [
        ("{\"links\":[]}", false),
        ("{\"url\":\"\"}", false),
        ("{\"url\":3}", false),
        ("{\"links\":[]", true),
        ("{\"links\":[\"\\u00", true),
        (" \t", true),
    ] {
        assert_eq!(USUAL.is_cut(rest.as_bytes()), is_cut, "{rest}");
    }
}

#[test]
fn where_redirects_ended_is_relative_to_where_they_began() {
    let found = |to: &str| {
        let line =
            format!("{{\"url\":\"http://a.example/x/y\",\"final_url\":\"{to}\",\"status\":200}}\n");
        let mut urls = Vec::new();
        USUAL.decode(line.as_bytes(), &mut |_, parsed| {
            if let Parsed::Record(record) = parsed {
                let redirect = record.redirect.as_deref().map(String::from_utf8_lossy);
                let redirect = redirect.map(|to| to.into_owned());
                urls.push((String::from_utf8_lossy(&record.url).into_owned(), redirect));
            }
            true
        });
        urls
    };
    for (to, page) in [
        ("../z", "http://a.example/z"),
        ("/z?q", "http://a.example/z?q"),
        ("//b.example/", "http://b.example/"),
        ("http://b.example/", "http://b.example/"),
    ] {
        let expected = [
            ("http://a.example/x/y".to_owned(), Some(page.to_owned())),
            (page.to_owned(), None),
        ];
        assert_eq!(found(to), expected, "{to}");
    }
}

/// A record that is written reads back unchanged.
#[test]
fn records_are_written_as_they_are_read() {
    let samples =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../formats/samples/good");
    let mut count = 0;
    for name in ["records.jsonl", "records-lists.jsonl", "records-dump.jsonl"] {
        let text = std::fs::read(samples.join(name)).unwrap();
        USUAL.decode(&text, &mut |_, parsed| {
            let Parsed::Record(record) = parsed else {
                return true;
            };
            let mut line = Vec::new();
            write::write(record, crate::decode::Names::Url, &mut line);
            let read = one(std::str::from_utf8(&line).unwrap()).unwrap();
            let written = Record {
                bad_time: None,
                ..record.clone().into_owned()
            };
            assert_eq!(read, written, "{}", line.escape_ascii());
            count += 1;
            true
        });
    }
    assert!(count > 30, "{count}");
}
