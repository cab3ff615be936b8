//! Reading: sections to batches, and whether the sections follow each other.

use xxhash_rust::xxh3::xxh3_64;

use super::Fault;
use super::section::{
    BLOCK, BLOCK_HEAD, BlockHead, END, END_HEAD, EndHead, HEADER, Header, Refusal, section_len,
    tail_bytes,
};
use super::unpack::{Policy, Unpacker};
use crate::batch::{Batch, Fingerprints, Rules};
use crate::codec::varint::number;
use crate::model::{Numbering, Part, PartKind};
use crate::source::{Chunk, Damage, DamageKind, InputName};
use crate::{Error, Result};

/// Bytes of memory up to which a block is a usual one.
const USUAL_BLOCK: u64 = 96 << 20;

impl Part {
    /// One that says nothing.
    fn of(kind: PartKind) -> Part {
        Part {
            kind,
            first_record: 0,
            records: 0,
            first_name: 0,
            names: 0,
            urls: false,
            links: 0,
            start: 0,
            end: 0,
            sum: 0,
            before: 0,
        }
    }

    /// A block whose place is not known.
    pub(super) fn of_block(head: &BlockHead) -> Part {
        Part {
            first_record: head.first_record,
            records: head.records,
            first_name: head.first_name,
            names: head.names,
            urls: head.features.urls,
            links: head.links,
            before: head.before,
            ..Part::of(PartKind::Block)
        }
    }

    /// Names up to its end.
    pub fn names_end(&self) -> u64 {
        u64::from(self.first_name) + u64::from(self.names)
    }
}

/// Unpacks the sections of chunks, on any thread.
pub(crate) struct Reader {
    input: InputName,
    rules: Rules,
    fingerprints: Fingerprints,
    /// Names whose pages the caller knows: they are not unpacked.
    known: u64,
    unpacker: Unpacker,
    /// The batch that the next section is unpacked into.
    batch: Batch,
}

impl Reader {
    /// A reader of one archive.
    pub fn new(input: InputName, rules: Rules, known: u64) -> Result<Reader> {
        let unpacker = Unpacker::new().map_err(|Fault(what)| Error::internal(what))?;
        Ok(Reader {
            input,
            fingerprints: rules.key.fingerprints(),
            rules,
            known,
            unpacker,
            batch: Batch::default(),
        })
    }

    /// Hands out a batch for each section of `chunk`, in order, and at least one; see
    /// [`Builder::run`](crate::batch::Builder::run).
    ///
    /// # Errors
    /// [`Error::Corrupt`] and [`Error::Unsupported`], after all sections before.
    pub fn run(
        &mut self,
        chunk: &Chunk,
        mut emit: impl FnMut(Batch, bool) -> Option<Batch>,
    ) -> Result<()> {
        let mut at = 0;
        let mut ended = false;
        loop {
            let mut batch = std::mem::take(&mut self.batch);
            batch.clear();
            let rest = &chunk.bytes[at..];
            let len = match section_len(rest) {
                _ if rest.is_empty() => 0,
                _ if ended => return Err(trailing(&self.input, chunk.offset + at as u64)),
                Ok(Some(len)) if len <= rest.len() as u64 => len as usize,
                Ok(_) => return Err(cut_short(&self.input, chunk.offset + at as u64)),
                Err(refusal) => return Err(self.refuse(refusal, chunk.offset + at as u64)),
            };
            if len > 0 {
                let part = self.section(&rest[..len], at, &mut batch);
                let part = part.map_err(|error| self.refuse(error, chunk.offset + at as u64))?;
                ended = matches!(part.kind, PartKind::End { .. });
                batch.numbering = Numbering::Archive(part);
            }
            at += len;
            let last = at == chunk.bytes.len();
            let Some(next) = emit(batch, last) else {
                return Ok(());
            };
            self.batch = next;
            if last {
                return Ok(());
            }
        }
    }

