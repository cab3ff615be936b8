//! Answers as Python objects: pages, candidates, comparisons, snapshots.

use cashrank::Moment;
use cashrank::Mover;
use cashrank::PageId;
use cashrank::PageState;
use cashrank_graph::metrics::moved::Moves;
use cashrank_steer::schedule::Candidate;
use cashrank_store::snapshot::{LevelRanking, SnapshotEntry};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// Converts seconds since 1970 to a datetime in UTC.
pub fn datetime(py: Python<'_>, seconds: Option<i64>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static UTC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let Some(seconds) = seconds else {
        return Ok(None);
    };
    let module = || py.import("datetime");
    let class =
        CLASS.get_or_try_init(py, || PyResult::Ok(module()?.getattr("datetime")?.unbind()))?;
    let utc = UTC.get_or_try_init(py, || {
        PyResult::Ok(module()?.getattr("timezone")?.getattr("utc")?.unbind())
    })?;
    let class = class.bind(py);
    let time = class.call_method1(intern!(py, "fromtimestamp"), (seconds, utc))?;
    Ok(Some(time))
}

/// Converts a serialisable value to Python dictionaries and lists.
pub fn as_dict<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text =
        serde_json::to_string(value).map_err(|error| crate::errors::internal(error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}

/// A page of a ranking, or a site: url is then the site's name, visits and last fetch are those of all its pages.
#[pyclass(frozen, get_all, module = "cashrank")]
pub struct Page {
    /// Rank: 1 + the number of pages of strictly greater importance.
    rank: u64,
    /// Importance, as a share: all pages sum to 1.
    importance: f64,
    /// URL in canonical form, or opaque name.
    url: String,
    /// Page number, from 0 in order of first appearance, as in edges().
    page: u64,
    /// Number of visits.
    visits: u64,
    /// Number of failed fetches since the last one that reached the page; 0 for sites.
    failed: u64,
    /// Number of the site's pages; None for a page.
    pages: Option<u64>,
    /// Last fetch, in seconds since 1970.
    last_fetch_s: Option<i64>,
    /// State of the page: "crawled", "not crawled", "failed" or "gone"; None for a site.
    state: Option<&'static str>,
    /// Cash, as a share of all pages' cash; None for a site.
    cash: Option<f64>,
    /// Cash distributed in the ranking's window, as a share of that of all pages; None for a site.
    distributed: Option<f64>,
}

#[pymethods]
impl Page {
    /// Last fetch as a datetime in UTC; None if there is none, or its record has no time.
    #[getter]
    fn last_fetch<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.last_fetch_s)
    }

    fn __repr__(&self) -> String {
        let Page {
            rank,
            importance,
            url,
            ..
        } = self;
        format!("Page(rank={rank}, importance={importance:.4e}, url={url:?})")
    }
}

/// A page to crawl.
#[pyclass(frozen, get_all, module = "cashrank", name = "Candidate")]
pub struct PyCandidate {
    /// URL in canonical form, or opaque name.
    url: String,
    /// Score by the strategy, or the gain of fetching the page again; higher scores come first.
    score: f64,
    /// Importance, as a share: all pages sum to 1.
    importance: f64,
    /// True if the page was fetched before.
    fetched: bool,
    /// Number of visits.
    visits: u64,
    /// Number of failed fetches since the last one that reached the page.
    failed: u64,
    /// Page number; None for a seed that the store does not know yet.
    page: Option<u64>,
    /// Number of comparisons of two successive fetches that could show a change of the page.
    compared: u64,
    /// Number of comparisons that found a change.
    changed: u64,
    /// Last fetch, in seconds since 1970.
    last_fetch_s: Option<i64>,
}

impl From<Candidate> for PyCandidate {
    fn from(found: Candidate) -> PyCandidate {
        PyCandidate {
            url: found.url,
            score: found.score,
            importance: found.importance,
            fetched: found.fetched,
            visits: found.fetches.visits,
            failed: found.fetches.failed,
            page: found.page.map(|page| page.0),
            compared: found.fetches.compared,
            changed: found.fetches.changed,
            last_fetch_s: found.fetches.last,
        }
    }
}

#[pymethods]
impl PyCandidate {
    /// Last fetch as a datetime in UTC; None if there is none, or its record has no time.
    #[getter]
    fn last_fetch<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.last_fetch_s)
    }

    fn __repr__(&self) -> String {
        format!("Candidate(url={:?}, score={:.4e})", self.url, self.score)
    }
}

