//! A spinner on a terminal that says how far a computation has come.

use std::io::IsTerminal;
use std::time::Duration;

use cashrank::Error;
use cashrank::snapshot::Watcher;
use indicatif::{ProgressBar, ProgressStyle};

use super::summary::settling;

/// Settles on another thread, while this one shows on a terminal how far it is.
pub(super) fn beside_a_bar<T: Send>(
    watcher: &Watcher,
    work: impl FnOnce() -> cashrank::Result<T> + Send,
) -> cashrank::Result<T> {
    beside_words(|| settling(&watcher.progress()), work)
}

/// Does work on another thread, while this one says on a terminal how far it is.
pub(super) fn beside_words<T: Send>(
    words: impl Fn() -> String,
    work: impl FnOnce() -> cashrank::Result<T> + Send,
) -> cashrank::Result<T> {
    let bar = std::io::stderr().is_terminal().then(|| {
        let style = ProgressStyle::with_template("{spinner} {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        ProgressBar::new_spinner().with_style(style)
    });
    let done = std::thread::scope(|scope| {
        let working = std::thread::Builder::new()
            .spawn_scoped(scope, work)
            .map_err(|source| Error::Io {
                path: "thread".into(),
                action: "start",
                source,
            })?;
        while let Some(bar) = &bar
            && !working.is_finished()
        {
            bar.set_message(words());
            bar.tick();
            std::thread::sleep(Duration::from_millis(100));
        }
        working
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    done
}
