//! A fence around redb that contains its panics.
//!
//! redb trusts the pages of a file that was closed properly. If bit rot has changed one, opening, reading, writing or
//! dropping a value may panic, and checking all pages at every start would take too long. So every call goes through
//! [`Fence::call`], and every redb value with a destructor lives in a [`Fenced`]. A caught panic becomes an error, and is
//! final: every further call is refused, and redb's values are leaked. The file is as after a kill.
//!
//! A program's panic hook may ask [`fenced`] first. A second panic, of a value that redb drops while the first unwinds,
//! aborts the process unless that hook ends it in a better way; nothing is written by then.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

mod overlay;

pub use overlay::Overlay;

/// Message of Rust for a panic during unwinding, which aborts the process.
const SECOND: &str = "panic in a destructor during cleanup";

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Treatment of a panic by the fence, for a program's panic hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanicFate {
    /// The panic is outside of any fence.
    Outside,
    /// The panic will be caught and turned into an error: a hook should stay quiet.
    Caught,
    /// The panic came while another one unwound, so the process will be aborted. The database's pages are damaged.
    Final,
}

/// Returns how the fence treats the panic. The library sets no panic hook; a program that does may ask.
pub fn fenced(panic: &PanicHookInfo<'_>) -> PanicFate {
    if !INSIDE.try_with(Cell::get).unwrap_or(false) {
        PanicFate::Outside
    } else if panic.payload().downcast_ref() == Some(&SECOND) {
        PanicFate::Final
    } else {
        PanicFate::Caught
    }
}

/// Runs untrusted `work` of a library; `None` if it panicked: the objects it was called on must not be used then.
pub fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    let outer = INSIDE.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    INSIDE.set(outer);
    done.ok()
}

/// Fence around one database, whose user's errors are `E`.
pub struct Fence<E> {
    path: PathBuf,
    broken: AtomicBool,
    damaged: fn(&Path, &'static str) -> E,
}

impl<E> Fence<E> {
    /// Creates the fence of the database at `path`. If redb panics on its pages, they are damaged: `damaged` makes the
    /// error of that, and of what is wrong.
    pub fn new(path: PathBuf, damaged: fn(&Path, &'static str) -> E) -> Arc<Fence<E>> {
        Arc::new(Fence {
            path,
            broken: AtomicBool::new(false),
            damaged,
        })
    }

    /// Returns the path of the database's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Runs `work`; fails if it panics or an earlier call did.
    pub fn call<T>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if !self.is_broken() {
            if let Some(done) = contained(work) {
                return done;
            }
            self.broken.store(true, Ordering::Release);
        }
        Err((self.damaged)(&self.path, "redb cannot use its pages"))
    }

    /// Runs `work` like [`Fence::call`], and wraps its result, which must be dropped inside the fence.
    pub fn hold<T>(
        self: &Arc<Fence<E>>,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<Fenced<T, E>, E> {
        Ok(Fenced {
            value: Some(self.call(work)?),
            fence: self.clone(),
        })
    }
}

/// Value of redb that is used and dropped inside the fence.
pub struct Fenced<T, E> {
    /// `None` only after the value was taken.
    value: Option<T>,
    fence: Arc<Fence<E>>,
}

impl<T, E> Fenced<T, E> {
    /// Returns the path of the database's file.
    pub fn path(&self) -> &Path {
        self.fence.path()
    }

    /// Runs `work` with a reference to the value.
    pub fn with<R>(&self, work: impl FnOnce(&T) -> Result<R, E>) -> Result<R, E> {
        self.fence.call(|| work(self.value()?))
    }

    /// Runs `work` with a mutable reference to the value.
    pub fn with_mut<R>(&mut self, work: impl FnOnce(&mut T) -> Result<R, E>) -> Result<R, E> {
        let value = self.value.as_mut();
        let fence = &self.fence;
        fence.call(|| work(value.ok_or_else(|| taken(fence))?))
    }

    /// Runs `work` with the value, and consumes it.
    pub fn take<R>(mut self, work: impl FnOnce(T) -> Result<R, E>) -> Result<R, E> {
        // If an earlier call panicked, the value is not touched, and is leaked.
        let fence = self.fence.clone();
        fence.call(|| work(self.value.take().ok_or_else(|| taken(&fence))?))
    }

    /// Runs `work` like [`Fenced::with`], and wraps its result, which may borrow from this value.
    pub fn hold<'a, R>(
        &'a self,
        work: impl FnOnce(&'a T) -> Result<R, E>,
    ) -> Result<Fenced<R, E>, E> {
        self.fence.hold(|| work(self.value()?))
    }

    fn value(&self) -> Result<&T, E> {
        self.value.as_ref().ok_or_else(|| taken(&self.fence))
    }
}

fn taken<E>(fence: &Fence<E>) -> E {
    (fence.damaged)(&fence.path, "it is used after its end")
}

impl<T, E> Drop for Fenced<T, E> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else {
            return;
        };
        if self.fence.is_broken() {
            std::mem::forget(value);
        } else if contained(|| drop(value)).is_none() {
            self.fence.broken.store(true, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Result<T> = std::result::Result<T, PathBuf>;

    struct Loud(&'static AtomicBool);

    impl Drop for Loud {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
            panic!("dropped");
        }
    }

    fn fence() -> Arc<Fence<PathBuf>> {
        Fence::new("store.redb".into(), |path, _| path.into())
    }

    #[test]
    fn a_panic_is_damage_and_final() {
        let fence = fence();
        assert_eq!(fence.call(|| Ok(1)).unwrap(), 1);
        let error = fence.call(|| -> Result<()> { panic!("inside") });
        assert_eq!(error, Err("store.redb".into()));
        assert!(fence.call(|| Ok(1)).is_err());
    }

    #[test]
    fn a_drop_that_panics_stays_inside() {
        static DROPPED: AtomicBool = AtomicBool::new(false);
        let fence = fence();
        drop(fence.hold(|| Ok(Loud(&DROPPED))).unwrap());
        assert!(DROPPED.load(Ordering::Acquire));
        assert!(fence.call(|| Ok(())).is_err());
    }

    /// The test runs itself as another process, which must end as its hook states.
    #[test]
    fn a_second_panic_reaches_the_hook() {
        const CHILD: &str = "CASHRANK_TEST_SECOND_PANIC";
        const ENDED: i32 = 47;
        if std::env::var_os(CHILD).is_some() {
            std::panic::set_hook(Box::new(|panic| match fenced(panic) {
                PanicFate::Outside => std::process::exit(1),
                PanicFate::Caught => {}
                PanicFate::Final => std::process::exit(ENDED),
            }));
            let _ = fence().call(|| -> Result<()> {
                static DROPPED: AtomicBool = AtomicBool::new(false);
                let _loud = Loud(&DROPPED);
                panic!("inside");
            });
            return;
        }
        let name = "tests::a_second_panic_reaches_the_hook";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&child.stderr);
        assert_eq!(child.status.code(), Some(ENDED), "{message}");
    }

    #[test]
    fn after_a_panic_nothing_is_dropped() {
        static DROPPED: AtomicBool = AtomicBool::new(false);
        let fence = fence();
        let held = fence.hold(|| Ok(Loud(&DROPPED))).unwrap();
        assert!(held.with(|_| -> Result<()> { panic!("inside") }).is_err());
        assert!(held.with(|_| Ok(())).is_err());
        drop(held);
        assert!(!DROPPED.load(Ordering::Acquire));
    }
}
