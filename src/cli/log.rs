//! Output of long-running commands: verbosity, time stamps and progress.

use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use cashrank_store::snapshot::Watcher;
use indicatif::{ProgressBar, ProgressStyle};

use super::common::say;
use super::summary::settling;

/// Verbosity of a long run. Lines begin with the time unless standard error is a terminal or the system journal.
#[derive(clap::Args, Clone, Copy, Default)]
pub struct Verbosity {
    /// Print only problems.
    #[arg(long, short)]
    pub quiet: bool,
}

impl Verbosity {
    pub fn info(self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Prints a warning, also with `--quiet`.
    pub fn warn(self, text: &str) {
        if stderr().is_terminal() || std::env::var_os("JOURNAL_STREAM").is_some() {
            say!("{text}");
        } else {
            say!("{}", at_its_time(text));
        }
    }
}

fn at_its_time(text: &str) -> String {
    format!("{} {text}", jiff::Timestamp::now().strftime("%FT%TZ"))
}

const TICK: Duration = Duration::from_millis(100);

/// Runs `work`, which settles, while another thread, if one can be started, shows its progress on a terminal.
pub fn beside_a_bar<T>(
    watcher: &Watcher,
    work: impl FnOnce() -> cashrank::Result<T>,
) -> cashrank::Result<T> {
    if !stderr().is_terminal() {
        return work();
    }
    let style = ProgressStyle::with_template("{spinner} {msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style);
    let done = std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let bar = &bar;
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(TICK) {
                bar.set_message(settling(&watcher.progress()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_time() {
        let line = at_its_time("read");
        let (time, text) = line.split_once(' ').unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
        assert_eq!(text, "read");
    }
}
