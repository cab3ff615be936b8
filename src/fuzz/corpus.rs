//! Replays the corpus: every input of every target, as the fuzzer would run it, and on request mutations of them. A
//! target's inputs are the files of a tar archive (`tools/fuzz/pack`).

use std::fs;
use std::path::{Path, PathBuf};

use cashrank_base::fuzz::dice::Dice;

use super::TARGETS;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/fuzz/corpus")
}

/// Returns the files of a tar archive in the format ustar, with their names: blocks of 512 bytes, for each file a
/// header and its content, up to a header of zeros (POSIX.1-2017, pax).
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

/// Returns the path and content of the archive of a target's inputs.
fn archive_of(name: &str) -> (PathBuf, Vec<u8>) {
    let path = corpus().join(name).with_extension("tar");
    let tar = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (path, tar)
}

#[test]
fn every_input_of_every_target_passes() {
    let (mut inputs, mut failed) = (0, Vec::new());
    for target in TARGETS {
        let (path, tar) = archive_of(target.name);
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

/// Maximum length of a mutated input: the fuzzer's for most targets is shorter.
const MUTATED_MAX: usize = 2048;

/// Changes an input in one place: a byte or a bit, or bytes that are removed, repeated or copied from another input.
fn mutate(data: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let from = dice.below(data.len());
    let to = from + dice.below((data.len() - from).min(32) + 1);
    match dice.below(6) {
        0 if !data.is_empty() => data[from] ^= 1 << dice.below(8),
        1 if !data.is_empty() => {
            data[from] = dice.one_of([0, 1, 0x7f, 0x80, 0xff, b'\n', b'"', b' '])
        }
        2 => drop(data.drain(from..to)),
        3 => data.extend_from_within(from..to),
        4 => data.truncate(from),
        _ => {
            let start = dice.below(other.len());
            let len = dice.below((other.len() - start).min(32) + 1);
            data.splice(from..to, other[start..start + len].iter().copied());
        }
    }
    data.truncate(MUTATED_MAX);
}

/// Runs `MUTATE=RUNS` mutations of the inputs of each of `TARGETS=NAME,...`, the same ones each time. Unlike the fuzzer
/// it needs no build of its own, and gets no coverage feedback.
#[test]
#[ignore = "on request: some seconds a target"]
fn mutations_of_inputs_pass() {
    let of = |name| std::env::var(name).unwrap_or_default();
    let runs: usize = of("MUTATE").parse().unwrap_or(20_000);
    let names = of("TARGETS");
    let is_asked = |name: &str| names.is_empty() || names.split(',').any(|asked| asked == name);
    let asked: Vec<_> = TARGETS
        .iter()
        .filter(|target| is_asked(target.name))
        .collect();
    let known = |name: &&str| TARGETS.iter().any(|target| target.name == *name);
    assert!(
        names.split(',').all(|name| name.is_empty() || known(&name)),
        "{names}"
    );
    for target in asked {
        let (_, tar) = archive_of(target.name);
        let files: Vec<Vec<u8>> = unpack(&tar)
            .into_iter()
            .map(|(_, data)| data.to_vec())
            .collect();
        let mut dice = Dice::of(target.name.as_bytes());
        for run in 0..runs {
            let mut data = files[dice.below(files.len())].clone();
            for _ in 0..=dice.below(4) {
                mutate(&mut data, &files[dice.below(files.len())], &mut dice);
            }
            let passed = std::panic::catch_unwind(|| (target.run)(&data));
            assert!(
                passed.is_ok(),
                "{}, run {run}: {}",
                target.name,
                data.escape_ascii()
            );
        }
        eprintln!("{}: {runs} mutations", target.name);
    }
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
