//! Recognises files that are not inputs by their first bytes, with advice for each.

use std::ops::Range;

/// Packed files: their first bytes, how they are packed, and what unpacks them.
const PACKED: [(&[u8], &str, &str); 9] = [
    (b"BZh", "bzip2", "bzcat"),
    (b"\xfd7zXZ\0", "xz", "xzcat"),
    (b"\x04\x22\x4d\x18", "LZ4", "lz4cat"),
    (b"\x02\x21\x4c\x18", "LZ4", "lz4cat"),
    (b"LZIP\x01", "lzip", "lzip -dc"),
    (b"\x1f\x9d", "compress (.Z)", "zcat"),
    (b"\x5d\0\0", "LZMA", "lzcat"),
    (b"x\x01", "zlib", "pigz -dc"),
    (b"x\x9c", "zlib", "pigz -dc"),
];

/// Other binary files: their first bytes, what they are, and what to do.
const BINARY: [(&[u8], &str); 26] = [
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"PK\x07\x08", ZIP),
    (
        b"7z\xbc\xaf\x27\x1c",
        "a 7z archive: `7z x -so FILE | cashrank ... -`",
    ),
    (b"\xff\x06\0\0sNaPpY", "packed with Snappy: unpack it first"),
    (
        b"Rar!\x1a\x07",
        "a RAR archive: `unrar p -inul FILE | cashrank ... -`",
    ),
    (b"ARROW1", "an Arrow file (Feather): write it as Parquet"),
    (
        b"\xff\xff\xff\xff\x10\0\0\0",
        "an Arrow stream: write it as Parquet",
    ),
    (
        b"SQLite format 3\0",
        "an SQLite database: write its table as Parquet, or as JSON lines",
    ),
    (b"ORC\n", "an ORC file: write it as Parquet"),
    (b"ORC\x08", "an ORC file: write it as Parquet"),
    (
        b"Obj\x01",
        "an Avro file: write it as Parquet, or as JSON lines",
    ),
    (
        b"SEQ\x06",
        "a Hadoop sequence file: of Nutch's segments, take `nutch readseg -dump`",
    ),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file: write it as Parquet"),
    (
        b"\x93NUMPY",
        "a NumPy array: write it as Parquet, or as lines of two numbers",
    ),
    // Inputs are decompressed before, so this is nested compression.
    (b"\x1f\x8b\x08", GZIP_INSIDE),
    (b"\x28\xb5\x2f\xfd", ZSTD_INSIDE),
    (b"%PDF-", "a PDF"),
    (b"\x89PNG\r\n\x1a\n", "an image (PNG)"),
    (b"\xff\xd8\xff", "an image (JPEG)"),
    (b"GIF8", "an image (GIF)"),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "a document of Microsoft Office (OLE)",
    ),
    (b"\x7fELF", "a program (ELF)"),
    (b"\xca\xfe\xba\xbe", "a Java class, or a program"),
    (b"\x89CZA\r\n\x1a\n", CZA),
    (
        b"redb\x1a\n\xa9\r\n",
        "the database of a store: name the store's folder with `store`",
    ),
];

const ZIP: &str = "a ZIP archive; of a WACZ, take the WARC files in it: `unzip -p FILE 'archive/*.warc.gz' | \
                   cashrank ... -`";
const GZIP_INSIDE: &str = "packed twice, with gzip inside: take one packing off, `zcat` or `zstdcat FILE | cashrank ... -`";
const ZSTD_INSIDE: &str = "packed twice, with zstd inside: take one packing off, `zcat` or `zstdcat FILE | cashrank ... -`";
const CZA: &str = "a crawl archive (.cza) of cashrank 0.2, which this version does not read, and from which no version \
                   makes another format: read the inputs that it was made of";

/// Encodings by their byte order marks. One that begins with another precedes it.
const ENCODINGS: [(&[u8], &str); 4] = [
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
];

/// Magic of a tar archive; older ones have only a checksum of the first header.
const TAR: Range<usize> = 257..262;
const TAR_HEADER: usize = 512;
const TAR_CHECKSUM: Range<usize> = 148..156;

/// Number of bytes that are examined for text without a byte order mark.
const LOOKED_AT: usize = 64;

