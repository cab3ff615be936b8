//! `cashrank-webgraph export`: the links that a store keeps as a BV graph.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use cashrank::{Error, Result, Store};
use cashrank_graph::sites::{Level, SiteLinks};
use cashrank_store::snapshot::links::LinkGraph;
use cashrank_store::snapshot::{LevelRanking, RankingName};
use cashrank_store::store::{RealDisk, unfinished};
use dsi_bitstream::impls::buf_bit_writer;
use dsi_bitstream::traits::BE;
use dsi_progress_logger::no_logging;
use webgraph::graphs::bvgraph::{
    BvComp, CompFlags, CompStats, DynCodesEncoder, OffsetsWriter, store_ef_with_data,
};

use crate::MemoryArg;
use crate::files::file_of;

/// Extensions of the files, in the order in which they are renamed: the one without which there is no graph comes last.
const FILES: [&str; 5] = ["graph", "offsets", "ef", "urls", "properties"];

/// Write the graph that a store keeps as a BV graph, with the list of its URLs.
///
/// BASENAME.graph, .offsets and .properties are those that Java's WebGraph reads, .ef is for the one in Rust. Line i of
/// BASENAME.urls, from 0, is the URL of node i, or the name of a site. Nodes are the pages of the current snapshot in the order in
/// which they appeared, arcs the links of `cashrank export --links`; weights are left out.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank-webgraph export ranks crawl
  cashrank-webgraph export ranks hosts --level host
  webgraph rank pagerank crawl ranks.txt       # WebGraph's own tools")]
pub struct Args {
    /// The store, a directory.
    store: PathBuf,
    /// The files to write, without their endings. They appear once all are complete.
    basename: PathBuf,
    /// The nodes: page, or sites: host, barehost, domain or prefix:N.
    #[arg(long, value_name = "LEVEL", default_value = "page")]
    level: Level,
    /// Replace files that exist.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    memory: MemoryArg,
}

impl Args {
    /// Exports the graph; returns the message for the user.
    pub fn run(self) -> Result<String> {
        self.check()?;
        let (temp, ()) = unfinished(&self.basename, |temp| fs::create_dir(temp))?;
        let stats = self.write(&temp.join("graph"), &temp);
        let stats = stats.and_then(|stats| {
            // A graph without its properties is incomplete, so a partial replacement is not taken for a whole graph.
            let old = file_of(&self.basename, "properties");
            match fs::remove_file(&old) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed.map_err(Error::io(&old, "remove"))?,
            }
            for file in FILES {
                let path = file_of(&self.basename, file);
                let renamed = fs::rename(file_of(&temp.join("graph"), file), &path);
                renamed.map_err(Error::io(&path, "rename"))?;
            }
            Ok(stats)
        });
        let _ = fs::remove_dir_all(&temp);
        let stats = stats?;
        let arcs = stats.num_arcs;
        let bits = stats.written_bits as f64 / arcs.max(1) as f64;
        let name = self.basename.display();
        Ok(format!(
            "{name}: {} nodes, {arcs} arcs, {bits:.2} bits per arc",
            stats.num_nodes
        ))
    }

    fn check(&self) -> Result<()> {
        for file in FILES {
            let path = file_of(&self.basename, file);
            if path.exists() && !self.force {
                return Err(Error::Usage(format!(
                    "{}: exists already; name another graph, or replace it with --force",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    fn write(&self, basename: &Path, folder: &Path) -> Result<CompStats> {
        let name = RankingName {
            level: self.level,
            ..RankingName::default()
        };
        let snapshot = Store::open(&self.store)?.snapshot()?;
        let memory = self.memory.budget();
        let ranking = LevelRanking::open(&RealDisk, snapshot, &name, memory)?;
        let graph = LinkGraph::of(&ranking, SiteLinks::Once, memory, folder)?;
        write_names(&graph, &file_of(basename, "urls"))?;
        let stats = write_arcs(&graph, ranking.len(), basename)?;
        let nodes = stats.num_nodes;
        let [bits, offsets, ef] = ["graph", "offsets", "ef"].map(|file| file_of(basename, file));
        store_ef_with_data(nodes, bits, offsets, &ef, no_logging![])
            .map_err(|error| failed(&ef, error))?;
        Ok(stats)
    }
}

fn write_names(graph: &LinkGraph<'_>, path: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create_new(path).map_err(Error::io(path, "create"))?);
    for (at, name) in graph.names().enumerate() {
        let name = name?;
        if name.contains(['\n', '\r']) {
            return Err(Error::Unsupported(format!(
                "page {at}: its name, {name:?}, holds a line end, which a list of names cannot"
            )));
        }
        writeln!(out, "{name}").map_err(Error::io(path, "write"))?;
    }
    out.flush().map_err(Error::io(path, "write"))
}

/// Writes `.graph`, `.offsets` and `.properties`, with a list for each of `count` nodes.
fn write_arcs(graph: &LinkGraph<'_>, count: u64, basename: &Path) -> Result<CompStats> {
    let flags = CompFlags::default();
    let path = file_of(basename, "graph");
    let offsets = file_of(basename, "offsets");
    let bits = buf_bit_writer::from_path::<BE, usize>(&path).map_err(Error::io(&path, "create"))?;
    let coder = DynCodesEncoder::new(bits, &flags).map_err(|error| failed(&path, error))?;
    let offsets =
        OffsetsWriter::from_path(&offsets, true).map_err(|error| failed(&offsets, error))?;
    let mut lists = BvComp::new(
        coder,
        offsets,
        flags.compression_window,
        flags.max_ref_count,
        flags.min_interval_length,
        0,
        (),
    );
    let broken = |error| failed(&path, error);
    let mut nodes = 0;
    graph.each_links(&mut |node, targets| {
        // Every node has a list.
        for _ in nodes..u64::from(node) {
            lists.push([]).map_err(broken)?;
        }
        let targets = targets.iter().map(|&(target, _)| (target as usize, ()));
        nodes = u64::from(node) + 1;
        lists.push(targets).map_err(broken)
    })?;
    for _ in nodes..count {
        lists.push([]).map_err(broken)?;
    }
    let stats = lists.flush().map_err(|error| failed(&path, error))?;
    let path = file_of(basename, "properties");
    let text = flags
        .to_properties::<BE>(&stats)
        .map_err(|error| failed(&path, error))?;
    fs::write(&path, text).map_err(Error::io(&path, "write"))?;
    Ok(stats)
}

/// Returns the error for a failed write, the only kind of failure in webgraph here.
fn failed(path: &Path, error: anyhow::Error) -> Error {
    let error = error
        .downcast()
        .unwrap_or_else(|error| std::io::Error::other(format!("{error:#}")));
    Error::io(path, "write")(error)
}
