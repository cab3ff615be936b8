//! `order`: members of archives, put in the order of their fetches by an index.

use std::io::{Cursor, Read};

use flate2::bufread::GzDecoder;

use crate::support::{Lab, data, gzip};

/// A WARC response.
fn response(page: &str, time: &str) -> Vec<u8> {
    let body =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=\"/of-{page}\">x</a>");
    format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://h.example/{page}\r\nWARC-Date: {time}\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{body}\r\n\r\n",
        body.len()
    )
    .into_bytes()
}

fn line(time: &str, file: &str, offset: usize, len: usize) -> String {
    format!(
        "key {time} {{\"filename\": \"somewhere/{file}\", \"offset\": \"{offset}\", \"length\": {len}}}\n"
    )
}

/// Two files with two pages each, fetched in turn; what they hold, in the order of the fetches; and the index,
/// sorted by anything but time.
fn lab(pack: impl Fn(&[u8]) -> Vec<u8>) -> (Lab, Vec<u8>) {
    let lab = Lab::new();
    let page = |at: u64| {
        pack(&response(
            &format!("p{at}"),
            &format!("2020-01-01T00:00:0{at}Z"),
        ))
    };
    let mut index = vec![String::from("!meta {}\n"), String::from("\n")];
    for (file, pages) in [("a.warc", [3, 0]), ("b.warc", [1, 2])] {
        let mut bytes = Vec::new();
        for at in pages {
            let member = page(at);
            let time = format!("2020010100000{at}");
            index.push(line(&time, file, bytes.len(), member.len()));
            bytes.extend(member);
        }
        lab.file(file, bytes);
    }
    lab.file("index", index.concat());
    (lab, (0..4).flat_map(page).collect())
}

#[test]
fn captures_come_in_the_order_of_their_fetches() {
    for pack in [<[u8]>::to_vec, |bytes: &[u8]| gzip(bytes)] {
        let (lab, expected) = lab(pack);
        lab.run("order index b.warc a.warc -o ordered")
            .exits(0)
            .says(&["4 captures"]);
        assert!(std::fs::read(lab.path("ordered")).unwrap() == expected);
    }
}

#[test]
fn an_index_that_does_not_fit() {
    let (lab, _) = lab(<[u8]>::to_vec);
    let file = std::fs::read(lab.path("b.warc")).unwrap();
    for (name, text, code, said) in [
        (
            "other",
            line("20200101000000", "c.warc", 0, 9),
            2,
            "files that were not given: c.warc",
        ),
        (
            "inside",
            line("20200101000000", "a.warc", 3, 9),
            2,
            "line 1: no record begins at byte 3",
        ),
        (
            "behind",
            line("20200101000000", "a.warc", 1 << 20, 9),
            2,
            "no record begins",
        ),
        (
            "short",
            line("20200101000000", "b.warc", 0, file.len() + 1),
            2,
            "the file ends inside the record",
        ),
        ("text", "surt 2020 x\n".to_owned(), 4, "record 1 at byte 0"),
    ] {
        lab.file(name, text);
        lab.run(&format!("order {name} a.warc b.warc -o ordered"))
            .exits(code)
            .says(&[said]);
        assert!(!lab.path("ordered").exists());
    }
    lab.run("order index a.warc").exits(2).says(&["b.warc"]);
    lab.run("order index a.warc b.warc ./a.warc")
        .exits(2)
        .says(&["two files are called a.warc"]);
    // One of two is compressed.
    lab.file("b.warc", gzip(&file));
    let mixed = line("20200101000000", "a.warc", 0, 9) + &line("20200101000001", "b.warc", 0, 9);
    lab.file("mixed", mixed);
    lab.run("order mixed a.warc b.warc")
        .exits(2)
        .says(&["not compressed as"]);
}

/// A real archive, by an index made of its members: in order of time, it has the same pages with the same
/// visits, and times never go back.
#[test]
fn a_real_archive() {
    let Some(path) = data("boost/boost-crawl-1.74.warc.gz") else {
        return;
    };
    let bytes = std::fs::read(path).unwrap();
    let mut index = Vec::new();
    let mut expected = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let mut member = GzDecoder::new(Cursor::new(&bytes[at..]));
        let mut text = Vec::new();
        member.read_to_end(&mut text).unwrap();
        let len = member.into_inner().position() as usize;
        let text = String::from_utf8_lossy(&text[..text.len().min(2000)]).into_owned();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned())
        };
        if field("WARC-Type:").as_deref() == Some("response") {
            let date = field("WARC-Date:").unwrap();
            let time: String = date.chars().filter(char::is_ascii_digit).take(14).collect();
            index.push((index.len(), line(&time, "a.warc.gz", at, len)));
            expected.push((time, at..at + len));
        }
        at += len;
    }
    assert!(index.len() > 4000);
    // Any order of lines, but not within a second.
    index.sort_by_key(|(number, _)| (number % 7, *number));
    let lab = Lab::new();
    let mut by_line: Vec<_> = index
        .iter()
        .map(|(number, _)| expected[*number].clone())
        .collect();
    by_line.sort_by(|a, b| a.0.cmp(&b.0));
    let ordered: Vec<u8> = by_line
        .into_iter()
        .flat_map(|(_, range)| bytes[range].to_vec())
        .collect();
    lab.file(
        "index",
        index.into_iter().map(|(_, line)| line).collect::<String>(),
    );
    lab.file("a.warc.gz", &bytes);
    lab.run("order index a.warc.gz -o ordered").exits(0);
    assert!(std::fs::read(lab.path("ordered")).unwrap() == ordered);
}
