//! Connection with deadlines below HTTP: a client that misses one is disconnected.
//!
//! - The first [`OPENING`] bytes must arrive within the time for a header, all of them together: enough to distinguish
//!   HTTP/1 from HTTP/2, which then have deadlines of their own.
//! - Later, the client may be silent for the idle time after each byte.
//! - A write must make some progress within the time for writes.
//!
//! Bare answers to what is not HTTP get their explanation here ([`Explained`]).

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use crate::explained::Explained;
use crate::limits::ServiceLimits;

/// Number of bytes that identify HTTP/2: its preface.
const OPENING: usize = 24;

pub(crate) struct Timed {
    stream: TcpStream,
    read_so_far: usize,
    idle: Duration,
    write_time: Duration,
    read_by: Pin<Box<Sleep>>,
    write_by: Pin<Box<Sleep>>,
    /// True if a write waits for the client, and `write_by` applies.
    writing: bool,
    /// Replacement for a bare answer, while it is sent.
    explained: Option<Explained>,
}

impl Timed {
    pub(crate) fn new(stream: TcpStream, limits: &ServiceLimits) -> Timed {
        Timed {
            stream,
            read_so_far: 0,
            idle: limits.times.idle,
            write_time: limits.times.write,
            read_by: Box::pin(sleep(limits.times.header)),
            write_by: Box::pin(sleep(limits.times.write)),
            writing: false,
            explained: None,
        }
    }

    /// Sends an answer with its explanation; `None` if the answer needs none.
    fn explain(&mut self, answer: &[u8], context: &mut Context<'_>) -> Option<Poll<Result<usize>>> {
        let mut explained = self.explained.take().or_else(|| Explained::of(answer))?;
        let done = loop {
            match Pin::new(&mut self.stream).poll_write(context, explained.left()) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(sent)) if explained.sent(sent) => {
                    break Poll::Ready(Ok(answer.len()));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.explained = Some(explained);
                    break Poll::Pending;
                }
            }
        };
        Some(self.wrote(done, context))
    }

    /// Passes on the result of a write; one that waits longer than allowed fails.
    fn wrote<T>(&mut self, done: Poll<Result<T>>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if done.is_ready() {
            self.writing = false;
            return done;
        }
        if !self.writing {
            self.writing = true;
            let by = Instant::now() + self.write_time;
            self.write_by.as_mut().reset(by);
        }
        match self.write_by.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(late("takes nothing"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

fn late(what: &str) -> Error {
    Error::new(ErrorKind::TimedOut, format!("the client {what}"))
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        if let Poll::Ready(done) = Pin::new(&mut self.stream).poll_read(context, buffer) {
            self.read_so_far = self
                .read_so_far
                .saturating_add(buffer.filled().len() - before);
            if self.read_so_far >= OPENING {
                let by = Instant::now() + self.idle;
                self.read_by.as_mut().reset(by);
            }
            return Poll::Ready(done);
        }
        match self.read_by.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(late("says nothing"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for Timed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        if let Some(done) = self.explain(bytes, context) {
            return done;
        }
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(done, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.wrote(done, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(context);
        self.wrote(done, context)
    }
}
