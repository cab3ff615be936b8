use super::*;

#[test]
fn names_come_back() {
    for format in Format::ALL {
        assert_eq!(format.name().parse::<Format>().unwrap(), format);
    }
    let message = "cdx".parse::<Format>().unwrap_err().to_string();
    assert_eq!(
        message,
        "no format \"cdx\"; there are: records, node-records, warc, arc, wat, adjacency, edges, \
         url-adjacency, url-edges, crawl-log, nutch, csv-links"
    );
}

const LOG: &str = "2015-05-22T15:01:10.521Z   200        564 http://a.example/ LL http://b.example/ text/plain \
                   #084 20150522150109851+648 sha1:X -\n";

#[test]
fn guesses() {
    let warc = |kind: &str| {
        format!(
            "\r\nWARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 3\r\n\r\na\nb\r\n\r\n\
             WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Type: application/json\r\nContent-Length: 9"
        )
    };
    let wat = warc("metadata") + "000\r\n\r\n{";
    let wet = warc("conversion") + "\r\n\r\n";
    let (cut, warc) = (warc("metadata"), warc("response") + "\r\n\r\n");
    for (head, expected) in [
        ("\u{FEFF}{\"url\":", Some(Format::Records)),
        ("\r\n \n{", Some(Format::Records)),
        (&wat, Some(Format::Wat)),
        (&warc, Some(Format::Warc)),
        (&cut, Some(Format::Warc)),
        (&wet, None),
        ("WARC/1.0\n", Some(Format::Warc)),
        ("WARC/1.0\nnonsense\n", Some(Format::Warc)),
        ("# a\n# b\n1\t2\n3 4\r\n5\t6\t7", Some(Format::Edges)),
        ("1 2\n", Some(Format::Edges)),
        ("1\t2", Some(Format::Edges)),
        ("0\t1\t2\n1\t\n", Some(Format::Adjacency)),
        ("a b\tc\n", Some(Format::Adjacency)),
        ("a\tb\nc\n", Some(Format::Adjacency)),
        ("1 2 0.5\n", None),
        // Regression: fields between tabs were split at spaces, too.
        ("Windows 3.1\tWindows 95\n", Some(Format::Adjacency)),
        (
            "New York\tBoston\t3\nBoston\tSan Jose\t4\n",
            Some(Format::Edges),
        ),
        // Links with weights; but a list of numbers may look like that.
        ("a\tb\t3\na\tc\t1\n", Some(Format::Edges)),
        ("0\t1\t3\n0\t2\t1\n", Some(Format::Edges)),
        ("0\t1\t3\n1\t2\t1\n", Some(Format::Adjacency)),
        ("a\tb\t3\nb\tc\td\n", Some(Format::Adjacency)),
        ("a\tb\t3\nb\n", Some(Format::Adjacency)),
        // Weights and scores as pandas writes them: no names of pages.
        ("a\tb\t3.0\na\tc\t1.0\n", Some(Format::Edges)),
        ("0\t1\t3.0\n1\t2\t1.0\n", Some(Format::Edges)),
        ("a\tb\t3.0\na\tc\t0.5\n", None),
        ("source\ttarget\tweight\na\tb\t0.5\n", None),
        ("http://a/\thttp://b/\t1e-05\n", None),
        ("http://a/\t0.25\n", None),
        ("a\tb\tc\t-1\n", None),
        ("1.0\t2.0\t0.5\n", None),
        // Names that are numbers of a column with gaps, or have points.
        ("1.0\t2.0\n2.0\t3.0\n", Some(Format::Edges)),
        ("10.0.0.1\t10.0.0.2\t3\n", Some(Format::Edges)),
        // Regression: any text with a tab in it was accepted as a graph.
        ("Dear all,\nplease find\tbelow\nwhat you asked for\n", None),
        ("a\u{1}\tb\tc\n", None),
        ("text\t\n<html><head>\t", None),
        ("HTTP/1.1 200 OK\r\nServer: a\tb\r\n", None),
        (
            "http://a/ 1.2.3.4 20080430204825 text/html 12\na\tb\tc\n",
            None,
        ),
        (
            &format!("metadata://x y\n{LOG}\n{LOG}\n"),
            Some(Format::CrawlLog),
        ),
        ("# a\na\tb\tc d\ne\nf\tg\n", Some(Format::Adjacency)),
        ("word\n", None),
        ("# only\n", None),
        ("", None),
        ("\n\n", None),
        ("[{\"url\":\"u\"}]", None),
        (
            "[\n{\"url\":\"u\"},\n{\"url\":\"v\"}\n]",
            Some(Format::Records),
        ),
        (
            "[\n{\"node\":\"a\"},\n{\"node\":\"b\"}\n]",
            Some(Format::NodeRecords),
        ),
        ("[{\"node\":\"a\"}]", None),
        ("[]", Some(Format::Records)),
        ("[ ]", Some(Format::Records)),
        ("[1,2]", None),
        ("[[{", None),
        ("{\n  \"url\": \"u\"\n}\n", None),
        ("[\n  {\n  \"url\": \"u\"\n}\n", None),
        ("{\"url\":\"u\"}{\"url\":\"v\"}\n", None),
        ("{\"url\":\"u\"} \n{\"url\":\"v\"}\n", Some(Format::Records)),
        // A truncated line, and the next.
        (
            "{\"url\":\"u\",\"links\":[\"x\"\n{\"url\":\"v\"}\n",
            Some(Format::Records),
        ),
        (
            "{\"url\":\"u\",\"links\":[\"x\n{\"url\":\"v\"}\n",
            Some(Format::Records),
        ),
        (" CDX N b a m s k r M S V g\n", None),
        ("org,a)/ 20140103030321 {\"url\":", None),
        ("filedesc://x.arc 0.0.0.0", Some(Format::Arc)),
        ("<html>", None),
        ("\u{89}CZA\r\n\u{1a}\n", None),
        ("\nRecno:: 0\nURL:: http://a/\n", Some(Format::Nutch)),
        ("Recno:: 0 x\nURL:: http://a/\n", None),
        (LOG, Some(Format::CrawlLog)),
        ("20150522 1 2\n", None),
        (
            "\u{FEFF}crawl_date,src,dest,anchor\r\n",
            Some(Format::CsvLinks),
        ),
        (
            "20080430,http://a/,http://b/,\"x\ny\"\n",
            Some(Format::CsvLinks),
        ),
        ("20080430,http://a/\n", None),
        ("a,b,c,d\n", None),
    ] {
        let guessed = guess(head.as_bytes()).ok().map(|(format, _)| format);
        assert_eq!(guessed, expected, "{head:?}");
    }
    let line = "{\"url\":{}}".to_owned();
    let ended = line.clone() + "\n";
    let whole = "{\n\"url\":{}}".to_owned();
    for (head, decided) in [
        (&wat, true),
        (&warc, true),
        (&cut, false),
        (&line, false),
        (&ended, true),
        (&whole, true),
    ] {
        assert_eq!(is_decided(head.as_bytes()), decided, "{head:?}");
    }
    // It may be UTF-32.
    assert!(!is_decided(b"{\0\0\0"));
    let message = guess(wet.as_bytes()).unwrap_err().to_string();
    assert!(message.contains("is a WET"), "{message}");
}
