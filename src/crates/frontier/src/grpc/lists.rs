//! Lists, counts and deletions: URLs selected by a filter, and queues with their counts.

use std::collections::HashMap;

use super::LIST;
use super::convert::{count, crawl_of, some};
use crate::item::Key;
use crate::queue::Queue;
use crate::state::UrlEntry;
use crate::{Frontier, Now, wire};
use cashrank_serve::Result;

/// Number of URLs that are deleted under one lock.
const CHUNK: usize = 1_000;

/// Filter for URLs of a list, a count or a deletion.
pub(super) struct Filter {
    crawl: String,
    queue: Option<String>,
    text: Option<String>,
    ignore_case: bool,
    /// Upper bound of the arrival time, in seconds since 1970.
    pub(super) before: Option<u64>,
}

impl Filter {
    pub(super) fn new(
        crawl: String,
        queue: String,
        text: Option<String>,
        ignore_case: bool,
    ) -> Filter {
        let text = text.filter(|text| !text.is_empty());
        Filter {
            crawl: crawl_of(crawl),
            queue: some(queue),
            text: text.map(|text| {
                if ignore_case {
                    text.to_lowercase()
                } else {
                    text
                }
            }),
            ignore_case,
            before: None,
        }
    }

    fn takes(&self, key: &Key<'_>, created: u64) -> bool {
        let in_text = |text: &String| {
            if self.ignore_case {
                key.url().to_lowercase().contains(text)
            } else {
                key.url().contains(text)
            }
        };
        key.crawl == self.crawl
            && self.queue.as_deref().is_none_or(|queue| queue == key.queue)
            && self.before.is_none_or(|before| created < before)
            && self.text.as_ref().is_none_or(in_text)
    }
}

impl Frontier {
    pub(super) fn list(&self, filter: &Filter, start: usize, size: usize) -> Result<Vec<UrlEntry>> {
        let all = self.state().all()?;
        let (mut found, mut skipped, mut bytes) = (Vec::new(), 0, 0);
        all.each(|key, text, item| {
            if filter.takes(&key, item.created) {
                if skipped == start {
                    bytes += text.len() + item.metadata.len();
                    found.push(UrlEntry {
                        key: text.into(),
                        item,
                    });
                } else {
                    skipped += 1;
                }
            }
            found.len() < size && bytes < self.limits.bytes_a_call
        })?;
        Ok(found)
    }

    pub(super) fn count(&self, filter: &Filter) -> Result<u64> {
        let all = self.state().all()?;
        let mut count = 0;
        all.each(|key, _, item| {
            count += u64::from(filter.takes(&key, item.created));
            true
        })?;
        Ok(count)
    }

    /// Deletes the URLs that match when it begins.
    pub(super) fn delete(&self, filter: &Filter) -> Result<u64> {
        let all = self.state().all()?;
        let (mut keys, mut deleted, mut failure) = (Vec::new(), 0, None);
        all.each(|key, text, item| {
            if filter.takes(&key, item.created) {
                keys.push(text.to_owned());
            }
            if keys.len() == CHUNK {
                match self.state().remove(&std::mem::take(&mut keys)) {
                    Ok(n) => deleted += n,
                    Err(problem) => failure = Some(problem),
                }
            }
            failure.is_none()
        })?;
        if let Some(problem) = failure {
            return Err(problem);
        }
        Ok(deleted + self.state().remove(&keys)?)
    }

    /// Removes the settings of queues that are empty.
    pub(super) fn forget(&self, crawl: &str, queue: Option<&str>) -> Result<()> {
        let mut state = self.state();
        let names: Vec<String> = state
            .queues(crawl, queue)
            .map(|(name, _)| name.to_owned())
            .collect();
        for name in names {
            state.set(crawl, &name, |queue| {
                (queue.delay, queue.blocked_until, queue.limit) = (None, 0, 0);
            })?;
        }
        Ok(())
    }

    pub(super) fn stats(&self, crawl: String, queue: Option<&str>) -> wire::Stats {
        let mut stats = wire::Stats::default();
        let (mut completed, mut active) = (0, 0);
        for (_, queue) in self.state().queues(&crawl, queue) {
            stats.size += queue.active;
            stats.in_process += u32::try_from(queue.leased).unwrap_or(u32::MAX);
            stats.number_of_queues += 1;
            completed += queue.completed;
            active += u64::from(queue.active > 0);
        }
        stats.counts = HashMap::from([
            ("completed".into(), completed),
            ("active_queues".into(), active),
        ]);
        stats.crawl_id = crawl;
        stats
    }

    pub(super) fn queue_list(&self, asked: wire::Pagination) -> wire::QueueList {
        let crawl = crawl_of(asked.crawl_id);
        let now = Now::read().unix_s;
        let size = count(asked.size, LIST, self.limits.urls_a_call);
        let state = self.state();
        let listed = |queue: &Queue| {
            asked.include_inactive || queue.active > 0 && queue.blocked_until <= now
        };
        let queues = state.queues(&crawl, None);
        let matching: Vec<&str> = queues
            .filter(|(_, queue)| listed(queue))
            .map(|(name, _)| name)
            .collect();
        let values = matching.iter().skip(asked.start as usize).take(size);
        let values: Vec<String> = values.map(|&name| name.to_owned()).collect();
        wire::QueueList {
            total: matching.len() as u64,
            start: asked.start,
            size: values.len() as u32,
            values,
            crawl_id: crawl.clone(),
        }
    }
}
