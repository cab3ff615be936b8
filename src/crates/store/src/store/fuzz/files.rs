//! Fuzz targets of the files of a store, one at a time.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::super::cash::{CashFile, mark_cells, open_marks, write_mark};
use super::super::identity::Identity;
use super::super::index_file::{IndexFile, indexed, sum_of};
use super::super::names::{NameLengths, NameLogs, NameReader, kept};
use super::super::warm::{self, WARM, WarmHead};
use crate::codec::frame::BlockHead;
use crate::codec::sealed;
use crate::disk::Access;
use crate::disk::log::{BlockLog, LogBlock, LogLengths};
use crate::engine::{
    CashMark, Effort, Fingerprint, LEAST_SLOTS, SEGMENTS, SettledPages, SettledPagesMut,
    SettledTotals, Totals,
};
use crate::fuzz::dice::{Bytes, Dice};
use crate::fuzz::memory::Memory;
use crate::store::Disk;
use crate::store::rows::CommittedRows;
use crate::{Error, Result};

const DIR: &str = "store";

fn dir() -> &'static Path {
    Path::new(DIR)
}

fn expect<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// Checks that an error is `Damaged`, as no disk operation failed.
fn judge<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Damaged { .. }) => None,
        Err(refused) if refused.is_refusal() => None,
        Err(error) => panic!("{error}"),
    }
}

/// Fuzzes `identity.json`, as it is and with its checksum corrected.
pub fn identity(data: &[u8]) {
    let disk = Memory::default();
    let path = dir().join("identity.json");
    disk.put(&path, data);
    let _damaged = judge(Identity::read(&disk, dir()));
    let Ok(serde_json::Value::Object(mut content)) = serde_json::from_slice(data) else {
        return;
    };
    content.remove("checksum");
    disk.put(&path, &sealed::to_text(&content).unwrap_or_default());
    if let Some(found) = judge(Identity::read(&disk, dir())) {
        let (settings, key) = (found.settings.clone(), found.key);
        expect(Identity::stage(&disk, dir(), found.settings, found.key));
        expect(Identity::adopt(&disk, dir()));
        let again = expect(Identity::read(&disk, dir()));
        assert!(again.settings == settings && again.key == key);
    }
}

/// Opens a log of which all bytes are committed.
fn open_log(disk: &Memory, data: &[u8], index: &[u8]) -> BlockLog {
    let path = dir().join("urls");
    disk.put(&path, data);
    disk.put(&path.with_extension("index"), index);
    let lengths = LogLengths {
        data: data.len() as u64,
        index: index.len() as u64,
    };
    expect(BlockLog::open(disk, &path, Access::Look, lengths))
}

/// Reads a log in all ways that readers do. `page` is a page to look up.
fn read_log(log: &BlockLog, page: u64) -> Option<Vec<LogBlock>> {
    if let Some(block) = judge(log.find(page)) {
        let at = page.checked_sub(block.first);
        assert!(at.is_some_and(|at| at < u64::from(block.pages)));
    }
    let sound = judge(log.verify_index());
    let blocks: Option<Vec<LogBlock>> = log.blocks().map(judge).collect();
    assert!(
        sound.is_none()
            || log
                .blocks()
                .all(|block| judge(block).is_some() || blocks.is_none())
    );
    blocks
}

/// Fuzzes a log of arbitrary blocks. Input: length of the index, the index, and the data, whose blocks get correct
/// checksums where they have room.
pub fn log(data: &[u8]) {
    let mut bytes = Bytes(data);
    let len = usize::from(bytes.byte());
    let index = bytes.take(len);
    let page = u64::from(Dice::of(data).one_of([0u8, 1, 7, 255])) << (len % 57);
    let disk = Memory::default();
    let _damaged = read_log(&open_log(&disk, bytes.0, index), page);
    let mut file = bytes.0.to_vec();
    let mut at = 0;
    while let Some(end) = make_right(&mut file, at) {
        at = end;
    }
    if let Some(blocks) = read_log(&open_log(&disk, &file, index), page) {
        let payloads = blocks.iter().map(|block| 24 + block.payload.len());
        assert_eq!(payloads.sum::<usize>(), file.len());
    }
}

