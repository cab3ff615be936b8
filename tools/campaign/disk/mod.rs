//! Simulated disk in memory, under the production code: it counts operations, fails where planned, and shows what a
//! power cut would leave.
//!
//! Its rules are harsher than those of real file systems. Written bytes are durable only after their file was synced;
//! names only after their directory was. Unsynced changes survive a cut in any of the ways of [`Survival`], with each
//! sector of 512 bytes and each name on its own. A failed sync drops part of what it should have written, and the next
//! one succeeds.

mod content;
mod pace;
mod survival;
mod tree;

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use cashrank_store::store::{Disk, DiskFile};

use crate::crawl::Dice;
use content::{Change, File};
pub use content::{Content, SECTOR};
use pace::Pace;
use survival::Fate;
pub use survival::Survival;
use tree::Tree;

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The power is cut: the operation may have happened, and none after it does.
    Cut,
    /// An operation fails with this error; with `half`, a write leaves half of itself, and a sync drops part of what
    /// was to be written.
    Error { kind: ErrorKind, half: bool },
}

/// Plan of a fault.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub fault: Fault,
    /// Number of the operation, from 0.
    pub at: u64,
    /// True if every matching operation from then on fails; false for a single one.
    pub for_ever: bool,
    /// Predicate for the operations that can fail so.
    pub on: fn(Operation) -> bool,
}

/// Kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Open,
    Create,
    Read,
    Write,
    SetLen,
    Size,
    Sync,
    Lock,
    CreateDir,
    Rename,
    Remove,
    SyncDir,
    List,
}

/// Function that decides whether a mutant leaves out or delays the sync of a file or directory.
pub type Mutant = fn(&Path, Operation) -> Mutation;

/// Treatment of a sync by a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The sync is performed.
    Faithful,
    /// The sync is reported as done, and omitted.
    Dropped,
    /// The sync takes effect only after the next commit, the second sync of `store.redb` from now: the order is
    /// swapped.
    AfterCommit,
}

struct State {
    tree: Tree,
    operations: u64,
    plan: Option<Plan>,
    struck: bool,
    off: bool,
    mutant: Option<Mutant>,
    /// Files whose syncs are delayed, each with the number of syncs of `store.redb` to wait for.
    delayed: Vec<(usize, u8)>,
    /// Number of handles opened.
    handles: u64,
    /// Locked files with the handle that locked them.
    locks: BTreeMap<usize, u64>,
    /// Delay of each operation.
    pace: Option<Pace>,
    /// True if every lock is granted.
    unlocked: bool,
    dice: Dice,
}

