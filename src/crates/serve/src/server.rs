//! The service itself: a socket, a thread, and connections within their limits.
//!
//! The memory of untaken answers is bounded, and a client that takes no byte of one for a while is cut off: over HTTP/2 it
//! could otherwise keep a connection with waiting answers alive forever.

use std::any::Any;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response;
use axum::{Error, Router};
use futures_util::future::{Either, select};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_io_timeout::TimeoutStream;
use tower_service::Service as _;

use crate::access::Token;
use crate::http::{self, KnownClient, ServiceContext};
use crate::workers::{Workers, start_thread};
use crate::{Backend, Calls};

/// Time that running answers get when the service is stopped.
const STOP_TIME: Duration = Duration::from_secs(2);
/// Pause after a connection could not be accepted because this process or the machine lacks resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time for which a connection without an admissible request keeps its place while others wait for one.
const STRANGER_TIME: Duration = Duration::from_secs(1);
/// HTTP/2 flow-control window of a stream, in bytes.
#[cfg(feature = "frontier")]
const STREAM_WINDOW: u32 = 64 << 10;
/// HTTP/2 flow-control window of a connection, as a multiple of a stream's. Half of it, with 256 bytes counted for each
/// waiting frame, bounds the number of small frames: a crawler that puts URLs sends one frame for each.
#[cfg(feature = "frontier")]
const CONNECTION_WINDOW: u32 = 32;

/// Limits of a service. The guide's chapter on the service documents the defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceLimits {
    /// Number of connections at once; further ones wait.
    pub connections: usize,
    /// Time for a request's header to arrive. That of the first request counts from the opening of the connection; in
    /// HTTP/1, that of a later request counts from the last answer.
    pub header_time: Duration,
    /// Time for which a client may send nothing. An idle HTTP/2 client is pinged after half of this time, and must
    /// answer within another quarter.
    pub idle_time: Duration,
    /// Time for which a client may take nothing of an answer; then its connection ends.
    pub write_time: Duration,
    pub answer_time: Duration,
    /// Maximum length of a request's header, all lines together, in bytes.
    pub header_bytes: usize,
    pub answer_bytes: usize,
    /// Maximum memory for untaken answers of all clients together, in bytes; further requests get 503.
    pub held_bytes: usize,
    /// Number of answers that are computed at once.
    pub workers: usize,
    /// Number of requests that wait for a worker; further ones get 503.
    pub waiting: usize,
    pub streams: u32,
    pub next_pages: usize,
}

impl Default for ServiceLimits {
    fn default() -> ServiceLimits {
        ServiceLimits {
            connections: 256,
            header_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(60),
            write_time: Duration::from_secs(20),
            answer_time: Duration::from_secs(30),
            header_bytes: 64 << 10,
            answer_bytes: 16 << 20,
            held_bytes: 128 << 20,
            workers: 2,
            waiting: 64,
            streams: 16,
            next_pages: 100_000,
        }
    }
}

pub struct ServiceOptions {
    pub listen: SocketAddr,
    /// Token that clients must send. Required if other machines can reach the address.
    pub token: Option<Token>,
    pub limits: ServiceLimits,
    /// Calls of another protocol that are answered over HTTP/2: only with the feature `frontier`.
    pub calls: Option<Box<dyn Calls>>,
}

/// A running service. When it is dropped, it closes connections and waits for a short time for running answers.
pub struct Service {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Background work, which ends after the thread that serves clients.
    _keeper: Option<Box<dyn Any + Send + Sync>>,
}

