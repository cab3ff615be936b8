//! The plain engine: the simplest program that makes the same ranking. A map from URLs to numbers, a few vectors, one
//! thread.
//!
//! It is written from the definitions in the heads of `src/crates/graph/src/engine/ledger.rs`, `window/mod.rs`
//! and `estimate.rs`, not from the code below them. It reads only records of fetched pages (status 200 or none) and takes
//! URLs as they are, canonical or not, which saves it work.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// Runs the plain engine as a program: input, passes, output.
pub fn main(arguments: &[String]) -> ExitCode {
    let passes: u32 = arguments[1].parse().expect("a number of passes");
    match rank(Path::new(&arguments[0]), passes, Path::new(&arguments[2])) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn rank(input: &Path, passes: u32, output: &Path) -> io::Result<()> {
    let mut engine = Plain {
        round_length: ROUND_MIN,
        keeps: passes > 1,
        ..Plain::default()
    };
    let mut lines = BufReader::new(zstd::Decoder::new(File::open(input)?)?);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        engine.apply(&serde_json::from_str(&line)?);
        line.clear();
    }
    for _ in 1..passes {
        engine.go_over();
    }
    engine.write(BufWriter::new(File::create(output)?))
}

#[derive(serde::Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    fetched_at: Option<&'a str>,
    status: Option<u16>,
    #[serde(borrow)]
    links: Vec<Name<'a>>,
}

/// Name that is borrowed if possible; serde does not borrow inside a list.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

const ENDOWMENT: i64 = 1 << 30;
const ROUND_MIN: usize = 1024;
/// floor(0.85 x 2^32).
const DAMPING: u64 = 3_650_722_201;
/// Default of `ingest`; a test compares this engine with the program.
const RECYCLE_AFTER: u64 = 8;
const MARKS: usize = 6;

/// State of the engine.
#[derive(Default)]
struct Plain {
    numbers: HashMap<String, usize>,
    pages: Vec<Page>,
    /// Cells: a page's cash is its cell plus what all pages were paid.
    cells: Vec<i64>,
    /// Cash distributed by each page since the start.
    history: Vec<u128>,
    sums: Sums,
    /// Cash of the virtual page.
    held: i64,
    marks: Vec<Mark>,
    round_records: usize,
    round_length: usize,
    /// Distinct times of records, as text.
    times: Vec<String>,
    targets: Vec<usize>,
    records: u64,
    /// True if further passes follow: the page and targets of each visit are kept.
    keeps: bool,
    kept: Vec<(usize, Vec<usize>)>,
}

struct Page {
    name: String,
    /// Payment per page since the start, at the page's admission.
    paid: i64,
    visits: u64,
    /// Round of the last visit.
    round: Option<u64>,
    last_fetch: Option<usize>,
    /// Number of the last record that named the page as a target.
    named: u64,
    /// Index of the page's last kept visit.
    kept: usize,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    paid: i64,
    /// G.
    clock: u128,
    /// Total that the virtual page received.
    received: u128,
    rounds: u64,
}

struct Mark {
    cells: Vec<i64>,
    history: Vec<u128>,
    sums: Sums,
}

impl Plain {
    fn admit(&mut self, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.pages.len();
        self.numbers.insert(name.to_owned(), number);
        self.pages.push(Page {
            name: name.to_owned(),
            // As of the record's start: a record's names are admitted before it pays.
            paid: self.sums.paid,
            visits: 0,
            round: None,
            last_fetch: None,
            named: 0,
            kept: 0,
        });
        self.cells.push(ENDOWMENT - self.sums.paid);
        self.history.push(0);
        number
    }

    fn apply(&mut self, record: &Record<'_>) {
        assert!(
            matches!(record.status, None | Some(200)),
            "pages that were fetched only"
        );
        self.records += 1;
        let page = self.admit(&record.url);
        if let Some(time) = record.fetched_at {
            // Times in the same format sort as text.
            if self.times.last().is_none_or(|last| &**last < time) {
                self.times.push(time.to_owned());
            }
        }
        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        for link in &record.links {
            let target = self.admit(&link.0);
            if target != page && self.pages[target].named != self.records {
                self.pages[target].named = self.records;
                targets.push(target);
            }
        }
        self.visit(page, &targets);
        self.pages[page].last_fetch = self.times.len().checked_sub(1);
        if self.keeps {
            self.pages[page].kept = self.kept.len();
            self.kept.push((page, targets.clone()));
        }
        self.targets = targets;
        self.count();
    }

    /// Makes a further pass: visits every page that was fetched, once, with its latest links, in the order in which
    /// they were found.
    fn go_over(&mut self) {
        if self.round_records > 0 {
            self.end_round();
        }
        let kept = std::mem::take(&mut self.kept);
        for (at, (page, targets)) in kept.iter().enumerate() {
            if self.pages[*page].kept == at {
                self.visit(*page, targets);
                self.count();
            }
        }
        self.kept = kept;
    }

    fn count(&mut self) {
        self.round_records += 1;
        if self.round_records >= self.round_length {
            self.end_round();
        }
    }

    fn visit(&mut self, page: usize, targets: &[usize]) {
        let cash = self.take(page);
        let mut rest = cash;
        if !targets.is_empty() {
            let damped = (u128::from(cash as u64) * u128::from(DAMPING)) >> 32;
            let share = damped as i64 / targets.len() as i64;
            for &target in targets {
                self.cells[target] += share;
                rest -= share;
            }
        }
        let known = &mut self.pages[page];
        known.visits += 1;
        known.round = Some(self.sums.rounds);
        self.give(rest);
        self.pay();
    }

