//! Interface between the service and its backend, which knows the answers.
//!
//! Times are in RFC 3339, in UTC. An answer may take time, so each is computed on a thread that may block. Only
//! [`Backend::status`], which is called often, must return quickly.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;

/// Answer, or the reason why there is none.
pub type Result<T> = std::result::Result<T, Problem>;

/// Reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The request is invalid; the text says what would be valid.
    Asked(String),
    /// The requested thing does not exist (yet).
    Unknown(String),
    /// The answer is not available at the moment; the client should retry.
    Later(String),
    /// Reading failed.
    Failed(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Problem::Asked(text)
        | Problem::Unknown(text)
        | Problem::Later(text)
        | Problem::Failed(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for Problem {}

/// Source of the answers.
pub trait Backend: Send + Sync + 'static {
    /// Returns counts, the bound, and the snapshots so far.
    fn status(&self) -> Result<ServiceStatus>;
    /// Returns the names of the questions that [`Backend::answer`] answers; each name is a path.
    fn questions(&self) -> &'static [&'static str];
    /// Answers a question with the given parameters, as JSON.
    fn answer(&self, question: &str, parameters: &[(String, String)]) -> Result<Vec<u8>>;
    /// Returns the newest list of pages to crawl next, best first, without waiting; it may be longer than requested.
    /// `None` while the first list is being made: the service calls again until it is there.
    fn next(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>>;
    /// Returns a URL in the form in which [`Backend::next`] names pages.
    fn canonical(&self, url: &str) -> String;
    /// Prints a message for the operator of the service.
    fn log(&self, text: &str);
}

/// State of the store and of a running ingest.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ServiceStatus {
    /// Version of the program.
    pub version: String,
    /// Directory of the store.
    pub store: String,
    /// Name of the current snapshot; `None` if none is published yet.
    pub snapshot: Option<String>,
    /// Time at which the snapshot was published.
    #[serde(skip)]
    pub snapshot_time: Option<SystemTime>,
    /// Seconds since the snapshot was published.
    pub snapshot_age_seconds: Option<u64>,
    /// Latest counts: those of the running ingest, or else of the snapshot.
    #[serde(flatten)]
    pub counts: Counts,
    /// Certified bound on the error of the current snapshot, in the L1 norm.
    pub bound_l1: Option<f64>,
    /// Number of times that all cash was distributed.
    pub turnovers: f64,
    /// Time of the latest fetch.
    pub last_fetch: Option<String>,
    /// Time of the latest fetch, in seconds since 1970.
    #[serde(skip)]
    pub last_fetch_seconds: Option<i64>,
    /// Size of the store on disk, in bytes.
    pub disk_bytes: Option<u64>,
    /// True while a process writes to the store, this one or another.
    pub ingesting: bool,
    /// Share of what readers see that was read, when it was last computed.
    pub coverage: Option<CoverageSummary>,
    /// Progress of the running ingest, if it is in this process.
    pub reading: Option<IngestStatus>,
    /// Newest snapshots, oldest first.
    pub history: Vec<SnapshotSummary>,
}

/// Counts of what was read so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Number of records.
    pub records: u64,
    /// Number of links.
    pub links: u64,
    /// Number of known pages.
    pub pages: u64,
    /// Number of visited pages; the others are the frontier.
    pub visited: u64,
    /// Number of known pages that were never visited.
    pub frontier: u64,
    /// Number of records of pages that are gone.
    pub gone: u64,
    /// Number of records of unchanged pages.
    pub unchanged: u64,
    /// Number of records of failed fetches.
    pub failed: u64,
    /// Number of records that could not be used, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// Progress of a running ingest.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IngestStatus {
    /// Name of the input that is being read.
    pub input: String,
    /// Number of the input, from 1.
    pub input_number: usize,
    /// Total number of inputs.
    pub inputs: usize,
    /// Number of the pass, from 1.
    pub pass: u32,
    /// Total number of passes.
    pub passes: u32,
    /// Number of compressed bytes read of the input.
    pub read_bytes: u64,
    /// Length of the input; `None` if unknown.
    pub input_bytes: Option<u64>,
    /// Seconds since the ingest began.
    pub seconds: f64,
    /// Number of records read since the ingest began.
    pub records: u64,
    /// Number of links read since the ingest began.
    pub links: u64,
    /// Records per second since the ingest began, at equal intervals.
    pub rates: Vec<Rate>,
}

/// Records per second over an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Rate {
    /// End of the interval, in seconds since the ingest began.
    pub seconds: f64,
    /// Mean rate over the interval.
    pub records_per_second: f64,
}

/// Summary of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SnapshotSummary {
    /// Name of the snapshot.
    pub snapshot: String,
    /// Time at which it was published.
    pub made: Option<String>,
    /// Number of records read until the snapshot.
    pub records: u64,
    /// Number of known pages.
    pub pages: u64,
    /// Number of visited pages.
    pub visited: u64,
    /// Certified bound on the error, in the L1 norm.
    pub bound_l1: Option<f64>,
}

/// Bounds on the share of what readers see that was read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CoverageSummary {
    /// Number of records read until the bounds were computed.
    pub records: u64,
    /// Lower bound on the share.
    pub at_least: f64,
    /// Upper bound on the share.
    pub at_most: f64,
}

/// Request for pages to crawl next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextQuery {
    /// Number of pages.
    pub n: usize,
    /// All other options by the names of `cashrank next`, without the dashes; a name may be repeated.
    pub options: Vec<(String, String)>,
}

/// Pages to crawl next, as of a snapshot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NextList {
    /// Name of the snapshot.
    pub snapshot: String,
    /// Identifier that no list of another snapshot has; ASCII, without quotes.
    pub version: String,
    /// Number of records read until the snapshot.
    pub records: u64,
    /// Time at which the snapshot was made; `None` if unknown.
    pub made: Option<SystemTime>,
    /// Pages, best first.
    pub pages: Vec<NextPage>,
}

/// Page to crawl.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NextPage {
    /// URL or name.
    pub url: String,
    /// Score by the strategy: higher comes first.
    pub score: f64,
}
