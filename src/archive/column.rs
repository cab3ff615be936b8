//! Streams and columns: how the numbers and the text of a block are laid down.
//!
//! A *stream* is some bytes, packed as one zstd frame where that helps. A *column* of numbers is two streams: for each
//! number one byte that says how large it is (its *token*), and the bits that the tokens leave open. Tokens repeat and
//! are packed well; the open bits are noise, and stay as they are.
//!
//! | number | token | open bits |
//! |---|---|---|
//! | 0 to 7 | the number | none |
//! | with highest bit `e`, from 3 | `8 + 4 (e - 3)` + the two bits below the highest | the `e - 2` others |

use super::Fault;

/// First token with open bits.
const SMALL: u64 = 8;
/// The largest token: numbers of 64 bits.
const TOKEN_MAX: u8 = 251;
/// Zeros behind a stream of bits, so that eight bytes can always be read at once.
const SLACK: usize = 8;
/// Length of a stream's head: two numbers of four bytes.
const HEAD: usize = 8;

/// Appends `raw` as a stream. `packer` decides the level.
pub(super) fn put_stream(
    out: &mut Vec<u8>,
    packer: &mut zstd::bulk::Compressor<'_>,
    raw: &[u8],
) -> Result<(), Fault> {
    let packed = packer.compress(raw).map_err(Fault::other)?;
    let chosen = if packed.len() < raw.len() {
        &packed
    } else {
        raw
    };
    for len in [raw.len(), chosen.len()] {
        let len = u32::try_from(len).map_err(|_| Fault::new("a stream of 4 GiB or more"))?;
        out.extend_from_slice(&len.to_le_bytes());
    }
    out.extend_from_slice(chosen);
    Ok(())
}

/// Takes streams from the front of a part.
pub(super) struct Streams<'a> {
    rest: &'a [u8],
    unpacker: &'a mut zstd::bulk::Decompressor<'static>,
    /// Bytes that the streams still to come may unpack to.
    room: u64,
}

impl<'a> Streams<'a> {
    /// `room`: what all streams together may unpack to.
    pub fn new(
        part: &'a [u8],
        unpacker: &'a mut zstd::bulk::Decompressor<'static>,
        room: u64,
    ) -> Streams<'a> {
        Streams {
            rest: part,
            unpacker,
            room,
        }
    }

    /// The next stream's length unpacked, and its bytes.
    fn stream(&self) -> Result<(usize, &'a [u8]), Fault> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<HEAD>()
            .ok_or_else(|| Fault::new("a stream is missing"))?;
        let [a, b, c, d, e, f, g, h] = *head;
        let raw = u32::from_le_bytes([a, b, c, d]) as usize;
        let packed = u32::from_le_bytes([e, f, g, h]) as usize;
        let body = rest.get(..packed).filter(|_| packed <= raw);
        Ok((
            raw,
            body.ok_or_else(|| Fault::new("a stream's length is wrong"))?,
        ))
    }

    /// The next stream, into `out`, with `slack` zeros behind.
    fn take(&mut self, out: &mut Vec<u8>, slack: usize) -> Result<(), Fault> {
        let (raw, body) = self.stream()?;
        self.rest = &self.rest[HEAD + body.len()..];
        self.room = self
            .room
            .checked_sub(raw as u64)
            .ok_or_else(|| Fault::new("its streams unpack to more than it declares"))?;
        out.clear();
        out.reserve(raw + slack);
        if body.len() == raw {
            out.extend_from_slice(body);
        } else {
            let unpacked = self
                .unpacker
                .decompress_to_buffer(body, out)
                .map_err(Fault::other)?;
            if unpacked != raw {
                return Err(Fault::new("a stream unpacks to another length"));
            }
        }
        out.resize(raw + slack, 0);
        Ok(())
    }

    /// The next stream as it is.
    pub fn bytes(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.take(out, 0)
    }

    /// The next two streams as a column.
    pub fn column(&mut self, column: &mut Column) -> Result<(), Fault> {
        self.take(&mut column.tokens, 0)?;
        self.take(&mut column.bits, SLACK)?;
        column.next = 0;
        column.bit = 0;
        column.failed = false;
        Ok(())
    }

    /// Passes over the next two streams.
    pub fn skip_column(&mut self) -> Result<(), Fault> {
        for _ in 0..2 {
            let (_, body) = self.stream()?;
            self.rest = &self.rest[HEAD + body.len()..];
        }
        Ok(())
    }

    /// All streams must have been taken.
    pub fn end(self) -> Result<(), Fault> {
        match self.rest {
            [] => Ok(()),
            _ => Err(Fault::new("it has unexpected streams")),
        }
    }
}

