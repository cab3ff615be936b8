//! Open input, read as chunks of whole records.

use std::io::Read;

use super::chunk::{Cutter, Hold};
use super::decompress::{Fault, Step, Unpacker, sniff};
use super::table::{self, TableInput};
use super::{Chunk, InputName, InputSummary, PeekReader, Restart, SourceOptions, open_file};
use crate::decode::Decoder;
use crate::formats::Format;
use crate::model::{Compression, Damage, DamageKind, Limits};
use crate::{Error, Result};

/// Maximum number of bytes returned by [`Source::head`], by which a format is guessed.
pub const HEAD_BYTES: usize = 64 << 10;

/// Open input. [`pass_to`](Source::pass_to) resumes after an earlier run.
pub struct Source {
    pub name: InputName,
    pub compressed_len: Option<u64>,
    raw: PeekReader,
    unpacker: Unpacker,
    hold: Hold,
    cutter: Cutter,
    ending: Option<StreamEnd>,
    /// Format of a table's text, and the evidence for it, for messages; `None` if the format must be guessed.
    pub known_format: Option<(Format, String)>,
    /// Number of the next records that were read before, up to the offset that was passed to.
    pub shown_again: u64,
}

enum StreamEnd {
    /// Sound end. `cut` is true once the last records were cut, so that everything that may be handed out is queued.
    Sound {
        cut: bool,
    },
    Damaged {
        damage: Damage,
        cut: bool,
    },
    /// I/O error; the rest of the input is unknown.
    Failed,
}

impl Source {
    /// Opens an input and recognises its compression. Fails for a directory without a graph.
    pub fn open(name: &InputName, limits: &Limits, options: &SourceOptions) -> Result<Source> {
        if let InputName::File(path) = name
            && let Some(table) = table::open(path, options, limits)?
        {
            return Source::of_table(name.clone(), table, limits, options);
        }
        Source::open_bytes(name, limits, options)
    }

    /// Opens an input like [`Source::open`], but treats a table like any other file.
    pub(super) fn open_bytes(
        name: &InputName,
        limits: &Limits,
        options: &SourceOptions,
    ) -> Result<Source> {
        let InputName::File(path) = name else {
            let reader = Box::new(std::io::stdin());
            return Source::live(name.clone(), reader, None, limits, options);
        };
        let (file, compressed_len) = open_file(path)?;
        let source = Source::from_reader(name.clone(), Box::new(file), limits, options)?;
        Ok(Source {
            compressed_len,
            ..source
        })
    }

    /// Reads from any reader. `name` is used only in messages. Interrupted reads are retried.
    pub fn from_reader(
        name: InputName,
        reader: Box<dyn Read + Send>,
        limits: &Limits,
        options: &SourceOptions,
    ) -> Result<Source> {
        Source::begin(name, PeekReader::new(reader), None, limits, options)
    }

    /// Reads from a reader that may pause, such as a pipe from a crawler: records are handed out as they come. With
    /// `from`, the reader begins at `from.raw` of the input; offsets count from the input's start, hashes mean nothing.
    pub fn live(
        name: InputName,
        reader: Box<dyn Read + Send>,
        from: Option<Restart>,
        limits: &Limits,
        options: &SourceOptions,
    ) -> Result<Source> {
        let from = from.filter(|from| from.raw > 0);
        let mut raw = PeekReader::new(reader);
        raw.live = true;
        Source::begin(name, raw, from, limits, options)
    }

    fn begin(
        name: InputName,
        mut raw: PeekReader,
        from: Option<Restart>,
        limits: &Limits,
        options: &SourceOptions,
    ) -> Result<Source> {
        let (compression, offset) = match from {
            Some(from) => {
                raw.consumed = from.raw;
                (Ok(from.compression), from.offset)
            }
            None => (raw.peek(4).map(sniff), 0),
        };
        let unpacker = compression.and_then(|found| Unpacker::new(found, limits.zstd_window_log));
        let unpacker = unpacker.map_err(Error::io(name.path(), "read"))?;
        Ok(Source {
            name,
            compressed_len: None,
            raw,
            hold: Hold::new(limits, options, unpacker.compression(), offset),
            unpacker,
            cutter: Cutter::new(options.chunk_bytes, limits.line_bytes, offset),
            ending: None,
            known_format: None,
            shown_again: 0,
        })
    }

    pub(super) fn of_table(
        name: InputName,
        table: TableInput,
        limits: &Limits,
        options: &SourceOptions,
    ) -> Result<Source> {
        let raw = PeekReader::new(Box::new(std::io::empty()));
        let mut source = Source::begin(name, raw, None, limits, options)?;
        source.unpacker = Unpacker::Table(Some(table.rows));
        source.hold.compression = source.unpacker.compression();
        source.known_format = Some(table.known);
        Ok(source)
    }

    pub fn compression(&self) -> Compression {
        self.unpacker.compression()
    }

