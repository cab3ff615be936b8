//! Opens a store: `cashrank.open`, and its settings.

use std::path::{Path, PathBuf};

use cashrank::KeepSnapshots;
use cashrank::{Names, Options};
use cashrank_store::store::rows::KeepRows;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Raise, invalid};
use crate::graph::self_links_of;
use crate::ranking::{scope_of, texts};
use crate::store::Store;

/// Open a store: a directory that keeps what was crawled, and its rankings.
///
/// mode: "a" to add records; creates the store if it does not exist, and only one process may add at a time. "r" only
/// reads, also while another process adds.
///
/// Settings, all optional; defaults are in parentheses. Those of the first group belong to the store: they are fixed
/// when it is created, and later values must be the same (Conflict).
///
/// - damping: the share of a page's importance that its links pass on, 0 <= damping < 1 (0.85).
/// - self_links: "keep" or "drop" links from a page to itself ("drop").
/// - follow: weights of links by kind and by URL, like "nofollow=0,internal=2,url:*/tag/*=0", 0 to 1000 (all 1).
/// - scope: the pages that count: "host:NAME", "barehost:NAME", "domain:NAME", "url:PATTERN" with * for anything, "!" in front for all but
///   these; or a list of such rules (all pages).
/// - drop_params: URL parameters that do not identify a page, like "tracking,session" or "utm_*,ref" (none).
/// - shard: "K/N": only the records of hosts that belong to shard K of N, from 0 (all).
///
/// Those of the second group belong to this opening:
///
/// - names: "url", or "opaque" for names that are compared byte for byte ("url").
/// - keep_links: whether to keep the links of pages, which settled rankings, next() and edges() need; None: as far as
///   the disk has room (None).
/// - keep_snapshots: rankings to keep: a number keeps the newest ones, 0 all; or a rule like
///   "recent=10,hourly=24,daily=30,monthly=all" ("recent=10,daily=30,monthly=all").
/// - memory: maximum memory of the store, in bytes; None: no limit (None).
/// - limit_pages, limit_links, limit_url: maximum number of pages of the store (2**34 - 1), of links of a record
///   (1,000,000) and of bytes of a URL (8192).
///
/// Raises InUse if the store is already open for adding, NotFound if there is none to read, Damaged, Conflict.
#[pyfunction]
#[pyo3(signature = (path, mode="a", **settings), text_signature = "(path, mode='a', *, damping=None, self_links=None, follow=None, \
    scope=None, drop_params=None, shard=None, names='url', keep_links=None, keep_snapshots='recent=10,daily=30,monthly=all', memory=None, limit_pages=None, \
    limit_links=None, limit_url=None)")]
pub fn open(
    py: Python<'_>,
    path: PathBuf,
    mode: &str,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<Store> {
    match mode {
        "r" if settings.is_some_and(|given| !given.is_empty()) => Err(PyTypeError::new_err(
            "mode=\"r\" takes no settings: the store has them",
        )),
        "r" => Store::reading(py, path),
        "a" => {
            let options = options(&path, settings)?;
            Store::adding(py, path, options)
        }
        _ => Err(invalid(format!(
            "mode={mode:?}: \"a\" to add records, \"r\" to ask only"
        ))),
    }
}

fn options(path: &Path, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::of(path).raise()?;
    options.keep_snapshots = KeepSnapshots::USUAL;
    for (name, value) in settings.into_iter().flatten() {
        let name: String = name.extract()?;
        // A setting of None has its default.
        let set = if value.is_none() {
            SETTINGS.contains(&&*name).then_some(())
        } else {
            set(&mut options, &name, &value)?
        };
        set.ok_or_else(|| {
            let known = SETTINGS.join(", ");
            PyTypeError::new_err(format!("open() has no setting {name}: there are {known}"))
        })?;
    }
    Ok(options)
}

const SETTINGS: [&str; 13] = [
    "damping",
    "self_links",
    "follow",
    "scope",
    "drop_params",
    "shard",
    "names",
    "keep_links",
    "keep_snapshots",
    "memory",
    "limit_pages",
    "limit_links",
    "limit_url",
];

/// Sets one of [`SETTINGS`]; `None` if `name` is none of them.
fn set(options: &mut Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<()>> {
    let Options {
        config,
        input,
        limits,
        ..
    } = options;
    match name {
        "damping" => config.set_damping(value.extract()?).raise()?,
        "self_links" => config.self_links = self_links_of(value.extract()?)?,
        "follow" => config.follow = value.extract::<String>()?.parse().raise()?,
        "scope" => input.scope = scope_of(Some(value))?,
        "drop_params" => input.drop_params = texts(Some(value))?.join(",").parse().raise()?,
        "shard" => input.shard = Some(value.extract::<String>()?.parse().raise()?),
        "names" => options.names = names_of(value.extract()?)?,
        "keep_links" if value.extract()? => options.keep_links = KeepRows::AtMost(u64::MAX),
        "keep_links" => options.keep_links = KeepRows::None,
        "keep_snapshots" => options.keep_snapshots = keep_of(value)?,
        "memory" => limits.memory = Some(value.extract()?),
        "limit_pages" => limits.pages = value.extract()?,
        "limit_links" => limits.links = value.extract()?,
        "limit_url" => limits.url_bytes = value.extract()?,
        _ => return Ok(None),
    }
    Ok(Some(()))
}

/// Parses a number or a rule of snapshots to keep.
fn keep_of(value: &Bound<'_, PyAny>) -> PyResult<KeepSnapshots> {
    let text = match value.extract::<String>() {
        Ok(text) => text,
        Err(_) => value.extract::<usize>()?.to_string(),
    };
    text.parse()
        .map_err(|why: String| invalid(format!("keep_snapshots={why}")))
}

fn names_of(text: &str) -> PyResult<Names> {
    match text {
        "url" => Ok(Names::Url),
        "opaque" => Ok(Names::Opaque),
        _ => Err(invalid(format!("names={text:?}: \"url\" or \"opaque\""))),
    }
}