    /// Empties a page, and counts its cash as distributed.
    fn take(&mut self, page: usize) -> i64 {
        let cash = self.cells[page] + self.sums.paid;
        self.cells[page] = -self.sums.paid;
        self.sums.clock += cash as u128;
        self.history[page] += cash as u128;
        cash
    }

    fn give(&mut self, units: i64) {
        self.held += units;
        self.sums.received += units as u128;
    }

    fn pay(&mut self) {
        let pages = self.pages.len() as i64;
        let each = self.held / pages;
        self.sums.paid += each;
        self.held -= each * pages;
    }

    /// Returns whether a page was never visited, or not in the last rounds, including the current one.
    fn is_recycled(&self, page: usize) -> bool {
        match self.pages[page].round {
            None => true,
            Some(round) => round + RECYCLE_AFTER <= self.sums.rounds,
        }
    }

    fn end_round(&mut self) {
        for page in 0..self.pages.len() {
            if self.is_recycled(page) {
                let cash = self.take(page);
                self.give(cash);
            }
        }
        self.pay();
        self.sums.rounds += 1;
        self.round_records = 0;
        self.round_length = self.pages.len().max(ROUND_MIN);
        self.marks.push(Mark {
            cells: self.cells.clone(),
            history: self.history.clone(),
            sums: self.sums,
        });
        if self.marks.len() > MARKS {
            self.marks.remove(self.superfluous());
        }
    }

    /// Returns the mark, not one of the newest two, whose neighbours' ages are closest in proportion.
    fn superfluous(&self) -> usize {
        let now = self.sums.rounds;
        let ages: Vec<u64> = self
            .marks
            .iter()
            .map(|mark| now - mark.sums.rounds)
            .collect();
        let older = |at: usize| if at == 0 { now } else { ages[at - 1] };
        let mut best = 0;
        for at in 1..self.marks.len() - 2 {
            if older(at) * ages[best + 1] < older(best) * ages[at + 1] {
                best = at;
            }
        }
        best
    }

    /// Computes the importance of all pages by the best window: the cash that each received over links and from the
    /// virtual page since a mark, as a share of all cash distributed since.
    fn importance(&self) -> Vec<f64> {
        let start = Mark {
            cells: Vec::new(),
            history: Vec::new(),
            sums: Sums::default(),
        };
        // Cash that a round's end would recycle now counts as distributed.
        let cash = |page: usize| self.cells[page] + self.sums.paid;
        let waiting: Vec<i64> = (0..self.pages.len())
            .map(|page| {
                if self.is_recycled(page) {
                    cash(page)
                } else {
                    0
                }
            })
            .collect();
        let all_waiting: u128 = waiting.iter().map(|&cash| cash as u128).sum();
        let (clock, received) = (
            self.sums.clock + all_waiting,
            self.sums.received + all_waiting,
        );
        let pages = self.pages.len() as u128;

        let mut best = (f64::INFINITY, &start);
        for mark in std::iter::once(&start).chain(&self.marks) {
            if mark.sums.rounds > 0 && self.sums.clock == mark.sums.clock {
                continue;
            }
            let virtual_since = received - mark.sums.received;
            let each = (virtual_since / pages) as i128;
            let mut distance = virtual_since % pages;
            for (page, &waiting) in waiting.iter().enumerate() {
                let change = self.change(mark, page) - i128::from(waiting);
                distance += (change + each).unsigned_abs();
            }
            let residual = match clock - mark.sums.clock {
                0 => f64::INFINITY,
                since => distance as f64 / since as f64,
            };
            // Rounded up as in the engine.
            let residual = residual * (1.0 + 1e-14) + 1e-14;
            if residual <= best.0 {
                best = (residual, mark);
            }
        }
        let mark = best.1;
        let since = (clock - mark.sums.clock) as f64;
        let each = (received - mark.sums.received) as f64 / pages as f64;
        let share = |page: usize| {
            let before = mark.history.get(page).copied().unwrap_or(0);
            let over_links = (self.history[page] - before) as i128 + self.change(mark, page);
            (over_links as f64 + each) / since
        };
        (0..self.pages.len()).map(share).collect()
    }

    /// Returns the change of a cell since a mark: link receipts less what was distributed.
    fn change(&self, mark: &Mark, page: usize) -> i128 {
        let endowed = || ENDOWMENT - self.pages[page].paid;
        let before = mark.cells.get(page).copied().unwrap_or_else(endowed);
        i128::from(self.cells[page]) - i128::from(before)
    }

    /// Writes the first columns of the ranking, in the format of `cashrank export --to tsv`.
    fn write(&self, mut out: impl Write) -> io::Result<()> {
        let importance = self.importance();
        let mut sorted = importance.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        writeln!(out, "url\timportance\trank\tvisits\tlast_fetch")?;
        for (page, value) in self.pages.iter().zip(&importance) {
            let rank = 1 + sorted.partition_point(|other| other > value);
            let fetched = page.last_fetch.map_or("", |at| &self.times[at]);
            writeln!(
                out,
                "{}\t{value:?}\t{rank}\t{}\t{fetched}",
                page.name, page.visits
            )?;
        }
        out.flush()
    }
}