    /// Returns the memory held for the input in bytes, without the decompressor's own (zstd: its window).
    #[cfg(any(test, feature = "testing"))]
    pub fn memory(&self) -> usize {
        self.raw.memory() + self.cutter.memory()
    }

    /// Returns the next decompressed bytes without consuming them, to guess the format: 64 KiB, or fewer if the input or
    /// its sound part ends. Nothing is verified; damage is reported only by [`Source::next_chunk`].
    pub fn head(&mut self) -> Result<&[u8]> {
        self.head_until(|_| false)
    }

    /// Returns the head like [`Source::head`], but does not wait for a stream that pauses after `enough` bytes.
    pub fn head_until(&mut self, enough: impl Fn(&[u8]) -> bool) -> Result<&[u8]> {
        self.cutter.want(HEAD_BYTES);
        while self.cutter.open().len() < HEAD_BYTES
            && self.ending.is_none()
            && !(self.raw.lull && enough(self.cutter.open()))
        {
            self.fill()?;
        }
        let open = self.cutter.open();
        Ok(&open[..open.len().min(HEAD_BYTES)])
    }

    /// Returns whether the input may end early: a pipe, whose sender may be cut off.
    pub fn is_live(&self) -> bool {
        self.raw.live
    }

    pub fn is_at_start(&self) -> bool {
        self.cutter.position().offset == 0
    }

    pub fn prefix(&self) -> u128 {
        self.cutter.position().prefix.digest128()
    }

    /// Returns the next chunk of whole records; `None` after the last. The memory of `buffer` is reused. All calls must pass
    /// the same decoder. [`Error::Corrupt`] comes after all whole records that may be handed out; further calls fail again.
    pub fn next_chunk(&mut self, decoder: &dyn Decoder, buffer: Vec<u8>) -> Result<Option<Chunk>> {
        self.cutter.recycle(buffer);
        loop {
            if let Some(mut chunk) = self.cutter.pop(&self.hold) {
                chunk.member = self.hold.starts.before(chunk.offset);
                return Ok(Some(chunk));
            }
            match &mut self.ending {
                // Records of a slow stream do not wait for those after them.
                None if self.cutter.is_full() || std::mem::take(&mut self.raw.lull) => {
                    let verified_to = self.hold.verified_to();
                    self.cutter.cut(decoder, verified_to);
                }
                None => self.fill()?,
                Some(StreamEnd::Sound { cut: true }) => return Ok(None),
                Some(StreamEnd::Damaged { cut: true, .. } | StreamEnd::Failed) => {
                    return Err(self.damaged());
                }
                Some(StreamEnd::Sound { cut }) => {
                    *cut = true;
                    self.cutter.finish(decoder, self.raw.live);
                }
                Some(StreamEnd::Damaged { damage, cut }) => {
                    let verified_to = damage.unverified_from;
                    let limit = (!self.hold.damaged(damage.kind)).then_some(verified_to);
                    self.cutter.finish_damaged(decoder, limit, verified_to);
                    (damage.handed_out_to, *cut) = (self.cutter.queued_to().offset, true);
                }
            }
        }
    }

    /// Returns the summary so far; complete once [`Source::next_chunk`] returned `None` or an error.
    pub fn end(&self) -> InputSummary {
        let position = self.cutter.position();
        InputSummary {
            bytes: position.offset,
            compressed: self.raw.consumed,
            prefix: position.prefix.digest128(),
            members: self.hold.members,
            unchecked: self.hold.unchecked,
            damage: match &self.ending {
                Some(StreamEnd::Damaged { damage, cut }) => Some(Damage {
                    handed_out_to: if *cut {
                        damage.handed_out_to
                    } else {
                        position.offset
                    },
                    ..damage.clone()
                }),
                _ => None,
            },
        }
    }

    fn fill(&mut self) -> Result<()> {
        let (out, full) = self.cutter.room();
        let step = self.unpacker.step(&mut self.raw, out, full);
        self.cutter.compressed = self.raw.consumed;
        let over = self.hold.reach(self.cutter.produced());
        if over > 0 {
            self.cutter.retract(over);
            let what = match self.hold.member {
                Some(member) => format!(
                    "the {} data that starts at compressed byte {} expands beyond `limit_expansion`",
                    self.compression(),
                    member.compressed
                ),
                None => "the rows of the table are more text than `limit_expansion`".into(),
            };
            self.end_damaged(DamageKind::Expansion, what);
            return Ok(());
        }
        match step {
            Ok(Step::Data) => {}
            Ok(Step::Begin(compressed)) => {
                self.hold.begin(compressed, self.unpacker.needs_start());
            }
            Ok(Step::Size(size)) => self.hold.size = Some(size),
            Ok(Step::End { checked }) => self.hold.end(checked),
            Ok(Step::Finished) => self.ending = Some(StreamEnd::Sound { cut: false }),
            Err(Fault::Damage(kind, what)) => self.end_damaged(kind, what),
            Err(Fault::Io(error)) => {
                self.ending = Some(StreamEnd::Failed);
                return Err(Error::io(self.name.path(), "read")(error));
            }
        }
        Ok(())
    }

