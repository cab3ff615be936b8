//! The codes in a `.graph`, most significant bit first, read so that no damage does harm: a code that is longer than any
//! number below 2^62 is an error, where the library would shift beyond the width of a word.

use std::io::{self, BufReader, ErrorKind, Read, Take};

use dsi_bitstream::codes::delta::DeltaReadParam;
use dsi_bitstream::codes::gamma::GammaReadParam;
use dsi_bitstream::codes::zeta::ZetaReadParam;
use dsi_bitstream::dispatch::Codes;
use dsi_bitstream::impls::{BufBitReader, WordAdapter};
use dsi_bitstream::traits::{BE, BitRead};

/// Maximum number of bits of a number.
const MOST_BITS: u64 = 62;
/// Number of zero bytes after a file's end, so that its last word is complete.
const PADDING: u64 = 4;

type Padded<R> = io::Chain<BufReader<R>, Take<io::Repeat>>;
/// Reader of the bits of a file.
pub type Bits<R> = BufBitReader<BE, WordAdapter<u32, Padded<R>>>;

/// Returns the bits of a file, followed by zeros up to a whole word.
pub fn bits_of<R: Read>(file: R) -> Bits<R> {
    let padded = BufReader::new(file).chain(io::repeat(0).take(PADDING - 1));
    BufBitReader::new(WordAdapter::new(padded))
}

/// Returns whether numbers in this code can be read.
pub fn is_read(code: Codes) -> bool {
    matches!(
        code,
        Codes::Unary | Codes::Gamma | Codes::Delta | Codes::Zeta(1..=7)
    )
}

/// Reader of codes, safe on damaged input: see the module.
pub struct Reader<R> {
    bits: R,
    /// Maximum number of zeros that the current code may begin with.
    zeros: u64,
    /// Number of bits read.
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

    /// Returns the number of bits read.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Reads the next number in this code, one of those of version 0 of the format.
    ///
    /// # Errors
    /// The bits end, or are not a number; the code is none of them.
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
