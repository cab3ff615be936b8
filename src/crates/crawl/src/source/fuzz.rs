//! Fuzz targets: inputs of any bytes, and damaged ones of known content.

use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::{Compression, DamageKind, InputName, InputSummary, Source, SourceOptions};
use crate::Error;
use crate::formats::Format;
use crate::fuzz::dice::{Bytes, Dice};
use crate::model::Limits;

/// Limits small enough that inputs of a kilobyte reach all of them.
const EXPANSION: u64 = 16 << 10;
const WINDOW_LOG: u32 = 17;

/// Result of reading an input.
struct Outcome {
    /// Offset and bytes of each chunk, and whether they were verified.
    chunks: Vec<(u64, Vec<u8>, bool)>,
    summary: InputSummary,
    sound: bool,
}

/// Options of a reading.
#[derive(Clone, Copy)]
struct How {
    line_bytes: u64,
    held_bytes: u64,
    accept_unverified: bool,
    chunk_bytes: usize,
    /// Maximum number of bytes per read.
    piece: usize,
}

/// Reader that returns few bytes at a time.
struct Pieces(Cursor<Vec<u8>>, usize);

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(self.1);
        self.0.read(&mut out[..len])
    }
}

fn read(data: &[u8], how: How) -> Outcome {
    let limits = Limits {
        line_bytes: how.line_bytes,
        held_bytes: how.held_bytes,
        expansion_bytes: EXPANSION,
        zstd_window_log: WINDOW_LOG,
        ..Limits::default()
    };
    let options = SourceOptions {
        accept_unverified: how.accept_unverified,
        chunk_bytes: how.chunk_bytes,
        ..SourceOptions::default()
    };
    let reader = Box::new(Pieces(Cursor::new(data.to_vec()), how.piece));
    let name = InputName::File("input".into());
    let mut source = match Source::from_reader(name, reader, &limits, &options) {
        Ok(source) => source,
        Err(error) => panic!("{error}"),
    };
    let lines = Format::Adjacency.decoder();
    // Twice the limits, and a few chunks of their own size or 4 KiB.
    let chunk = (how.chunk_bytes as u64).max(4 << 10) + how.line_bytes.min(EXPANSION);
    let most =
        source.memory() as u64 + 2 * (how.held_bytes.min(EXPANSION) + how.line_bytes) + 8 * chunk;
    let mut chunks = Vec::new();
    let mut end = 0;
    let sound = loop {
        let chunk = source.next_chunk(lines, Vec::new());
        assert!(
            source.memory() as u64 <= most,
            "{} bytes, at most {most}",
            source.memory()
        );
        match chunk {
            Ok(None) => break true,
            Ok(Some(chunk)) => {
                assert_eq!(chunk.offset, end, "chunks follow on");
                end += chunk.bytes.len() as u64 + chunk.oversize;
                assert!(chunk.oversize == 0 || chunk.oversize > how.line_bytes);
                let mut lines = chunk.bytes.split_inclusive(|&byte| byte == b'\n');
                assert!(lines.all(|line| line.len() as u64 <= how.line_bytes));
                chunks.push((chunk.offset, chunk.bytes, chunk.verified));
            }
            Err(Error::Corrupt { .. }) => break false,
            Err(error) => panic!("{error}"),
        }
    };
    let summary = source.end();
    assert_eq!(summary.bytes, end);
    assert_eq!(summary.damage.is_none(), sound);
    if let Some(damage) = &summary.damage {
        assert_eq!(damage.handed_out_to, end);
    }
    Outcome {
        chunks,
        summary,
        sound,
    }
}

impl Outcome {
    /// Checks that all bytes handed out equal those of `content`, as far as that reaches.
    fn agrees_with(&self, content: &[u8]) {
        for (offset, bytes, _) in &self.chunks {
            let rest = content.get(*offset as usize..).unwrap_or_default();
            let len = rest.len().min(bytes.len());
            assert!(rest[..len] == bytes[..len], "other bytes after {offset}");
        }
    }

    /// Joins the bytes handed out.
    fn joined(&self) -> Vec<u8> {
        let parts = self.chunks.iter().flat_map(|(_, bytes, _)| bytes);
        parts.copied().collect()
    }
}

