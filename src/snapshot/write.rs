//! Writing a snapshot, and publishing it.

use std::mem;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

use crossbeam_channel::bounded;
use xxhash_rust::xxh3::xxh3_64;

use super::base::{self, BaseWarning, Keep};
use super::blocks::{BlockWriter, Packed};
use super::kept::thin;
use super::ranks::{Seen, order};
use super::settling::{Outcome, Settle, SnapshotOptions};
use super::{COLUMNS, Column, Info, Latest, MAGIC, check_not_newer, column};
use crate::engine::{CHUNK_PAGES, Estimation, HistoryView, NO_TIME, PageEstimate};
use crate::model::{Time, human};
use crate::store::base::CommittedBase;
use crate::store::{Disk, SNAPSHOTS, View};
use crate::threads::{in_two, spawn_in};
use crate::{Error, Result};

/// A snapshot's path, and what it says of the run.
pub type Published = Option<(PathBuf, Info)>;

/// A snapshot that was published, and what its settling left.
#[derive(Debug)]
pub struct Made {
    /// Its path.
    pub path: PathBuf,
    /// What it says of the run.
    pub info: Info,
    /// What was wrong with settled bases, the one before and its own.
    pub warnings: Vec<BaseWarning>,
    /// The base that the next commit is to name.
    pub(crate) base: Option<CommittedBase>,
}

/// Computes the estimates of a committed state and publishes them as the store's current snapshot:
/// written aside, synced, renamed; `latest.json` moves last. Of the older ones only those that [`SnapshotOptions::keep`] says stay, and
/// those that are pinned. Ranks that do not fit `rank_bytes` go through temporary
/// files of about 6 bytes a page. `None`: settling was stopped from outside, and nothing is published.
///
/// # Errors
/// Nothing is published of a view without the store's lock, for two publishers would overwrite each other's files and
/// order, nor of a state older than the current snapshot.
pub fn publish(disk: &dyn Disk, view: &View, making: &SnapshotOptions) -> Result<Published> {
    let made = publish_keeping(disk, view, making)?;
    Ok(made.map(|made| (made.path, made.info)))
}

/// The same, and what was settled is kept as the plan says ([`Settle::base`](super::Settle::base)).
pub(crate) fn publish_keeping(
    disk: &dyn Disk,
    view: &View,
    making: &SnapshotOptions,
) -> Result<Option<Made>> {
    view.check_in_place(disk)?;
    check_lock(view)?;
    make(disk, view, making).map_err(|error| view.check_in_place(disk).err().unwrap_or(error))
}

/// Refuses to publish without the store's lock: two publishers would overwrite each other's files and order.
pub(super) fn check_lock(view: &View) -> Result<()> {
    if view.is_writers() {
        return Ok(());
    }
    Err(Error::internal(
        "a ranking is published without the store's lock",
    ))
}

/// Gives a file that is whole and durable its name.
pub(super) fn put_in_place(disk: &dyn Disk, aside: &Path, path: &Path) -> Result<()> {
    disk.rename(aside, path)
        .and_then(|()| disk.sync_dir(path.parent().unwrap_or(Path::new("."))))
        .map_err(Error::io(path, "publish"))
}

/// Writes a file aside; one that is not complete is removed, for it may have filled the disk.
pub(super) fn or_remove<T>(
    disk: &dyn Disk,
    aside: &Path,
    write: impl FnOnce() -> Result<T>,
) -> Result<T> {
    write().inspect_err(|_| {
        let _ = disk.remove(aside);
    })
}

/// Publishes a ranking of a store at rest, as [`publish`] does; what it was settled to is the store's base from then on.
///
/// # Errors
/// Those of [`publish`], and of the commit that names the base.
pub fn publish_at_rest(
    disk: &dyn Disk,
    view: &View,
    mut making: SnapshotOptions,
) -> Result<Option<Made>> {
    if let Some(settle) = &mut making.settle {
        settle.base.keep = Keep::AtRest;
    }
    publish_keeping(disk, view, &making)
}

