//! Recognition of a stream that was read before: its sender cannot know whether it was read to its end, so sending it
//! again must be safe.
//!
//! A stream that follows a finished one is held back until it differs from that one, whose [`Signature`] the store
//! keeps; then it is read from its first byte. If it does not differ, it is the same stream: only what was not read of it
//! is counted. A shorter one that does not differ is refused, because it may be either.
//!
//! Little is held back: the bytes that both have in common, and a sixteenth and one read more. Beyond [`HELD`] bytes,
//! the stream is taken for the same one; if it differs later, it is refused, and nothing of it was counted.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::iter::Peekable;
use std::sync::{Arc, Mutex};

use xxhash_rust::xxh3::Xxh3;

use crate::model::{SIGNATURE_HEAD as HEAD, signature_fronts as fronts};
use crate::model::{Signature, human};
use crate::threads::lock;
use crate::{Error, Result};

const HELD: u64 = 16 << 20;
const READ: usize = 32 << 10;

pub(super) struct Signer {
    pub signature: Signature,
    fronts: Peekable<Box<dyn Iterator<Item = u64> + Send>>,
    hash: Xxh3,
    len: u64,
}

impl Signer {
    fn new() -> Signer {
        let fronts: Box<dyn Iterator<Item = u64> + Send> = Box::new(fronts());
        Signer {
            signature: Signature::default(),
            fronts: fronts.peekable(),
            hash: Xxh3::new(),
            len: 0,
        }
    }

    /// Takes the next bytes. Returns true if all bytes so far agree with the signature `known`, as far as it goes.
    fn take(&mut self, mut bytes: &[u8], known: Option<&Signature>) -> bool {
        let mut like = true;
        let whole = known.and_then(|known| known.whole);
        let room = HEAD - self.signature.head.len();
        let head = &bytes[..bytes.len().min(room)];
        self.signature.head.extend_from_slice(head);
        while !bytes.is_empty() {
            let next = self.fronts.peek().copied().unwrap_or(u64::MAX);
            let end = whole.map(|(end, _)| end).filter(|&end| end > self.len);
            let stop = end.map_or(next, |end| end.min(next));
            let part = usize::try_from(stop - self.len).unwrap_or(usize::MAX);
            let (part, rest) = bytes.split_at(bytes.len().min(part));
            self.hash.update(part);
            self.len += part.len() as u64;
            bytes = rest;
            if let Some((end, hash)) = whole
                && end == self.len
            {
                like &= hash == self.hash.digest128();
            }
            if self.fronts.next_if_eq(&self.len).is_some() {
                self.signature.fronts.push(self.hash.digest128());
            }
        }
        let mine = &self.signature;
        like && known.is_none_or(|known| {
            let mut heads = mine.head.iter().zip(&known.head);
            let mut fronts = mine.fronts.iter().zip(&known.fronts);
            heads.all(|(a, b)| a == b) && fronts.all(|(a, b)| a == b)
        })
    }

    fn end(&mut self) {
        self.signature.whole = Some((self.len, self.hash.digest128()));
    }
}

pub(super) type SharedSigner = Arc<Mutex<Signer>>;

/// Relation of a stream to the one that was read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamMatch {
    /// The stream differs, or there was none before.
    Different,
    /// The stream is equal, without further bytes.
    Same,
    /// The stream begins with all of the earlier one, or with [`HELD`] bytes of a longer one.
    Extends,
}

/// Stream that is signed while it is read; the bytes held back come first.
pub(super) struct SignedStream {
    stream: Box<dyn Read + Send>,
    signer: SharedSigner,
    held: VecDeque<u8>,
    /// Signature with which the rest must agree.
    known: Option<Signature>,
}

impl SignedStream {
    pub fn new(stream: Box<dyn Read + Send>) -> SignedStream {
        SignedStream {
            stream,
            signer: Arc::new(Mutex::new(Signer::new())),
            held: VecDeque::new(),
            known: None,
        }
    }

    /// Returns the stream's signer, which continues while the stream is read.
    pub fn signer(&self) -> SharedSigner {
        self.signer.clone()
    }