/// Numbers, to be written or read one after the other.
#[derive(Default)]
pub(super) struct Column {
    tokens: Vec<u8>,
    bits: Vec<u8>,
    /// Reading: the next token. Writing: unused.
    next: usize,
    /// The next bit in `bits`.
    bit: usize,
    /// Reading: something was missing.
    failed: bool,
}

/// The meaning of a token.
#[derive(Clone, Copy)]
struct Token {
    /// The number without its open bits.
    base: u64,
    /// The open bits, all set.
    mask: u64,
    /// How many those are.
    open: u8,
}

static TOKENS: [Token; 256] = {
    let none = Token {
        base: 0,
        mask: 0,
        open: 0,
    };
    let mut tokens = [none; 256];
    let mut token = 0;
    while token <= TOKEN_MAX as usize {
        tokens[token] = if token < SMALL as usize {
            Token {
                base: token as u64,
                ..none
            }
        } else {
            let over = token - SMALL as usize;
            let open = over / 4 + 1;
            Token {
                base: (4 + over as u64 % 4) << open,
                mask: (1 << open) - 1,
                open: open as u8,
            }
        };
        token += 1;
    }
    tokens
};

/// The last token whose open bits are in eight bytes, wherever they begin in the first.
const SHORT_MAX: u8 = SMALL as u8 + 4 * 56 + 3;
const _: () = assert!(TOKENS[SHORT_MAX as usize].open == 57);

/// The number of a token, with its bits from `bit` on.
#[inline(always)]
fn open(token: u8, bits: &[u8], bit: &mut usize, failed: &mut bool) -> u64 {
    if token > SHORT_MAX {
        return open_long(token, bits, bit, failed);
    }
    let Token { base, mask, open } = TOKENS[usize::from(token)];
    let Some(word) = word(bits, *bit / 8) else {
        *failed = true;
        return 0;
    };
    let low = word >> (*bit % 8);
    *bit += usize::from(open);
    base | (low & mask)
}

/// The same of one whose bits may be in nine bytes: numbers of 61 bits and more.
#[cold]
fn open_long(token: u8, bits: &[u8], bit: &mut usize, failed: &mut bool) -> u64 {
    let Token { base, mask, open } = TOKENS[usize::from(token)];
    let (start, shift) = (*bit / 8, *bit as u32 % 8);
    let Some(word) = word(bits, start).filter(|_| token <= TOKEN_MAX) else {
        *failed = true;
        return 0;
    };
    let next = bits.get(start + 8).copied().unwrap_or(0);
    let low = word >> shift | u64::from(next).checked_shl(64 - shift).unwrap_or(0);
    *bit += usize::from(open);
    base | (low & mask)
}

