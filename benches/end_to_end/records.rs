//! Part `records`: JSON lines in zstd to a published snapshot, compared with `zstd -dc`.

use crate::bench::{Bench, file_name, median, size, standing, unpacking_s};
use crate::input;

pub fn run(bench: &mut Bench) {
    let input = input::crawl(bench);
    let (pages, links) = (bench.options.pages, bench.options.links);
    bench.report.title("records");
    let text = format!("input     {}, {} bytes", file_name(&input), size(&input));
    bench.report.line(&text);
    bench
        .report
        .line("  zstd s  ingest s  ratio    cpu s      links/s  peak MiB");
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..bench.options.runs {
        let zstd_s = unpacking_s("zstd", &input);
        let ours = bench.ingest(&input, &[]);
        let summary = ours.json();
        let rate = links as f64 / ours.wall_s;
        bench.report.line(&format!(
            "{zstd_s:>8.2} {:>9.2} {:>6.2} {:>8.2} {rate:>12.0} {:>9.0}  {}",
            ours.wall_s,
            ours.wall_s / zstd_s,
            ours.cpu_s,
            ours.peak_mib(),
            standing(&summary)
        ));
        let right = summary["pages"] == pages && summary["links"] == links;
        bench.check(right, "pages or links are not those generated");
        ratios.push(ours.wall_s / zstd_s);
        rates.push(rate);
    }
    let (ratio, rate) = (median(ratios), median(rates));
    let text = format!("median    {ratio:.2} times zstd -dc, {rate:.0} links/s");
    bench.report.line(&text);
}
