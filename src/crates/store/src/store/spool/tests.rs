//! Tests of the spool on a disk that can lose what was not synced.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::codec::sealed;
use crate::disk::DiskFile;

/// File: its bytes, and those that survive a crash.
#[derive(Debug, Default, Clone)]
struct Bytes {
    now: Vec<u8>,
    durable: Vec<u8>,
}

type Shared = Arc<Mutex<Bytes>>;
type Entries = BTreeMap<PathBuf, Shared>;

/// Disk in memory. Directories are durable once created, their entries once synced.
#[derive(Default)]
struct Memory {
    now: Mutex<Entries>,
    durable: Mutex<Entries>,
    dirs: Mutex<Vec<PathBuf>>,
    /// Disk after a crash right after the last rename, which alone survived of what was not synced.
    renamed: Mutex<Option<Arc<Memory>>>,
    /// Number of syncs of files until one fails; 0: none does.
    fails_in: Arc<AtomicU64>,
}

#[derive(Debug)]
struct MemoryFile(Shared, Arc<AtomicU64>);

impl Memory {
    fn new() -> Arc<Memory> {
        let disk = Memory::default();
        disk.dirs.lock().unwrap().push("s".into());
        Arc::new(disk)
    }

    /// Returns the disk after a power cut: with all that was not synced, or with nothing of it.
    fn cut(&self, all_survives: bool) -> Arc<Memory> {
        let entries = if all_survives {
            &self.now
        } else {
            &self.durable
        };
        self.image(&entries.lock().unwrap(), all_survives)
    }

    fn image(&self, entries: &Entries, all_survives: bool) -> Arc<Memory> {
        let after = |file: &Shared| {
            let file = file.lock().unwrap();
            let bytes = if all_survives {
                &file.now
            } else {
                &file.durable
            };
            Arc::new(Mutex::new(Bytes {
                now: bytes.clone(),
                durable: bytes.clone(),
            }))
        };
        let entries: Entries = (entries.iter())
            .map(|(path, file)| (path.clone(), after(file)))
            .collect();
        Arc::new(Memory {
            durable: Mutex::new(entries.clone()),
            now: Mutex::new(entries),
            dirs: Mutex::new(self.dirs.lock().unwrap().clone()),
            renamed: Mutex::default(),
            fails_in: Arc::default(),
        })
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.now.lock().unwrap().keys().cloned().collect()
    }

    fn change(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.now.lock().unwrap()[path].lock().unwrap().now);
    }

    fn file(&self, file: &Shared) -> Box<dyn DiskFile> {
        Box::new(MemoryFile(file.clone(), self.fails_in.clone()))
    }
}

impl Disk for Memory {
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn DiskFile>> {
        let mut now = self.now.lock().unwrap();
        if create {
            return Ok(self.file(now.entry(path.into()).or_default()));
        }
        now.get(path)
            .map(|file| self.file(file))
            .ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        if self.now.lock().unwrap().contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.open(path, true)
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.open(path, false)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.dirs.lock().unwrap().push(path.into());
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut now = self.now.lock().unwrap();
        let file = now.remove(from).ok_or(ErrorKind::NotFound)?;
        now.insert(to.into(), file.clone());
        let mut survived = self.durable.lock().unwrap().clone();
        survived.insert(to.into(), file);
        *self.renamed.lock().unwrap() = Some(self.image(&survived, false));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = self.now.lock().unwrap().remove(path);
        removed.map(drop).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        *self.durable.lock().unwrap() = self.now.lock().unwrap().clone();
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        if !self.dirs.lock().unwrap().iter().any(|dir| dir == path) {
            return Err(ErrorKind::NotFound.into());
        }
        let names = self
            .paths()
            .into_iter()
            .filter(|p| p.parent() == Some(path));
        let names = names.map(|p| p.file_name().unwrap().to_string_lossy().into_owned());
        Ok(names.collect())
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let file = self.0.lock().unwrap();
        let from = file
            .now
            .get(offset as usize..)
            .and_then(|f| f.get(..buf.len()));
        buf.copy_from_slice(from.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let file = &mut self.0.lock().unwrap().now;
        let end = offset as usize + data.len();
        file.resize(file.len().max(end), 0);
        file[offset as usize..end].copy_from_slice(data);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().now.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().unwrap().now.resize(len as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) > 0 && self.1.fetch_sub(1, Ordering::Relaxed) == 1 {
            return Err(io::Error::other("no luck"));
        }
        let mut file = self.0.lock().unwrap();
        file.durable = file.now.clone();
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }
}

/// Random numbers from a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }
}

