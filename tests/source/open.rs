//! Opening of inputs, and errors of the system.

use std::fs;
use std::io::{self, Cursor, Read};

use super::common::*;
use cashrank::{Error, Limits};
use cashrank_crawl::source::{Compression, InputName, Source, SourceOptions};

fn open(path: &std::path::Path, options: &SourceOptions) -> Result<Source, Error> {
    Source::open(&InputName::File(path.into()), &Limits::default(), options)
}

/// Returns the error; a source has no `Debug`.
fn error(result: Result<Source, Error>) -> Error {
    match result {
        Ok(_) => panic!("opened"),
        Err(error) => error,
    }
}

#[test]
fn files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a-name-that-says-nothing.txt");
    let data = gzip(b"a\nb\n");
    fs::write(&path, &data).unwrap();
    let source = open(&path, &SourceOptions::default()).unwrap();
    assert_eq!(source.compression(), Compression::Gzip);
    assert_eq!(source.compressed_len, Some(data.len() as u64));
    assert_eq!(source.name.to_string(), path.display().to_string());
    assert_eq!(drain(source).sound(), b"a\nb\n");
}

#[test]
fn missing_files_and_directories() {
    let folder = tempfile::tempdir().unwrap();
    let missing = error(open(&folder.path().join("none"), &SourceOptions::default()));
    let directory = error(open(folder.path(), &SourceOptions::default()));
    for (error, kind, words) in [
        (missing, io::ErrorKind::NotFound, "none: cannot open: "),
        (
            directory,
            io::ErrorKind::IsADirectory,
            ": cannot read: is a directory",
        ),
    ] {
        assert!(error.to_string().contains(words), "{error}");
        match error {
            Error::Io { source, .. } => assert_eq!(source.kind(), kind),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_failing_read_is_not_damage() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is on fire"))
        }
    }
    let text = text(500);
    for data in [text.clone(), gzip(&text), zstd_checked(&text)] {
        for at in [4, data.len() / 2, data.len()] {
            let reader = Cursor::new(data[..at].to_vec()).chain(Failing);
            let name = InputName::Stdin;
            let options = SourceOptions::default();
            let source =
                Source::from_reader(name, Box::new(reader), &Limits::default(), &options).unwrap();
            match drain(source).error {
                Some(Error::Io { path, source, .. }) => {
                    assert_eq!(path.to_str(), Some("-"));
                    assert_eq!(source.to_string(), "the disk is on fire");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A source may be read on another thread.
#[test]
fn sources_move_between_threads() {
    let source = How::default().source(&gzip(b"a\n"));
    let outcome = std::thread::spawn(|| drain(source).sound()).join().unwrap();
    assert_eq!(outcome, b"a\n");
}