/// A page with its ranks and importances in two rankings.
#[pyclass(frozen, get_all, module = "cashrank", name = "Move")]
pub struct PyMove {
    /// URL in canonical form, or opaque name.
    url: String,
    /// State in the later ranking: "crawled", "not crawled", "failed" or "gone"; None if unknown.
    state: Option<&'static str>,
    /// Rank in the earlier ranking; None if that lacks the page.
    rank_before: Option<u64>,
    /// Rank in the later ranking; None if that lacks the page.
    rank: Option<u64>,
    /// Importance in the earlier ranking.
    importance_before: Option<f64>,
    /// Importance in the later ranking.
    importance: Option<f64>,
    /// True if exact PageRank itself changed in this direction; None without bounds, or if a ranking lacks the page.
    certain: Option<bool>,
}

impl From<Mover> for PyMove {
    fn from(page: Mover) -> PyMove {
        PyMove {
            url: page.url,
            state: page.state.map(PageState::name),
            rank_before: page.rank_before,
            rank: page.rank,
            importance_before: page.importance_before,
            importance: page.importance,
            certain: page.certain,
        }
    }
}

#[pymethods]
impl PyMove {
    /// Change of importance, -1 to 1; a page that a ranking lacks has importance 0 there.
    #[getter]
    fn change(&self) -> f64 {
        self.importance.unwrap_or(0.0) - self.importance_before.unwrap_or(0.0)
    }

    fn __repr__(&self) -> String {
        let rank = |rank: Option<u64>| rank.map_or("None".into(), |rank: u64| rank.to_string());
        format!(
            "Move(url={:?}, rank_before={}, rank={}, change={:+.4e})",
            self.url,
            rank(self.rank_before),
            rank(self.rank),
            self.change()
        )
    }
}

/// A page in one of the rankings that a store keeps.
#[pyclass(frozen, get_all, module = "cashrank", name = "Moment")]
pub struct PyMoment {
    /// Number of the ranking, as in ranking(): records read until then.
    snapshot: u64,
    /// Number of ranked pages.
    count: u64,
    /// Rank: 1 + the number of pages of strictly greater importance; None if the page was not known yet.
    rank: Option<u64>,
    /// Importance, as a share: all pages sum to 1; None if the page was not known yet.
    importance: Option<f64>,
    /// Importance divided by the mean of all pages; unlike importance, it does not fall because pages are added.
    ratio: Option<f64>,
    /// The certified bound on the L1 distance of the ranking from exact PageRank, 0 to 2; None if there is none.
    bound: Option<f64>,
    /// Latest fetch until then, in seconds since 1970; None if no record has a time.
    time_s: Option<i64>,
}

impl From<&Moment> for PyMoment {
    fn from(moment: &Moment) -> PyMoment {
        PyMoment {
            snapshot: moment.snapshot,
            count: moment.count,
            rank: moment.rank,
            importance: moment.importance,
            ratio: moment.ratio(),
            bound: moment.bound_l1,
            time_s: moment.time,
        }
    }
}

#[pymethods]
impl PyMoment {
    /// Latest fetch until then as a datetime in UTC; None if no record has a time.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.time_s)
    }

    fn __repr__(&self) -> String {
        let rank = self.rank.map_or("None".into(), |rank| rank.to_string());
        format!("Moment(snapshot={}, rank={rank})", self.snapshot)
    }
}

/// Pages that moved from one ranking to another, and counts over all pages.
#[pyclass(frozen, module = "cashrank")]
pub struct Comparison {
    rose: Vec<Py<PyMove>>,
    fell: Vec<Py<PyMove>>,
    new: Vec<Py<PyMove>>,
    missing: Vec<Py<PyMove>>,
    summary: Py<PyAny>,
}

impl Comparison {
    /// Creates the object from the library's lists.
    pub fn of(py: Python<'_>, found: Moves) -> PyResult<Comparison> {
        let objects = |pages: Vec<Mover>| {
            let objects = pages
                .into_iter()
                .map(|page| Py::new(py, PyMove::from(page)));
            objects.collect::<PyResult<Vec<_>>>()
        };
        Ok(Comparison {
            rose: objects(found.rose)?,
            fell: objects(found.fell)?,
            new: objects(found.new)?,
            missing: objects(found.missing)?,
            summary: as_dict(py, &found.summary)?.unbind(),
        })
    }
}

fn shared(py: Python<'_>, list: &[Py<PyMove>]) -> Vec<Py<PyMove>> {
    list.iter().map(|page| page.clone_ref(py)).collect()
}

