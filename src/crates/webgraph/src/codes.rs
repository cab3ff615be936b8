//! The codes in a `.graph`, most significant bit first, read so that no damage does harm: a code that is longer than any
//! number below 2^62 is an error, where the library would shift beyond the width of a word.

use std::io::{self, BufReader, ErrorKind, Read, Take};

use dsi_bitstream::codes::delta::DeltaReadParam;
use dsi_bitstream::codes::gamma::GammaReadParam;
use dsi_bitstream::codes::zeta::ZetaReadParam;
use dsi_bitstream::dispatch::Codes;
use dsi_bitstream::impls::{BufBitReader, WordAdapter};
use dsi_bitstream::traits::{BE, BitRead};

/// Bits of the greatest number that is read.
const MOST_BITS: u64 = 62;
/// Bytes of zeros behind a file's end, so that its last word is whole.
const PADDING: u64 = 4;

type Padded<R> = io::Chain<BufReader<R>, Take<io::Repeat>>;
/// Bits of a file.
pub type Bits<R> = BufBitReader<BE, WordAdapter<u32, Padded<R>>>;

/// The bits of a file, and zeros behind them up to a whole word.
pub fn bits_of<R: Read>(file: R) -> Bits<R> {
    let padded = BufReader::new(file).chain(io::repeat(0).take(PADDING - 1));
    BufBitReader::new(WordAdapter::new(padded))
}

/// Returns whether numbers in this code are read.
pub fn is_read(code: Codes) -> bool {
    matches!(
        code,
        Codes::Unary | Codes::Gamma | Codes::Delta | Codes::Zeta(1..=7)
    )
}

/// See the module.
pub struct Reader<R> {
    bits: R,
    /// The most zeros that the code may begin with that is being read.
    zeros: u64,
    /// Bits that were read.
    read: u64,
}

impl<R: BitRead<BE, Error = io::Error>> Reader<R> {
    pub fn new(bits: R) -> Reader<R> {
        Reader {
            bits,
            zeros: 0,
            read: 0,
        }
    }

    /// Bits that were read.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// The next number, in this code, of those that version 0 of the format has.
    ///
    /// # Errors
    /// The bits end, or are no number; the code is none of them.
    pub fn number(&mut self, code: Codes) -> io::Result<u64> {
        self.zeros = MOST_BITS;
        match code {
            Codes::Unary => {
                self.zeros = u64::MAX;
                self.read_unary()
            }
            Codes::Gamma => self.read_gamma_param::<false>(),
            Codes::Delta => self.read_delta_param::<false, false>(),
            Codes::Zeta(k @ 1..=7) => {
                self.zeros = MOST_BITS / k as u64 - 1;
                self.read_zeta_param(k)
            }
            _ => Err(no_number()),
        }
    }
}

fn no_number() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "these bits are no number")
}

impl<R: BitRead<BE, Error = io::Error>> BitRead<BE> for Reader<R> {
    type Error = io::Error;
    type PeekWord = R::PeekWord;
    const PEEK_BITS: usize = R::PEEK_BITS;

    fn read_bits(&mut self, count: usize) -> io::Result<u64> {
        if count as u64 > MOST_BITS {
            return Err(no_number());
        }
        self.read += count as u64;
        self.bits.read_bits(count)
    }

    fn peek_bits(&mut self, count: usize) -> io::Result<R::PeekWord> {
        self.bits.peek_bits(count)
    }

    fn skip_bits(&mut self, count: usize) -> io::Result<()> {
        self.read += count as u64;
        self.bits.skip_bits(count)
    }

    fn skip_bits_after_peek(&mut self, count: usize) {
        self.read += count as u64;
        self.bits.skip_bits_after_peek(count);
    }

    fn read_unary(&mut self) -> io::Result<u64> {
        let zeros = self.bits.read_unary()?;
        self.read += zeros + 1;
        if zeros > self.zeros {
            return Err(no_number());
        }
        Ok(zeros)
    }
}
