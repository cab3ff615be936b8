//! `formats/cza.md` against the bytes of archives.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use cashrank::decode::Reason;
use xxhash_rust::xxh3::xxh3_64;

use super::{Fields, table};

#[test]
fn a_reader_made_from_the_archive_tables_reads_archives() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples/good/cza/crawl.cza");
    let file = fs::read(path).unwrap();
    let [header, block, end, entry, tail] = ["Header", "Block head", "End", "Entry", "Tail"]
        .map(|heading| Fields::of("cza.md", heading));
    let sealed = |fields: &Fields, head: &[u8]| {
        let (summed, _) = fields.at["checksum"];
        assert_eq!(xxh3_64(&head[..summed]), fields.number(head, "checksum"));
        fields.number(head, "checksum")
    };
    let head = &file[..header.size];
    assert_eq!(header.bytes(head, "magic"), b"\x89CZA\r\n\x1a\n");
    assert_eq!(header.number(head, "version"), 4);
    let defaults = cashrank::Limits::default();
    assert_eq!(header.number(head, "line_bytes"), defaults.line_bytes);
    assert_eq!(header.number(head, "url_bytes"), defaults.url_bytes);
    assert_eq!(header.number(head, "links"), defaults.links);
    let mut before = sealed(&header, head);

    let (mut at, mut records, mut names, mut links) = (header.size, 0, 0, 0);
    let mut entries = Vec::new();
    while file[at..].starts_with(b"CZAB") {
        let head = &file[at..at + block.size];
        assert_eq!(block.number(head, "before"), before);
        assert_eq!(block.number(head, "first_record"), records);
        assert_eq!(block.number(head, "first_name"), names);
        entries.push([at as u64, records, names, links]);
        before = sealed(&block, head);
        at += block.size;
        for part in ["names", "records"] {
            let len = block.number(head, &format!("{part}_len")) as usize;
            let sum = block.number(head, &format!("{part}_sum"));
            assert_eq!(xxh3_64(&file[at..at + len]), sum);
            let flags = block.number(head, "flags");
            assert_eq!(flags & !3, 52);
            let found = streams(&file[at..at + len]).len();
            assert_eq!(found, streams_of(part, flags));
            at += len;
        }
        records += block.number(head, "records");
        names += block.number(head, "names");
        links += block.number(head, "links");
    }
    // What `samples/good/cza/crawl.cza.expected` says: skipped and other records count here.
    assert_eq!((entries.len(), records, names, links), (3, 9, 6, 14));

    let head = &file[at..at + end.size];
    assert_eq!(end.bytes(head, "tag"), b"CZAE");
    sealed(&end, head);
    let totals = ["blocks", "records", "names", "links", "before"];
    let found = totals.map(|field| end.number(head, field));
    assert_eq!(found, [3, records, names, links, before]);
    let index = &file[at + end.size..][..3 * entry.size];
    assert_eq!(xxh3_64(index), end.number(head, "entries_sum"));
    for (bytes, expected) in index.chunks(entry.size).zip(&entries) {
        let fields = ["offset", "first_record", "first_name", "first_link"];
        assert_eq!(fields.map(|field| entry.number(bytes, field)), *expected);
    }
    let last = &file[file.len() - tail.size..];
    assert_eq!(tail.number(last, "length") as usize, file.len() - at);
    assert_eq!(tail.bytes(last, "magic"), b"\r\n\x1aCZA\x89\n");
    assert_eq!(file.len() - at, end.size + index.len() + tail.size);
}

/// The streams of a part, unpacked.
fn streams(mut part: &[u8]) -> Vec<Vec<u8>> {
    let mut streams = Vec::new();
    while !part.is_empty() {
        let number = |at: usize| u32::from_le_bytes(part[at..at + 4].try_into().unwrap()) as usize;
        let (raw, packed) = (number(0), number(4));
        let body = &part[8..8 + packed];
        let unpacked = if packed == raw {
            body.to_vec()
        } else {
            zstd::decode_all(body).unwrap()
        };
        assert_eq!(unpacked.len(), raw);
        streams.push(unpacked);
        part = &part[8 + packed..];
    }
    streams
}

/// As many streams as the part's table has rows; a column is two.
fn streams_of(part: &str, flags: u64) -> usize {
    match part {
        "names" => {
            let rows = table("cza.md", "Names part");
            let streams = rows.iter().map(|row| 1 + usize::from(row[1] == "column"));
            streams.sum()
        }
        _ => 2 * columns_of(flags).len(),
    }
}

