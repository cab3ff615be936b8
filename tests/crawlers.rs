//! Real crawlers crawl a small site on this machine, and what they write is ranked: by closed reasoning
//! the ranking is the PageRank of the site's links, which the tests know.
//!
//! And crawlers ask what to crawl next: a client of URLFrontier's interface that another toolchain made, and Scrapy with the
//! package of `tools/scrapy`.
//!
//! wget is taken from the PATH, Crawlee from CASHRANK_CRAWLEE (a folder in which npm installed it), Scrapy from CASHRANK_SCRAPY (a path of its program) or the PATH, and Python with grpcio-tools, Scrapy
//! and pytest from CASHRANK_PYTHON; `.ci/run` installs them. Where one is absent, its test says SKIPPED.

#[path = "crawlers/site.rs"]
mod site;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use site::Site;

/// Returns the program if it runs; otherwise prints a note.
fn program(name: &str, variable: &str) -> Option<OsString> {
    let program = std::env::var_os(variable).unwrap_or_else(|| name.into());
    let argument = if name == "scrapy" {
        "version"
    } else {
        "--version"
    };
    let runs = Command::new(&program)
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if runs.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    eprintln!("SKIPPED: {name} is not installed ({variable} names it if it is not on the PATH)");
    None
}

fn cashrank(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cashrank"))
        .args(line.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

#[track_caller]
fn must(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Compares the store `s` with the exact PageRank of the site's links: all of them, or all but the one marked
/// `rel=nofollow`.
#[track_caller]
fn is_ranked(folder: &Path, site: &Site, with_nofollow: bool) {
    fs::write(folder.join("known.jsonl"), site.known_links(with_nofollow)).unwrap();
    must(&cashrank(
        folder,
        "compute known.jsonl --until 1e-9 -o exact.tsv",
    ));
    let found = must(&cashrank(folder, "compare s exact.tsv --json"));
    let found: Value = serde_json::from_str(&found).unwrap();
    let pages = site.pages_known() as u64;
    for field in ["left_pages", "right_pages", "common_pages"] {
        assert_eq!(found[field], pages, "{found}");
    }
    assert!(found["l1"].as_f64().unwrap() < 1e-6, "{found}");
}

#[test]
fn wget_writes_a_warc() {
    let Some(wget) = program("wget", "CASHRANK_WGET") else {
        return;
    };
    let site = Site::start();
    let folder = TempDir::new().unwrap();
    let done = Command::new(wget)
        .args(
            "--no-config --no-proxy -e robots=off --recursive --level=inf --delete-after"
                .split(' '),
        )
        .args([
            "--warc-file=crawl",
            "--no-verbose",
            "--tries=2",
            "--timeout=20",
        ])
        .arg(site.url("/"))
        .current_dir(&folder)
        .output()
        .unwrap();
    // 8: the server answered with an error, as it does for the missing page.
    assert_eq!(done.status.code(), Some(8), "{done:?}");
    let ingest = "ingest crawl.warc.gz --store s --repeat 60 --json";
    let told: Value = serde_json::from_str(&must(&cashrank(folder.path(), ingest))).unwrap();
    assert_eq!(told["records"], 60 * site.pages_served() as u64, "{told}");
    is_ranked(folder.path(), &site, true);
    assert!(!site.was_asked("/island.html"));
}

#[test]
fn scrapy_pipes_records() {
    let Some(scrapy) = program("scrapy", "CASHRANK_SCRAPY") else {
        return;
    };
    let site = Site::start();
    let folder = TempDir::new().unwrap();
    let spider = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crawlers/spider.py");
    let mut crawling = Command::new(scrapy)
        .args(["runspider", "-L", "ERROR", "-o", "-:jsonlines", "-a"])
        .arg(format!("start={}", site.url("/")))
        .arg(spider)
        .env_remove("http_proxy")
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let told = Command::new(env!("CARGO_BIN_EXE_cashrank"))
        .args("ingest - --store s --settle 1e-8 --follow nofollow=0 --json".split(' '))
        .current_dir(&folder)
        .stdin(crawling.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(crawling.wait().unwrap().success());
    let told: Value = serde_json::from_str(&must(&told)).unwrap();
    assert_eq!(told["records"], site.pages_served() as u64, "{told}");
    is_ranked(folder.path(), &site, false);
    assert!(!site.was_asked("/island.html"));
}

/// The recipe of the guide, word for word.
#[test]
fn crawlee_crawls_what_next_lists() {
    let Some(installed) = std::env::var_os("CASHRANK_CRAWLEE") else {
        eprintln!(
            "SKIPPED: Crawlee is not installed (CASHRANK_CRAWLEE names a folder that has it)"
        );
        return;
    };
    let site = Site::start();
    let folder = TempDir::new().unwrap();
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/guide/crawlers.md");
    let guide = fs::read_to_string(guide).unwrap();
    let recipe = guide.split("```js\n").nth(1).unwrap().split("```").next();
    fs::write(folder.path().join("crawl.mjs"), recipe.unwrap()).unwrap();
    let modules = Path::new(&installed).join("node_modules");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_cashrank")).parent().unwrap();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = [program.to_owned()]
        .into_iter()
        .chain(std::env::split_paths(&paths));
    let crawled = Command::new("node")
        .args(["crawl.mjs", &site.url("/")])
        .env("PATH", std::env::join_paths(paths).unwrap())
        .env_remove("http_proxy")
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(must(&crawled).contains(&site.url("/")));
    fs::rename(folder.path().join("ranks"), folder.path().join("s")).unwrap();
    is_ranked(folder.path(), &site, true);
    assert!(!site.was_asked("/island.html"));
}

/// Service of a store; it ends with the test.
#[cfg(feature = "serve")]
struct Serving(std::process::Child, String);

#[cfg(feature = "serve")]
impl Serving {
    fn start(folder: &Path, line: &str) -> Serving {
        use std::io::{BufRead, BufReader};
        let mut child = Command::new(env!("CARGO_BIN_EXE_cashrank"))
            .args(line.split_whitespace())
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let address = line.strip_prefix("serving at http://")?;
            Some(address.trim_end_matches('/').to_owned())
        });
        std::thread::spawn(move || lines.for_each(drop));
        Serving(child, said.expect("it says where it serves"))
    }
}

#[cfg(feature = "serve")]
impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A client made by grpcio-tools from the same protocol file tries every call, and finds its data after the service was
/// killed.
#[cfg(feature = "frontier")]
#[test]
fn a_client_of_urlfrontier_is_served() {
    let Some(python) = crate::python::python("grpc, grpc_tools") else {
        eprintln!("SKIPPED: no Python with grpcio-tools (CASHRANK_PYTHON names one)");
        return;
    };
    let folder = TempDir::new().unwrap();
    let records = [("a", "x y z"), ("b", "y z"), ("c", "z")].map(|(page, links)| {
        let url = |name: &str| format!("http://s.example/{name}");
        let links: Vec<String> = links.split(' ').map(url).collect();
        format!(
            "{}\n",
            serde_json::json!({"url": url(page), "links": links})
        )
    });
    fs::write(folder.path().join("a.jsonl"), records.concat()).unwrap();
    must(&cashrank(folder.path(), "ingest a.jsonl --store s"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for phase in ["fresh", "again"] {
        let serve =
            "serve --store s --listen 127.0.0.1:0 --frontier f --frontier-next strategy=fica";
        let serving = Serving::start(folder.path(), serve);
        let tried = Command::new(&python)
            .arg(root.join("tests/crawlers/frontier.py"))
            .arg(root.join("src/crates/frontier/urlfrontier.proto"))
            .args([&serving.1, phase])
            .output()
            .unwrap();
        assert_eq!(must(&tried), "passed\n");
    }
}

/// The package's own tests, with this program.
#[cfg(feature = "serve")]
#[test]
fn the_scrapy_package_passes_its_tests() {
    let Some(python) = crate::python::python("scrapy, pytest") else {
        eprintln!("SKIPPED: no Python with Scrapy and pytest (CASHRANK_PYTHON names one)");
        return;
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/scrapy");
    let folder = TempDir::new().unwrap();
    let tested = Command::new(python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(&package)
        .env("PYTHONPATH", &package)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("CASHRANK", env!("CARGO_BIN_EXE_cashrank"))
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&tested.stdout);
    assert!(tested.status.success(), "{said}");
    assert!(!said.contains("skipped"), "{said}");
}
