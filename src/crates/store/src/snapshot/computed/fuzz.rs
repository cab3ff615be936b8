//! Fuzz target of computed rankings.

use std::path::Path;

use super::ComputedRanking;
use crate::fuzz::dice::Bytes;
use crate::fuzz::memory::Memory;
use crate::snapshot::fuzz::make_right;

const SAMPLES: [&[u8]; 2] = [
    include_bytes!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../formats/samples/good/ranking/page.ranking"
    )),
    include_bytes!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../formats/samples/good/ranking/host.ranking"
    )),
];

/// Fuzzes a ranking's file. The first byte selects: the file itself, which is then a sample or an error; or the file
/// with corrected checksums, so that any content may come out.
pub fn ranking(data: &[u8]) {
    let mut bytes = Bytes(data);
    let resum = bytes.byte() & 1 != 0;
    let mut file = bytes.0.to_vec();
    if resum {
        make_right(&mut file, super::MAGIC);
    }
    let disk = Memory::default();
    let path = Path::new("x.ranking");
    disk.put(path, &file);
    let Ok(ranking) = ComputedRanking::open(&disk, path) else {
        return;
    };
    let sound = ranking.verify().is_ok();
    let rows: Vec<_> = ranking.rows().collect();
    let whole = rows.iter().all(Result::is_ok);
    assert!(whole || !sound);
    if whole {
        assert_eq!(rows.len() as u64, ranking.info().count);
    }
    if !resum && sound {
        assert!(SAMPLES.contains(&&file[..]));
    }
}
