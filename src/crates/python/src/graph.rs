//! Links as NumPy arrays, and PageRank computed from them.

use cashrank::{Config, Error};
use cashrank_graph::engine::SelfLinks;
use cashrank_graph::graph::{Graph, node};
use cashrank_graph::rank::pagerank::{PowerOptions, pagerank_for};
use cashrank_graph::rank::settle::settle_for;
use cashrank_graph::rank::{RankOptions, Teleport};
use cashrank_graph::rows::{Rows, Stop as Ended};
use cashrank_graph::sites::{Level, SiteLinks, site_graph};
use cashrank_store::snapshot::Snapshot;
use numpy::{Element, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;

use crate::errors::{Raise, invalid};
use crate::work::{OnSignal, Stop, run};

/// Fails with advice if NumPy is not installed. It is imported only by functions that need it.
pub fn needs_numpy(py: Python<'_>) -> PyResult<()> {
    let found = py.import("numpy");
    found.map(drop).map_err(|_| {
        PyImportError::new_err(
            "this returns NumPy arrays, and NumPy is not installed: pip install numpy",
        )
    })
}

/// Selection of links: level, and whether weights are returned.
pub struct Wanted {
    pub level: Level,
    pub site_links: SiteLinks,
    pub weights: bool,
}

/// Links as numbers of source and target, with weights if requested.
#[derive(Default)]
pub struct Edges {
    pub sources: Vec<u32>,
    pub targets: Vec<u32>,
    pub weights: Vec<u64>,
}

/// Returns the links of a snapshot, without those of weight 0.
pub fn edges_of(snapshot: &Snapshot, wanted: &Wanted, stop: &Stop) -> cashrank::Result<Edges> {
    let rows = snapshot.rows()?;
    if wanted.level.is_page() {
        return edges(&rows, wanted.weights, stop);
    }
    let sites = snapshot.sites(wanted.level, None)?;
    let folder = std::env::temp_dir();
    let graph = site_graph(&rows, &sites, wanted.site_links, None, &folder)?;
    edges(&graph, wanted.weights, stop)
}

fn edges(rows: &dyn Rows, weights: bool, stop: &Stop) -> cashrank::Result<Edges> {
    let links = rows.links() as usize;
    let mut edges = Edges {
        sources: Vec::with_capacity(links),
        targets: Vec::with_capacity(links),
        weights: Vec::with_capacity(if weights { links } else { 0 }),
    };
    rows.sweep(&mut |row| {
        if stop.is_set() {
            return Err(Ended::Enough);
        }
        if row.weights.is_empty() {
            edges.targets.extend_from_slice(row.targets);
        } else {
            edges.targets.extend(row.parts().map(|(target, _)| target));
        }
        edges.sources.resize(edges.targets.len(), row.page);
        if weights {
            let given = row.weights.iter().copied().filter(|&weight| weight > 0);
            edges.weights.extend(given);
            edges.weights.resize(edges.targets.len(), 1);
        }
        Ok(())
    })?;
    Ok(edges)
}

/// Extracts page numbers from an array or a sequence of integers.
fn numbers(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let array = given
        .py()
        .import("numpy")?
        .call_method1("asarray", (given,))?;
    macro_rules! of {
        ($($number:ty),*) => {
            $(if let Ok(array) = array.extract::<PyReadonlyArray1<'_, $number>>() {
                return checked(name, &array);
            })*
        };
    }
    of!(u32, i64, i32, u64, u16, i16, u8, i8);
    let size: usize = array.getattr("size")?.extract()?;
    if size == 0 {
        return Ok(Vec::new());
    }
    let (shape, dtype) = (array.getattr("shape")?, array.getattr("dtype")?);
    Err(PyTypeError::new_err(format!(
        "{name}: an array of one dimension of integers in the machine's byte order, not of shape {shape} and type {dtype}"
    )))
}

