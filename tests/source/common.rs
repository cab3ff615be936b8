//! Compressed inputs made by hand, a decoder for lines, and a reader of whole sources.

use std::io::{self, Cursor, Read, Write};

use cashrank::{Error, Limits};
use cashrank_crawl::decode::{Decoder, Names, Parsed, Record, Sink, Skipped, Skipper};
use cashrank_crawl::source::{Chunk, Damage, InputName, InputSummary, Source, SourceOptions};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Decoder with one record per line.
pub struct Lines;

impl Decoder for Lines {
    fn names(&self) -> Names {
        Names::Opaque
    }

    fn whole(&self, buf: &[u8]) -> usize {
        memchr::memrchr(b'\n', buf).map_or(0, |at| at + 1)
    }

    fn skipper(&self) -> Skipper {
        Box::new(|buf, at_end| match memchr::memchr(b'\n', buf) {
            Some(at) => Skipped::Ended(at + 1),
            None if at_end => Skipped::Ended(buf.len()),
            None => Skipped::Inside(buf.len()),
        })
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut end = 0;
        for line in chunk.split_inclusive(|&byte| byte == b'\n') {
            end += line.len();
            let record = Record {
                url: line.into(),
                ..Record::default()
            };
            if !sink(end, Parsed::Record(&record)) {
                return;
            }
        }
    }
}

/// Reader that returns at most a number of bytes per read, and interrupts every third read.
pub struct Pieces {
    data: Cursor<Vec<u8>>,
    size: usize,
    reads: usize,
}

impl Read for Pieces {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let size = buf.len().min(self.size);
        self.data.read(&mut buf[..size])
    }
}

/// Result of reading a source.
pub struct Outcome {
    /// Decompressed bytes handed out, without over-long records.
    pub bytes: Vec<u8>,
    /// Bytes among them that were handed out as verified.
    pub verified: Vec<u8>,
    /// Verified bytes, with the offsets of the chunks.
    pub verified_at: Vec<(usize, Vec<u8>)>,
    /// Offset and length of each dropped record.
    pub dropped: Vec<(u64, u64)>,
    pub error: Option<Error>,
    pub summary: InputSummary,
    /// Maximum number of bytes held at any return.
    pub memory: usize,
    /// Hash of `bytes`.
    hash: Xxh3,
}

impl Outcome {
    pub fn damage(&self) -> &Damage {
        match &self.error {
            Some(Error::Corrupt { damage, .. }) => damage,
            other => panic!("not a damaged input: {other:?}"),
        }
    }

    /// Returns the bytes of an input, which must be undamaged.
    pub fn sound(self) -> Vec<u8> {
        assert!(self.error.is_none(), "{:?}", self.error);
        self.bytes
    }
}

/// Options of reading.
#[derive(Clone)]
pub struct How {
    pub limits: Limits,
    pub options: SourceOptions,
    /// Maximum number of bytes per read of the input.
    pub read_size: usize,
}

impl Default for How {
    fn default() -> Self {
        How {
            limits: Limits::default(),
            options: SourceOptions::default(),
            read_size: usize::MAX,
        }
    }
}

impl How {
    pub fn chunk(mut self, chunk_bytes: usize) -> How {
        self.options.chunk_bytes = chunk_bytes;
        self
    }

    pub fn held(mut self, held_bytes: u64) -> How {
        self.limits.held_bytes = held_bytes;
        self
    }

    pub fn accepting(mut self) -> How {
        self.options.accept_unverified = true;
        self
    }

    pub fn source(&self, data: &[u8]) -> Source {
        let reader = Pieces {
            data: Cursor::new(data.to_vec()),
            size: self.read_size,
            reads: 0,
        };
        Source::from_reader(
            InputName::Stdin,
            Box::new(reader),
            &self.limits,
            &self.options,
        )
        .expect("opens")
    }

    pub fn read(&self, data: &[u8]) -> Outcome {
        drain(self.source(data))
    }

    /// Returns chunk sizes and read sizes from the smallest to the default.
    pub fn variants(&self) -> Vec<How> {
        let mut all = Vec::new();
        for chunk in [1, 7, 100, 1 << 20] {
            for read_size in [1, 5, usize::MAX] {
                let mut how = self.clone().chunk(chunk);
                how.read_size = read_size;
                all.push(how);
            }
        }
        all
    }
}

