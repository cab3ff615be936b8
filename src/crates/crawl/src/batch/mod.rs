//! Batches of records for the engine: one arena, in which every distinct name is put in canonical form and hashed once.
//!
//! Names of web links repeat (navigation), so processing a name once per batch instead of once per link brings most of
//! the speed. Names are numbered in order of first appearance and admitted record by record, so results do not depend on
//! where batches begin and end.

mod names;

use crate::decode::records::write::write;
use crate::decode::{Bad, Decoder};
pub use crate::model::{Batch, BatchEntry, Fingerprints, HashKey, LinkCounts, What};
use crate::model::{
    Digest, Fingerprint, Limits, Link, Names as Naming, Parsed, Reason, Record, SelfLinks,
    TEXT_BYTES, has_page,
};
use crate::rules::{Follow, InputRules};
use crate::url::{self, CanonicalForm, LinkBase, Reject};
use names::SpellingTable;

/// Maximum number of entries per batch; even an empty line takes an entry, which is far larger than the line.
const ENTRIES: usize = 1 << 16;
/// Number of a record's links whose table slots are prefetched together.
const AHEAD: usize = 32;
/// Maximum number of messages kept per batch and reason.
const COMPLAINTS: usize = 16;

#[derive(Clone)]
pub struct Rules {
    pub limits: Limits,
    pub self_links: SelfLinks,
    pub key: HashKey,
    pub input: InputRules,
    pub follow: Follow,
}

/// Converts chunks to batches. Reuses the memory of its tables from one batch to the next.
pub struct Builder {
    rules: Rules,
    naming: Naming,
    batch: Batch,
    names: SpellingTable,
    /// Index among the batch's links of the last link to each name, if it has not been truncated since.
    linked_at: Vec<u32>,
    /// Weights of the batch's names as link targets; [`UNKNOWN_WEIGHT`] if not computed yet.
    page_weights: Vec<u64>,
    weighs_all: bool,
    /// True if a URL that is canonical as spelled needs no further check.
    takes_all: bool,
    scratch: Vec<u8>,
    stripped: Vec<u8>,
    complained: [usize; Reason::ALL.len()],
    joins: bool,
    pub keeps_lines: bool,
    /// Fingerprints of the next links as spelled; `None` if the spelling alone does not name a page.
    spelled: Vec<Option<Fingerprint>>,
    /// Called before a record or its links become large. It may wait until there is room.
    pub leave: Box<dyn FnMut() + Send>,
}

/// Marks a weight that is not computed yet; larger than any product in an accepted record.
const UNKNOWN_WEIGHT: u64 = u64::MAX;

impl Builder {
    pub fn new(rules: Rules, naming: Naming) -> Builder {
        Builder {
            names: SpellingTable::new(rules.key),
            takes_all: naming == Naming::Url && rules.input.takes_all(),
            weighs_all: !rules.follow.is_default(),
            rules,
            naming,
            batch: Batch::default(),
            linked_at: Vec::new(),
            page_weights: Vec::new(),
            scratch: Vec::new(),
            stripped: Vec::new(),
            complained: Default::default(),
            joins: true,
            keeps_lines: false,
            spelled: Vec::new(),
            leave: Box::new(|| ()),
        }
    }

    /// Decodes `chunk` and emits its batches in order. `emit` gets whether it is the last, and returns an empty one.
    pub fn run(
        &mut self,
        decoder: &dyn Decoder,
        chunk: &[u8],
        mut emit: impl FnMut(Batch, bool) -> Option<Batch>,
    ) {
        self.joins = decoder.joins_links();
        let mut start = 0;
        loop {
            let mut end = start;
            let mut cut = false;
            decoder.decode(&chunk[start..], &mut |at, parsed| {
                // Decoding may resume only at an offset that grew.
                let grew = start + at > end;
                end = start + at;
                self.push(end as u64, parsed);
                cut = grew && self.is_full() && end < chunk.len();
                !cut
            });
            start = end;
            let Some(mut next) = emit(self.take(), !cut) else {
                return;
            };
            next.clear();
            self.batch = next;
            if !cut {
                return;
            }
        }
    }

    /// Returns a batch for a record of `bytes` bytes, over the limit on records, that was dropped unread.
    pub fn over_limit(&mut self, bytes: u64) -> Batch {
        let limit = self.rules.limits.line_bytes;
        let bad = Parsed::Bad {
            reason: Reason::TooLong,
            detail: format!("a record of {bytes} bytes, more than `limit_line` {limit}"),
        };
        self.push(bytes, bad);
        self.take()
    }

    pub fn add(&mut self, parsed: Parsed<'_, '_>) -> What {
        self.push(0, parsed);
        self.batch
            .entries
            .last()
            .map_or(What::Other, |entry| entry.what)
    }

