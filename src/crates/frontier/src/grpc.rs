//! The calls of URLFrontier's interface. The guide's chapter on the service describes each; where the interface leaves
//! something open, this follows the reference implementation.

mod convert;
mod lists;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use convert::{
    DEFAULT_CRAWL, ack_of, count, crawl_of, info_of, item_of, put_of, queue_of, refused, some,
};
use lists::Filter;
use prost::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};

use super::item::Key;
use super::state::{Ack, Put, UrlQuery};
use super::wire::url_frontier_server::{UrlFrontier, UrlFrontierServer};
use super::{Frontier, Now, wire};
use cashrank_serve::Workers;
use cashrank_serve::{Backend, Result};

/// Default time until a URL may be handed out again, in seconds.
const LEASE: u32 = 30;
/// Default number of values in a list.
const LIST: u32 = 100;
/// Maximum number of URLs that are put together.
const BATCH: usize = 500;
/// Maximum length of URLs that are put together, in bytes.
const BATCH_BYTES: usize = 1 << 20;
/// Maximum length of a message, in bytes.
const MESSAGE_BYTES: usize = 1 << 20;
/// Maximum number of streams of URLs to put, of all clients together.
const STREAMS: usize = 64;
/// Maximum number of lists in progress: each may take some ten megabytes until its client has taken it.
const LISTS: usize = 8;
/// Time for which a call waits until it may make a list.
const LIST_TIME: Duration = Duration::from_secs(20);
/// Maximum number of answers that wait for a client to read them.
const ACKS: usize = 4;
/// Time to wait for another URL before those received are put.
const BATCH_TIME: Duration = Duration::from_millis(2);
pub(crate) type Server = UrlFrontierServer<UrlFrontierCalls>;

/// Creates the service, for HTTP/2.
pub(crate) fn server(calls: UrlFrontierCalls) -> Server {
    UrlFrontierServer::new(calls).max_decoding_message_size(MESSAGE_BYTES)
}

/// State that all calls share.
#[derive(Clone)]
pub(crate) struct UrlFrontierCalls {
    pub(crate) frontier: Arc<Frontier>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) workers: Workers,
    /// Permits for streams of URLs to put.
    pub(crate) streams: Arc<Semaphore>,
    /// Permits for lists in progress.
    lists: Arc<Semaphore>,
    /// The service's own address, which is its list of nodes.
    pub(crate) address: String,
}

impl UrlFrontierCalls {
    pub(crate) fn new(
        frontier: Arc<Frontier>,
        backend: Arc<dyn Backend>,
        workers: Workers,
        address: String,
    ) -> UrlFrontierCalls {
        UrlFrontierCalls {
            frontier,
            backend,
            workers,
            streams: Arc::new(Semaphore::new(STREAMS)),
            lists: Arc::new(Semaphore::new(LISTS)),
            address,
        }
    }
}

type Answer<T> = std::result::Result<Response<T>, Status>;
type Items<T> = Pin<Box<dyn Stream<Item = std::result::Result<T, Status>> + Send>>;

