//! The sections of an archive, byte by byte: header, block heads, end.

use xxhash_rust::xxh3::xxh3_64;

use super::block::{From, Shape};
use super::{Fault, MAGIC, VERSION};
use crate::codec::frame::{Fields, Head, is_sealed};
use crate::model::Limits;
use crate::rules::InputRules;

/// Length of the header.
pub(super) const HEADER: usize = 64;
/// Length of a block's head.
pub(super) const BLOCK_HEAD: usize = 96;
/// Length of the end's head.
pub(super) const END_HEAD: usize = 64;
/// Length of an entry of the end's index.
pub(super) const ENTRY: usize = 32;
/// Length of the end's last part.
pub(super) const TAIL: usize = 16;
/// First bytes of a block.
pub(super) const BLOCK: [u8; 4] = *b"CZAB";
/// First bytes of the end.
pub(super) const END: [u8; 4] = *b"CZAE";
/// Last bytes of the end.
pub(super) const TAIL_MAGIC: [u8; 8] = *b"\r\n\x1aCZA\x89\n";
/// Flag: the names are URLs in canonical form, not opaque.
const URLS: u8 = 1;
/// Flag: the classes of links follow.
const CLASSES: u8 = 2;
/// Flag: what was left out as out of scope is counted, records as links.
const SCOPED: u8 = 128;
/// Flags that all blocks have: frequent words are single bytes, and all names are on one host.
const ALWAYS: u8 = 4 | 16 | 32;
/// Flags that version 0.1 set from `--level 10` on: PPMd packed the text of names, pages were numbered by their hosts.
const BY_HOSTS: u8 = 8 | 64;
/// Most names of an archive: what is above numbered pages by their hosts.
pub(super) const NAMES_MAX: u32 = (1 << 31) - 1;
/// Memory that a record takes, unpacked.
const ENTRY_MEMORY: u64 = 80;
const _: () = assert!(size_of::<crate::batch::Entry>() as u64 <= ENTRY_MEMORY);

/// The rules and limits that records were read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub url_rules: u32,
    pub line_bytes: u64,
    pub url_bytes: u64,
    pub links: u64,
    /// [`InputRules::names_sum`].
    pub taken: u64,
}

impl Header {
    pub fn new(limits: &Limits, input: &InputRules) -> Header {
        Header {
            url_rules: crate::url::RULES,
            line_bytes: limits.line_bytes,
            url_bytes: limits.url_bytes,
            links: limits.links,
            taken: input.names_sum(),
        }
    }

    pub fn to_bytes(self) -> Vec<u8> {
        let head = Head::behind(MAGIC.to_vec())
            .u32(VERSION)
            .u32(self.url_rules);
        let limits = [self.line_bytes, self.url_bytes, self.links];
        head.u64s(limits).u64(self.taken).u64(0).sealed()
    }

    /// Reads `bytes`, [`HEADER`] of them.
    pub fn read(bytes: &[u8]) -> Result<Header, Refusal> {
        let damaged = |what: &str| Refusal::Damaged(Fault::new(what));
        if !bytes.starts_with(&MAGIC) {
            return Err(damaged("its first bytes are not those of an archive"));
        }
        let mut fields = Fields(&bytes[MAGIC.len()..]);
        let version = fields.u32();
        if !is_sealed(bytes) {
            return Err(damaged("the header does not match its checksum"));
        }
        if version != VERSION {
            return Err(Refusal::Unknown(format!(
                "an archive of version {version}; this cashrank reads version {VERSION}: convert the original inputs \
                 again"
            )));
        }
        let header = Header {
            url_rules: fields.u32(),
            line_bytes: fields.u64(),
            url_bytes: fields.u64(),
            links: fields.u64(),
            taken: fields.u64(),
        };
        match fields.u64() {
            0 => Ok(header),
            _ => Err(Refusal::Unknown("an archive with unknown features".into())),
        }
    }
}

/// Why a section cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is not what was written.
    Damaged(Fault),
    /// It is sound, and something this program does not know.
    Unknown(String),
}

impl std::convert::From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Damaged(fault)
    }
}

/// What a block holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Features {
    /// Its names are URLs.
    pub urls: bool,
    /// It has the classes of links.
    pub classes: bool,
    /// It counts records and links that were out of scope.
    pub scoped: bool,
}

/// Length and checksum of the packed names, or of the packed records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PackedPart {
    pub len: u32,
    pub sum: u64,
}

