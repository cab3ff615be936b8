//! The output of long-running commands: how much, whether each line begins with the time, and colour.

use crate::cli::common::say;
use std::io::{IsTerminal, stderr, stdout};

/// How much a long run says.
#[derive(clap::Args, Clone, Copy, Default)]
pub struct TalkArgs {
    /// Print only problems.
    #[arg(long, short)]
    quiet: bool,
}

/// How a run talks.
#[derive(Clone, Copy)]
pub struct Verbosity {
    /// Only of what is wrong.
    pub quiet: bool,
    times: bool,
}

impl TalkArgs {
    /// For this process's standard error. Lines begin with the time unless it is a terminal, or the system journal, which
    /// adds times itself.
    pub fn log(self) -> Verbosity {
        let journal = std::env::var_os("JOURNAL_STREAM").is_some();
        Verbosity {
            quiet: self.quiet,
            times: !(stderr().is_terminal() || journal),
        }
    }
}

impl Verbosity {
    /// The line as it is written.
    pub fn line(self, text: &str) -> String {
        if self.times {
            format!("{} {text}", jiff::Timestamp::now().strftime("%FT%TZ"))
        } else {
            text.to_owned()
        }
    }

    /// Prints a line, unless `--quiet` was given.
    pub fn info(self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Says what is not.
    pub fn warn(self, text: &str) {
        say!("{}", self.line(text));
    }
}

/// Colours for a terminal; plain text elsewhere, and where `NO_COLOR` asks for it.
#[derive(Clone, Copy)]
pub struct Paint(bool);

impl Paint {
    /// For standard output.
    pub fn stdout() -> Paint {
        Paint(stdout().is_terminal() && is_wanted())
    }

    /// For standard error.
    pub fn stderr() -> Paint {
        Paint(stderr().is_terminal() && is_wanted())
    }

    /// The head of a table.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// What is wrong.
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

/// Columns of the terminal that standard output is; `None`: it is none, and nothing is cut.
pub fn width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(stdout())?;
    stdout().is_terminal().then_some(width.0.into())
}

/// `text` in at most `columns` characters, with `...` for what is cut off.
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
