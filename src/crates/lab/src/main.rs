//! `cashrank-lab`: experiments with cashrank, and synthetic crawls for its tests and benchmarks. Data goes to standard
//! output, progress to standard error.

mod commands;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::main()
}
