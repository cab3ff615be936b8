//! A ranking: one snapshot of a store.

use std::sync::Arc;

use cashrank::PageId;
use cashrank::answers::pages_of;
use cashrank::rules::Scope;
use cashrank::snapshot::Snapshot;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};

use crate::answers::{Page, datetime, info, pages};
use crate::arrow::{Batches, Table, schema_capsule, stream};
use crate::errors::Raise;
use crate::graph::needs_numpy;
use crate::work::{OnSignal, run};

/// A published ranking: the importance of every page at one point of the crawl. It stays as it is when newer ones are
/// published.
///
/// ``len(ranking)`` is the number of pages. Every library that knows Arrow reads it as a table, batch by batch in bounded
/// memory: ``pyarrow.table(ranking)``, ``polars.DataFrame(ranking)``, ``pandas.DataFrame.from_arrow(ranking)``. Columns: url
/// (string), importance (float64, all sum to 1), rank (int64), visits (int64), last_fetch (timestamp[ms, UTC], null: unknown),
/// page (int64). Rows are in the order of page numbers.
#[pyclass(frozen, module = "cashrank")]
pub struct Ranking {
    pub snapshot: Arc<Snapshot>,
}

/// Which pages: a rule, or several, as the command's `--scope` takes them.
pub fn scope_of(given: Option<&Bound<'_, PyAny>>) -> PyResult<Scope> {
    let mut scope = Scope::default();
    for rule in texts(given)? {
        scope.add(rule.parse().raise()?);
    }
    Ok(scope)
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
        snapshot: &Arc<Snapshot>,
        py: Python<'_>,
        n: usize,
        scope: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Page>> {
        let scope = scope_of(scope)?;
        let snapshot = Arc::clone(snapshot);
        run(py, OnSignal::Leave, move |_| {
            let best = snapshot.top_in(n, &scope)?;
            let numbers: Vec<PageId> = best.iter().map(|page| page.page).collect();
            pages(&snapshot, &numbers)
        })
    }

    /// Pages by their URLs.
    pub fn ranks_of(
        snapshot: &Arc<Snapshot>,
        py: Python<'_>,
        urls: Vec<String>,
    ) -> PyResult<Vec<Option<Page>>> {
        let snapshot = Arc::clone(snapshot);
        run(py, OnSignal::Leave, move |_| {
            let found = pages_of(&urls, |names| snapshot.find(names))?;
            let numbers: Vec<PageId> = found.iter().copied().flatten().collect();
            let mut known = pages(&snapshot, &numbers)?.into_iter();
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
        self.snapshot.bound_l1()
    }

    /// Its number: how many records had been read.
    #[getter]
    fn number(&self) -> u64 {
        self.snapshot.info().counters.records
    }

    /// Latest fetch time of a record, as a datetime in UTC; None: no record has a time.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.snapshot.info().time)
    }

    /// All that is known of it: settings, counts, how it was computed. The specification of snapshots describes it.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        info(py, &self.snapshot)
    }

    /// How many of the first positions are certain: the greatest n so that the first n pages are certainly the n of greatest
    /// PageRank, in some order. None: there is no bound.
    fn certain_top(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let snapshot = Arc::clone(&self.snapshot);
        run(py, OnSignal::Leave, move |_| snapshot.certain_top())
    }

    /// The n most important pages, best first: a list of Page.
    ///
    /// scope: only these pages: "host:NAME", "domain:NAME" or "url:PATTERN" with * for anything, "!" in front for all but
    /// these; or a list of such rules.
    #[pyo3(signature = (n=20, scope=None))]
    fn top(
        &self,
        py: Python<'_>,
        n: usize,
        scope: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Page>> {
        Ranking::top_of(&self.snapshot, py, n, scope)
    }

    /// The page with this URL, in any form, or this opaque name; None: it is not known.
    ///
    /// Each call reads 10 bytes a page of the ranking: ask for many pages with ranks().
    fn rank(&self, py: Python<'_>, url: String) -> PyResult<Option<Page>> {
        Ok(Ranking::ranks_of(&self.snapshot, py, vec![url])?
            .pop()
            .flatten())
    }

    /// The pages with these URLs, in the order given; None where a page is not known.
    fn ranks(&self, py: Python<'_>, urls: Vec<String>) -> PyResult<Vec<Option<Page>>> {
        Ranking::ranks_of(&self.snapshot, py, urls)
    }

    /// The importance of all pages: a NumPy array of float64, of shape (len(ranking),), by page number. They sum to 1.
    fn importance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        needs_numpy(py)?;
        let snapshot = Arc::clone(&self.snapshot);
        let all = run(py, OnSignal::Leave, move |_| {
            snapshot
                .pages()
                .map(|page| Ok(page?.importance))
                .collect::<cashrank::Result<Vec<f64>>>()
        })?;
        Ok(PyArray1::from_vec(py, all))
    }

    /// The ranking as a table in memory, which all libraries that know Arrow take without a copy. For more pages than
    /// memory holds give them the ranking itself, which they read batch by batch.
    fn to_arrow(&self, py: Python<'_>) -> PyResult<Table> {
        let batches = Batches::new(Arc::clone(&self.snapshot));
        let batches = run(py, OnSignal::Leave, move |stop| batches.collect(stop))?;
        Ok(Table::new(batches))
    }

    fn __len__(&self) -> usize {
        self.snapshot.len() as usize
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        let bound = self
            .bound()
            .map_or("None".into(), |bound| format!("{bound:.2e}"));
        format!(
            "Ranking(number={}, pages={}, bound={bound})",
            self.number(),
            self.snapshot.len()
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
        stream(py, Batches::new(Arc::clone(&self.snapshot)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py)
    }
}
