//! Part `reference`: the same ranking, byte for byte, by the plain engine of `plain.rs`, and the time that each takes.

use std::path::Path;
use std::process::Command;

use crate::bench::{Bench, file_name, median, standing};
use crate::input;
use crate::measure::{Measured, measure};

/// Numbers of passes: the second case has windows to choose from.
const PASSES: [u64; 2] = [1, 3];

pub fn run(bench: &mut Bench) {
    let input = input::crawl(bench);
    bench.report.title("reference");
    let text = format!("input     {}", file_name(&input));
    bench.report.line(&text);
    for passes in PASSES {
        case(bench, &input, passes);
    }
}

fn case(bench: &mut Bench, input: &Path, passes: u64) {
    let links = (passes * bench.options.links) as f64;
    let (theirs_file, ours_file) = (
        bench.folder.join("plain.tsv"),
        bench.folder.join("ours.tsv"),
    );
    let text = passes.to_string();
    bench.report.line(&format!("passes    {passes}"));
    let columns = "  wall s    cpu s  peak MiB      links/s";
    let head = format!("plain:{columns}   ours:{columns}  plain/ours  same bytes");
    bench.report.line(&head);
    let mut ratios = Vec::new();
    for _ in 0..bench.options.runs {
        let mut plain = Command::new(std::env::current_exe().expect("has a path"));
        plain.arg("--plain-engine").arg(input).arg(&text);
        let plain = measure(plain.arg(&theirs_file));
        let wrong = format!("the plain engine: {}", plain.stderr);
        bench.check(plain.success, &wrong);
        let ours = bench.ingest(input, &["--repeat", &text]);
        let store = bench.store();
        let mut export = bench.cashrank(&["export", "--to", "tsv", "-o"]);
        let export = measure(export.arg(&ours_file).arg("--store").arg(&store));
        bench.check(export.success, &format!("export: {}", export.stderr));
        let ratio = plain.wall_s / ours.wall_s;
        let same = same(&theirs_file, &ours_file);
        bench.report.line(&format!(
            "      {}         {}  {ratio:>10.2}  {:>10}  {}",
            took(&plain, links),
            took(&ours, links),
            if same { "yes" } else { "NO" },
            standing(&ours.json())
        ));
        bench.check(same, "the rankings differ");
        ratios.push(ratio);
    }
    let text = format!("median    plain takes {:.2} times our time", median(ratios));
    bench.report.line(&text);
    let _ = std::fs::remove_file(theirs_file);
    let _ = std::fs::remove_file(ours_file);
}

fn took(run: &Measured, links: f64) -> String {
    format!(
        "{:>8.2} {:>8.2} {:>9.0} {:>12.0}",
        run.wall_s,
        run.cpu_s,
        run.peak_mib(),
        links / run.wall_s
    )
}

fn same(left: &Path, right: &Path) -> bool {
    let read = |path: &Path| std::fs::read(path).expect("was written");
    let (left, right) = (read(left), read(right));
    let differ = || {
        left.split(|&b| b == b'\n')
            .zip(right.split(|&b| b == b'\n'))
    };
    if let Some((plain, ours)) = differ().find(|(plain, ours)| plain != ours) {
        let text = String::from_utf8_lossy;
        eprintln!("plain: {}\nours:  {}", text(plain), text(ours));
    }
    left == right
}