impl PackedPart {
    /// # Errors
    /// It has 4 GiB or more.
    pub fn of(bytes: &[u8]) -> Result<PackedPart, std::num::TryFromIntError> {
        Ok(PackedPart {
            len: u32::try_from(bytes.len())?,
            sum: xxh3_64(bytes),
        })
    }
}

/// A block's head. All but `first_*` and `before` are of the block itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHead {
    pub features: Features,
    pub from: From,
    pub records: u32,
    pub names: u32,
    /// Names before the block.
    pub first_name: u32,
    /// Records before the block.
    pub first_record: u64,
    /// Bytes of its names.
    pub text: u64,
    /// Its distinct targets, over all records.
    pub targets: u64,
    /// Its links as read.
    pub links: u64,
    pub packed_names: PackedPart,
    pub packed_records: PackedPart,
    /// Checksum of the head of the section before.
    pub before: u64,
}

impl BlockHead {
    /// The head of a block of nothing.
    pub fn empty(urls: bool, first_name: u32, first_record: u64) -> BlockHead {
        BlockHead {
            features: Features {
                urls,
                ..Features::default()
            },
            from: From::Zero,
            records: 0,
            names: 0,
            first_name,
            first_record,
            text: 0,
            targets: 0,
            links: 0,
            packed_names: PackedPart::default(),
            packed_records: PackedPart::default(),
            before: 0,
        }
    }

    pub fn to_bytes(self) -> Vec<u8> {
        let Features {
            urls,
            classes,
            scoped,
        } = self.features;
        let chosen = [(urls, URLS), (classes, CLASSES), (scoped, SCOPED)];
        let chosen = chosen.iter().filter(|(is_set, _)| *is_set);
        let flags = chosen.fold(ALWAYS, |flags, (_, flag)| flags | flag);
        let head = Head::behind(BLOCK.to_vec()).u8(flags);
        let head = head.u8(0).u8(self.from as u8).u8(0);
        let head = head.u32(self.records).u32(self.names);
        let head = head.u32(self.first_name).u32(self.hosts_before());
        let head = head.u64s([self.first_record, self.text, self.targets, self.links]);
        let (names, records) = (self.packed_names, self.packed_records);
        let head = head.u32(names.len).u32(records.len);
        head.u64s([names.sum, records.sum, self.before]).sealed()
    }

    /// Reads `bytes`, [`BLOCK_HEAD`] of them.
    pub fn read(bytes: &[u8]) -> Result<BlockHead, Refusal> {
        if !is_sealed(bytes) {
            return Err(Fault::new("a block's head does not match its checksum").into());
        }
        let mut fields = Fields(&bytes[BLOCK.len()..]);
        let flags = fields.u8();
        if flags & !(URLS | CLASSES | BY_HOSTS) == ALWAYS && flags & BY_HOSTS != 0 {
            return Err(Refusal::Unknown(
                "an archive that version 0.1 made at `level` 10 or above, whose pages are numbered by their hosts: \
                 convert the original inputs again, or this archive with version 0.1 at `level` 9"
                    .into(),
            ));
        }
        let elsewhere = fields.u8();
        let from = From::ALL.get(usize::from(fields.u8())).copied();
        let zeros = elsewhere | fields.u8();
        let unknown = || Refusal::Unknown("a block with unknown features".into());
        let from = from.ok_or_else(unknown)?;
        let (records, names) = (fields.u32(), fields.u32());
        let (first_name, hosts_before) = (fields.u32(), fields.u32());
        let mut head = BlockHead {
            features: Features {
                urls: flags & URLS != 0,
                classes: flags & CLASSES != 0,
                scoped: flags & SCOPED != 0,
            },
            from,
            records,
            names,
            first_name,
            first_record: fields.u64(),
            text: fields.u64(),
            targets: fields.u64(),
            links: fields.u64(),
            packed_names: PackedPart::default(),
            packed_records: PackedPart::default(),
            before: 0,
        };
        (head.packed_names.len, head.packed_records.len) = (fields.u32(), fields.u32());
        (head.packed_names.sum, head.packed_records.sum) = (fields.u64(), fields.u64());
        head.before = fields.u64();
        let is_known = flags & !(URLS | CLASSES | SCOPED) == ALWAYS && zeros == 0;
        if !is_known || hosts_before != head.hosts_before() {
            return Err(unknown());
        }
        Ok(head)
    }

    /// Hosts before the block: one has all names.
    fn hosts_before(&self) -> u32 {
        u32::from(self.first_name > 0)
    }