    /// Reads until the relation of the stream to the signature `known` is clear; [`Error::InputChanged`] if it is not.
    pub fn compare(&mut self, known: &Signature) -> Result<StreamMatch> {
        let longest = known.whole.map(|(len, _)| len);
        if longest == Some(0) || (longest.is_none() && known.head.is_empty()) {
            return Ok(StreamMatch::Different);
        }
        // Number of leading bytes that the signature covers.
        let covered = fronts().take(known.fronts.len()).last();
        let covered = covered.unwrap_or(known.head.len() as u64);
        let mut buffer = vec![0; READ];
        loop {
            let read = match self.stream.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(Error::io("-", "read"))?,
            };
            self.held.extend(&buffer[..read]);
            let mut signer = lock(&self.signer);
            if read == 0 {
                signer.end();
                return match longest {
                    _ if signer.len == 0 => Ok(StreamMatch::Different),
                    Some(longest) if longest == signer.len => Ok(StreamMatch::Same),
                    _ => Err(ends_early(signer.len)),
                };
            }
            if !signer.take(&buffer[..read], Some(known)) {
                return Ok(StreamMatch::Different);
            }
            let len = signer.len;
            drop(signer);
            match longest {
                Some(longest) if len > longest => return Ok(StreamMatch::Extends),
                Some(_) if len < HELD => {}
                Some(_) => {
                    self.known = Some(known.clone());
                    return Ok(StreamMatch::Extends);
                }
                None if len > covered || len >= HELD => {
                    return Err(Error::InputChanged(format!(
                        "-: nothing was counted: the first {} of this stream ({len} bytes) are those of the last stream, \
                         and too little is known of its rest; use `resume` if it is that one, and send what follows its \
                         end, or `new_stream` if it is another",
                        human(len)
                    )));
                }
                None => {}
            }
        }
    }
}

impl Read for SignedStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.held.is_empty() {
            let held = self.held.read(out);
            if self.held.is_empty() {
                self.held = VecDeque::new();
            }
            return held;
        }
        let read = self.stream.read(out)?;
        let mut signer = lock(&self.signer);
        if read > 0 {
            if !signer.take(&out[..read], self.known.as_ref()) {
                return Err(io::Error::other(refused(format!(
                    "this stream begins with {} of the last stream, and then differs (before byte {})",
                    human(HELD),
                    signer.len
                ))));
            }
            if let Some((whole, _)) = self.known.as_ref().and_then(|known| known.whole)
                && signer.len >= whole
            {
                self.known = None;
            }
        } else if !out.is_empty() {
            signer.end();
            if self.known.is_some() {
                return Err(io::Error::other(ends_early(signer.len)));
            }
        }
        Ok(read)
    }
}

fn refused(what: String) -> Error {
    Error::InputChanged(format!(
        "-: nothing was counted: {what}; if it is that stream again, send all of it; if it is another, use `new_stream`"
    ))
}