/// Sets the checksum of the block at `at`. Returns the end of the block.
fn make_right(file: &mut [u8], at: usize) -> Option<usize> {
    let len = u32::from_le_bytes(*file.get(at + 12..)?.first_chunk()?);
    let end = (at + 24).checked_add(len as usize)?;
    let payload = xxh3_64(file.get(at + 24..end)?);
    let sum = xxh3_64(&[&file[at..at + 16], &payload.to_le_bytes()].concat());
    file[at + 16..at + 24].copy_from_slice(&sum.to_le_bytes());
    Some(end)
}

/// Checks that what is appended to a log is read back, by page and in order. Input: for each block the number of pages,
/// the length, and the payload.
pub fn log_written(data: &[u8]) {
    let disk = Memory::default();
    let path = dir().join("urls");
    let mut log = expect(BlockLog::open(
        &disk,
        &path,
        Access::Create,
        LogLengths::default(),
    ));
    let mut bytes = Bytes(data);
    let mut written = Vec::new();
    let mut first = 0;
    let mut lengths = LogLengths::default();
    while !bytes.0.is_empty() {
        let [pages, len] = bytes.array();
        let pages = 1 + u32::from(pages);
        let payload = bytes.take((len & 0x7f).into()).to_vec();
        log.append(first, pages, &payload);
        if len & 0x80 != 0 {
            lengths = expect(log.sync());
        }
        written.push(LogBlock {
            first,
            pages,
            payload,
        });
        first += u64::from(pages);
    }
    let whole = expect(log.sync());
    let log = expect(BlockLog::open(&disk, &path, Access::Look, whole));
    expect(log.verify_index());
    let found: Vec<LogBlock> = log.blocks().map(expect).collect();
    assert_eq!(found, written);
    for block in &written {
        let last = block.first + u64::from(block.pages) - 1;
        assert_eq!(&expect(log.find(block.first)), block);
        assert_eq!(&expect(log.find(last)), block);
    }
    assert!(log.find(first).is_err());
    // Opened after a crash, the log ends where it was committed.
    let log = expect(BlockLog::open(&disk, &path, Access::Write, lengths));
    expect(log.verify_index());
    assert!(written.starts_with(&log.blocks().map(expect).collect::<Vec<_>>()));
}

/// Fuzzes one block of names. Input: flags, number of names, and the front-coded text or, by a flag, the compressed
/// bytes themselves.
pub fn name_block(data: &[u8]) {
    let mut bytes = Bytes(data);
    let (flags, pages) = (bytes.byte(), bytes.byte());
    let pages = u32::from(pages) << (flags >> 3);
    let packed;
    let payload = if flags & 1 != 0 {
        bytes.0
    } else {
        packed = zstd::bulk::compress(bytes.0, 1).unwrap_or_default();
        &packed
    };
    let disk = Memory::default();
    let path = dir().join("urls");
    let mut log = expect(BlockLog::open(
        &disk,
        &path,
        Access::Create,
        LogLengths::default(),
    ));
    log.append(0, pages, payload);
    let urls = expect(log.sync());
    expect(BlockLog::open(
        &disk,
        &dir().join("fingerprints"),
        Access::Create,
        LogLengths::default(),
    ));
    let lengths = NameLengths {
        urls,
        ..NameLengths::default()
    };
    let names = expect(NameReader::open(&disk, dir(), lengths));
    let found: Option<Vec<String>> = names.names().map(judge).collect();
    let page = u64::from(pages).saturating_sub(1);
    let mut last = None;
    let of_last = names.each_of([page].into_iter(), &mut |name| last = Some(name.to_vec()));
    let last = judge(of_last).and(last);
    if let Some(found) = found {
        assert_eq!(found.len(), pages as usize);
        assert_eq!(last.as_deref(), found.last().map(String::as_bytes));
    }
}

/// Checks that names are read back as written. Input: one name per line.
pub fn names_written(data: &[u8]) {
    let disk = Memory::default();
    let mut logs = expect(NameLogs::create(&disk, dir()));
    let text = String::from_utf8_lossy(data);
    let mut written = Vec::new();
    let mut lengths = NameLengths::default();
    for (page, line) in text.split('\n').enumerate() {
        let print = Fingerprint::from(xxh3_64(line.as_bytes())) << (page % 65);
        expect(logs.append(print, line.as_bytes()));
        written.push((print, line));
        if line.ends_with('!') {
            lengths = expect(logs.sync());
            let names = expect(NameReader::open(&disk, dir(), lengths));
            assert_eq!(names.names().map(expect).count(), page + 1);
        }
    }
    assert!(lengths.urls.data <= expect(logs.sync()).urls.data);
    let names = expect(NameReader::open(&disk, dir(), expect(logs.sync())));
    expect(names.verify_indexes());
    let found = names.names().map(expect);
    assert!(found.eq(written.iter().map(|(_, line)| *line)));
    let prints = expect(names.fingerprints(0)).map(expect);
    assert!(prints.eq(written.iter().map(|(print, _)| kept(*print))));
    for from in 0..3.min(written.len()) {
        let mut lines = written[from..].iter().step_by(3);
        let pages = (from as u64..written.len() as u64).step_by(3);
        expect(names.each_of(pages, &mut |name| {
            assert_eq!(Some(name), lines.next().map(|(_, line)| line.as_bytes()));
        }));
        assert!(lines.next().is_none());
    }
}