fn checked<T>(name: &str, array: &PyReadonlyArray1<'_, T>) -> PyResult<Vec<u32>>
where
    T: Element + Copy + TryInto<u32> + std::fmt::Display,
{
    let array = array.as_array();
    let number = |&number: &T| match number.try_into() {
        Ok(page) if page < u32::MAX => Ok(page),
        _ => Err(invalid(format!(
            "{name}: {number}: page numbers are from 0 to {}",
            u32::MAX - 1
        ))),
    };
    array.iter().map(number).collect()
}

/// Extracts weights from an array or a sequence of numbers.
fn weights_of(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let numpy = given.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (given, "f8"))?;
    let Ok(array) = array.extract::<PyReadonlyArray1<'_, f64>>() else {
        let shape = array.getattr("shape")?;
        return Err(PyTypeError::new_err(format!(
            "{name}: an array of one dimension, not of shape {shape}"
        )));
    };
    let weights = array.as_array().to_vec();
    match weights
        .iter()
        .find(|&&weight| !(weight.is_finite() && weight >= 0.0))
    {
        Some(weight) => Err(invalid(format!(
            "{name}: {weight}: weights are finite numbers from 0 up"
        ))),
        None => Ok(weights),
    }
}

/// Arrays that describe a graph, with weights of its links and of the teleport.
struct Arrays {
    sources: Vec<u32>,
    targets: Vec<u32>,
    weights: Option<Vec<f64>>,
    teleport: Option<Vec<f64>>,
    nodes: Option<u64>,
    self_links: SelfLinks,
}

impl Arrays {
    fn check(&self) -> PyResult<()> {
        let links = self.sources.len();
        let weights = self.weights.as_ref().map_or(links, Vec::len);
        for (name, len) in [("dst", self.targets.len()), ("weights", weights)] {
            if len != links {
                return Err(invalid(format!("src has {links} links, and {name} {len}")));
            }
        }
        Ok(())
    }

    fn graph(self) -> cashrank::Result<(Graph, Teleport)> {
        let largest = self.sources.iter().chain(&self.targets).max();
        let least = largest.map_or(0, |&page| u64::from(page) + 1);
        let weighed = self.teleport.as_ref().map_or(0, Vec::len) as u64;
        let nodes = self.nodes.unwrap_or(least.max(weighed));
        if nodes < least {
            return Err(Error::Usage(format!(
                "nodes={nodes}: there is a page {}",
                least - 1
            )));
        }
        let teleport = match &self.teleport {
            Some(weights) if weighed != nodes => {
                return Err(Error::Usage(format!(
                    "teleport has {} weights for {nodes} pages",
                    weights.len()
                )));
            }
            Some(weights) if nodes > 0 => Teleport::of_floats(weights)?,
            _ => Teleport::default(),
        };
        if nodes > 0 {
            node(nodes - 1)?;
        }
        let (nodes, sources, targets) = (nodes as usize, &self.sources, &self.targets);
        let graph = match &self.weights {
            None => Graph::of_pairs(nodes, sources, targets, self.self_links),
            Some(weights) => {
                Graph::of_weighted_pairs(nodes, sources, targets, weights, self.self_links)
            }
        };
        Ok((graph, teleport))
    }
}

