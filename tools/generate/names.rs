//! The pages' URLs.
//!
//! `https://` host `/` path. The host's number is part of the host and the page's place on its
//! host part of the path, so no two pages share a URL; the words between come from a hash and only
//! give the length, and the repetitiveness, of real ones. Hosts end in `.example`, which is
//! reserved: no URL leads anywhere. All are in canonical form.

use crate::crawl::{Crawl, Host};
use crate::mix::mix;

/// 64 words: six bits of a hash choose one.
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

/// Appends the URL of a page of `host`.
pub fn push_url(out: &mut Vec<u8>, crawl: &Crawl, host: Host, page: u64) {
    push_host(out, host);
    let place = page - host.first_page;
    if place == 0 {
        return;
    }
    if place < crawl.navigation(host) {
        let mut words = Words(mix(host.number, place));
        words.push(out);
        out.push(b'/');
        push_base36(out, place);
        out.push(b'/');
        return;
    }
    let mut words = Words(mix(!host.number, place));
    let (folders, slugs) = (1 + words.number(1), 1 + words.number(2));
    for _ in 0..folders {
        words.push(out);
        out.push(b'/');
    }
    for _ in 0..slugs {
        words.push(out);
        out.push(b'-');
    }
    push_base36(out, place);
    out.extend_from_slice(b".html");
}

/// `https://`, a name ending in a dash and the host's number, and a slash.
fn push_host(out: &mut Vec<u8>, host: Host) {
    let mut words = Words(mix(0x686f_7374, host.number));
    out.extend_from_slice(b"https://");
    if words.number(1) == 1 {
        out.extend_from_slice(b"www.");
    }
    words.push(out);
    words.push(out);
    out.push(b'-');
    push_base36(out, host.number);
    out.extend_from_slice(b".example/");
}

/// Words and small numbers, taken from the bits of a hash: at most 64 of them.
struct Words(u64);

impl Words {
    fn number(&mut self, bits: u32) -> u64 {
        let number = self.0 & ((1 << bits) - 1);
        self.0 >>= bits;
        number
    }

    fn push(&mut self, out: &mut Vec<u8>) {
        let word = WORDS[self.number(6) as usize];
        out.extend_from_slice(word.as_bytes());
    }
}

fn push_base36(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 13];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdefghijklmnopqrstuvwxyz"[(number % 36) as usize];
        number /= 36;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
