//! The sections of an archive, byte by byte: header, block heads, end.

use xxhash_rust::xxh3::xxh3_64;

use super::block::From;
use super::sites::LOCAL;
use super::{Fault, MAGIC, OLDEST, VERSION};
use crate::codec::varint::number;
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
/// Flag: names are told in words. Without: as version 1 told them.
const WORDS: u8 = 4;
/// Flag: PPMd packed the text of the names, not zstd.
const PPMD: u8 = 8;
/// Flag: pages and links are told by their places on hosts.
const HOSTS: u8 = 16;
/// Flag: it is told how many pages hosts had before the block.
const COUNTED: u8 = 32;
/// Flag: the host of a name is that of its URL. Without, all names are on one host, which has no name.
const SITES: u8 = 64;
/// All of them.
const FLAGS: u8 = URLS | CLASSES | WORDS | PPMD | HOSTS | COUNTED | SITES;
/// Memory that a record takes, unpacked.
const ENTRY_MEMORY: u64 = 80;
const _: () = assert!(size_of::<crate::batch::Entry>() as u64 <= ENTRY_MEMORY);

/// What decided what the records mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub url_rules: u32,
    pub line_bytes: u64,
    pub url_bytes: u64,
    pub links: u64,
    /// [`InputRules::names_sum`].
    pub taken: u64,
}

/// Appends a little-endian number.
macro_rules! put {
    ($out:ident, $($value:expr),*) => { $($out.extend_from_slice(&$value.to_le_bytes());)* };
}

/// Appends the checksum of all of `out`.
fn seal(mut out: Vec<u8>) -> Vec<u8> {
    let sum = xxh3_64(&out);
    put!(out, sum);
    out
}

/// Whether the last eight bytes are the checksum of the others.
fn is_sound(head: &[u8]) -> bool {
    let (summed, sum) = head.split_at(head.len() - 8);
    xxh3_64(summed) == number(sum)
}

/// Reads numbers one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next(&mut self, size: usize) -> u64 {
        let (field, rest) = self.0.split_at(size.min(self.0.len()));
        self.0 = rest;
        number(field)
    }
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
        let mut out = MAGIC.to_vec();
        put!(
            out,
            VERSION,
            self.url_rules,
            self.line_bytes,
            self.url_bytes,
            self.links,
            self.taken,
            0u64
        );
        seal(out)
    }

    /// Reads `bytes`, [`HEADER`] of them.
    pub fn read(bytes: &[u8]) -> Result<Header, Refusal> {
        let damaged = |what: &str| Refusal::Damaged(Fault::new(what));
        if !bytes.starts_with(&MAGIC) {
            return Err(damaged("its first bytes are not those of an archive"));
        }
        let mut fields = Fields(&bytes[MAGIC.len()..]);
        let version = fields.next(4) as u32;
        if !is_sound(bytes) {
            return Err(damaged("the header does not match its checksum"));
        }
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(Refusal::Unknown(format!(
                "an archive of version {version}; this cashrank reads versions {OLDEST} to {VERSION}"
            )));
        }
        let header = Header {
            url_rules: fields.next(4) as u32,
            line_bytes: fields.next(8),
            url_bytes: fields.next(8),
            links: fields.next(8),
            taken: fields.next(8),
        };
        match fields.next(8) {
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

/// A block's head. All but `first_*` and `before` are of the block itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHead {
    pub urls: bool,
    /// Whether the classes of links follow.
    pub classes: bool,
    /// Whether names are told in words.
    pub words: bool,
    /// Whether PPMd packed their text.
    pub ppmd: bool,
    /// Whether pages and links are told by their places on hosts.
    pub hosts: bool,
    /// Whether it is told how many pages hosts had before the block.
    pub counted: bool,
    /// Whether the host of a name is that of its URL; else all names are on one host.
    pub sites: bool,
    pub from: From,
    /// The same of the first target on the page's own host.
    pub local_from: From,
    pub records: u32,
    pub names: u32,
    /// Names before the block.
    pub first_name: u32,
    /// Hosts before the block.
    pub first_host: u32,
    /// Records before the block.
    pub first_record: u64,
    /// Bytes of its names.
    pub text: u64,
    /// Its distinct targets, over all records.
    pub targets: u64,
    /// Its links as read.
    pub links: u64,
    pub names_len: u32,
    pub records_len: u32,
    pub names_sum: u64,
    pub records_sum: u64,
    /// Checksum of the head of the section before.
    pub before: u64,
}