    pub fn recycle(&mut self, mut batch: Batch) {
        if self.batch.entries.is_empty() && batch.is_ordinary() {
            batch.clear();
            self.batch = batch;
        }
    }

    pub fn take(&mut self) -> Batch {
        self.names.clear();
        self.linked_at.clear();
        self.page_weights.clear();
        self.complained = Default::default();
        std::mem::take(&mut self.batch)
    }

    pub fn is_full(&self) -> bool {
        self.batch.text.len().max(self.batch.lines.len()) > TEXT_BYTES
            || self.batch.entries.len() >= ENTRIES
    }

    fn push(&mut self, end: u64, parsed: Parsed<'_, '_>) {
        let names = self.batch.fingerprints.len() as u32;
        let links = self.batch.links.len() as u32;
        let at = self.batch.entries.len() as u32;
        let entry = match parsed {
            Parsed::Other { kind } => Ok(BatchEntry {
                kind: Some(kind),
                ..self.entry(What::Other, links)
            }),
            Parsed::Large => return (self.leave)(),
            Parsed::Bad { reason, detail } => Err(Bad { reason, detail }),
            Parsed::Record(record) => self.record_with_line(record, links).map(|mut entry| {
                entry.status = record.status;
                let totals = record.totals.filter(|_| entry.what.is_of_page());
                self.batch.totals.extend(totals.map(|totals| (at, totals)));
                if let (Some(detail), true) = (&record.bad_time, entry.what.is_of_page()) {
                    entry.is_timeless = true;
                    self.complain(Reason::BadTime, at, detail.clone());
                }
                entry
            }),
        };
        let entry = entry.unwrap_or_else(|Bad { reason, detail }| {
            if self.batch.fingerprints.len() as u32 > names {
                self.names.cut(&mut self.batch, names);
                self.linked_at.truncate(names as usize);
                self.page_weights.truncate(names as usize);
            }
            self.batch.links.truncate(links as usize);
            self.batch.weights.truncate(links as usize);
            self.complain(reason, at, detail);
            self.entry(What::Skipped(reason), links)
        });
        self.batch.entries.push(BatchEntry { end, ..entry });
    }

    fn complain(&mut self, reason: Reason, at: u32, detail: String) {
        let complained = &mut self.complained[reason as usize];
        if *complained < COMPLAINTS {
            *complained += 1;
            self.batch.complaints.push((at, detail));
        }
    }

    /// Adds a record, and keeps a page's record as a line of JSON if requested.
    fn record_with_line(&mut self, record: &Record<'_>, links: u32) -> Result<BatchEntry, Bad> {
        let entry = self.record(record, links)?;
        if !self.keeps_lines || !entry.what.is_of_page() {
            return Ok(entry);
        }
        let start = self.batch.lines.len();
        let absolute =
            (!self.joins && self.naming == Naming::Url).then(|| self.without_relative(record));
        write(
            absolute.as_ref().unwrap_or(record),
            self.naming,
            &mut self.batch.lines,
        );
        let (bytes, limit) = (self.batch.lines.len() - start, self.rules.limits.line_bytes);
        if bytes as u64 <= limit {
            return Ok(entry);
        }
        self.batch.lines.truncate(start);
        Err(Bad::new(
            Reason::TooLong,
            format!("as a line of JSON it has {bytes} bytes, more than `limit_line` {limit}"),
        ))
    }

