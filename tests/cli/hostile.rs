//! Hostile input against the real binary: any input is read to its end or refused with a reason, and peak memory
//! exceeds that of an ordinary crawl of as many pages by at most 256 MB. Speeds are printed (`--nocapture`) but not
//! tested.
//!
//! The default sizes are small; `cargo test --release hostile -- --ignored --nocapture` uses a gigabyte and a million
//! of everything.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Stdio;

use crate::support::{Done, Lab, Measured, gzip, zstandard};

/// Maximum memory of a hostile input in excess of an ordinary one, in KiB.
const MARGIN_KIB: u64 = 256_000_000 / 1024;

#[derive(Clone, Copy)]
struct Scale {
    /// Length of bombs and of endless lines, in bytes.
    bytes: u64,
    /// Number of links and URLs.
    many: u64,
}

const DAILY: Scale = Scale {
    bytes: 200_000_000,
    many: 150_000,
};

const FULL: Scale = Scale {
    bytes: 1_200_000_000,
    many: 1_000_000,
};

/// Writes a file piece by piece.
fn write(lab: &Lab, name: &str, fill: impl FnOnce(&mut dyn Write)) {
    let mut out = BufWriter::new(File::create(lab.path(name)).unwrap());
    fill(&mut out);
    out.flush().unwrap();
}

fn repeat(out: &mut dyn Write, byte: u8, count: u64) {
    let block = vec![byte; 1 << 20];
    for _ in 0..count >> 20 {
        out.write_all(&block).unwrap();
    }
    out.write_all(&block[..(count % (1 << 20)) as usize])
        .unwrap();
}

fn record(url: &str, links: impl Iterator<Item = String>) -> String {
    let links: Vec<String> = links.map(|link| format!("\"{link}\"")).collect();
    format!("{{\"url\":\"{url}\",\"links\":[{}]}}\n", links.join(","))
}

/// Returns an ordinary crawl of `pages` pages, with 20 links per record.
fn ordinary(pages: u64) -> String {
    let page = |n: u64| format!("http://host{}.example/page/{n}", n % 1_000);
    (0..pages / 20)
        .map(|n| record(&page(20 * n), (0..20).map(|k| page(20 * n + k))))
        .collect()
}

/// Ingests `file` into a store of its own; its peak memory must be within the margin.
fn ingest(lab: &Lab, file: &str, options: &str, ordinary: &Measured) -> Done {
    let line = format!("ingest {file} --store {file}.store {options}");
    let run = lab.measure(&line, Stdio::null());
    judge(lab, file, run, ordinary, MARGIN_KIB)
}

fn judge(lab: &Lab, file: &str, run: Measured, ordinary: &Measured, margin_kib: u64) -> Done {
    let bytes = std::fs::metadata(lab.path(file)).map_or(0, |found| found.len());
    eprintln!(
        "hostile: {file}: {bytes} bytes in {:.2?}, peak {} KiB; ordinary: {:.2?}, {} KiB",
        run.lasted, run.peak_kib, ordinary.lasted, ordinary.peak_kib
    );
    assert!(
        run.peak_kib <= ordinary.peak_kib + margin_kib,
        "{file}: peak {} KiB, ordinary {} KiB",
        run.peak_kib,
        ordinary.peak_kib
    );
    run.done
}

/// Reads an ordinary crawl of `pages` pages.
fn baseline(lab: &Lab, pages: u64) -> Measured {
    let name = format!("ordinary-{pages}");
    lab.file(&name, ordinary(pages));
    let run = lab.measure(
        &format!("ingest {name} --store {name}.store"),
        Stdio::null(),
    );
    assert_eq!(run.done.code, Some(0), "{:?}", run.done);
    run
}

