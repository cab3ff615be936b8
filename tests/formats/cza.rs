//! `formats/cza.md` against the bytes of archives.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
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
            let ppmd = part == "names" && flags & 8 == 8;
            assert_eq!(
                streams(&file[at..at + len], ppmd).len(),
                streams_of(part, flags)
            );
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

/// The streams of a part, unpacked; `ppmd`: PPMd packed the last one.
fn streams(mut part: &[u8], ppmd: bool) -> Vec<Vec<u8>> {
    let mut streams = Vec::new();
    while !part.is_empty() {
        let number = |at: usize| u32::from_le_bytes(part[at..at + 4].try_into().unwrap()) as usize;
        let (raw, packed) = (number(0), number(4));
        let body = &part[8..8 + packed];
        let is_last = part.len() == 8 + packed;
        let unpacked = match packed == raw {
            true => body.to_vec(),
            false if ppmd && is_last => {
                let mut text = vec![0; raw];
                let mut decoder = ppmd_rust::Ppmd7Decoder::new(body, 4, 8 << 20).unwrap();
                decoder.read_exact(&mut text).unwrap();
                text
            }
            false => zstd::decode_all(body).unwrap(),
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
        "names" => names_streams("Names part"),
        _ => 2 * columns_of(flags).len(),
    }
}

/// The columns of a records part, in their order. Classes and counts of hosts may be left out.
fn columns_of(flags: u64) -> Vec<String> {
    let heading = match flags & 16 {
        0 => "Records part without hosts",
        _ => "Records part",
    };
    let rows = table("cza.md", heading);
    let told = |row: &&Vec<String>| match &*row[0] {
        "class" => flags & 2 == 2,
        "before" => flags & 32 == 32,
        _ => true,
    };
    rows.iter().filter(told).map(|row| row[0].clone()).collect()
}

/// As many streams as a table of streams and columns has.
fn names_streams(heading: &str) -> usize {
    let rows = table("cza.md", heading);
    rows.iter()
        .map(|row| 1 + usize::from(row[1] == "column"))
        .sum()
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

/// The names of a part as they are told, and its words, read by nothing but what the specification says. `hosts`:
/// the host of each name, if there are any, and whether it is told with it.
fn names_of(part: &[u8], flags: u64, hosts: &[(usize, bool)]) -> (Vec<String>, Vec<Vec<u8>>) {
    let streams = streams(part, flags & 8 == 8);
    let shared = column(&streams[0], &streams[1]);
    let mut all_words = Vec::new();
    let added: Vec<Vec<u8>> = if flags & 4 == 4 {
        assert_eq!(streams.len(), names_streams("Names part"));
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
        let texts = lines(&streams[3]);
        let added = texts
            .iter()
            .map(|text| text.iter().flat_map(word).collect());
        let added = added.collect();
        all_words.extend(words);
        added
    } else {
        assert_eq!(streams.len(), names_streams("Names part without words"));
        let mut text = &streams[4][..];
        let lengths = column(&streams[2], &streams[3]);
        lengths
            .iter()
            .map(|&len| text.split_off(..len).unwrap().to_vec())
            .collect()
    };
    assert_eq!(shared.len(), added.len());
    let mut last: HashMap<usize, Vec<u8>> = HashMap::new();
    let mut names = Vec::new();
    for (at, (shared, added)) in shared.into_iter().zip(added).enumerate() {
        let (host, is_new) = hosts.get(at).copied().unwrap_or((0, false));
        let mut name = last.remove(&host).unwrap_or_default();
        name.truncate(shared);
        name.extend(added);
        names.push(String::from_utf8(name.clone()).unwrap());
        let site = if is_new {
            site(&names[at], flags).len()
        } else {
            0
        };
        last.insert(host, name.split_off(site));
    }
    (names, all_words)
}

/// The host of a whole name.
fn site(name: &str, flags: u64) -> &str {
    if flags & 64 == 0 {
        return "";
    }
    let authority = name.find("://").map_or(0, |at| at + 3);
    match name[authority..].find('/') {
        Some(slash) => &name[..=authority + slash],
        None => name,
    }
}

/// A record as it is told: the page, the time, the targets, and how many links there are to the page itself.
type Told = (String, Option<i64>, Vec<String>, usize);

/// An archive whose blocks have hosts, read as the specification says.
#[derive(Default)]
struct Archive {
    names: Vec<String>,
    /// The name of each host, and its names.
    hosts: Vec<(String, Vec<usize>)>,
    records: Vec<Told>,
    words: Vec<Vec<u8>>,
}

/// A page or target: a name, or a place on the host of the list's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Target {
    Name(usize),
    Place(usize),
}

/// A list, with the class of each target while it is known, and its five counts.
type List = (Vec<(Target, Option<usize>)>, [i64; 5]);

/// The records part of a block while it is read.
struct Block {
    counted: bool,
    columns: HashMap<String, std::vec::IntoIter<usize>>,
    first_name: usize,
    hosts: usize,
    /// The last host that was told by a number.
    other: Option<usize>,
    /// How many names there are on each host that was told.
    names: HashMap<usize, usize>,
    /// The host of each new name, and whether it is new with it.
    new: Vec<(usize, bool)>,
    last_page: Option<usize>,
    last_place: HashMap<usize, i64>,
    last_time: i64,
    shapes: Vec<[usize; 8]>,
    lists: Vec<List>,
    /// The class of a target in the last list where it was told.
    classes: HashMap<Target, usize>,
}

fn signed(n: usize) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

impl Block {
    fn new(records: &[u8], flags: u64, first_name: usize, hosts: usize) -> Block {
        assert_eq!(flags & 16, 16);
        let streams = streams(records, false);
        let numbers = streams.chunks(2).map(|told| column(&told[0], &told[1]));
        let names = columns_of(flags).into_iter();
        Block {
            counted: flags & 32 == 32,
            columns: names.zip(numbers.map(Vec::into_iter)).collect(),
            first_name,
            hosts,
            other: None,
            names: HashMap::new(),
            new: Vec::new(),
            last_page: None,
            last_place: HashMap::new(),
            last_time: 0,
            shapes: Vec::new(),
            lists: Vec::new(),
            classes: HashMap::new(),
        }
    }

    fn next(&mut self, column: &str) -> usize {
        self.columns.get_mut(column).unwrap().next().unwrap()
    }

    /// The next host that is told, and whether it is new.
    fn host(&mut self, expected: Option<usize>) -> (usize, bool) {
        let number = self.next("host");
        let host = match number {
            0 => expected.unwrap(),
            1 => self.hosts,
            2 => self.other.unwrap(),
            n => n - 3,
        };
        if number > 0 {
            self.other = Some(host);
        }
        self.hosts += usize::from(number == 1);
        assert!(host < self.hosts);
        if !self.names.contains_key(&host) {
            let before = match self.counted && number != 1 {
                true => self.next("before"),
                false => 0,
            };
            self.names.insert(host, before);
        }
        (host, number == 1)
    }

    /// The next new name, as it is told in a list of a page on `host`.
    fn add(&mut self, (on, is_new): (usize, bool), host: usize) -> Target {
        let name = self.first_name + self.new.len();
        self.new.push((on, is_new));
        let names = self.names.get_mut(&on).unwrap();
        *names += 1;
        match self.counted && on == host {
            true => Target::Place(*names - 1),
            false => Target::Name(name),
        }
    }

    /// The next record: the host of its page, and what [`Told`] has.
    fn record(&mut self, froms: [usize; 2]) -> (usize, Target, Option<i64>, Vec<Target>, usize) {
        let kind = self.next("kind");
        assert!(kind < 4, "the samples have records of pages only");
        let page = self.next("page");
        let (on, is_new) = self.host(self.last_page);
        self.last_page = Some(on);
        let page = match page {
            0 => self.add((on, is_new), on),
            n => {
                let place = self.last_place.entry(on).or_insert(0);
                *place += signed(n - 1);
                Target::Place(*place as usize)
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
            let (list, counts) = self.list(on, page, froms);
            (targets, own) = (list.iter().map(|link| link.0).collect(), counts[0] as usize);
            self.lists.push((list, counts));
        }
        (on, page, time, targets, own)
    }

    fn list(&mut self, on: usize, page: Target, froms: [usize; 2]) -> List {
        let known = [self.first_name + self.new.len(), self.names[&on]];
        let back = self.next("copy");
        let (mut targets, mut counts) = match back {
            0 => (Vec::new(), [0; 5]),
            _ => self.lists[self.lists.len() - back].clone(),
        };
        if back > 0 {
            let mut list = std::mem::take(&mut targets);
            let mut copying = true;
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
        }
        let shape = match self.next("shape") {
            0 => {
                let lens = ["rest_count", "local_count", "new"];
                let counts = ["own", "repeated", "scheme", "invalid", "too_long"];
                let parts: Vec<&str> = lens.into_iter().chain(counts).collect();
                let shape: Vec<usize> = parts.into_iter().map(|part| self.next(part)).collect();
                self.shapes.push(shape.try_into().unwrap());
                self.shapes[self.shapes.len() - 1]
            }
            n => self.shapes[n - 1],
        };
        let page_place = match page {
            Target::Place(place) => place as i64,
            Target::Name(_) => 0,
        };
        let mut told = |which: usize, names: [&str; 2]| {
            let mut all: Vec<usize> = Vec::new();
            for nth in 0..shape[which] {
                all.push(match (nth, froms[which]) {
                    (0, 1) => (page_place + signed(self.next(names[0]))) as usize,
                    (0, _) => self.next(names[0]),
                    _ => all[nth - 1] + self.next(names[1]) + 1,
                });
            }
            if froms[which] == 2 {
                all = all.iter().rev().map(|&n| known[which] - 1 - n).collect();
            }
            all
        };
        let rest = told(0, ["rest", "rest_gap"]);
        let local = told(1, ["local", "local_gap"]);
        targets.extend(rest.into_iter().map(|name| (Target::Name(name), None)));
        targets.extend(local.into_iter().map(|place| (Target::Place(place), None)));
        for _ in 0..shape[2] {
            let host = self.host(Some(on));
            targets.push((self.add(host, on), None));
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
            self.tell_classes(on, &mut targets);
        }
        (targets, counts)
    }

    /// Reads the classes of a list. In the samples they say no more than whether a target is on the page's host.
    fn tell_classes(&mut self, on: usize, targets: &mut [(Target, Option<usize>)]) {
        let mut before = 0;
        for (target, class) in targets {
            let on_host = match *target {
                Target::Place(_) => true,
                Target::Name(name) => {
                    let new = name.checked_sub(self.first_name);
                    new.is_some_and(|new| self.new[new].0 == on)
                }
            };
            let told = self.next("class");
            let foreseen = match *class {
                Some(copied) => copied,
                None => match self.classes.get(target) {
                    Some(&last) => last,
                    None => before & !1 | usize::from(on_host),
                },
            };
            if class.is_none() {
                self.classes.insert(*target, told ^ foreseen);
            }
            before = told ^ foreseen;
            *class = Some(before);
            assert_eq!(before, usize::from(on_host), "{target:?}");
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
            assert_eq!(field("first_host"), archive.hosts.len());
            let froms = [field("from"), field("local_from")];
            let (names, records) = file[at..at + names + records].split_at(names);
            archive.block(names, records, field("flags") as u64, froms);
            at += names.len() + records.len();
        }
        archive
    }

    fn block(&mut self, names: &[u8], records: &[u8], flags: u64, froms: [usize; 2]) {
        let mut block = Block::new(records, flags, self.names.len(), self.hosts.len());
        let mut told = Vec::new();
        for _ in 0..block.columns["kind"].len() {
            told.push(block.record(froms));
        }
        for (name, mut column) in block.columns {
            assert!(column.next().is_none(), "{name}");
        }
        let new_hosts = block.new;
        let (names, words) = names_of(names, flags, &new_hosts);
        self.words.extend(words);
        for (name, (on, is_new)) in names.into_iter().zip(new_hosts) {
            let number = self.names.len();
            if is_new {
                self.hosts
                    .push((site(&name, flags).to_owned(), vec![number]));
                self.names.push(name);
            } else {
                let (site, all) = &mut self.hosts[on];
                all.push(number);
                self.names.push(format!("{site}{name}"));
            }
        }
        for (on, page, time, targets, own) in told {
            let name = |target: &Target| match *target {
                Target::Name(name) => self.names[name].clone(),
                Target::Place(place) => self.names[self.hosts[on].1[place]].clone(),
            };
            let record = (name(&page), time, targets.iter().map(name).collect(), own);
            self.records.push(record);
        }
    }
}

/// What the records of a sample say: see [`Told`]. All targets but the page are once in the list, which ends
/// with the page if it links to itself.
fn records_of(sample: &str) -> Vec<Told> {
    let text = fs::read_to_string(folder().join(sample)).unwrap();
    let record = |line: &str| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let page = record["url"].as_str().unwrap().to_owned();
        let host = &page[..page[8..].find('/').unwrap() + 8];
        let (mut targets, mut own) = (Vec::new(), 0);
        for link in record["links"].as_array().unwrap_or(&Vec::new()) {
            let link = link.as_str().unwrap();
            let target = match link.starts_with('/') {
                true => format!("{host}{link}"),
                false => link.to_owned(),
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

/// Names, times and links, with and without counts of hosts, are those of the records that the samples were made of.
#[test]
fn records_are_told_as_specified() {
    let mut flags = Vec::new();
    for sample in ["words", "hosts"] {
        let mut expected = records_of(&format!("{sample}.jsonl"));
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
        assert_eq!(found, expected);
        if sample == "words" {
            let is_garden = |word: &Vec<u8>| word.ends_with(b"garden");
            assert!(archive.words.iter().any(is_garden));
        }
        flags.extend(flags_of(&file));
    }
    let counted: Vec<bool> = flags.iter().map(|flags| flags & 32 == 32).collect();
    assert!(counted.contains(&true) && counted.contains(&false));
}

/// The flags of each block.
fn flags_of(file: &[u8]) -> Vec<u64> {
    let block = Fields::of("cza.md", "Block head");
    let mut at = Fields::of("cza.md", "Header").size;
    let mut flags = Vec::new();
    while file[at..].starts_with(b"CZAB") {
        let head = &file[at..at + block.size];
        flags.push(block.number(head, "flags"));
        let parts = ["names_len", "records_len"].map(|len| block.number(head, len));
        at += block.size + parts.iter().sum::<u64>() as usize;
    }
    flags
}

/// Names of earlier versions, which had no hosts.
#[test]
fn names_of_earlier_versions_are_told_as_specified() {
    let block = Fields::of("cza.md", "Block head");
    for version in ["version-1", "version-2", "version-3"] {
        let file = fs::read(folder().join(format!("{version}.cza"))).unwrap();
        let mut at = Fields::of("cza.md", "Header").size;
        let mut names = Vec::new();
        while file[at..].starts_with(b"CZAB") {
            let head = &file[at..at + block.size];
            let len = |part| block.number(head, part) as usize;
            let (names_len, records_len) = (len("names_len"), len("records_len"));
            let part = &file[at + block.size..][..names_len];
            // Without hosts a name shares with the one before.
            names.extend(names_of(part, block.number(head, "flags"), &[]).0);
            at += block.size + names_len + records_len;
        }
        let expected = [
            "http://a.example/",
            "http://a.example/b",
            "http://a.example/c",
            "http://b.example/",
            "http://b.example/x",
            "http://a.example/new",
        ];
        assert_eq!(names, expected, "{version}");
    }
}

/// The kinds' numbers are the order of the reasons: that order is part of the format.
#[test]
fn kinds_of_records_are_those_of_the_table() {
    let rows = table("cza.md", "Kinds");
    assert_eq!(rows.len(), 5 + Reason::ALL.len());
    for (reason, row) in Reason::ALL.iter().zip(&rows[5..]) {
        assert_eq!(row[0], (5 + *reason as usize).to_string());
        // What is no longer written is said behind the name.
        let name = row[1].split('.').next();
        assert_eq!(name, Some(&*format!("skipped: {}", reason.name())));
    }
}