    /// Returns the record without relative and invalid links: a reader of crawl records would join them to the page.
    fn without_relative<'a>(&mut self, record: &Record<'a>) -> Record<'a> {
        let limit = self.rules.limits.url_bytes as usize;
        let mut record = record.clone();
        record.links.retain(|link| {
            self.scratch.clear();
            let form = url::canonical(&link.url, None, limit, &mut self.scratch);
            !matches!(
                form,
                Err(Reject::Relative | Reject::Empty | Reject::Invalid)
            )
        });
        record
    }

    fn entry(&self, what: What, links_start: u32) -> BatchEntry {
        BatchEntry {
            end: 0,
            what,
            source: 0,
            names_end: self.batch.fingerprints.len() as u32,
            links_start,
            links_end: self.batch.links.len() as u32,
            fetched_at: None,
            digest: Digest::NONE,
            counts: LinkCounts::default(),
            status: None,
            is_timeless: false,
            kind: None,
        }
    }

    fn record(&mut self, record: &Record<'_>, links_start: u32) -> Result<BatchEntry, Bad> {
        // Comes first: decoders skip the rest of records of other shards.
        if (self.rules.input.shard).is_some_and(|shard| shard.passes_over(&record.url, self.naming))
        {
            return Ok(self.entry(What::OtherShard, links_start));
        }
        let what = meaning(record);
        let only;
        let links: &[Link<'_>] = match (&record.redirect, &record.same_as, record.status) {
            (Some(target), _, Some(300..=399)) if what == What::Visit => {
                only = [Link::to(&**target)];
                &only
            }
            _ if what == What::Visit => &record.links,
            (_, Some(other), status) if what == What::Unchanged && status != Some(304) => {
                only = [Link::to(&**other)];
                &only
            }
            _ => &[],
        };
        if links.len() as u64 > self.rules.limits.links {
            let (count, limit) = (links.len(), self.rules.limits.links);
            let what = format!("{count} links, more than `limit_links` {limit}");
            return Err(Bad::new(Reason::TooManyLinks, what));
        }
        let Some(source) = self.source(&record.url)? else {
            return Ok(self.entry(What::OutOfScope, links_start));
        };
        let mut counts = self.links(source, record, links)?;
        if what == What::Unchanged {
            // The engine compares the source with the page's link; no link was read.
            counts = LinkCounts::default();
            if self.batch.links[links_start as usize..] == [source] {
                self.batch.links.truncate(links_start as usize);
            }
        }
        Ok(BatchEntry {
            source,
            fetched_at: record.fetched_at,
            digest: record.digest,
            counts,
            ..self.entry(what, links_start)
        })
    }

    /// Returns the name of a record's page; `None` if it is out of scope.
    fn source(&mut self, raw: &[u8]) -> Result<Option<u32>, Bad> {
        let name = self.name(raw, self.spelled(raw), None);
        name.map_err(|reject| match reject {
            Reject::TooLong => {
                let (bytes, limit) = (raw.len(), self.rules.limits.url_bytes);
                let what = format!("a URL of {bytes} bytes, more than `limit_url` {limit}");
                Bad::new(Reason::UrlTooLong, what)
            }
            reject => {
                let shown = String::from_utf8_lossy(&raw[..raw.len().min(200)]);
                Bad::new(Reason::BadUrl, format!("{shown:?}: {reject}"))
            }
        })
    }

    fn links(
        &mut self,
        source: u32,
        record: &Record<'_>,
        links: &[Link<'_>],
    ) -> Result<LinkCounts, Bad> {
        let mut counts = LinkCounts {
            read: links.len() as u32,
            ..LinkCounts::default()
        };
        // The target of a redirect is relative to the page, whatever base its text names.
        let base = record.base.as_deref().filter(|_| record.redirect.is_none());
        let base = self.joins.then(|| LinkBase::new(&record.url, base));
        // Counts the names of all the record's links, even those that an earlier record named: the limit must not
        // depend on the rest of the batch.
        let mut text = 0;
        let text_before = self.batch.text.len();
        let mut huge = false;
        let weighs = self.weighs_all || links.iter().any(|link| link.weight != 1);
        let host = weighs.then(|| url::host(self.batch.name(source)).to_vec());
        let links_start = self.batch.links.len();
        if weighs {
            self.batch.weights.resize(links_start, 1);
        }
        for (at, link) in links.iter().enumerate() {
            if at.is_multiple_of(AHEAD) {
                self.look_ahead(&links[at..links.len().min(at + AHEAD)]);
            }
            let spelled = self.spelled[at % AHEAD];
            let target = match self.name(&link.url, spelled, base.as_ref()) {
                Ok(Some(target)) => target,
                dropped => {
                    *match dropped {
                        Ok(_) => &mut counts.out_of_scope,
                        Err(Reject::Scheme) => &mut counts.scheme,
                        Err(Reject::TooLong) => &mut counts.too_long,
                        Err(_) => &mut counts.invalid,
                    } += 1;
                    continue;
                }
            };
            let weight = host.as_ref().map(|host| self.weight(host, target, link));
            if target == source && self.rules.self_links == SelfLinks::Drop {
                counts.own += 1;
                continue;
            }
            if self.linked_at.len() <= target as usize {
                self.linked_at.resize(target as usize + 1, u32::MAX);
            }
            let at = &mut self.linked_at[target as usize];
            if *at as usize >= links_start && self.batch.links.get(*at as usize) == Some(&target) {
                counts.repeated += 1;
                if let Some(weight) = weight {
                    let known = &mut self.batch.weights[*at as usize];
                    *known = weight.max(*known);
                }
                continue;
            }
            *at = self.batch.links.len() as u32;
            self.batch.weights.extend(weight);
            self.batch.links.push(target);
            text += self.batch.name(target).len() as u64;
            if self.batch.text.len() - text_before > TEXT_BYTES && !huge {
                huge = true;
                (self.leave)();
            }
            if text > self.rules.limits.line_bytes {
                let limit = self.rules.limits.line_bytes;
                let what =
                    format!("its links, made absolute, take more than `limit_line` {limit} bytes");
                return Err(Bad::new(Reason::TooLong, what));
            }
        }
        if weighs {
            check_sum(&self.batch.weights[links_start..])?;
        }
        Ok(counts)
    }

    /// Returns the weight of a link from a page of `host`. Names that are not URLs have no host.
    fn weight(&mut self, host: &[u8], target: u32, link: &Link<'_>) -> u64 {
        let (follow, name) = (&self.rules.follow, self.batch.name(target));
        let is_internal = !host.is_empty() && url::host(name) == host;
        let weight = u64::from(link.weight).saturating_mul(follow.weight(link.rel, is_internal));
        if follow.pages.is_empty() {
            return weight;
        }
        let at = target as usize;
        if self.page_weights.len() <= at {
            self.page_weights.resize(at + 1, UNKNOWN_WEIGHT);
        }
        if self.page_weights[at] == UNKNOWN_WEIGHT {
            self.page_weights[at] = follow.weight_of_page(name);
        }
        weight.saturating_mul(self.page_weights[at])
    }

    fn look_ahead(&mut self, links: &[Link<'_>]) {
        let mut spelled = std::mem::take(&mut self.spelled);
        spelled.clear();
        spelled.extend(links.iter().map(|link| self.spelled(&link.url)));
        self.names.touch(spelled.iter().flatten().copied());
        self.spelled = spelled;
    }

    /// Returns the fingerprint of a name as spelled; `None` if it is too long, or perhaps relative to its page.
    #[inline]
    fn spelled(&self, raw: &[u8]) -> Option<Fingerprint> {
        let all = self.naming == Naming::Opaque || raw.starts_with(b"http");
        let short = raw.len() as u64 <= self.rules.limits.url_bytes;
        (all && short).then(|| self.names.fingerprint(raw))
    }

    /// Returns the number of the name that `raw` spells; `None` if it is out of scope.
    fn name(
        &mut self,
        raw: &[u8],
        spelled: Option<Fingerprint>,
        base: Option<&LinkBase<'_>>,
    ) -> Result<Option<u32>, Reject> {
        if let Some(spelled) = spelled {
            if let Some(name) = self.names.get(&self.batch, spelled) {
                return Ok(Some(name));
            }
            if self.takes_all && url::is_canonical(raw) {
                return Ok(Some(self.names.add(&mut self.batch, raw, spelled)));
            }
        }
        let limit = self.rules.limits.url_bytes as usize;
        if self.naming == Naming::Opaque {
            return match spelled {
                _ if raw.is_empty() => Err(Reject::Empty),
                _ if !self.rules.input.scope.has(raw) => Ok(None),
                Some(spelled) => Ok(Some(self.names.add(&mut self.batch, raw, spelled))),
                None => Err(Reject::TooLong),
            };
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut stripped = std::mem::take(&mut self.stripped);
        scratch.clear();
        stripped.clear();
        let form = url::canonical(raw, base, limit, &mut scratch);
        let name = form.map(|form| {
            let text = form.text(raw, &scratch);
            let changed = self.rules.input.drop_params.strip(text, &mut stripped);
            let text = if changed { &stripped } else { text };
            match (form, spelled) {
                _ if !self.rules.input.scope.has(text) => None,
                (CanonicalForm::AsIs, Some(spelled)) if !changed => {
                    Some(self.names.add(&mut self.batch, raw, spelled))
                }
                (_, spelled) => {
                    let fingerprint = self.names.fingerprint(text);
                    let known = self.names.get(&self.batch, fingerprint);
                    let name =
                        known.unwrap_or_else(|| self.names.add(&mut self.batch, text, fingerprint));
                    // The meaning of `http:page` depends on the base.
                    if let Some(spelled) = spelled.filter(|_| url::is_web(raw)) {
                        self.names.alias(&self.batch, spelled, name);
                    }
                    Some(name)
                }
            }
        });
        (self.scratch, self.stripped) = (scratch, stripped);
        name
    }
}

/// Returns what a record says about its page. A page whose totals have no visits is only known, or failed.
fn meaning(record: &Record<'_>) -> What {
    let unvisited = record.totals.filter(|totals| totals.visits == 0);
    match record.status {
        None if unvisited.is_some_and(|totals| totals.failed > 0) => What::Failed,
        None if unvisited.is_some() => What::Unchanged,
        Some(404 | 410) => What::Gone,
        Some(304) => What::Unchanged,
        Some(status) if !has_page(status) => What::Failed,
        _ if record.revisit => What::Unchanged,
        _ => What::Visit,
    }
}

/// Rejects links whose total weight is too large to divide cash by.
fn check_sum(weights: &[u64]) -> Result<(), Bad> {
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    if sum < 1 << 63 {
        return Ok(());
    }
    Err(Bad::new(
        Reason::Malformed,
        "its links weigh 2^63 or more together: give them smaller weights",
    ))
}
