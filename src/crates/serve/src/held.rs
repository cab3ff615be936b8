//! Answers in transit to clients. The memory of untaken answers is bounded, and a client that takes no byte of an
//! answer for a while is cut off: in HTTP/2 a client could otherwise keep its connection alive and its answers waiting
//! forever.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use crate::calls::BodyError;

/// Bytes that are passed to a connection at once. An answer is passed piece by piece, which shows whether it is taken.
const PIECE: usize = 64 << 10;

/// Answers of a connection that wait for their client.
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

    /// Wraps a body so that stalls are noticed. `place` is released when the body is dropped.
    pub(crate) fn body<B>(&self, inner: B, place: Option<OwnedSemaphorePermit>) -> HeldBody<B> {
        let mut waits = self.waits();
        let number = waits.next;
        waits.next += 1;
        waits.since.insert(number, Instant::now());
        HeldBody {
            inner,
            number,
            held: self.clone(),
            _place: place,
        }
    }

    /// Returns whether nothing of some answer was taken for `time`.
    pub(crate) fn is_stalled(&self, time: Duration) -> bool {
        let waits = self.waits();
        waits.since.values().any(|since| since.elapsed() >= time)
    }
}

/// Body that records when it waits for its client.
pub(crate) struct HeldBody<B> {
    inner: B,
    number: u64,
    held: PendingAnswers,
    _place: Option<OwnedSemaphorePermit>,
}

impl<B: Body + Unpin> Body for HeldBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
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
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B> Drop for HeldBody<B> {
    fn drop(&mut self) {
        self.held.waits().since.remove(&self.number);
    }
}

/// Bytes, as a body of several pieces.
pub(crate) struct ChunkedBody(pub(crate) Bytes);

impl Body for ChunkedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.0.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.0.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}
