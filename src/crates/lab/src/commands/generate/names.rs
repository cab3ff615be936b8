//! URLs of the pages.
//!
//! `https://` host `/` path. The host's number is part of the host, and the page's number on its host is part of the
//! path, so no two pages share a URL. The words in between come from a hash; they only provide the length and the
//! repetitiveness of real URLs. Hosts end in `.example`, which is reserved: no URL leads anywhere. All are in canonical
//! form.

use super::crawl::Host;
use super::mix::mix;
use super::text::Text;

/// 64 words; six bits of a hash choose one.
#[rustfmt::skip]
const WORDS: [&str; 64] = [
    "about", "archive", "article", "atlas", "bridge", "budget", "calendar", "castle", "catalogue",
    "coast", "contact", "culture", "data", "design", "east", "energy", "event", "family", "field",
    "forum", "garden", "guide", "harbour", "health", "history", "house", "index", "island",
    "journal", "kitchen", "language", "letter", "library", "local", "market", "member", "mountain",
    "museum", "music", "network", "news", "north", "office", "paper", "people", "photo", "press",
    "product", "project", "report", "research", "river", "school", "science", "service", "south",
    "sport", "station", "story", "team", "travel", "water", "weather", "winter",
];

/// Room that a URL needs, including the cut-off end of its last piece.
pub const ROOM: usize = 192;

/// Word with its suffix, in a piece of fixed size.
struct Word {
    text: [u8; 16],
    len: u8,
}

static BARE: [Word; 64] = words(None);
static SLUGS: [Word; 64] = words(Some(b'-'));
static FOLDERS: [Word; 64] = words(Some(b'/'));

const fn words(end: Option<u8>) -> [Word; 64] {
    const EMPTY: Word = Word {
        text: [0; 16],
        len: 0,
    };
    let mut words = [EMPTY; 64];
    let mut at = 0;
    while at < 64 {
        let word = WORDS[at].as_bytes();
        let mut len = 0;
        while len < word.len() {
            words[at].text[len] = word[len];
            len += 1;
        }
        if let Some(end) = end {
            words[at].text[len] = end;
            len += 1;
        }
        words[at].len = len as u8;
        at += 1;
    }
    words
}

/// Hash of a host and the beginning of its pages' URLs, computed once for many of them.
pub struct Site {
    pub host: Host,
    hash: u64,
    prefix: [u8; Self::ROOM],
    len: usize,
}

impl Site {
    /// `https://www.`, two words of ten bytes, a dash, seven digits, `.example/`: 48 at most.
    const ROOM: usize = 64;

    pub fn new(host: Host, scratch: &mut Text) -> Site {
        let start = scratch.len();
        let hash = host.hash();
        scratch.reserve(ROOM);
        push_host(scratch, host, hash);
        let text = &scratch.as_bytes()[start..];
        let mut site = Site {
            host,
            hash,
            prefix: [0; Self::ROOM],
            len: text.len(),
        };
        site.prefix[..site.len].copy_from_slice(text);
        scratch.cut(start);
        site
    }

    /// Appends the URL of a page of this host; the text must have [`ROOM`].
    #[inline]
    pub fn push_url(&self, out: &mut Text, page: u64) {
        out.put(&self.prefix, self.len);
        push_path(out, self.host, self.hash, page);
    }
}

/// Appends the URL of a page of `host`; the text must have [`ROOM`].
#[inline]
pub fn push_url(out: &mut Text, host: Host, page: u64) {
    let hash = host.hash();
    push_host(out, host, hash);
    push_path(out, host, hash, page);
}

fn push_path(out: &mut Text, host: Host, hash: u64, page: u64) {
    let place = page - host.first_page;
    if place < host.navigation(hash) {
        if place > 0 {
            let mut draw = Bits(mix(host.number, place));
            push_word(out, &FOLDERS[draw.take(6)], true);
            push_number(out, place);
            out.push(b"/");
        }
        return;
    }
    let mut draw = Bits(mix(!host.number, place));
    // One or two folders, one to four words. Omitted parts are written, too, and overwritten: branches on random bits
    // would cost more.
    let (folders, slugs) = (1 + draw.take(1), 1 + draw.take(2));
    for nth in 0..2 {
        push_word(out, &FOLDERS[draw.take(6)], nth < folders);
    }
    for nth in 0..4 {
        push_word(out, &SLUGS[draw.take(6)], nth < slugs);
    }
    push_number(out, place);
    out.push(b".html");
}

/// Appends `https://`, a name ending in a dash and the host's number, and a slash.
fn push_host(out: &mut Text, host: Host, hash: u64) {
    let mut draw = Bits(hash);
    out.put(b"https://www.", 8 + 4 * draw.take(1));
    push_word(out, &BARE[draw.take(6)], true);
    push_word(out, &SLUGS[draw.take(6)], true);
    push_number(out, host.number);
    out.push(b".example/");
}

#[inline]
fn push_word(out: &mut Text, word: &Word, kept: bool) {
    out.put(&word.text, usize::from(word.len) * usize::from(kept));
}

/// Appends a number below 2^40, in base 32.
#[inline]
fn push_number(out: &mut Text, number: u64) {
    let pair = |nth: u32| u64::from(PAIRS[(number >> (30 - 10 * nth)) as usize % 1024]);
    let digits = pair(0) | pair(1) << 16 | pair(2) << 32 | pair(3) << 48;
    let len = (64 - number.leading_zeros()).div_ceil(5).max(1);
    let digits = digits >> (8 * (8 - len));
    out.put(&digits.to_le_bytes(), len as usize);
}

/// Pairs of digits of base 32, the higher one in the lower byte.
static PAIRS: [u16; 1024] = {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let mut pairs = [0; 1024];
    let mut at = 0;
    while at < 1024 {
        pairs[at] = DIGITS[at / 32] as u16 | (DIGITS[at % 32] as u16) << 8;
        at += 1;
    }
    pairs
};

/// Small numbers, taken from the bits of a hash: at most 64 of them.
struct Bits(u64);

impl Bits {
    fn take(&mut self, bits: u32) -> usize {
        let number = self.0 & ((1 << bits) - 1);
        self.0 >>= bits;
        number as usize
    }
}