fn how(dice: &mut Dice) -> How {
    How {
        line_bytes: dice.one_of([7, 64, 1 << 20]),
        held_bytes: dice.one_of([0, 50, 3000]),
        accept_unverified: dice.one_of([false, true]),
        chunk_bytes: dice.one_of([1, 30, 1 << 16]),
        piece: dice.one_of([1, 7, 1 << 20]),
    }
}

/// Decompresses `data` by another reader: returns the bytes before its first error, and whether there was none. Reads
/// no more than any input of a fuzzer should give.
fn judge(data: &[u8], compression: Compression) -> (Vec<u8>, bool) {
    let mut content = Vec::new();
    let most = 1 << 20;
    let read = match compression {
        Compression::Plain | Compression::Table => data.take(most).read_to_end(&mut content),
        Compression::Gzip => flate2::bufread::MultiGzDecoder::new(data)
            .take(most)
            .read_to_end(&mut content),
        Compression::Zstd => dictionary(data).and_then(|dictionary| {
            let mut decoder = zstd::stream::read::Decoder::with_dictionary(data, &dictionary)?;
            decoder.window_log_max(WINDOW_LOG)?;
            decoder.take(most).read_to_end(&mut content)
        }),
    };
    let sound = read.is_ok() && (content.len() as u64) < most;
    (content, sound)
}

/// Returns the dictionary that a zstd input begins with; empty if there is none.
fn dictionary(data: &[u8]) -> io::Result<Vec<u8>> {
    let Some((&[0x5d, 0x2a, 0x4d, 0x18, a, b, c, d], rest)) = data.split_first_chunk() else {
        return Ok(Vec::new());
    };
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    let content = rest.get(..length).ok_or(io::ErrorKind::UnexpectedEof)?;
    if !content.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Ok(content.to_vec());
    }
    let mut decoder = zstd::stream::read::Decoder::with_buffer(content)?.single_frame();
    decoder.window_log_max(WINDOW_LOG)?;
    let mut dictionary = Vec::new();
    decoder.read_to_end(&mut dictionary)?;
    Ok(dictionary)
}

/// Reads any bytes as an input, and compares with other readers of gzip and zstd.
pub fn input(data: &[u8]) {
    let mut dice = Dice::of(data);
    let first = how(&mut dice);
    let outcome = read(data, first);
    same_again(data, first, &outcome, &mut dice);
    let compression = super::decompress::sniff(&data[..data.len().min(4)]);
    let (content, sound) = judge(data, compression);
    outcome.agrees_with(&content);
    if outcome.sound {
        assert_eq!(outcome.summary.bytes, content.len() as u64, "all of it");
        assert_eq!(outcome.summary.prefix, xxh3_128(&content));
    } else if sound {
        let kind = outcome.summary.damage.map(|damage| damage.kind);
        assert_eq!(kind, Some(DamageKind::Expansion), "but it is sound");
    }
}

/// Checks that other sizes of reads and chunks give the same bytes.
fn same_again(data: &[u8], how: How, outcome: &Outcome, dice: &mut Dice) {
    let other = How {
        chunk_bytes: dice.one_of([1, 30, 1 << 16]),
        piece: dice.one_of([1, 7, 1 << 20]),
        ..how
    };
    let again = read(data, other);
    assert!(
        outcome.joined() == again.joined(),
        "other pieces, other bytes"
    );
    let place = |summary: &InputSummary| {
        // The library's messages depend on how often it was called.
        let damage = summary.damage.as_ref();
        damage.map(|damage| {
            (
                damage.kind,
                damage.member,
                damage.unverified_from,
                damage.handed_out_to,
            )
        })
    };
    assert_eq!(place(&outcome.summary), place(&again.summary));
    assert_eq!(outcome.summary.prefix, again.summary.prefix);
}