    fn end_damaged(&mut self, kind: DamageKind, what: String) {
        let damage = Damage {
            kind,
            what,
            member: self.hold.member,
            unverified_from: self.hold.verified_to(),
            handed_out_to: 0,
        };
        self.ending = Some(StreamEnd::Damaged { damage, cut: false });
    }

    fn damaged(&self) -> Error {
        match self.end().damage {
            Some(damage) => Error::Corrupt {
                input: self.name.to_string(),
                record: None,
                damage: Box::new(damage),
            },
            None => {
                let source = std::io::Error::other("an earlier read failed");
                Error::io(self.name.path(), "read")(source)
            }
        }
    }

    fn changed(&self, what: String) -> Error {
        let advice = match self.name {
            InputName::Stdin => {
                "send the same stream again from its start, or use `new_stream` if it is another"
            }
            InputName::File(_) => "give the same input again",
        };
        Error::InputChanged(format!("{}: {what}; {advice}", self.name))
    }

    /// Compares the hash of everything passed over and of the next `more` bytes, which are open, if one is expected.
    fn check_front(&self, more: usize, expected_prefix: Option<u128>) -> Result<()> {
        let Some(expected) = expected_prefix else {
            return Ok(());
        };
        let passed = self.cutter.position();
        let mut hash = passed.prefix;
        hash.update(&self.cutter.open()[..more]);
        let found = hash.digest128();
        if found == expected {
            return Ok(());
        }
        Err(self.changed(format!(
            "its first {} bytes (decompressed) are not those that were read before: their hash is {found:032x}, the \
             recorded one {expected:032x}",
            passed.offset + more as u64,
        )))
    }

    /// Passes over the first `offset` decompressed bytes, which end with a record, before the first chunk is taken. Fails
    /// with [`Error::InputChanged`] if the input is shorter, or its first bytes do not have the hash that is expected.
    pub fn pass_to(&mut self, offset: u64, expected_prefix: Option<u128>) -> Result<()> {
        loop {
            let open = self.cutter.open().len();
            let left = offset.saturating_sub(self.cutter.position().offset);
            let passed = usize::try_from(left).unwrap_or(open).min(open);
            self.cutter.pass(passed);
            if passed as u64 == left {
                return self.check_front(0, expected_prefix);
            }
            match &self.ending {
                None => self.fill()?,
                Some(StreamEnd::Sound { .. }) => {
                    return Err(self.changed(format!(
                        "ends at byte {} of the decompressed data, but {offset} bytes of it were read before",
                        self.cutter.produced(),
                    )));
                }
                Some(_) => return Err(self.damaged()),
            }
        }
    }

    /// Passes like [`Source::pass_to`], but stops before a record that ends at `offset` and may continue (`shown_again`).
    pub fn pass_whole_to(
        &mut self,
        offset: u64,
        expected_prefix: Option<u128>,
        decoder: &dyn Decoder,
    ) -> Result<()> {
        loop {
            let open = self.cutter.open();
            let left = offset.saturating_sub(self.cutter.position().offset);
            let front = usize::try_from(left).unwrap_or(usize::MAX).min(open.len());
            let whole = decoder.whole(&open[..front]).min(front);
            if front as u64 == left {
                self.check_front(front, expected_prefix)?;
                let rest = &open[whole..front];
                if decoder.is_cut(rest) {
                    self.cutter.pass(front);
                    return Ok(());
                }
                let mut shown = 0;
                decoder.decode(rest, &mut |_, _| {
                    shown += 1;
                    true
                });
                self.shown_again = shown;
                self.cutter.pass(whole);
                return Ok(());
            }
            let is_stuck = whole == 0 && (self.ending.is_some() || self.cutter.is_over_limit());
            if is_stuck {
                return self.pass_to(offset, expected_prefix);
            }
            let held = open.len() - whole;
            self.cutter.pass(whole);
            self.cutter.want(held + HEAD_BYTES);
            if self.ending.is_none() {
                self.fill()?;
            }
        }
    }

    /// Passes over the rest of a line if it holds only blanks, commas and the line's end.
    pub fn pass_line_end(&mut self) -> Result<()> {
        if matches!(self.cutter.passed, None | Some(b'\n')) {
            return Ok(());
        }
        self.cutter.want(HEAD_BYTES);
        loop {
            let open = self.cutter.open();
            let found = open.iter().position(|byte| !b" \t\r,".contains(byte));
            match found {
                Some(at) if open[at] == b'\n' => self.cutter.pass(at + 1),
                None if self.ending.is_none() && open.len() < HEAD_BYTES => {
                    self.fill()?;
                    continue;
                }
                _ => {}
            }
            return Ok(());
        }
    }
}
