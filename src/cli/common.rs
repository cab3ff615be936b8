//! Helpers shared by the subcommands: exit codes, output, common options, values of options, formatting of numbers.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use cashrank::{Error, Limits};
pub use cashrank_base::model::{Exit, counted, thousands};
use cashrank_base::model::{name_settings, require_feature};
use cashrank_crawl::decode::{Time, utc};
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::open_plain;
use cashrank_graph::engine::Span;
use cashrank_ingest::ingest::Every;
use cashrank_steer::answers::SkippedLines;
use cashrank_steer::schedule::Taker;
pub use cashrank_store::memory::bytes;
use cashrank_store::memory::{available, check_room};
use cashrank_store::snapshot::export::{LEAST_SORTING, MOST_SORTING};
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

pub fn exit_of(error: &anyhow::Error) -> Exit {
    match error.downcast_ref::<Error>() {
        Some(error) => Exit::from(error),
        None if error.downcast_ref::<io::Error>().is_some() => Exit::Io,
        None => Exit::Refused,
    }
}

/// Returns the exit code of damage if any of the errors is damage, or else that of the first error.
pub fn worst_of<'e>(errors: impl IntoIterator<Item = &'e Error>) -> Exit {
    let exits: Vec<Exit> = errors.into_iter().map(Exit::from).collect();
    let damage = exits.iter().find(|exit| **exit == Exit::Damaged);
    *damage.or(exits.first()).unwrap_or(&Exit::Done)
}

pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = match cause.downcast_ref::<Error>() {
            Some(Error::Io { source, .. }) => Some(source),
            _ => cause.downcast_ref::<io::Error>(),
        };
        io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

pub fn print(write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<Exit> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    // Errors of reading a store name its file; errors of writing to standard output name nothing.
    written.map_err(|error| match as_io(error) {
        Ok(error) => Error::io("standard output", "write")(error).into(),
        Err(other) => other,
    })?;
    Ok(Exit::Done)
}

/// Converts an error of writing, directly or through serde_json, to an `io::Error`; returns any other error as it is.
fn as_io(error: anyhow::Error) -> Result<io::Error, anyhow::Error> {
    let error = error.downcast::<io::Error>();
    error.or_else(|error| error.downcast::<serde_json::Error>().map(io::Error::from))
}

pub fn print_json(value: &impl serde::Serialize) -> anyhow::Result<Exit> {
    print(|out| write_json(out, value))
}

pub fn write_json(out: &mut dyn Write, value: &impl serde::Serialize) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    Ok(out.write_all(b"\n")?)
}

/// Prints a message on standard error; work continues even if that fails.
pub fn to_stderr(what: fmt::Arguments<'_>) {
    let line = as_options(&format!("{what}\n"));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Returns a message of the library with settings named as options.
pub fn as_options(message: &str) -> String {
    name_settings(message, |name| format!("--{}", name.replace('_', "-")))
}

/// Prints to standard error like `eprintln!`, by [`to_stderr`].
macro_rules! say {
    ($($what:tt)*) => { $crate::cli::common::to_stderr(format_args!($($what)*)) };
}
pub(crate) use say;

/// Returns a flag that the first signal sets; the second signal ends the process at once.
pub fn stop_on_signal() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The order matters: at the first signal the conditional shutdown must find the flag unset.
        flag::register_conditional_shutdown(signal, Exit::Stopped as i32, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Makes a write beyond the limit on file size (`ulimit -f`) return an error, which would otherwise kill the process.
pub fn survive_file_size_limit() {
    let _ = flag::register(SIGXFSZ, Arc::default());
}

pub fn threads(asked: Option<u64>) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, |n| n.get());
    asked.map_or_else(processors, |n| n.min(1024) as usize)
}

#[derive(clap::Args)]
pub struct StoreArg {
    /// The store's directory [default: the environment variable CASHRANK_STORE].
    #[arg(long, value_name = "DIR", env = STORE, hide_env = true)]
    pub store: PathBuf,
}

pub const STORE: &str = "CASHRANK_STORE";

/// Returns the store that is named or in the environment; `None` if inputs are given.
pub fn store_unless(inputs: &[OsString], store: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    if !inputs.is_empty() {
        return Ok(None);
    }
    let named = store.map(PathBuf::from);
    let store = named.or_else(|| std::env::var_os(STORE).map(PathBuf::from));
    anyhow::ensure!(
        store.is_some(),
        "nothing to read: name inputs, or a store (--store, or {STORE} in the environment)"
    );
    Ok(store)
}