/// Compresses known content as members, damages the result, and reads it: wrong bytes must never be handed out as
/// verified, and never at all from a truncated input.
///
/// Input: kind of damage and compression, position (3 bytes), lengths of two members, content.
pub fn torn(data: &[u8]) {
    let mut bytes = Bytes(data);
    let flags = bytes.byte();
    let [low, mid, high] = bytes.array();
    let place = usize::from(low) | usize::from(mid) << 8 | usize::from(high) << 16;
    let lengths = [bytes.byte(), bytes.byte()];
    let content = bytes.take(EXPANSION as usize);
    let zstd = flags & 1 != 0;
    let mut parts = Bytes(content);
    let mut packed = Vec::new();
    for part in [
        parts.take(lengths[0].into()),
        parts.take(lengths[1].into()),
        parts.0,
    ] {
        pack(part, zstd, flags, &mut packed);
    }
    let magic = if zstd { 4 } else { 2 };
    let cut = flags & 2 != 0;
    let at = magic + place % (packed.len() - magic);
    if cut {
        packed.truncate(at);
    } else if flags & 4 != 0 {
        packed[at] ^= 1 << (high & 7);
    }
    let outcome = read(&packed, how(&mut Dice::of(data)));
    for (offset, chunk, verified) in &outcome.chunks {
        if *verified || cut {
            let truth = content.get(*offset as usize..).unwrap_or_default();
            assert!(truth.starts_with(chunk), "wrong bytes after {offset}");
        }
    }
    if flags & 6 == 0 {
        assert!(outcome.sound, "{:?}", outcome.summary.damage);
        assert_eq!(outcome.summary.prefix, xxh3_128(content));
    }
}

/// Appends a member with a checksum.
fn pack(part: &[u8], zstd: bool, flags: u8, out: &mut Vec<u8>) {
    let level = i32::from(flags >> 6);
    let packed = if zstd {
        zstd::stream::write::Encoder::new(out, level).and_then(|mut encoder| {
            encoder.include_checksum(true)?;
            encoder.window_log(WINDOW_LOG)?;
            encoder.write_all(part)?;
            encoder.finish().map(drop)
        })
    } else {
        let level = flate2::Compression::new(level as u32);
        let mut encoder = flate2::write::GzEncoder::new(out, level);
        encoder
            .write_all(part)
            .and_then(|()| encoder.finish().map(drop))
    };
    assert!(packed.is_ok());
}

/// Reads any bytes as a Parquet file: nothing panics, and the result depends on nothing but the bytes.
pub fn table(data: &[u8]) {
    let mut dice = Dice::of(data);
    let chunk_bytes = dice.one_of([1, 30, 1 << 16]);
    let first = text(data, chunk_bytes);
    assert!(first == text(data, 1 << 20), "other chunks, other bytes");
}

/// Returns the text of a table, and whether it ended soundly; `None` if the table is rejected as a whole.
fn text(data: &[u8], chunk_bytes: usize) -> Option<(Vec<u8>, bool)> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file = rustix::fs::memfd_create("table", flags).map(File::from);
    let mut file = file.unwrap_or_else(|error| panic!("{error}"));
    file.write_all(data)
        .unwrap_or_else(|error| panic!("{error}"));
    let limits = Limits {
        expansion_bytes: 1 << 20,
        ..Limits::default()
    };
    let options = SourceOptions {
        chunk_bytes,
        ..SourceOptions::default()
    };
    let path = Path::new("input");
    let table = match super::table::parquet::open(file, path, &options, &limits) {
        Ok(table) => table,
        Err(Error::Corrupt { .. } | Error::Unsupported(_)) => return None,
        Err(error) => panic!("{error}"),
    };
    let decoder = table.known.0.decoder();
    let name = InputName::File(path.into());
    let source = Source::of_table(name, table, &limits, &options);
    let mut source = source.unwrap_or_else(|error| panic!("{error}"));
    let mut all = Vec::new();
    loop {
        match source.next_chunk(decoder, Vec::new()) {
            Ok(Some(chunk)) => {
                assert_eq!(chunk.offset, all.len() as u64, "chunks follow on");
                all.extend_from_slice(&chunk.bytes);
                decoder.decode(&chunk.bytes, &mut |_, _| true);
            }
            Ok(None) => return Some((all, true)),
            Err(Error::Corrupt { .. }) => return Some((all, false)),
            Err(error) => panic!("{error}"),
        }
    }
}
