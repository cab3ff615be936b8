//! The web page for people, in a real browser.

use std::process::{Command, Stdio};

use crate::serve::{address, encoded};
use crate::support::{Lab, crawl};

/// Returns the browser; prints a note if there is none.
fn browser() -> Option<Command> {
    let named = std::env::var_os("CASHRANK_CHROMIUM");
    let names = named.into_iter().chain([
        "chromium".into(),
        "chromium-browser".into(),
        "google-chrome".into(),
    ]);
    for name in names {
        let mut version = Command::new(&name);
        version
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if version.status().is_ok_and(|status| status.success()) {
            let mut browser = Command::new(name);
            browser.args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--no-proxy-server",
            ]);
            return Some(browser);
        }
    }
    eprintln!("SKIPPED: no chromium (CASHRANK_CHROMIUM names it if it is not on the PATH)");
    None
}

/// Returns the page at this address as a browser shows it in a window of this width.
fn shown(lab: &Lab, browser: &Command, url: &str, width: u32) -> String {
    let mut browser_again = Command::new(browser.get_program());
    let shown = browser_again
        .args(browser.get_args())
        .arg(format!("--user-data-dir={}", lab.path("profile").display()))
        .arg(format!("--window-size={width},900"))
        .args(["--virtual-time-budget=9000", "--dump-dom"])
        .arg(url)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(shown.stdout).unwrap()
}

#[track_caller]
fn has(dom: &str, texts: &[&str]) {
    for text in texts {
        assert!(dom.contains(text), "{text:?} is not in {dom}");
    }
}

/// Names from the store are shown as text, whatever they contain.
#[test]
fn the_page_is_shown_by_a_browser() {
    let Some(browser) = browser() else {
        return;
    };
    let lab = Lab::on_disk();
    // The name of a node may be anything, including markup.
    let evil = "<img src=x onerror=\"document.title='broken'\">";
    let first = format!("http://a.example/\thttp://b.example/\nhttp://b.example/\t{evil}\n");
    lab.file("a.tsv", &first);
    lab.file(
        "b.tsv",
        format!("{evil}\thttp://a.example/\nhttp://c.example/\thttp://b.example/\n"),
    );
    lab.run("ingest a.tsv --format adjacency --store s")
        .exits(0);
    lab.run("ingest a.tsv b.tsv --format adjacency --store s")
        .exits(0);
    let mut serving = lab.start("serve --store s --listen 127.0.0.1:0");
    let address = address(&mut serving);
    let dom = shown(&lab, &browser, &format!("http://{address}/"), 1000);
    let texts = [
        "<title>cashrank</title>",
        "idle: no ingest is running",
        "title=\"http://b.example/\"",
        "Largest changes",
        "Most important pages",
        "&lt;img src=x",
        // Four pages are known: the tile shows it.
        "<b>4</b><span>pages known</span>",
    ];
    has(&dom, &texts);
    assert!(!dom.contains("<img"), "{dom}");
    for view in ["page?url=", "search?text="] {
        let url = format!("http://{address}/#/{view}{}", encoded(evil));
        let dom = shown(&lab, &browser, &url, 1000);
        has(&dom, &["&lt;img src=x", "\u{2013} cashrank</title>"]);
        assert!(!dom.contains("<img"), "{dom}");
    }
}

/// Each view at three widths: the parts of a URL are separate, so that its host can be cut before its path.
#[test]
#[ignore = "opens a browser fifteen times"]
fn every_view_is_shown_at_every_width() {
    let Some(browser) = browser() else {
        return;
    };
    let lab = Lab::on_disk();
    lab.file("a.jsonl", crawl(5, 300).concat());
    lab.run("ingest a.jsonl --store s --snapshot-every 100 --settle 0.01")
        .exits(0);
    let mut serving = lab.start("serve --store s --listen 127.0.0.1:0");
    let address = address(&mut serving);
    let top = lab.run("top -n 1 --json --store s").exits(0).json();
    let best = top["top"][0]["url"].as_str().unwrap();
    let (host, path) = best.split_at("http://h0.example".len());
    let parts = format!("<span class=\"h\">{host}</span><span class=\"p\">{path}</span>");
    let page = format!("page?url={}", encoded(best));
    let on_host = format!("host?name={}", &host["http://".len()..]);
    for width in [500, 820, 1400] {
        for (view, texts) in [
            (
                "",
                &["total error at most", "Only certain changes", &*parts][..],
            ),
            (&page, &["link to it", "On the same host"]),
            (&on_host, &["rank among hosts", "Frontier", &*parts]),
            (
                "search?text=EXAMPLE%2Fp1",
                &["pages", "Last fetch failed", "p1"],
            ),
            ("failures", &["whose last fetch failed", "h1.example"]),
        ] {
            let url = format!("http://{address}/#/{view}");
            let dom = shown(&lab, &browser, &url, width);
            has(&dom, texts);
        }
    }
}
