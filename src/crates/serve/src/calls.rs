//! Calls of another protocol, such as a frontier's, which a service answers at its own address over HTTP/2.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

use axum::Router;

use crate::backend::Backend;
use crate::limits::ServiceLimits;
use crate::pool::PoolEnd;

/// Protocol whose calls the service answers.
pub trait Calls: fmt::Debug + Send {
    /// Starts with a service at `address`, within its limits. Fails if a resource of the protocol cannot be opened, or
    /// is something else (`InvalidInput`), or if the system allows too few threads (`WouldBlock`).
    fn start(
        self: Box<Self>,
        backend: &Arc<dyn Backend>,
        limits: &ServiceLimits,
        address: String,
    ) -> io::Result<RunningCalls>;
}

/// Protocol that has been started.
pub struct RunningCalls {
    /// Paths of the calls, with their handlers.
    pub routes: Router,
    /// Handle for waiting until all calls have ended.
    pub ending: PoolEnd,
    /// Owner of background work, which ends when this is dropped: after the thread that serves clients.
    pub keeper: Box<dyn Any + Send + Sync>,
}
