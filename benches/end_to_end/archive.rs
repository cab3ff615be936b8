//! Part `archive`: a crawl archive made of JSON lines, and passes over both: over the links that the first pass kept, and
//! over the archive itself.
//!
//! The time of a later pass is the difference of two runs, one of [`FEW`] passes and one of
//! [`MANY`], over their difference in passes: start, first pass and snapshot fall out.

use std::path::Path;

use crate::bench::{Bench, median, size, standing};
use crate::input;
use crate::measure::measure;

const FEW: u64 = 2;
const MANY: u64 = 12;

pub fn run(bench: &mut Bench) {
    let input = input::crawl(bench);
    let links = bench.options.links;
    let archive = bench.folder.join("bench.cza");
    bench.report.title("archive");
    let mut convert = bench.cashrank(&["convert", "-o"]);
    let _ = std::fs::remove_file(&archive);
    let made = measure(convert.arg(&archive).arg(&input));
    bench.check(made.success, &format!("convert: {}", made.stderr));
    let bytes = size(&archive);
    bench.report.line(&format!(
        "convert   {:.2} s, {:.2} s of processor time, {bytes} bytes, {:.3} a link, {:.0} MiB at the peak",
        made.wall_s,
        made.cpu_s,
        bytes as f64 / links as f64,
        made.peak_mib()
    ));
    passes(bench, "archive", &archive, &[]);
    passes(
        bench,
        "archive, nothing kept",
        &archive,
        &["--keep-rows", "none"],
    );
    passes(bench, "JSON lines", &input, &[]);
    let _ = std::fs::remove_file(&archive);
}

fn passes(bench: &mut Bench, name: &str, input: &Path, more: &[&str]) {
    let (pages, links) = (bench.options.pages, bench.options.links);
    bench.report.line(&format!("passes    over the {name}"));
    bench.report.line(&format!(
        "{:>8} {:>9} {:>11} {:>12}  peak MiB",
        format!("{FEW} pass s"),
        format!("{MANY} pass s"),
        "a later s",
        "links/s"
    ));
    let mut rates = Vec::new();
    for _ in 0..bench.options.runs {
        let [few, many] = [FEW, MANY].map(|passes| {
            let passes = passes.to_string();
            bench.ingest(input, &[&["--repeat", &passes], more].concat())
        });
        let (short, long) = (few.json(), many.json());
        let pass_s = (many.wall_s - few.wall_s) / (MANY - FEW) as f64;
        let rate = links as f64 / pass_s;
        bench.report.line(&format!(
            "{:>8.2} {:>9.2} {pass_s:>11.3} {rate:>12.0} {:>9.0}  {}",
            few.wall_s,
            many.wall_s,
            many.peak_mib(),
            standing(&long)
        ));
        let right = short["links"] == FEW * links && long["links"] == MANY * links;
        bench.check(
            right && long["pages"] == pages,
            "pages or links are not those generated",
        );
        rates.push(rate);
    }
    let rate = median(rates);
    bench
        .report
        .line(&format!("median    {rate:.0} links/s in later passes"));
}
