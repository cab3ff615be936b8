//! Calls of another protocol, such as a frontier's, which a service answers at its own address over HTTP/2.

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

/// Error of a body.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// Body of any answer.
pub type Body = Box<dyn hyper::body::Body<Data = Bytes, Error = BodyError> + Send + Unpin>;

/// Future of the answer to a call.
pub type Answer = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Function that answers a call.
pub type CallHandler = Box<dyn Fn(Request<Incoming>) -> Answer + Send + Sync>;

/// Protocol whose calls the service answers.
pub trait Calls: fmt::Debug + Send {
    /// Starts with a service at `address`, within its limits.
    ///
    /// # Errors
    /// What the protocol needs cannot be opened, or is something else (`InvalidInput`); the system allows too few
    /// threads (`WouldBlock`).
    fn start(
        self: Box<Self>,
        backend: &Arc<dyn Backend>,
        limits: &ServiceLimits,
        address: String,
    ) -> io::Result<RunningCalls>;
}

/// Protocol that has been started.
pub struct RunningCalls {
    /// Prefix of the paths of all calls.
    pub path: &'static str,
    /// Function that answers each call.
    pub call: CallHandler,
    /// Handle for waiting until all calls have ended.
    pub ending: PoolEnd,
    /// Owner of background work, which ends when this is dropped: after the thread that serves clients.
    pub keeper: Box<dyn Any + Send + Sync>,
}
