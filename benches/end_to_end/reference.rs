//! Part `reference`: the same ranking by the plain engine of `plain.rs`, byte for byte, and how
//! long either takes.

use std::path::Path;
use std::process::Command;

use crate::bench::{Bench, median, standing};
use crate::input;
use crate::measure::measure;

pub fn run(bench: &mut Bench) {
    let input = input::crawl(bench);
    let links = bench.options.links as f64;
    let (theirs_file, ours_file) = (
        bench.folder.join("plain.tsv"),
        bench.folder.join("ours.tsv"),
    );
    bench.report.title("reference");
    let text = format!("input     {}", input.display());
    bench.report.line(&text);
    bench
        .report
        .line(" plain s  peak MiB     links/s  ours s  peak MiB      links/s  plain/ours");
    let mut ratios = Vec::new();
    for _ in 0..bench.options.runs {
        let program = std::env::current_exe().expect("has a path");
        let mut plain = Command::new(program);
        plain
            .arg("--plain-engine")
            .arg(&input)
            .arg("1")
            .arg(&theirs_file);
        let plain = measure(&mut plain);
        bench.check(
            plain.success,
            &format!("the plain engine: {}", plain.stderr),
        );
        let ours = bench.ingest(&input, &[]);
        let store = bench.store();
        let mut export = bench.cashrank(&["export", "--to", "tsv", "-o"]);
        let export = measure(export.arg(&ours_file).arg("--store").arg(&store));
        bench.check(export.success, &format!("export: {}", export.stderr));
        bench.report.line(&format!(
            "{:>8.2} {:>9.0} {:>11.0} {:>7.2} {:>9.0} {:>12.0} {:>11.2}  {}",
            plain.wall_s,
            plain.peak_mib(),
            links / plain.wall_s,
            ours.wall_s,
            ours.peak_mib(),
            links / ours.wall_s,
            plain.wall_s / ours.wall_s,
            standing(&ours.json())
        ));
        let same = same(&theirs_file, &ours_file);
        bench.check(same, "the rankings differ");
        ratios.push(plain.wall_s / ours.wall_s);
    }
    let ratio = median(ratios);
    bench.report.line(&format!(
        "median    ours in 1/{ratio:.2} of the time; the same bytes"
    ));
    let _ = std::fs::remove_file(theirs_file);
    let _ = std::fs::remove_file(ours_file);
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