impl BlockHead {
    /// The head of a block of nothing.
    pub fn empty(urls: bool, first_name: u32, first_record: u64) -> BlockHead {
        BlockHead {
            urls,
            classes: false,
            words: false,
            ppmd: false,
            hosts: false,
            counted: false,
            sites: false,
            from: From::Zero,
            local_from: From::Zero,
            records: 0,
            names: 0,
            first_name,
            first_host: 0,
            first_record,
            text: 0,
            targets: 0,
            links: 0,
            names_len: 0,
            records_len: 0,
            names_sum: 0,
            records_sum: 0,
            before: 0,
        }
    }

    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = BLOCK.to_vec();
        let flags = (u8::from(self.urls) * URLS)
            | (u8::from(self.classes) * CLASSES)
            | (u8::from(self.words) * WORDS)
            | (u8::from(self.ppmd) * PPMD)
            | (u8::from(self.hosts) * HOSTS)
            | (u8::from(self.counted) * COUNTED)
            | (u8::from(self.sites) * SITES);
        put!(out, flags, self.from as u8, self.local_from as u8, 0u8);
        put!(
            out,
            self.records,
            self.names,
            self.first_name,
            self.first_host
        );
        put!(out, self.first_record, self.text, self.targets, self.links);
        put!(
            out,
            self.names_len,
            self.records_len,
            self.names_sum,
            self.records_sum,
            self.before
        );
        seal(out)
    }

    /// Reads `bytes`, [`BLOCK_HEAD`] of them.
    pub fn read(bytes: &[u8]) -> Result<BlockHead, Refusal> {
        if !is_sound(bytes) {
            return Err(Fault::new("a block's head does not match its checksum").into());
        }
        let mut fields = Fields(&bytes[BLOCK.len()..]);
        let flags = fields.next(1) as u8;
        let froms = [fields.next(1), fields.next(1)];
        let [from, local_from] = froms.map(|from| From::ALL.get(from as usize).copied());
        let zero = fields.next(1);
        let (records, names) = (fields.next(4) as u32, fields.next(4) as u32);
        let (first_name, first_host) = (fields.next(4) as u32, fields.next(4) as u32);
        let unknown = || Refusal::Unknown("a block with unknown features".into());
        let (Some(from), Some(local_from)) = (from, local_from) else {
            return Err(unknown());
        };
        let head = BlockHead {
            urls: flags & URLS != 0,
            classes: flags & CLASSES != 0,
            words: flags & WORDS != 0,
            ppmd: flags & PPMD != 0,
            hosts: flags & HOSTS != 0,
            counted: flags & COUNTED != 0,
            sites: flags & SITES != 0,
            from,
            local_from,
            records,
            names,
            first_name,
            first_host,
            first_record: fields.next(8),
            text: fields.next(8),
            targets: fields.next(8),
            links: fields.next(8),
            names_len: fields.next(4) as u32,
            records_len: fields.next(4) as u32,
            names_sum: fields.next(8),
            records_sum: fields.next(8),
            before: fields.next(8),
        };
        let is_known = flags & !FLAGS == 0 && zero == 0 && head.is_sound();
        if !is_known {
            return Err(unknown());
        }
        Ok(head)
    }

    /// Whether its features go together.
    pub fn is_sound(&self) -> bool {
        let by_hosts = self.counted || self.sites || self.first_host > 0;
        let hosts = match self.hosts {
            true => self.words && self.from != From::Page,
            false => !by_hosts && self.local_from == From::Zero,
        };
        hosts && (self.counted || self.local_from != From::Newest) && (self.urls || !self.sites)
    }

    /// Names up to the end of the block.
    pub fn names_end(&self) -> Result<u32, Fault> {
        let end = self.first_name.checked_add(self.names);
        end.filter(|&end| !self.hosts || end < LOCAL)
            .ok_or_else(|| Fault::new("it has more names than an archive can"))
    }

    /// Bytes of the block behind its head.
    pub fn body(&self) -> u64 {
        u64::from(self.names_len) + u64::from(self.records_len)
    }

    /// Most bytes that the columns of its records may unpack to: more than any block needs. A record
    /// has twelve numbers and five counts, a target one gap or host, at most two runs and a class.
    pub fn columns(&self) -> u64 {
        let targets = self.targets.saturating_mul(18);
        targets.saturating_add(u64::from(self.records) * 84 + 4096)
    }

    /// Bytes of memory that the block takes, packed and unpacked.
    pub fn memory(&self) -> u64 {
        // What is told by hosts is there twice while it is completed.
        let text = self.text.saturating_mul(1 + u64::from(self.hosts));
        let names = text.saturating_add(u64::from(self.names) * 44);
        let unpacked = self.records_memory().saturating_add(names);
        unpacked.saturating_add(self.body())
    }

    /// Of it, what its records take unpacked. With hosts there is one for each new name and each record's page, and
    /// a shape for each list; with sites, two tables have all hosts.
    pub fn records_memory(&self) -> u64 {
        let links = self.targets.saturating_mul(6);
        let (records, names) = (u64::from(self.records), u64::from(self.names));
        let sites = u64::from(self.sites) * 68 * names;
        let hosts = u64::from(self.hosts) * (100 * records + 12 * names) + sites;
        let entries = records * ENTRY_MEMORY + hosts;
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
        let mut out = END.to_vec();
        put!(
            out,
            0u32,
            self.blocks,
            self.records,
            self.names,
            self.links,
            self.before
        );
        put!(out, self.entries_sum);
        seal(out)
    }

    /// Reads `bytes`, [`END_HEAD`] of them.
    pub fn read(bytes: &[u8]) -> Result<EndHead, Fault> {
        if !is_sound(bytes) || !bytes.starts_with(&END) {
            return Err(Fault::new("the end's head does not match its checksum"));
        }
        let mut fields = Fields(&bytes[END.len()..]);
        if fields.next(4) != 0 {
            return Err(Fault::new("the end has unknown features"));
        }
        Ok(EndHead {
            blocks: fields.next(8),
            records: fields.next(8),
            names: fields.next(8),
            links: fields.next(8),
            before: fields.next(8),
            entries_sum: fields.next(8),
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
    let mut out = Vec::with_capacity(ENTRY);
    put!(
        out,
        offset,
        head.first_record,
        u64::from(head.first_name),
        first_link
    );
    out
}

/// The end's last part.
pub(super) fn tail_bytes(end: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(TAIL);
    put!(out, end);
    out.extend_from_slice(&TAIL_MAGIC);
    out
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
