//! Output of long-running commands: verbosity, time stamps and colours.

use crate::cli::common::say;
use std::io::{IsTerminal, stderr, stdout};

/// How much a long run says.
#[derive(clap::Args, Clone, Copy, Default)]
pub struct TalkArgs {
    /// Print only problems.
    #[arg(long, short)]
    quiet: bool,
}

/// Verbosity of a run.
#[derive(Clone, Copy)]
pub struct Verbosity {
    /// True if only problems are reported.
    pub quiet: bool,
    times: bool,
}

impl TalkArgs {
    /// Returns the verbosity for standard error. Lines begin with the time unless it is a terminal or the system
    /// journal, which adds times itself.
    pub fn log(self) -> Verbosity {
        let journal = std::env::var_os("JOURNAL_STREAM").is_some();
        Verbosity {
            quiet: self.quiet,
            times: !(stderr().is_terminal() || journal),
        }
    }
}

impl Verbosity {
    /// Returns the line with its time stamp, if lines have one.
    pub fn line(self, text: &str) -> String {
        if self.times {
            format!("{} {text}", jiff::Timestamp::now().strftime("%FT%TZ"))
        } else {
            text.to_owned()
        }
    }

    /// Prints a line unless `--quiet` was given.
    pub fn info(self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Prints a warning, also with `--quiet`.
    pub fn warn(self, text: &str) {
        say!("{}", self.line(text));
    }
}

/// Colours for a terminal. Text stays plain elsewhere, and if `NO_COLOR` is set.
#[derive(Clone, Copy)]
pub struct Paint(bool);

impl Paint {
    /// Returns the colours of standard output.
    pub fn stdout() -> Paint {
        Paint(stdout().is_terminal() && is_wanted())
    }

    /// Returns the colours of standard error.
    pub fn stderr() -> Paint {
        Paint(stderr().is_terminal() && is_wanted())
    }

    /// Formats the head of a table.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Formats an error.
    pub fn red(self, text: &str) -> String {
        self.with("1;31", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

fn is_wanted() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    !refused && !dumb
}

/// Returns the width of the terminal that standard output is connected to, in columns. `None`: it is not a terminal,
/// and nothing is cut.
pub fn width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(stdout())?;
    stdout().is_terminal().then_some(width.0.into())
}

/// Cuts `text` to at most `columns` characters, with `...` in place of the rest.
pub fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept = columns.saturating_sub(3);
    text.chars().take(kept).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_time_and_texts_their_width() {
        let log = Verbosity {
            quiet: false,
            times: true,
        };
        let line = log.line("read");
        let (time, text) = line.split_once(' ').unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
        assert_eq!(text, "read");
        assert_eq!(
            Verbosity {
                times: false,
                ..log
            }
            .line("read"),
            "read"
        );
        assert_eq!(cut("http://ä.example/", 17), "http://ä.example/");
        assert_eq!(cut("http://ä.example/long", 12), "http://ä....");
        assert_eq!(Paint(false).red("x"), "x");
        assert_eq!(Paint(true).red("x"), "\x1b[1;31mx\x1b[0m");
    }
}
