//! `cashrank-webgraph import`: a BV graph and the names of its nodes as a folder that `cashrank ingest` takes.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use cashrank::{Error, Limits, Result};
use cashrank_crawl::source::open_plain;
use cashrank_store::snapshot::links::{PageLinks, write_folder};
use cashrank_store::store::unfinished;
use dsi_bitstream::traits::BE;
use webgraph::graphs::bvgraph::DynCodesDecoder;
use webgraph::graphs::bvgraph::sequential::NodeLabels;

use crate::MemoryArg;
use crate::check::check;
use crate::codes::{Bits, bits_of};
use crate::files::{Properties, damaged, file_of};

/// Make a BV graph and the list of its URLs an input of cashrank: a folder with its vertices and edges.
///
/// BASENAME.graph and BASENAME.properties are read, of version 0 and big-endian, as Java's WebGraph writes them; offsets are not
/// needed. Line i of URLS, from 0, is the name of node i: a URL, a host or any other name, in a plain file, gzip or
/// zstd. The graph is checked before anything is written.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cashrank-webgraph import uk-2007-05 uk-2007-05.urls.gz -o uk-2007-05.folder
  cashrank ingest uk-2007-05.folder --store ranks")]
pub struct Args {
    /// The graph's files without their endings.
    basename: PathBuf,
    /// The names of its nodes, a line each.
    urls: PathBuf,
    /// The folder, which appears once it is complete, and must not exist.
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    memory: MemoryArg,
}

impl Args {
    /// Imports the graph; returns the message for the user.
    pub fn run(self) -> Result<String> {
        if self.output.exists() {
            return Err(Error::Usage(format!(
                "{}: exists already; name another folder, or remove it",
                self.output.display()
            )));
        }
        let path = file_of(&self.basename, "properties");
        let properties = Properties::read(&path)?;
        if properties.nodes > u64::from(u32::MAX) {
            return Err(Error::Unsupported(format!(
                "{}: {} nodes; cashrank knows at most {} pages",
                path.display(),
                properties.nodes,
                u32::MAX
            )));
        }
        self.check_names(properties.nodes)?;
        let graph = file_of(&self.basename, "graph");
        check(&graph, &properties, self.memory.budget())?;
        let mut lists = Lists::open(&graph, &properties)?;
        let links = put_folder(&self.output, |folder| {
            let names = Names::open(&self.urls)?;
            write_folder(folder, names, |visit| lists.each(visit))
        })?;
        Ok(format!(
            "{}: {} nodes, {links} arcs; next: cashrank ingest {0} --store STORE",
            self.output.display(),
            properties.nodes
        ))
    }

    /// Checks that there are as many names as nodes.
    fn check_names(&self, nodes: u64) -> Result<()> {
        let mut names = 0;
        for name in Names::open(&self.urls)? {
            name?;
            names += 1;
        }
        if names != nodes {
            return Err(Error::Conflict(format!(
                "{}: {names} names, and {} has {nodes} nodes: the list is of another graph",
                self.urls.display(),
                self.basename.display()
            )));
        }
        Ok(())
    }
}

/// Fills a temporary folder, and renames it when it is complete.
fn put_folder<T>(path: &Path, fill: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let (temp, ()) = unfinished(path, |temp| fs::create_dir(temp))?;
    let filled = fill(&temp).and_then(|value| {
        fs::rename(&temp, path).map_err(Error::io(path, "rename"))?;
        Ok(value)
    });
    if filled.is_err() {
        let _ = fs::remove_dir_all(&temp);
    }
    filled
}

/// Lines of a list of names.
struct Names {
    path: PathBuf,
    lines: std::io::Lines<Box<dyn BufRead>>,
    number: u64,
}

impl Names {
    fn open(path: &Path) -> Result<Names> {
        let lines: Box<dyn BufRead> =
            Box::new(BufReader::new(open_plain(path, &Limits::default())?));
        Ok(Names {
            path: path.to_owned(),
            lines: lines.lines(),
            number: 0,
        })
    }
}

impl Iterator for Names {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        let line = self.lines.next()?;
        self.number += 1;
        let bad = |what: &str| damaged(&self.path, format!("line {}: {what}", self.number));
        // Some programs begin a file in UTF-8 with a byte order mark, which is not part of a name.
        let line = line.map(|name| match name.strip_prefix('\u{feff}') {
            Some(rest) if self.number == 1 => rest.into(),
            _ => name,
        });
        Some(match line {
            Ok(name) if name.is_empty() => {
                Err(bad("it is empty, and should be the name of a node"))
            }
            Ok(name) if name.contains(['\t', '\r']) => {
                Err(bad("a name has no tabs and no carriage returns"))
            }
            Ok(name) => Ok(name),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                Err(bad("it is no UTF-8 (iconv converts a list in Latin-1)"))
            }
            Err(error) => Err(Error::io(&self.path, "read")(error)),
        })
    }
}

/// Lists of a graph that was checked.
struct Lists<'p> {
    labels: NodeLabels<DynCodesDecoder<BE, Bits<File>>>,
    path: &'p Path,
    nodes: u32,
}

impl<'p> Lists<'p> {
    fn open(path: &'p Path, properties: &Properties) -> Result<Lists<'p>> {
        let file = File::open(path).map_err(Error::io(path, "open"))?;
        let flags = &properties.flags;
        let decoder = DynCodesDecoder::new(bits_of(file), flags)
            .map_err(|error| damaged(path, format!("{error:#}")))?;
        let nodes = properties.nodes;
        let labels = NodeLabels::new(
            decoder,
            nodes as usize,
            flags.compression_window,
            flags.min_interval_length,
        );
        Ok(Lists {
            labels,
            path,
            nodes: nodes as u32,
        })
    }

    /// Calls `visit` with the lists that are not empty; returns the number of arcs.
    fn each(&mut self, visit: &mut PageLinks<'_>) -> Result<u64> {
        let (mut links, mut arcs) = (Vec::new(), 0);
        for node in 0..self.nodes {
            let targets = self.labels.next_successors();
            let targets = targets.map_err(|error| damaged(self.path, format!("{error:#}")))?;
            if let Some(twice) = targets.windows(2).find(|pair| pair[0] == pair[1]) {
                let what = format!(
                    "the list of node {node}: its target {} comes twice",
                    twice[0]
                );
                return Err(damaged(self.path, what));
            }
            if let Some(beyond) = targets
                .iter()
                .find(|&&target| target >= self.nodes as usize)
            {
                let what = format!("the list of node {node}: there is no node {beyond}");
                return Err(damaged(self.path, what));
            }
            links.clear();
            links.extend(targets.iter().map(|&target| (target as u32, 1)));
            arcs += links.len() as u64;
            if !links.is_empty() {
                visit(node, &links)?;
            }
        }
        Ok(arcs)
    }
}