    fn section(&mut self, bytes: &[u8], start: usize, batch: &mut Batch) -> Result<Part, Refusal> {
        let end = start + bytes.len();
        if bytes.starts_with(&BLOCK) {
            let head = BlockHead::read(&bytes[..BLOCK_HEAD])?;
            self.block(&head, &bytes[BLOCK_HEAD..], end, batch)?;
            let sum = number(&bytes[BLOCK_HEAD - 8..BLOCK_HEAD]);
            return Ok(Part {
                start,
                end,
                sum,
                ..Part::of_block(&head)
            });
        }
        if bytes.starts_with(&END) {
            let head = EndHead::read(&bytes[..END_HEAD])?;
            end_is_sound(&head, bytes)?;
            let names = u32::try_from(head.names);
            return Ok(Part {
                first_record: head.records,
                first_name: names.map_err(|_| Fault::new("it has more names than it can"))?,
                links: head.links,
                start,
                end,
                sum: number(&bytes[END_HEAD - 8..END_HEAD]),
                before: head.before,
                ..Part::of(PartKind::End {
                    blocks: head.blocks,
                })
            });
        }
        self.fits(&Header::read(bytes)?)?;
        Ok(Part {
            start,
            end,
            sum: number(&bytes[HEADER - 8..]),
            ..Part::of(PartKind::Header)
        })
    }

    /// What the archive was made with must be what it is used with: its records were chosen by it.
    fn fits(&self, header: &Header) -> Result<(), Refusal> {
        if self.rules.follow.has_pages() {
            return Err(Refusal::Unknown(
                "links of crawl archives have no weights by URL (`follow`): ingest the original inputs".into(),
            ));
        }
        let ours = Header::new(&self.rules.limits, &self.rules.input);
        if *header == ours {
            return Ok(());
        }
        if header.taken != ours.taken {
            return Err(Refusal::Unknown(
                "the archive was made with a different `drop_params` or `scope`, which decided what is in it: give the \
                 same settings (and use another store if this one has others), or convert the original inputs again"
                    .into(),
            ));
        }
        let message = |h: &Header| {
            format!(
                "`limit_line` {} `limit_url` {} `limit_links` {} and URL rules {}",
                h.line_bytes, h.url_bytes, h.links, h.url_rules
            )
        };
        Err(Refusal::Unknown(format!(
            "the archive was made with {}, and is being read with {}: give the same limits (and use another store if \
             this one has others), or convert the original inputs again",
            message(header),
            message(&ours)
        )))
    }

    fn block(
        &mut self,
        head: &BlockHead,
        body: &[u8],
        end: usize,
        batch: &mut Batch,
    ) -> Result<(), Refusal> {
        let limit = self.rules.limits.block_bytes;
        if head.memory() > limit {
            return Err(Refusal::Unknown(format!(
                "a block that takes {} bytes, more than `limit_block` {limit}: raise it",
                head.memory()
            )));
        }
        if head.targets > u64::from(u32::MAX) {
            return Err(Fault::new("it has more links than a block can").into());
        }
        let (names, records) = body.split_at(head.packed_names.len as usize);
        let is_known = u64::from(head.names_end()?) <= self.known;
        if xxh3_64(records) != head.packed_records.sum || xxh3_64(names) != head.packed_names.sum {
            return Err(Fault::new("a block does not match its checksum").into());
        }
        let policy = Policy {
            self_links: self.rules.self_links,
            classes: self.rules.classes,
        };
        let links = self.rules.limits.links;
        self.unpacker
            .records(records, head, policy, end as u64, batch)?;
        if !is_known {
            let most = self.rules.limits.url_bytes;
            self.unpacker
                .names(names, head, most, &self.fingerprints, batch)?;
        }
        if head.memory() > USUAL_BLOCK {
            // What a huge block took is given back.
            self.unpacker = Unpacker::new()?;
        }
        let most = batch.entries.iter().map(|entry| entry.counts.read).max();
        if most.is_some_and(|most| u64::from(most) > links) {
            return Err(Fault::new("a record has more links than the archive allows").into());
        }
        Ok(())
    }

    fn refuse(&self, refusal: Refusal, offset: u64) -> Error {
        match refusal {
            Refusal::Damaged(Fault(what)) => {
                corrupt(&self.input, DamageKind::InvalidData, &what, offset)
            }
            Refusal::Unknown(what) => Error::Unsupported(format!("{}: {what}", self.input)),
        }
    }
}