/// Makes a snapshot, and publishes it.
fn make(disk: &dyn Disk, view: &View, making: &SnapshotOptions) -> Result<Option<Made>> {
    check_not_newer(disk, view.dir(), view.counters())?;
    let config = &view.settings().config;
    let settle = making.settle.as_ref();
    let mut warnings = Vec::new();
    let outcome = match settle {
        None => Outcome::NotDone,
        Some(settle) => settle.run(disk, view, &mut warnings)?,
    };
    let (estimation, expired) = match &outcome {
        Outcome::Stopped => return Ok(None),
        Outcome::NotDone if settle.is_some_and(|settle| settle.or_nothing) => return Ok(None),
        Outcome::NotDone if view.has_partitions() && view.totals().pages > 0 => {
            return Err(not_settled(settle));
        }
        Outcome::NotDone => (Estimation::begin(view, config)?, None),
        Outcome::Done(ranked) => (
            Estimation::settled(view, config, ranked.scores()),
            ranked.expired,
        ),
    };
    if let Some(below) = settle.and_then(|settle| settle.below) {
        let bound = estimation.window().bound_l1().unwrap_or(f64::INFINITY);
        // As Info::bound_l1 has it.
        if bound + config.damping_bound() >= below {
            return Ok(None);
        }
    }
    let keeps = settle.map_or(Keep::No, |settle| settle.base.keep);
    let mut base = None;
    if keeps == Keep::AtRest {
        base = keep_base(disk, view, settle, &outcome, &mut warnings)?;
    }
    let dir = view.dir().join(SNAPSHOTS);
    let name = format!("{:012}.snapshot", view.counters().records);
    let path = dir.join(&name);
    let aside = path.with_extension("tmp");
    let seen = Seen::new(view.totals().pages, making.rank_bytes);
    let info = or_remove(disk, &aside, || {
        let mut writer = Writer::create(disk, &aside, seen)?;
        let measures = writer.blocks(&estimation)?;
        writer.ranks(disk, &path.with_extension("ranks"))?;
        let info = Info::new(
            view.state(),
            view.totals(),
            measures,
            estimation.window(),
            expired,
            view.settings(),
        )?;
        writer.finish(&info)?;
        put_in_place(disk, &aside, &path)?;
        Ok(info)
    })?;
    let latest = Latest {
        snapshot: name,
        names: view.name_lengths(),
        rows: *view.rows_retention(),
        parts: view.published_parts(),
    };
    latest.write(disk, view.dir())?;
    thin(disk, view.dir(), making.keep)?;
    if keeps != Keep::AtRest {
        // The ranking comes first where a disk has little room.
        base = keep_base(disk, view, settle, &outcome, &mut warnings)?;
    }
    Ok(Some(Made {
        path,
        info,
        warnings,
        base,
    }))
}

/// Keeps what was settled, and takes note of what is wrong with bases.
fn keep_base(
    disk: &dyn Disk,
    view: &View,
    settle: Option<&Settle>,
    outcome: &Outcome,
    warnings: &mut Vec<BaseWarning>,
) -> Result<Option<CommittedBase>> {
    let (Outcome::Done(ranked), Some(settle)) = (outcome, settle) else {
        return Ok(None);
    };
    let Some(settled) = ranked.settled() else {
        return Ok(None);
    };
    let (base, warning) = base::keep(disk, view, &settle.base, settled)?;
    warnings.extend(warning);
    Ok(base)
}

/// Why there is no ranking of a store with partitions, which has none of a window.
fn not_settled(settle: Option<&Settle>) -> Error {
    let too_large = settle.and_then(|settle| settle.watcher.too_large());
    let room = settle.and_then(|settle| settle.memory);
    Error::Conflict(match (settle, too_large.zip(room)) {
        (None, _) => "a store with `partitions` is ranked by settling: `settle` must not be none".into(),
        (Some(_), Some((need, room))) => format!(
            "no ranking was made: settling takes {}, of which {} are left, and a store with `partitions` is ranked by \
             settling; all records are kept: give more `memory`, and the same command, or `cashrank settle`, makes it",
            human(need),
            human(room)
        ),
        (Some(_), None) => "no ranking was made: there was no time to follow all links once, and a store with \
             `partitions` is ranked by settling; all records are kept: give more `settle_time`, and the same command, or \
             `cashrank settle`, makes it"
            .into(),
    })
}

/// The same, beside an ingest that goes on meanwhile: cash is copied first, and `apart` dropped when it is.
pub(crate) fn publish_apart<T>(
    disk: &dyn Disk,
    view: &mut View,
    making: &SnapshotOptions,
    apart: T,
) -> Result<Option<Made>> {
    let name = format!("{:012}.cash.tmp", view.counters().records);
    let path = view.dir().join(SNAPSHOTS).join(name);
    view.set_cash_aside(disk, &path)?;
    drop(apart);
    let published = publish_keeping(disk, view, making)?;
    disk.remove(&path).map_err(Error::io(&path, "remove"))?;
    Ok(published)
}

struct Writer {
    file: BlockWriter,
    directory: Vec<[Packed; COLUMNS]>,
    pages: u64,
    /// For the ranks; absent once they are written.
    seen: Option<Seen>,
}

impl Writer {
    fn create(disk: &dyn Disk, path: &Path, seen: Seen) -> Result<Writer> {
        Ok(Writer {
            file: BlockWriter::create(disk, path, *MAGIC)?,
            directory: Vec::new(),
            pages: 0,
            seen: Some(seen),
        })
    }

