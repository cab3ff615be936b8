//! Passes over the part of an input that an earlier run has read.

use super::{HEAD_BYTES, Source, StreamEnd};
use crate::decode::Decoder;
use crate::{Error, Result};

impl Source {
    /// Resumes where an earlier run stopped: passes over the first `offset` decompressed bytes, which must end at a
    /// record's end, and compares their hash. Must be called before the first chunk is taken. Fails with
    /// [`Error::InputChanged`] if the input is shorter or its first bytes differ.
    pub fn skip_to(&mut self, offset: u64, expected_prefix: u128) -> Result<()> {
        self.pass_to(offset)?;
        self.check_front(0, expected_prefix)
    }

    /// Compares the hash of everything passed over and of the next `more` bytes, which are open.
    fn check_front(&self, more: usize, expected_prefix: u128) -> Result<()> {
        let passed = self.cutter.position();
        let mut hash = passed.prefix.clone();
        hash.update(&self.cutter.open()[..more]);
        let found = hash.digest128();
        if found == expected_prefix {
            return Ok(());
        }
        Err(Error::InputChanged(format!(
            "{}: its first {} bytes (decompressed) are not those that were read before: their \
             hash is {found:032x}, the recorded one {expected_prefix:032x}; {}",
            self.name,
            passed.offset + more as u64,
            self.what_to_do()
        )))
    }

    /// Passes over the first `offset` bytes like [`Source::skip_to`], for an input that is known to be the same.
    pub fn pass_to(&mut self, offset: u64) -> Result<()> {
        loop {
            let open = self.cutter.open().len();
            let left = offset.saturating_sub(self.cutter.position().offset);
            let passed = usize::try_from(left).unwrap_or(open).min(open);
            self.cutter.pass(passed);
            if passed as u64 == left {
                return Ok(());
            }
            match &self.ending {
                None => self.fill()?,
                Some(StreamEnd::Sound { .. }) => return Err(self.too_short(offset)),
                Some(_) => return Err(self.damaged()),
            }
        }
    }

    /// Passes over bytes like [`Source::skip_to`], but stops before a record that ends at `offset` and may continue:
    /// see [`Source::shown_again`]. Without `expected_prefix` the input is known to be the same.
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
                expected_prefix.map_or(Ok(()), |expected| self.check_front(front, expected))?;
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
                self.pass_to(offset)?;
                return expected_prefix.map_or(Ok(()), |expected| self.check_front(0, expected));
            }
            let held = open.len() - whole;
            self.cutter.pass(whole);
            self.cutter.want(held + HEAD_BYTES);
            if self.ending.is_none() {
                self.fill()?;
            }
        }
    }

    /// Passes over the rest of a line if only blanks and its end are left of it.
    pub fn pass_line_end(&mut self) -> Result<()> {
        if matches!(self.cutter.passed(), None | Some(b'\n')) {
            return Ok(());
        }
        self.cutter.want(HEAD_BYTES);
        loop {
            let open = self.cutter.open();
            let found = open.iter().position(|byte| !b" \t\r".contains(byte));
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
