//! The arrays of an engine whose turn is over: what takes memory for each page, cash and index, is given away, and taken back
//! when its turn comes. Meanwhile the engine knows its sums, counts and settings, and takes no record.

use super::{Engine, Fingerprint, PageId, Probe, SEGMENTS, Slot, Storage};
use crate::Result;

/// How the index lies that was given away: the slots of each segment, one segment after the other.
#[derive(Clone)]
pub(crate) struct IndexPlace(Box<[u64; SEGMENTS]>);

impl IndexPlace {
    /// The page with a fingerprint. `read` fills in the bytes from a place on.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn find(
        &self,
        fingerprint: Fingerprint,
        read: impl FnOnce(&mut [u8], u64) -> Result<()>,
    ) -> Result<Option<PageId>> {
        let probe = Probe::of(fingerprint, &self.0);
        let before: u64 = self.0[..probe.segment].iter().sum();
        let at = (before + probe.slots.start as u64) * size_of::<Slot>() as u64;
        let mut slots = vec![Slot::default(); probe.slots.len()];
        read(slots.as_flattened_mut(), at)?;
        Ok(probe.find(&slots))
    }
}

impl<S: Storage> Engine<S> {
    /// Gives the cash of all pages, and their ages, to `put`.
    ///
    /// # Errors
    /// Those of `put`; then nothing was given up.
    pub(crate) fn give_cash(&mut self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.ledger.give_away(put)
    }

    /// Gives cash and ages up that were taken back, and have not changed.
    pub(crate) fn drop_cash(&mut self) {
        self.ledger.leave();
    }

    /// Has `get` fill in the cash and the ages that were given away, with room for so many pages.
    ///
    /// # Errors
    /// Those of `get`, and of memory that is not to be had.
    pub(crate) fn take_cash(
        &mut self,
        room: u64,
        get: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        self.ledger.take_back(room, get)
    }

    /// Gives the index to `put`.
    ///
    /// # Errors
    /// Those of `put`; then nothing was given up.
    pub(crate) fn give_index(
        &mut self,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<IndexPlace> {
        Ok(IndexPlace(Box::new(self.index.give_away(put)?)))
    }

    /// Gives the index up that was taken back, and has not changed.
    pub(crate) fn drop_index(&mut self) {
        self.index.leave();
    }

    /// Has `get` fill in the index that was given away. False: it is not that.
    ///
    /// # Errors
    /// Those of `get`, and of memory that is not to be had.
    pub(crate) fn take_index(
        &mut self,
        place: &IndexPlace,
        get: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<bool> {
        self.index.take_back(&place.0, get)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::engine::{Admit, Config, InMemory, Links, PageEntry};
    use crate::model::{Batch, Digest, What};

    fn print(at: u128) -> Fingerprint {
        // Spread over all bits that an index looks at.
        (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }

    /// Admits pages, and visits the last of them with links to the first ones.
    fn apply(engine: &mut Engine<InMemory>, pages: std::ops::Range<u128>) {
        let count = (pages.end - pages.start) as usize;
        let batch = Batch {
            fingerprints: pages.clone().map(print).collect(),
            text_ends: vec![0; count],
            ..Batch::default()
        };
        let mut found = Vec::new();
        engine
            .admit(&batch, 0..count, |page| found.push(page))
            .unwrap();
        let visit = |page| PageEntry {
            what: What::Visit,
            page,
            links: Links::from(&found[..3]),
            fetched_at: None,
            digest: Digest::NONE,
            counts: Default::default(),
        };
        engine.apply(&visit(found[count - 1])).unwrap();
    }

    fn put_to(bytes: &mut Vec<u8>) -> impl FnMut(&[u8]) -> Result<()> {
        |some| {
            bytes.extend_from_slice(some);
            Ok(())
        }
    }

    /// What was given away and taken back makes no difference to what comes after; what lies elsewhere is found there.
    #[test]
    fn an_engine_goes_on_where_it_left() {
        let [mut stays, mut leaves] = [(); 2].map(|()| Engine::new(Config::default()).unwrap());
        for round in 0..6u128 {
            let pages = round * 700..round * 900 + 1_000;
            apply(&mut stays, pages.clone());
            apply(&mut leaves, pages.clone());
            let mut bytes = Vec::new();
            leaves.give_cash(&mut put_to(&mut bytes)).unwrap();
            let index_at = bytes.len();
            let place = leaves.give_index(&mut put_to(&mut bytes)).unwrap();
            for at in [0, pages.start, pages.end - 1, pages.end, 1 << 60] {
                let read = |slots: &mut [u8], at: u64| {
                    let at = index_at + at as usize;
                    slots.copy_from_slice(&bytes[at..at + slots.len()]);
                    Ok(())
                };
                let found = place.find(print(at), read).unwrap();
                assert_eq!(found, stays.page(print(at)), "{at}");
            }
            let read = Cell::new(0);
            let mut get = |some: &mut [u8]| {
                let at = read.replace(read.get() + some.len());
                some.copy_from_slice(&bytes[at..at + some.len()]);
                Ok(())
            };
            leaves.take_cash(round as u64 * 1_000, &mut get).unwrap();
            assert!(leaves.take_index(&place, &mut get).unwrap());
            assert_eq!(read.get(), bytes.len());
            leaves.make_room(2_000, 1 << 20).unwrap();
            leaves.ledger().check_law().unwrap();
            assert_eq!(leaves.ledger().arrays(), stays.ledger().arrays());
            assert_eq!(leaves.state(), stays.state());
            let changed =
                |engine: &Engine<InMemory>| engine.ledger().dirty_chunks().collect::<Vec<_>>();
            assert_eq!(changed(&leaves), changed(&stays));
        }
    }

    /// An index that has other pages than the engine is not taken.
    #[test]
    fn another_index_is_found_out() {
        let mut engine = Engine::new(Config::default()).unwrap();
        apply(&mut engine, 0..50);
        let mut bytes = Vec::new();
        let place = engine.give_index(&mut put_to(&mut bytes)).unwrap();
        let used = bytes
            .chunks(size_of::<Slot>())
            .position(|slot| slot != [0; 10])
            .unwrap();
        bytes[used * size_of::<Slot>()..][..size_of::<Slot>()].fill(0);
        let mut bytes = bytes.as_slice();
        let mut get = |some: &mut [u8]| {
            let (head, rest) = bytes.split_at(some.len());
            some.copy_from_slice(head);
            bytes = rest;
            Ok(())
        };
        assert!(!engine.take_index(&place, &mut get).unwrap());
    }
}
