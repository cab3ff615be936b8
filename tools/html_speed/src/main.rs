//! `html-speed [FOLDER]`: bytes of HTML per second of our reader of links, compared with `lol_html` alone: with a
//! handler for `a[href]` that only counts, and without any.
//!
//! FOLDER holds pages as `*.html`, as written by `tools/compare_links/compare.py export`; without it a synthetic page
//! is read many times. Each reader takes all pages in turn, five times; all times are printed, with the links found, so
//! that wrong answers show. (Links in `noscript` are text to lol_html, and `area` is not counted there.)

use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result, anyhow};
use cashrank_crawl::decode::{Record, html};
use lol_html::{HtmlRewriter, Settings, element};

type Links = Result<usize>;

fn main() -> Result<()> {
    let pages = match env::args().nth(1) {
        Some(folder) => read(&folder)?,
        None => vec![made_page(); 200],
    };
    let bytes: usize = pages.iter().map(Vec::len).sum();
    println!("{} pages, {bytes} bytes", pages.len());
    let readers: [(&str, fn(&[u8]) -> Links); 3] = [
        ("ours", ours),
        ("lol_html, a[href]", with_selector),
        ("lol_html, no selector", without_selector),
    ];
    for (name, reader) in readers {
        for _ in 0..5 {
            let started = Instant::now();
            let mut links = 0;
            for page in &pages {
                links += reader(page)?;
            }
            let seconds = started.elapsed().as_secs_f64();
            let rate = bytes as f64 / seconds / 1e6;
            println!("{name}: {rate:.0} MB/s, {links} links");
        }
    }
    Ok(())
}

fn read(folder: &str) -> Result<Vec<Vec<u8>>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.to_owned())? {
        let path = entry?.path();
        paths.extend(Some(path).filter(|path| path.extension().is_some_and(|ext| ext == "html")));
    }
    paths.sort();
    paths.iter().map(|path| Ok(fs::read(path)?)).collect()
}

/// Returns text with a link about every 400 bytes.
fn made_page() -> Vec<u8> {
    let mut page = String::from("<!doctype html><title>Made</title><body>");
    for at in 0..500 {
        page += &format!(
            "<p class=\"text\">{}<a class=\"ref\" href=\"/pages/{at}.html\">Page {at}</a> &amp; more.</p>\n",
            "Lorem ipsum dolor sit amet, <em>consectetur</em>. ".repeat(6)
        );
    }
    page.into_bytes()
}

fn ours(page: &[u8]) -> Links {
    let mut record = Record::default();
    html::read(page, None, &mut record);
    Ok(record.links.len())
}

fn with_selector(page: &[u8]) -> Links {
    let mut links = 0;
    let count = element!("a[href]", |_| {
        links += 1;
        Ok(())
    });
    rewrite(
        page,
        Settings::new()
            .with_strict(false)
            .append_element_content_handler(count),
    )?;
    Ok(links)
}

fn without_selector(page: &[u8]) -> Links {
    rewrite(page, Settings::new().with_strict(false))?;
    Ok(0)
}

fn rewrite(page: &[u8], settings: Settings<'_, '_>) -> Result<()> {
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| ());
    rewriter.write(page).map_err(|error| anyhow!("{error}"))?;
    rewriter.end().map_err(|error| anyhow!("{error}"))
}
