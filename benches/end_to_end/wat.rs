//! Part `wat`: WAT records in gzip, compared with plain decompression of the same file.
//!
//! The input is the available real WATs, repeated: after the first time there are no new pages, so this is the speed of
//! decoding, not of growth.

use std::fs::File;
use std::time::Instant;

use crate::bench::{Bench, median, size, standing, unpacking_s};
use crate::input;

const FILES: [&str; 2] = [
    "postgresql/pg15-crawl1.wat.gz",
    "postgresql/pg15-crawl2.wat.gz",
];

pub fn run(bench: &mut Bench) {
    let files: Vec<_> = FILES.iter().filter_map(|name| input::real(name)).collect();
    if files.is_empty() {
        return;
    }
    let input = bench.folder.join("bench.wat.gz");
    let bytes = input::repeated(&files, bench.options.wat_mib << 20, &input);
    bench.report.title("wat");
    bench.report.line(&format!(
        "input     {} repeated: {} bytes, {bytes} decompressed",
        FILES.join(", "),
        size(&input)
    ));
    bench
        .report
        .line("  gzip s  zlib-rs s  ingest s   share    cpu s     bytes/s  peak MiB");
    let mut shares = Vec::new();
    for _ in 0..bench.options.runs {
        let gzip_s = unpacking_s("gzip", &input);
        let started = Instant::now();
        let plain = input::unzipped(File::open(&input).expect("was made"));
        let zlib_s = started.elapsed().as_secs_f64();
        bench.check(
            plain == bytes,
            "decompression gives another number of bytes",
        );
        let ours = bench.ingest(&input, &["--format", "wat"]);
        let share = zlib_s / ours.wall_s;
        bench.report.line(&format!(
            "{gzip_s:>8.2} {zlib_s:>10.2} {:>9.2} {share:>7.2} {:>8.2} {:>11.0} {:>9.0}  {}",
            ours.wall_s,
            ours.cpu_s,
            bytes as f64 / ours.wall_s,
            ours.peak_mib(),
            standing(&ours.json())
        ));
        shares.push(share);
    }
    let share = median(shares);
    bench.report.line(&format!(
        "median    {share:.2} of zlib-rs's speed on one thread"
    ));
    let _ = std::fs::remove_file(&input);
}