/// Roughly the bytes that a chunk of an archive takes while it is read: itself, and the largest of its blocks
/// unpacked, without names that are among the first `known`.
pub(crate) fn memory(chunk: &[u8], known: u64) -> u64 {
    let (mut at, mut most) = (0, 0);
    while let Ok(Some(len)) = section_len(&chunk[at..]) {
        if chunk[at..].starts_with(&BLOCK)
            && let Ok(head) = BlockHead::read(&chunk[at..at + BLOCK_HEAD])
        {
            let is_known = head.names_end().is_ok_and(|end| u64::from(end) <= known);
            most = most.max(if is_known {
                head.records_memory()
            } else {
                head.memory()
            });
        }
        at = at.saturating_add(len as usize).min(chunk.len());
    }
    most.saturating_add(chunk.len() as u64)
}

/// Checks what follows the head of the end.
fn end_is_sound(head: &EndHead, bytes: &[u8]) -> Result<(), Fault> {
    let body = &bytes[END_HEAD..];
    let entries = body.len() - tail_bytes(0).len();
    let (entries, tail) = body.split_at(entries);
    if xxh3_64(entries) != head.entries_sum || tail != tail_bytes(bytes.len() as u64) {
        return Err(Fault::new(
            "the index of blocks does not match its checksum",
        ));
    }
    Ok(())
}

fn corrupt(input: &InputName, kind: DamageKind, what: &str, offset: u64) -> Error {
    Error::Corrupt {
        input: input.to_string(),
        record: None,
        damage: Box::new(Damage {
            kind,
            what: format!("the archive is damaged in the section at byte {offset}: {what}"),
            member: None,
            unverified_from: offset,
            handed_out_to: offset,
        }),
    }
}

fn trailing(input: &InputName, offset: u64) -> Error {
    let what = "there is data after the end of the archive";
    corrupt(input, DamageKind::Trailing, what, offset)
}

fn cut_short(input: &InputName, offset: u64) -> Error {
    Error::Corrupt {
        input: input.to_string(),
        record: None,
        damage: Box::new(Damage {
            kind: DamageKind::Truncated,
            what: format!("the archive ends early, after the section before byte {offset}"),
            member: None,
            unverified_from: offset,
            handed_out_to: offset,
        }),
    }
}

/// The sections of an archive in their order: whether they come whole, none lost, none from elsewhere.
#[derive(Default)]
pub struct Chain {
    sum: Option<u64>,
    blocks: u64,
    records: u64,
    names: u64,
    links: u64,
    ended: bool,
}

impl Chain {
    /// Takes the next batch of the archive, and the chunk that it was read from.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not what follows; [`Error::Usage`] if it is too large to be held.
    pub fn follow(&mut self, chunk: &Chunk, batch: &Batch, input: &InputName) -> Result<()> {
        match (batch.part(), chunk.oversize) {
            (Some(part), _) => self.take(&part, input, chunk.offset + part.start as u64),
            (None, 0) => Ok(()),
            (None, bytes) => Err(Error::Usage(format!(
                "{input}: a block of {bytes} bytes or more at byte {}: raise `limit_block`",
                chunk.offset
            ))),
        }
    }

    fn take(&mut self, part: &Part, input: &InputName, offset: u64) -> Result<()> {
        let wrong = |what| Err(corrupt(input, DamageKind::InvalidData, what, offset));
        if self.ended {
            return Err(trailing(input, offset));
        }
        match (part.kind, self.sum) {
            (PartKind::Header, None) => {}
            (PartKind::Header, Some(_)) => return wrong("a header that is not at the start"),
            (_, None) => return wrong("the header is missing"),
            (_, Some(sum)) if sum != part.before => {
                return wrong("a block is missing, or from another archive");
            }
            _ => {}
        }
        let so_far = (self.records, self.names);
        if so_far != (part.first_record, u64::from(part.first_name)) {
            return wrong("its numbers do not continue those of the block before");
        }
        if let PartKind::End { blocks } = part.kind {
            self.ended = true;
            if (blocks, part.links) != (self.blocks, self.links) {
                return wrong("the totals at the end are not those of the blocks");
            }
        } else {
            self.blocks += u64::from(part.kind == PartKind::Block);
            self.records += u64::from(part.records);
            self.names += u64::from(part.names);
            self.links = self.links.saturating_add(part.links);
        }
        self.sum = Some(part.sum);
        Ok(())
    }

