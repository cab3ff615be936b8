//! What these tests share: archives in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::crawl as random;
use cashrank::Limits;
use cashrank::archive::{Index, Options};
use cashrank::formats::Format;
use cashrank::ingest::{Conversion, ConversionReport, Note, Observer, ProgressReport, convert};
use cashrank::source::{InputName, SourceOptions};

/// Says nothing.
pub struct Silent;

impl Observer for Silent {
    fn note(&mut self, _: Note<'_>) {}
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

pub fn crawl(seed: u64, records: u64) -> String {
    random::crawl(seed, records).concat()
}

pub fn conversion(input: &Path, format: Option<Format>, block_records: usize) -> Conversion {
    Conversion {
        input: Default::default(),
        inputs: vec![InputName::File(input.into())],
        format,
        strict: false,
        threads: 1,
        level: Options::LEVEL_MAX,
        block_records,
        limits: Limits::default(),
        source: SourceOptions::default(),
        stop: Arc::new(AtomicBool::new(false)),
    }
}

/// An archive of these records.
pub fn archive(records: &str, block_records: usize) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), records).unwrap();
    let job = conversion(file.path(), Some(Format::Records), block_records);
    let (bytes, converted) = convert(&job, Vec::new(), PathBuf::new(), &mut Silent).unwrap();
    assert!(converted.bad_end.is_none());
    assert_eq!(bytes.len() as u64, converted.written.bytes);
    bytes
}

/// Reads an archive, or what may be one.
pub fn from_bytes(bytes: &[u8]) -> cashrank::Result<ConversionReport> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    let job = conversion(file.path(), None, 1000);
    convert(&job, std::io::sink(), PathBuf::new(), &mut Silent).map(|(_, converted)| converted)
}

pub fn index_of(bytes: &[u8]) -> Index {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    Index::read(file.path()).unwrap()
}