fn ends_early(len: u64) -> Error {
    refused(format!(
        "this stream ends after {} ({len} bytes), and up to there it is the same as the last stream",
        human(len)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns pseudo-random bytes.
    fn bytes(len: usize, seed: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(len + 8);
        let mut at = 0u64;
        while out.len() < len {
            let next = xxhash_rust::xxh3::xxh3_64_with_seed(&at.to_le_bytes(), seed);
            out.extend_from_slice(&next.to_le_bytes());
            at += 1;
        }
        out.truncate(len);
        out
    }

    /// Reader that gives a few bytes at a time, never the same number twice.
    struct SlowReader(Vec<u8>, usize, usize);

    impl Read for SlowReader {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.2 = self.2 % 5_000 + 611;
            let rest = &self.0[self.1..];
            let part = rest.len().min(out.len()).min(self.2);
            out[..part].copy_from_slice(&rest[..part]);
            self.1 += part;
            Ok(part)
        }
    }

    fn signed(bytes: &[u8]) -> SignedStream {
        SignedStream::new(Box::new(SlowReader(bytes.to_vec(), 0, 0)))
    }

    fn signature(bytes: &[u8]) -> Signature {
        let mut signed = signed(bytes);
        let mut all = Vec::new();
        signed.read_to_end(&mut all).unwrap();
        assert_eq!(all, bytes);
        lock(&signed.signer()).signature.clone()
    }

    #[test]
    fn a_signature_is_that_of_the_bytes_however_they_come() {
        use xxhash_rust::xxh3::xxh3_128;
        for len in [0, 1, HEAD - 1, HEAD, HEAD + 1, 100_000] {
            let stream = bytes(len, 1);
            let found = signature(&stream);
            assert_eq!(found.head, stream[..len.min(HEAD)]);
            assert_eq!(found.whole, Some((len as u64, xxh3_128(&stream))));
            let expected: Vec<u128> = fronts()
                .take_while(|&front| front <= len as u64)
                .map(|front| xxh3_128(&stream[..front as usize]))
                .collect();
            assert_eq!(found.fronts, expected, "{len}");
        }
        assert_eq!(fronts().take(3).collect::<Vec<_>>(), [4096, 4352, 4624]);
    }

    /// Checks that after a comparison the whole stream follows, signed as if nothing had been compared.
    #[track_caller]
    fn comes_whole(mut signed: SignedStream, stream: &[u8]) {
        let mut all = Vec::new();
        signed.read_to_end(&mut all).unwrap();
        assert!(all == stream);
        let found = lock(&signed.signer()).signature.clone();
        assert_eq!(found, signature(stream));
    }

    #[test]
    fn another_stream_is_detected_wherever_it_differs_and_read_whole() {
        let before = bytes(60_000, 1);
        let known = signature(&before);
        for at in [0, 1, 100, HEAD - 1, HEAD, HEAD + 1, 20_000, 59_000, 59_999] {
            for len in [60_000, 70_000] {
                let mut stream = bytes(len, 1);
                stream[at] ^= 1;
                let mut signed = signed(&stream);
                assert_eq!(
                    signed.compare(&known).unwrap(),
                    StreamMatch::Different,
                    "{at}"
                );
                // No more is held than what both have in common, a sixteenth and one read.
                let most = (at + at / 16).max(HEAD) + HEAD + READ;
                assert!(signed.held.len() <= most, "{at}: {}", signed.held.len());
                comes_whole(signed, &stream);
            }
        }
    }

    #[test]
    fn the_same_stream_is_distinguished_from_longer_and_shorter_ones() {
        for len in [1, 100, HEAD, HEAD + 1, 5_000, 40_000] {
            let before = bytes(len, 2);
            let known = signature(&before);
            let mut same = signed(&before);
            assert_eq!(same.compare(&known).unwrap(), StreamMatch::Same, "{len}");
            let longer = bytes(len + 1, 2);
            let mut more = signed(&longer);
            assert_eq!(more.compare(&known).unwrap(), StreamMatch::Extends, "{len}");
            comes_whole(more, &longer);
            if len > 1 {
                let error = signed(&before[..len - 1]).compare(&known);
                assert!(
                    matches!(error, Err(Error::InputChanged(message)) if message.contains("`new_stream`"))
                );
            }
        }
    }

    #[test]
    fn nothing_is_like_an_empty_stream_and_that_like_none() {
        let mut one = signed(b"one");
        assert_eq!(
            one.compare(&signature(b"")).unwrap(),
            StreamMatch::Different
        );
        comes_whole(one, b"one");
        let mut none = signed(b"");
        assert_eq!(
            none.compare(&signature(b"one")).unwrap(),
            StreamMatch::Different
        );
    }

    /// Beyond what is held the stream continues, but not past a difference or an early end.
    #[test]
    fn what_is_too_long_to_be_held_is_compared_while_it_is_read() {
        let len = HELD as usize + 3_000_000;
        let before = bytes(len, 3);
        let known = signature(&before);
        let longer = bytes(len + 5, 3);
        let mut more = signed(&longer);
        assert_eq!(more.compare(&known).unwrap(), StreamMatch::Extends);
        assert!(more.held.len() < HELD as usize + READ);
        comes_whole(more, &longer);
        let mut other = bytes(len, 3);
        other[len - 1] ^= 1;
        for wrong in [&other[..], &before[..len - 1]] {
            let mut signed = signed(wrong);
            assert_eq!(signed.compare(&known).unwrap(), StreamMatch::Extends);
            let mut read = Vec::new();
            let error = signed.read_to_end(&mut read).unwrap_err();
            let error = error.downcast::<Error>().unwrap();
            assert!(
                matches!(error, Error::InputChanged(message) if message.contains("nothing was counted"))
            );
            assert!(read.len() < len);
        }
    }

    /// If another process read the end of a stream, only its start is known.
    #[test]
    fn a_start_alone_is_not_enough() {
        let before = bytes(50_000, 4);
        let mut known = signature(&before);
        known.whole = None;
        known.fronts.truncate(10);
        assert!(matches!(
            signed(&before).compare(&known),
            Err(Error::InputChanged(message)) if message.contains("`resume`")
        ));
        let mut other = before.clone();
        other[5_000] ^= 1;
        let mut another = signed(&other);
        assert_eq!(another.compare(&known).unwrap(), StreamMatch::Different);
        comes_whole(another, &other);
    }
}
