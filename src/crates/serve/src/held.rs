//! Answers in transit to clients. The memory of untaken answers is bounded, and a client that takes no byte of one for
//! a while is cut off: over HTTP/2 it could otherwise keep a connection with waiting answers alive forever.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

#[derive(Clone, Default)]
pub(crate) struct PendingAnswers(Arc<Mutex<Waits>>);

#[derive(Default)]
struct Waits {
    next: u64,
    /// For each answer with data available: the time since which none was taken.
    since: BTreeMap<u64, Instant>,
}

impl PendingAnswers {
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the body of an answer on in pieces, so that stalls are noticed.
    pub(crate) fn hold(&self, mut answer: Response) -> Response<HeldBody> {
        let place = answer.extensions_mut().remove();
        // axum adds the length of the body. In a 304 it would be read as that of the list (RFC 9110, section 8.6).
        if answer.status() == StatusCode::NOT_MODIFIED {
            answer.headers_mut().remove(CONTENT_LENGTH);
        }
        let mut waits = self.waits();
        let number = waits.next;
        waits.next += 1;
        waits.since.insert(number, Instant::now());
        answer.map(|inner| HeldBody {
            inner,
            piece: Bytes::new(),
            number,
            held: self.clone(),
            _place: place,
        })
    }

    /// Returns whether nothing of some answer was taken for `time`.
    pub(crate) fn is_stalled(&self, time: Duration) -> bool {
        let waits = self.waits();
        waits.since.values().any(|since| since.elapsed() >= time)
    }
}

/// Body that records when it waits for its client. Its length is in the answer's header, where axum puts it.
pub(crate) struct HeldBody {
    inner: Body,
    /// Rest of the last data from `inner`.
    piece: Bytes,
    number: u64,
    held: PendingAnswers,
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
        let mut waits = self.held.waits();
        match &polled {
            // The connection has this piece, and polls again once it has sent it.
            Poll::Ready(Some(_)) => {
                waits.since.insert(self.number, Instant::now());
            }
            // There is nothing (more) that the client could take.
            Poll::Ready(None) | Poll::Pending => {
                waits.since.remove(&self.number);
            }
        }
        drop(waits);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_empty() && self.inner.is_end_stream()
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        self.held.waits().since.remove(&self.number);
    }
}
