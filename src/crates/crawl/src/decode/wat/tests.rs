use super::*;
use crate::decode::Parsed;
use crate::model::Limits;
use crate::rules::InputRules;

/// Returns the record whose response metadata is `http`.
fn one(http: &str) -> Result<Record<'static>, Reason> {
    with(r#""WARC-Type":"response""#, http)
}

/// Returns the record with these header fields besides the target.
fn with(header: &str, http: &str) -> Result<Record<'static>, Reason> {
    let json = format!(
        r#"{{"Envelope":{{"WARC-Header-Metadata":{{{header},"WARC-Target-URI":"u"}},
        "Payload-Metadata":{{"HTTP-Response-Metadata":{http}}}}}}}"#
    );
    let head = format!(
        "WARC/1.0\nWARC-Type: metadata\nContent-Length: {}\n\n",
        json.len()
    );
    let mut found = None;
    let wat = (FORMAT.by)(&InputRules::default(), &Limits::default());
    wat.decode((head + &json).as_bytes(), &mut |_, parsed| {
        found = Some(match parsed {
            Parsed::Record(record) => Ok(record.clone().into_owned()),
            Parsed::Bad { reason, .. } => Err(reason),
            other => panic!("{other:?}"),
        });
        true
    });
    found.unwrap()
}

#[test]
fn arrays_are_no_objects() {
    assert!(one("{}").is_ok());
    for http in [
        "[]",
        r#"[null,null,null]"#,
        r#"{"HTML-Metadata":[]}"#,
        r#"{"Headers":[]}"#,
    ] {
        assert_eq!(one(http), Err(Reason::Malformed), "{http}");
    }
}

#[test]
fn the_digest_is_the_archives_else_the_extractors() {
    let digest = |header: &str, http: &str| with(header, http).unwrap().digest;
    let of = |text: &str| Digest::of_content(xxh3_64(text.as_bytes()));
    let response = r#""WARC-Type":"response""#;
    let both = r#""WARC-Type":"response","WARC-Payload-Digest":"sha1:A""#;
    let entity = r#"{"Entity-Digest":"sha1:B"}"#;
    assert_eq!(digest(both, entity), of("sha1:A"));
    assert_eq!(digest(response, entity), of("sha1:B"));
    assert_eq!(digest(both, "{}"), of("sha1:A"));
    for none in ["{}", r#"{"Entity-Digest":""}"#, r#"{"Entity-Digest":null}"#] {
        assert_eq!(digest(response, none), Digest::NONE, "{none}");
    }
    // A revisit has no body.
    assert_eq!(digest(r#""WARC-Type":"revisit""#, entity), Digest::NONE);
    let revisit = r#""WARC-Type":"revisit","WARC-Payload-Digest":"sha1:A""#;
    assert_eq!(digest(revisit, entity), of("sha1:A"));
}

#[test]
fn deep_nesting_is_no_stack_overflow() {
    let deep = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
    assert!(one(&format!(r#"{{"x":{deep}}}"#)).is_ok());
    let links = one(&format!(r#"{{"HTML-Metadata":{{"Links":{deep}}}}}"#));
    assert_eq!(links, Err(Reason::Malformed));
    assert!(one(&format!(r#"{{"Headers":{{"Location":{deep}}}}}"#)).is_ok());
    // A list in a list has a first value, too.
    let digest = |text: &str| {
        one(&format!(r#"{{"Entity-Digest":{text}}}"#))
            .unwrap()
            .digest
    };
    assert_eq!(digest(r#"[["sha1:A"],7]"#), digest(r#""sha1:A""#));
}