/// Simulated disk. Clones refer to the same disk.
#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    /// Creates an empty disk. `seed` determines what failed syncs drop.
    pub fn new(seed: u64) -> SimDisk {
        SimDisk::with(Tree::new(), seed)
    }

    fn with(tree: Tree, seed: u64) -> SimDisk {
        SimDisk(Arc::new(Mutex::new(State {
            tree,
            operations: 0,
            plan: None,
            struck: false,
            off: false,
            mutant: None,
            delayed: Vec::new(),
            handles: 0,
            locks: BTreeMap::new(),
            pace: None,
            unlocked: false,
            dice: Dice(seed),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Plans a fault.
    pub fn plan(&self, plan: Plan) {
        let mut state = self.state();
        state.plan = Some(plan);
        state.struck = false;
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.state().plan = None;
    }

    /// Returns whether the planned fault happened.
    pub fn struck(&self) -> bool {
        self.state().struck
    }

    /// Sets a mutant, which lies about some syncs.
    pub fn mutate(&self, mutant: Mutant) {
        self.state().mutant = Some(mutant);
    }

    /// Makes each operation take a random time, so that concurrent commands interleave differently each time; `None`
    /// ends that.
    pub fn pace(&self, dice: Option<Dice>) {
        self.state().pace = dice.map(Pace);
    }

    /// Makes the disk grant every lock, which models a program that never takes one.
    pub fn unlock(&self, unlocked: bool) {
        self.state().unlocked = unlocked;
    }

    /// Returns the number of operations so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Returns the disk that a power cut now would leave.
    pub fn cut(&self, survival: Survival, seed: u64) -> SimDisk {
        let state = self.state();
        let mut fate = Fate::new(survival, Dice(seed), state.operations);
        let cut = SimDisk::with(state.tree.survivor(&mut fate), seed);
        cut.state().mutant = state.mutant;
        cut
    }

    /// Returns a hash of all contents.
    pub fn hash(&self) -> u128 {
        self.state().tree.hash()
    }

    /// Lists all files with their lengths.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        self.state().tree.files()
    }

    /// Returns the bytes of a file.
    pub fn content(&self, path: &Path) -> io::Result<Content> {
        let mut state = self.state();
        let id = state.tree.file(path)?;
        Ok(state.tree.node(id).now.clone())
    }

    /// Replaces a file's bytes unnoticed, as rot.
    pub fn put(&self, path: &Path, content: Content) -> io::Result<()> {
        let mut state = self.state();
        let id = state.tree.file(path)?;
        *state.tree.node(id) = File::of(content);
        Ok(())
    }

    /// Removes a file unnoticed, as rot.
    pub fn lose(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let number = state.operations;
        state.tree.remove(path, number)
    }

    /// Counts an operation, and fails it if that is planned. Returns its number.
    fn operate(&self, operation: Operation) -> Result<(MutexGuard<'_, State>, u64), Refused<'_>> {
        let waits = self.state().pace.as_mut().map(Pace::next);
        waits.into_iter().for_each(Pace::wait);
        let mut state = self.state();
        let number = state.operations;
        if state.off {
            return Err(Refused {
                state,
                number,
                half: false,
                error: off(),
            });
        }
        state.operations += 1;
        let due = state.plan.filter(|plan| {
            (number == plan.at || (plan.for_ever && number > plan.at)) && (plan.on)(operation)
        });
        let Some(plan) = due else {
            return Ok((state, number));
        };
        state.struck = true;
        let (error, half) = match plan.fault {
            Fault::Cut => {
                state.off = true;
                // The operation may have been in progress.
                (off(), false)
            }
            Fault::Error { kind, half } => (kind.into(), half),
        };
        Err(Refused {
            half: half || matches!(plan.fault, Fault::Cut),
            state,
            number,
            error,
        })
    }

    fn handle(&self, state: &mut State, id: usize, path: &Path) -> Box<dyn DiskFile> {
        state.handles += 1;
        Box::new(SimFile {
            disk: self.clone(),
            id,
            handle: state.handles,
            path: path.into(),
        })
    }
}

/// Operation that fails.
struct Refused<'a> {
    state: MutexGuard<'a, State>,
    number: u64,
    /// True if part of it happens all the same.
    half: bool,
    error: io::Error,
}

impl From<Refused<'_>> for io::Error {
    fn from(refused: Refused<'_>) -> io::Error {
        refused.error
    }
}

fn off() -> io::Error {
    io::Error::other("the power is off")
}

impl State {
    /// Syncs a file or directory, or does what the mutant does.
    fn sync(&mut self, id: usize, path: &Path, operation: Operation) {
        let mutation = self
            .mutant
            .map_or(Mutation::Faithful, |mutant| mutant(path, operation));
        let database = path.file_name().is_some_and(|name| name == "store.redb");
        for (late, left) in std::mem::take(&mut self.delayed) {
            if left == 0 || late == id {
                self.tree.sync(late);
            } else {
                self.delayed.push((late, left - u8::from(database)));
            }
        }
        match mutation {
            Mutation::Faithful => self.tree.sync(id),
            Mutation::Dropped => {}
            Mutation::AfterCommit => self.delayed.push((id, 2)),
        }
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn DiskFile>> {
        let operation = if create {
            Operation::Create
        } else {
            Operation::Open
        };
        let (mut state, number) = self.operate(operation)?;
        let id = match state.tree.file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && create => {
                state.tree.create(path, number)?
            }
            found => found?,
        };
        Ok(self.handle(&mut state, id, path))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let (mut state, number) = self.operate(Operation::Create)?;
        let id = state.tree.create(path, number)?;
        Ok(self.handle(&mut state, id, path))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let (mut state, _) = self.operate(Operation::Open)?;
        let id = state.tree.file(path)?;
        Ok(self.handle(&mut state, id, path))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let (mut state, number) = self.operate(Operation::CreateDir)?;
        state.tree.create_dir(path, number)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self.operate(Operation::Rename) {
            Ok((mut state, number)) => state.tree.rename(from, to, number),
            Err(mut refused) => {
                if refused.half && refused.state.off {
                    let number = refused.number;
                    let _ = refused.state.tree.rename(from, to, number);
                }
                Err(refused.into())
            }
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let (mut state, number) = self.operate(Operation::Remove)?;
        state.tree.remove(path, number)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        match self.operate(Operation::SyncDir) {
            Ok((mut state, _)) => {
                let id = state.tree.dir(path)?;
                state.sync(id, path, Operation::SyncDir);
                Ok(())
            }
            Err(refused) => Err(refused.into()),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let (state, _) = self.operate(Operation::List)?;
        state.tree.list(path)
    }
}

struct SimFile {
    disk: SimDisk,
    id: usize,
    /// Number of the handle, among all opened.
    handle: u64,
    path: PathBuf,
}

impl std::fmt::Debug for SimFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path.fmt(f)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.locks.get(&self.id) == Some(&self.handle) {
            state.locks.remove(&self.id);
        }
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let (mut state, _) = self.disk.operate(Operation::Read)?;
        if state.tree.node(self.id).now.read(buf, offset) {
            Ok(())
        } else {
            Err(ErrorKind::UnexpectedEof.into())
        }
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let write = |state: &mut State, number, data: &[u8]| {
            let data = data.into();
            let change = Change::Write { offset, data };
            state.tree.node(self.id).change(number, change);
        };
        match self.disk.operate(Operation::Write) {
            Ok((mut state, number)) => {
                write(&mut state, number, data);
                Ok(())
            }
            Err(mut refused) => {
                if refused.half {
                    // The cut decides about all of it; a short write is half.
                    let whole = refused.state.off;
                    let data = if whole { data } else { &data[..data.len() / 2] };
                    let number = refused.number;
                    write(&mut refused.state, number, data);
                }
                Err(refused.into())
            }
        }
    }

    fn size(&self) -> io::Result<u64> {
        let (mut state, _) = self.disk.operate(Operation::Size)?;
        Ok(state.tree.node(self.id).now.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let (mut state, number) = self.disk.operate(Operation::SetLen)?;
        let change = Change::SetLen(len);
        state.tree.node(self.id).change(number, change);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        match self.disk.operate(Operation::Sync) {
            Ok((mut state, _)) => {
                state.sync(self.id, &self.path, Operation::Sync);
                Ok(())
            }
            Err(mut refused) => {
                if !refused.state.off {
                    let (operations, dice) = (refused.state.operations, refused.state.dice.fork());
                    let mut fate = Fate::new(Survival::Sectors, dice, operations);
                    refused.state.tree.node(self.id).forget_some(&mut fate);
                }
                Err(refused.into())
            }
        }
    }

    fn try_lock(&self) -> io::Result<bool> {
        let (mut state, _) = self.disk.operate(Operation::Lock)?;
        if state.unlocked {
            return Ok(true);
        }
        let holder = state.locks.entry(self.id).or_insert(self.handle);
        Ok(*holder == self.handle)
    }
}
