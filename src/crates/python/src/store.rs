//! A store as a Python object: adds records, and answers questions.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cashrank::{Digest, Error, Options, PageId, What};
use cashrank_graph::engine::ShardCounts;
use cashrank_graph::metrics::moved::MoveOptions;
use cashrank_graph::rank::Goal;
use cashrank_graph::rank::computing::Computing;
use cashrank_graph::rank::measures::{Uses, measure};
use cashrank_graph::sites::Level;
use cashrank_steer::answers::{Ends, HistoryOptions, history, pages_of};
use cashrank_store::snapshot::{
    LevelRanking, RankingName, Snapshot, SnapshotSelector, Watcher, current_name, moved,
    publish_computed,
};
use cashrank_store::store::{RealDisk, open_view_to_publish};
use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::answers::{Comparison, Page, PyCandidate, PyMoment, SnapshotInfo, as_dict, pages};
use crate::batch::{Columns, add_all};
use crate::errors::{Raise, closed, invalid};
use crate::graph::{Wanted, edges_of, needs_numpy};
use crate::ingest::{Files, ingest_files, paths};
use crate::next;
use crate::ranking::{Ranking, chosen_of, name_of};
use crate::record::{OwnedRecord, time};
use crate::work::{OnSignal, processors, run};
use crate::writer::Shared;

/// Bound to settle a ranking to: the argument `settle`.
struct Settled(Goal);

impl FromPyObject<'_, '_> for Settled {
    type Error = PyErr;

    fn extract(bound: Borrowed<'_, '_, PyAny>) -> PyResult<Settled> {
        let until: f64 = bound.extract()?;
        if until > 0.0 && until.is_finite() {
            return Ok(Settled(until.into()));
        }
        Err(invalid(format!(
            "settle={until}: a number greater than 0, or None"
        )))
    }
}

/// A store: records of a crawl, and rankings of its pages. Created by open(); a with statement closes it at its end.
///
/// len(store), store.bound and the answers of top(), rank(), next() and others are those of the current ranking, which
/// was published last. All methods may be called from any thread: those that write wait for each other.
#[pyclass(frozen, weakref, module = "cashrank")]
pub struct Store {
    store: cashrank::Store,
    writer: Option<Arc<Shared>>,
    closed: AtomicBool,
    current: Mutex<Option<Arc<LevelRanking>>>,
}

impl Store {
    /// Opens an existing store for reading only.
    pub fn reading(py: Python<'_>, path: PathBuf) -> PyResult<Store> {
        let store = run(py, OnSignal::Leave, move |_| cashrank::Store::open(path))?;
        Ok(Store::new(store, None))
    }

    /// Opens a store for adding records; creates it if it does not exist.
    pub fn adding(py: Python<'_>, path: PathBuf, options: Options) -> PyResult<Store> {
        let (store, writer) = run(py, OnSignal::Wait, move |_| {
            let writer = Shared::open(path.clone(), options)?;
            Ok((cashrank::Store::open(path)?, writer))
        })?;
        Ok(Store::new(store, Some(writer)))
    }

    fn new(store: cashrank::Store, writer: Option<Arc<Shared>>) -> Store {
        Store {
            store,
            writer,
            closed: AtomicBool::new(false),
            current: Mutex::default(),
        }
    }

    fn check_open(&self) -> PyResult<()> {
        if self.is_closed() {
            return Err(closed(format!(
                "{}: the store is closed: open it again",
                self.store.dir().display()
            )));
        }
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn writer(&self) -> PyResult<&Arc<Shared>> {
        self.check_open()?;
        let text =
            "the store was opened with mode=\"r\", to ask only: open it with mode=\"a\" to add";
        self.writer.as_ref().ok_or_else(|| invalid(text))
    }

    /// Returns the selected ranking, by default the current one, which stays open with the data read from it.
    fn snapshot(
        &self,
        py: Python<'_>,
        which: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Arc<LevelRanking>> {
        self.check_open()?;
        let store = self.store.clone();
        if let Some(which) = which {
            let which: SnapshotSelector = snapshot_name(which)?
                .parse()
                .map_err(|why: String| invalid(why))?;
            let opened = run(py, OnSignal::Leave, move |_| {
                Snapshot::of(&RealDisk, store.dir(), Some(which))
            })?;
            return Ok(Arc::new(LevelRanking::of_pages(opened)));
        }
        let known = self.known();
        let current = py.detach(move || {
            let name = current_name(&RealDisk, store.dir())?;
            let is_current = |known: &Arc<LevelRanking>| {
                let file = known.path().file_name();
                name.as_ref()
                    .is_some_and(|name| file == Some(name.as_ref()))
            };
            match known.filter(is_current) {
                Some(known) => Ok(known),
                None => Ok(Arc::new(LevelRanking::of_pages(store.snapshot()?))),
            }
        });
        let current = current.raise()?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&current));
        Ok(current)
    }