fn bombs(scale: Scale) {
    let lab = Lab::on_disk();
    let few = baseline(&lab, 1_000);
    let good = record("http://a.example/", std::iter::once("/b".into()));
    for (kind, byte) in [("zeros", 0), ("line", b'x')] {
        write(&lab, &format!("{kind}.gz"), |out| {
            let mut out = flate2::write::GzEncoder::new(out, flate2::Compression::fast());
            repeat(&mut out, byte, scale.bytes);
            write!(out, "\n{good}").unwrap();
            out.finish().unwrap();
        });
        write(&lab, &format!("{kind}.zst"), |out| {
            let mut out = zstd::Encoder::new(out, 1).unwrap();
            // Maximum that the default limit allows.
            out.window_log(27).unwrap();
            out.include_checksum(true).unwrap();
            repeat(&mut out, byte, scale.bytes);
            write!(out, "\n{good}").unwrap();
            out.finish().unwrap();
        });
        for packing in ["gz", "zst"] {
            let file = format!("{kind}.{packing}");
            ingest(&lab, &file, "--format records", &few)
                .exits(3)
                .says(&["1 too-long", "--limit-line"]);
            assert_eq!(lab.stat(&format!("{file}.store"))["records"], 1, "{file}");
            // The limit on expansion applies before it.
            lab.run(&format!(
                "ingest {file} --format records --limit-expansion 1M --store {file}.tight"
            ))
            .exits(4)
            .says(&["--limit-expansion"]);
        }
    }
    // The same line through a pipe, uncompressed.
    let mut child = lab.start("ingest - --format records --store pipe");
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        repeat(&mut stdin, b'x', scale.bytes);
        write!(stdin, "\n{good}").unwrap();
    });
    let run = child.measure();
    feeder.join().unwrap();
    judge(&lab, "pipe", run, &few, MARGIN_KIB)
        .exits(3)
        .says(&["1 too-long"]);
    assert_eq!(lab.stat("pipe")["records"], 1);
}

fn huge_pages(scale: Scale) {
    let lab = Lab::on_disk();
    let (few, many) = (baseline(&lab, 1_000), baseline(&lab, scale.many));
    let pages = |name: &str| {
        lab.stat(&format!("{name}.store"))["pages"]
            .as_u64()
            .unwrap()
    };
    let far = |n: u64| format!("http://host{}.example/page/{n}", n % 1_000);
    lab.file(
        "distinct",
        record("http://a.example/", (0..scale.many).map(far)),
    );
    ingest(&lab, "distinct", "", &many).exits(0);
    assert_eq!(pages("distinct"), scale.many + 1);

    lab.file(
        "same",
        record("http://a.example/", (0..scale.many).map(|_| far(1))),
    );
    ingest(&lab, "same", "", &few).exits(0);
    assert_eq!(pages("same"), 2);

    let deep = format!("http://a.example/{}/", "d".repeat(20));
    let near = |n: u64| format!("p{n}");
    lab.file("relative", record(&deep, (0..scale.many).map(near)));
    ingest(&lab, "relative", "", &many).exits(0);
    assert_eq!(pages("relative"), scale.many + 1);

    // A few bytes that expand: each page's links take up to 64 MB once made absolute. The names take their space on
    // disk, not in memory, whatever the number of threads.
    let pages_of_8k: String = (0..10)
        .map(|n| {
            let base = format!("http://a.example/{n}/{}/", "d".repeat(8_000));
            record(&base, (0..8_000).map(near))
        })
        .collect();
    lab.file("expanding", pages_of_8k);
    let most = baseline(&lab, 80_000);
    ingest(&lab, "expanding", "--threads 8", &most).exits(0);
    assert_eq!(pages("expanding"), 80_010);
}

/// Regression: many lines as long as the limit allows, of links that take more memory than text, of nesting, of
/// nothing, took gigabytes, and more with every thread.
fn huge_lines(scale: Scale) {
    let lab = Lab::on_disk();
    let few = baseline(&lab, 1_000);
    let length = 60 << 20;
    let lines = scale.bytes.div_ceil(length).min(8);
    // Of lines of two bytes: at a hundred bytes each, a group of them takes more than half of the margin.
    let short = 3 << 20;
    let each = |name: &str, format: &str, front: &str, piece: &str, length: u64| {
        write(&lab, name, |out| {
            for _ in 0..lines {
                out.write_all(front.as_bytes()).unwrap();
                let block = piece.repeat((1 << 20) / piece.len());
                for _ in 0..length >> 20 {
                    out.write_all(block.as_bytes()).unwrap();
                }
                out.write_all(b"\n").unwrap();
            }
        });
        let line = format!("ingest {name} --store {name}.store --format {format} --threads 4");
        let run = lab.measure(&line, Stdio::null());
        let margin_kib = if length == short {
            MARGIN_KIB / 2
        } else {
            MARGIN_KIB
        };
        let done = judge(&lab, name, run, &few, margin_kib);
        std::fs::remove_file(lab.path(name)).unwrap();
        done
    };
    let links = "{\"url\":\"http://a.example/\",\"links\":[\"\"";
    each("empty-links", "records", links, ",\"\"", length).exits(3);
    each("nested", "records", "{\"x\":", "[", length).exits(3);
    each("junk", "records", "", "x", length).exits(3);
    each("successors", "adjacency", "a", "\tb", length)
        .exits(3)
        .says(&["too-many-links"]);
    // A group that consists mostly of non-links; a list of those took a hundred bytes per line.
    each("noise", "edges", "a\tb\n", "x\n", short).exits(3);
    each("inside", "edges", "a\tb\n", "x\ny\tb\ny\tb\nx\n", short)
        .exits(3)
        .says(&["lines inside its group are no links"]);
    // Every empty line is counted.
    each("blank", "records", "", "\n", short)
        .exits(3)
        .says(&["blank lines", "nothing was read"]);
}