/// The columns of a records part, in their order. Classes and what was out of scope may be left out.
fn columns_of(flags: u64) -> Vec<String> {
    let rows = table("cza.md", "Records part");
    let there = |row: &&Vec<String>| match &*row[0] {
        "class" => flags & 2 > 0,
        "out_of_scope" => flags & 128 > 0,
        _ => true,
    };
    rows.iter()
        .filter(there)
        .map(|row| row[0].clone())
        .collect()
}

/// The numbers of a column of one-byte tokens and open bits.
fn column(tokens: &[u8], open: &[u8]) -> Vec<usize> {
    let mut bits = open
        .iter()
        .flat_map(|byte| (0..8).map(move |bit| (byte >> bit) & 1));
    let number = |&token: &u8| {
        let token = usize::from(token);
        if token < 8 {
            return token;
        }
        let high = 3 + (token - 8) / 4;
        let open = bits.by_ref().take(high - 2).enumerate();
        let open: usize = open.map(|(at, bit)| usize::from(bit) << at).sum();
        (1 << high) + (((token - 8) % 4) << (high - 2)) + open
    };
    let numbers = tokens.iter().map(number).collect();
    assert!(bits.count() < 8, "more bits than its tokens leave open");
    numbers
}

/// The names of a part, and its words, read by nothing but what the specification says.
fn names_of(part: &[u8]) -> (Vec<String>, Vec<Vec<u8>>) {
    let streams = streams(part);
    let shared = column(&streams[0], &streams[1]);
    let lines = |stream: &[u8]| -> Vec<Vec<u8>> {
        let lines = stream.split_inclusive(|&byte| byte == b'\n');
        lines
            .map(|line| line.strip_suffix(b"\n").unwrap().to_vec())
            .collect()
    };
    let words = lines(&streams[2]);
    let word = |byte: &u8| match words.iter().find(|word| word[0] == *byte) {
        Some(word) => word[1..].to_vec(),
        None => vec![*byte],
    };
    let added = lines(&streams[3]);
    assert_eq!(shared.len(), added.len());
    let mut name = Vec::new();
    let mut names = Vec::new();
    for (shared, added) in shared.into_iter().zip(added) {
        name.truncate(shared);
        name.extend(added.iter().flat_map(word));
        names.push(String::from_utf8(name.clone()).unwrap());
    }
    (names, words)
}

/// A record: the page, the time, the targets, and how many links there are to the page itself.
type Said = (String, Option<i64>, Vec<String>, usize);

/// An archive, read as the specification says.
#[derive(Default)]
struct Archive {
    names: Vec<String>,
    records: Vec<Said>,
    words: Vec<Vec<u8>>,
}

/// A list, with the class of each target while it is known, and its six counts.
type List = (Vec<(usize, Option<usize>)>, [i64; 6]);

/// The records part of a block while it is read.
struct Block {
    columns: HashMap<String, std::vec::IntoIter<usize>>,
    first_name: usize,
    names: usize,
    last_page: i64,
    last_time: i64,
    shapes: Vec<[usize; 9]>,
    lists: Vec<List>,
    /// The page of each.
    pages: Vec<usize>,
    /// The class of a target in the last list where it was stored.
    classes: HashMap<usize, usize>,
}

fn signed(n: usize) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

impl Block {
    fn new(records: &[u8], flags: u64, first_name: usize) -> Block {
        let streams = streams(records);
        let numbers = streams.chunks(2).map(|pair| column(&pair[0], &pair[1]));
        let names = columns_of(flags).into_iter();
        Block {
            columns: names.zip(numbers.map(Vec::into_iter)).collect(),
            first_name,
            names: first_name,
            last_page: 0,
            last_time: 0,
            shapes: Vec::new(),
            lists: Vec::new(),
            pages: Vec::new(),
            classes: HashMap::new(),
        }
    }

    fn next(&mut self, column: &str) -> usize {
        self.columns.get_mut(column).unwrap().next().unwrap()
    }

    /// Passes over the host of the next page or new name: it is the only one.
    fn host(&mut self) {
        let expected = match (self.columns["before"].len(), self.names) {
            (1, _) => 3,
            (0, 0) => 1,
            _ => 0,
        };
        assert_eq!(self.next("host"), expected);
        if expected == 3 {
            assert_eq!(self.next("before"), self.first_name);
        }
    }