/// Returns what a packed or otherwise binary file is, and what to do; `None` if unknown.
pub fn binary(head: &[u8]) -> Option<String> {
    let is_packed = |(magic, ..): &&(&[u8], _, _)| {
        head.starts_with(magic) && (*magic != b"BZh" || is_bzip2(head))
    };
    if let Some((_, packing, program)) = PACKED.iter().find(is_packed) {
        return Some(format!(
            "it is packed with {packing}: `{program} FILE | cashrank ... -`"
        ));
    }
    if let Some((_, what)) = BINARY.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(format!("it is {what}"));
    }
    if head.get(TAR) == Some(b"ustar") || is_tar_header(head) {
        return Some(
            "it is a tar archive: `tar -xOf FILE | cashrank ... -`, if what it holds may follow each other".into(),
        );
    }
    let marked = ENCODINGS.iter().find(|(mark, _)| head.starts_with(mark));
    let encoding = marked
        .map(|(_, encoding)| *encoding)
        .or_else(|| wide(head))?;
    let kind = &encoding[..6];
    Some(format!(
        "it is text in {kind}: `iconv -f {encoding} -t UTF-8 FILE | cashrank ... -`"
    ))
}

/// Returns whether the checksum of a tar header is right: the sum of its bytes, with spaces for the checksum itself, in
/// octal.
fn is_tar_header(head: &[u8]) -> bool {
    let Some(header) = head.get(..TAR_HEADER) else {
        return false;
    };
    let digits = header[TAR_CHECKSUM].trim_ascii_start();
    let end = digits.iter().position(|byte| !(b'0'..=b'7').contains(byte));
    let digits = std::str::from_utf8(&digits[..end.unwrap_or(digits.len())]);
    let sum = digits
        .ok()
        .and_then(|text| u32::from_str_radix(text, 8).ok());
    let others = header.iter().enumerate().map(|(at, &byte)| {
        if TAR_CHECKSUM.contains(&at) {
            u32::from(b' ')
        } else {
            u32::from(byte)
        }
    });
    sum == Some(others.sum())
}

/// Returns whether a level follows, and the magic of a block or of the end.
fn is_bzip2(head: &[u8]) -> bool {
    let block = head.get(4..10);
    head.get(3).is_some_and(u8::is_ascii_digit)
        && (block == Some(b"1AY&SY") || block == Some(b"\x17rE8P\x90"))
}

/// Recognises UTF-16 or UTF-32 without a byte order mark, mostly ASCII.
fn wide(head: &[u8]) -> Option<&'static str> {
    let (units, _) = head[..head.len().min(LOOKED_AT)].as_chunks::<4>();
    let is_so = |zeros: [bool; 4]| {
        let fits = |unit: &[u8; 4]| unit.map(|byte| byte == 0) == zeros;
        units.len() >= 2 && units.iter().all(fits)
    };
    match () {
        () if is_so([false, true, false, true]) => Some("UTF-16LE"),
        () if is_so([true, false, true, false]) => Some("UTF-16BE"),
        () if is_so([false, true, true, true]) || is_so([true, true, true, false]) => {
            Some("UTF-32")
        }
        () => None,
    }
}

/// Returns what a text is that stands in place of a file: a pointer to it, its checksum, or an error message.
pub fn text(head: &[u8]) -> Option<String> {
    let start = head.trim_ascii_start();
    if start.starts_with(b"version https://git-lfs.github.com/spec/") {
        return Some("it is a Git LFS pointer, not the file: `git lfs pull` fetches that".into());
    }
    let line = start
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    if is_checksum(
        line.trim_ascii(),
        start.trim_ascii_end().len() == line.trim_ascii_end().len(),
    ) {
        return Some("it is a list of checksums".into());
    }
    if start.starts_with(b"<") {
        return Some(markup(start));
    }
    json_error(start)
}

fn markup(start: &[u8]) -> String {
    let text = String::from_utf8_lossy(&start[..start.len().min(4096)]);
    let kind = "it looks like HTML or XML";
    if text.contains("<Error>") || text.contains("<error>") {
        let code = text
            .split("<Code>")
            .nth(1)
            .and_then(|code| code.split('<').next());
        let code: String = code
            .unwrap_or_default()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        return format!("{kind}: an object store's error {code} in the place of the file");
    }
    kind.into()
}

/// Returns whether a line is one of `md5sum` and the like, or of BSD's `md5`; or, if it is the only one, a bare
/// checksum.
fn is_checksum(line: &[u8], is_only: bool) -> bool {
    let mut fields = line.splitn(2, |&byte| byte == b' ');
    let (sum, file) = (fields.next().unwrap_or_default(), fields.next());
    let is_sum = |sum: &[u8]| {
        matches!(sum.len(), 32 | 40 | 56 | 64 | 96 | 128) && sum.iter().all(u8::is_ascii_hexdigit)
    };
    let is_digits = sum.iter().all(u8::is_ascii_digit);
    if is_sum(sum)
        && !is_digits
        && file.map_or(is_only, |file| {
            file.starts_with(b" ") || file.starts_with(b"*")
        })
    {
        return true;
    }
    let named = [
        &b"MD5 ("[..],
        b"SHA1 (",
        b"SHA256 (",
        b"SHA512 (",
        b"BLAKE2b (",
        b"SHA2-256(",
    ];
    named.iter().any(|name| line.starts_with(name))
        && is_sum(line.rsplit(|&byte| byte == b' ').next().unwrap_or_default())
}