    /// All columns but the ranks. Where there are many blocks, one is packed and written while the next is
    /// estimated. How many measures were read.
    fn blocks(&mut self, estimation: &Estimation<'_>) -> Result<u64> {
        let (give, take) = bounded::<Vec<PageEstimate>>(0);
        let (give_back, spent) = bounded(1);
        let write = move || {
            for pages in take {
                self.block(&pages)?;
                let _ = give_back.try_send(pages);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let writing = spawn_in(scope, "columns", write)?;
            let measures = estimation.blocks(|_, pages| {
                let next = spent.try_recv().unwrap_or_default();
                // Nobody takes it: writing failed, and says why below.
                give.send(mem::replace(pages, next))
                    .map_err(|_| Error::internal("the snapshot cannot be written"))
            });
            drop(give);
            let written = writing.join();
            written.unwrap_or_else(|panic| resume_unwind(panic))?;
            measures
        })
    }

    /// All columns of a block but the ranks.
    fn block(&mut self, pages: &[PageEstimate]) -> Result<()> {
        let pack = |value: &dyn Fn(&PageEstimate) -> u64| {
            let values: Vec<u64> = pages.iter().map(value).collect();
            column::pack(&values)
        };
        let time = |time: Option<Time>| time.unwrap_or(NO_TIME) as u64;
        let scores = || {
            [
                pack(&|page| page.importance.to_bits()),
                pack(&|page| page.distributed.to_bits()),
            ]
        };
        // The scores take about as long as the rest. Threads are for blocks that are worth it.
        let ([importance, distributed], [visits, last_fetch, cash]) =
            in_two(pages.len() as u64 == CHUNK_PAGES, scores, || {
                [
                    pack(&|page| page.fetches.visits),
                    pack(&|page| time(page.fetches.last)),
                    pack(&|page| page.cash),
                ]
            });
        let fetches = [
            pack(&|page| page.fetches.failed),
            pack(&|page| time(page.fetches.last_failed)),
            pack(&|page| page.fetches.compared),
            pack(&|page| page.fetches.changed),
            pack(&|page| page.fetches.watched_s),
        ];
        let mut entry = [Packed::default(); COLUMNS];
        let from = Column::Failed as usize;
        for (entry, packed) in entry[from..].iter_mut().zip(fetches) {
            *entry = self.file.column(packed)?;
        }
        for (which, packed) in [
            (Column::Importance, importance),
            (Column::Distributed, distributed),
            (Column::Visits, visits),
            (Column::LastFetch, last_fetch),
            (Column::Cash, cash),
        ] {
            entry[which as usize] = self.file.column(packed)?;
        }
        self.directory.push(entry);
        self.pages += pages.len() as u64;
        if let Some(seen) = &mut self.seen {
            let values: Vec<u64> = pages.iter().map(|page| order(page.importance)).collect();
            seen.add(&values);
        }
        Ok(())
    }

    /// The rank columns, once all importances are known. Those that are not in memory are read back.
    fn ranks(&mut self, disk: &dyn Disk, temporary: &Path) -> Result<()> {
        let seen = match self.seen.take().map(Seen::ranks) {
            None => return Ok(()),
            Some(Ok(ranks)) => {
                for (block, ranks) in ranks.chunks(CHUNK_PAGES as usize).enumerate() {
                    self.directory[block][Column::Rank as usize] =
                        self.file.column(column::pack(ranks))?;
                }
                return Ok(());
            }
            Some(Err(seen)) => seen,
        };
        let mut gaps = seen.divide(disk, temporary);
        for block in 0..self.directory.len() {
            gaps.add(&self.importances(block)?)?;
        }
        gaps.sort(0)?;
        for block in 0..self.directory.len() {
            let mut ranks = self.importances(block)?;
            gaps.ranks(&mut ranks)?;
            self.directory[block][Column::Rank as usize] =
                self.file.column(column::pack(&ranks))?;
        }
        Ok(())
    }

    /// A block's importances, by [`order`].
    fn importances(&self, block: usize) -> Result<Vec<u64>> {
        let packed = self.directory[block][Column::Importance as usize];
        let first = block as u64 * CHUNK_PAGES;
        let count = CHUNK_PAGES.min(self.pages - first) as usize;
        let mut bytes = vec![0; packed.len as usize];
        let BlockWriter { path, file, .. } = &self.file;
        file.read_at(&mut bytes, packed.offset)
            .map_err(Error::reading(path))?;
        let whole = xxh3_64(&bytes) == packed.sum;
        let values = whole.then(|| column::unpack(&bytes, count)).flatten();
        let mut values =
            values.ok_or_else(|| Error::damaged(path, "it does not read as written"))?;
        for value in &mut values {
            *value = order(f64::from_bits(*value));
        }
        Ok(values)
    }

    fn finish(self, info: &Info) -> Result<()> {
        let directory = self.directory.into_iter().flatten();
        self.file.finish(directory, self.pages, info)
    }
}
