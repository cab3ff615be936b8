//! cnr-2000, a real graph of 325,557 pages, and the ranks that WebGraph computed for it.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use cashrank_graph::engine::SelfLinks;
use cashrank_graph::graph::{Graph, GraphBuilder};

/// Returns its folder; `None`, with a printed note, if it is absent.
pub fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/cnr-2000");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: {} is absent", folder.display());
    None
}

/// Reads the graph: line i is node i, `node TAB successor...`, with nothing after the tab for a node without
/// successors.
pub fn adjacency(folder: &Path) -> String {
    let file = File::open(folder.join("adjacency.tsv.zst")).unwrap();
    let mut text = String::new();
    let mut plain = zstd::Decoder::new(file).unwrap();
    plain.read_to_string(&mut text).unwrap();
    text
}

/// Builds the graph of these lines.
pub fn graph(adjacency: &str, self_links: SelfLinks) -> Graph {
    let mut builder = GraphBuilder::new(self_links);
    for line in adjacency.lines() {
        let mut ids = line.split_terminator('\t').map(|id| id.parse().unwrap());
        builder.row(ids.next().unwrap(), ids);
    }
    builder.build()
}

/// Opens a file of ranks with one line per node.
pub fn ranks(folder: &Path, name: &str) -> BufReader<impl Read + use<>> {
    let file = File::open(folder.join(name)).unwrap();
    BufReader::new(flate2::read::MultiGzDecoder::new(file))
}