    /// Returns the ranking of this level and measure for the selected snapshot.
    fn level(
        &self,
        py: Python<'_>,
        which: Option<&Bound<'_, PyAny>>,
        name: RankingName,
    ) -> PyResult<Arc<LevelRanking>> {
        let usual = self.snapshot(py, which)?;
        if name.is_usual() {
            return Ok(usual);
        }
        let opened = run(py, OnSignal::Leave, move |_| {
            let snapshot = Snapshot::open(&RealDisk, usual.snapshot().path())?;
            LevelRanking::open(&RealDisk, snapshot, &name, None)
        })?;
        Ok(Arc::new(opened))
    }

    fn known(&self) -> Option<Arc<LevelRanking>> {
        let known = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// Returns the current ranking; `None` if none was published yet.
    fn published(&self, py: Python<'_>) -> PyResult<Option<Arc<LevelRanking>>> {
        self.check_open()?;
        let store = self.store.clone();
        let name = py.detach(move || current_name(&RealDisk, store.dir()));
        match name.raise()? {
            Some(_) => self.snapshot(py, None).map(Some),
            None => Ok(None),
        }
    }
}

/// Converts a snapshot's number, or a time (a text, a date or a datetime), to text.
fn snapshot_name(given: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = given.py();
    if given.hasattr(intern!(py, "isoformat"))? {
        return given.call_method0(intern!(py, "isoformat"))?.extract();
    }
    Ok(given.str()?.to_string())
}

/// Returns the computation of a measure; an absent damping is later taken from the store.
fn computing(
    name: &str,
    level: Level,
    teleport: Option<&Bound<'_, PyAny>>,
    damping: Option<f64>,
    until: Option<f64>,
) -> PyResult<Computing> {
    let measure = measure(name).raise()?;
    for (name, uses, given) in [
        ("damping", Uses::Damping, damping),
        ("until", Uses::Until, until),
    ] {
        if given.is_some() && !measure.has(uses) {
            let text = format!("{name}: {} has no such parameter", measure.name);
            return Err(invalid(text));
        }
    }
    let mut computing = Computing::new(measure, level);
    computing.chosen = teleport.map(chosen_of).transpose()?.map(Arc::new);
    computing.options.until = until.unwrap_or(computing.options.until);
    computing.options.threads = processors();
    computing.check().raise()?;
    Ok(computing)
}

#[pymethods]
impl Store {
    /// Add one record: the result of fetching a page.
    ///
    /// url: the page's URL (str or bytes), in any form; with names="opaque" its name.
    /// links: the URLs that the page links to, in document order, any iterable of str or of pairs (url, rel) where rel is the
    /// link's rel attribute or None. They may be relative and may repeat.
    /// status: the HTTP status; 404 and 410: the page is gone, 304: its links are unknown, other 4xx and 5xx, and a negative
    /// number of the crawler's own: the fetch failed.
    /// fetched_at: time of the fetch: seconds since 1970, an aware datetime, or text like "2026-11-24T12:00:00Z".
    /// redirect: target of a 3xx response. It is then the page's only link.
    /// base: base of relative links; None: url.
    /// digest: any digest of the content, as text; two visits with digests show whether the page changed.
    /// unchanged: True if the page was found unchanged: its links are unknown, not none.
    ///
    /// Returns None, or the reason why the record was not used: "bad-url", "out-of-scope", "other-shard" and others,
    /// which store.counters counts. Records are applied in groups, and durable after checkpoint(), publish() or
    /// close(). Raises OutOfRoom.
    #[pyo3(signature = (url, links=None, *, status=None, fetched_at=None, redirect=None, base=None, digest=None, unchanged=false))]
    #[expect(
        clippy::too_many_arguments,
        reason = "a record has as many fields, and each is a keyword"
    )]
    fn add(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        links: Option<&Bound<'_, PyAny>>,
        status: Option<i32>,
        fetched_at: Option<&Bound<'_, PyAny>>,
        redirect: Option<&Bound<'_, PyAny>>,
        base: Option<&Bound<'_, PyAny>>,
        digest: Option<&str>,
        unchanged: bool,
    ) -> PyResult<Option<&'static str>> {
        let writer = self.writer()?;
        let mut taken = OwnedRecord::new(url, base, redirect, links)?;
        taken.status = status;
        taken.fetched_at = fetched_at.map(time).transpose()?;
        taken.digest = digest.map(Digest::of_text).unwrap_or_default();
        taken.unchanged = unchanged;
        let turn = writer.take(py)?;
        let what = turn.brief(py, move |writer| writer.push(&taken.record()))?;
        Ok(match what {
            What::Skipped(reason) => Some(reason.name()),
            What::OutOfScope => Some("out-of-scope"),
            What::OtherShard => Some("other-shard"),
            _ => None,
        })
    }

    /// Add all records of a table: any object with __arrow_c_stream__, such as a table of pyarrow, a DataFrame of
    /// Polars or pandas, or a reader of batches, which is read batch by batch.
    ///
    /// url, links, status, fetched_at, redirect, digest: names of columns. url (string or binary) and links (list of
    /// string, or of struct with url and rel) are required; each of the others is optional unless its name is given.
    /// status: integers; fetched_at: a timestamp, seconds since 1970, or text as for add(). Null means unknown; a row
    /// without url counts as skipped.
    ///
    /// Returns the number of records added, including those not used. Other columns are ignored.
    #[pyo3(signature = (table, *, url="url", links="links", status=None, fetched_at=None, redirect=None, digest=None))]
    #[expect(clippy::too_many_arguments, reason = "a keyword for each column")]
    fn add_batch(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        url: &str,
        links: &str,
        status: Option<&str>,
        fetched_at: Option<&str>,
        redirect: Option<&str>,
        digest: Option<&str>,
    ) -> PyResult<u64> {
        let writer = self.writer()?;
        let name = |given: Option<&str>| given.map(str::to_owned);
        let columns = Columns {
            url: url.to_owned(),
            links: links.to_owned(),
            status: name(status),
            fetched_at: name(fetched_at),
            redirect: name(redirect),
            digest: name(digest),
        };
        add_all(py, writer, table, columns)
    }

    /// Make all added records durable. Returns the number of the commit.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<u64> {
        let turn = self.writer()?.take(py)?;
        turn.long(py, |writer, _| writer.checkpoint())
    }

    /// Make all added records durable, rank all pages, and publish this as the current ranking, which is returned.
    ///
    /// settle: the certified bound on the L1 distance to exact PageRank to reach, if links are kept; None: estimate
    /// importance from a window of the crawl, with the bound of that. Default: 0.01, or as little, down to 1e-6, as
    /// takes about half a second. Ctrl-C ends the call without a new ranking.
    #[pyo3(signature = (settle=Some(Settled(Goal::default()))), text_signature = "($self, settle=0.01)")]
    fn publish(&self, py: Python<'_>, settle: Option<Settled>) -> PyResult<Ranking> {
        let settle = settle.map(|settled| settled.0);
        let turn = self.writer()?.take(py)?;
        let published = turn.long(py, move |writer, stop| {
            writer.publish_watched(settle, Watcher::new(Arc::clone(&stop.0)))
        })?;
        match published {
            Some(snapshot) => Ok(Ranking {
                ranking: Arc::new(LevelRanking::of_pages(snapshot)),
            }),
            // The settling was stopped by a signal, whose exception was raised before.
            None => Err(invalid("the ranking was stopped")),
        }
    }

    /// Read files of crawl records, as ``cashrank ingest`` does, and publish a ranking.
    ///
    /// inputs: one or more paths: files of any format that the command reads, plain, gzip or zstd, or the folder of a
    /// graph; Parquet is for add_batch(). Files that were read before are recognised by their content, and skipped.
    /// format: name of their format, as for ``--format``; None: recognised from the content of each.
    /// settle: as for publish().
    /// leave_unfinished: True accepts an earlier file that was not read to its end, as far as it was read.
    ///
    /// Returns the number of records used. store.counters counts the others by reason, and a UserWarning reports them.
    /// Ctrl-C ends the call at a checkpoint: until the same call is repeated and completes, nothing else can be added.
    #[pyo3(signature = (inputs, *, format=None, settle=Some(Settled(Goal::default())), leave_unfinished=false),
        text_signature = "($self, inputs, *, format=None, settle=0.01, leave_unfinished=False)")]
    fn ingest(
        &self,
        py: Python<'_>,
        inputs: &Bound<'_, PyAny>,
        format: Option<&str>,
        settle: Option<Settled>,
        leave_unfinished: bool,
    ) -> PyResult<u64> {
        let files = Files {
            inputs: paths(inputs)?,
            format: format.map(str::parse).transpose().raise()?,
            settle: settle.map(|settled| settled.0),
            leave_unfinished,
        };
        ingest_files(py, self.writer()?, files)
    }

    /// Rank the pages of the current ranking, or their sites, by a measure, as ``cashrank compute`` does. The ranking
    /// is stored with the current one, where ranking(), top() and others find it, and returned.
    ///
    /// measure: "harmonic", "hits-authorities" and others. level: as for ranking().
    /// teleport: for "personalised", the pages at which surfers begin: URLs, or rules like "host:NAME", as a list, or
    /// as a dictionary from these to weights, which are whole numbers.
    /// damping, until: as for ``cashrank compute``; None: the store's damping, and 1e-6.
    #[pyo3(signature = (measure, *, level="page", teleport=None, damping=None, until=None))]
    fn compute(
        &self,
        py: Python<'_>,
        measure: &str,
        level: &str,
        teleport: Option<&Bound<'_, PyAny>>,
        damping: Option<f64>,
        until: Option<f64>,
    ) -> PyResult<Ranking> {
        let writer = self.writer()?;
        let name = name_of(level, Some(measure))?;
        let computing = computing(measure, name.level, teleport, damping, until)?;
        let computed = writer.take(py)?.released(py, move |path, _, stop| {
            let view = open_view_to_publish(&RealDisk, path)?;
            let mut computing = computing;
            computing.options.damping =
                damping.unwrap_or(view.identity.settings.config.damping_asked());
            let watcher = Watcher::new(Arc::clone(&stop.0));
            publish_computed(&RealDisk, &view, &computing, &watcher)
        })?;
        // The computation was stopped by a signal, whose exception was raised before.
        let (_, info) = computed.ok_or_else(|| invalid("the ranking was stopped"))?;
        next::warn(py, "teleport", info.skipped)?;
        let ranking = self.level(py, None, name)?;
        Ok(Ranking { ranking })
    }

    /// Make all added records durable, and close the store. Closing it twice does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_closed() {
            return Ok(());
        }
        let turn = match &self.writer {
            Some(writer) if !writer.is_closed() => Some(writer.take(py)?),
            _ => None,
        };
        self.closed.store(true, Ordering::Relaxed);
        turn.map_or(Ok(()), |turn| turn.close(py))
    }

    /// True if the store was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed()
    }

    /// Mode in which the store was opened: "a" to add, "r" to read.
    #[getter]
    fn mode(&self) -> &'static str {
        if self.writer.is_some() { "a" } else { "r" }
    }

    /// Directory of the store.
    #[getter]
    fn path(&self) -> PathBuf {
        self.store.dir().to_owned()
    }

    /// Number of records applied since the store was created, including those not used. Directly after opening, these
    /// are the durable ones.
    #[getter]
    fn pushed(&self, py: Python<'_>) -> PyResult<u64> {
        let turn = self.writer()?.take(py)?;
        turn.brief(py, |writer| Ok(writer.pushed()))
    }

    /// Counts by name: records, skipped, links and others. In mode "a", of all records applied; else, of the current
    /// ranking.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let counters = if self.writer.is_some() {
            let turn = self.writer()?.take(py)?;
            turn.brief(py, |writer| Ok(writer.counters().clone()))?
        } else {
            self.snapshot(py, None)?.snapshot().info().counters.clone()
        };
        let dict = as_dict(py, &counters)?;
        let skipped = PyDict::new(py);
        for (reason, count) in cashrank::Reason::ALL.iter().zip(counters.skipped) {
            skipped.set_item(reason.name(), count)?;
        }
        dict.set_item("skipped", skipped)?;
        if counters.shard != ShardCounts::default() {
            dict.set_item("shard", as_dict(py, &counters.shard)?)?;
        }
        Ok(dict)
    }

    /// The certified bound on the L1 distance between the current ranking and exact PageRank, 0 to 2; None if there
    /// is no ranking yet, or no bound.
    #[getter]
    fn bound(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.published(py)?.and_then(|snapshot| snapshot.bound_l1()))
    }

    /// The current ranking; or an older one that the store keeps, by its number, or the last one before a time: a text
    /// like "2026-11-01", a date or a datetime. It does not change when others are published.
    ///
    /// level: "page", or sites: "host", "barehost" (without www.), "domain" or "prefix:N". measure: the ranking by a
    /// measure that ``cashrank compute`` made, like "harmonic"; None: by importance; a site's is the sum of its pages'.
    /// Raises NotFound if the measure was not computed.
    ///
    /// A ranking of sites by importance is computed by the call, from all pages, and held in memory.
    #[pyo3(signature = (snapshot=None, *, level="page", measure=None))]
    fn ranking(
        &self,
        py: Python<'_>,
        snapshot: Option<&Bound<'_, PyAny>>,
        level: &str,
        measure: Option<&str>,
    ) -> PyResult<Ranking> {
        let ranking = self.level(py, snapshot, name_of(level, measure)?)?;
        Ok(Ranking { ranking })
    }

    /// The rankings that the store keeps, oldest first: a list of SnapshotInfo.
    fn snapshots(&self, py: Python<'_>) -> PyResult<Vec<SnapshotInfo>> {
        self.check_open()?;
        let store = self.store.clone();
        let kept = run(py, OnSignal::Leave, move |_| store.snapshots())?;
        Ok(kept.iter().map(SnapshotInfo::from).collect())
    }

    /// The n most important pages of the current ranking, best first: see Ranking.top(). level, measure: select
    /// another ranking, as for ranking(), which each call opens: for several questions, keep what ranking() returns.
    #[pyo3(signature = (n=20, scope=None, *, without_gone=false, level="page", measure=None))]
    fn top(
        &self,
        py: Python<'_>,
        n: usize,
        scope: Option<&Bound<'_, PyAny>>,
        without_gone: bool,
        level: &str,
        measure: Option<&str>,
    ) -> PyResult<Vec<Page>> {
        let name = name_of(level, measure)?;
        Ranking::top_of(&self.level(py, None, name)?, py, n, scope, without_gone)
    }

    /// The page with this URL, or the site of this name, in the current ranking; None if it is unknown. See
    /// Ranking.rank(). level, measure: as for top().
    #[pyo3(signature = (url, *, level="page", measure=None))]
    fn rank(
        &self,
        py: Python<'_>,
        url: String,
        level: &str,
        measure: Option<&str>,
    ) -> PyResult<Option<Page>> {
        let mut found = self.ranks(py, vec![url], level, measure)?;
        Ok(found.pop().flatten())
    }

    /// The pages with these URLs in the current ranking, in the order given; None for unknown ones. level, measure:
    /// as for top().
    #[pyo3(signature = (urls, *, level="page", measure=None))]
    fn ranks(
        &self,
        py: Python<'_>,
        urls: Vec<String>,
        level: &str,
        measure: Option<&str>,
    ) -> PyResult<Vec<Option<Page>>> {
        let name = name_of(level, measure)?;
        Ranking::ranks_of(&self.level(py, None, name)?, py, urls)
    }

    /// The ranks of the page with this URL, or of the site of this name, in all rankings that the store keeps, oldest first: a
    /// list of Moment, perhaps empty. level, measure: as for ranking(); rankings without the measure are left out.
    #[pyo3(signature = (url, *, level="page", measure=None))]
    fn history(
        &self,
        py: Python<'_>,
        url: String,
        level: &str,
        measure: Option<&str>,
    ) -> PyResult<Vec<PyMoment>> {
        self.check_open()?;
        let options = HistoryOptions {
            ranking: name_of(level, measure)?,
            ..HistoryOptions::default()
        };
        let store = self.store.clone();
        let found = run(py, OnSignal::Leave, move |_| {
            history(&RealDisk, store.dir(), &[url], &options, &mut Err)
        })?;
        let known = found.iter().filter(|history| history.known);
        Ok(known
            .flat_map(|history| history.history.iter().map(PyMoment::from))
            .collect())
    }

    /// The pages that a page links to, as its last visit found them, best rank first: a list of Page, empty if the page
    /// was not crawled.
    ///
    /// n: maximum number. incoming: True lists the pages that link to it instead, which reads all kept links once.
    /// Raises NotFound if the page is not known, or the store keeps no links.
    #[pyo3(signature = (url, n=None, *, incoming=false))]
    fn links(
        &self,
        py: Python<'_>,
        url: String,
        n: Option<usize>,
        incoming: bool,
    ) -> PyResult<Vec<Page>> {
        self.check_open()?;
        let store = self.store.clone();
        run(py, OnSignal::Leave, move |_| {
            // Each call opens the snapshot, as in edges().
            let ranking = LevelRanking::of_pages(store.snapshot()?);
            let snapshot = ranking.snapshot();
            let asked = std::slice::from_ref(&url);
            let found = pages_of(asked, |names| snapshot.find(names))?;
            let page = found.into_iter().flatten().next();
            let page = page.ok_or_else(|| Error::Missing(format!("{url}: not known")))?;
            let ends = if incoming {
                Ends::to(&snapshot.rows()?, page.0 as u32, u64::MAX)?
            } else {
                Ends::of(snapshot, page.0 as u32)?
            };
            let ranked = ends.ranked(snapshot)?.into_iter();
            let ranked = ranked.take(n.unwrap_or(usize::MAX));
            let numbers: Vec<PageId> = ranked.map(|(page, _)| page).collect();
            pages(&ranking, ranking.at(&numbers)?)
        })
    }

    /// The kept links as of the current ranking: two NumPy arrays of uint32, of shape (links,), with the page numbers
    /// of sources and targets. Page i is row i of ranking(). Each link appears once.
    ///
    /// level: "page", or the links between sites, of which site i is row i of ranking(level=level): "host", "barehost",
    /// "domain" or "prefix:N". weights: a third array, of uint64, has the weight of each link. A link between sites has
    /// the number of links between their pages, or with site_links="once" 1. Links within a site do not count.
    ///
    /// Takes 8 bytes of memory per link, with weights 16; for sites, 16 more per pair of linked sites, and 4 per page.
    /// Raises NotFound if the store keeps no links.
    #[pyo3(signature = (level="page", *, weights=false, site_links="count"))]
    fn edges<'py>(
        &self,
        py: Python<'py>,
        level: &str,
        weights: bool,
        site_links: &str,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.check_open()?;
        needs_numpy(py)?;
        let wanted = Wanted {
            level: level.parse().raise()?,
            site_links: site_links.parse().raise()?,
            weights,
        };
        let store = self.store.clone();
        let found = run(py, OnSignal::Leave, move |stop| {
            // Each call opens the snapshot: rows may have been compacted into another file since.
            edges_of(&store.snapshot()?, &wanted, stop)
        })?;
        let sources = PyArray1::from_vec(py, found.sources);
        let targets = PyArray1::from_vec(py, found.targets);
        if weights {
            let weights = PyArray1::from_vec(py, found.weights);
            return (sources, targets, weights).into_pyobject(py);
        }
        (sources, targets).into_pyobject(py)
    }

    /// The pages to crawl next, best first: a list of at most n Candidate.
    ///
    /// exclude: URLs, pages or candidates to leave out, such as those in progress.
    /// seeds: URLs to list first unless they were fetched before; with seeds, no ranking is required.
    ///
    /// Further keywords are those of ``cashrank next --help``, with _ for -: strategy="forecast", refetch=True, budget=0.7
    /// (the share of pages not fetched yet), per_host=10, per_domain=100, scope=["domain:example.org"], known_hosts=True,
    /// older_than=timedelta(days=30), focus={"url:*/news/*": 0.3}, retry_after="6h", max_failures=3, as_of="now".
    #[pyo3(signature = (n=100, *, exclude=None, seeds=None, **options))]
    fn next(
        &self,
        py: Python<'_>,
        n: usize,
        exclude: Option<&Bound<'_, PyAny>>,
        seeds: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<PyCandidate>> {
        self.check_open()?;
        let mut options = next::options(options)?;
        options.count = n;
        let (excluded, seeds) = (next::urls(exclude)?, next::urls(seeds)?);
        let store = self.store.clone();
        let (found, skipped) = run(py, OnSignal::Leave, move |_| {
            let lines = |urls: Vec<String>| urls.into_iter().map(|url| Ok(url.into_bytes()));
            let skipped = options.name(store.dir(), lines(excluded), lines(seeds), None)?;
            Ok((store.next(&options)?, skipped))
        })?;
        next::warn(py, "exclude", skipped.excluded)?;
        next::warn(py, "seeds", skipped.seeds)?;
        Ok(found.into_iter().map(PyCandidate::from).collect())
    }

    /// Compare two rankings: a Comparison with the pages that rose, fell, appeared or vanished.
    ///
    /// since: the earlier ranking, as for ranking(). until: the later one; None: the current one.
    /// count: pages in each list. by: what makes a change large: "relative" (to the importance before), "change" (of importance) or
    /// "rank", which lists only pages whose importance changed in the same direction.
    /// top: N: only pages among the first N of either ranking; None: all. certain_only: of the pages that rose
    /// and fell, only those whose change of importance is more than the bounds; none if a ranking has no bound.
    #[pyo3(signature = (since, until=None, *, count=20, by="relative", top=1_000, certain_only=false))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword")]
    fn compare(
        &self,
        py: Python<'_>,
        since: &Bound<'_, PyAny>,
        until: Option<&Bound<'_, PyAny>>,
        count: usize,
        by: &str,
        top: Option<u64>,
        certain_only: bool,
    ) -> PyResult<Comparison> {
        let (left, right) = (self.snapshot(py, Some(since))?, self.snapshot(py, until)?);
        let wanted = MoveOptions {
            count,
            by: by
                .parse()
                .map_err(|why: cashrank::Error| invalid(format!("by={why}")))?,
            top: top.unwrap_or(u64::MAX),
            certain_only,
        };
        let found = run(py, OnSignal::Leave, move |_| {
            moved(left.snapshot(), right.snapshot(), wanted)
        })?;
        Comparison::of(py, found)
    }

    /// Read the whole store, and raise Damaged if any checksum or invariant fails.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.check_open()?;
        let store = self.store.clone();
        run(py, OnSignal::Leave, move |_| store.verify())
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().check_open()?;
        Ok(slf)
    }

    /// Makes all added records durable, also if the block raised.
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self
            .published(py)?
            .map_or(0, |snapshot| snapshot.len() as usize))
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let path = PyString::new(py, &self.store.dir().to_string_lossy()).repr()?;
        let closed = if self.is_closed() { ", closed" } else { "" };
        let text = format!("Store({path}, mode='{}'{closed})", self.mode());
        Ok(PyString::new(py, &text))
    }
}
