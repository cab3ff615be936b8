//! Replays the corpus: every input of every target, as the fuzzer would run it.

use std::fs;
use std::path::Path;

use super::TARGETS;

#[test]
fn every_input_of_every_target_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/fuzz/corpus");
    let (mut inputs, mut failed) = (0, Vec::new());
    for target in TARGETS {
        let folder = corpus.join(target.name);
        let mut paths: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(!paths.is_empty(), "{}: no inputs", folder.display());
        paths.sort();
        for path in paths {
            let data = fs::read(&path).unwrap();
            let passed = std::panic::catch_unwind(|| (target.run)(&data));
            if passed.is_err() {
                failed.push(path);
            }
            inputs += 1;
        }
        (target.run)(&[]);
    }
    assert!(failed.is_empty(), "said above of {failed:#?}");
    eprintln!("{inputs} inputs of {} targets", TARGETS.len());
}

/// A folder of no target would never be replayed.
#[test]
fn every_folder_has_a_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/fuzz/corpus");
    for entry in fs::read_dir(corpus).unwrap() {
        let name = entry.unwrap().file_name();
        let known = TARGETS.iter().any(|target| *target.name == *name);
        assert!(known, "{}", name.display());
        assert!(super::named(&name.to_string_lossy()).is_some());
    }
}