    /// To be called where the input ends, at `offset`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the end of the archive was not among the sections.
    pub fn finish(&self, input: &InputName, offset: u64) -> Result<()> {
        if self.ended || offset == 0 {
            return Ok(());
        }
        Err(cut_short(input, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Cza;
    use crate::archive::block::Shape;
    use crate::batch::{Entry, HashKey};
    use crate::engine::{Fingerprint, SelfLinks};
    use crate::model::Limits;
    use crate::rules::LinkClass;
    use crate::source::{Source, SourceOptions};

    fn rules(limits: &Limits) -> Rules {
        Rules {
            limits: limits.clone(),
            self_links: SelfLinks::Drop,
            key: HashKey([1, 2]),
            input: Default::default(),
            classes: true,
            follow: Default::default(),
        }
    }

    /// The sample, and its name.
    fn sample(limits: &Limits) -> (Chunk, InputName) {
        let sample = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/formats/samples/good/cza/crawl.cza"
        );
        let name = InputName::File(sample.into());
        let mut source = Source::open(&name, limits, &SourceOptions::default()).unwrap();
        let chunk = source.next_chunk(&Cza, Vec::new()).unwrap().unwrap();
        (chunk, name)
    }

    /// Each part of a block counts, with what a batch holds of it; names do not if they are known.
    #[test]
    fn a_chunk_takes_what_its_largest_block_does() {
        let known = |head: BlockHead| memory(&head.to_bytes(), u64::MAX) - BLOCK_HEAD as u64;
        let new = |head: BlockHead| memory(&head.to_bytes(), 0) - BLOCK_HEAD as u64;
        let empty = BlockHead {
            names: 1,
            ..BlockHead::empty(true, 0, 0)
        };
        let more = |change: &dyn Fn(&mut BlockHead)| {
            let mut head = empty;
            change(&mut head);
            [known(head) - known(empty), new(head) - new(empty)]
        };
        let names = 1000 * (size_of::<Fingerprint>() + size_of::<u32>()) as u64;
        let entries = 1000 * (size_of::<Entry>() + size_of::<Shape>()) as u64;
        let links = 1000 * (size_of::<u32>() + size_of::<LinkClass>()) as u64;
        let [known_names, new_names] = more(&|head| head.names = 1001);
        assert!(known_names == 0 && new_names >= names);
        assert_eq!(more(&|head| head.text = 1000), [0, 1000]);
        assert!(
            more(&|head| head.records = 1000)
                .iter()
                .all(|&n| n >= entries)
        );
        assert!(
            more(&|head| head.targets = 1000)
                .iter()
                .all(|&n| n >= links)
        );
        let (chunk, _) = sample(&Limits::default());
        let bytes = &chunk.bytes[..];
        let least = [empty.to_bytes(), bytes.to_vec()].concat();
        assert_eq!(memory(&least, 6), memory(bytes, 6) + BLOCK_HEAD as u64);
        // Of what is no section nothing is known but its length.
        assert_eq!(memory(&bytes[1..], 0), bytes.len() as u64 - 1);
        assert_eq!(memory(&[], 0), 0);
    }

    /// A batch that comes back is what the next section goes into, in the next chunk too, and nothing of what
    /// was in it is left.
    #[test]
    fn batches_are_used_again() {
        let limits = Limits::default();
        let (chunk, name) = sample(&limits);
        let mut reader = Reader::new(name, rules(&limits), 0).unwrap();
        let mut read = |mut next: Box<dyn FnMut(Batch) -> Batch>| {
            let mut records = Vec::new();
            let emit = |batch: Batch, _: bool| {
                records.push((batch.entries.len(), batch.links.clone(), batch.text.clone()));
                Some(next(batch))
            };
            reader.run(&chunk, emit).unwrap();
            records
        };
        let fresh = read(Box::new(|_| Batch::default()));
        assert!(fresh.len() > 2 && fresh.iter().any(|(_, links, _)| !links.is_empty()));
        const ROOM: usize = 1 << 16;
        let used = |mut batch: Batch| {
            batch.links.resize(ROOM, 7);
            batch
        };
        assert_eq!(read(Box::new(used)), fresh);
        let again = |batch: Batch| {
            assert!(batch.links.capacity() >= ROOM);
            batch
        };
        assert_eq!(read(Box::new(again)), fresh);
    }
}