fn stream(len: usize) -> Vec<u8> {
    let mut dice = Dice(7);
    (0..len).map(|_| dice.roll(256) as u8).collect()
}

const STORE: &str = "s";

fn options(segment_bytes: u64, on_durable: Option<OnDurable>) -> SpoolOptions {
    SpoolOptions {
        sync_every: None,
        sync_bytes: 3000,
        segment_bytes,
        on_durable,
    }
}

fn start(disk: &Arc<Memory>, input: u64, options: SpoolOptions) -> Spool {
    Spool::start(disk.clone(), Path::new(STORE), input, options).unwrap()
}

fn state(disk: &Memory) -> SpoolState {
    spool_state(disk, Path::new(STORE)).unwrap().unwrap()
}

/// Resumes the spool and reads all it holds from `from` on.
fn recover(disk: &Arc<Memory>, from: u64) -> Result<(Spool, Vec<u8>)> {
    let state = spool_state(&**disk, Path::new(STORE))?.expect("there is a spool");
    let options = options(500, None);
    let spool = Spool::resume(disk.clone(), Path::new(STORE), state, from, options)?;
    let mut bytes = Vec::new();
    match spool.reader(from)?.read_to_end(&mut bytes) {
        Ok(_) => Ok((spool, bytes)),
        Err(error) => Err(error.downcast::<Error>().unwrap()),
    }
}

/// Returns a disk with a spool of `len` bytes in several segments, all synced.
fn filled(len: usize) -> (Arc<Memory>, Vec<u8>) {
    let (disk, bytes) = (Memory::new(), stream(len));
    let spool = start(&disk, 3, options(500, None));
    for part in bytes.chunks(150) {
        spool.append(part).unwrap();
        spool.sync().unwrap();
    }
    (disk, bytes)
}

/// A power cut may follow the report of a position, or the writing of it: everything before the position must be there,
/// whatever survived of the rest.
#[test]
fn reported_positions_survive_a_cut() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let (disk, bytes) = (Memory::new(), Arc::new(stream(20_000)));
        let from = Arc::new(AtomicU64::new(0));
        let last = Arc::new(AtomicU64::new(0));
        let told = {
            let (disk, bytes, from, last) =
                (disk.clone(), bytes.clone(), from.clone(), last.clone());
            Arc::new(move |position| {
                assert!(
                    last.swap(position, Ordering::Relaxed) < position,
                    "seed {seed}"
                );
                let from = from.load(Ordering::Relaxed);
                let renamed = disk.renamed.lock().unwrap().take().expect("a rename");
                for after in [disk.cut(false), disk.cut(true), renamed] {
                    let (spool, found) = recover(&after, from)?;
                    assert_eq!(spool.acked(), position, "seed {seed}");
                    let expected = &bytes[from as usize..position as usize];
                    assert!(found == expected, "seed {seed}, {from} to {position}");
                }
                Ok(())
            })
        };
        let spool = start(&disk, 0, options(200 + dice.roll(2000), Some(told)));
        let mut at = 0;
        while at < bytes.len() {
            let len = (1 + dice.roll(900) as usize).min(bytes.len() - at);
            spool.append(&bytes[at..at + len]).unwrap();
            at += len;
            match dice.roll(6) {
                0 => spool.sync().unwrap(),
                1 => {
                    let covered = dice.roll(spool.acked() + 1);
                    from.fetch_max(covered, Ordering::Relaxed);
                    spool.release(from.load(Ordering::Relaxed)).unwrap();
                }
                _ => {}
            }
        }
        spool.sync().unwrap();
        assert_eq!(last.load(Ordering::Relaxed), bytes.len() as u64);
        // Of the segments that begin at or before the covered position only the last is left.
        let from = from.load(Ordering::Relaxed);
        spool.release(from).unwrap();
        let left = list(&*disk, Path::new("s/spool")).unwrap();
        let begun = left.iter().filter(|&&first| first <= from).count();
        assert_eq!(begun, 1, "seed {seed}: {left:?}, {from}");
    }
}