    fn record(&mut self, from: usize) -> (usize, Option<i64>, Vec<usize>, usize) {
        let kind = self.next("kind");
        assert!(kind < 4, "the samples have records of pages only");
        self.host();
        let page = match self.next("page") {
            0 => {
                self.names += 1;
                self.names - 1
            }
            n => {
                self.last_page += signed(n - 1);
                self.last_page as usize
            }
        };
        let time = match self.next("time") {
            0 => None,
            n => {
                self.last_time += signed(n - 1);
                Some(self.last_time)
            }
        };
        let (mut targets, mut own) = (Vec::new(), 0);
        if kind == 0 {
            let (list, counts) = self.list(page, from);
            (targets, own) = (list.iter().map(|link| link.0).collect(), counts[0] as usize);
            self.lists.push((list, counts));
            self.pages.push(page);
        }
        (page, time, targets, own)
    }

    fn list(&mut self, page: usize, from: usize) -> List {
        let known = self.names;
        let (mut targets, mut counts) = self.copy();
        let shape = match self.next("shape") {
            0 => {
                let lens = ["elsewhere_count", "known_count", "new"];
                let counts = ["own", "repeated", "scheme", "invalid", "too_long"];
                let parts: Vec<&str> = lens.into_iter().chain(counts).collect();
                let mut shape: Vec<usize> = parts.into_iter().map(|part| self.next(part)).collect();
                let is_scoped = self.columns.contains_key("out_of_scope");
                shape.push(if is_scoped {
                    self.next("out_of_scope")
                } else {
                    0
                });
                self.shapes.push(shape.try_into().unwrap());
                self.shapes[self.shapes.len() - 1]
            }
            n => self.shapes[n - 1],
        };
        assert_eq!(shape[0], 0);
        let mut all: Vec<usize> = Vec::new();
        for nth in 0..shape[1] {
            all.push(match (nth, from) {
                (0, 1) => (page as i64 + signed(self.next("known"))) as usize,
                (0, _) => self.next("known"),
                _ => all[nth - 1] + self.next("gap") + 1,
            });
        }
        if from == 2 {
            all = all.iter().rev().map(|&n| known - 1 - n).collect();
        }
        targets.extend(all.into_iter().map(|target| (target, None)));
        for _ in 0..shape[2] {
            self.host();
            targets.push((self.names, None));
            self.names += 1;
        }
        for (count, &n) in counts.iter_mut().zip(&shape[3..]) {
            *count += signed(n);
        }
        if counts[0] > 0 {
            let moved = targets.iter().find(|link| link.0 == page).copied();
            targets.retain(|link| link.0 != page);
            targets.push(moved.unwrap_or((page, Some(1))));
        }
        if self.columns.contains_key("class") {
            self.read_classes(&mut targets);
        }
        (targets, counts)
    }

    /// What a list copies from an earlier one, and the counts of that.
    fn copy(&mut self) -> List {
        let back = self.next("copy");
        if back == 0 {
            return (Vec::new(), [0; 6]);
        }
        let (mut list, counts) = self.lists[self.lists.len() - back].clone();
        let (mut targets, mut copying) = (Vec::new(), true);
        for _ in 0..self.next("run_count") {
            let rest = list.split_off(self.next("run"));
            if copying {
                targets.extend(list);
            }
            (list, copying) = (rest, !copying);
        }
        if copying {
            targets.extend(list);
        }
        (targets, counts)
    }

    /// Reads the classes of a list.
    fn read_classes(&mut self, targets: &mut [(usize, Option<usize>)]) {
        let mut before = 0;
        for (target, class) in targets {
            let stored = self.next("class");
            let foreseen = class
                .or_else(|| self.classes.get(target).copied())
                .unwrap_or(before | 1);
            before = stored ^ foreseen;
            if class.is_none() {
                self.classes.insert(*target, before);
            }
            *class = Some(before);
        }
    }
}

