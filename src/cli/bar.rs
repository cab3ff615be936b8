//! Spinner on a terminal that shows the progress of a computation.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use cashrank_store::snapshot::Watcher;
use indicatif::{ProgressBar, ProgressStyle};

use super::summary::settling;

/// Interval between updates of the spinner.
const TICK: Duration = Duration::from_millis(100);

/// Runs `work`, which settles, while another thread shows its progress on a terminal.
pub(super) fn beside_a_bar<T>(
    watcher: &Watcher,
    work: impl FnOnce() -> cashrank::Result<T>,
) -> cashrank::Result<T> {
    beside_words(|| settling(&watcher.progress()), work)
}

/// Runs `work` while another thread, if one can be started, shows `words` on a terminal.
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
