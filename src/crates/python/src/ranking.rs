//! A ranking: one snapshot of a store.

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

/// A published ranking: the importance of every page at one point of the crawl. It stays as it is when newer ones are
/// published.
///
/// ``len(ranking)`` is the number of pages. Every library that knows Arrow reads it as a table, batch by batch in bounded
/// memory: ``pyarrow.table(ranking)``, ``polars.DataFrame(ranking)``, ``pandas.DataFrame.from_arrow(ranking)``. It can be
/// iterated over, row by row as named tuples of the same columns: ``pandas.DataFrame(ranking)``. Columns: url
/// (string), importance (float64, all sum to 1), rank (int64), visits (int64), last_fetch (timestamp[ms, UTC], null: unknown),
/// page (int64), state (string: "crawled", "not crawled", "failed" or "gone"). Rows are in the order of page numbers.
///
/// Of sites (``store.ranking(level="host")``) rows are in the order in which sites appeared: url is the name of the site, visits
/// and last_fetch are those of its pages together, page is its number, and in place of state there is pages (int64), how many pages it
/// has. Of a measure, importance is its score.
#[pyclass(frozen, module = "cashrank")]
pub struct Ranking {
    pub ranking: Arc<LevelRanking>,
}

/// Which ranking of a snapshot, by the words that the command takes.
pub fn name_of(level: &str, by: Option<&str>) -> PyResult<RankingName> {
    Ok(RankingName {
        level: level.parse().raise()?,
        measure: by
            .map(|by| measure(by).map(|by| by.name.to_owned()))
            .transpose()
            .raise()?,
    })
}

/// Which pages: a rule, or several, as the command's `--scope` takes them.
pub fn scope_of(given: Option<&Bound<'_, PyAny>>) -> PyResult<Scope> {
    let mut scope = Scope::default();
    for rule in texts(given)? {
        scope.add(rule.parse().raise()?);
    }
    Ok(scope)
}

/// Pages that somebody chose: lines as of the command's `--teleport`, or a dictionary of pages and their weights.
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

/// A text, or several.
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
    /// The first pages by rank.
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

    /// Pages by their URLs.
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
    /// The certified bound on the L1 distance between this ranking and exact PageRank, 0 to 2; None: there is none.
    #[getter]
    fn bound(&self) -> Option<f64> {
        self.ranking.bound_l1()
    }

    /// What is ranked: "page", or the level of sites.
    #[getter]
    fn level(&self) -> String {
        self.ranking.level().to_string()
    }

    /// The measure that it was computed by; None: importance.
    #[getter]
    fn measure(&self) -> Option<&str> {
        self.ranking.computed().map(|info| &*info.measure)
    }

    /// Its number: how many records had been read.
    #[getter]
    fn number(&self) -> u64 {
        self.ranking.snapshot().info().counters.records
    }

    /// Latest fetch time of a record, as a datetime in UTC; None: no record has a time.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.ranking.snapshot().info().time)
    }

    /// All that is known of it: settings, counts, how it was computed. The specification of snapshots describes it. Of a measure
    /// that was computed, "computed" has its parameters and how sure it is.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        info(py, &self.ranking)
    }

    /// How many of the first positions are certain: the greatest n so that the first n pages are certainly the n of greatest
    /// PageRank, in some order. None: there is no bound.
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

    /// The page with this URL, in any form, or this opaque name; of sites, the one of this name. None: it is not known.
    ///
    /// Each call reads 10 bytes a page of the ranking: ask for many pages with ranks().
    fn rank(&self, py: Python<'_>, url: String) -> PyResult<Option<Page>> {
        Ok(Ranking::ranks_of(&self.ranking, py, vec![url])?
            .pop()
            .flatten())
    }

    /// The pages with these URLs, in the order given; None where a page is not known.
    fn ranks(&self, py: Python<'_>, urls: Vec<String>) -> PyResult<Vec<Option<Page>>> {
        Ranking::ranks_of(&self.ranking, py, urls)
    }

    /// The importance of all pages: a NumPy array of float64, of shape (len(ranking),), by page number. They sum to 1.
    fn importance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        needs_numpy(py)?;
        let ranking = Arc::clone(&self.ranking);
        let all = run(py, OnSignal::Leave, move |_| {
            ranking.scores().collect::<cashrank::Result<Vec<f64>>>()
        })?;
        Ok(PyArray1::from_vec(py, all))
    }

    /// The ranking as a pyarrow.Table, in memory. For more pages than memory holds, and where pyarrow is not installed, give
    /// the ranking itself to libraries that know Arrow, which read it batch by batch.
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
        // The interface lets a producer keep to its own schema.
        let _ = requested_schema;
        stream(py, Batches::new(Arc::clone(&self.ranking)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &schema(&self.ranking))
    }
}