/// Memory budget of commands that hold data of each page.
#[derive(clap::Args)]
pub struct MemoryArg {
    /// Use at most this much memory, like 20G, and refuse work that needs more [default: 15/16 of what is available].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    memory: Option<u64>,
}

impl MemoryArg {
    pub fn is_given(&self) -> bool {
        self.memory.is_some()
    }

    /// Returns the budget in bytes; `None` if the machine's memory is unknown.
    pub fn budget(&self) -> Option<u64> {
        self.memory.or_else(available)
    }

    /// Returns what is left of the [`MemoryArg::budget`] when this `work` takes `need` bytes. Fails with
    /// [`Error::TooLarge`], which says what to do `instead`, if these bytes do not fit.
    pub fn left_after(
        &self,
        need: u64,
        work: impl FnOnce() -> String,
        instead: &'static str,
    ) -> Result<Option<u64>, Error> {
        let budget = self.budget();
        check_room(budget, need, work, instead)?;
        Ok(budget.map(|budget| budget - need))
    }

    /// Returns the number of bytes for sorting rows when `other` bytes are used for other data. Fails with
    /// [`Error::TooLarge`], which says what to do `instead`, if too few are left.
    pub fn to_sort(
        &self,
        other: u64,
        work: impl FnOnce() -> String,
        instead: &'static str,
    ) -> Result<u64, Error> {
        let left = self.left_after(LEAST_SORTING + other, work, instead)?;
        Ok(left.map_or(MOST_SORTING, |left| left + LEAST_SORTING))
    }
}

/// Maximum number of bytes per page that making a list of pages to crawl next takes, in any order.
pub const LIST_BYTES: u64 = 93;

/// Formats a time in RFC 3339, UTC; empty if unknown.
pub fn time(at: Option<Time>) -> String {
    at.and_then(utc).unwrap_or_default()
}

/// Returns the time at which a file was written, in RFC 3339; `None` if it is unknown.
pub fn written_at(path: &Path) -> Option<String> {
    let written = std::fs::metadata(path).ok()?.modified().ok()?;
    let since = written.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(time(Some(since.as_secs() as i64)))
}

/// Escapes control characters, so that a name is safe to print on a terminal.
pub fn shown(name: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(name);
    for c in name.chars().filter(|c| c.is_control()) {
        shown = shown.replace(c, &c.escape_default().to_string()).into();
    }
    shown
}

pub fn pages(n: u64) -> String {
    counted(n, "page", "pages")
}

pub fn records(n: u64) -> String {
    counted(n, "record", "records")
}

pub fn links(n: u64) -> String {
    counted(n, "link", "links")
}

/// Formats a number for people: `1.0 billion`.
pub fn about(n: u64) -> String {
    let (unit, name) = match n {
        0..10_000 => return thousands(n),
        10_000..1_000_000 => (1_000, "thousand"),
        1_000_000..1_000_000_000 => (1_000_000, "million"),
        _ => (1_000_000_000, "billion"),
    };
    let share = n as f64 / f64::from(unit);
    if share < 10.0 {
        format!("{share:.1} {name}")
    } else {
        format!("{} {name}", thousands(share as u64))
    }
}

/// Opens a list, plain, gzip or zstd; `-` is standard input. Refuses a file whose first bytes are not those of a list.
fn open_list(file: &Path) -> Result<impl BufRead + use<>, Error> {
    let mut list = BufReader::new(open_plain(file, &Limits::default())?);
    let head = list.fill_buf().map_err(Error::io(file, "read"))?;
    cashrank_crawl::formats::check_list(head)
        .map_err(|error| Error::Unsupported(format!("{}: {error}", file.display())))?;
    Ok(list)
}

/// Iterates over the lines of several lists in turn; only one line is in memory at a time.
pub fn lines(files: &[PathBuf]) -> impl Iterator<Item = Result<Vec<u8>, Error>> {
    files.iter().flat_map(|file| {
        let (lines, error) = match open_list(file) {
            Ok(lines) => (Some(lines.split(b'\n')), None),
            Err(error) => (None, Some(Err(error))),
        };
        let lines = lines.into_iter().flatten();
        lines
            .map(move |line| line.map_err(Error::io(file, "read")))
            .chain(error)
    })
}

pub fn report_lines(option: &str, skipped: SkippedLines) {
    if !skipped.is_none() {
        say!("{option}: {skipped}");
    }
}

