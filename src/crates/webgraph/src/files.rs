//! The files of a BV graph, and the contents of its `.properties`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use cashrank::{Error, Result};
use cashrank_crawl::source::{Damage, DamageKind};
use dsi_bitstream::traits::BE;
use webgraph::prelude::CompFlags;

use crate::codes::is_read;

/// The only version of the format that Java's WebGraph writes.
const VERSION: &str = "0";

/// Returns the path of one of a graph's files. The base name may contain dots.
pub fn file_of(basename: &Path, extension: &str) -> PathBuf {
    let mut path = basename.as_os_str().to_owned();
    path.push(".");
    path.push(extension);
    path.into()
}

/// Properties of a graph.
pub struct Properties {
    pub nodes: u64,
    pub arcs: u64,
    /// Codes. The window is at most the number of nodes: no list refers to one before the first.
    pub flags: CompFlags,
}

impl Properties {
    /// Reads the properties in this file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if something is missing or not a number; [`Error::Unsupported`] for another
    /// kind of graph.
    pub fn read(path: &Path) -> Result<Properties> {
        let failed = |source| Error::io(path, "read")(source);
        let file = File::open(path).map_err(Error::io(path, "open"))?;
        let map = java_properties::read(BufReader::new(file)).map_err(|error| {
            let what = error.to_string();
            // A folder can be opened; reading it fails.
            let folder = path.is_dir();
            if folder {
                return failed(ErrorKind::IsADirectory.into());
            }
            damaged(path, format!("these are no properties: {what}"))
        })?;
        let named = PropertyMap { path, map: &map };
        named.check_kind()?;
        let nodes = named.number("nodes")?;
        let flags = CompFlags::from_properties::<BE>(&map)
            .map_err(|error| named.unsupported(&format!("{error:#}")))?;
        let codes = [
            flags.outdegrees,
            flags.references,
            flags.blocks,
            flags.intervals,
            flags.residuals,
        ];
        if let Some(code) = codes.iter().find(|code| !is_read(**code)) {
            return Err(named.unsupported(&format!(
                "it is coded in {code}, which version {VERSION} has not"
            )));
        }
        let window = usize::try_from(nodes).unwrap_or(usize::MAX);
        Ok(Properties {
            nodes,
            arcs: named.number("arcs")?,
            flags: CompFlags {
                compression_window: flags.compression_window.min(window),
                ..flags
            },
        })
    }
}

/// Properties by name.
struct PropertyMap<'p> {
    path: &'p Path,
    map: &'p HashMap<String, String>,
}

impl PropertyMap<'_> {
    fn check_kind(&self) -> Result<()> {
        let class = self.get("graphclass")?;
        if class.rsplit('.').next() != Some("BVGraph") {
            return Err(self.unsupported(&format!("graphclass={class}, which is no BVGraph")));
        }
        // Java's first version has none.
        let version = self.map.get("version").map_or(VERSION, String::as_str);
        if version != VERSION {
            return Err(
                self.unsupported(&format!("version={version}, and version {VERSION} is read"))
            );
        }
        let order = self.map.get("endianness").map_or("big", String::as_str);
        if order != "big" {
            return Err(self.unsupported(&format!("endianness={order}, and big is read")));
        }
        Ok(())
    }

    fn get(&self, name: &str) -> Result<&str> {
        let value = self.map.get(name).map(|value| value.trim());
        value.ok_or_else(|| damaged(self.path, format!("it has no `{name}`")))
    }

    fn number(&self, name: &str) -> Result<u64> {
        let value = self.get(name)?;
        let number = value.parse::<u64>().ok();
        number.ok_or_else(|| damaged(self.path, format!("{name}={value:?} is no number")))
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::Unsupported(format!(
            "{}: {what}; WebGraph's own tools convert it (`webgraph to bvgraph`, or Java's BVGraph)",
            self.path.display()
        ))
    }
}

/// Returns the error for a damaged file of a graph.
pub fn damaged(path: &Path, what: String) -> Error {
    Error::Corrupt {
        input: path.display().to_string(),
        record: None,
        damage: Box::new(Damage {
            kind: DamageKind::InvalidData,
            what,
            member: None,
            unverified_from: 0,
            handed_out_to: 0,
        }),
    }
}
