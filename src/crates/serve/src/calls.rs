//! Calls of another protocol, which a service answers at its own address over HTTP/2: those of a frontier.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};

use crate::backend::Backend;
use crate::limits::ServiceLimits;
use crate::pool::PoolEnd;

/// The error of a body.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// The body of any answer.
pub type Body = Box<dyn hyper::body::Body<Data = Bytes, Error = BodyError> + Send + Unpin>;

/// An answer to a call, once it is there.
pub type Answer = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Answers a call.
pub type CallHandler = Box<dyn Fn(Request<Incoming>) -> Answer + Send + Sync>;

/// What answers calls, before the service starts.
pub trait Calls: fmt::Debug + Send {
    /// Starts with a service at `address`, within its limits.
    ///
    /// # Errors
    /// What it needs cannot be opened, or is something else (`InvalidInput`); the system allows too few threads (`WouldBlock`).
    fn start(
        self: Box<Self>,
        backend: &Arc<dyn Backend>,
        limits: &ServiceLimits,
        address: String,
    ) -> io::Result<RunningCalls>;
}

/// Calls that are answered.
pub struct RunningCalls {
    /// The path that all calls begin with.
    pub path: &'static str,
    /// Answers each.
    pub call: CallHandler,
    /// The end of all calls.
    pub ending: PoolEnd,
    /// What keeps running beside them, and ends when it is dropped: after the thread that serves clients.
    pub keeper: Box<dyn Any + Send + Sync>,
}
