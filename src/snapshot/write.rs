//! Writing a snapshot, and publishing it.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::{COLUMNS, Column, ENTRY, Info, Latest, MAGIC, column};
use crate::engine::{CHUNK_PAGES, Estimation, PageEstimate};
use crate::store::{Disk, DiskFile, SNAPSHOTS, View};
use crate::{Error, Result};

/// Computes the estimates of a committed state and publishes them as the store's current snapshot:
/// written aside, synced, renamed; `latest.json` moves last. Of the older ones only the newest
/// `keep - 1` stay; `keep` 0: all. Memory: 16 bytes a page, for the ranks.
pub fn publish(disk: &dyn Disk, view: &View, keep: usize) -> Result<(PathBuf, Info)> {
    let dir = view.dir().join(SNAPSHOTS);
    let name = format!("{:012}.snapshot", view.counters().records);
    let path = dir.join(&name);
    let aside = path.with_extension("tmp");
    let mut writer = Writer::create(disk, &aside)?;
    let estimation = Estimation::begin(view, &view.settings().config)?;
    estimation.blocks(|_, pages| writer.block(pages))?;
    writer.ranks()?;
    let info = Info::new(view.state(), estimation.window(), view.settings());
    writer.finish(&info)?;
    disk.rename(&aside, &path)
        .and_then(|()| disk.sync_dir(&dir))
        .map_err(Error::io(&path, "publish"))?;
    let latest = Latest {
        snapshot: name,
        names: view.name_lengths(),
    };
    latest.write(disk, view.dir())?;
    if keep > 0 {
        remove_older(disk, &dir, keep)?;
    }
    Ok((path, info))
}

/// Removes all snapshots but the newest `keep`. A reader that has one open may go on reading it.
fn remove_older(disk: &dyn Disk, dir: &Path, keep: usize) -> Result<()> {
    let names = disk.list(dir).map_err(Error::io(dir, "list"))?;
    let snapshots: Vec<&String> = names
        .iter()
        .filter(|name| name.ends_with(".snapshot"))
        .collect();
    for name in &snapshots[..snapshots.len().saturating_sub(keep)] {
        let path = dir.join(name);
        disk.remove(&path).map_err(Error::io(&path, "remove"))?;
    }
    Ok(())
}

/// Where a packed column is, and what it must hash to.
#[derive(Clone, Copy, Default)]
struct Packed {
    offset: u64,
    len: u32,
    sum: u64,
}

struct Writer {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    at: u64,
    directory: Vec<[Packed; COLUMNS]>,
    pages: u64,
    /// All importances, for the ranks.
    importances: Vec<f64>,
}

impl Writer {
    fn create(disk: &dyn Disk, path: &Path) -> Result<Writer> {
        let file = disk.open(path, true).map_err(Error::io(path, "create"))?;
        file.set_len(0).map_err(Error::io(path, "cut"))?;
        let mut writer = Writer {
            path: path.into(),
            file,
            at: 0,
            directory: Vec::new(),
            pages: 0,
            importances: Vec::new(),
        };
        writer.write(MAGIC)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<u64> {
        let offset = self.at;
        self.file
            .write_at(bytes, offset)
            .map_err(Error::io(&self.path, "write"))?;
        self.at += bytes.len() as u64;
        Ok(offset)
    }

    fn column(&mut self, values: &[u64]) -> Result<Packed> {
        let packed = column::pack(values).map_err(Error::io(&self.path, "compress"))?;
        Ok(Packed {
            offset: self.write(&packed)?,
            len: packed.len() as u32,
            sum: xxh3_64(&packed),
        })
    }

    /// All columns of a block but the ranks.
    fn block(&mut self, pages: &[PageEstimate]) -> Result<()> {
        let mut entry = [Packed::default(); COLUMNS];
        let mut put = |which: Column, value: &dyn Fn(&PageEstimate) -> u64| {
            let values: Vec<u64> = pages.iter().map(value).collect();
            entry[which as usize] = self.column(&values)?;
            Ok::<(), Error>(())
        };
        put(Column::Importance, &|page| page.importance.to_bits())?;
        put(Column::Distributed, &|page| page.distributed.to_bits())?;
        put(Column::Visits, &|page| page.visits)?;
        put(Column::LastFetch, &|page| {
            page.last_fetch.unwrap_or(i64::MIN) as u64
        })?;
        put(Column::Cash, &|page| page.cash)?;
        self.directory.push(entry);
        self.pages += pages.len() as u64;
        self.importances
            .extend(pages.iter().map(|page| page.importance));
        Ok(())
    }

    /// The rank columns, once all importances are known.
    fn ranks(&mut self) -> Result<()> {
        let ranks = crate::engine::ranks(&std::mem::take(&mut self.importances));
        for (block, ranks) in ranks.chunks(CHUNK_PAGES as usize).enumerate() {
            self.directory[block][Column::Rank as usize] = self.column(ranks)?;
        }
        Ok(())
    }

    fn finish(mut self, info: &Info) -> Result<()> {
        let mut tail = Vec::with_capacity(self.directory.len() * COLUMNS * ENTRY);
        for packed in self.directory.iter().flatten() {
            tail.extend_from_slice(&packed.offset.to_le_bytes());
            tail.extend_from_slice(&packed.len.to_le_bytes());
            tail.extend_from_slice(&packed.sum.to_le_bytes());
        }
        let directory_len = tail.len() as u64;
        let text = serde_json::to_vec(info).map_err(|error| Error::Refused(error.to_string()))?;
        tail.extend_from_slice(&text);
        let directory = self.at;
        tail.extend_from_slice(&directory.to_le_bytes());
        tail.extend_from_slice(&(directory + directory_len).to_le_bytes());
        tail.extend_from_slice(&self.pages.to_le_bytes());
        let sum = xxh3_64(&tail);
        tail.extend_from_slice(&sum.to_le_bytes());
        tail.extend_from_slice(MAGIC);
        self.write(&tail)?;
        self.file.sync().map_err(Error::io(&self.path, "sync"))
    }
}