/// PageRank of the graph with a link from src[i] to dst[i] for each i.
///
/// src, dst: page numbers from 0, as NumPy arrays or sequences of integers, both of shape (links,), in any order.
/// weights: the weight of each link, finite and at least 0, of shape (links,): a page's importance goes to its targets
/// in proportion. Weights of repeated links are added, and links of weight 0 are dropped. None: all links weigh the
/// same, and repeated links count once.
/// teleport: a weight for each page, finite and at least 0, of shape (nodes,): the importance that links do not pass
/// on, and that of pages without links, goes to pages in proportion (personalised PageRank). None: to all equally.
/// damping: the share of a page's importance that its links pass on, 0 <= damping < 1. It is rounded to the
/// nearest multiple of 2**-32 (0.85 is rounded down, which moves PageRank by at most 1.9e-9 in L1).
/// until: the certified bound on the L1 distance between the result and exact PageRank.
/// nodes: number of pages; None: 1 + the largest page number, or the length of teleport if that is greater.
/// self_links: "keep" or "drop" links from a page to itself.
///
/// Returns a NumPy array of float64, of shape (nodes,), whose sum is 1. Weights of a page's links, and those of
/// teleport, are rounded to 2**-52 of their sum. Takes 4 bytes of memory per link (12 with weights) and about 26 per
/// page, and 16 per link (32) while the graph is built. Raises InvalidInput, also if the bound is out of reach.
#[pyfunction]
#[pyo3(signature = (src, dst, weights=None, teleport=None, *, damping=0.85, until=1e-9, nodes=None, self_links="keep"))]
#[expect(clippy::too_many_arguments, reason = "each is a keyword")]
pub fn pagerank<'py>(
    py: Python<'py>,
    src: &Bound<'py, PyAny>,
    dst: &Bound<'py, PyAny>,
    weights: Option<&Bound<'py, PyAny>>,
    teleport: Option<&Bound<'py, PyAny>>,
    damping: f64,
    until: f64,
    nodes: Option<u64>,
    self_links: &str,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    needs_numpy(py)?;
    let arrays = Arrays {
        sources: numbers("src", src)?,
        targets: numbers("dst", dst)?,
        weights: weights
            .map(|array| weights_of("weights", array))
            .transpose()?,
        teleport: teleport
            .map(|array| weights_of("teleport", array))
            .transpose()?,
        nodes,
        self_links: self_links_of(self_links)?,
    };
    arrays.check()?;
    if !(until > 0.0 && until.is_finite()) {
        return Err(invalid(format!("until={until}: a number greater than 0")));
    }
    let mut config = Config::default();
    config.set_damping(damping).raise()?;
    let options = RankOptions::until(config.damping_units(), until);
    let scores = run(py, OnSignal::Leave, move |stop| {
        let (graph, teleport) = arrays.graph()?;
        ranked(&graph, &options, &teleport, stop)
    })?;
    Ok(PyArray1::from_vec(py, scores))
}

/// Returns whether settling can reach the bound. It takes far fewer sweeps than power iteration, but resolves less
/// (`rank::settle`): each link is rounded by a few units of 2^-58, and less than a unit for each unit of teleport weight
/// is not paid out.
fn is_settled(graph: &Graph, options: &RankOptions, teleport: &Teleport) -> bool {
    let units = graph.links() as f64 + teleport.sum(graph.nodes() as u64) as f64;
    options.until >= units * 2f64.powi(-54) / (1.0 - options.damping())
}

fn ranked(
    graph: &Graph,
    options: &RankOptions,
    teleport: &Teleport,
    stop: &Stop,
) -> cashrank::Result<Vec<f64>> {
    let (scores, bound) = if is_settled(graph, options, teleport) {
        let settled = settle_for(graph, options, teleport, &mut stop.clone())?;
        let Some(settled) = settled else {
            return Ok(Vec::new());
        };
        (settled.importance(), settled.certificate.received_l1)
    } else {
        let damping = options.damping();
        // The bound is d/(1 - d) times the residual, plus rounding.
        let residual = 0.99 * options.until * (1.0 - damping) / damping.max(0.5);
        let exact = pagerank_for(graph, PowerOptions { damping, residual }, teleport)?;
        (exact.scores, Some(exact.bound).filter(|bound| *bound < 2.0))
    };
    // No distance is larger than 2.
    if bound.unwrap_or(2.0) > options.until && !stop.is_set() {
        let bound = bound.map_or("no bound".into(), |bound| format!("{bound:.1e}"));
        return Err(Error::Usage(format!(
            "until={:e}: numbers of 64 bits do not get there with this damping: {bound} was reached",
            options.until
        )));
    }
    Ok(scores)
}

/// Parses the argument `self_links`.
pub fn self_links_of(text: &str) -> PyResult<SelfLinks> {
    match text {
        "keep" => Ok(SelfLinks::Keep),
        "drop" => Ok(SelfLinks::Drop),
        _ => Err(invalid(format!(
            "self_links={text:?}: \"keep\" or \"drop\""
        ))),
    }
}