/// Reads `source` to its end and checks what holds for every chunk of every input.
pub fn drain(mut source: Source) -> Outcome {
    let mut outcome = Outcome {
        bytes: Vec::new(),
        verified: Vec::new(),
        verified_at: Vec::new(),
        dropped: Vec::new(),
        error: None,
        summary: source.end(),
        memory: 0,
        hash: Xxh3::new(),
    };
    let mut offset = source.end().bytes;
    let mut buffer = Vec::new();
    loop {
        let next = source.next_chunk(&Lines, buffer);
        outcome.memory = outcome.memory.max(source.memory());
        let chunk = match next {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => {
                outcome.error = Some(error);
                break;
            }
        };
        check(&outcome, &chunk, offset);
        outcome.bytes.extend_from_slice(&chunk.bytes);
        outcome.hash.update(&chunk.bytes);
        if chunk.verified {
            outcome.verified.extend_from_slice(&chunk.bytes);
            let at = usize::try_from(chunk.offset).unwrap();
            outcome.verified_at.push((at, chunk.bytes.clone()));
        }
        offset += chunk.bytes.len() as u64;
        if chunk.oversize > 0 {
            outcome.dropped.push((offset, chunk.oversize));
        }
        offset += chunk.oversize;
        buffer = chunk.bytes;
    }
    assert_eq!(outcome.hash.digest128(), xxh3_128(&outcome.bytes));
    let again = source.next_chunk(&Lines, Vec::new());
    assert_eq!(again.is_err(), outcome.error.is_some(), "the end stays");
    assert!(!matches!(again, Ok(Some(_))), "the end stays");
    outcome.summary = source.end();
    assert_eq!(outcome.summary.bytes, offset);
    outcome
}

fn check(outcome: &Outcome, chunk: &Chunk, offset: u64) {
    assert_eq!(chunk.offset, offset, "chunks follow one another");
    assert!(!chunk.bytes.is_empty() || chunk.oversize > 0);
    if offset == outcome.bytes.len() as u64 {
        // Read from the start, nothing dropped.
        assert_eq!(chunk.prefix.digest128(), outcome.hash.digest128());
    }
}

/// Returns the whole lines at the front of `bytes`.
pub fn whole_lines(bytes: &[u8]) -> &[u8] {
    &bytes[..Lines.whole(bytes)]
}

/// Returns lines of many lengths, including empty ones, of about `len` bytes together, always the same.
pub fn text(len: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut random = Random(len as u64);
    while text.len() < len {
        for _ in 0..random.below(60) {
            text.push(b"abcdefgh/:. "[random.below(12) as usize]);
        }
        text.push(b'\n');
    }
    text
}

/// Numerical Recipes' 64-bit linear congruential generator; its high bits are used.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

pub fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Returns a member with every optional header field (RFC 1952, section 2.3), including the header's CRC.
pub fn gzip_with_all_fields(data: &[u8]) -> Vec<u8> {
    let mut header = vec![0x1f, 0x8b, 8, 0b1_1111, 1, 2, 3, 4, 0, 3];
    header.extend(5u16.to_le_bytes());
    header.extend(b"SL\x01\x00\x00");
    header.extend(b"a name\0");
    header.extend(b"a comment\0");
    let mut crc = flate2::Crc::new();
    crc.update(&header);
    header.extend((crc.sum() as u16).to_le_bytes());
    header.extend(&gzip(data)[10..]);
    header
}

pub fn zstd_frame(data: &[u8], checksum: bool) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(checksum).unwrap();
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Returns a skippable frame (RFC 8878, section 3.1.2).
pub fn zstd_skippable(data: &[u8]) -> Vec<u8> {
    let mut frame = 0x184D_2A53u32.to_le_bytes().to_vec();
    frame.extend((data.len() as u32).to_le_bytes());
    frame.extend(data);
    frame
}

/// Several members or frames, with their ends.
pub struct Members {
    pub data: Vec<u8>,
    /// End of each, compressed and decompressed.
    pub ends: Vec<(usize, usize)>,
}

/// Compresses `text` to members of the given lengths, and a last one with the rest.
pub fn members(text: &[u8], lengths: &[usize], compress: fn(&[u8]) -> Vec<u8>) -> Members {
    let mut made = Members {
        data: Vec::new(),
        ends: Vec::new(),
    };
    let mut at = 0;
    for length in lengths.iter().copied().chain([text.len()]) {
        let end = (at + length).min(text.len());
        made.data.extend(compress(&text[at..end]));
        made.ends.push((made.data.len(), end));
        at = end;
    }
    made
}

pub fn zstd_checked(data: &[u8]) -> Vec<u8> {
    zstd_frame(data, true)
}