/// Recognises a single object with an error that is not a crawl record with a URL and the result of a fetch.
fn json_error(start: &[u8]) -> Option<String> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(start).ok()?;
    let has = |part: &str| {
        object
            .keys()
            .any(|key| key.to_ascii_lowercase().contains(part))
    };
    let is_error = has("error") || has("message") || has("detail") || has("fault");
    let has_url = object.contains_key("url") || object.contains_key("requested_url");
    let is_fetched = has("link") || has("status") || has("time") || has("fetched");
    (is_error && !(has_url && is_fetched))
        .then(|| "it is one JSON object with an error message, and no record of a fetch".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Magics as in the formats' specifications.
    #[test]
    fn files_are_named() {
        let tar = [&[b'a'; 257][..], b"ustar\x0000"].concat();
        // A name, mode 644, owners 0, a size of 9 and no time: digits and NULs, whose sum is written into it.
        let mut old_tar = [0; 512];
        old_tar[..6].copy_from_slice(b"a.warc");
        old_tar[100..107].copy_from_slice(b"0000644");
        old_tar[124..135].copy_from_slice(b"00000000011");
        let sum: u32 = old_tar.iter().map(|&byte| u32::from(byte)).sum::<u32>() + 8 * 32;
        old_tar[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
        let wide = |to: fn(u16) -> [u8; 2]| -> Vec<u8> {
            "{\"url\":1}\n".encode_utf16().flat_map(to).collect()
        };
        for (head, name) in [
            (&b"PK\x03\x04\x14\0"[..], "ZIP"),
            (b"BZh91AY&SY\0", "bzip2"),
            (b"BZh9\x17rE8P\x90", "bzip2"),
            (b"\xfd7zXZ\0\0\x04", "xz"),
            (b"7z\xbc\xaf\x27\x1c\0\x04", "7z"),
            (b"\x04\x22\x4d\x18\x64", "LZ4"),
            (b"\x1f\x9d\x90", "compress"),
            (b"Rar!\x1a\x07\x01\0", "RAR"),
            (b"ARROW1\0\0", "Arrow"),
            (b"SQLite format 3\0\x10", "SQLite"),
            (b"Obj\x01\x04", "Avro"),
            (b"ORC\x08", "ORC"),
            (b"\x1f\x8b\x08\0", "packed twice"),
            (b"\x28\xb5\x2f\xfd\x04", "packed twice"),
            (b"\x5d\0\0\x80\0\xff\xff", "LZMA"),
            (b"\x89PNG\r\n\x1a\n\0", "PNG"),
            (b"\xff\xd8\xff\xe0", "JPEG"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "OLE"),
            (b"\x7fELF\x02", "ELF"),
            (b"\x89CZA\r\n\x1a\n", "crawl archive"),
            (&tar, "tar"),
            (&old_tar, "tar"),
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
            (
                "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
                    .to_owned(),
                "Git LFS",
            ),
            (format!("{md5}  day.warc.gz\n"), "checksums"),
            (format!("{md5} *day.warc.gz\n"), "checksums"),
            (format!("{md5}\n"), "checksums"),
            (format!("MD5 (day.warc.gz) = {md5}\n"), "checksums"),
            (
                "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code></Error>".to_owned(),
                "AccessDenied",
            ),
            ("<!DOCTYPE html><title>404</title>".to_owned(), "HTML"),
            ("{\"error\":{\"code\":403}}\n".to_owned(), "error message"),
            ("{\"message\":\"Not Found\"}".to_owned(), "error message"),
            (
                "{\"message\":\"Not Found\",\"documentation_url\":\"https://docs.example/\",\"status\":\"404\"}"
                    .to_owned(),
                "error message",
            ),
            (
                "{\"error\":\"unauthorized\",\"url\":\"http://a.example/day.jsonl\"}".to_owned(),
                "error message",
            ),
        ] {
            assert!(text(head.as_bytes()).unwrap().contains(name), "{name}");
        }
        for head in [
            "a b\n",
            "{\"url\":\"http://a.example/\",\"status\":500,\"error\":\"x\"}",
            "{\"url\":\"http://a.example/\",\"links\":[],\"message\":\"x\"}",
            "{\"error\":1}\n{\"url\":2}",
            "1 2\n",
        ] {
            assert_eq!(text(head.as_bytes()), None, "{head}");
        }
    }
}
