//! Building the index when a store is opened, from its file and the log of fingerprints: one thread reads, others fill
//! shares of the index.

use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, bounded};

use super::index_file::IndexFile;
use super::names::{NameReader, Prints};
use crate::engine::{Index, IndexShare};
use crate::threads::spawn_in;
use crate::{Error, Result};

/// Number of blocks that may wait for a thread.
const DEPTH: usize = 16;
/// Maximum number of threads; more would wait for the reading thread.
const THREADS: usize = 8;

pub(super) struct Indexed {
    pub index: Index,
    /// Number of fingerprints; `None` if one occurs twice.
    pub known: Option<u64>,
    /// Number of fingerprints from the file, or why it was not used.
    pub from_file: Result<u64>,
}

/// Builds the index of all fingerprints, from the file if there is a valid one.
pub(super) fn indexed(
    pages: u64,
    names: &NameReader,
    file: Result<Option<IndexFile>>,
) -> Result<Indexed> {
    let (file, mut unused) = match file {
        Ok(file) => (file, None),
        Err(error) => (None, Some(error)),
    };
    if let Some(file) = &file {
        match reindex(pages, names, Some(file)) {
            Ok((index, known @ Some(_))) => {
                return Ok(Indexed {
                    index,
                    known,
                    from_file: Ok(file.pages),
                });
            }
            Ok((_, None)) => unused = Some(file.damaged("it has a page that is behind it")),
            Err(error) => unused = Some(error),
        }
    }
    let (index, known) = reindex(pages, names, None)?;
    Ok(Indexed {
        index,
        known,
        from_file: unused.map_or(Ok(0), Err),
    })
}

/// Builds the index of all fingerprints, from the file as far as it goes. Returns it with their number, which must be
/// `pages`, or `None` if the index finds two alike. Memory: the index, and some megabytes.
pub fn reindex(
    pages: u64,
    names: &NameReader,
    file: Option<&IndexFile>,
) -> Result<(Index, Option<u64>)> {
    let mut index = match file {
        Some(file) => file.to_load(pages)?,
        None => Index::to_fill(pages)?,
    };
    let known = file.map_or(0, |file| file.pages);
    let threads = thread::available_parallelism().map_or(1, |n| n.get().min(THREADS));
    let (read, filled) = thread::scope(|scope| {
        let (mut to, mut fillers) = (Vec::new(), Vec::new());
        let mut loaded = Some(0);
        for share in index.shares(threads) {
            let (give, take) = bounded(DEPTH);
            fillers.push(spawn_in(scope, "index", move || fill(share, file, &take))?);
            to.push(give);
        }
        let read = hand_out(names, known, |block| {
            to.iter().all(|to| to.send(block.clone()).is_ok())
        });
        drop(to);
        for filler in fillers {
            let failed = |_| Error::internal("a thread failed");
            let found = filler.join().map_err(failed)??;
            loaded = loaded.zip(found).map(|(all, found)| all + found);
        }
        Ok::<_, Error>((read, loaded))
    })?;
    // A duplicate was read before any block that could not be read.
    let Some(loaded) = filled else {
        return Ok((index, None));
    };
    if let Some(file) = file {
        file.check_loaded(loaded)?;
    }
    Ok((index, Some(known + read?)))
}

type Block = Arc<Prints>;

/// Passes every block from page `first` on to `give` until that returns false. Returns the number of fingerprints so far.
fn hand_out(names: &NameReader, first: u64, give: impl Fn(&Block) -> bool) -> Result<u64> {
    let mut count = 0;
    for block in names.fingerprint_blocks(first)? {
        let block = Arc::new(block?);
        count += block.fingerprints.len() as u64;
        if !give(&block) {
            break;
        }
    }
    Ok(count)
}

/// Fills a share from the file and from blocks. Returns the number of pages from the file; `None` if a fingerprint
/// occurs twice.
fn fill(
    mut share: IndexShare<'_>,
    file: Option<&IndexFile>,
    blocks: &Receiver<Block>,
) -> Result<Option<u64>> {
    let loaded = file.map_or(Ok(0), |file| file.load(&mut share))?;
    for block in blocks {
        if !share.put(block.first, &block.fingerprints)? {
            return Ok(None);
        }
    }
    Ok(Some(loaded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::HashKey;
    use crate::engine::PageId;
    use crate::store::names::{NameLengths, NameLogs};
    use crate::store::{Disk, RealDisk};

    /// Writes logs of `pages` pages whose names are numbers; `twice` gives a page the name of another.
    fn logs(
        disk: &dyn Disk,
        dir: &std::path::Path,
        pages: u64,
        twice: Option<(u64, u64)>,
    ) -> NameReader {
        let mut logs = NameLogs::create(disk, dir).unwrap();
        for page in 0..pages {
            let like = twice
                .filter(|(at, _)| *at == page)
                .map_or(page, |(_, like)| like);
            let name = like.to_string();
            let print = HashKey([1, 2]).fingerprints().of(name.as_bytes());
            logs.append(print, name.as_bytes()).unwrap();
        }
        let lengths: NameLengths = logs.sync().unwrap();
        NameReader::open(disk, dir, lengths).unwrap()
    }

    #[test]
    fn every_page_is_found_again() {
        let dir = cashrank_base::folder::in_memory();
        let names = logs(&RealDisk, dir.path(), 300_000, None);
        let (index, count) = reindex(300_000, &names, None).unwrap();
        assert_eq!(count, Some(300_000));
        for (page, print) in (0..).zip(names.fingerprints()) {
            assert_eq!(index.get(print.unwrap()), Some(PageId(page)));
        }
    }

    #[test]
    fn a_page_that_is_there_twice_is_told() {
        for (at, like) in [(1, 0), (99_999, 3), (99_999, 99_998), (50_000, 49_000)] {
            let dir = cashrank_base::folder::in_memory();
            let names = logs(&RealDisk, dir.path(), 100_000, Some((at, like)));
            assert_eq!(reindex(100_000, &names, None).unwrap().1, None);
        }
    }

    /// Measures the speed. MILLIONS is the number of pages in millions; TMPDIR needs 16 bytes per page.
    #[test]
    #[ignore = "cargo test --release --lib reindex::tests::speed -- --ignored --nocapture"]
    fn speed() {
        let millions = std::env::var("MILLIONS").map_or(1, |m| m.parse::<u64>().unwrap());
        let pages = millions * 1_000_000;
        let dir = cashrank_base::folder::in_memory();
        let mut logs = NameLogs::create(&RealDisk, dir.path()).unwrap();
        for page in 0..pages {
            let print = HashKey([1, 2]).fingerprints().of(&page.to_le_bytes());
            logs.append(print, b"").unwrap();
        }
        let lengths = logs.sync().unwrap();
        let names = NameReader::open(&RealDisk, dir.path(), lengths).unwrap();
        let started = std::time::Instant::now();
        let (index, count) = reindex(pages, &names, None).unwrap();
        let seconds = started.elapsed().as_secs_f64();
        assert_eq!(count, Some(pages));
        let bytes = index.bytes() as f64 / pages as f64;
        eprintln!(
            "{:.2} M pages/s, {bytes:.2} bytes a page",
            pages as f64 / 1e6 / seconds
        );
    }
}