/// Checks that a chunk of cash is accepted only as committed. Input: number of pages, slot, the byte to change (255:
/// none), cells and ages.
pub fn cash(data: &[u8]) {
    let mut bytes = Bytes(data);
    let [pages, slot, change] = bytes.array();
    let (pages, slot) = (usize::from(pages) + 1, slot & 1);
    let mut cells = vec![0u64; pages];
    cells.iter_mut().for_each(|cell| *cell = bytes.u64());
    let mut ages = vec![0u8; pages.div_ceil(2)];
    ages.iter_mut().for_each(|age| *age = bytes.byte());
    let hash = xxh3_64(&[bytemuck::cast_slice(&cells), &ages[..]].concat());
    let disk = Memory::default();
    let path = dir().join("cash");
    let file = expect(disk.open(&path, true).map_err(Error::io(&path, "open")));
    let start = u64::from(slot) * ((8 << 17) + (1 << 16));
    let mut raw: Vec<u8> = bytemuck::cast_slice(&cells).to_vec();
    let changed = usize::from(change) < raw.len() && change != 255;
    if changed {
        raw[usize::from(change)] ^= 1;
    }
    let written = file
        .write_at(&raw, start)
        .and_then(|()| file.write_at(&ages, start + (8 << 17)));
    assert!(written.is_ok());
    let slots = vec![(slot, hash); 2];
    let reader = expect(CashFile::open(&disk, dir(), Access::Look, slots));
    let mut found = (vec![0; pages], vec![0; ages.len()]);
    let read = judge(reader.read(0, &mut found.0, &mut found.1));
    assert_eq!(read.is_none(), changed);
    if !changed {
        assert_eq!(found, (cells, ages));
    }
    let beyond = reader.read(1 << 17, &mut [0], &mut [0]);
    assert!(judge(beyond).is_none(), "there is no second chunk");
}

/// Checks that a mark is read back as written, and that a changed file is damaged. Input: the kind of change, its
/// position, cells.
pub fn marks(data: &[u8]) {
    let mut bytes = Bytes(data);
    let [what, low, high] = bytes.array();
    let place = usize::from(u16::from_le_bytes([low, high]));
    let (cells, _) = bytes.0.as_chunks::<8>();
    let cells: Vec<u64> = cells.iter().map(|cell| u64::from_le_bytes(*cell)).collect();
    let mark = CashMark {
        number: 3,
        totals: Totals {
            pages: cells.len() as u64,
            ..Totals::default()
        },
    };
    let disk = Memory::default();
    let file = expect(write_mark(&disk, dir(), 5, &mark, &cells));
    let len = if cells.is_empty() {
        0
    } else {
        cells.len() * 8 + 8
    };
    let damaged = match what % 3 {
        1 if len > 0 => {
            let at = (place % len) as u64;
            let mut byte = [0];
            let flipped = file
                .read_at(&mut byte, at)
                .and_then(|()| file.write_at(&[byte[0] ^ 1], at));
            flipped.is_ok()
        }
        2 if len > 0 => file.set_len((place % len) as u64).is_ok(),
        _ => false,
    };
    let files = expect(open_marks(&disk, dir(), &[mark]));
    let mut found = vec![0; cells.len()];
    if !cells.is_empty() {
        let read = mark_cells(5, (&mark, &files[0]), 0, &mut found);
        let read = judge(read).is_some();
        assert_eq!(read, !damaged);
        assert!(!read || found == cells);
    }
}