/// URLs that collide under every hash `h = h * 31 + byte`, of any width, as in Java's strings: `Aa` and `BB` have the
/// same hash. A table with such a hash and no secret key would search half of all names for one.
fn colliding(scale: Scale) {
    let lab = Lab::on_disk();
    let bits = scale.many.ilog2();
    let crawl = |pair: [&str; 2]| -> String {
        let name = |n: u64| -> String {
            let path: String = (0..bits).map(|bit| pair[(n >> bit & 1) as usize]).collect();
            format!("http://a.example/{path}")
        };
        (0..(1 << bits) / 64)
            .map(|n: u64| record(&name(64 * n), (0..64).map(|k| name(64 * n + k))))
            .collect()
    };
    let hash = |text: &str| {
        let step = |hash: u64, byte: u8| hash.wrapping_mul(31).wrapping_add(byte.into());
        text.bytes().fold(0, step)
    };
    assert_eq!(hash("AaBBAa"), hash("BBAaAa"));
    lab.file("differing", crawl(["Aa", "BC"]));
    let ordinary = lab.measure("ingest differing --store d", Stdio::null());
    lab.file("colliding", crawl(["Aa", "BB"]));
    ingest(&lab, "colliding", "", &ordinary).exits(0);
    assert_eq!(lab.stat("colliding.store")["pages"], 1u64 << bits);
    assert_eq!(lab.stat("d")["pages"], 1u64 << bits);
}

/// HTML pages that are compressed in the archive, one chunk each: decompressed they take far more, and each decoder
/// must not hold one.
fn huge_bodies() {
    let lab = Lab::on_disk();
    let few = baseline(&lab, 1_000);
    let mut noise = 1_u64;
    let mut page = b"<html><a href=/b><!--".to_vec();
    page.extend((0..3 << 20).map(|_| {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        b'a' + (noise >> 60) as u8
    }));
    page.extend(b"--><p>");
    page.resize(32 << 20, 0xe9);
    let packed = gzip(&page);
    write(&lab, "bodies.warc", |out| {
        // More than there are decoders.
        for n in 0..10 {
            let http = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1\r\n\
                        Content-Encoding: gzip\r\n\r\n";
            write!(
                out,
                "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{n}\r\n\
                 Content-Length: {}\r\n\r\n{http}",
                http.len() + packed.len()
            )
            .unwrap();
            out.write_all(&packed).unwrap();
            out.write_all(b"\r\n\r\n").unwrap();
        }
    });
    ingest(&lab, "bodies.warc", "--threads 8", &few).exits(0);
    assert_eq!(lab.stat("bodies.warc.store")["pages"], 11);
}

