//! Rebuilding the index from the fingerprint log: one thread reads, others fill shares of the index.

use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::names::{NameReader, Prints};
use crate::engine::{Index, Share};
use crate::threads::spawn_in;
use crate::{Error, Result};

/// Blocks that wait for a thread.
const DEPTH: usize = 16;
/// More threads than this would wait for the one that reads.
const THREADS: usize = 8;

/// The index of all fingerprints, and how many there are, which must be `pages`; `None`: one occurs twice, as far as an
/// index tells them apart. Memory: the index, and some megabytes.
pub(crate) fn reindex(pages: u64, names: &NameReader) -> Result<(Index, Option<u64>)> {
    let mut index = Index::to_fill(pages)?;
    let threads = thread::available_parallelism().map_or(1, |n| n.get().min(THREADS));
    let (read, filled) = thread::scope(|scope| {
        let mut to = Vec::new();
        let mut fillers = Vec::new();
        for share in index.shares(threads) {
            let (give, take) = bounded(DEPTH);
            fillers.push(spawn_in(scope, "index", move || fill(share, &take))?);
            to.push(give);
        }
        let read = hand_out(names, &to);
        drop(to);
        let mut all_new = true;
        for filler in fillers {
            let failed = |_| Error::internal("a thread failed");
            all_new &= filler.join().map_err(failed)??;
        }
        Ok::<_, Error>((read, all_new))
    })?;
    // What was there twice was read before what could not be read.
    if !filled {
        return Ok((index, None));
    }
    Ok((index, Some(read?)))
}

type Block = Arc<Prints>;

/// Gives every block to all; how many fingerprints there were, unless somebody gave up.
fn hand_out(names: &NameReader, to: &[Sender<Block>]) -> Result<u64> {
    let mut count = 0;
    for block in names.fingerprint_blocks() {
        let block = Arc::new(block?);
        count += block.fingerprints.len() as u64;
        if to.iter().any(|to| to.send(block.clone()).is_err()) {
            break;
        }
    }
    Ok(count)
}

/// False: a fingerprint is there twice.
fn fill(mut share: Share<'_>, blocks: &Receiver<Block>) -> Result<bool> {
    for block in blocks {
        if !share.put(block.first, &block.fingerprints)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::HashKey;
    use crate::engine::PageId;
    use crate::store::names::{NameLengths, NameLogs};
    use crate::store::{Disk, RealDisk};

    /// Logs of `pages` pages, whose names are numbers; `twice`: a page with the name of another.
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
        let dir = tempfile::tempdir().unwrap();
        let names = logs(&RealDisk, dir.path(), 300_000, None);
        let (index, count) = reindex(300_000, &names).unwrap();
        assert_eq!(count, Some(300_000));
        for (page, print) in (0..).zip(names.fingerprints()) {
            assert_eq!(index.get(print.unwrap()), Some(PageId(page)));
        }
    }

    #[test]
    fn a_page_that_is_there_twice_is_told() {
        for (at, like) in [(1, 0), (99_999, 3), (99_999, 99_998), (50_000, 49_000)] {
            let dir = tempfile::tempdir().unwrap();
            let names = logs(&RealDisk, dir.path(), 100_000, Some((at, like)));
            assert_eq!(reindex(100_000, &names).unwrap().1, None);
        }
    }

    /// Measures. Millions of pages in MILLIONS, a folder for 16 bytes a page in TMPDIR.
    #[test]
    #[ignore = "cargo test --release --lib reindex::tests::speed -- --ignored --nocapture"]
    fn speed() {
        let millions = std::env::var("MILLIONS").map_or(1, |m| m.parse::<u64>().unwrap());
        let pages = millions * 1_000_000;
        let dir = tempfile::tempdir().unwrap();
        let mut logs = NameLogs::create(&RealDisk, dir.path()).unwrap();
        for page in 0..pages {
            let print = HashKey([1, 2]).fingerprints().of(&page.to_le_bytes());
            logs.append(print, b"").unwrap();
        }
        let lengths = logs.sync().unwrap();
        let names = NameReader::open(&RealDisk, dir.path(), lengths).unwrap();
        let started = std::time::Instant::now();
        let (index, count) = reindex(pages, &names).unwrap();
        let seconds = started.elapsed().as_secs_f64();
        assert_eq!(count, Some(pages));
        let bytes = index.bytes() as f64 / pages as f64;
        eprintln!(
            "{:.2} M pages/s, {bytes:.2} bytes a page",
            pages as f64 / 1e6 / seconds
        );
    }
}
