//! The report, which is printed and, if it has a name, kept in `benches/runs`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Report for people, on standard output and in a file.
pub struct Report {
    file: Option<File>,
}

impl Report {
    /// Starts a report with its head: machine, commit, command, circumstances.
    pub fn new(name: Option<&str>, note: &str) -> Report {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = seconds.expect("the clock is right").as_secs() as i64;
        let now = jiff::Timestamp::from_second(seconds)
            .expect("is a time")
            .to_string();
        let file = name.map(|name| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/runs");
            let path = folder.join(format!("{}-{name}.txt", &now[..10]));
            eprintln!("written to {}", path.display());
            File::create(&path).expect("benches/runs can be written")
        });
        let mut report = Report { file };
        let arguments: Vec<String> = std::env::args()
            .skip(1)
            .filter(|a| a != "--bench")
            .collect();
        report.line(&format!("date      {now}"));
        report.line(&format!("machine   {}; {note}", machine()));
        report.line(&format!("commit    {}", commit()));
        let command = "command   cargo bench --bench end_to_end --";
        report.line(&format!("{command} {}", shown(&arguments)));
        report
    }

    pub fn line(&mut self, text: &str) {
        println!("{text}");
        if let Some(file) = &mut self.file {
            writeln!(file, "{text}").expect("the file in benches/runs can be written");
        }
    }

    pub fn title(&mut self, text: &str) {
        self.line("");
        self.line(&format!("## {text}"));
    }
}

fn shown(arguments: &[String]) -> String {
    let quoted = arguments.iter().map(|argument| {
        if argument.contains(' ') {
            format!("\"{argument}\"")
        } else {
            argument.clone()
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value.map_or("?".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let kib = field(&read("/proc/meminfo"), "MemTotal");
    let kib: u64 = kib.trim_end_matches(" kB").parse().unwrap_or(0);
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    format!(
        "{cores} cores, {}, {:.1} GiB, Linux {}",
        field(&read("/proc/cpuinfo"), "model name"),
        kib as f64 / f64::from(1 << 20),
        read("/proc/sys/kernel/osrelease").trim()
    )
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let done = git
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output();
        let done = done.ok().filter(|done| done.status.success())?;
        Some(String::from_utf8_lossy(&done.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["log", "-1", "--format=%h \"%s\""]) else {
        return "unknown (no git)".to_owned();
    };
    let changed = git(&["status", "--porcelain", "-uno"]).is_some_and(|text| !text.is_empty());
    format!("{commit}{}", if changed { ", with changes" } else { "" })
}
