//! A disk in memory, under the very code that users run: it counts operations, fails where it is
//! told to, and shows what a power cut would leave.
//!
//! Its rules are harsher than those of file systems in use. Written bytes are durable only after
//! their file was synced; names only after their directory was. What was not synced survives a cut
//! in any way that [`Survival`] says, sectors of 512 bytes and names each on their own. A failed
//! sync drops part of what it should have written, and the next one succeeds.

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

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The power is cut: the operation may have happened, no other will.
    Cut,
    /// An operation fails with this error; a write leaves half of itself behind if `half`, and a
    /// sync drops part of what was to be written.
    Error { kind: ErrorKind, half: bool },
}

/// When it does.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub fault: Fault,
    /// The operation, from 0.
    pub at: u64,
    /// From then on every one that can fail so, or just that one.
    pub for_ever: bool,
    /// Which operations can fail so.
    pub on: fn(Operation) -> bool,
}

/// Kinds of operations.
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

/// A sync of a file or directory that a mutant leaves out or delays.
pub type Mutant = fn(&Path, Operation) -> Mutation;

/// What a mutant does with a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Nothing wrong.
    Faithful,
    /// It says that it synced, and does not.
    Dropped,
    /// It takes effect only after the next commit, the second sync of `store.redb` from now: the order is swapped.
    AfterCommit,
}

struct State {
    tree: Tree,
    operations: u64,
    plan: Option<Plan>,
    struck: bool,
    off: bool,
    mutant: Option<Mutant>,
    /// Files whose syncs wait, and for how many of `store.redb`.
    delayed: Vec<(usize, u8)>,
    /// Handles that were opened.
    handles: u64,
    /// Files that are locked, and through which handle.
    locks: BTreeMap<usize, u64>,
    /// What each operation waits for before it happens.
    pace: Option<Pace>,
    /// Every lock is granted.
    unlocked: bool,
    dice: Dice,
}

/// The disk. Copies of it are the same disk.
#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    /// An empty disk. `seed` decides what failed syncs drop.
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

    /// Makes a fault happen.
    pub fn plan(&self, plan: Plan) {
        let mut state = self.state();
        state.plan = Some(plan);
        state.struck = false;
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.state().plan = None;
    }

    /// Whether the planned fault happened.
    pub fn struck(&self) -> bool {
        self.state().struck
    }

    /// Makes it lie about some syncs.
    pub fn mutate(&self, mutant: Mutant) {
        self.state().mutant = Some(mutant);
    }

    /// Makes each operation take a random time, so that commands at once meet in another order each time; `None`: none.
    pub fn pace(&self, dice: Option<Dice>) {
        self.state().pace = dice.map(Pace);
    }

    /// Makes it grant every lock, as to a program that never asks for one.
    pub fn unlock(&self, unlocked: bool) {
        self.state().unlocked = unlocked;
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// The disk that a power cut now leaves.
    pub fn cut(&self, survival: Survival, seed: u64) -> SimDisk {
        let state = self.state();
        let mut fate = Fate::new(survival, Dice(seed), state.operations);
        let cut = SimDisk::with(state.tree.survivor(&mut fate), seed);
        cut.state().mutant = state.mutant;
        cut
    }

    /// A hash of all it holds.
    pub fn hash(&self) -> u128 {
        self.state().tree.hash()
    }

    /// All files, with their lengths.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        self.state().tree.files()
    }

    /// The bytes of a file.
    pub fn content(&self, path: &Path) -> io::Result<Content> {
        let mut state = self.state();
        let id = state.tree.file(path)?;
        Ok(state.tree.node(id).now.clone())
    }

    /// Rot: changes a file's bytes behind everybody's back.
    pub fn put(&self, path: &Path, content: Content) -> io::Result<()> {
        let mut state = self.state();
        let id = state.tree.file(path)?;
        *state.tree.node(id) = File::of(content);
        Ok(())
    }

    /// Rot: takes a file away.
    pub fn lose(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let number = state.operations;
        state.tree.remove(path, number)
    }

    /// One operation: counts it, and fails it if that is planned. The number it got.
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
                // It may have been under way.
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

/// An operation that fails.
struct Refused<'a> {
    state: MutexGuard<'a, State>,
    number: u64,
    /// Something of it happens all the same.
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
    /// Which of all that were opened.
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
                    // All of it is left to the cut; of a short write, half.
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
