//! `links FOLDER`: prints the links of the pages in a folder as our HTML reader finds them, one JSON line per page. See
//! README.md in this folder.

use std::path::Path;
use std::{env, fs, io, io::Write};

use anyhow::{Context, Result};
use cashrank_crawl::decode::{Record, html};
use serde_json::json;

fn main() -> Result<()> {
    let folder = env::args().nth(1).context("links FOLDER")?;
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.clone())? {
        let name = entry?.file_name().into_string();
        names.extend(name.ok().filter(|name| name.ends_with(".html")));
    }
    names.sort();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut record = Record::default();
    for name in names {
        let path = Path::new(&folder).join(&name);
        // The charset that Content-Type named, if any.
        let charset = fs::read(path.with_extension("charset")).ok();
        record.clear();
        html::read(&fs::read(&path)?, charset.as_deref(), &mut record);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let links: Vec<_> = record.links.iter().map(|link| text(&link.url)).collect();
        let base = record.base.as_deref().map(text);
        writeln!(
            out,
            "{}",
            json!({"page": name, "links": links, "base": base})
        )?;
    }
    Ok(out.flush()?)
}
