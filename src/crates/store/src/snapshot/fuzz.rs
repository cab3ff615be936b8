//! Fuzz targets of packed columns, snapshot files and `latest.json`, in the golden sample's store.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::blocks::{ENTRY, TRAILER};
use super::export::{Format, Setup, export};
use super::{Info, Latest, MAGIC, Snapshot, SnapshotPage, column, moved};
use crate::Result;
use crate::engine::PageId;
use crate::fuzz::dice::Bytes;
use crate::fuzz::memory::Memory;
use crate::metrics::moved::{By, MoveOptions};
use crate::store::{Disk, from_text, number, to_text};

const STORE: &str = "store";
const SNAPSHOT: &str = "snapshots/000000000300.snapshot";

macro_rules! sample {
    ($part:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../formats/samples/good/snapshot/store/",
            $part
        ))
    };
}

/// Store of the golden sample, as far as readers of snapshots need it.
const SAMPLE: [(&str, &[u8]); 7] = [
    ("identity.json", sample!("identity.json")),
    ("urls", sample!("urls")),
    ("urls.index", sample!("urls.index")),
    ("fingerprints", sample!("fingerprints")),
    ("fingerprints.index", sample!("fingerprints.index")),
    ("snapshots/latest.json", sample!("snapshots/latest.json")),
    (SNAPSHOT, sample!("snapshots/000000000300.snapshot")),
];

/// Returns the sample with one part replaced by `bytes`.
fn store_with(part: &str, bytes: &[u8]) -> Memory {
    let disk = Memory::default();
    let store = Path::new(STORE);
    for dir in [store.to_owned(), store.join("snapshots")] {
        let _new = disk.create_dir(&dir);
    }
    for (name, sample) in SAMPLE {
        disk.put(&store.join(name), if name == part { bytes } else { sample });
    }
    disk
}

/// Fuzzes a packed column; the first byte is the number of values.
pub fn column(data: &[u8]) {
    let mut bytes = Bytes(data);
    let count = usize::from(bytes.byte());
    if let Some(values) = column::unpack(bytes.0, count) {
        assert_eq!(values.len(), count);
        check_column(&values);
    }
    let (values, _) = bytes.0.as_chunks::<8>();
    check_column(
        &values
            .iter()
            .map(|value| u64::from_le_bytes(*value))
            .collect::<Vec<_>>(),
    );
}

fn check_column(values: &[u64]) {
    let packed = column::pack(values).unwrap_or_default();
    assert_eq!(
        column::unpack(&packed, values.len()).as_deref(),
        Some(values)
    );
    assert_eq!(column::unpack(&packed, values.len() + 1), None);
}

/// Values that a reader of snapshots finds.
#[derive(Debug, PartialEq)]
struct SnapshotContents {
    info: Info,
    pages: Vec<SnapshotPage>,
    names: Vec<String>,
}

