//! The archive as the source sees it: where its sections end.

use super::section::section_len;
use crate::decode::{Decoder, FormatSpec, Names, Parsed, Reason, Sink, Skipped, Skipper};

/// The format's name, help and decoder.
pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "cza",
    about: "a crawl archive, as `cashrank convert` writes it",
    is_grouped: false,
    caveat: None,
    usual: &Cza,
    by: |_, _| std::sync::Arc::new(Cza),
};

/// The archive's framing. Records are not read through it but by the pipeline, since links speak of
/// names in earlier sections: [`Decoder::decode`] tells whole sections from others, no more.
pub struct Cza;

impl Decoder for Cza {
    fn names(&self) -> Names {
        Names::Opaque
    }

    fn whole(&self, buf: &[u8], at_end: bool) -> usize {
        if at_end {
            return buf.len();
        }
        let mut at = 0;
        loop {
            match section_len(&buf[at..]) {
                Ok(Some(len)) if len <= (buf.len() - at) as u64 => at += len as usize,
                Ok(_) => return at,
                // The reader will say what is wrong.
                Err(_) => return buf.len(),
            }
        }
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        Box::new(ToTheEnd)
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut at = 0;
        while at < chunk.len() {
            let len = section_len(&chunk[at..]).ok().flatten();
            let end = len.and_then(|len| usize::try_from(len).ok()?.checked_add(at));
            let end = end.filter(|&end| end <= chunk.len());
            let parsed = match end {
                Some(_) => Parsed::Other {
                    kind: "section of an archive",
                },
                None => Parsed::Bad {
                    reason: Reason::Malformed,
                    detail: "no section of an archive".into(),
                },
            };
            at = end.unwrap_or(chunk.len());
            if !sink(at, parsed) {
                return;
            }
        }
    }
}

/// What follows a section that is too large cannot be read without it.
struct ToTheEnd;

impl Skipper for ToTheEnd {
    fn skip(&mut self, buf: &[u8], at_end: bool) -> Skipped {
        if at_end {
            Skipped::Ended(buf.len())
        } else {
            Skipped::Inside(buf.len())
        }
    }
}