impl UrlFrontierCalls {
    /// Runs a job on the frontier, on another thread than the one that serves all clients.
    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Frontier) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, Status> {
        let frontier = self.frontier.clone();
        self.workers
            .run(move || job(&frontier))
            .await
            .map_err(refused)
    }

    /// Waits for a permit for a list.
    async fn list_place(&self) -> std::result::Result<OwnedSemaphorePermit, Status> {
        let place = tokio::time::timeout(LIST_TIME, self.lists.clone().acquire_owned()).await;
        match place {
            Ok(Ok(place)) => Ok(place),
            _ => Err(Status::unavailable(
                "too many lists of URLs are waiting for their clients",
            )),
        }
    }

    /// Puts the URLs of a stream in batches, and sends an answer to each, in order. If a client does not read the
    /// answers, its stream is not read either.
    fn put_all<I, A>(
        self,
        mut items: Streaming<I>,
        puts: impl Fn(&I, &dyn Backend) -> Vec<Put> + Send + 'static,
        answer: impl Fn(I, &[Ack]) -> A + Send + 'static,
    ) -> Answer<Items<A>>
    where
        I: Message + 'static,
        A: Send + 'static,
    {
        let Ok(place) = self.streams.clone().try_acquire_owned() else {
            let text = format!(
                "{STREAMS} streams of URLs are open already: close one, or try again later"
            );
            return Err(Status::unavailable(text));
        };
        let (sender, receiver) = mpsc::channel(ACKS);
        tokio::spawn(async move {
            let _place = place;
            let mut told = None;
            loop {
                let (batch, end) = next_batch(&mut items).await;
                let counted: Vec<Vec<Put>> = batch
                    .iter()
                    .map(|item| puts(item, &*self.backend))
                    .collect();
                let counts: Vec<usize> = counted.iter().map(Vec::len).collect();
                let all: Vec<Put> = counted.into_iter().flatten().collect();
                let total = all.len();
                // URLs that could not be put may be sent again.
                let put = self
                    .run(move |frontier| frontier.state().put(&all, Now::read()))
                    .await;
                let acks = put.unwrap_or_else(|why| {
                    let why = Some(why.message().to_owned());
                    if why != told {
                        let text = why.as_deref().unwrap_or_default();
                        self.backend
                            .log(&format!("frontier: URLs are refused: {text}"));
                        told = why;
                    }
                    vec![Ack::Failed; total]
                });
                let mut acks = &acks[..];
                for (item, count) in batch.into_iter().zip(counts) {
                    let (own, rest) = acks.split_at(count);
                    acks = rest;
                    if sender.send(Ok(answer(item, own))).await.is_err() {
                        return;
                    }
                }
                match end {
                    None => {}
                    Some(Ok(())) => return,
                    Some(Err(status)) => {
                        let _ = sender.send(Err(status)).await;
                        return;
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}

/// Returns the next items of a stream: waits for one, and takes more while they arrive immediately. Also returns the
/// end of the stream, if it was reached.
async fn next_batch<I: Message>(
    items: &mut Streaming<I>,
) -> (Vec<I>, Option<std::result::Result<(), Status>>) {
    let mut batch = Vec::new();
    let mut bytes = 0;
    loop {
        let next = if batch.is_empty() {
            items.message().await
        } else {
            match tokio::time::timeout(BATCH_TIME, items.message()).await {
                Ok(next) => next,
                Err(_) => return (batch, None),
            }
        };
        match next {
            Ok(Some(item)) => {
                bytes += item.encoded_len();
                batch.push(item);
            }
            Ok(None) => return (batch, Some(Ok(()))),
            Err(status) => return (batch, Some(Err(status))),
        }
        if batch.len() >= BATCH || bytes >= BATCH_BYTES {
            return (batch, None);
        }
    }
}

/// Streams the items of a list; its permit is released when the stream is dropped.
fn streamed<T: Send + 'static>(items: Vec<T>, place: OwnedSemaphorePermit) -> Items<T> {
    Box::pin(tokio_stream::iter(items).map(move |item| {
        let _ = &place;
        Ok(item)
    }))
}

#[tonic::async_trait]
impl UrlFrontier for UrlFrontierCalls {
    type GetURLsStream = Items<wire::UrlInfo>;
    type PutURLsStream = Items<wire::AckMessage>;
    type PutDiscoveredStream = Items<wire::BatchAck>;
    type ListURLsStream = Items<wire::UrlItem>;

    async fn list_nodes(&self, _: Request<wire::Empty>) -> Answer<wire::StringList> {
        Ok(Response::new(wire::StringList {
            values: vec![self.address.clone()],
        }))
    }

    async fn list_crawls(&self, _: Request<wire::Local>) -> Answer<wire::StringList> {
        let values = self.run(|frontier| Ok(frontier.state().crawls())).await?;
        Ok(Response::new(wire::StringList { values }))
    }

    async fn delete_crawl(&self, asked: Request<wire::DeleteCrawlMessage>) -> Answer<wire::Long> {
        let crawl = crawl_of(asked.into_inner().value);
        let value = self
            .run(move |frontier| {
                let filter = Filter::new(crawl.clone(), String::new(), None, false);
                let deleted = frontier.delete(&filter)?;
                frontier.forget(&crawl, None)?;
                Ok(deleted)
            })
            .await?;
        Ok(Response::new(wire::Long { value }))
    }

    async fn list_queues(&self, asked: Request<wire::Pagination>) -> Answer<wire::QueueList> {
        let asked = asked.into_inner();
        let list = self
            .run(move |frontier| Ok(frontier.queue_list(asked)))
            .await?;
        Ok(Response::new(list))
    }

    async fn get_ur_ls(&self, asked: Request<wire::GetParams>) -> Answer<Self::GetURLsStream> {
        let asked = asked.into_inner();
        let most = self.frontier.limits.urls_a_call;
        let crawl = match asked.item {
            Some(wire::get_params::Item::CrawlId(name)) => Some(crawl_of(name)),
            // A queue that is named without a crawl belongs to the default one.
            _ if !asked.key.is_empty() => Some(DEFAULT_CRAWL.into()),
            _ => None,
        };
        let wanted = UrlQuery {
            crawl,
            queue: some(asked.key),
            queues: count(asked.max_queues, u32::MAX, usize::MAX),
            per_queue: count(asked.max_urls_per_queue, u32::MAX, most),
            urls: most,
            bytes: self.frontier.limits.bytes_a_call,
            lease: count(asked.delay_requestable, LEASE, usize::MAX) as u64,
        };
        let place = self.list_place().await?;
        let given = self
            .run(move |frontier| {
                let given = frontier.state().get(&wanted, Now::read())?;
                given.iter().map(info_of).collect::<Result<Vec<_>>>()
            })
            .await?;
        Ok(Response::new(streamed(given, place)))
    }

    async fn put_ur_ls(
        &self,
        asked: Request<Streaming<wire::UrlItem>>,
    ) -> Answer<Self::PutURLsStream> {
        let puts = |item: &wire::UrlItem, backend: &dyn Backend| {
            vec![match &item.item {
                Some(wire::url_item::Item::Discovered(found)) => {
                    put_of(found.info.clone(), None, backend)
                }
                Some(wire::url_item::Item::Known(known)) => put_of(
                    known.info.clone(),
                    Some(known.refetchable_from_date),
                    backend,
                ),
                // An item without content is skipped, since it names no URL.
                None => Put::default(),
            }]
        };
        let answer = |item: wire::UrlItem, acks: &[Ack]| {
            let url = match item.item {
                Some(wire::url_item::Item::Discovered(found)) => found.info,
                Some(wire::url_item::Item::Known(known)) => known.info,
                None => None,
            };
            let url = || url.unwrap_or_default().url;
            wire::AckMessage {
                id: some(item.id).unwrap_or_else(url),
                status: ack_of(acks.first().copied().unwrap_or(Ack::Failed)).into(),
            }
        };
        self.clone().put_all(asked.into_inner(), puts, answer)
    }

    async fn put_discovered(
        &self,
        asked: Request<Streaming<wire::DiscoveredBatch>>,
    ) -> Answer<Self::PutDiscoveredStream> {
        let puts = |batch: &wire::DiscoveredBatch, backend: &dyn Backend| {
            let items = batch.items.iter();
            items
                .map(|info| put_of(Some(info.clone()), None, backend))
                .collect()
        };
        let answer = |batch: wire::DiscoveredBatch, acks: &[Ack]| wire::BatchAck {
            id: batch.id,
            statuses: acks.iter().map(|&ack| ack_of(ack).into()).collect(),
        };
        self.clone().put_all(asked.into_inner(), puts, answer)
    }

    async fn get_stats(&self, asked: Request<wire::QueueWithinCrawlParams>) -> Answer<wire::Stats> {
        let asked = asked.into_inner();
        let (crawl, queue) = (crawl_of(asked.crawl_id), some(asked.key));
        let stats = self
            .run(move |frontier| Ok(frontier.stats(crawl, queue.as_deref())))
            .await?;
        Ok(Response::new(stats))
    }

    async fn delete_queue(
        &self,
        asked: Request<wire::QueueWithinCrawlParams>,
    ) -> Answer<wire::Long> {
        let asked = asked.into_inner();
        if asked.key.is_empty() {
            return Err(Status::invalid_argument("key: which queue?"));
        }
        let crawl = crawl_of(asked.crawl_id);
        let value = self
            .run(move |frontier| {
                let filter = Filter::new(crawl.clone(), asked.key.clone(), None, false);
                let deleted = frontier.delete(&filter)?;
                frontier.forget(&crawl, Some(&asked.key))?;
                Ok(deleted)
            })
            .await?;
        Ok(Response::new(wire::Long { value }))
    }

    async fn block_queue_until(
        &self,
        asked: Request<wire::BlockQueueParams>,
    ) -> Answer<wire::Empty> {
        let asked = asked.into_inner();
        self.run(move |frontier| {
            let crawl = crawl_of(asked.crawl_id);
            let mut state = frontier.state();
            state.set(&crawl, &asked.key, |queue| queue.blocked_until = asked.time)
        })
        .await?;
        Ok(Response::new(wire::Empty {}))
    }

    async fn set_active(&self, asked: Request<wire::Active>) -> Answer<wire::Empty> {
        let active = asked.into_inner().state;
        self.run(move |frontier| frontier.state().set_active(active))
            .await?;
        Ok(Response::new(wire::Empty {}))
    }

    async fn get_active(&self, _: Request<wire::Local>) -> Answer<wire::Boolean> {
        let state = self.run(|frontier| Ok(frontier.state().is_active)).await?;
        Ok(Response::new(wire::Boolean { state }))
    }

    async fn set_delay(&self, asked: Request<wire::QueueDelayParams>) -> Answer<wire::Empty> {
        let asked = asked.into_inner();
        self.run(move |frontier| {
            let mut state = frontier.state();
            if asked.key.is_empty() {
                return state.set_usual_delay(asked.delay_requestable);
            }
            let crawl = crawl_of(asked.crawl_id);
            let delay = Some(asked.delay_requestable);
            state.set(&crawl, &asked.key, |queue| queue.delay = delay)?;
            Ok(())
        })
        .await?;
        Ok(Response::new(wire::Empty {}))
    }

    async fn set_log_level(&self, _: Request<wire::LogLevelParams>) -> Answer<wire::Empty> {
        Err(Status::unimplemented(
            "this service writes no log, so it has no log level",
        ))
    }

    async fn set_crawl_limit(&self, asked: Request<wire::CrawlLimitParams>) -> Answer<wire::Empty> {
        let asked = asked.into_inner();
        let found = self
            .run(move |frontier| {
                let crawl = crawl_of(asked.crawl_id);
                let mut state = frontier.state();
                state.set(&crawl, &asked.key, |queue| queue.limit = asked.limit)
            })
            .await?;
        if !found {
            return Err(Status::not_found("there is no such queue"));
        }
        Ok(Response::new(wire::Empty {}))
    }

    async fn get_url_status(
        &self,
        asked: Request<wire::UrlStatusRequest>,
    ) -> Answer<wire::UrlItem> {
        let asked = asked.into_inner();
        let canonical = self.backend.canonical(&asked.url);
        let (crawl, queue) = (crawl_of(asked.crawl_id), queue_of(asked.key, &asked.url));
        let key = Key::new(&canonical, &crawl, &queue, &asked.url).text();
        let found = self
            .run(move |frontier| frontier.state().find(&key))
            .await?;
        let found = found.ok_or_else(|| Status::not_found("the URL is not in that queue"))?;
        Ok(Response::new(item_of(&found).map_err(refused)?))
    }

    async fn list_ur_ls(
        &self,
        asked: Request<wire::ListUrlParams>,
    ) -> Answer<Self::ListURLsStream> {
        let asked = asked.into_inner();
        let size = count(asked.size, LIST, self.frontier.limits.urls_a_call);
        let ignore_case = asked.ignore_case.unwrap_or(false);
        let filter = Filter::new(asked.crawl_id, asked.key, asked.filter, ignore_case);
        let place = self.list_place().await?;
        let items = self
            .run(move |frontier| {
                let found = frontier.list(&filter, asked.start as usize, size)?;
                found.iter().map(item_of).collect::<Result<Vec<_>>>()
            })
            .await?;
        Ok(Response::new(streamed(items, place)))
    }

    async fn count_ur_ls(&self, asked: Request<wire::CountUrlParams>) -> Answer<wire::Long> {
        let asked = asked.into_inner();
        let ignore_case = asked.ignore_case.unwrap_or(false);
        let filter = Filter::new(asked.crawl_id, asked.key, asked.filter, ignore_case);
        let value = self.run(move |frontier| frontier.count(&filter)).await?;
        Ok(Response::new(wire::Long { value }))
    }

    async fn purge_ur_ls(&self, asked: Request<wire::PurgeUrlParams>) -> Answer<wire::Long> {
        let asked = asked.into_inner();
        let mut filter = Filter::new(asked.crawl_id, asked.key, None, false);
        let age = u64::from(asked.days) * 86_400;
        filter.before = Some(Now::read().unix_s.saturating_sub(age));
        let value = self.run(move |frontier| frontier.delete(&filter)).await?;
        Ok(Response::new(wire::Long { value }))
    }
}
