//! Rankings as Python objects: a snapshot of a store, its sites, or a ranking by a measure.

use std::sync::Arc;

use cashrank::PageId;
use cashrank_base::rules::Scope;
use cashrank_graph::rank::chosen::ChosenList;
use cashrank_graph::rank::measures::measure;
use cashrank_steer::answers::pages_of;
use cashrank_store::snapshot::{LevelRanking, RankingName, Selection};
use numpy::PyArray1;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};

use crate::answers::{Page, datetime, info, pages};
use crate::arrow::{Batches, Blocks, schema, schema_capsule, stream};
use crate::errors::Raise;
use crate::graph::needs_numpy;
use crate::work::{OnSignal, run};

/// A published ranking: the importance of every page at one point of the crawl. It does not change when newer ones are
/// published.
///
/// ``len(ranking)`` is the number of pages. Every library that supports Arrow reads it as a table, batch by batch in
/// bounded memory: ``pyarrow.table(ranking)``, ``polars.DataFrame(ranking)``, ``pandas.DataFrame.from_arrow(ranking)``.
/// Iteration yields named tuples of the same columns, row by row: ``pandas.DataFrame(ranking)``. Columns: url
/// (string), importance (float64, all sum to 1), rank (int64), visits (int64), last_fetch (timestamp[ms, UTC], null: unknown),
/// page (int64), state (string: "crawled", "not crawled", "failed" or "gone"). Rows are in the order of page numbers.
///
/// In a ranking of sites (``store.ranking(level="host")``) rows are in order of first appearance: url is the site's
/// name, visits and last_fetch are those of all its pages, page is the site's number, and the column pages (int64,
/// number of pages) replaces state. In a ranking by a measure, importance is the score.
#[pyclass(frozen, module = "cashrank")]
pub struct Ranking {
    pub ranking: Arc<LevelRanking>,
}

/// Parses the name of a ranking: level and measure, as the command takes them.
pub fn name_of(level: &str, by: Option<&str>) -> PyResult<RankingName> {
    Ok(RankingName {
        level: level.parse().raise()?,
        measure: by
            .map(|by| measure(by).map(|by| by.name.to_owned()))
            .transpose()
            .raise()?,
    })
}

/// Parses one or more rules for pages, as the command's `--scope` takes them.
pub fn scope_of(given: Option<&Bound<'_, PyAny>>) -> PyResult<Scope> {
    let mut scope = Scope::default();
    for rule in texts(given)? {
        scope.add(rule.parse().raise()?);
    }
    Ok(scope)
}

/// Parses chosen pages: lines as of the command's `--teleport`, or a dictionary from pages to weights.
pub fn chosen_of(given: &Bound<'_, PyAny>) -> PyResult<ChosenList> {
    let lines = match given.cast::<PyDict>() {
        Ok(weights) => weights
            .iter()
            .map(|(pages, weight)| format!("{pages}\t{weight}"))
            .collect(),
        Err(_) => texts(Some(given))?,
    };
    let lines = lines.into_iter().map(|line| Ok(line.into_bytes()));
    ChosenList::read(lines, None).raise()
}

/// Extracts one or more texts.
pub fn texts(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(given) = given else {
        return Ok(Vec::new());
    };
    if given.is_instance_of::<PyString>() {
        return Ok(vec![given.extract()?]);
    }
    given.try_iter()?.map(|text| text?.extract()).collect()
}

impl Ranking {
    /// Returns the first `n` selected pages by rank.
    pub fn top_of(
        ranking: &Arc<LevelRanking>,
        py: Python<'_>,
        n: usize,
        scope: Option<&Bound<'_, PyAny>>,
        without_gone: bool,
    ) -> PyResult<Vec<Page>> {
        let selection = Selection {
            scope: scope_of(scope)?,
            without_gone,
        };
        let ranking = Arc::clone(ranking);
        run(py, OnSignal::Leave, move |_| {
            let best = ranking.top(n, &selection)?;
            pages(&ranking, best)
        })
    }

    /// Returns pages by their URLs; `None` for unknown ones.
    pub fn ranks_of(
        ranking: &Arc<LevelRanking>,
        py: Python<'_>,
        urls: Vec<String>,
    ) -> PyResult<Vec<Option<Page>>> {
        let ranking = Arc::clone(ranking);
        run(py, OnSignal::Leave, move |_| {
            let found = pages_of(&urls, |names| ranking.find(names))?;
            let numbers: Vec<PageId> = found.iter().copied().flatten().collect();
            let mut known = pages(&ranking, ranking.at(&numbers)?)?.into_iter();
            Ok(found
                .iter()
                .map(|page| page.and_then(|_| known.next()))
                .collect())
        })
    }
}

