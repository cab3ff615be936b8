//! State that all parts share: the options, the folder for large files, the programs, the report.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::Options;
use crate::measure::{Measured, measure};
use crate::report::Report;

pub struct Bench {
    pub options: Options,
    pub report: Report,
    /// Folder for large files; removed at the end unless `--keep` is given.
    pub folder: PathBuf,
    lab: Option<PathBuf>,
    wrong: bool,
}

impl Bench {
    pub fn new(options: Options) -> Bench {
        let folder = options.dir.join("end_to_end");
        std::fs::create_dir_all(&folder).expect("the folder for large files can be made");
        Bench {
            report: Report::new(options.name.as_deref(), &options.note),
            folder,
            options,
            lab: None,
            wrong: false,
        }
    }

    /// Returns the exit code.
    pub fn end(self) -> ExitCode {
        ExitCode::from(u8::from(self.wrong))
    }

    /// Records a fact that must hold.
    pub fn check(&mut self, holds: bool, what: &str) {
        if !holds {
            self.wrong = true;
            self.report.line(&format!("WRONG: {what}"));
        }
    }

    pub fn store(&self) -> PathBuf {
        self.folder.join("bench.store")
    }

    pub fn remove_store(&self) {
        let _ = std::fs::remove_dir_all(self.store());
    }

    /// Returns the command `cashrank` with arguments.
    pub fn cashrank(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cashrank"));
        command.args(arguments);
        command
    }

    /// Returns the command `cashrank ingest` into the bench's store; the summary is printed as JSON.
    pub fn ingest_command(&self, input: &Path, arguments: &[&str]) -> Command {
        let mut command = self.cashrank(&["ingest", "--json", "--store"]);
        command.arg(self.store()).arg(input).args(arguments);
        command
    }

    /// Ingests into a new store, which stays.
    pub fn ingest(&self, input: &Path, arguments: &[&str]) -> Measured {
        self.remove_store();
        measure(&mut self.ingest_command(input, arguments))
    }

    /// Returns the command of the generator, which is part of the lab.
    pub fn generator(&mut self) -> Command {
        let path = self.lab.get_or_insert_with(build_lab);
        let mut command = Command::new(path);
        command.arg("generate");
        command
    }
}

/// Builds `cashrank-lab` if necessary; returns its path.
fn build_lab() -> PathBuf {
    let profile = Path::new(env!("CARGO_BIN_EXE_cashrank")).parent();
    let path = profile.expect("is in a folder").join("cashrank-lab");
    // Cargo passes its own profile: release for benchmarks.
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "-p", "cashrank-lab"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(built.expect("cargo starts").success() && path.exists());
    path
}

/// Removes the folder, also after a panic.
impl Drop for Bench {
    fn drop(&mut self) {
        if !self.options.keep {
            // The folder was created by this program, and has no other files.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Returns the median.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let at = values.len() / 2;
    match values.len() % 2 {
        1 => values[at],
        _ => (values[at - 1] + values[at]) / 2.0,
    }
}

/// Returns the name of a file without its folder, which is specific to this machine.
pub fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

pub fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

/// Measures `PROGRAM -dc FILE >/dev/null`, in seconds.
pub fn unpacking_s(program: &str, file: &Path) -> f64 {
    let started = Instant::now();
    let status = Command::new(program)
        .arg("-dc")
        .arg(file)
        .stdout(Stdio::null())
        .status();
    let unpacked = status.is_ok_and(|status| status.success());
    assert!(unpacked, "{program} is not installed, or failed");
    started.elapsed().as_secs_f64()
}

/// Formats a store's `G` and bound from the summary of an ingest.
pub fn standing(summary: &serde_json::Value) -> String {
    format!(
        "records {}, links {}, pages {}, G {:.4}, bound {}",
        summary["records"],
        summary["links"],
        summary["pages"],
        summary["turnovers"].as_f64().unwrap_or(f64::NAN),
        summary["bound_l1"]
    )
}
