//! Conversion between the protocol's messages and the frontier's types.

use prost::Message;
use tonic::Status;

use crate::item::{Key, UrlState};
use crate::state::{Ack, Put, UrlEntry};
use crate::wire;
use cashrank_serve::{Backend, Problem, Result};

/// Default name of a crawl.
pub(super) const DEFAULT_CRAWL: &str = "DEFAULT";

pub(super) fn refused(problem: Problem) -> Status {
    let text = problem.to_string();
    match problem {
        Problem::Asked(_) => Status::invalid_argument(text),
        Problem::Unknown(_) => Status::not_found(text),
        Problem::Later(_) => Status::unavailable(text),
        Problem::Failed(_) => Status::internal(text),
    }
}

pub(super) fn crawl_of(name: String) -> String {
    if name.is_empty() {
        DEFAULT_CRAWL.into()
    } else {
        name
    }
}

/// Returns the host of a URL, which is the default queue; empty if there is none.
pub(super) fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or(""),
    }
}

pub(super) fn queue_of(key: String, url: &str) -> String {
    if key.is_empty() {
        host_of(url).to_owned()
    } else {
        key
    }
}

pub(super) fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Returns the requested number, limited to `most`; 0 stands for `default`.
pub(super) fn count(asked: u32, default: u32, most: usize) -> usize {
    let asked = if asked == 0 { default } else { asked };
    (asked as usize).min(most)
}

pub(super) fn put_of(
    item: Option<wire::UrlInfo>,
    known: Option<u64>,
    backend: &dyn Backend,
) -> Put {
    let info = item.unwrap_or_default();
    let metadata = wire::UrlInfo {
        metadata: info.metadata,
        ..wire::UrlInfo::default()
    };
    Put {
        canonical: backend.canonical(&info.url),
        crawl: crawl_of(info.crawl_id),
        queue: queue_of(info.key, &info.url),
        url: info.url,
        metadata: metadata.encode_to_vec(),
        known,
    }
}

pub(super) fn info_of(given: &UrlEntry) -> Result<wire::UrlInfo> {
    let key = Key::parse(&given.key)?;
    let kept = wire::UrlInfo::decode(&*given.item.metadata);
    let kept =
        kept.map_err(|_| Problem::Failed("the frontier's file is damaged: metadata".into()))?;
    Ok(wire::UrlInfo {
        url: key.url().into(),
        key: key.queue.into(),
        crawl_id: key.crawl.into(),
        metadata: kept.metadata,
    })
}

pub(super) fn item_of(given: &UrlEntry) -> Result<wire::UrlItem> {
    let item = &given.item;
    // A URL that was never fetched is available from its arrival on.
    let date = match (item.place, item.fetched) {
        (UrlState::Completed, _) => 0,
        (UrlState::Waiting, _) => item.date,
        (_, true) => item.date.max(1),
        (_, false) => item.created,
    };
    let known = wire::KnownUrlItem {
        info: Some(info_of(given)?),
        refetchable_from_date: date,
    };
    Ok(wire::UrlItem {
        item: Some(wire::url_item::Item::Known(known)),
        id: String::new(),
        creation_date: item.created,
    })
}

pub(super) fn ack_of(ack: Ack) -> wire::ack_message::Status {
    match ack {
        Ack::Ok => wire::ack_message::Status::Ok,
        Ack::Skipped => wire::ack_message::Status::Skipped,
        Ack::Failed => wire::ack_message::Status::Fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_a_url_is_its_host() {
        for (url, host) in [
            ("http://a.example/b", "a.example"),
            ("https://a.example:8080?x", "a.example"),
            ("http://me:word@a.example#x", "a.example"),
            ("http://[::1]:80/", "::1"),
            ("a.example/b", "a.example"),
            ("http:///b", ""),
            ("", ""),
        ] {
            assert_eq!(host_of(url), host, "{url:?}");
        }
    }
}