impl Service {
    /// Starts answering on a new thread. Fails like [`Calls::start`], if the address cannot be used, and if the system
    /// allows too few threads (`WouldBlock`). The caller checks that there is a token if other machines can reach it.
    pub fn start(options: ServiceOptions, backend: Arc<dyn Backend>) -> io::Result<Service> {
        let listener = TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let limits = options.limits;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let workers = Workers::new(&limits)?;
        let mut busy = vec![workers.clone()];
        let (mut keeper, mut calls) = (None, None);
        if let Some(asked) = options.calls {
            let running = asked.start(&backend, &limits, address.to_string())?;
            (keeper, calls) = (Some(running.keeper), Some(running.routes));
            busy.push(running.workers);
        }
        let context = Arc::new(ServiceContext {
            backend,
            token: options.token,
            workers,
            places: Arc::new(Semaphore::new(limits.held_bytes / http::PLACE)),
            limits: limits.clone(),
        });
        let routes = http::routes(context, calls);
        let (stop, stopped) = oneshot::channel();
        let thread = start_thread("serve", move || {
            runtime.spawn(accept(listener, limits, routes));
            // The sender never sends: the wait ends when it is dropped.
            let _ = runtime.block_on(stopped);
            // Dropping the runtime drops everything that waits for an answer.
            drop(runtime);
            let latest = Instant::now() + STOP_TIME;
            busy.iter().for_each(|workers| workers.wait_until(latest));
        })?;
        Ok(Service {
            address,
            stop: Some(stop),
            thread: Some(thread),
            _keeper: keeper,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, limits: ServiceLimits, routes: Router) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let places = Arc::new(Semaphore::new(limits.connections));
    let crowded = Arc::new(Notify::new());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let place = loop {
            let place = places.clone().acquire_owned();
            match tokio::time::timeout(STRANGER_TIME, place).await {
                Ok(place) => break place,
                Err(_) => crowded.notify_waiters(),
            }
        };
        let (limits, routes, crowded) = (limits.clone(), routes.clone(), crowded.clone());
        tokio::spawn(async move {
            connection(stream, &limits, routes, &crowded).await;
            drop(place);
        });
    }
}

/// Serves a connection until it ends, its first request does not come in time, or its client takes nothing; if others
/// wait for a place (`crowded`), also if its client has not sent an admissible request yet.
async fn connection(stream: TcpStream, limits: &ServiceLimits, routes: Router, crowded: &Notify) {
    // Answers are written in one piece: waiting for more data would only delay them.
    let _ = stream.set_nodelay(true);
    // Disconnects a client that sends nothing for the idle time, or takes nothing for the write time.
    let mut stream = TimeoutStream::new(stream);
    stream.set_read_timeout(Some(limits.idle_time));
    stream.set_write_timeout(Some(limits.write_time));
    let stream = TokioIo::new(Box::pin(stream));
    let (held, known) = (PendingAnswers::default(), KnownClient::default());
    let is_asked = AtomicBool::new(false);
    let answers = service_fn(|mut request: Request<Incoming>| {
        is_asked.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(known.clone());
        let (answer, held) = (routes.clone().call(request), held.clone());
        async move { answer.await.map(|answer| held.hold(answer)) }
    });
    let builder = builder(limits);
    let mut serving = pin!(builder.serve_connection(stream, answers));
    let opened = Instant::now();
    let step_time = limits.header_time.min(limits.write_time / 4);
    loop {
        let crowded = pin!(crowded.notified());
        let step = select(serving.as_mut(), crowded);
        match tokio::time::timeout(step_time, step).await {
            // Errors caused by a client are ignored.
            Ok(Either::Left(_)) => return,
            Ok(Either::Right(_))
                if !known.0.load(Ordering::Relaxed) && opened.elapsed() >= STRANGER_TIME =>
            {
                return;
            }
            // A client of HTTP/2 has no other time limit until its preface is complete.
            _ if !is_asked.load(Ordering::Relaxed) && opened.elapsed() >= limits.header_time => {
                return;
            }
            // Checked at every step: while connections wait for a place, no time-out may ever end.
            _ if held.is_stalled(limits.write_time) => return,
            _ => {}
        }
    }
}

/// Returns a server for HTTP/1 and, with the feature `frontier`, for HTTP/2, which calls need.
fn builder(limits: &ServiceLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(limits.header_bytes)
        .half_close(false);
    #[cfg(feature = "frontier")]
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.header_bytes as u32)
        .max_send_buf_size(64 << 10)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(limits.streams * STREAM_WINDOW * CONNECTION_WINDOW)
        .keep_alive_interval(limits.idle_time / 2)
        .keep_alive_timeout(limits.idle_time / 4);
    builder
}

/// Number of bytes passed to a connection at once: an answer goes piece by piece, which shows whether it is taken.
const PIECE: usize = 64 << 10;

/// Share of the memory for untaken answers that an answer occupies until its body is dropped.
pub(crate) type AnswerPlace = Arc<OwnedSemaphorePermit>;

/// Time since which nothing of an answer was taken; `None` if there is nothing to take.
type Wait = Mutex<Option<Instant>>;

/// Answers of a connection that its client has not taken yet.
#[derive(Clone, Default)]
struct PendingAnswers(Arc<Mutex<Vec<Weak<Wait>>>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PendingAnswers {
    /// Passes the body of an answer on in pieces, so that stalls are noticed.
    fn hold(&self, mut answer: Response) -> Response<HeldBody> {
        let place = answer.extensions_mut().remove();
        // axum adds the length of the body. In a 304 it would be read as that of the list (RFC 9110, section 8.6).
        if answer.status() == StatusCode::NOT_MODIFIED {
            answer.headers_mut().remove(CONTENT_LENGTH);
        }
        let wait = Arc::new(Mutex::new(Some(Instant::now())));
        let mut waits = lock(&self.0);
        waits.retain(|wait| wait.strong_count() > 0);
        waits.push(Arc::downgrade(&wait));
        answer.map(|inner| HeldBody {
            inner,
            piece: Bytes::new(),
            wait,
            _place: place,
        })
    }

    /// Returns whether nothing of some answer was taken for `time`.
    fn is_stalled(&self, time: Duration) -> bool {
        lock(&self.0).iter().any(|wait| {
            let since = wait.upgrade().and_then(|wait| *lock(&wait));
            since.is_some_and(|since| since.elapsed() >= time)
        })
    }
}

/// Body that records when it waits for its client. Its length is in the answer's header, where axum puts it.
struct HeldBody {
    inner: Body,
    /// Rest of the last data from `inner`.
    piece: Bytes,
    wait: Arc<Wait>,
    _place: Option<AnswerPlace>,
}

impl HeldBody {
    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.piece.is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.piece = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.piece.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.piece.split_to(length)))))
    }
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = self.poll_piece(context);
        // A connection that has a piece polls again once it has sent it. Otherwise there is nothing (more) to take.
        *lock(&self.wait) = matches!(polled, Poll::Ready(Some(_))).then(Instant::now);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_empty() && self.inner.is_end_stream()
    }
}