    /// Names up to the end of the block.
    pub fn names_end(&self) -> Result<u32, Fault> {
        let end = self.first_name.checked_add(self.names);
        end.filter(|&end| end <= NAMES_MAX)
            .ok_or_else(|| Fault::new("it has more names than an archive can"))
    }

    /// Bytes of the block behind its head.
    pub fn body(&self) -> u64 {
        u64::from(self.packed_names.len) + u64::from(self.packed_records.len)
    }

    /// Most bytes that the columns of its records may unpack to: more than any block needs. A record
    /// has twelve numbers and six counts, a target one gap or host, at most two runs and a class.
    pub fn columns(&self) -> u64 {
        let targets = self.targets.saturating_mul(18);
        targets.saturating_add(u64::from(self.records) * 88 + 4096)
    }

    /// Bytes of memory that the block takes, packed and unpacked.
    pub fn memory(&self) -> u64 {
        let names = self.text.saturating_add(u64::from(self.names) * 44);
        let unpacked = self.records_memory().saturating_add(names);
        unpacked.saturating_add(self.body())
    }

    /// Of it, what its records take unpacked: entries, a shape for each list at most, and links.
    pub fn records_memory(&self) -> u64 {
        let links = self.targets.saturating_mul(6);
        let entries = u64::from(self.records) * (ENTRY_MEMORY + size_of::<Shape>() as u64);
        self.columns().saturating_add(links).saturating_add(entries)
    }
}

/// The end's head: totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndHead {
    pub blocks: u64,
    pub records: u64,
    pub names: u64,
    pub links: u64,
    pub before: u64,
    /// Checksum of the entries.
    pub entries_sum: u64,
}

impl EndHead {
    pub fn to_bytes(self) -> Vec<u8> {
        let head = Head::behind(END.to_vec()).u32(0);
        let head = head.u64s([self.blocks, self.records, self.names, self.links]);
        head.u64(self.before).u64(self.entries_sum).sealed()
    }

    /// Reads `bytes`, [`END_HEAD`] of them.
    pub fn read(bytes: &[u8]) -> Result<EndHead, Fault> {
        if !is_sealed(bytes) || !bytes.starts_with(&END) {
            return Err(Fault::new("the end's head does not match its checksum"));
        }
        let mut fields = Fields(&bytes[END.len()..]);
        if fields.u32() != 0 {
            return Err(Fault::new("the end has unknown features"));
        }
        Ok(EndHead {
            blocks: fields.u64(),
            records: fields.u64(),
            names: fields.u64(),
            links: fields.u64(),
            before: fields.u64(),
            entries_sum: fields.u64(),
        })
    }

    /// Length of the end behind its head; `None`: more than can be.
    pub fn body(&self) -> Option<u64> {
        self.blocks
            .checked_mul(ENTRY as u64)?
            .checked_add(TAIL as u64)
    }
}

/// Where a block lies, and what comes before it.
pub(super) fn entry_bytes(offset: u64, head: &BlockHead, first_link: u64) -> Vec<u8> {
    let names = u64::from(head.first_name);
    Head::default()
        .u64s([offset, head.first_record, names, first_link])
        .bytes()
}

/// The end's last part.
pub(super) fn tail_bytes(end: u64) -> Vec<u8> {
    [&end.to_le_bytes()[..], &TAIL_MAGIC].concat()
}

/// Length of the whole section that `bytes` begins with. `Ok(None)`: too few bytes to tell.
pub(super) fn section_len(bytes: &[u8]) -> Result<Option<u64>, Refusal> {
    let wrong = || Refusal::Damaged(Fault::new("no section begins here"));
    let Some(tag) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    let (head, rest) = match *tag {
        BLOCK => (BLOCK_HEAD, bytes.get(..BLOCK_HEAD)),
        END => (END_HEAD, bytes.get(..END_HEAD)),
        _ if MAGIC.starts_with(tag) => (HEADER, bytes.get(..HEADER)),
        _ => return Err(wrong()),
    };
    let Some(bytes) = rest else {
        return Ok(None);
    };
    let body = match *tag {
        BLOCK => BlockHead::read(bytes)?.body(),
        END => EndHead::read(bytes)?.body().ok_or_else(wrong)?,
        _ => 0,
    };
    // An end may claim so many blocks that its length is no number.
    let len = body.checked_add(head as u64).ok_or_else(wrong)?;
    Ok(Some(len))
}
