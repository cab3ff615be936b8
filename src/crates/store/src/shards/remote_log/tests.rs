use super::*;
use crate::fuzz::memory::Memory;

fn log(disk: &Memory) -> (RemoteLog, Option<Flaw>) {
    RemoteLog::read(disk, Path::new("s"), 42, "1/3".parse().unwrap())
}

fn states(pages: u64) -> Vec<NamesState> {
    (0..3).map(|sum| NamesState { pages, sum }).collect()
}

fn remote(pages: &[(u32, u32)]) -> Vec<Remote> {
    let page = |&(here, there)| Remote { there, here };
    pages.iter().map(page).collect()
}

#[test]
fn blocks_follow_each_other_and_come_back() {
    let disk = Memory::default();
    let (mut written, flaw) = log(&disk);
    assert!(flaw.is_none() && written.covered == 0);
    let first = RemoteRange {
        first: 0,
        end: 5,
        remote: vec![remote(&[(0, u32::MAX), (4, 0)]), vec![], remote(&[(1, 7)])],
    };
    let second = RemoteRange {
        first: 5,
        end: 1 << 32,
        remote: vec![remote(&[(5, 1)]), vec![], remote(&[(u32::MAX, u32::MAX)])],
    };
    let end = states(1 << 32);
    written.append(&disk, vec![first.clone()], &end).unwrap();
    written.append(&disk, vec![], &end).unwrap();
    written.append(&disk, vec![second], &end).unwrap();
    let (read, flaw) = log(&disk);
    assert!(flaw.is_none(), "{flaw:?}");
    assert_eq!((read.covered, &read.states), (1 << 32, &end));
    assert_eq!(read.remote, written.remote);
    let all = [(0, u32::MAX), (4, 0), (5, 1)];
    assert_eq!(read.remote[0], remote(&all));
    // From another store nothing is used, nor anything invalid.
    let shard = "1/3".parse().unwrap();
    let (other, flaw) = RemoteLog::read(&disk, Path::new("s"), 43, shard);
    assert!(other.covered == 0 && matches!(flaw, Some(Flaw::Damaged(_))));
    for (pages, wrong) in [
        (4, "fewer pages than the block covers"),
        (7, "no such page there"),
    ] {
        let disk = Memory::default();
        let (mut written, _) = log(&disk);
        written
            .append(&disk, vec![first.clone()], &states(pages))
            .unwrap();
        let (read, flaw) = log(&disk);
        assert!(
            read.covered == 0 && matches!(flaw, Some(Flaw::Damaged(_))),
            "{wrong}"
        );
    }
}

/// Whatever byte is wrong and wherever the file ends, what is read is what was written.
#[test]
fn no_damage_is_taken_for_pages() {
    let disk = Memory::default();
    let (mut written, _) = log(&disk);
    let stretch = |first, here| RemoteRange {
        first,
        end: first + 5,
        remote: vec![remote(&[(here, 3)]), vec![], remote(&[(here + 1, 2)])],
    };
    let mut ends = vec![0];
    for (first, here) in [(0, 1), (5, 7), (10, 10)] {
        let more = vec![stretch(first, here)];
        written.append(&disk, more, &states(20)).unwrap();
        ends.push(written.length as usize);
    }
    let path = Path::new("s/remote");
    let file = disk.read(path).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    let check = |bytes: &[u8], sound: usize, torn: bool| {
        disk.put(path, bytes);
        let (mut read, flaw) = log(&disk);
        let blocks = ends.iter().filter(|&&end| end <= sound).count() - 1;
        assert_eq!(read.covered, 5 * blocks as u64);
        for (read, written) in read.remote.iter().zip(&written.remote) {
            assert!(written.starts_with(read) && read.len() == blocks.min(written.len()));
        }
        match flaw {
            None => assert_eq!(bytes.len(), ends[blocks]),
            Some(flaw) => assert_eq!(matches!(flaw, Flaw::Torn(_)), torn),
        }
        // After rebuilding it is as before.
        let again = [(0, 1), (5, 7), (10, 10)].map(|(first, here)| stretch(first, here));
        read.append(&disk, again[blocks..].to_vec(), &states(20))
            .unwrap();
        assert_eq!(read.remote, written.remote);
        assert_eq!(
            (read.length, log(&disk).1.is_none()),
            (written.length, true)
        );
    };
    for at in 0..bytes.len() {
        check(&bytes[..at], at, true);
        for bit in [0, 7] {
            let mut other = bytes.clone();
            other[at] ^= 1 << bit;
            check(&other, at, false);
        }
    }
    check(&bytes, bytes.len(), false);
}
