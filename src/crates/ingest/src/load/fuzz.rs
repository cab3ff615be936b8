//! Fuzz target: a crawl as a graph.

use std::collections::{BTreeSet, HashMap};
use std::io::Cursor;

use super::{GraphLoader, LoadedGraph};
use crate::batch::{HashKey, Rules};
use crate::decode::Parsed;
use crate::engine::SelfLinks;
use crate::formats::Format;
use crate::fuzz::dice::Dice;
use crate::model::Limits;
use crate::pipeline::InputReader;
use crate::source::{Compression, InputName, Source, SourceOptions};

/// Loads an adjacency list, and compares with a graph built from the decoder's output.
pub fn graph(data: &[u8]) {
    let mut dice = Dice::of(data);
    let self_links = dice.one_of([SelfLinks::Drop, SelfLinks::Keep]);
    let rules = Rules {
        limits: Limits::default(),
        self_links,
        key: HashKey([1, 2]),
        input: Default::default(),
        follow: Default::default(),
    };
    let options = SourceOptions {
        chunk_bytes: dice.one_of([1, 50, 1 << 20]),
        ..SourceOptions::default()
    };
    let name = InputName::File("input".into());
    let content = Box::new(Cursor::new(data.to_vec()));
    let source = match Source::from_reader(name, content, &rules.limits, &options) {
        Ok(source) => source,
        Err(error) => panic!("{error}"),
    };
    let plain = source.compression() == Compression::Plain;
    let threads = dice.one_of([1, 3]);
    let reader = InputReader::new(rules.clone(), &options, threads);
    let mut loader = GraphLoader::new(rules, threads).unwrap();
    let format = Format::Adjacency;
    let loaded = loader.read_source(&reader, source, format);
    // Compressed inputs may be damaged, and then their content is unknown.
    if plain {
        assert!(loaded.is_ok());
        compare(data, self_links, &loader.into_graph());
    }
}

fn compare(data: &[u8], self_links: SelfLinks, loaded: &LoadedGraph) {
    let mut nodes: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut rows: HashMap<usize, BTreeSet<u32>> = HashMap::new();
    Format::Adjacency.decoder().decode(data, &mut |_, parsed| {
        let Parsed::Record(record) = parsed else {
            return true;
        };
        let limit = Limits::default().url_bytes as usize;
        if record.url.len() > limit {
            return true;
        }
        let mut node = |name: &[u8]| {
            *nodes.entry(name.to_vec()).or_insert_with(|| {
                names.push(name.to_vec());
                names.len() - 1
            })
        };
        let source = node(&record.url);
        let links = record.links.iter().filter(|link| link.url.len() <= limit);
        let targets = links.map(|link| node(&link.url));
        let kept = targets.filter(|&to| to != source || self_links == SelfLinks::Keep);
        rows.insert(source, kept.map(|to| to as u32).collect());
        true
    });
    let found: Vec<&[u8]> = loaded
        .pages
        .iter()
        .map(|page| page.name.as_bytes())
        .collect();
    assert_eq!(found, names);
    for (node, row) in loaded.graph.rows().enumerate() {
        let expected = rows.remove(&node).unwrap_or_default();
        assert!(row.iter().eq(&expected), "row {node}");
    }
}