/// Checks that a warm start is read back as written, and that one with a flipped bit or a cut is damaged. Input: the kind
/// of change, its position, and X of the pages.
pub fn warm(data: &[u8]) {
    let mut bytes = Bytes(data);
    let [what, low, high] = bytes.array();
    let place = u64::from(u16::from_le_bytes([low, high]));
    let (numbers, _) = bytes.0.as_chunks::<8>();
    let own: Vec<i64> = numbers.iter().map(|n| i64::from_le_bytes(*n)).collect();
    let accounts: Vec<i64> = own.iter().map(|own| !own).collect();
    let costs: Vec<u8> = own.iter().map(|own| *own as u8).collect();
    let pages = SettledPages {
        own: &own,
        accounts: &accounts,
        costs: &costs,
    };
    let totals = SettledTotals {
        pages: own.len() as u64,
        damping: 1 << 31,
        sum: own.iter().map(|own| i128::from(*own)).sum(),
        virtual_page: -1,
        strayed: u128::MAX,
        effort: Effort {
            resumed: false,
            until: 0.01,
            reached: true,
            sweeps: 2,
            links_touched: 3,
            links: 4,
        },
    };
    let head = WarmHead::new((5, 9), CommittedRows::default(), 7, totals);
    let disk = Memory::default();
    expect(warm::write(&disk, dir(), &head, pages));
    let file = disk.open(&dir().join(WARM), false);
    let file = file.expect("it was written");
    let at = place % file.size().unwrap_or(1);
    let damaged = match what % 3 {
        1 => {
            let mut byte = [0];
            let flipped = file.read_at(&mut byte, at);
            flipped
                .and_then(|()| file.write_at(&[byte[0] ^ 1], at))
                .is_ok()
        }
        2 => file.set_len(at).is_ok(),
        _ => false,
    };
    let mut found = (own.clone(), own.clone(), costs.clone());
    let opened = warm::open(&disk, dir());
    let read = judge(opened.and_then(|warm| {
        let warm = warm.ok_or_else(|| Error::internal("it is gone"))?;
        warm.load(SettledPagesMut {
            own: &mut found.0,
            accounts: &mut found.1,
            costs: &mut found.2,
        })?;
        assert!(*warm.info() == head);
        Ok(())
    }));
    assert_eq!(read.is_none(), damaged);
    assert!(damaged || found == (own, accounts, costs));
}

/// Fuzzes the index. Input: additional slots of four segments (a byte each), then the slots with corrected checksums;
/// and the whole input as a file.
pub fn index(data: &[u8]) {
    let disk = Memory::default();
    let mut logs = expect(NameLogs::create(&disk, dir()));
    // All in the first segment.
    let prints = (0..3u64).map(|page| Fingerprint::from(page << 50));
    for print in prints.clone() {
        expect(logs.append(print, b""));
    }
    let lengths = expect(logs.sync());
    let names = expect(NameReader::open(&disk, dir(), lengths));
    let sum = expect(logs.sum_of_prints()).unwrap_or_default();
    let begins = [1, 7, 3, sum];
    let mut bytes = Bytes(data);
    let mut slots = [LEAST_SLOTS; SEGMENTS];
    for slots in &mut slots[..4] {
        *slots += u64::from(bytes.byte());
    }
    let mut content = bytes.0.iter().copied().chain(std::iter::repeat(0));
    let head = BlockHead::default().u64s(begins).u64s(slots);
    let mut file = head.sealed();
    for slots in slots {
        let at = file.len();
        file.extend(content.by_ref().take(10 * slots as usize));
        let sum = sum_of(&file[at..], at as u64, &begins);
        file.extend_from_slice(&sum.to_le_bytes());
    }
    for file in [data, &file] {
        disk.put(&dir().join("index"), file);
        let found = IndexFile::open(&disk, dir(), 7);
        if let Some(Some(found)) = judge(found.as_ref().map_err(Error::again)) {
            for print in prints.clone() {
                let _damaged = judge(found.get(print));
            }
            let _damaged = judge(found.verify(&names));
        }
        let found = found.and_then(|file| {
            file.map(|file| file.check(3, &names).map(|()| file))
                .transpose()
        });
        let (mut index, known, from_file) = expect(indexed(3, &names, found));
        let Some(known) = known else {
            panic!("none occurs twice");
        };
        assert_eq!(known, 3);
        let _damaged = judge(from_file);
        // An index loaded from a file can grow.
        for more in 0..200u64 {
            let _damaged = judge(index.admit(Fingerprint::from(more << 52 | 2)));
        }
    }
}
