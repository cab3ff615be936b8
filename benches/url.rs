//! Canonical URLs, each method separately, compared with the parser alone. The URLs are synthetic, with lengths and
//! parts like those of real crawls: 66 bytes on average.

use std::hint::black_box;

use cashrank_base::url::{LinkBase, canonical, is_canonical};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const LIMIT: usize = 8192;

/// Number of URLs per group: few enough to stay in the cache, many enough to defeat branch prediction.
const COUNT: usize = 4096;

/// Fixed sequence of numbers (an LCG with Knuth's multiplier).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }

    fn word(&mut self) -> &'static str {
        const WORDS: [&str; 16] = [
            "docs",
            "release-1.4",
            "api",
            "java",
            "org",
            "index",
            "setup_quickstart",
            "2015",
            "04",
            "community",
            "packages",
            "wiki",
            "streaming-guide",
            "x",
            "Package-Summary",
            "%C3%A9t",
        ];
        WORDS[self.below(16) as usize]
    }

    /// Returns a relative path of plain segments.
    fn path(&mut self, most: u64) -> String {
        let folders = (0..self.below(most)).map(|_| format!("{}/", self.word()));
        let folders: String = folders.collect();
        format!("{folders}{}.html", self.word())
    }
}

fn urls() -> Vec<String> {
    let mut numbers = Numbers(1);
    let mut url = || {
        let (host, port) = (numbers.word().to_lowercase(), numbers.below(8));
        let host = host.replace('%', "");
        let port = if port == 0 { ":8080" } else { "" };
        let query = if numbers.below(4) == 0 {
            "?page=2&sort=asc"
        } else {
            ""
        };
        let path = numbers.path(6);
        format!("https://www.{host}.example.org{port}/{path}{query}")
    };
    (0..COUNT).map(|_| url()).collect()
}

fn links() -> Vec<String> {
    let mut numbers = Numbers(2);
    let mut link = || {
        let front = ["", "", "", "../", "../../", "/"][numbers.below(6) as usize];
        format!("{front}{}", numbers.path(3))
    };
    (0..COUNT).map(|_| link()).collect()
}

/// Measures one method on all of `urls`; the sum of the canonical lengths stands for the work done.
fn measure(
    bench: &mut Criterion,
    name: &str,
    urls: &[String],
    way: impl Fn(&[u8], &mut Vec<u8>) -> usize,
) {
    let mut out = Vec::new();
    let mut run = || -> usize {
        let each = urls.iter().map(|url| {
            out.clear();
            way(black_box(url.as_bytes()), &mut out)
        });
        each.sum()
    };
    let bytes: usize = urls.iter().map(String::len).sum();
    eprintln!(
        "url/{name}: {COUNT} URLs, {bytes} bytes, {} bytes found",
        run()
    );
    let mut group = bench.benchmark_group("url");
    group.throughput(Throughput::Elements(urls.len() as u64));
    group.bench_function(name, |bench| bench.iter(&mut run));
    group.finish();
}

fn length(raw: &[u8], base: Option<&LinkBase<'_>>, out: &mut Vec<u8>) -> usize {
    let form = canonical(raw, base, LIMIT, out);
    form.map_or(0, |form| form.text(raw, out).len())
}

fn absolute(bench: &mut Criterion) {
    let urls = urls();
    measure(bench, "is_canonical", &urls, |url, _| {
        if is_canonical(url) { url.len() } else { 0 }
    });
    measure(bench, "as_is", &urls, |url, out| length(url, None, out));
    let with_fragment: Vec<String> = urls.iter().map(|url| format!("{url}#section-1")).collect();
    measure(bench, "prefix", &with_fragment, |url, out| {
        length(url, None, out)
    });
    let upper: Vec<String> = urls
        .iter()
        .map(|url| url.replace("https", "HTTPS"))
        .collect();
    measure(bench, "rewritten", &upper, |url, out| {
        length(url, None, out)
    });
    measure(bench, "parser_alone", &urls, |url, _| {
        let text = std::str::from_utf8(url).unwrap_or_default();
        url::Url::parse(text).map_or(0, |url| url.as_str().len())
    });
}

fn joined(bench: &mut Criterion) {
    let page = "https://www.example.org/docs/release-1.4/api/java/index.html";
    let links = links();
    let base = LinkBase::new(page.as_bytes(), None);
    measure(bench, "join", &links, |link, out| {
        length(link, Some(&base), out)
    });
    let odd: Vec<String> = links.iter().map(|link| format!("{link} x")).collect();
    measure(bench, "join_parsed", &odd, |link, out| {
        length(link, Some(&base), out)
    });
    let url = url::Url::parse(page).expect("a URL");
    measure(bench, "join_parser_alone", &links, |link, _| {
        let text = std::str::from_utf8(link).unwrap_or_default();
        url.join(text).map_or(0, |url| url.as_str().len())
    });
}

criterion_group!(benches, absolute, joined);
criterion_main!(benches);
