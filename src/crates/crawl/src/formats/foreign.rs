//! Recognition of files that are not inputs by their first bytes, with advice for each.

/// First bytes of files that are not read, with what the file is and what to do.
const BINARY: [(&[u8], &str); 9] = [
    (b"BZh", "packed with bzip2: `bzcat FILE | cashrank ... -`"),
    (
        b"\xfd7zXZ\0",
        "packed with xz: `xzcat FILE | cashrank ... -`",
    ),
    (
        b"PK\x03\x04",
        "a ZIP archive; of a WACZ, take the WARC files in it: `unzip -p FILE 'archive/*.warc.gz' | cashrank ... -`",
    ),
    (
        b"SQLite format 3\0",
        "an SQLite database: write its table as Parquet, or as JSON lines",
    ),
    (
        b"SEQ\x06",
        "a Hadoop sequence file: of Nutch's segments, take `nutch readseg -dump`",
    ),
    // Inputs are decompressed before they get here, so this is nested compression.
    (b"\x1f\x8b\x08", PACKED_TWICE),
    (b"\x28\xb5\x2f\xfd", PACKED_TWICE),
    (
        b"\x89CZA\r\n\x1a\n",
        "a crawl archive (.cza) of cashrank 0.2, which this version does not read, and from which no version makes another \
         format: read the inputs that it was made of",
    ),
    (
        b"redb\x1a\n\xa9\r\n",
        "the database of a store: name the store's folder with `store`",
    ),
];

const PACKED_TWICE: &str = "packed twice, with gzip or zstd inside: take one packing off, `zcat` or `zstdcat FILE | cashrank ... -`";

/// Describes a packed or otherwise binary file, with advice; `None` if it is unknown.
pub fn binary(head: &[u8]) -> Option<String> {
    let is = |magic: &[u8]| {
        // The magic of bzip2 could begin a text; that of a block follows it.
        head.starts_with(magic) && (magic != b"BZh" || head.get(4..10) == Some(b"1AY&SY"))
    };
    if let Some((_, what)) = BINARY.iter().find(|(magic, _)| is(magic)) {
        return Some(format!("it is {what}"));
    }
    // A record decides the format before this byte comes (`is_decided`).
    if head.get(257..262) == Some(b"ustar") && !head.trim_ascii_start().starts_with(b"{") {
        return Some(
            "it is a tar archive: `tar -xOf FILE | cashrank ... -`, if what it holds may follow each other".into(),
        );
    }
    let encoding = match head {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => "UTF-32",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16",
        // Without a byte order mark, mostly ASCII.
        [1..=255, 0, 1..=255, 0, 1..=255, 0, 1..=255, 0, ..] => "UTF-16LE",
        [0, 1..=255, 0, 1..=255, 0, 1..=255, 0, 1..=255, ..] => "UTF-16BE",
        [1..=255, 0, 0, 0, 1..=255, 0, 0, 0, ..] => "UTF-32LE",
        [0, 0, 0, 1..=255, 0, 0, 0, 1..=255, ..] => "UTF-32BE",
        _ => return None,
    };
    let kind = &encoding[..6];
    Some(format!(
        "it is text in {kind}: `iconv -f {encoding} -t UTF-8 FILE | cashrank ... -`"
    ))
}

/// Describes a text in place of a file: a pointer to the file, its checksum, or an error message.
pub fn text(head: &[u8]) -> Option<String> {
    let start = head.trim_ascii_start();
    if start.starts_with(b"version https://git-lfs.github.com/spec/") {
        return Some("it is a Git LFS pointer, not the file: `git lfs pull` fetches that".into());
    }
    // Checksums as `md5sum` and similar programs write them.
    let digits = start.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let (sum, file) = start.split_at(digits.count());
    // Digits alone are more likely the name of a node.
    let is_sum =
        matches!(sum.len(), 32 | 40 | 56 | 64 | 96 | 128) && !sum.iter().all(u8::is_ascii_digit);
    if is_sum && (file.starts_with(b"  ") || file.starts_with(b" *")) {
        return Some("it is a list of checksums".into());
    }
    let is_markup = start.starts_with(b"<");
    is_markup.then(|| "it looks like HTML or XML".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Magics as in the formats' specifications.
    #[test]
    fn files_are_named() {
        let tar = [&[b'a'; 257][..], b"ustar\x0000"].concat();
        let wide = |to: fn(u16) -> [u8; 2]| -> Vec<u8> {
            "{\"url\":1}\n".encode_utf16().flat_map(to).collect()
        };
        for (head, name) in [
            (&b"PK\x03\x04\x14\0"[..], "ZIP"),
            (b"BZh91AY&SY\0", "bzip2"),
            (b"\xfd7zXZ\0\0\x04", "xz"),
            (b"SQLite format 3\0\x10", "SQLite"),
            (b"\x1f\x8b\x08\0", "packed twice"),
            (b"\x28\xb5\x2f\xfd\x04", "packed twice"),
            (b"\x89CZA\r\n\x1a\n", "crawl archive"),
            (&tar, "tar"),
            (b"\xff\xfe{\0\"\0", "UTF-16"),
            (b"\xfe\xff\0{\0\"", "UTF-16"),
            (b"\xff\xfe\0\0{\0\0\0", "UTF-32"),
            (&wide(u16::to_le_bytes), "UTF-16LE"),
            (&wide(u16::to_be_bytes), "UTF-16BE"),
        ] {
            assert!(binary(head).unwrap().contains(name), "{name}");
        }
        for head in [
            &b""[..],
            b"BZh",
            b"BZhx\ty\n",
            b"{\"url\":",
            b"WARC/1.0\r\n",
            b"a\tb\n",
            b"PK\tx\n",
        ] {
            assert_eq!(binary(head), None, "{head:?}");
        }
    }

    #[test]
    fn texts_in_the_place_of_files_are_named() {
        let md5 = "d41d8cd98f00b204e9800998ecf8427e";
        for (head, name) in [
            (format!("{md5}  day.warc.gz\n"), "checksums"),
            (format!("{md5} *day.warc.gz\n"), "checksums"),
            (
                "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
                    .to_owned(),
                "Git LFS",
            ),
            (
                "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code></Error>".to_owned(),
                "HTML or XML",
            ),
            ("<!DOCTYPE html><title>404</title>".to_owned(), "HTML"),
        ] {
            assert!(text(head.as_bytes()).unwrap().contains(name), "{name}");
        }
        for head in ["a b\n", "1 2\n"] {
            assert_eq!(text(head.as_bytes()), None, "{head}");
        }
    }
}
