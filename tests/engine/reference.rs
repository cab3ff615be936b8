//! A second engine, straight from the definitions: cash page by page, payments page by page, unbounded integers, every
//! visit remembered. Slow, but simple enough to be compared with them.

use std::collections::HashMap;

use super::stream::{Event, Fetch};

const ENDOWMENT: u128 = 1 << 30;
const ROUND_MIN: u64 = 1024;

/// Visit or recycling: a row of the window's matrix.
#[derive(Clone)]
pub struct Row {
    pub page: usize,
    pub targets: Vec<usize>,
    pub cash: u128,
    /// G immediately after it.
    pub clock: u128,
    pub pages: usize,
    /// True for a visit, false for recycling.
    pub visit: bool,
}

/// Last event of a page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Last {
    Never,
    Round(u64),
    Gone,
}

/// Sums at some moment, and the number of rows.
#[derive(Clone, Default)]
pub struct Moment {
    pub rows: usize,
    pub clock: u128,
    pub virtual_received: u128,
    pub paid: u128,
    pub followed: u128,
    pub rounds: u64,
    pub pages: usize,
}

pub struct Reference {
    damping: u64,
    recycle_after: u64,
    keep_self_links: bool,
    numbers: HashMap<u32, usize>,
    pub cash: Vec<u128>,
    pub last: Vec<Last>,
    pub visits: Vec<u64>,
    pub last_fetch: Vec<Option<i64>>,
    /// G when the page was admitted.
    pub admitted: Vec<u128>,
    pub virtual_cash: u128,
    pub now: Moment,
    pub rows: Vec<Row>,
    /// All marks ever made, from mark 1.
    pub marks: Vec<Moment>,
    /// Running maximum of times, and G, before each record.
    pub times: Vec<(Option<i64>, u128)>,
    time: Option<i64>,
    dates: Vec<i64>,
    round_records: u64,
    round_length: u64,
}

/// Returns the earliest date that only a tenth of all dates, or one of at least three, follow, more than a year later;
/// else the latest.
fn latest_but_few(dates: &[i64]) -> Option<i64> {
    let mut dates = dates.to_vec();
    dates.sort_unstable();
    let few = |later: usize| later * 10 <= dates.len() || later == 1 && dates.len() >= 3;
    let is_last = |&at: &usize| match dates.get(at + 1) {
        Some(next) => few(dates.len() - 1 - at) && next.saturating_sub(dates[at]) > 365 * 86_400,
        None => true,
    };
    (0..dates.len()).find(is_last).map(|at| dates[at])
}

impl Reference {
    pub fn new(damping: u64, recycle_after: u8, keep_self_links: bool) -> Reference {
        Reference {
            damping,
            recycle_after: u64::from(recycle_after),
            keep_self_links,
            numbers: HashMap::new(),
            cash: Vec::new(),
            last: Vec::new(),
            visits: Vec::new(),
            last_fetch: Vec::new(),
            admitted: Vec::new(),
            virtual_cash: 0,
            now: Moment::default(),
            rows: Vec::new(),
            marks: Vec::new(),
            times: Vec::new(),
            time: None,
            dates: Vec::new(),
            round_records: 0,
            round_length: ROUND_MIN,
        }
    }

    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Fetch(fetch) => self.fetch(fetch),
            Event::BeginPass if self.round_records > 0 => self.end_round(),
            Event::BeginPass => {}
        }
    }

    fn admit(&mut self, name: u32) -> usize {
        let next = self.cash.len();
        let page = *self.numbers.entry(name).or_insert(next);
        if page == next {
            self.cash.push(ENDOWMENT);
            self.last.push(Last::Never);
            self.visits.push(0);
            self.last_fetch.push(None);
            self.admitted.push(self.now.clock);
        }
        page
    }

    fn fetch(&mut self, fetch: &Fetch) {
        let page = self.admit(fetch.page);
        self.time = self.time.max(fetch.time);
        self.dates.extend(fetch.time);
        let at = fetch.time.or_else(|| latest_but_few(&self.dates));
        self.times.push((self.time, self.now.clock));
        match fetch.status {
            None | Some(200..=303 | 305..=399) => {
                let redirect = fetch.redirect.filter(|_| fetch.status >= Some(300));
                let links = redirect.map_or(fetch.links.clone(), |target| vec![target]);
                let mut targets = Vec::new();
                for link in links {
                    if link == fetch.page && !self.keep_self_links {
                        continue;
                    }
                    let target = self.admit(link);
                    if !targets.contains(&target) {
                        targets.push(target);
                    }
                }
                self.fetched(page, at);
                self.visit(page, targets, Last::Round(self.now.rounds));
            }
            Some(404 | 410) => {
                self.fetched(page, at);
                self.visit(page, Vec::new(), Last::Gone);
            }
            Some(304) => self.fetched(page, at),
            Some(_) => {}
        }
        self.count_record();
    }

    /// Notes the time of a fetch: that of its own record.
    fn fetched(&mut self, page: usize, at: Option<i64>) {
        self.last_fetch[page] = at.max(self.last_fetch[page]);
    }

    fn visit(&mut self, page: usize, targets: Vec<usize>, last: Last) {
        self.last[page] = last;
        self.visits[page] += 1;
        self.now.followed += targets.len() as u128;
        self.distribute(page, targets, true);
        self.pay();
    }

    fn distribute(&mut self, page: usize, targets: Vec<usize>, visit: bool) {
        let cash = std::mem::take(&mut self.cash[page]);
        self.now.clock += cash;
        let mut rest = cash;
        if !targets.is_empty() {
            let share = (cash * u128::from(self.damping) / (1 << 32)) / targets.len() as u128;
            for &target in &targets {
                self.cash[target] += share;
                rest -= share;
            }
        }
        self.virtual_cash += rest;
        self.now.virtual_received += rest;
        self.rows.push(Row {
            page,
            targets,
            cash,
            clock: self.now.clock,
            pages: self.cash.len(),
            visit,
        });
    }

    fn pay(&mut self) {
        let each = self.virtual_cash / self.cash.len() as u128;
        for cash in &mut self.cash {
            *cash += each;
            self.virtual_cash -= each;
        }
        self.now.paid += each;
    }

    fn count_record(&mut self) {
        self.round_records += 1;
        if self.round_records >= self.round_length {
            self.end_round();
        }
    }

    /// Returns whether a round's end, now, would empty the page.
    pub fn recyclable(&self, page: usize) -> bool {
        match self.last[page] {
            _ if self.recycle_after == 0 => false,
            Last::Never | Last::Gone => true,
            // Not visited in the last `recycle_after` rounds, including the current one.
            Last::Round(round) => round + self.recycle_after <= self.now.rounds,
        }
    }

    fn end_round(&mut self) {
        for page in 0..self.cash.len() {
            if self.recyclable(page) {
                self.distribute(page, Vec::new(), false);
            }
        }
        self.pay();
        self.now.rounds += 1;
        self.now.rows = self.rows.len();
        self.now.pages = self.cash.len();
        self.marks.push(self.now.clone());
        self.round_records = 0;
        self.round_length = ROUND_MIN.max(self.cash.len() as u64);
    }

    /// Returns the window since mark `mark` (0: the start), as at a round's end.
    pub fn window(&self, mark: usize) -> Window {
        let pages = self.cash.len();
        let start = match mark.checked_sub(1) {
            None => Moment::default(),
            Some(at) => self.marks[at].clone(),
        };
        let waiting = (0..pages).filter(|&page| self.recyclable(page));
        let waiting = waiting.map(|page| Row {
            page,
            targets: Vec::new(),
            cash: self.cash[page],
            clock: 0,
            pages,
            visit: false,
        });
        let rows: Vec<Row> = self.rows[start.rows..]
            .iter()
            .cloned()
            .chain(waiting)
            .collect();
        Window::of(
            &rows,
            pages,
            self.damping,
            self.now.followed - start.followed,
        )
    }
}