/// Does all that readers do: open, list, sort, look up, export.
fn read_all(disk: &dyn Disk) -> Result<SnapshotContents> {
    let snapshot = Snapshot::latest(disk, Path::new(STORE))?;
    let _sound = snapshot.verify();
    let top = snapshot.top(3);
    if let Ok(top) = &top {
        assert!(top.len() as u64 <= snapshot.info().pages.min(3));
        assert!(top.is_sorted_by_key(|page| (page.rank, page.page)));
        let ids: Vec<PageId> = top.iter().map(|page| page.page).collect();
        let _names = snapshot.names_of(&ids);
    }
    let names: Vec<String> = snapshot.names().collect::<Result<_>>()?;
    assert_eq!(names.len() as u64, snapshot.info().pages);
    let wanted: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let _ids = snapshot.find(&wanted)?;
    let pages: Vec<SnapshotPage> = snapshot.pages().collect::<Result<_>>()?;
    assert_eq!(pages.len(), names.len());
    for (at, page) in pages.iter().enumerate() {
        assert_eq!(page.page, PageId(at as u64));
        let alone = snapshot.page(page.page)?;
        assert!(alone.is_some_and(|alone| same(&alone, page)));
    }
    let wanted = MoveOptions {
        count: 3,
        by: By::Relative,
        top: 2,
        certain_only: false,
    };
    if let Ok(found) = moved(&snapshot, &snapshot, wanted) {
        let sums = &found.summary;
        assert_eq!((sums.l1, sums.common_pages), (0.0, pages.len() as u64));
        assert_eq!(sums.unchanged_pages, sums.same_rank_pages);
    }
    for format in [Format::Tsv, Format::Jsonl] {
        let rows = pages
            .iter()
            .zip(&names)
            .map(|(page, name)| Ok(page.named(name.as_str(), snapshot.len())));
        let _rows = export(
            format,
            &Setup::default(),
            Vec::new(),
            Path::new("out"),
            rows,
        );
    }
    snapshot.verify()?;
    Ok(SnapshotContents {
        info: snapshot.info().clone(),
        pages,
        names,
    })
}

/// Returns true if two pages are equal to the bit; importances may be NaN.
fn same(one: &SnapshotPage, other: &SnapshotPage) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

/// Fuzzes a snapshot file. The first byte selects: the file itself, which is then the sample's or an error; or the file
/// with corrected checksums, so that any content may come out.
pub fn snapshot(data: &[u8]) {
    let mut bytes = Bytes(data);
    let resum = bytes.byte() & 1 != 0;
    let mut file = bytes.0.to_vec();
    if resum {
        make_right(&mut file, *MAGIC);
    }
    let found = read_all(&store_with(SNAPSHOT, &file));
    if let (false, Ok(found)) = (resum, &found) {
        assert_eq!(found, truth());
    }
}

/// Sets the first and last bytes, the checksum of the tail, and the columns' checksums.
pub(super) fn make_right(file: &mut [u8], magic: [u8; 8]) {
    let Some(trailer) = file
        .len()
        .checked_sub(TRAILER)
        .filter(|&at| at >= MAGIC.len())
    else {
        return;
    };
    file[..8].copy_from_slice(&magic);
    file[trailer + 32..].copy_from_slice(&magic);
    let place = |at: usize, file: &[u8]| number(&file[at..at + 8]).min(trailer as u64) as usize;
    let (directory, info) = (place(trailer, file), place(trailer + 8, file));
    let mut at = directory;
    while at + ENTRY <= info {
        let (offset, len) = (number(&file[at..at + 8]), number(&file[at + 8..at + 12]));
        let end = offset.saturating_add(len);
        if end <= directory as u64 {
            let sum = xxh3_64(&file[offset as usize..end as usize]);
            file[at + 12..at + 20].copy_from_slice(&sum.to_le_bytes());
        }
        at += ENTRY;
    }
    let sum = xxh3_64(&file[directory..trailer + 24]);
    file[trailer + 24..trailer + 32].copy_from_slice(&sum.to_le_bytes());
}

/// Fuzzes `latest.json`, as it is and with its checksum corrected.
pub fn latest(data: &[u8]) {
    let part = "snapshots/latest.json";
    if let Ok(found) = read_all(&store_with(part, data)) {
        assert_eq!(&found, truth());
    }
    let Ok(content) = serde_json::from_slice::<Latest>(data) else {
        return;
    };
    let text = to_text(&content).unwrap_or_default();
    assert_eq!(from_text::<Latest>(&text).as_ref(), Ok(&content));
    let _found = read_all(&store_with(part, &text));
}

fn truth() -> &'static SnapshotContents {
    static TRUTH: std::sync::LazyLock<SnapshotContents> =
        std::sync::LazyLock::new(|| match read_all(&store_with("", &[])) {
            Ok(found) => found,
            Err(error) => panic!("{error}"),
        });
    &TRUTH
}
