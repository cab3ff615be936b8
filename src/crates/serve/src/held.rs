//! Answers in transit to clients. The memory of untaken answers is bounded, and a client that takes no byte of one for
//! a while is cut off: over HTTP/2 it could otherwise keep a connection with waiting answers alive forever.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response;
use hyper::body::Frame;
use tokio::sync::OwnedSemaphorePermit;

/// Number of bytes passed to a connection at once: an answer goes piece by piece, which shows whether it is taken.
const PIECE: usize = 64 << 10;

/// Share of the memory for untaken answers that an answer occupies until its body is dropped.
pub(crate) type AnswerPlace = Arc<OwnedSemaphorePermit>;

/// Time since which nothing of an answer was taken; `None` if there is nothing to take.
type Wait = Mutex<Option<Instant>>;

/// Answers of a connection that its client has not taken yet.
#[derive(Clone, Default)]
pub(crate) struct PendingAnswers(Arc<Mutex<Vec<Weak<Wait>>>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PendingAnswers {
    /// Passes the body of an answer on in pieces, so that stalls are noticed.
    pub(crate) fn hold(&self, mut answer: Response) -> Response<HeldBody> {
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
    pub(crate) fn is_stalled(&self, time: Duration) -> bool {
        lock(&self.0).iter().any(|wait| {
            let since = wait.upgrade().and_then(|wait| *lock(&wait));
            since.is_some_and(|since| since.elapsed() >= time)
        })
    }
}

/// Body that records when it waits for its client. Its length is in the answer's header, where axum puts it.
pub(crate) struct HeldBody {
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