/// Estimates of a window, from its rows.
pub struct Window {
    pub clock: u128,
    pub distributed: Vec<f64>,
    pub received: Vec<f64>,
    /// Damped L', row by row: rows weighted by the cash they carried, empty ones uniform.
    pub matrix: Vec<Vec<f64>>,
    pub residual: f64,
    pub rounding: f64,
}

impl Window {
    fn of(rows: &[Row], pages: usize, damping: u64, followed: u128) -> Window {
        let clock: u128 = rows.iter().map(|row| row.cash).sum();
        let mut distributed = vec![0u128; pages];
        let mut over_links = vec![0u128; pages];
        let mut virtual_received = 0;
        let mut weights = vec![vec![0.0; pages]; pages];
        let damping_part = damping as f64 / 2f64.powi(32);
        for row in rows {
            distributed[row.page] += row.cash;
            let mut rest = row.cash;
            let cash = row.cash as f64;
            let links = row.targets.len();
            for &target in &row.targets {
                let share = (row.cash * u128::from(damping) / (1 << 32)) / links as u128;
                over_links[target] += share;
                rest -= share;
                weights[row.page][target] += cash * damping_part / links as f64;
            }
            virtual_received += rest;
            let teleport = if links == 0 { 1.0 } else { 1.0 - damping_part };
            for weight in &mut weights[row.page] {
                *weight += cash * teleport / pages as f64;
            }
        }
        let share = |units: f64| units / clock as f64;
        let each = virtual_received as f64 / pages as f64;
        let received: Vec<f64> = over_links.iter().map(|&r| share(r as f64 + each)).collect();
        let distributed: Vec<f64> = distributed.iter().map(|&c| share(c as f64)).collect();
        let matrix = weights.into_iter().map(|row| {
            let sum: f64 = row.iter().sum();
            let uniform = 1.0 / pages as f64;
            row.iter()
                .map(|w| if sum > 0.0 { w / sum } else { uniform })
                .collect()
        });
        Window {
            clock,
            matrix: matrix.collect(),
            residual: received
                .iter()
                .zip(&distributed)
                .map(|(y, x)| (y - x).abs())
                .sum(),
            rounding: share(2.0 * followed as f64),
            distributed,
            received,
        }
    }

    /// Returns one step of the walk: x L'.
    pub fn step(&self, x: &[f64]) -> Vec<f64> {
        let mut next = vec![0.0; x.len()];
        for (row, mass) in self.matrix.iter().zip(x) {
            for (to, part) in next.iter_mut().zip(row) {
                *to += mass * part;
            }
        }
        next
    }

    /// Computes its PageRank: power iteration until it is stationary.
    pub fn pagerank(&self) -> Vec<f64> {
        let pages = self.matrix.len();
        let mut x = vec![1.0 / pages as f64; pages];
        for _ in 0..10_000 {
            let next = self.step(&x);
            let moved: f64 = next.iter().zip(&x).map(|(y, x)| (y - x).abs()).sum();
            x = next;
            if moved < 1e-15 {
                break;
            }
        }
        x
    }
}