/// Crashes repeatedly, each time resuming with the first byte that was not acknowledged.
#[test]
fn a_sender_that_forgets_only_what_was_acknowledged_loses_nothing() {
    for seed in 0..40 {
        let mut dice = Dice(1000 + seed);
        let (mut disk, bytes) = (Memory::new(), stream(12_000));
        let mut spool = start(&disk, 0, options(700, None));
        while spool.acked() < bytes.len() as u64 {
            let at = spool.end() as usize;
            let len = (1 + dice.roll(800) as usize).min(bytes.len() - at);
            spool.append(&bytes[at..at + len]).unwrap();
            match dice.roll(8) {
                0 | 1 => spool.sync().unwrap(),
                2 => {
                    let acked = spool.acked();
                    disk = disk.cut(dice.roll(2) == 0);
                    let (again, found) = recover(&disk, 0).unwrap();
                    assert_eq!(again.acked(), acked, "seed {seed}");
                    assert!(found == bytes[..acked as usize], "seed {seed}");
                    spool = again;
                }
                _ if spool.end() == bytes.len() as u64 => spool.sync().unwrap(),
                _ => {}
            }
        }
        assert!(recover(&disk, 0).unwrap().1 == bytes, "seed {seed}");
    }
}

/// Every bit below the acknowledged position counts.
#[test]
fn a_flipped_byte_is_damage() {
    let (disk, bytes) = filled(1700);
    assert!(recover(&disk, 0).unwrap().1 == bytes);
    for path in disk.paths() {
        let mut size = 0;
        disk.change(&path, |file| size = file.len());
        for at in 0..size {
            let after = disk.cut(true);
            after.change(&path, |file| file[at] ^= 1 << (at % 8));
            match recover(&after, 0) {
                Err(Error::Damaged { .. }) => {}
                // White space between the fields of `acked`.
                Ok((_, found)) if path.ends_with(ACKED) => assert!(found == bytes, "byte {at}"),
                other => panic!("{} at {at}: {:?}", path.display(), other.map(|_| ())),
            }
        }
    }
}

#[test]
fn missing_and_short_segments_are_damage() {
    let (disk, _) = filled(1700);
    let segments = list(&*disk, Path::new("s/spool")).unwrap();
    assert!(segments.len() > 3, "{segments:?}");
    for first in segments {
        let path = segment_path(Path::new("s/spool"), first);
        let mut size = 0;
        disk.change(&path, |file| size = file.len());
        for len in 0..size {
            let after = disk.cut(true);
            after.change(&path, |file| file.truncate(len));
            let found = recover(&after, 0).map(|_| ());
            assert!(
                matches!(found, Err(Error::Damaged { .. })),
                "{first} cut to {len}"
            );
        }
        let after = disk.cut(true);
        after.remove(&path).unwrap();
        let found = recover(&after, 0).map(|_| ());
        assert!(
            matches!(found, Err(Error::Damaged { .. })),
            "{first} removed"
        );
    }
    // What a checkpoint covers may be missing.
    let after = disk.cut(true);
    after
        .remove(&segment_path(Path::new("s/spool"), 0))
        .unwrap();
    let next = list(&*after, Path::new("s/spool")).unwrap()[0];
    assert!(recover(&after, next).is_ok());
    assert!(recover(&after, next - 1).is_err());
}

/// Regression: the second of two segments that overlap was cut to where the first one is needed.
#[test]
fn segments_that_overlap_are_damage() {
    let (disk, dir) = (Memory::new(), Path::new("s/spool"));
    let spool = start(&disk, 3, options(1 << 20, None));
    for part in stream(900).chunks(150) {
        spool.append(part).unwrap();
        spool.sync().unwrap();
    }
    drop(spool);
    let state = |acked| SpoolState { input: 3, acked };
    write_sealed(&*disk, &dir.join(ACKED), &state(600)).unwrap();
    assert!(recover(&disk.cut(true), 0).is_ok());
    let other = segment_path(dir, 500);
    let file = disk.open(&other, true).unwrap();
    file.write_at(b"bytes", 0).unwrap();
    let found = recover(&disk, 0).map(|_| ());
    assert!(matches!(found, Err(Error::Damaged { .. })), "{found:?}");
    assert_eq!(file.size().unwrap(), 5);
}

