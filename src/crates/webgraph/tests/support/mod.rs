//! The two programs, and files of graphs.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use cashrank::Limits;
use cashrank_crawl::source::open_plain;
use webgraph::graphs::bvgraph::BvGraphSeq;
use webgraph::prelude::*;

/// Returns the arguments that import a graph into a folder.
pub fn import<'a>(base: &'a str, urls: &'a str, folder: &'a str) -> [&'a str; 5] {
    ["import", base, urls, "-o", folder]
}

/// Runs `cashrank-webgraph`; returns exit code and output.
pub fn ended(args: &[&str]) -> (i32, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_cashrank-webgraph"))
        .args(args)
        .output()
        .unwrap();
    assert!(ran.stdout.is_empty());
    (
        ran.status.code().unwrap_or(-1),
        String::from_utf8(ran.stderr).unwrap(),
    )
}

/// Runs `cashrank-webgraph`, which must succeed; returns its output.
pub fn run(args: &[&str]) -> String {
    let (code, output) = ended(args);
    assert_eq!(code, 0, "{args:?}: {output}");
    output
}

/// Runs `cashrank-webgraph`, which must fail with this code and a line that contains `what`.
pub fn refused(args: &[&str], code: u8, what: &str) {
    let (found, output) = ended(args);
    assert_eq!(found, i32::from(code), "{args:?}: {output}");
    assert!(
        output.contains(what) && output.lines().count() == 1,
        "{what}: {output}"
    );
}

/// Returns the program `cashrank`; `None`, with a printed note, if it was not built.
pub fn cashrank() -> Option<PathBuf> {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/debug/cashrank");
    let path = std::env::var_os("CASHRANK_PROGRAM").map_or_else(built, PathBuf::from);
    if path.is_file() {
        return Some(path);
    }
    eprintln!(
        "SKIPPED: {} is absent: build cashrank, or set CASHRANK_PROGRAM",
        path.display()
    );
    None
}

/// Runs a program, which must succeed.
pub fn must(program: &Path, args: &[impl AsRef<OsStr>]) {
    let ran = Command::new(program).args(args).output().unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// Writes a graph and its list of names; returns its base name.
pub fn small(folder: &Path, graph: &[u8], properties: &str, urls: &str) -> String {
    let base = folder.join("small").to_str().unwrap().to_owned();
    fs::write(format!("{base}.graph"), graph).unwrap();
    let head = "graphclass=it.unimi.dsi.webgraph.BVGraph\nwindowsize=7\nminintervallength=4\nmaxrefcount=3\nzetak=3\n";
    fs::write(format!("{base}.properties"), format!("{head}{properties}")).unwrap();
    fs::write(format!("{base}.urls"), urls).unwrap();
    base
}

/// Reads the text of a file, decompressed.
pub fn text_of(path: &Path) -> String {
    let mut text = String::new();
    open_plain(path, &Limits::default())
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text
}

/// Reads vertices and edges of a folder.
pub fn folder_of(folder: &Path) -> (String, String) {
    let text = |name: &str| text_of(&folder.join(name));
    (text("vertices.txt.gz"), text("edges.txt.gz"))
}

/// Reads the lists of a BV graph by webgraph alone.
pub fn arcs_of(base: &str) -> Vec<Vec<usize>> {
    let graph = BvGraphSeq::with_basename(base).load().unwrap();
    let mut lists = Vec::new();
    lender::for_!((_, targets) in graph.iter() {
        lists.push(targets.collect());
    });
    lists
}
