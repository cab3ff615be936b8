//! Records on their way to another process.

use super::numbers::{Known, Numbers};
use super::wire::{pack, parts, put, take};
use crate::Result;
use crate::batch::split::PartBatch;
use crate::batch::split::{Slots, Split};
use crate::batch::{Builder, Rules};
use crate::model::Fingerprint;
use crate::model::{Batch, Entry};
use crate::model::{HashKey, Limits, Link, Names, Parsed, Record};
use crate::rank::settle::{Exchange, Peers};
use crate::store::kept;

/// There is nothing to exchange.
struct Silent;

impl Exchange for Silent {
    fn exchange(&mut self, messages: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        Ok(messages)
    }
}

/// Partitions.
const COUNT: u32 = 3;

fn batch(key: HashKey, turn: u8) -> Batch {
    let rules = Rules {
        limits: Limits::default(),
        self_links: Default::default(),
        key,
        input: Default::default(),
        classes: true,
        follow: Default::default(),
        partitions: COUNT,
    };
    let mut builder = Builder::new(rules, Names::Url);
    for at in 0..40u8 {
        let links: Vec<String> = (0..at % 7)
            .map(|link| {
                format!(
                    "http://h{}.example/{}",
                    (at * 3 + link) % 5,
                    link * at % (11 + turn)
                )
            })
            .collect();
        let links: Vec<Link<'_>> = links.iter().map(|link| Link::to(link.as_bytes())).collect();
        let url = format!("http://h{}.example/{}", at % 5, at % 13);
        builder.add(Parsed::Record(&Record {
            url: url.as_bytes().into(),
            links,
            fetched_at: (at % 3 == 0).then_some(i64::from(at) - 20),
            ..Record::default()
        }));
    }
    builder.take()
}

/// Batches that have names in common, part by part: by name as long as they are new, and with all names.
#[test]
fn parts_arrive_as_they_were_sent() {
    let key = HashKey([3, 4]);
    let (count, prints) = (COUNT, key.fingerprints());
    let of_two = |process| Peers::new(process, 2, Silent).unwrap();
    let (peers, other) = (&of_two(0), &of_two(1));
    // Room for two batches, and for few names more.
    let most = 2 * batch(key, 0).fingerprints.len() as u64 + 8;
    let (mut numbers, mut known) = (Numbers::of_at_most(most), Known::default());
    let (mut texts, mut restarts) = (0, Vec::new());
    for turn in 0..6u8 {
        let batch = batch(key, turn);
        if numbers.begin(&batch, peers).unwrap() {
            restarts.push(turn);
            known.forget();
        }
        let times = vec![Some(5); batch.entries.len()];
        let split = Split::new(&batch, (0, 0), &times, count);
        let part = |number: u32, knows: &dyn Fn(u32) -> bool| {
            let mut made = PartBatch::default();
            split.part(number, (&mut Slots::default(), &mut made), knows);
            made
        };
        let with_numbers = |mut made: PartBatch| {
            made.names
                .iter_mut()
                .for_each(|name| *name = numbers.of(*name));
            made
        };
        let whole: Vec<PartBatch> = (0..count).map(|n| part(n, &|_| false)).collect();
        assert!(
            whole
                .iter()
                .filter(|part| !part.batch.entries.is_empty())
                .count()
                > 1
        );
        for (number, made) in (0..).zip(whole) {
            let made = with_numbers(made);
            let bytes = pack(number, &made, true).unwrap();
            let got = take(&bytes, number, (&Known::default(), &prints)).unwrap();
            is_same(&got, &made, |_| true);
            let cut = &bytes[..bytes.len() - 1];
            assert!(take(cut, number, (&known, &prints)).is_err());
        }
        // Partition 1 is the other process's.
        let made = part(1, &|name| numbers.is_known(1, name));
        let sent: Vec<u32> = made.names.clone();
        let new: Vec<bool> = sent
            .iter()
            .map(|&name| !numbers.is_known(1, name))
            .collect();
        let made = with_numbers(made);
        let bytes = pack(1, &made, false).unwrap();
        let names = numbers
            .introduce(&batch, sent.iter().copied(), (peers, 1))
            .unwrap();
        let mut message = names.clone();
        put(&mut message, 1, made.names.len(), &bytes);
        let mut rest = &message[..];
        known.learn(&mut rest, &prints, other).unwrap();
        let found = parts(rest).unwrap();
        assert_eq!((found[0].number, found[0].names), (1, made.names.len()));
        assert!(parts(&rest[..rest.len() - 1]).is_err());
        let got = take(found[0].records, 1, (&known, &prints)).unwrap();
        is_same(&got, &made, |at| new[at]);
        texts += new
            .iter()
            .zip(&made.batch.owners)
            .filter(|(new, owner)| **new && **owner == 1)
            .count();
        assert!(
            restarts.ends_with(&[turn]) || new.iter().any(|new| !new),
            "nothing comes twice"
        );
        assert!(
            Known::default()
                .learn(&mut &names[..names.len() - 1], &prints, other)
                .is_err()
        );
        assert!(take(&bytes, 1, (&Known::default(), &prints)).is_err());
    }
    assert!(texts > 4, "{texts}");
    assert!((2..6).contains(&restarts.len()), "{restarts:?}");
}

/// Of names of the partition's own only those have a text of which that `is_new`.
fn is_same(got: &PartBatch, made: &PartBatch, is_new: impl Fn(usize) -> bool) {
    assert_eq!(
        (&got.names, &got.batch.owners),
        (&made.names, &made.batch.owners)
    );
    let of = |batch: &Batch| {
        let entries = batch.entries.iter().map(|e| Entry { end: 0, ..*e });
        let entries: Vec<Entry> = entries.collect();
        let prints = batch.fingerprints.iter().copied().map(kept);
        let prints: Vec<Fingerprint> = prints.collect();
        let links = (batch.links.clone(), batch.classes.clone());
        (format!("{entries:?}"), prints, links)
    };
    assert_eq!(of(&got.batch), of(&made.batch));
    for at in 0..made.names.len() {
        let text = if is_new(at) {
            made.batch.name(at as u32)
        } else {
            b""
        };
        assert_eq!(got.batch.name(at as u32), text);
    }
}
