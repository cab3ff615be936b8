//! Replays the corpus: every input of every target, as the fuzzer would run it. A target's inputs are the files of a tar
//! archive (`tools/fuzz/pack`).

use std::fs;
use std::path::{Path, PathBuf};

use super::TARGETS;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/fuzz/corpus")
}

/// The files of a tar archive in the format ustar, with their names: blocks of 512 bytes, of each file a head and what
/// it holds, up to a head of zeros (POSIX.1-2017, pax).
fn unpack(mut tar: &[u8]) -> Vec<(String, &[u8])> {
    let mut files = Vec::new();
    loop {
        let (head, rest) = tar.split_at(512);
        if head.iter().all(|&byte| byte == 0) {
            return files;
        }
        let text = |field: &[u8]| {
            let text = field.split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8(text.to_vec()).unwrap()
        };
        assert_eq!(
            (&head[257..262], head[156]),
            (&b"ustar"[..], b'0'),
            "a file"
        );
        let len = usize::from_str_radix(text(&head[124..136]).trim(), 8).unwrap();
        files.push((text(&head[..100]), &rest[..len]));
        tar = &rest[len.next_multiple_of(512)..];
    }
}

#[test]
fn every_input_of_every_target_passes() {
    let (mut inputs, mut failed) = (0, Vec::new());
    for target in TARGETS {
        let path = corpus().join(target.name).with_extension("tar");
        let tar = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let files = unpack(&tar);
        assert!(!files.is_empty(), "{}: no inputs", path.display());
        for (name, data) in files {
            let passed = std::panic::catch_unwind(|| (target.run)(data));
            if passed.is_err() {
                failed.push(format!("{}: {name}", path.display()));
            }
            inputs += 1;
        }
        (target.run)(&[]);
    }
    assert!(failed.is_empty(), "said above of {failed:#?}");
    eprintln!("{inputs} inputs of {} targets", TARGETS.len());
}

/// A corpus of no target would never be replayed.
#[test]
fn every_corpus_has_a_target() {
    for entry in fs::read_dir(corpus()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(path.extension().unwrap() == "tar", "{}", path.display());
        assert!(super::named(name).is_some(), "{}", path.display());
    }
}

/// A target without a program would not be fuzzed.
#[test]
fn every_target_has_a_program() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/fuzz/Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let names = manifest.lines().filter(|line| line.starts_with("name = "));
    let mut programs: Vec<_> = names
        .filter_map(|line| line.split('"').nth(1))
        .skip(1)
        .collect();
    let mut targets: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    programs.sort_unstable();
    targets.sort_unstable();
    assert_eq!(programs, targets);
}
