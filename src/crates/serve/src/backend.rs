//! What the service asks of whoever starts it, and the answers.
//!
//! Times are in RFC 3339, in UTC. An answer may take time: each is asked for on a thread that may wait, but
//! [`Backend::status`], which is asked for often, must not take long.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;

/// An answer, or why there is none.
pub type Result<T> = std::result::Result<T, Problem>;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// What was asked for makes no sense; the text says what would.
    Asked(String),
    /// There is no such thing (yet).
    Unknown(String),
    /// There is no answer just now; ask again.
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

/// Where answers come from.
pub trait Backend: Send + Sync + 'static {
    /// Counts, the bound, the snapshots so far.
    fn status(&self) -> Result<ServiceStatus>;
    /// The names of the questions that [`Backend::answer`] answers: each is asked at the path of its name.
    fn questions(&self) -> &'static [&'static str];
    /// The answer to a question, with these parameters, as JSON.
    fn answer(&self, question: &str, parameters: &[(String, String)]) -> Result<Vec<u8>>;
    /// The pages to crawl next, best first: the newest list that there is, at once; it may have more pages than were asked
    /// for. `None`: the first list is being made; it is asked for again until it is there.
    fn next(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>>;
    /// A URL in the form in which [`Backend::next`] names pages.
    fn canonical(&self, url: &str) -> String;
    /// Something for whoever runs the service to read.
    fn log(&self, text: &str);
}

/// How things stand.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ServiceStatus {
    /// Version of the program.
    pub version: String,
    /// The store's directory.
    pub store: String,
    /// Name of the current snapshot; `None`: none is published yet.
    pub snapshot: Option<String>,
    /// When it was published.
    #[serde(skip)]
    pub snapshot_time: Option<SystemTime>,
    /// Seconds since it was published.
    pub snapshot_age_seconds: Option<u64>,
    /// Counts, as of what is newest: the running ingest, else the snapshot.
    #[serde(flatten)]
    pub counts: Counts,
    /// The certified bound on the error of the current snapshot, in the L1 norm.
    pub bound_l1: Option<f64>,
    /// How often all cash was passed on.
    pub turnovers: f64,
    /// Latest fetch.
    pub last_fetch: Option<String>,
    /// Time in seconds since 1970.
    #[serde(skip)]
    pub last_fetch_seconds: Option<i64>,
    /// Bytes of the store on disk.
    pub disk_bytes: Option<u64>,
    /// Whether a process writes to the store, this one or another.
    pub ingesting: bool,
    /// How much of what readers see was read, as it was known when that was asked for last.
    pub coverage: Option<CoverageSummary>,
    /// The running ingest, if it is in this process.
    pub reading: Option<IngestStatus>,
    /// Returns the newest `n` snapshots, oldest first.
    pub history: Vec<SnapshotSummary>,
}

/// Counts of what was read so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Records.
    pub records: u64,
    /// Links.
    pub links: u64,
    /// Pages known.
    pub pages: u64,
    /// Pages visited; the others are the frontier.
    pub visited: u64,
    /// Pages known that were never visited.
    pub frontier: u64,
    /// Records of pages that are gone.
    pub gone: u64,
    /// Records of unchanged pages.
    pub unchanged: u64,
    /// Records of fetches that failed.
    pub failed: u64,
    /// Records that could not be used, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// A running ingest.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IngestStatus {
    /// What is being read.
    pub input: String,
    /// Its number, from 1.
    pub input_number: usize,
    /// Inputs in all.
    pub inputs: usize,
    /// The pass, from 1.
    pub pass: u32,
    /// Passes in all.
    pub passes: u32,
    /// Compressed bytes read of the input.
    pub read_bytes: u64,
    /// Its length, if that is known.
    pub input_bytes: Option<u64>,
    /// Seconds since the ingest began.
    pub seconds: f64,
    /// Records read since.
    pub records: u64,
    /// Links read since.
    pub links: u64,
    /// Records a second since the ingest began, at equal steps of time.
    pub rates: Vec<Rate>,
}

/// Records a second over a step of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Rate {
    /// When the step ended, in seconds since the ingest began.
    pub seconds: f64,
    /// The mean rate over it.
    pub records_per_second: f64,
}

/// A snapshot, in few words.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SnapshotSummary {
    /// Its name.
    pub snapshot: String,
    /// When it was published.
    pub made: Option<String>,
    /// Records until then.
    pub records: u64,
    /// Pages known.
    pub pages: u64,
    /// Pages visited.
    pub visited: u64,
    /// Bound on its error.
    pub bound_l1: Option<f64>,
}

/// Bounds on how much of what readers see was read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CoverageSummary {
    /// Records until then.
    pub records: u64,
    /// At least this share.
    pub at_least: f64,
    /// And at most this.
    pub at_most: f64,
}

/// Which pages to crawl next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextQuery {
    /// How many.
    pub n: usize,
    /// All else, by the names of the options of `cashrank next`, without the dashes; a name may come twice.
    pub options: Vec<(String, String)>,
}

/// The pages to crawl next, as of a snapshot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NextList {
    /// Name of the snapshot.
    pub snapshot: String,
    /// What no list of another snapshot has; ASCII, without quotes.
    pub version: String,
    /// Records until then.
    pub records: u64,
    /// When the snapshot was made; `None`: not known.
    pub made: Option<SystemTime>,
    /// The pages, best first.
    pub pages: Vec<NextPage>,
}

/// A page to crawl.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NextPage {
    /// Its URL or name.
    pub url: String,
    /// The strategy's score: higher comes first.
    pub score: f64,
}
