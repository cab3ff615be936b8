//! The names part of a block: text that names share is stored once, and frequent words are single bytes.
//!
//! A name begins with bytes of the name before it; what follows is in the text, up to its line feed. The words that
//! names are made of are written there as byte values that no name of the block has. So a word costs what a letter does,
//! where a reference to its last place would cost three bytes.

use std::collections::HashMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use super::Fault;
use super::column::{Column, Streams, put_stream};
use super::section::BlockHead;
use crate::batch::{Batch, Fingerprints};
use crate::codec::prefix;

/// Letters of a word that is given a byte.
const LETTERS: Range<usize> = 3..33;
/// A word is given a byte if it is there so often.
const FREQUENT: usize = 4;
/// So many different words are counted, the first ones: frequent ones come early, and memory is bounded.
const COUNTED: usize = 1 << 16;

/// Packs the names of `batch`.
pub(super) fn pack(batch: &Batch, zstd: &mut zstd::bulk::Compressor<'_>) -> Result<Vec<u8>, Fault> {
    let mut shared = Column::default();
    let mut text = Vec::new();
    let mut last: &[u8] = &[];
    for at in 0..batch.text_ends.len() {
        let name = batch.name(at as u32);
        let same = sharing(last, name);
        shared.put(same as u64);
        text.extend_from_slice(&name[same..]);
        text.push(b'\n');
        last = name;
    }
    let words = frequent_words(&text);
    let mut stored = Vec::new();
    for (code, word) in &words {
        stored.push(*code);
        stored.extend_from_slice(word);
        stored.push(b'\n');
    }
    let mut part = Vec::new();
    shared.put_into(&mut part, zstd)?;
    put_stream(&mut part, zstd, &stored)?;
    put_stream(&mut part, zstd, &in_codes(&text, &words)?)?;
    Ok(part)
}

/// Bytes that `name` shares with `last`, no word of it cut.
fn sharing(last: &[u8], name: &[u8]) -> usize {
    let same = prefix::shared(last, name);
    let (before, after) = name.split_at(same);
    if !after.first().is_some_and(u8::is_ascii_alphabetic) {
        return same;
    }
    let letters = before.iter().rev().take_while(|b| b.is_ascii_alphabetic());
    same - letters.count()
}

/// The most frequent words, each with a byte that is not in the text.
fn frequent_words(text: &[u8]) -> Vec<(u8, &[u8])> {
    let mut is_used = [false; 256];
    text.iter().for_each(|&b| is_used[usize::from(b)] = true);
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for word in text.split(|b| !b.is_ascii_alphabetic()) {
        if LETTERS.contains(&word.len()) {
            if let Some(count) = counts.get_mut(word) {
                *count += 1;
            } else if counts.len() < COUNTED {
                counts.insert(word, 1);
            }
        }
    }
    let mut words: Vec<_> = counts.into_iter().filter(|&(_, n)| n >= FREQUENT).collect();
    words.sort_unstable_by(|(one, n), (other, m)| m.cmp(n).then(one.cmp(other)));
    let codes = (0..=u8::MAX).rev().filter(|&b| !is_used[usize::from(b)]);
    codes.zip(words.into_iter().map(|(word, _)| word)).collect()
}

/// The text with words as their bytes: at each place the longest.
fn in_codes(text: &[u8], words: &[(u8, &[u8])]) -> Result<Vec<u8>, Fault> {
    let finder = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(words.iter().map(|(_, word)| word))
        .map_err(|error| Fault::new(error.to_string()))?;
    let mut coded = Vec::with_capacity(text.len());
    let mut at = 0;
    for found in finder.find_iter(text) {
        coded.extend_from_slice(&text[at..found.start()]);
        coded.push(words[found.pattern().as_usize()].0);
        at = found.end();
    }
    coded.extend_from_slice(&text[at..]);
    Ok(coded)
}

/// Unpacks names. Keeps its memory from one block to the next.
#[derive(Default)]
pub(super) struct Names {
    shared: Column,
    words: Words,
    text: Vec<u8>,
}

impl Names {
    /// Reads the names part of a block into `batch`.
    pub fn unpack(
        &mut self,
        part: &[u8],
        zstd: &mut zstd::bulk::Decompressor<'static>,
        head: &BlockHead,
        url_bytes: u64,
        fingerprints: &Fingerprints,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        // Shared text is not in the streams; a length takes eight bytes and a bit at most.
        let room = head.text.saturating_add(24 * u64::from(head.names) + 64);
        let mut streams = Streams::new(part, zstd, room);
        streams.column(&mut self.shared)?;
        self.words.read(&mut streams)?;
        streams.bytes(&mut self.text)?;
        streams.end()?;
        let wrong = || Fault::new("a name's length is wrong");
        let mut rest = &self.text[..];
        let mut last = 0..0;
        for _ in 0..head.names {
            let shared = usize::try_from(self.shared.take()).unwrap_or(usize::MAX);
            if shared > last.len() {
                return Err(wrong());
            }
            let start = batch.text.len();
            let same = last.start..last.start + shared;
            batch.text.extend_from_within(same);
            let end = memchr::memchr(b'\n', rest).ok_or_else(wrong)?;
            self.words.put(&rest[..end], head.text, &mut batch.text)?;
            rest = &rest[end + 1..];
            last = start..batch.text.len();
            let name = &batch.text[last.clone()];
            if name.is_empty() || name.len() as u64 > url_bytes {
                return Err(wrong());
            }
            if batch.text.len() as u64 > head.text {
                return Err(too_much());
            }
            if memchr::memchr2(b'\t', b'\n', name).is_some() || std::str::from_utf8(name).is_err() {
                return Err(Fault::new("a name is not one line of text without tabs"));
            }
            batch.text_ends.push(batch.text.len() as u32);
            batch.fingerprints.push(fingerprints.of(name));
        }
        self.shared.end()?;
        if rest.is_empty() && batch.text.len() as u64 == head.text {
            return Ok(());
        }
        Err(Fault::new("it has less or more text than it declares"))
    }
}