impl Archive {
    fn read(file: &[u8]) -> Archive {
        let block = Fields::of("cza.md", "Block head");
        let mut archive = Archive::default();
        let mut at = Fields::of("cza.md", "Header").size;
        while file[at..].starts_with(b"CZAB") {
            let head = &file[at..at + block.size];
            let field = |name| block.number(head, name) as usize;
            at += block.size;
            let (names, records) = (field("names_len"), field("records_len"));
            let before = usize::from(!archive.names.is_empty());
            assert_eq!((field("elsewhere"), field("hosts_before")), (0, before));
            let (names, records) = file[at..at + names + records].split_at(names);
            archive.block(names, records, field("flags") as u64, field("from"));
            at += names.len() + records.len();
        }
        archive
    }

    fn block(&mut self, names: &[u8], records: &[u8], flags: u64, from: usize) {
        let mut block = Block::new(records, flags, self.names.len());
        let mut records = Vec::new();
        for _ in 0..block.columns["kind"].len() {
            records.push(block.record(from));
        }
        for (name, mut column) in block.columns {
            assert!(column.next().is_none(), "{name}");
        }
        let (names, words) = names_of(names);
        self.words.extend(words);
        self.names.extend(names);
        assert_eq!(self.names.len(), block.names);
        // The classes in the samples say no more than whether a target is on the page's host.
        let host = |name: usize| self.names[name].split('/').nth(2);
        for ((list, _), page) in block.lists.iter().zip(block.pages) {
            for &(target, class) in list {
                let same = usize::from(host(target) == host(page));
                assert!(class.is_none_or(|class| class == same));
            }
        }
        for (page, time, targets, own) in records {
            let name = |&name: &usize| self.names[name].clone();
            let record = (name(&page), time, targets.iter().map(name).collect(), own);
            self.records.push(record);
        }
    }
}

/// What the records of a sample say: see [`Said`]. All targets but the page are once in the list, which ends
/// with the page if it links to itself.
fn records_of(sample: &str) -> Vec<Said> {
    let text = fs::read_to_string(folder().join(sample)).unwrap();
    let record = |line: &str| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let page = record["url"].as_str().unwrap().to_owned();
        let host = &page[..page[8..].find('/').unwrap() + 8];
        let (mut targets, mut own) = (Vec::new(), 0);
        for link in record["links"].as_array().unwrap_or(&Vec::new()) {
            let link = link.as_str().unwrap();
            let target = if link.starts_with('/') {
                format!("{host}{link}")
            } else {
                link.to_owned()
            };
            if target == page {
                own += 1;
            } else if !targets.contains(&target) {
                targets.push(target);
            }
        }
        if own > 0 {
            targets.push(page.clone());
        }
        (page, record["fetched_at"].as_i64(), targets, own)
    };
    text.lines().map(record).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples/good/cza")
}

/// Names, times and links are those of the records that the samples were made of; one was made by version 0.1.
#[test]
fn records_are_stored_as_specified() {
    for (sample, records) in [
        ("words", "words"),
        ("hosts", "hosts"),
        ("hosts-0.1", "hosts"),
    ] {
        let mut expected = records_of(&format!("{records}.jsonl"));
        let file = fs::read(folder().join(format!("{sample}.cza"))).unwrap();
        let archive = Archive::read(&file);
        let mut names: Vec<&String> = Vec::new();
        for (page, _, targets, _) in &expected {
            let all = std::iter::once(page).chain(targets);
            for name in all {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        assert_eq!(archive.names.iter().collect::<Vec<_>>(), names);
        let mut found = archive.records;
        for (_, _, targets, own) in expected.iter_mut().chain(&mut found) {
            let others = targets.len() - usize::from(*own > 0);
            targets[..others].sort();
        }
        assert_eq!(found, expected, "{sample}");
        if sample == "words" {
            let is_garden = |word: &Vec<u8>| word.ends_with(b"garden");
            assert!(archive.words.iter().any(is_garden));
        }
    }
}

/// The kinds' numbers are the order of the reasons: that order is part of the format.
#[test]
fn kinds_of_records_are_those_of_the_table() {
    let rows = table("cza.md", "Kinds");
    // Behind them is the kind of what was out of scope.
    assert_eq!(rows.len(), 5 + Reason::ALL.len() + 1);
    for (reason, row) in Reason::ALL.iter().zip(&rows[5..]) {
        assert_eq!(row[0], (5 + *reason as usize).to_string());
        // What is no longer written is said behind the name.
        let name = row[1].split('.').next();
        assert_eq!(name, Some(&*format!("skipped: {}", reason.name())));
    }
}