/// The eight bytes from `start` on.
#[inline(always)]
fn word(bits: &[u8], start: usize) -> Option<u64> {
    let bytes = bits.get(start..start + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

impl Column {
    /// Appends a number.
    pub fn put(&mut self, value: u64) {
        if value < SMALL {
            self.tokens.push(value as u8);
            return;
        }
        let high = value.ilog2();
        let open = high - 2;
        let top = (value >> open) & 3;
        self.tokens
            .push((SMALL + 4 * u64::from(high - 3) + top) as u8);
        self.put_bits(value & ((1 << open) - 1), open);
    }

    fn put_bits(&mut self, mut value: u64, mut count: u32) {
        while count > 0 {
            let used = self.bit as u32 % 8;
            if used == 0 {
                self.bits.push(0);
            }
            let taken = (8 - used).min(count);
            if let Some(last) = self.bits.last_mut() {
                *last |= ((value & ((1 << taken) - 1)) as u8) << used;
            }
            value >>= taken;
            count -= taken;
            self.bit += taken as usize;
        }
    }

    /// Appends the column's two streams.
    pub fn put_into(
        &self,
        out: &mut Vec<u8>,
        packer: &mut zstd::bulk::Compressor<'_>,
    ) -> Result<(), Fault> {
        put_stream(out, packer, &self.tokens)?;
        put_stream(out, packer, &self.bits)
    }

    /// Makes it empty.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.bits.clear();
        self.next = 0;
        self.bit = 0;
        self.failed = false;
    }

    /// Roughly the bits it takes: what is compared to choose between two columns.
    pub fn cost(&self) -> usize {
        let mut counts = [0u32; 256];
        for &token in &self.tokens {
            counts[usize::from(token)] += 1;
        }
        let all = self.tokens.len() as f64;
        let tokens: f64 = counts
            .iter()
            .filter(|&&n| n > 0)
            .map(|&n| f64::from(n) * (all / f64::from(n)).log2())
            .sum();
        self.bit + tokens as usize
    }

    /// Takes the next number. Where there is none, or its bits are missing, it is 0, and
    /// [`Column::end`] says so.
    #[inline]
    pub fn take(&mut self) -> u64 {
        let Some(&token) = self.tokens.get(self.next) else {
            self.failed = true;
            return 0;
        };
        self.next += 1;
        if u64::from(token) < SMALL {
            return u64::from(token);
        }
        self.open(token)
    }

    /// Hands the next `count` numbers to `each`, until it gives false. All of them must be there.
    #[inline]
    pub fn each(&mut self, count: usize, mut each: impl FnMut(u64) -> bool) {
        let Some(tokens) = self.tokens.get(self.next..self.next.saturating_add(count)) else {
            self.failed = true;
            return;
        };
        self.next += count;
        let (mut bit, mut failed) = (self.bit, self.failed);
        for &token in tokens {
            if !each(open(token, &self.bits, &mut bit, &mut failed)) {
                break;
            }
        }
        (self.bit, self.failed) = (bit, failed);
    }

    fn open(&mut self, token: u8) -> u64 {
        open(token, &self.bits, &mut self.bit, &mut self.failed)
    }

    /// All numbers must have been taken, and all bits but those that fill the last byte; and no more.
    pub fn end(&self) -> Result<(), Fault> {
        let bytes = self.bits.len() - SLACK;
        if self.failed {
            return Err(Fault::new("a column ends early"));
        }
        if self.next == self.tokens.len() && self.bit.div_ceil(8) == bytes {
            return Ok(());
        }
        Err(Fault::new("a column has too many numbers"))
    }

    /// Numbers in it.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn there_and_back(values: &[u64]) -> Vec<u64> {
        let mut column = Column::default();
        values.iter().for_each(|&value| column.put(value));
        let mut part = Vec::new();
        let mut packer = zstd::bulk::Compressor::new(3).unwrap();
        column.put_into(&mut part, &mut packer).unwrap();
        let mut unpacker = zstd::bulk::Decompressor::new().unwrap();
        let mut streams = Streams::new(&part, &mut unpacker, 1 << 20);
        let mut back = Column::default();
        streams.column(&mut back).unwrap();
        streams.end().unwrap();
        let taken = (0..back.len()).map(|_| back.take()).collect();
        back.end().unwrap();
        assert_eq!(back.take(), 0);
        back.end().unwrap_err();
        taken
    }

    /// The table above, by hand: 8 = 0b1000 has e = 3 and one open bit.
    #[test]
    fn tokens_are_those_of_the_table() {
        for (value, token, bits) in [
            (0, 0, &[][..]),
            (7, 7, &[]),
            (8, 8, &[0]),
            (9, 8, &[1]),
            (10, 9, &[0]),
            (15, 11, &[1]),
            (16, 12, &[0]),
            (0b10_1110, 8 + 8 + 1, &[0b110]),
            (u64::MAX, TOKEN_MAX, &[0xff; 7][..]),
        ] {
            let mut column = Column::default();
            column.put(value);
            assert_eq!(column.tokens, [token], "{value}");
            let expected = if value == u64::MAX {
                [&[0xff; 7][..], &[0x1f]].concat()
            } else {
                bits.to_vec()
            };
            assert_eq!(column.bits, expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn numbers_come_back(values in prop::collection::vec((any::<u64>(), 0u32..64), 0..200)) {
            let values: Vec<u64> = values.iter().map(|(value, shift)| value >> shift).collect();
            prop_assert_eq!(there_and_back(&values), values);
        }

        #[test]
        fn any_bytes_are_survived(part in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut unpacker = zstd::bulk::Decompressor::new().unwrap();
            let mut streams = Streams::new(&part, &mut unpacker, 1 << 12);
            let mut column = Column::default();
            while streams.column(&mut column).is_ok() {
                for _ in 0..=column.len() {
                    column.take();
                }
                column.end().unwrap_err();
            }
        }
    }
}