#[pymethods]
impl Ranking {
    /// The certified bound on the L1 distance between this ranking and exact PageRank, 0 to 2; None if there is none.
    #[getter]
    fn bound(&self) -> Option<f64> {
        self.ranking.bound_l1()
    }

    /// Level of the ranking: "page", or a level of sites.
    #[getter]
    fn level(&self) -> String {
        self.ranking.level().to_string()
    }

    /// Measure of importance; None for the snapshot's own ranking.
    #[getter]
    fn measure(&self) -> Option<&str> {
        self.ranking.computed().map(|info| &*info.measure)
    }

    /// Number of the snapshot: records read until then.
    #[getter]
    fn number(&self) -> u64 {
        self.ranking.snapshot().info().counters.records
    }

    /// Latest fetch time of a record, as a datetime in UTC; None if no record has a time.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.ranking.snapshot().info().time)
    }

    /// Settings, counts and method of the ranking, as the specification of snapshots describes them. For a ranking by a
    /// measure, "computed" has its parameters and accuracy.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        info(py, &self.ranking)
    }

    /// Number of the first positions that are certain: the greatest n such that the first n pages are certainly the n
    /// of greatest PageRank, in some order. None without a bound.
    fn certain_top(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let ranking = Arc::clone(&self.ranking);
        run(py, OnSignal::Leave, move |_| ranking.certain_top())
    }

    /// The n most important pages, best first: a list of Page.
    ///
    /// scope: only these pages: "host:NAME", "barehost:NAME", "domain:NAME" or "url:PATTERN" with * for anything, "!" in front for all but
    /// these; or a list of such rules. without_gone: leave out pages that are gone (404, 410). Both are for pages, not for sites.
    #[pyo3(signature = (n=20, scope=None, *, without_gone=false))]
    fn top(
        &self,
        py: Python<'_>,
        n: usize,
        scope: Option<&Bound<'_, PyAny>>,
        without_gone: bool,
    ) -> PyResult<Vec<Page>> {
        Ranking::top_of(&self.ranking, py, n, scope, without_gone)
    }

    /// The page with this URL, in any form, or this opaque name; or the site of this name. None if it is unknown.
    ///
    /// Each call reads 10 bytes per page of the ranking: to look up many pages, call ranks().
    fn rank(&self, py: Python<'_>, url: String) -> PyResult<Option<Page>> {
        Ok(Ranking::ranks_of(&self.ranking, py, vec![url])?
            .pop()
            .flatten())
    }

    /// The pages with these URLs, in the order given; None for unknown ones.
    fn ranks(&self, py: Python<'_>, urls: Vec<String>) -> PyResult<Vec<Option<Page>>> {
        Ranking::ranks_of(&self.ranking, py, urls)
    }

    /// The importance of all pages: a NumPy array of float64, of shape (len(ranking),), by page number; sums to 1.
    fn importance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        needs_numpy(py)?;
        let ranking = Arc::clone(&self.ranking);
        let all = run(py, OnSignal::Leave, move |_| {
            ranking.scores().collect::<cashrank::Result<Vec<f64>>>()
        })?;
        Ok(PyArray1::from_vec(py, all))
    }

    /// The ranking as a pyarrow.Table, in memory. If it does not fit, or pyarrow is not installed, pass the ranking
    /// itself to a library that supports Arrow, which reads it batch by batch.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let pyarrow = slf.py().import("pyarrow").map_err(|_| {
            PyImportError::new_err(
                "this returns a pyarrow.Table, and pyarrow is not installed: pip install pyarrow; or give the ranking itself to \
                 a library that knows Arrow, as in polars.DataFrame(ranking)",
            )
        })?;
        pyarrow.call_method1("table", (slf,))
    }

    fn __len__(&self) -> usize {
        self.ranking.len() as usize
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Blocks::rows(py, Arc::clone(&self.ranking))
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        let bound = self
            .bound()
            .map_or("None".into(), |bound| format!("{bound:.2e}"));
        let level = self.ranking.level();
        format!(
            "Ranking(number={}, {}={}, bound={bound})",
            self.number(),
            level.plural(),
            self.ranking.len()
        )
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the requested schema.
        let _ = requested_schema;
        stream(py, Batches::new(Arc::clone(&self.ranking)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &schema(&self.ranking))
    }
}