#[pymethods]
impl Comparison {
    /// Pages that rose, the largest gain first.
    #[getter]
    fn rose(&self, py: Python<'_>) -> Vec<Py<PyMove>> {
        shared(py, &self.rose)
    }

    /// Pages that fell, the largest loss first.
    #[getter]
    fn fell(&self, py: Python<'_>) -> Vec<Py<PyMove>> {
        shared(py, &self.fell)
    }

    /// Pages of the later ranking only, the best rank first.
    #[getter(new)]
    fn new_pages(&self, py: Python<'_>) -> Vec<Py<PyMove>> {
        shared(py, &self.new)
    }

    /// Pages of the earlier ranking only, the best rank first.
    #[getter]
    fn missing(&self, py: Python<'_>) -> Vec<Py<PyMove>> {
        shared(py, &self.missing)
    }

    /// Counts and sums over all pages, as ``cashrank compare --moved --json`` has them.
    #[getter]
    fn summary(&self, py: Python<'_>) -> Py<PyAny> {
        self.summary.clone_ref(py)
    }

    fn __repr__(&self) -> String {
        format!(
            "Comparison(rose={}, fell={}, new={}, missing={})",
            self.rose.len(),
            self.fell.len(),
            self.new.len(),
            self.missing.len()
        )
    }
}

/// One of the rankings that a store keeps.
#[pyclass(frozen, get_all, module = "cashrank")]
pub struct SnapshotInfo {
    /// Number of the snapshot: records read until then.
    number: u64,
    /// Path of the file.
    path: std::path::PathBuf,
    /// Length of the file in bytes; None if the system does not report it.
    bytes: Option<u64>,
    /// True if the snapshot is kept however many newer ones there are.
    pinned: bool,
    /// True for the current snapshot, which is read by default.
    current: bool,
    /// Number of pages; None if the file cannot be read.
    pages: Option<u64>,
    /// The certified bound on the L1 distance to PageRank; None if there is none.
    bound: Option<f64>,
    /// Latest fetch, in seconds since 1970.
    time_s: Option<i64>,
}

impl From<&SnapshotEntry> for SnapshotInfo {
    fn from(entry: &SnapshotEntry) -> SnapshotInfo {
        let info = entry.info.as_ref().ok();
        SnapshotInfo {
            number: entry.number,
            path: entry.path.clone(),
            bytes: entry.bytes,
            pinned: entry.pinned,
            current: entry.current,
            pages: info.map(|info| info.pages),
            bound: info.and_then(|info| info.bound_l1()),
            time_s: info.and_then(|info| info.time),
        }
    }
}

#[pymethods]
impl SnapshotInfo {
    /// Latest fetch as a datetime in UTC; None if no record has a time.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.time_s)
    }

    fn __repr__(&self) -> String {
        format!(
            "SnapshotInfo(number={}, current={})",
            self.number,
            if self.current { "True" } else { "False" }
        )
    }
}

/// Converts rows of a ranking to objects, with the number of failed fetches of each page.
///
/// # Errors
/// If the snapshot is damaged or cannot be read.
pub fn pages(
    ranking: &LevelRanking,
    rows: Vec<cashrank::Page<'static>>,
) -> cashrank::Result<Vec<Page>> {
    let mut failed = vec![0; rows.len()];
    if ranking.level().is_page() {
        let numbers: Vec<PageId> = rows.iter().map(|row| row.page).collect();
        let found = ranking.snapshot().pages_of(&numbers)?;
        failed = found.iter().map(|page| page.fetches.failed).collect();
    }
    let object = |(row, failed): (cashrank::Page<'static>, u64)| Page {
        rank: row.rank,
        importance: row.importance,
        url: row.url.into_owned(),
        page: row.page.0,
        visits: row.visits,
        failed,
        state: row.state.map(PageState::name),
        cash: row.cash,
        distributed: row.distributed,
        pages: row.site.map(|site| site.pages),
        last_fetch_s: row.last_fetch,
    };
    Ok(rows.into_iter().zip(failed).map(object).collect())
}

/// Returns the settings and counts of a ranking's run; for a ranking by a measure, also its parameters and accuracy.
pub fn info<'py>(py: Python<'py>, ranking: &LevelRanking) -> PyResult<Bound<'py, PyDict>> {
    let dict: Bound<'py, PyDict> = as_dict(py, ranking.snapshot().info())?.cast_into()?;
    if let Some(computed) = ranking.computed() {
        dict.set_item("computed", as_dict(py, computed)?)?;
    }
    Ok(dict)
}