#[test]
fn a_torn_tail_is_cut_off() {
    let (disk, mut bytes) = filled(1700);
    let last = *list(&*disk, Path::new("s/spool")).unwrap().last().unwrap();
    let path = segment_path(Path::new("s/spool"), last);
    disk.change(&path, |file| file.extend_from_slice(&[0xA5; 77]));
    // A segment without acknowledged bytes, too.
    disk.open(&segment_path(Path::new("s/spool"), 1700), true)
        .unwrap();
    let (spool, found) = recover(&disk, 0).unwrap();
    assert!(found == bytes);
    spool.append(b"more").unwrap();
    spool.sync().unwrap();
    bytes.extend_from_slice(b"more");
    assert!(recover(&disk, 0).unwrap().1 == bytes);
}

#[test]
fn a_failure_is_final_and_reports_no_position() {
    let disk = Memory::new();
    let told = Arc::new(|position| panic!("told {position}"));
    let spool = start(&disk, 0, options(500, Some(told)));
    spool.append(b"some bytes").unwrap();
    disk.fails_in.store(1, Ordering::Relaxed);
    assert!(matches!(spool.sync(), Err(Error::Io { .. })));
    // The disk works again, but its contents are unknown.
    assert!(matches!(spool.sync(), Err(Error::Io { .. })));
    assert!(matches!(spool.append(b"more"), Err(Error::Io { .. })));
    assert!(matches!(spool.check(), Err(Error::Io { .. })));
    assert_eq!(spool.acked(), 0);
    assert_eq!(state(&disk).acked, 0);
}

#[test]
fn a_new_stream_disowns_the_old_one() {
    let (disk, _) = filled(1700);
    let spool = start(&disk, 4, options(500, None));
    for all_survives in [false, true] {
        let after = disk.cut(all_survives);
        assert_eq!(state(&after), SpoolState { input: 4, acked: 0 });
        assert!(recover(&after, 0).unwrap().1.is_empty());
    }
    spool.append(b"new").unwrap();
    spool.sync().unwrap();
    assert_eq!(recover(&disk.cut(false), 0).unwrap().1, b"new");
    // Its acknowledgement does not fit the segments of the old one.
    let (old, _) = filled(1700);
    let text = sealed::to_text(&SpoolState {
        input: 4,
        acked: 1700,
    })
    .unwrap();
    old.change(Path::new("s/spool/acked"), |file| *file = text);
    assert!(matches!(
        recover(&old, 0).map(|_| ()),
        Err(Error::Damaged { .. })
    ));
}

#[test]
fn nothing_is_taken_after_the_end() {
    let (disk, bytes) = filled(1700);
    let (spool, _) = recover(&disk, 0).unwrap();
    spool.append(b"not synced").unwrap();
    spool.close();
    assert!(spool.append(b"late").is_err());
    spool.sync().unwrap();
    assert_eq!(state(&disk).acked, 1700);
    assert!(recover(&disk, 0).unwrap().1 == bytes);
    remove_spool(&*disk, Path::new(STORE)).unwrap();
    assert!(disk.cut(false).paths().is_empty());
}

/// The reader of a pipe takes a full read for a sign that more follows, and would wait for it.
#[test]
fn the_last_read_is_a_short_one() {
    let (disk, bytes) = (Memory::new(), stream(300_000));
    let spool = start(
        &disk,
        0,
        SpoolOptions {
            sync_bytes: u64::MAX,
            ..options(1 << 20, None)
        },
    );
    spool.append(&bytes).unwrap();
    spool.sync().unwrap();
    let mut reader = spool.reader(5).unwrap();
    let mut buffer = vec![0; 512 << 10];
    let (mut found, mut reads) = (Vec::new(), Vec::new());
    loop {
        let read = reader.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        reads.push(read);
        found.extend_from_slice(&buffer[..read]);
    }
    assert!(found == bytes[5..]);
    assert!(
        *reads.last().unwrap() < crate::source::PIPE_BYTES,
        "{reads:?}"
    );
}
