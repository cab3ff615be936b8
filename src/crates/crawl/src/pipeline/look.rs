//! Remarks about an input from its first records, even if each single record is sound.

use super::Piece;
use crate::batch::{Batch, Rules};
use crate::decode::records::names::FieldNameMap;
use crate::decode::{Missing, Unread};
use crate::formats::Format;
use crate::url;

const NAMES: usize = 16;

pub enum Remark {
    Missing(Missing),
    /// Caveat of one line about all rankings made from the input.
    Caveat(&'static str),
}

/// Examines the pieces of one input until it has seen enough.
pub(super) struct Look {
    /// Caveat if the first names look like URLs; `None` once they were examined.
    with_urls: Option<&'static str>,
    unread: Option<Unread>,
    at: usize,
}

impl Look {
    pub fn new(format: Format, rules: &Rules) -> Look {
        let fields = || FieldNameMap::by(&rules.input.fields, format.decoder().names());
        let is_json = matches!(format, Format::Records | Format::NodeRecords);
        Look {
            with_urls: format.with_urls(),
            unread: is_json.then(|| Unread::by(fields())),
            at: 0,
        }
    }

    pub fn piece(&mut self, piece: &Piece) -> [Option<Remark>; 2] {
        let with_urls = self.with_urls.take().filter(|_| are_urls(&piece.batch));
        let with_urls = with_urls.map(Remark::Caveat);
        let Some(unread) = &mut self.unread else {
            return [with_urls, None];
        };
        for entry in &piece.batch.entries {
            let end = entry.end as usize;
            if let Some(text @ [_, ..]) = piece.chunk.bytes.get(self.at..end)
                && unread.look(text)
            {
                return [with_urls, self.end()];
            }
            self.at = end;
        }
        if piece.last {
            self.at = 0;
        }
        [with_urls, None]
    }

    pub fn end(&mut self) -> Option<Remark> {
        let missing = self.unread.take()?.missing();
        missing.map(Remark::Missing)
    }
}

fn are_urls(batch: &Batch) -> bool {
    let looked = batch.text_ends.len().min(NAMES) as u32;
    let is_url = |name: &u32| url::is_web(batch.name(*name));
    2 * (0..looked).filter(is_url).count() as u32 > looked
}
