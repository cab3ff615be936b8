use super::*;
use crate::fuzz::memory::Memory;

const STORE: u64 = 42;

fn read(disk: &Memory, store: u64) -> Result<KnownRemote> {
    KnownRemote::read(disk, Path::new("s"), store, "1/3".parse().unwrap())
}

/// Writes the file of a store whose first pages these are, when each shard had `pages`.
fn put(disk: &Memory, known: &KnownRemote, pages: u64) {
    let states: Vec<_> = (0..3).map(|sum| NamesState { pages, sum }).collect();
    known.put(disk, Path::new("s"), STORE, &states).unwrap();
}

fn known(covered: u64, remote: [&[(u32, u32)]; 3]) -> KnownRemote {
    let remote = remote.map(|of| {
        let (here, there) = of.iter().copied().unzip();
        RemotePages { here, there }
    });
    KnownRemote::of(covered, remote.into())
}

#[test]
fn remote_pages_come_back() {
    let disk = Memory::default();
    assert_eq!(read(&disk, STORE).unwrap().covered, 0);
    let of_first = [(4, 0), (5, 1), (0, u32::MAX)];
    let all = known(1 << 32, [&of_first, &[], &[(1, 7), (u32::MAX, u32::MAX)]]);
    put(&disk, &all, 1 << 32);
    let found = read(&disk, STORE).unwrap();
    assert_eq!((found.covered, &found.remote), (1 << 32, &all.remote));
    let (pages, sum) = (1 << 32, 2);
    assert_eq!(found.state_of(2), NamesState { pages, sum });
    // From another store nothing is used, nor anything invalid.
    let refused = |disk: &Memory, store| matches!(read(disk, store), Err(Error::Damaged { .. }));
    assert!(refused(&disk, 43));
    for (pages, remote, wrong) in [
        (4, [&[][..], &[], &[]], "fewer pages than it covers"),
        (7, [&[], &[], &[(1, 7)]], "no such page there"),
        (9, [&[(5, 1)], &[], &[]], "no such page here"),
        (9, [&[(2, 1), (2, 3)], &[], &[]], "a page twice"),
        (9, [&[(2, 1), (3, 1)], &[], &[]], "a number there twice"),
        (9, [&[(2, 3), (3, 1)], &[], &[]], "another order"),
        (9, [&[], &[(2, 1)], &[]], "a remote page of its own"),
    ] {
        put(&disk, &known(5, remote), pages);
        assert!(refused(&disk, STORE), "{wrong}");
    }
}

/// The file of another version is no damage: it is refused, and the error says what to do.
#[test]
fn other_versions_are_refused() {
    let disk = Memory::default();
    let refused = |bytes: &[u8], version: &str| {
        disk.put(Path::new("s/remote"), bytes);
        let Err(Error::Unsupported(what)) = read(&disk, STORE) else {
            panic!("version {version} is refused");
        };
        assert!(
            what.contains(version) && what.contains("delete it"),
            "{what}"
        );
    };
    // Blocks, each with its version before it.
    refused(&[&1u64.to_le_bytes()[..], &[9; 99]].concat(), "version 1;");
    for version in ["02", "04"] {
        let magic = format!("CRREMO{version}").into_bytes();
        let other = [&magic[..], &[9; 99], &magic];
        refused(&other.concat(), &format!("version {version};"));
    }
    // Zeros are damage, as a torn disk leaves them.
    disk.put(Path::new("s/remote"), &[0; 99]);
    assert!(matches!(read(&disk, STORE), Err(Error::Damaged { .. })));
}

/// Whatever byte is wrong and wherever the file ends, nothing of it is used.
#[test]
fn no_damage_is_taken_for_pages() {
    let disk = Memory::default();
    let all = known(15, [&[(1, 3), (7, 4)], &[], &[(2, 2), (11, 9)]]);
    put(&disk, &all, 20);
    let path = Path::new("s/remote");
    let file = disk.read(path).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    let check = |bytes: &[u8], at: usize| {
        disk.put(path, bytes);
        assert!(read(&disk, STORE).is_err(), "{at}");
    };
    for at in 0..bytes.len() {
        check(&bytes[..at], at);
        for bit in [0, 7] {
            let mut other = bytes.clone();
            other[at] ^= 1 << bit;
            check(&other, at);
        }
    }
    put(&disk, &all, 20);
    assert_eq!(read(&disk, STORE).unwrap().remote, all.remote);
}