fn odd_records() {
    let lab = Lab::on_disk();
    let few = baseline(&lab, 1_000);
    let good = |n: u32| {
        record(
            &format!("http://a.example/{n}"),
            std::iter::once("/b".into()),
        )
    };
    let long = "u".repeat(1 << 20);
    // By the reasons in the specification of records.
    let bad: Vec<(&str, Vec<u8>)> = vec![
        (
            "invalid-utf8",
            b"{\"url\":\"http://a.example/\xff\xfe\"}".to_vec(),
        ),
        ("invalid-utf8", b"\xf8\x88\x80\x80\x80".to_vec()),
        ("malformed", vec![0; 5_000]),
        ("malformed", b"{\"url\":\"http://a.example/\0\"}".to_vec()),
        ("malformed", "[".repeat(1 << 20).into_bytes()),
        ("malformed", "{\"a\":".repeat(1 << 20).into_bytes()),
        (
            "malformed",
            format!(
                "{{\"url\":\"http://a.example/\",\"x\":{}",
                "[".repeat(1 << 20)
            )
            .into_bytes(),
        ),
        (
            "malformed",
            b"{\"url\":\"http://a.example/\",\"time\":1e999999999}".to_vec(),
        ),
        (
            "malformed",
            b"{\"url\":\"http://a.example/\",\"status\":18446744073709551616}".to_vec(),
        ),
        (
            "url-too-long",
            format!("{{\"url\":\"http://a.example/{long}\"}}").into_bytes(),
        ),
    ];
    let mut text = Vec::new();
    for (n, (_, line)) in bad.iter().enumerate() {
        text.extend_from_slice(line);
        text.push(b'\n');
        text.extend_from_slice(good(n as u32).as_bytes());
    }
    // Invalid times cost the time, not the record.
    for time in ["1e300", "99999999999999999999999"] {
        text.extend_from_slice(b"{\"url\":\"http://a.example/\",\"time\":");
        text.extend_from_slice(format!("{time}}}\n").as_bytes());
    }
    // Links that are too long or are not URLs cost the link, not the record.
    text.extend(
        record(
            "http://b.example/",
            [format!("/{long}"), "http://[".into()].into_iter(),
        )
        .bytes(),
    );
    lab.file("odd", text);
    let done = ingest(&lab, "odd", "--format records", &few).exits(3);
    assert!(done.err.contains("2 records (bad-time)"), "{}", done.err);
    for reason in ["invalid-utf8", "malformed", "url-too-long"] {
        let count = bad.iter().filter(|(of, _)| *of == reason).count();
        assert!(
            done.err.contains(&format!("{count} {reason}")),
            "{reason}: {}",
            done.err
        );
    }
    let stat = lab.stat("odd.store");
    assert_eq!(stat["records"], bad.len() + 3);
    // The pages, their link target, that of the records with odd times, and the last one.
    assert_eq!(stat["pages"], bad.len() + 3);
}

fn tiny_members(scale: Scale) {
    let lab = Lab::on_disk();
    let few = baseline(&lab, 1_000);
    let text = record("http://a.example/", std::iter::once("/b".into()));
    let empty = crate::support::gzip(b"");
    for (name, unit, last) in [
        ("members.gz", empty, crate::support::gzip(text.as_bytes())),
        ("frames.zst", zstandard(b""), zstandard(text.as_bytes())),
        // A skippable frame without data.
        (
            "skippable.zst",
            [&0x184D_2A50u32.to_le_bytes()[..], &[0; 4]].concat(),
            zstandard(text.as_bytes()),
        ),
    ] {
        let first = last.clone();
        write(&lab, name, |out| {
            out.write_all(&first).unwrap();
            for _ in 0..3 * scale.many {
                out.write_all(&unit).unwrap();
            }
            out.write_all(&last).unwrap();
        });
        ingest(&lab, name, "", &few).exits(0);
        assert_eq!(lab.stat(&format!("{name}.store"))["records"], 2, "{name}");
    }
    // RFC 8878, 3.1.1.1: no size, no checksum; a window of 2^31 bytes.
    let huge = [&0xFD2F_B528u32.to_le_bytes()[..], &[0, 21 << 3, 1, 0, 0]].concat();
    lab.file("window.zst", &huge);
    ingest(&lab, "window.zst", "--format records", &few)
        .exits(4)
        .says(&["--limit-zstd-window to 31"]);
    // If allowed, it takes the memory it uses, not what it claims.
    ingest(
        &lab,
        "window.zst",
        "--format records --limit-zstd-window 31",
        &few,
    )
    .exits(3)
    .says(&["is empty"]);
}

#[test]
fn bombs_and_endless_lines_are_passed_over() {
    bombs(DAILY);
}

#[test]
fn pages_with_very_many_links_are_read() {
    huge_pages(DAILY);
}

#[test]
fn very_long_lines_take_little_memory() {
    // Two lines of each kind: a second one takes no memory beside the first.
    huge_lines(Scale {
        bytes: 110_000_000,
        ..DAILY
    });
}

#[test]
fn colliding_urls_are_like_others() {
    colliding(DAILY);
}

#[test]
fn pages_that_are_packed_are_unpacked_one_at_a_time() {
    huge_bodies();
}

#[test]
fn odd_records_are_skipped_and_counted() {
    odd_records();
}

#[test]
fn very_many_members_and_huge_windows() {
    tiny_members(DAILY);
}

#[test]
#[ignore = "takes minutes"]
fn all_at_full_size() {
    bombs(FULL);
    huge_pages(FULL);
    huge_lines(FULL);
    colliding(FULL);
    tiny_members(FULL);
}