fn too_much() -> Fault {
    Fault::new("it has more text than it declares")
}

/// The words of a block.
struct Words {
    /// As they are stored: of each its byte, the word and a line feed.
    stored: Vec<u8>,
    /// By byte: where its word is in `stored`; empty: the byte means itself.
    places: [Range<u32>; 256],
}

impl Default for Words {
    fn default() -> Words {
        Words {
            stored: Vec::new(),
            places: [const { 0..0 }; 256],
        }
    }
}

impl Words {
    /// Takes the stream of words, and finds their places in it.
    fn read(&mut self, streams: &mut Streams<'_>) -> Result<(), Fault> {
        streams.bytes(&mut self.stored)?;
        self.places = [const { 0..0 }; 256];
        let mut at = 0;
        for line in self.stored.split_inclusive(|&b| b == b'\n') {
            let end = at + line.len() as u32;
            let place = match *line {
                [code, _, .., b'\n'] => &mut self.places[usize::from(code)],
                _ => return Err(Fault::new("a word is missing")),
            };
            if *place != (0..0) {
                return Err(Fault::new("one byte stands for two words"));
            }
            *place = at + 1..end - 1;
            at = end;
        }
        Ok(())
    }

    /// Appends what `coded` says to `text`, which grows to `most` bytes at most.
    #[inline]
    fn put(&self, coded: &[u8], most: u64, text: &mut Vec<u8>) -> Result<(), Fault> {
        for &byte in coded {
            let place = &self.places[usize::from(byte)];
            if place.start == place.end {
                text.push(byte);
                continue;
            }
            let word = &self.stored[place.start as usize..place.end as usize];
            // A little text may mean very much.
            if (text.len() + word.len()) as u64 > most {
                return Err(too_much());
            }
            text.extend_from_slice(word);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::HashKey;

    fn batch(names: &[&str]) -> Batch {
        let mut batch = Batch::default();
        for name in names {
            batch.text.extend_from_slice(name.as_bytes());
            batch.text_ends.push(batch.text.len() as u32);
        }
        batch
    }

    /// The head of a block that has these names.
    fn head(names: &[&str]) -> BlockHead {
        BlockHead {
            names: names.len() as u32,
            text: names.iter().map(|name| name.len() as u64).sum(),
            ..BlockHead::empty(false, 0, 0)
        }
    }

    fn unpacked(part: &[u8], head: &BlockHead) -> Result<Batch, Fault> {
        let mut zstd = zstd::bulk::Decompressor::new().unwrap();
        let fingerprints = HashKey([1, 2]).fingerprints();
        let mut batch = Batch::default();
        Names::default().unpack(part, &mut zstd, head, 1000, &fingerprints, &mut batch)?;
        Ok(batch)
    }

    /// A names part of these streams; `shared`: bytes that each shares with the name before.
    fn part(shared: &[u64], words: &[u8], text: &[u8]) -> Vec<u8> {
        let mut zstd = zstd::bulk::Compressor::new(1).unwrap();
        let mut part = Vec::new();
        let mut column = Column::default();
        shared.iter().for_each(|&len| column.put(len));
        column.put_into(&mut part, &mut zstd).unwrap();
        put_stream(&mut part, &mut zstd, words).unwrap();
        put_stream(&mut part, &mut zstd, text).unwrap();
        part
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        // Every byte that UTF-8 has but tab and line feed, so that words find few bytes or none.
        let all: Vec<String> = (1..0x800)
            .chain([0x1000, 0xfffd, 0x1_0000, 0x4_0000, 0x10_0000])
            .filter_map(char::from_u32)
            .filter(|c| !"\t\n".contains(*c))
            .map(|c| format!("{c}rose{c}Garden{c}rosegarden"))
            .collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let web: Vec<String> = (0..50)
            .map(|n| {
                format!(
                    "https://www.rosegarden{}.example/garden/rose-{n}.html",
                    n / 7
                )
            })
            .collect();
        let web: Vec<&str> = web.iter().map(String::as_str).collect();
        for names in [&all[..], &all[..200], &web, &["a"], &[]] {
            let mut zstd = zstd::bulk::Compressor::new(1).unwrap();
            let part = pack(&batch(names), &mut zstd).unwrap();
            let read = unpacked(&part, &head(names)).unwrap();
            assert_eq!(read.text_ends.len(), names.len());
            let fingerprints = HashKey([1, 2]).fingerprints();
            for (at, name) in names.iter().enumerate() {
                assert_eq!(read.name(at as u32), name.as_bytes());
                assert_eq!(read.fingerprints[at], fingerprints.of(name.as_bytes()));
            }
        }
    }

    #[test]
    fn words_are_whole_frequent_and_the_longest() {
        let rose = b"/rose-garden\n/rosegarden\n/rose\n/rose\n/garden\n/garden\n/garden\n/on\n/on\n/on\n/on\n";
        let words = frequent_words(rose);
        // "rosegarden" is there once, "on" is short.
        assert_eq!(words, [(255, &b"garden"[..])]);
        let words = frequent_words(b"rose rose rose rose garden garden garden garden garden \xff");
        assert_eq!(words, [(254, &b"garden"[..]), (253, b"rose")]);
        // Words that come when enough were counted are not, those before are.
        let many = (0..COUNTED as u32).map(|n| {
            let letters = [n, n / 26, n / 676, n / 17576].map(|n| b'a' + (n % 26) as u8);
            [&letters[..], b" "].concat()
        });
        let many = [b"rose ".repeat(2), many.collect::<Vec<_>>().concat()].concat();
        let many = [many, b"garden ".repeat(9), b"rose ".repeat(3)].concat();
        assert_eq!(frequent_words(&many), [(255, &b"rose"[..])]);
        let coded = in_codes(
            b"a rosegarden-rose",
            &[(1, b"rose"), (2, b"rosegarden"), (3, b"gar")],
        );
        assert_eq!(coded.unwrap(), b"a \x02-\x01");
    }

    #[test]
    fn what_is_shared_ends_where_words_do() {
        for (last, name, same) in [
            ("/garden/rose", "/garden/rosy", 8),
            ("/garden/rose", "/garden/rose1", 12),
            ("/garden/rose1", "/garden/rose2", 12),
            ("/garden", "/gardens", 1),
            ("/gardens", "/garden", 7),
            ("rose", "rosy", 0),
            ("", "rose", 0),
        ] {
            assert_eq!(
                sharing(last.as_bytes(), name.as_bytes()),
                same,
                "{last} {name}"
            );
        }
    }

    #[test]
    fn bad_lengths_are_refused() {
        let head = head(&["rose-garden", "rosy"]);
        let read = |shared: &[u64]| unpacked(&part(shared, b"", b"rose-garden\ny\n"), &head);
        assert_eq!(read(&[0, 3]).unwrap().name(1), b"rosy");
        for shared in [[1, 3], [0, 12], [0, u64::MAX]] {
            let message = read(&shared).err().expect("it is refused").0;
            assert_eq!(message, "a name's length is wrong");
        }
        let message = read(&[0, 4]).err().expect("it is refused").0;
        assert_eq!(message, "it has more text than it declares");
        let message = read(&[0, 2]).err().expect("it is refused").0;
        assert_eq!(message, "it has less or more text than it declares");
        let message = read(&[0]).err().expect("it is refused").0;
        assert_eq!(message, "a column ends early");
    }

    #[test]
    fn bad_words_and_text_are_refused() {
        let sound = part(&[0, 0], b"\xffrose\nagarden\n", b"\xff-a\nb\n");
        let mut head = head(&["rose-garden", "b"]);
        assert_eq!(unpacked(&sound, &head).unwrap().text, b"rose-gardenb");
        let refused = |words: &[u8], text: &[u8], head: &BlockHead| {
            let message = unpacked(&part(&[0; 2], words, text), head).err();
            message.expect("it is refused").0
        };
        for words in [&b"\xff\n"[..], b"\n", b"\xffrose", b"\xffrose\n\n", b"\xff"] {
            assert_eq!(refused(words, b"b\n", &head), "a word is missing");
        }
        let twice = refused(b"\xffrose\n\xffgarden\n", b"b\n", &head);
        assert_eq!(twice, "one byte stands for two words");
        assert_eq!(
            refused(b"", b"rose-garden\nb", &head),
            "a name's length is wrong"
        );
        assert_eq!(
            refused(b"", b"rose-garden\n\n", &head),
            "a name's length is wrong"
        );
        let more = refused(b"", b"rose-garden\nb\nc\n", &head);
        assert_eq!(more, "it has less or more text than it declares");
        let more = unpacked(&part(&[0; 3], b"", b"rose-garden\nb\n"), &head).err();
        let more = more.expect("it is refused").0;
        assert_eq!(more, "a column has too many numbers");
        // Ten bytes that mean a thousand are refused before they are unpacked.
        let word = [&[0xff][..], &[b'x'; 100], b"\n"].concat();
        head.text = 150;
        let much = refused(&word, &[&[0xff; 10][..], b"\nb\n"].concat(), &head);
        assert_eq!(much, "it has more text than it declares");
    }
}
