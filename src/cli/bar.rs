//! A spinner on a terminal that says how far a computation has come.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use cashrank_store::snapshot::Watcher;
use indicatif::{ProgressBar, ProgressStyle};

use super::summary::settling;

/// How often it is said.
const TICK: Duration = Duration::from_millis(100);

/// Settles, while another thread shows on a terminal how far that is.
pub(super) fn beside_a_bar<T>(
    watcher: &Watcher,
    work: impl FnOnce() -> cashrank::Result<T>,
) -> cashrank::Result<T> {
    beside_words(|| settling(&watcher.progress()), work)
}

/// Does work, while another thread, if there can be one, says on a terminal how far it is.
pub(super) fn beside_words<T>(
    words: impl Fn() -> String + Sync,
    work: impl FnOnce() -> cashrank::Result<T>,
) -> cashrank::Result<T> {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let style = ProgressStyle::with_template("{spinner} {msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style);
    let done = std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let (bar, words) = (&bar, &words);
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(TICK) {
                bar.set_message(words());
                bar.tick();
            }
        });
        let done = work();
        drop(end);
        done
    });
    bar.finish_and_clear();
    done
}