/// Parses one of the words of a type, for clap, with their descriptions. Refuses a part that this build lacks.
pub fn words<T>(
    words: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: ToString> + Clone + Send + Sync + 'static,
{
    one_of(words, |name| {
        require_feature(name)?;
        parsed(name)
    })
}

pub fn one_of<T: Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = (&'static str, &'static str)>,
    read: fn(&str) -> Result<T, String>,
) -> impl TypedValueParser<Value = T> {
    let words = words.into_iter().map(|(name, about)| word(name, about));
    PossibleValuesParser::new(words).try_map(move |name| read(&name))
}

/// Parser of values in one of several forms, for clap; in help and completions, capitals stand for numbers.
#[derive(Clone)]
pub struct Forms<T: 'static> {
    forms: Vec<(&'static str, &'static str)>,
    read: fn(&str) -> Result<T, String>,
}

impl<T> Forms<T> {
    pub fn new(
        forms: impl IntoIterator<Item = (&'static str, &'static str)>,
        read: fn(&str) -> Result<T, String>,
    ) -> Forms<T> {
        Forms {
            forms: forms.into_iter().collect(),
            read,
        }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Forms<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        option: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let read = self.read;
        let any = StringValueParser::new().try_map(move |text| read(&text));
        any.parse_ref(command, option, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            self.forms.iter().map(|&(form, about)| word(form, about)),
        ))
    }
}

fn word(name: &'static str, about: &'static str) -> PossibleValue {
    let word = PossibleValue::new(name);
    if about.is_empty() {
        word
    } else {
        word.help(about)
    }
}

pub fn some_bytes(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        0 => Err(format!("{text:?}: at least 1 byte")),
        bytes => Ok(bytes),
    }
}

pub fn parsed<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: ToString,
{
    text.parse::<T>().map_err(|error| error.to_string())
}

pub fn positive(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("{text:?}: a whole number of at least 1")),
        Ok(n) => Ok(n),
    }
}

/// Value that may be left open. An alias, because clap takes `Option<Option<_>>` for an option that may lack its value.
pub type OrNone<T> = Option<T>;

fn or_none<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<OrNone<T>, String> {
    match text {
        "none" => Ok(None),
        _ => read(text)
            .map(Some)
            .map_err(|what| format!("{what}; or none")),
    }
}

pub fn formats() -> impl clap::builder::TypedValueParser<Value = OrNone<Format>> {
    let auto = ("auto", "recognised from the content");
    let formats = Format::ALL.map(|format| (format.name(), format.about()));
    one_of([auto].into_iter().chain(formats), |name| match name {
        "auto" => Ok(None),
        name => parsed(name).map(Some),
    })
}

pub fn takers() -> impl clap::builder::TypedValueParser<Value = Taker> {
    words::<Taker>(Taker::ALL.map(|taker| (taker.name(), taker.about())))
}

pub fn time_span(text: &str) -> Result<Duration, String> {
    match every(text) {
        Ok(Every::Time(time)) => Ok(time),
        _ => Err(format!("{text:?}: a time like 1s, 5m or 1h")),
    }
}

pub fn size_or_none(text: &str) -> Result<OrNone<u64>, String> {
    or_none(text, some_bytes)
}

/// Parses a bound on the L1 error: above 0, and below 2, because no distance is larger.
pub fn bound(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bound) if bound > 0.0 && bound < 2.0 => Ok(bound),
        _ => Err(format!(
            "{text:?}: a number above 0 and below 2, like 0.01 or 1e-6"
        )),
    }
}

pub fn eps_or_none(text: &str) -> Result<OrNone<f64>, String> {
    or_none(text, bound)
}

pub fn age_or_none(text: &str) -> Result<OrNone<Time>, String> {
    or_none(text, |text| match text.parse() {
        Ok(Span::Seconds(seconds)) => Ok(seconds),
        _ => Err(format!(
            "{text:?}: an age like 90d (s, m, h, d or w, at most 1000 years)"
        )),
    })
}

pub fn every(text: &str) -> Result<Every, String> {
    let wrong =
        || format!("{text:?}: a number of records like 50000, or a time like 500ms, 60s, 5m or 1h");
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let timed = units
        .iter()
        .find_map(|&(unit, ms)| Some((text.strip_suffix(unit)?, ms)));
    let number = timed.map_or(text, |(number, _)| number).parse::<u64>();
    match (number, timed) {
        (Err(_) | Ok(0), _) => Err(wrong()),
        (Ok(number), None) => Ok(Every::Records(number)),
        (Ok(number), Some((_, ms))) => {
            let time = number.saturating_mul(ms);
            Ok(Every::Time(Duration::from_millis(time)))
        }
    }
}
